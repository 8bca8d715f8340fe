/* JSON for the API: members of objects and items of lists, written one after the other. Commas come by
 * themselves. */
#ifndef DS_UI_MEMBERS_H
#define DS_UI_MEMBERS_H

#include "exporter/ui/out.h"

/* The key; its value comes next. */
void member(struct out *o, const char *key);
/* The next value is an item of a list. */
void member_item(struct out *o);
/* A string as a value; ill-formed UTF-8 becomes U+FFFD. */
void value_text(struct out *o, struct str s);
/* A number as a value; what is not finite is a string: "+Inf". */
void value_number(struct out *o, double v);

/* null for NULL. */
void member_text(struct out *o, const char *key, const char *value);
/* null for NULL and "". */
void member_words(struct out *o, const char *key, const char *value);
void member_number(struct out *o, const char *key, double v);
void member_count(struct out *o, const char *key, uint64_t v);
void member_bool(struct out *o, const char *key, bool v);
/* Unix time in milliseconds as RFC 3339; null for 0. */
void member_time(struct out *o, const char *key, int64_t ms);
/* Without user and password; null for NULL. */
void member_url(struct out *o, const char *key, const char *value);
/* The key and `{` or `[`; the caller writes the closing bracket. */
void member_object(struct out *o, const char *key);
void member_list(struct out *o, const char *key);
/* Like member_object(); but if the object is not there, writes null and returns false. */
bool member_object_if(struct out *o, const char *key, bool there);

#endif

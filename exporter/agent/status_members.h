/* Writing the JSON of a status: members of objects and items of lists, one after the other; commas come by themselves. */
#ifndef DS_AGENT_STATUS_MEMBERS_H
#define DS_AGENT_STATUS_MEMBERS_H

#include "exporter/agent/status_text.h"

/* The key; its value comes next. */
void member(struct out *o, const char *key);
/* What comes next is an item of a list. */
void member_item(struct out *o);
/* A string as a value; ill-formed UTF-8 becomes U+FFFD. */
void value_text(struct out *o, struct str s);

/* null for NULL. */
void member_text(struct out *o, const char *key, const char *value);
/* What is no finite number is a string: "+Inf". */
void member_number(struct out *o, const char *key, double v);
void member_count(struct out *o, const char *key, uint64_t v);
void member_truth(struct out *o, const char *key, bool v);
/* RFC 3339; null for 0. */
void member_moment(struct out *o, const char *key, int64_t ms);
/* Without user and password; null for NULL. */
void member_url(struct out *o, const char *key, const char *value);
/* The key and `{`: the caller writes the other. */
void member_object(struct out *o, const char *key);

#endif

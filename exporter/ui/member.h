/* JSON, appended to a buffer: members of objects and items of lists, in order. Commas come by themselves. */
#pragma once

#include "exporter/base/buf.h"

struct access;
struct history;

/* The key; its value comes next. */
void member(struct buf *o, const char *key);
/* The next value is an item of a list. */
void member_item(struct buf *o);
/* A number as a value (a string: buf_put_json()); what is not finite is a string: "+Inf". */
void value_number(struct buf *o, double v);

/* null for NULL. */
void member_text(struct buf *o, const char *key, const char *value);
/* null for NULL and "". */
void member_words(struct buf *o, const char *key, const char *value);
void member_number(struct buf *o, const char *key, double v);
void member_count(struct buf *o, const char *key, uint64_t v);
void member_bool(struct buf *o, const char *key, bool v);
/* Unix time in milliseconds as RFC 3339; null for 0. */
void member_time(struct buf *o, const char *key, int64_t ms);
/* Without user and password; null for NULL. */
void member_url(struct buf *o, const char *key, const char *value);
/* The key and `{` or `[`; the caller writes the closing bracket. */
void member_object(struct buf *o, const char *key);
void member_list(struct buf *o, const char *key);
/* Like member_object(); but if the object is not there, writes null and returns false. */
bool member_object_if(struct buf *o, const char *key, bool there);
/* The member "build": version and revision. */
void member_build(struct buf *o);
/* The member "problems": a list of lines; problems may be NULL. */
void member_problems(struct buf *o, const char *problems);
/* The member "webConfig"; null without a web configuration file. */
void member_web_config(struct buf *o, const struct access *access);

/* "history":{"unixSeconds":[...],"<name>":[...],...}, the oldest first; null for no value. h may be NULL;
 * `names` ends with NULL. */
void member_history(struct buf *o, const struct history *h, const char *const *names);

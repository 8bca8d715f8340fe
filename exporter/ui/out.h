/* Text for people and programs, appended to a buffer. */
#pragma once

#include "exporter/base/buf.h"
#include "exporter/metric/batch.h"

struct access;
struct history;

/* A part of a line, for printf. */
struct phrase {
    char s[80];
};

/* "0.42 ms", "85 ms", "1.25 s", "2m 5s", "4d 3h". */
struct phrase words_seconds(double s);
/* "1 score", "1,234,567 scores". */
struct phrase words_count(uint64_t n, const char *one, const char *many);

/* ---- JSON: members of objects and items of lists, in order. Commas come by themselves ---- */

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

/* ---- A batch's highest and lowest scores, and the labels that tell its series apart ---- */

enum { RANKED_MAX = 20 };

/* Places of series in their set. Equal scores keep the set's order; NaN is in neither list. */
struct ranking {
    size_t numbers, nans; /* how many scores are a number, and how many are NaN */
    size_t n;             /* length of each list: `numbers`, or the most that were asked for */
    size_t highest[RANKED_MAX], lowest[RANKED_MAX];
};

/* One pass over the values. most <= RANKED_MAX; b may be NULL. */
void rank_scores(const struct batch *b, size_t most, struct ranking *ret);

/* The labels that tell a scorer's series apart, in the order in which people look: node, namespace, ... */
enum { SHOWN_LABELS = 7 };
extern const char *const shown_label_names[SHOWN_LABELS];

/* The values, which belong to the set; empty if not set. */
void shown_labels(const struct batch *b, size_t series, struct str ret[SHOWN_LABELS]);

/* ---- Scores in columns for a terminal, whose cursor and direction of writing no label can change ---- */

/* Appends s with U+FFFD for control and bidirectional characters, and spaces for line ends and tabs. */
void grid_clean(struct buf *o, struct str s);
/* Appends at most `chars` characters of s; the last is "…" if s was cut. */
void grid_cut(struct buf *o, struct str s, size_t chars);
/* Appends a header and n lines (RANKED_MAX at most). Labels are cut to 60 characters. */
void grid_scores(struct buf *o, const struct batch *b, const size_t *series, size_t n, size_t indent);

/* Private to summary*.c: reading one entry of the list. */
#ifndef DS_SCORE_SUMMARY_READ_H
#define DS_SCORE_SUMMARY_READ_H

#include "exporter/score/summary.h"

/* Fills *s, which is zeroed; problems go to p. 0 also with problems; -ENOMEM. The caller frees in any
 * case. */
MUST_USE int summary_read(struct summary *s, const struct node *map, enum problem_kind unknown,
                          struct problems *p);

/* A summary, or one of its sources, while it is read. Memory that runs out is remembered, so that each field is one line. */
struct summary_reader {
    const struct node *map;
    enum problem_kind unknown;
    struct problems *p;
    bool no_memory;
};

/* ---- summary_field.c: what is wrong with a field goes to r->p ---- */

/* A copy. */
char *field_keep(struct summary_reader *r, struct str text);
/* A string; NULL when it is absent, empty or none. */
char *field_text(struct summary_reader *r, const char *key);
/* Which of two words, in any case; the first, false, is the default. */
bool field_choice(struct summary_reader *r, const char *key, const char *first, const char *second);
/* Whole seconds from 1 to max. Absent and zero are the fallback. */
int64_t field_seconds(struct summary_reader *r, const char *key, int64_t max, int64_t fallback);
/* A reference to a Secret's key, in two fields. */
void field_secret(struct summary_reader *r, const char *name_key, const char *key_key,
                  struct secret_ref *ret);
/* A URL that must be there, with `path` put in where it has none. */
char *field_url(struct summary_reader *r, const char *key, const char *path);

/* ---- summary_source.c ---- */

/* Reads `sources`, or the summary's own source fields where there is no such list. */
void summary_read_sources(struct summary_reader *r, struct summary *s);
/* In summary.c. */
void summary_source_done(struct summary_source *s);

#endif

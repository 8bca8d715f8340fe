/* Private to summary*.c. */
#ifndef DS_SCORE_SUMMARY_READ_H
#define DS_SCORE_SUMMARY_READ_H

#include "exporter/base/arena.h"
#include "exporter/score/summary.h"

/* Fills *s, which is zeroed, and adds problems to p; `check_queries`: also those of queries that agents
 * without an engine for the source OpenTelemetry do not support, of kind `unknown`. 0 even if p has errors;
 * -ENOMEM. The caller frees *s in any case. */
MUST_USE int summary_read(struct summary *s, const struct node *map, enum problem_kind unknown,
                          bool check_queries, struct problems *p);

/* What the copies of a summary share. */
struct summary_memory {
    unsigned refs;
    struct arena arena;
};

/* Reads the fields of a summary or of one of its sources. */
struct summary_reader {
    struct arena *arena; /* of the strings */
    const struct node *map;
    enum problem_kind unknown;
    bool check_queries; /* of the source OpenTelemetry */
    struct problems *p;
    bool no_memory; /* sticky, so that fields need no error check each */
};

/* ---- summary_field.c: fields by type; problems go to r->p ---- */

char *field_keep(struct summary_reader *r, struct str text);
/* A string; NULL if it is absent, empty or invalid. */
char *field_text(struct summary_reader *r, const char *key);
/* The index of one of the NULL-terminated words, in any case; the first is the default. */
unsigned field_choice(struct summary_reader *r, const char *key, const char *const *words);
/* Whole seconds from 1 to max; the fallback if absent or zero. */
int64_t field_seconds(struct summary_reader *r, const char *key, int64_t max, int64_t fallback);
/* A reference to a Secret, and to the key of its bearer token, in two fields. */
void field_secret(struct summary_reader *r, const char *name_key, const char *key_key,
                  struct secret_ref *ret);
/* A required URL; `path` is added if it has none. */
char *field_url(struct summary_reader *r, const char *key, const char *path);

/* ---- summary_source.c ---- */

/* Reads `sources`, or the summary's own source fields without it. */
void summary_read_sources(struct summary_reader *r, struct summary *s);

#endif

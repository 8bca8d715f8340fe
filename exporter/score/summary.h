/* One scorer as users write it: an entry of the ConfigMap's `summaries`, or of the same list in a file.
 * Field names, defaults and spellings are the framework's (see README, "Configuration"). */
#ifndef DS_SCORE_SUMMARY_H
#define DS_SCORE_SUMMARY_H

#include "exporter/base/doc.h"

enum source_type { SOURCE_PROMETHEUS, SOURCE_NONE };
enum score_destination { DESTINATION_PLACEMENT_SCORE, DESTINATION_NONE };
/* How several results that render to one item name become one value. */
enum score_aggregation { AGGREGATE_LAST, AGGREGATE_AVG, AGGREGATE_MAX, AGGREGATE_MIN, AGGREGATE_SUM };
enum location { LOCATION_INTERNAL, LOCATION_EXTERNAL };

/* A key of a named Secret: a file <secrets dir>/<name>/<key> or an object of the cluster. Both NULL: none. */
struct secret_ref {
    char *name, *key;
};

enum { SUMMARY_MAX_SOURCES = 16 };

/* One place to ask for series. */
struct summary_source {
    char *endpoint;
    struct secret_ref auth;
    char *query; /* as written; several joined by ';' */
    int64_t range_s, step_s;
};

struct summary {
    char *name;                   /* of the DynamicScorer; for people */
    char *score_name;             /* identifies the scorer on this agent */
    enum source_type source_type; /* of all its sources */
    /* The first source, which most scorers leave it at. Endpoint and query are NULL without a source. */
    char *source_endpoint;
    struct secret_ref source_auth;
    char *source_query;
    int64_t source_range_s, source_step_s;
    struct summary_source *more_sources; /* asked after the first, in this order */
    size_t n_more_sources;
    char *scoring_endpoint;
    struct secret_ref scoring_auth;
    int64_t interval_ms; /* >= 1000 */
    int64_t timeout_ms;  /* of one round; 0: chosen by the agent */
    enum location location;
    enum score_destination destination;
    char *dimension_format;
    enum score_aggregation aggregation;
    bool has_range; /* scores are scaled from range_min..range_max to -100..100 */
    double range_min, range_max;
    bool has_fallback;     /* what a failing scorer counts as, once it has no scores */
    int fallback;          /* -100..100 */
    unsigned line, column; /* where it was written */
};

struct summaries {
    struct summary *list;
    size_t n;
};

/* Reads the list at `node`. Everything wrong goes to p with its position; `unknown` says how an unknown key
 * counts. An entry with an error is left out. Two entries with one score name: the first stays, the later is
 * left out with a warning. 0 also when problems were noted (look at p->errors); -ENOMEM. */
MUST_USE int summaries_parse(struct summaries *ret, const struct node *node, enum problem_kind unknown,
                             struct problems *p);
void summaries_done(struct summaries *s);
/* Reads one summary, a JSON object, as an agent does. 0 also when it is invalid: *ret_problems then has
 * errors, each with the path of its field ("sourceQuery", "sources[1].sourceStep"), and *ret is empty.
 * -ENOMEM. The caller frees *ret and *ret_problems in any case. */
MUST_USE int summary_parse(struct summary *ret, struct str text, struct problems *ret_problems);
/* Whether both would run the same rounds: all fields but the position. */
bool summary_same(const struct summary *a, const struct summary *b);
/* A deep copy. -ENOMEM. */
MUST_USE int summary_copy(struct summary *ret, const struct summary *from);
void summary_done(struct summary *s);
/* How many sources there are to ask: 0 for source type None, at most SUMMARY_MAX_SOURCES. */
size_t summary_sources(const struct summary *s);
/* The i-th of them; its strings belong to the summary. */
struct summary_source summary_source(const struct summary *s, size_t i);
/* The i-th query of a `;`-joined list, trimmed; empty when there are no more. A `;` inside a PromQL string
 * literal ('', "", ``) or comment is no separator; blank parts are skipped. Start with *at = 0. */
struct str summary_next_query(struct str joined, size_t *at);

#endif

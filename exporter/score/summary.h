/* The configuration of one scorer: an entry of the ConfigMap's `summaries`, or of the same list in a file.
 * README.md documents the fields and their defaults. */
#pragma once

#include "exporter/base/buf.h"
#include "exporter/base/doc.h"

enum source_type {
    SOURCE_UNSET, /* not in a summary, whose default is Prometheus */
    SOURCE_PROMETHEUS,
    SOURCE_NONE,          /* the scoring API gets no series */
    SOURCE_OPENTELEMETRY, /* what the agent itself receives, unless it has an endpoint */
    SOURCE_TYPES
};

/* What the fields of a source of this type are. */
struct source_kind {
    const char *path; /* added to an endpoint without one; NULL: the type has no endpoint */
    bool endpoint_is_optional;
    const char *query; /* what a query is, for errors; NULL: the type has no query */
};

/* Not for SOURCE_UNSET. */
const struct source_kind *source_kind(enum source_type type);
/* As users write them, other spellings of a type last; NULL-terminated. */
extern const char *const source_type_words[];
/* The first word of the type. NULL for SOURCE_UNSET. */
const char *source_type_word(enum source_type type);
/* In any case. SOURCE_UNSET for NULL and for an unknown word. */
enum source_type source_type_of(const char *word);

enum score_destination { DESTINATION_PLACEMENT_SCORE, DESTINATION_NONE };
/* How results with the same item name become one value. */
enum score_aggregation { AGGREGATE_LAST, AGGREGATE_AVG, AGGREGATE_MAX, AGGREGATE_MIN, AGGREGATE_SUM };
enum location { LOCATION_INTERNAL, LOCATION_EXTERNAL };

/* A Secret: the folder <secrets dir>/<name>, or a Secret of the cluster. name is NULL for none. key: of a
 * bearer token; NULL for credentials of other kinds alone. */
struct secret_ref {
    char *name, *key;
};

enum { SUMMARY_MAX_SOURCES = 16, SUMMARY_MAX_QUERIES = 64, SUMMARY_MAX_ITEMS = 8 };

/* One query endpoint and its queries. */
struct summary_source {
    enum source_type type;
    char *endpoint; /* NULL: none, if the type may lack one */
    struct secret_ref auth;
    char *query; /* 1 to SUMMARY_MAX_QUERIES, joined by ';'; ${cluster} in literals is the cluster's name */
    int64_t range_s, step_s;
};

/* How results become items of the AddOnPlacementScore. */
struct summary_item {
    char *format; /* of their names */
    enum score_aggregation aggregation;
};

/* Its strings and sources are immutable. */
struct summary {
    struct summary_memory *memory;  /* of these; NULL: they are not owned */
    char *name;                     /* of the DynamicScorer; only shown */
    char *score_name;               /* unique on this agent */
    struct summary_source *sources; /* fetched in this order; mostly one, and none of type None */
    size_t n_sources;
    char *scoring_endpoint; /* ${cluster} in its path and query is the cluster's name */
    struct secret_ref scoring_auth;
    int64_t interval_ms; /* >= 1000 */
    int64_t timeout_ms;  /* of one round; 0: none is set. See summary_round_ms() */
    enum location location;
    enum score_destination destination;
    struct summary_item items[SUMMARY_MAX_ITEMS]; /* of different formats; mostly one, never none */
    size_t n_items;
    bool has_range;              /* scale scores so that range_min becomes -100 and range_max 100 */
    double range_min, range_max; /* they differ; min is above max where less is better */
    int score_tolerance;   /* 0..50: items that differ by no more are not written again before they must be */
    bool has_fallback;     /* the placement score of a scorer that fails or has nothing to score */
    int fallback;          /* -100..100 */
    char *suspended_since; /* when the hub found its scoring API unhealthy: it is not called; NULL: it is */
    unsigned line, column; /* in the document */
};

struct summaries {
    struct summary *list;
    size_t n;
};

/* Reads the list at `node`. Adds problems to p; those of unknown keys are of kind `unknown`. A repeated score
 * name is left out, with a warning. After an error the list can only be freed. */
void summaries_parse(struct summaries *ret, const struct node *node, enum problem_kind unknown,
                     struct problems *p);
/* Adds those of `more` whose score names `s` does not have, and empties it. */
void summaries_append(struct summaries *s, struct summaries *more);
void summaries_done(struct summaries *s);
/* Reads one summary, a JSON object. If it is invalid, *ret_problems has errors, each with the path of its
 * field ("sources[1].sourceStep"), and *ret is empty. The caller frees both in any case. */
void summary_parse(struct summary *ret, struct str text, struct problems *ret_problems);
/* Compares all fields but the position. */
bool summary_same(const struct summary *a, const struct summary *b);
/* A copy that shares the strings, to be passed to summary_done() like the original. Loop thread. */
struct summary summary_copy(const struct summary *s);
void summary_done(struct summary *s);
/* How long one round may take: the timeout, or without one the interval, and then at least 10 s. An agent's
 * limits.roundTime may allow less. */
int64_t summary_round_ms(const struct summary *s);
/* The next query of a list joined by `;`, trimmed; empty at the end. A `;` inside a PromQL string literal
 * ('', "", ``) or comment does not separate; blank parts are skipped. Start with *at = 0. */
struct str summary_next_query(struct str joined, size_t *at);
/* Whether the query has ${cluster} in a string literal, where it is replaced; or outside, comments aside. */
bool summary_query_uses_cluster(struct str query, bool in_literal);
/* Appends the query with the cluster's name for ${cluster} in its string literals, escaped for their quotes.
 * -EINVAL: a name with a backtick in a literal between backticks, which knows no escapes. -EFBIG. */
MUST_USE int summary_put_query(struct buf *into, struct str query, struct str cluster);
/* What becomes of values as the whole numbers of an AddOnPlacementScore. Zeroed before the first. */
struct rounding {
    size_t not_zero, zeroed; /* values other than 0; of these, those that become 0 */
    double lowest, highest;  /* of all values and 0 */
};

enum { ROUNDING_BYTES = 240 };

void rounding_add(struct rounding *r, double v);
/* Whether most values are lost as 0, as there is no scoreRange; says so with a range that keeps them. */
bool rounding_loses(const struct rounding *r, const struct summary *s, char ret[ROUNDING_BYTES]);
/* For how many ms these scorers need samples received by OTLP; 0 if none reads any. */
int64_t summaries_otlp_age(const struct summaries *s);

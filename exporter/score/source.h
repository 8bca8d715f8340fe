/* Where series come from. A source is one file behind struct source_ops; the round never names one. */
#ifndef DS_SCORE_SOURCE_H
#define DS_SCORE_SOURCE_H

#include "exporter/base/clock.h"
#include "exporter/base/http.h"
#include "exporter/base/loop.h"
#include "exporter/base/worker.h"
#include "exporter/score/error.h"
#include "exporter/score/secrets.h"

struct source;
struct summary;
struct store;

/* A new type is an entry here, a row in source.c, its own file, and a word in the CRD. */
enum source_type {
    SOURCE_UNSET, /* not in a summary, whose default is Prometheus */
    SOURCE_PROMETHEUS,
    SOURCE_NONE,          /* the scoring API gets no series */
    SOURCE_OPENTELEMETRY, /* what the agent itself receives, unless it has an endpoint */
    SOURCE_TYPES
};

struct source_result {
    enum round_error error;
    size_t index; /* of the source in the summary that failed */
    char reason[ROUND_REASON_BYTES];
    int64_t retry_after_ms; /* from the server; -1: none */
    /* JSON texts; joined by commas they are the content of an array of series. Empty ones are skipped. They
     * live until source_free(). */
    const struct str *parts;
    size_t n_parts;
    size_t series;
    size_t warnings;
    char warning[512]; /* the first of them */
    double seconds;    /* spent waiting for responses */
    uint64_t received, sent;
};

struct source_env {
    struct loop *loop;
    struct http *http;
    struct secrets *secrets;
    uint64_t max_answer;      /* bytes */
    const char *cluster_name; /* for ${cluster} in queries */
    struct worker *worker;    /* reads large responses; NULL: the loop reads all */
    /* Of sources of type OpenTelemetry without an endpoint: the query API of an engine that receives their
     * metrics, or NULL; and what the agent itself receives, NULL if nothing. */
    const char *otlp_url;
    struct store *store;
};

/* One fetch. Everything that it points to must outlive it. */
struct source_request {
    const struct source_env *env;
    const struct summary *summary;
    size_t index;             /* of the source in the summary, for a single source */
    unix_ms now;              /* the end of the range */
    mono_ms deadline;         /* of the round */
    struct http_share *share; /* of the memory for responses, held by the round */
};

/* Runs on the loop, once, never from inside start(). */
typedef void (*source_done_fn)(void *arg, const struct source_result *result);

struct source_ops {
    const char *path; /* added to an endpoint without one; NULL: the type has no endpoint */
    bool endpoint_is_optional;
    const char *query; /* what a query is, for errors; NULL: the type has no query */
    /* Starts a fetch that ends by the deadline. -ENOMEM. */
    int (*start)(struct source **ret, const struct source_request *rq, source_done_fn done, void *arg);
    struct source *(*free)(struct source *s);
};

/* First member of every source. */
struct source {
    const struct source_ops *ops;
};

extern const struct source_ops source_prometheus, source_none, source_otlp, source_several;

/* As users write them, other spellings of a type last; NULL-terminated. */
extern const char *const source_type_words[];
/* The type of an entry of source_type_words. */
enum source_type source_type_at(unsigned word);
/* The first word of the type. NULL for SOURCE_UNSET. */
const char *source_type_word(enum source_type type);
/* In any case. SOURCE_UNSET for NULL and for an unknown word. */
enum source_type source_type_of(const char *word);

/* A single source; not for SOURCE_UNSET. */
const struct source_ops *source_of_type(enum source_type type);
/* All sources of the summary, as one. */
const struct source_ops *source_for(const struct summary *s);
/* Cancels the fetch if it is running, and frees its result. Takes NULL, returns NULL. */
struct source *source_free(struct source *s);

#endif

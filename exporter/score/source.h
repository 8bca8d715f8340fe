/* Where series come from. A source is one file behind this table; the round never names one. */
#ifndef DS_SCORE_SOURCE_H
#define DS_SCORE_SOURCE_H

#include "exporter/base/clock.h"
#include "exporter/base/http.h"
#include "exporter/base/loop.h"
#include "exporter/score/error.h"
#include "exporter/score/secrets.h"
#include "exporter/score/summary.h"

struct source;

struct source_result {
    enum round_error error;
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
    uint64_t max_answer; /* bytes */
};

/* One fetch. Everything that it points to must outlive it. */
struct source_request {
    const struct source_env *env;
    const struct summary *summary;
    size_t index;     /* of the source in the summary, for a single source */
    unix_ms now;      /* the end of the range */
    mono_ms deadline; /* of the round */
};

/* Runs on the loop, once, never from inside start(). */
typedef void (*source_done_fn)(void *arg, const struct source_result *result);

struct source_ops {
    const char *name;
    /* Starts a fetch that ends by the deadline. -ENOMEM. */
    int (*start)(struct source **ret, const struct source_request *rq, source_done_fn done, void *arg);
    struct source *(*free)(struct source *s);
};

/* First member of every source. */
struct source {
    const struct source_ops *ops;
};

extern const struct source_ops source_prometheus, source_none, source_several;

/* A single source. */
const struct source_ops *source_of_type(enum source_type type);
/* All sources of the summary, as one. */
const struct source_ops *source_for(const struct summary *s);
/* Cancels the fetch if it is running, and frees its result. Takes NULL, returns NULL. */
struct source *source_free(struct source *s);

#endif

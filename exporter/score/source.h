/* Where series come from. A source is one file behind this table; the round never names one. */
#ifndef DS_SCORE_SOURCE_H
#define DS_SCORE_SOURCE_H

#include "exporter/score/error.h"
#include "exporter/score/secrets.h"
#include "exporter/score/summary.h"

struct source;

/* What a source found, or why it found nothing. */
struct source_result {
    enum round_error error;
    char reason[1024];      /* for a person, when error is not ROUND_OK */
    int64_t retry_after_ms; /* the source's wish, -1 for none */
    /* JSON texts of series, without the brackets around them; joined by commas they are the array's content. Empty ones are
     * left out. They live until source_free(). */
    const struct str *parts;
    size_t n_parts;
    size_t series;
    size_t warnings;
    char warning[512]; /* the first of them */
    double seconds;    /* waited for answers */
    uint64_t received, sent;
};

struct source_env {
    struct loop *loop;
    struct http *http;
    struct secrets *secrets;
    uint64_t max_answer; /* bytes */
};

/* One fetch. All that is named must outlive it. */
struct source_request {
    const struct source_env *env;
    const struct summary *summary;
    size_t index;     /* which of the summary's sources, where one is asked */
    unix_ms now;      /* the end of the range */
    mono_ms deadline; /* of the round */
};

/* Runs on the loop, once, never from inside start(). */
typedef void (*source_done_fn)(void *arg, const struct source_result *result);

struct source_ops {
    const char *name;
    /* Starts one fetch that must end by the deadline. -ENOMEM. */
    int (*start)(struct source **ret, const struct source_request *rq, source_done_fn done, void *arg);
    struct source *(*free)(struct source *s);
};

/* First member of every source. */
struct source {
    const struct source_ops *ops;
};

extern const struct source_ops source_prometheus, source_none, source_several;

/* One source of the type. */
const struct source_ops *source_of_type(enum source_type type);
/* All that the summary names, as one. */
const struct source_ops *source_for(const struct summary *s);
/* Ends the fetch if it is under way, and frees what it found. Takes NULL, returns NULL. */
struct source *source_free(struct source *s);

#endif

/* Where series come from: a source is one file behind struct source_ops, and one fetch of it asks one query
 * after the other. A source knows no round: it is told all that it needs, and says what came of it. Loop
 * thread, but for source_ops.run().
 *
 * A new type is an enumerator in summary.h, a kind in source_type.c, a row in round.c, its own file, and a
 * word in the CRD. */
#pragma once

#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/loop.h"
#include "exporter/http/cause.h"
#include "exporter/http/http.h"
#include "exporter/score/round_error.h"
#include "exporter/score/summary.h"

#include <stdatomic.h>

struct secrets;
struct source;
struct source_job;
struct store;

/* What all sources of an agent use. */
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

struct source_ops {
    size_t size; /* of the type's struct, which begins with struct source and is zeroed */
    /* In the loop's next turn, to start the fetch, which ends by the deadline with one source_end(); and when
     * the timer, if the type sets it again, is due. */
    void (*on_timer)(struct source *s);
    /* Cancels the call if one is running, and frees the series. */
    void (*done)(struct source *s);
    /* Of a job that source_work() started. On the worker or the loop: reads the job's input, writes its
     * output, and uses nothing else. */
    void (*run)(struct source_job *j);
    /* On the loop, unless the source is gone: takes what it needs of the output. May free the source. */
    void (*ran)(struct source *s, struct source_job *j);
    /* Frees a job with all that it has. */
    void (*job_free)(struct source_job *j);
};

extern const struct source_ops source_prometheus, source_otlp;

/* Begins the struct of a type's jobs, which has their input and output. */
struct source_job {
    const struct source_ops *ops;
    struct job job;
    struct source *source;    /* NULL: it is gone, and nobody wants the output. The loop's own */
    atomic_bool is_abandoned; /* says the same to run(), which may then end early */
};

/* What came of a source, and what it cost. */
struct source_outcome {
    enum round_error error; /* ROUND_OK: the parts of the source are its series */
    enum http_cause cause;  /* of the call that failed; CAUSE_NONE: it was answered, or none was made */
    char reason[ROUND_REASON_BYTES];
    int64_t retry_after_ms; /* from the server; -1: none */
    double seconds;
    uint64_t received, sent; /* bytes */
    size_t series, warnings;
    char warning[512]; /* the first */
};

/* Runs on the loop, once, never from inside source_start(). It may free the source. */
typedef void (*source_ended_fn)(void *arg, struct source *s);

struct source_request {
    const struct source_env *env;
    const struct summary_source *from;
    mono_ms deadline;
    unix_ms at;               /* the end of the range */
    struct http_share *share; /* of the memory for responses */
    const char *trace;        /* that all its requests carry */
};

struct source {
    const struct source_ops *ops;
    struct source_request rq; /* what it points to outlives the source */
    source_ended_fn ended;
    void *arg;
    struct timer timer;
    struct source_job *job;   /* that runs; NULL: none */
    int64_t start_ms, end_ms; /* Unix time, the same for all queries */
    size_t query_at;
    /* Answers to n queries: JSON texts; joined by commas they are the content of an array of series. Empty
     * ones are skipped. They live as long as the source. */
    struct str parts[SUMMARY_MAX_QUERIES];
    size_t n;
    struct source_outcome outcome;
};

struct source *source_start(const struct source_ops *ops, const struct source_request *rq,
                            source_ended_fn ended, void *arg);
/* Cancels the fetch if it has not ended, and frees the series. Takes NULL, returns NULL. */
struct source *source_free(struct source *s);

/* ---- For the types ---- */

enum { SOURCE_QUERY_BYTES = 1 << 20 };

/* Hands a job, from malloc() and with its input, to run(), which reads `bytes`, as worker_do() does. One at a
 * time. */
void source_work(struct source *s, struct source_job *j, size_t bytes);
/* Appends the next query, with the cluster's name, to `text`, of a ceiling of SOURCE_QUERY_BYTES. False after
 * the last one, and on an error, which is in the outcome. */
bool source_next_query(struct source *s, struct buf *text);
/* Says that the source has ended, with the outcome as it is. It may be gone afterwards. */
void source_end(struct source *s);
/* Likewise, with an error. */
void source_fail(struct source *s, enum round_error e, const char *reason);

/* Where series come from. A source is one file behind struct source_ops; the round never names one. */
#ifndef DS_SCORE_SOURCE_H
#define DS_SCORE_SOURCE_H

#include "exporter/base/clock.h"
#include "exporter/base/http.h"
#include "exporter/base/loop.h"
#include "exporter/score/credentials.h"
#include "exporter/score/error.h"
#include "exporter/score/summary.h"

#include <stdatomic.h>

struct round;
struct round_result;
struct source;
struct store;

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

/* A new type is an enumerator and a kind in summary.c, a row in round.c, its own file, and a word in the CRD.
 */
struct source_ops {
    size_t size; /* of the type's struct, which begins with struct source and is zeroed */
    /* In the loop's next turn, and when the timer, if the type sets it again, is due. The first call starts
     * the fetch, which ends by the deadline, with source_end(), once. */
    void (*on_timer)(struct source *s);
    /* What source_work() starts: on the worker, where the round may be gone, and then on the loop. */
    void (*run)(struct source *s);
    void (*ran)(struct source *s);
    /* Cancels the call if one is running, and frees the results. */
    void (*done)(struct source *s);
};

extern const struct source_ops source_prometheus, source_otlp;

/* ---- The response of the Prometheus query API, or of a compatible one ---- */

struct prom_answer {
    struct str series; /* the series' JSON texts joined by commas: a slice of the body, or of `made` */
    struct buf made;   /* an instant vector or a scalar, rewritten as series of one sample */
    size_t n_series;
    size_t warnings;
    char warning[512]; /* the first */
};

/* Reads the body of a 2xx into *ret, to be freed with prom_answer_done(). On an error `why` is a sentence for
 * people; for ROUND_QUERY the query engine's own words. */
enum round_error prom_answer_parse(struct str body, struct prom_answer *ret, char why[ROUND_REASON_BYTES]);
void prom_answer_done(struct prom_answer *a);
/* "bad_data: invalid parameter ..." from the body of an error; false if it is not of that form. */
bool prom_answer_error(struct str body, char why[ROUND_REASON_BYTES]);

/* ---- For sources themselves ---- */

/* A fetch that asks one query after the other. */
struct source {
    const struct source_ops *ops;
    struct round *round; /* outlives the source, unless it is over, and so do its members below */
    const struct source_env *env;
    struct summary_source from; /* its strings are the summary's */
    mono_ms deadline;
    struct http_share *share; /* of the memory for responses */
    /* Requests carry its trace. The source sets the error and its reason, or adds to the counts. */
    struct round_result *result;
    struct timer timer;
    struct job job;
    bool is_working;          /* the worker has it */
    atomic_bool is_over;      /* cancelled meanwhile: the end of the job frees it */
    int64_t start_ms, end_ms; /* Unix time, the same for all queries */
    size_t query_at;
    /* Answers to n queries: JSON texts; joined by commas they are the content of an array of series. Empty
     * ones are skipped. They live as long as the source. */
    struct str parts[SUMMARY_MAX_QUERIES];
    size_t n;
};

enum { SOURCE_QUERY_BYTES = 1 << 20 };

/* Starts the type's run(), which reads `bytes`, as worker_do() does. */
void source_work(struct source *s, size_t bytes);
/* Appends the next query, with the cluster's name in it. False after the last one, and on an error, which is
 * in the result. `text` has a ceiling of SOURCE_QUERY_BYTES. */
bool source_next_query(struct source *s, struct buf *text);
/* Tells the round, which may free the source. */
void source_end(struct source *s);
/* Likewise, with an error. */
void source_fail(struct source *s, enum round_error e, const char *reason);

#endif

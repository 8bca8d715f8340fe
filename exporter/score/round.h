/* One scoring round: sources → scoring API → batch. It ends by its deadline. */
#pragma once

#include "exporter/base/clock.h"
#include "exporter/base/json.h"
#include "exporter/base/loop.h"
#include "exporter/http/http.h"
#include "exporter/metric/series.h"
#include "exporter/score/credentials.h"
#include "exporter/score/summary.h"

#include <stdatomic.h>

/* ---- The classes of a round's errors: one table gives the label value and when to retry ---- */

enum { ROUND_REASON_BYTES = 1024 };

enum round_error {
    ROUND_OK,
    ROUND_URL, /* the endpoint's URL is invalid */
    ROUND_DNS,
    ROUND_CONNECT,
    ROUND_TLS,
    ROUND_TIMEOUT,   /* the round's deadline passed */
    ROUND_TOO_LARGE, /* a response over limits.responseBytes */
    ROUND_BROKEN,    /* truncated, or not HTTP */
    ROUND_MEMORY,
    ROUND_AUTH, /* no token of OAuth 2.0 */
    ROUND_HTTP_4XX,
    ROUND_HTTP_5XX,
    ROUND_HTTP_OTHER, /* neither 2xx, 4xx nor 5xx; a redirect to another origin */
    ROUND_QUERY,      /* the query engine rejected the query */
    ROUND_JSON,       /* not JSON */
    ROUND_SHAPE,      /* JSON, but not of the API */
    ROUND_SECRET,     /* the scorer's token cannot be read */
    ROUND_SERIES,     /* more series than limits.series or limits.seriesPerScorer */
    ROUND_ERRORS
};

/* The state of a scorer, and the word for it in every report, page and API. */
enum scorer_state {
    SCORER_WAITING, /* no round has ended yet */
    SCORER_OK,
    SCORER_EMPTY,     /* the last round succeeded, but there were no series or no results */
    SCORER_FAILING,   /* the last round failed; older scores are still exposed, or there never were any */
    SCORER_STALE,     /* the last round failed, and older scores have expired */
    SCORER_SUSPENDED, /* the hub finds its scoring API unhealthy: it runs no rounds */
    SCORER_STATES
};

/* "waiting", "ok", "empty", "failing", "stale", "suspended". */
const char *scorer_state_word(enum scorer_state state);

/* "timeout", "http_5xx", ...: for labels. */
const char *round_error_word(enum round_error e);
/* Whether the cause may pass by itself, so that a retry makes sense. */
bool round_error_may_pass(enum round_error e);
/* The class of a transfer that failed, or of a status other than 2xx; ROUND_OK for a 2xx. */
enum round_error round_error_of_answer(const struct http_response *a);
/* Writes the reason and returns e. */
enum round_error round_error_because(char why[ROUND_REASON_BYTES], enum round_error e, const char *fmt, ...)
    PRINTF_LIKE(3, 4);
/* Why j refused the body: ROUND_JSON; ROUND_SHAPE and "<what>: ..." if it is JSON of another shape. */
enum round_error round_error_of_json(struct str body, const struct jr *j, const char *what,
                                     char why[ROUND_REASON_BYTES]);

/* ---- The scoring API's response, read straight into a batch ---- */

/* What is wrong with the first result that was dropped. */
enum answer_fault {
    ANSWER_FAULT_NONE,
    ANSWER_FAULT_RESULT, /* it is no object */
    ANSWER_FAULT_SCORE,  /* missing, or no number */
    ANSWER_FAULT_METRIC, /* no object, or a label that is no string */
};

struct answer_stats {
    size_t results; /* in the response */
    size_t invalid; /* dropped results, without a valid score or metric */
    size_t cut;     /* label values cut to the limit */
    size_t mended;  /* label values with ill-formed UTF-8 replaced */
    enum answer_fault first_fault;
    char first_invalid[200]; /* the same for a person: "results[3].score: expected a number, got null" */
};

/* Reads `{"results":[{"metric":{...},"score":1.5},...]}` into a batch, which it begins, and which the caller
 * abandons after an error. Unknown members are ignored; of duplicates the last counts, but "results" must be
 * unique. A result without a valid score is dropped and counted; an error if that leaves none. Scores are
 * numbers, strings that spell one, or the words NaN, Infinity and -Infinity as Python writes them. */
enum round_error answer_parse(struct str body, struct batch_builder *b, size_t label_max,
                              struct answer_stats *stats, char why[ROUND_REASON_BYTES]);

/* ---- Where series come from: a source is one file behind struct source_ops ---- */

struct round;
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

/* A new type is an enumerator and a kind in source.c, a row in round.c, its own file, a word in the CRD. */
struct source_ops {
    size_t size; /* of the type's struct, which begins with struct source and is zeroed */
    /* In the loop's next turn, to start the fetch, which ends by the deadline with one source_end(); and when
     * the timer, if the type sets it again, is due. */
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
    size_t n_dropped;  /* native histograms of an instant vector: they have no single value */
    size_t warnings;   /* those that the program adds included: a partial answer, and what was dropped */
    char warning[512]; /* the first */
};

/* Reads the body of a 2xx into *ret, whose `made` the caller frees in any case. On an error `why` is a
 * sentence for people; for ROUND_QUERY the query engine's own words. */
enum round_error prom_answer_parse(struct str body, struct prom_answer *ret, char why[ROUND_REASON_BYTES]);
/* "bad_data: invalid parameter ..." from the body of an error; false if it is not of that form. */
bool prom_answer_error(struct str body, char why[ROUND_REASON_BYTES]);

/* ---- For sources themselves ---- */

/* A fetch that asks one query after the other. */
struct source {
    const struct source_ops *ops;
    struct round *round; /* outlives the source, as the members below do, unless it is over */
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
/* Appends the next query, with the cluster's name, to `text`, of a ceiling of SOURCE_QUERY_BYTES. False after
 * the last one, and on an error, which is in the result. */
bool source_next_query(struct source *s, struct buf *text);
/* Tells the round, which may free the source. */
void source_end(struct source *s);
/* Likewise, with an error. */
void source_fail(struct source *s, enum round_error e, const char *reason);

/* ---- Rounds ---- */

enum round_stage { STAGE_SOURCE, STAGE_SCORING };

struct round_result {
    enum round_error error; /* ROUND_OK: batch is set */
    enum round_stage stage; /* where it failed */
    size_t source;          /* index of the source that failed, in STAGE_SOURCE */
    enum http_cause cause;  /* of the call that failed; CAUSE_NONE: it was answered, or none was made */
    char reason[ROUND_REASON_BYTES];
    char trace[HTTP_TRACE_BYTES]; /* the id that all requests of the round carried */
    int64_t retry_after_ms;       /* from the server; -1: none */
    struct batch *batch;          /* the callback may TAKE_PTR() it */
    mono_ms answered;             /* when its answer was there */
    struct answer_stats answer;
    size_t duplicates;
    bool fetched; /* all sources succeeded: source_* are set */
    size_t source_series, source_warnings;
    char source_warning[512];
    bool performed; /* a request was sent to the scoring API */
    double fetch_s, perform_s;
    uint64_t received[2], sent[2]; /* bytes, by stage */
};

/* Runs on the loop, once, never from inside round_start(). It may free the round. */
typedef void (*round_done_fn)(void *arg, struct round_result *result);

struct round_request {
    const struct source_env *env;
    const struct summary *summary;
    /* NULL while the worker has it; it is freed if the round is cancelled then. */
    struct batch_builder **builder;
    size_t label_max;
    int64_t timeout_ms;
};

/* Everything that rq points to must outlive the round. */
struct round *round_start(const struct round_request *rq, round_done_fn done, void *arg);
/* Cancels the round, without calling done(), and frees it. Takes NULL, returns NULL. */
struct round *round_free(struct round *r);

/* "source", "scoring". */
const char *round_stage_word(enum round_stage s);

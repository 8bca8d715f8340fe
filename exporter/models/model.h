/* A model: the part of a scoring API that differs from the others. An instance has its settings, and the
 * server does the rest. */
#pragma once

#include "exporter/base/buf.h"
#include "exporter/base/doc.h"
#include "exporter/base/json.h"
#include "exporter/base/loop.h"
#include "exporter/http/cause.h"
#include "exporter/metric/metrics.h"
#include "exporter/ui/site.h"

enum setting_kind {
    SETTING_TEXT,     /* const char *: not empty; owned by the settings */
    SETTING_TABLE,    /* the same; in the file it may be a list, which read_file() reads */
    SETTING_URL,      /* the same, with http:// or https:// and a host */
    SETTING_NUMBER,   /* double, from min to max */
    SETTING_COUNT,    /* int64_t, from min to max */
    SETTING_DURATION, /* int64_t: milliseconds; min and max in seconds */
    SETTING_SECONDS,  /* int64_t: whole seconds, from min to max */
};

/* Set by the flag --min-length, else the environment variable MIN_LENGTH, else minLength in the file. */
struct setting {
    const char *name;  /* "min-length" */
    const char *value; /* what the help calls it: "N" */
    const char *help;
    enum setting_kind kind;
    size_t field;          /* its offset in the model's state */
    const char *otherwise; /* the value without any of them; NULL: the field stays zeroed */
    const char *variable;  /* one more environment variable, which users have: "VLLM_ENDPOINT"; or NULL */
    double min, max;       /* both 0: no bounds */
};

/* One pair of GET /config and POST /scoring, and what /config says. Settings change copies of it. */
struct model_endpoint {
    const char *prefix; /* of both paths: "" or "/performance" */
    const char *name, *description;
    const char *source_type; /* "Prometheus"; "None": the source has no other members */
    const char *source_host, *source_path, *query;
    int64_t range, step; /* seconds */
    const char *score_name;
    int64_t interval; /* seconds */
    bool has_reset;   /* serves POST /reset, which does nothing */
};

/* The source of the documents' samples: what each pod uses of the CPUs. */
#define MODEL_CPU_SOURCE                                                               \
    .source_type = "Prometheus",                                                       \
    .source_host = "http://kube-prometheus-kube-prome-prometheus.monitoring.svc:9090", \
    .source_path = "/api/v1/query_range",                                              \
    .query = "sum by (node, namespace, pod) "                                          \
             "(rate(container_cpu_usage_seconds_total{container!=\"\", pod!=\"\"}[1m]))"

/* ---- The bodies of POST /scoring ----
 *
 * A request, {"data":[{"metric":{..},"values":[[seconds,"value"],..]},..]}, is read series by series in one
 * pass. A series may have `value`, one sample, instead of `values`, as instant queries give it. One without
 * either, such as a native histogram, is skipped and counted. The first
 * error of reading or writing is kept: later calls do nothing, so loops end. */

enum { REQUEST_MAX_SERIES = 1000000, WHY_BYTES = 256 };

struct input_series {
    struct str metric; /* the labels: a JSON object, as it came */
    /* Unix time in seconds, and the value, which may not be finite. Valid until the next series is read. */
    const double *times, *values;
    size_t n;
};

struct request {
    struct jr j;
    struct str body;
    bool in_data, has_data;
    size_t n_series; /* read so far, the current one and those without values included */
    size_t n_without_values;
    double *times, *values;
    size_t n, cap; /* samples of the current series; room */
    int error;
    char why[WHY_BYTES]; /* for -EINVAL and -E2BIG: "data[3].values[2]: expected ..." */
};

/* The body must outlive the reader. */
void request_begin(struct request *rq, struct str body);
/* False at the end, or after an error. */
bool request_next(struct request *rq, struct input_series *ret);
/* Frees the reader, after a check of the rest. -EINVAL, -E2BIG for more than REQUEST_MAX_SERIES. */
MUST_USE int request_end(struct request *rq);
/* Frees the reader; the rest of the body is not read. */
void request_abandon(struct request *rq);

/* The value of a label, raw between its quotes (jr_unescape()); false if there is none. */
bool series_label(struct str metric, const char *name, struct str *ret_raw);

struct result {
    struct str metric;  /* a JSON object, valid */
    struct str meta;    /* the label `meta`, which replaces one of the series; NULL: none */
    double score;       /* finite */
    struct str members; /* more members for people, which agents ignore: `,"error":0.5`; or empty */
};

/* The answer, {"results":[{"metric":{..},"score":1.5},..]} */
struct results {
    struct buf *out;
    struct buf_mark mark; /* where they begin in it */
    size_t n;             /* written so far */
};

/* Appends to `out`. The first error is kept. */
void results_begin(struct results *rs, struct buf *out);
void results_add(struct results *rs, const struct result *r);
/* -EFBIG past the ceiling of the buffer. */
MUST_USE int results_end(struct results *rs);
/* Appends a number as the documents print it: 10.0 rather than 10. */
void put_decimal(struct buf *o, double v);

/* ---- Models ---- */

/* Why a series has no result. */
enum left_out {
    LEFT_OUT_NO_VALUES,  /* a native histogram: nothing that a model could read */
    LEFT_OUT_SHORT,      /* too few values */
    LEFT_OUT_GAPPY,      /* enough values, but with long gaps between them */
    LEFT_OUT_ENDED,      /* the last value is much older than that of other series */
    LEFT_OUT_DISORDERED, /* timestamps do not increase */
    LEFT_OUT_NOT_FINITE, /* no value, or no result, that is a number */
    LEFT_OUT_NO_ANSWER,  /* the service that the model asks gave none, or not in time */
    LEFT_OUT_NO_NUMBER,  /* its answer has no number */
    LEFT_OUTS
};
const char *left_out_word(enum left_out why);

/* One call of /scoring. */
struct scoring {
    struct request request;
    struct results results;
    size_t endpoint;            /* index in the model's endpoints */
    struct str authorization;   /* of the caller; empty if absent */
    size_t left_out[LEFT_OUTS]; /* counted by the model */
    /* Sum and number of a model's errors in predicting what is known already: for a metric. */
    double backtest_error;
    size_t n_backtests;
    char why[WHY_BYTES]; /* set by the model with an error of its own */
};

struct model {
    const char *name, *help;
    const struct model_endpoint *endpoints;
    size_t n_endpoints;
    const struct setting *settings; /* ends with one without a name; NULL: none */
    size_t size;                    /* of the state */
    bool takes_any_body;            /* the request is not read: its body may be anything */
    /* Reads the lists of the configuration file; may be NULL. */
    void (*read_file)(void *state, const struct node *root, struct problems *p);
    /* Before any call; the metrics are for the loop's thread only. -EINVAL with *ret_why (from malloc). May
     * be NULL. close() is always called, possibly twice. */
    int (*open)(void *state, struct loop *loop, struct metrics *metrics, char **ret_why);
    void (*close)(void *state);
    /* Reads the request and writes the results, on any thread. Errors of both need not be returned. -EINVAL:
     * the caller's fault, -EIO: not, both with `why`. */
    int (*score)(const void *state, struct scoring *s);
    /* Instead of score(), for a model that must wait: on the loop. Calls scoring_done() once, within a
     * deadline of its own, and at the latest in close(). */
    void (*begin)(void *state, struct scoring *s);
};

/* On the loop; r as from score(). The call may be gone afterwards. */
void scoring_done(struct scoring *s, int r);

/* The table, ended by NULL. */
extern const struct model *const models[];
/* NULL if there is none of this name. */
const struct model *model_find(const char *name);

extern const struct model model_forecast, model_llm, model_mean, model_static;

/* Predicts the `horizon` (>= 1) values after the n (> LAGS) values of v, which are finite; v is overwritten.
 * Each value is a linear function of the LAGS before it, fitted by least squares with an intercept, as by
 * scikit-learn's LinearRegression; of several fits that of minimum norm. Values may become infinite. Returns
 * the root mean square error of predicting the last `validation` values from those before them; NAN if that
 * is 0 or leaves fewer than 2 * LAGS values. `out` has room for horizon and for validation values. */
enum { LAGS = 10 };
double autoregression_predict(double *v, size_t n, double *out, size_t horizon, size_t validation);
/* Finds the first number that stands alone: "1,234.5", "-2e3", "**85%**", "value: 0.83". Not dates, times,
 * ordinals of a list ("1. "), or digits within words. False if there is none, or it is not finite. */
bool llm_find_number(struct str text, double *ret);

/* What a language model's response, or its absence, means for the question and for the others. */
enum llm_verdict { LLM_ANSWER, LLM_RETRY, LLM_GIVE_UP, LLM_GIVE_UP_ALL };
enum llm_verdict llm_judge(long status, enum http_error error);

/* ---- An instance: a model with its settings ---- */

/* A setting of the model, or of what one of its endpoints says in /config. */
struct instance_setting {
    const struct setting *setting;
    char name[64];      /* of the flag: "min-length", "performance.score-name" */
    char variable[64];  /* "MIN_LENGTH", "PERFORMANCE_SCORE_NAME" */
    char key[64];       /* in the configuration file: "minLength", "performanceScoreName" */
    char expected[128]; /* "a whole number from 1 to 100" */
    void *field;
    const char *flag; /* the flag's value; NULL if it was not given */
};

struct instance {
    const struct model *model;
    struct model_endpoint *endpoints; /* with the settings */
    void *state;                      /* the model's */
    struct instance_setting *settings;
    size_t n_settings;
    struct arena arena; /* of the texts */
};

/* With the defaults. */
struct instance *instance_new(const struct model *m);
/* Closes the model. Takes NULL, returns NULL. */
struct instance *instance_free(struct instance *i);
DEFINE_CLEANUP(struct instance, instance_free)

/* Whether the text is a valid value. */
bool instance_accepts(const struct instance_setting *s, const char *text);
/* Applies the configuration file (NULL: none), the environment and the flags. Problems of the file are added
 * to `file`, others to `others`; -EINVAL if there are any. */
MUST_USE int instance_configure(struct instance *i, const char *path, struct problems *file,
                                struct problems *others);

/* Ends all calls that wait for an answer. */
void instance_close(struct instance *i);
/* Appends what GET /config of an endpoint answers. */
void instance_put_config(const struct instance *i, size_t endpoint, struct buf *into);

/* ---- Serving: the scoring API, /healthz, /metrics and the page ---- */

struct model_server;

struct model_server_options {
    struct loop *loop;
    struct instance *instance; /* configured, not open; must outlive the server */
    const char *const *listen;
    size_t n_listen;
    const char *config_file;        /* --web.config.file; NULL: none */
    const char *token_file, *token; /* the callers' bearer token; at most one */
};

/* Opens the instance and serves it. On failure *ret_why (from malloc) says what is wrong. */
MUST_USE int model_server_start(struct model_server **ret, const struct model_server_options *o,
                                char **ret_why);
/* NULL for NULL. */
struct site *model_server_site(const struct model_server *s);
/* Scores the calls that wait, for a few seconds, and closes the instance. Takes NULL, returns NULL. */
struct model_server *model_server_stop(struct model_server *s, int grace_ms);

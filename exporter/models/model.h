/* A model: the part of a scoring API that differs from the others. An instance (instance.h) has its
 * settings, and the server (server.h) does the rest. */
#pragma once

#include "exporter/base/doc.h"
#include "exporter/base/loop.h"
#include "exporter/metric/metrics.h"
#include "exporter/models/setting.h"
#include "exporter/models/wire.h"

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
    struct str authorization;   /* of the caller, for others; empty if there is none */
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

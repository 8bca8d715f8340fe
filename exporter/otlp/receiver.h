/* The OTLP/HTTP receiver: POST /v1/metrics in protobuf or JSON, plain or gzip, on an address and a thread of
 * its own. What it receives goes to the store. */
#pragma once

#include "exporter/otlp/series.h"

/* Resource attributes that become labels of each series. */
struct otlp_promotion {
    bool k8s;         /* k8s.node.name and so on, as node, namespace, pod and container */
    struct str names; /* separated by commas, under their translated names; must outlive the ingest */
};

/* "out_of_order", "overlap", ...: the word for metrics and messages. */
const char *otlp_result_word(unsigned result);

struct ingest;

/* The store and the clock must outlive it. */
struct ingest *ingest_new(struct store *store, const struct clock *clock,
                          const struct otlp_promotion *promotion);
struct ingest *ingest_free(struct ingest *in);
DEFINE_CLEANUP(struct ingest, ingest_free)

/* Points of one request. */
struct ingest_outcome {
    uint64_t results[OTLP_RESULTS]; /* points by result; STORE_OK: stored */
    char first[128];                /* the metric of the first point that was rejected, as it was sent */
    uint64_t cost;                  /* the size of an ordinary request that takes as long to store */
    bool is_cut;                    /* there are more points, but the cost has exceeded what it may be */
};

/* Stores the points of a request, whose bytes decode_check() has accepted. */
void ingest_request(struct ingest *in, struct str request, uint64_t max_cost, struct ingest_outcome *ret);

/* ---- The server ---- */

struct loop;
struct metrics;
struct otlp;
struct page;

struct otlp_options {
    struct loop *loop;
    struct metrics *metrics;
    struct page *page;       /* counts requests */
    struct store *store;     /* must outlive the receiver */
    const char *listen;      /* "host:port" or ":port" */
    const char *config_file; /* --web.config.file; NULL: none */
    struct otlp_promotion promotion;
};

/* Starts receiving. On failure *ret_why (from malloc) names the address or the file and the cause. */
MUST_USE int otlp_start(struct otlp **ret, const struct otlp_options *o, char **ret_why);
/* Takes NULL, returns NULL. */
struct otlp *otlp_stop(struct otlp *x, int grace_ms);

/* Since the start. */
struct otlp_status {
    const char *listen;
    uint64_t points[OTLP_RESULTS]; /* by result; STORE_OK: stored */
    uint64_t without_points;       /* requests without a point, in JSON with members that are not OTLP's */
    int64_t last_ms;               /* Unix time of the last request; 0: none */
    struct store_stats store;
};

/* Loop's thread. */
void otlp_status(struct otlp *x, struct otlp_status *ret);
/* Sets the metrics, before they are rendered. Loop's thread. */
void otlp_render(struct otlp *x);

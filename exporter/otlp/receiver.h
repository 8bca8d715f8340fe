/* The OTLP/HTTP receiver: POST /v1/metrics in protobuf or JSON, plain or gzip, on an address and a thread of
 * its own. What it receives goes to the store. */
#pragma once

#include "exporter/otlp/ingest.h"
#include "exporter/otlp/series.h"

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

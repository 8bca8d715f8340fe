/* Puts the points of a request into the store: finds their series, or makes new ones. Its owner's thread; the
 * store may be read by others meanwhile. */
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

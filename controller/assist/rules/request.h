/* What POST /optimize and /plan are asked: which workloads to place on which clusters, by which scores. */
#ifndef DS_ASSIST_RULES_REQUEST_H
#define DS_ASSIST_RULES_REQUEST_H

#include "controller/assist/rules/objection.h"
#include "controller/assist/rules/score_format.h"
#include "exporter/base/arena.h"

#include <jansson.h>
#include <stdbool.h>

enum {
    REQUEST_MAX_CLUSTERS = 10000,
    REQUEST_MAX_POLICIES = 64, /* of one cluster */
    REQUEST_MAX_WORKLOADS = 200000,
    REQUEST_MAX_SCORES = 8,
    REQUEST_MAX_SPREADS = 16,
    REQUEST_MAX_RULES = 10000, /* pins, and forbidden pairs */
    REQUEST_MIN_DEADLINE_MS = 10,
    REQUEST_MAX_DEADLINE_MS = 10 * 60 * 1000,
};

struct request_names {
    const char **names;
    size_t n;
};

struct request_cluster {
    const char *name;
    struct request_names policies;
    size_t first_policy; /* number of policies of the clusters before it */
};

struct request_workload {
    const char *name;
    uint32_t replicas;
};

struct request_score {
    const char *name;
    double weight;
    struct score_format format;
};

/* At most `max` replicas, of the workloads together or, without any, of each workload by itself, on the
 * clusters with the same value of the label. */
struct request_spread {
    const char *label;
    uint32_t max;
    struct request_names workloads;
};

/* A workload that goes to these clusters only, or never. */
struct request_rule {
    const char *workload;
    struct request_names clusters;
};

struct plan_request {
    json_t *json; /* has the strings */
    const char *namespace;
    struct request_cluster *clusters;
    size_t n_clusters, n_policies;
    struct request_workload *workloads;
    size_t n_workloads;
    struct request_score *scores;
    size_t n_scores;
    struct request_spread *spreads;
    size_t n_spreads;
    struct request_rule *pins, *forbids;
    size_t n_pins, n_forbids;
    double move_cost;    /* in points of the score */
    size_t max_moves;    /* SIZE_MAX: any number */
    int64_t deadline_ms; /* 0: the program's */
    bool dry_run;
    struct arena arena;
};

/* Reads a request that keeps the schema of POST /plan, which has checked types, bounds, and that nothing is
 * missing or unknown. -EINVAL with the objection, whose field is the first that is wrong; -ENOMEM. */
MUST_USE int request_read(struct plan_request **ret, json_t *json, struct objection *ob);
/* Takes NULL, returns NULL. */
struct plan_request *request_free(struct plan_request *r);
DEFINE_CLEANUP(struct plan_request, request_free)

#endif

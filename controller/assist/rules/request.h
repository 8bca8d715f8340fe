/* What POST /optimize and /plan are asked: which workloads to place on which clusters, by which scores. */
#ifndef DS_ASSIST_RULES_REQUEST_H
#define DS_ASSIST_RULES_REQUEST_H

#include "exporter/base/arena.h"
#include "exporter/base/def.h"
#include "exporter/base/str.h"

#include <jansson.h>
#include <stdbool.h>

/* Why a request cannot be served. */
struct objection {
    unsigned status;  /* of HTTP; 0: no objection */
    char field[192];  /* of the request: "clusters[1].name"; empty: none in particular */
    char detail[768]; /* a sentence for people, one line */
};

/* Sets the objection unless there is one. Returns -EINVAL. */
int objection_set(struct objection *ob, unsigned status, const char *field, const char *fmt, ...)
    PRINTF_LIKE(4, 5);

/* ---- The names of score items ----
 *
 * `scoreDimensionFormat`, such as "${app};${device}". Placeholders other than these two match any text; the
 * text around placeholders is literal. A placeholder matches at least one byte. */

/* An item of an AddOnPlacementScore. */
struct score_item {
    struct str name;
    int32_t value;
};

enum { SCORE_FORMAT_PARTS = 16 };

enum score_part_kind { SCORE_LITERAL, SCORE_APP, SCORE_DEVICE, SCORE_ANY };

struct score_part {
    enum score_part_kind kind;
    struct str text; /* of a literal */
};

/* Borrows the text that it was parsed from. */
struct score_format {
    struct score_part parts[SCORE_FORMAT_PARTS];
    size_t n;
};

/* Whom a match asks and tells. */
struct score_matcher {
    /* The index of a name; SIZE_MAX if it is of no interest. */
    size_t (*app)(void *arg, struct str name);
    size_t (*device)(void *arg, struct str name);
    /* An index is SIZE_MAX if the format does not have the placeholder: the item is for all of them. */
    void (*found)(void *arg, size_t app, size_t device);
    void *arg;
};

/* -EINVAL, and *ret_why, a literal: "has a ${ without its }". */
MUST_USE int score_format_parse(struct score_format *ret, struct str text, const char **ret_why);
/* Calls found() for each way in which the item's name matches; an item whose placeholders can be told apart
 * matches in at most one. Gives up on a name after some 10,000 comparisons. */
void score_format_match(const struct score_format *f, struct str name, const struct score_matcher *m);

/* ---- Requests ---- */

/* As the schema has them. */
enum {
    REQUEST_MAX_POLICIES = 64, /* of one cluster */
    REQUEST_MAX_SPREADS = 16,
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

/* Reads a request that keeps schema_plan_request, which has checked types, bounds, and that nothing is
 * missing or unknown. -EINVAL with the objection, whose field is the first that is wrong. */
MUST_USE int request_read(struct plan_request **ret, json_t *json, struct objection *ob);
/* Takes NULL, returns NULL. */
struct plan_request *request_free(struct plan_request *r);
DEFINE_CLEANUP(struct plan_request, request_free)

#endif

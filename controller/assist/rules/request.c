#include "controller/assist/rules/request.h"

#include "controller/assist/rules/request_internal.h"
#include "exporter/base/doc.h"

#include <errno.h>
#include <math.h>

enum { ARENA_BYTES = 16 << 10, MAX_MOVE_COST = 100000 };

static struct request_cluster request_cluster(struct reading *rd, const struct place *at)
{
    static const char *const known[] = {"name", "availablePolicies", NULL}, *const policy[] = {"name", NULL};
    struct request_cluster c = {0};
    struct place name, policies;

    reading_object(rd, at, known);
    name = reading_member(rd, at, "name", REQUIRED);
    policies = reading_member(rd, at, "availablePolicies", REQUIRED);
    c.name = reading_name(rd, &name);
    c.policies.n = reading_list(rd, &policies, 0, REQUEST_MAX_POLICIES);
    c.policies.names = reading_alloc(rd, c.policies.n, sizeof(char *));
    for (size_t i = 0; i < c.policies.n && !reading_failed(rd); i++) {
        struct place item = reading_item(&policies, i);

        reading_object(rd, &item, policy);
        name = reading_member(rd, &item, "name", REQUIRED);
        c.policies.names[i] = reading_name(rd, &name);
    }
    reading_unique(rd, &policies, ".name", c.policies.names, c.policies.n, sizeof(char *));
    return c;
}

static void request_clusters(struct reading *rd, struct plan_request *r, const struct place *at)
{
    struct place list = reading_member(rd, at, "clusters", REQUIRED);
    size_t n = reading_list(rd, &list, 1, REQUEST_MAX_CLUSTERS);

    r->clusters = reading_alloc(rd, n, sizeof(*r->clusters));
    for (; r->n_clusters < n && !reading_failed(rd); r->n_clusters++) {
        struct place item = reading_item(&list, r->n_clusters);

        r->clusters[r->n_clusters] = request_cluster(rd, &item);
        r->clusters[r->n_clusters].first_policy = r->n_policies;
        r->n_policies += r->clusters[r->n_clusters].policies.n;
    }
    reading_unique(rd, &list, ".name", r->clusters, r->n_clusters, sizeof(*r->clusters));
}

/* An integer; absent: 1. */
static uint32_t request_count(struct reading *rd, const struct place *map, const char *key)
{
    struct place at = reading_member(rd, map, key, !REQUIRED);
    double v = reading_number(rd, &at, 1, REQUEST_MAX_REPLICAS, 1);

    if (v != floor(v))
        (void)objection_set(rd->ob, 422, at.path, "%s: expected a whole number", at.path);
    return (uint32_t)v;
}

static void request_workloads(struct reading *rd, struct plan_request *r, const struct place *at)
{
    static const char *const known[] = {"name", "replicas", NULL};
    struct place list = reading_member(rd, at, "targetWorkloads", REQUIRED);
    size_t n = reading_list(rd, &list, 1, REQUEST_MAX_WORKLOADS);

    r->workloads = reading_alloc(rd, n, sizeof(*r->workloads));
    for (; r->n_workloads < n && !reading_failed(rd); r->n_workloads++) {
        struct place item = reading_item(&list, r->n_workloads), name;

        reading_object(rd, &item, known);
        name = reading_member(rd, &item, "name", REQUIRED);
        r->workloads[r->n_workloads].name = reading_name(rd, &name);
        r->workloads[r->n_workloads].replicas = request_count(rd, &item, "replicas");
    }
    reading_unique(rd, &list, ".name", r->workloads, r->n_workloads, sizeof(*r->workloads));
}

/* Reference documents have both spellings. */
static struct place request_score_name(struct reading *rd, const struct place *at)
{
    struct place name = reading_member(rd, at, "addonPlacementScore", !REQUIRED);
    struct place other = reading_member(rd, at, "addOnPlacementScore", !REQUIRED);

    if (name.value && other.value)
        (void)objection_set(rd->ob, 422, other.path, "%s: is there in both spellings", name.path);
    return name.value || !other.value ? reading_member(rd, at, "addonPlacementScore", REQUIRED) : other;
}

static struct request_score request_score(struct reading *rd, const struct place *at,
                                          const struct place *inherited)
{
    struct request_score s = {0};
    struct place name = request_score_name(rd, at), weight = reading_member(rd, at, "weight", !REQUIRED),
                 format = reading_member(rd, at, "scoreDimensionFormat", !inherited->value);
    const char *text, *why;

    if (!format.value)
        format = *inherited;
    s.name = reading_name(rd, &name);
    s.weight = reading_number(rd, &weight, -1000, 1000, 1);
    text = reading_string(rd, &format);
    if (text && score_format_parse(&s.format, str_of(text), &why) < 0)
        (void)objection_set(rd->ob, 422, format.path, "%s: %s", format.path, why);
    return s;
}

static void request_preference(struct reading *rd, struct plan_request *r, const struct place *top)
{
    static const char *const known[] = {"addonPlacementScore", "addOnPlacementScore", "scoreDimensionFormat",
                                        "scores", NULL},
                             *const item_known[] = {"addonPlacementScore", "addOnPlacementScore",
                                                    "scoreDimensionFormat", "weight", NULL};
    struct place at = reading_member(rd, top, "preference", REQUIRED), list, format;
    size_t n;

    reading_object(rd, &at, known);
    list = reading_member(rd, &at, "scores", !REQUIRED);
    format = reading_member(rd, &at, "scoreDimensionFormat", !REQUIRED);
    n = list.value ? reading_list(rd, &list, 1, REQUEST_MAX_SCORES) : 1;
    r->scores = reading_alloc(rd, n, sizeof(*r->scores));
    if (list.value && (json_object_get(at.value, "addonPlacementScore") ||
                       json_object_get(at.value, "addOnPlacementScore")))
        (void)objection_set(rd->ob, 422, list.path, "%s: stands in place of preference.addonPlacementScore",
                            list.path);
    for (; r->n_scores < n && !reading_failed(rd); r->n_scores++) {
        struct place item = list.value ? reading_item(&list, r->n_scores) : at;

        if (list.value)
            reading_object(rd, &item, item_known);
        r->scores[r->n_scores] = request_score(rd, &item, &format);
    }
}

static void request_spreads(struct reading *rd, struct plan_request *r, const struct place *at)
{
    static const char *const known[] = {"label", "max", "workloads", NULL};
    struct place list = reading_member(rd, at, "spread", !REQUIRED);
    size_t n = reading_list(rd, &list, 0, REQUEST_MAX_SPREADS);

    r->spreads = reading_alloc(rd, n, sizeof(*r->spreads));
    for (; r->n_spreads < n && !reading_failed(rd); r->n_spreads++) {
        struct place item = reading_item(&list, r->n_spreads), label, workloads;

        reading_object(rd, &item, known);
        label = reading_member(rd, &item, "label", REQUIRED);
        workloads = reading_member(rd, &item, "workloads", !REQUIRED);
        r->spreads[r->n_spreads] = (struct request_spread){
            .label = reading_string(rd, &label),
            .max = request_count(rd, &item, "max"),
            .workloads = reading_names(rd, &workloads, 1, REQUEST_MAX_WORKLOADS),
        };
    }
}

static struct request_rule *request_rules(struct reading *rd, const struct place *at, const char *key,
                                          size_t *ret_n)
{
    static const char *const known[] = {"workload", "clusters", NULL};
    struct place list = reading_member(rd, at, key, !REQUIRED);
    size_t n = reading_list(rd, &list, 0, REQUEST_MAX_RULES);
    struct request_rule *rules = reading_alloc(rd, n, sizeof(*rules));

    for (size_t i = 0; i < n && !reading_failed(rd); i++) {
        struct place item = reading_item(&list, i), workload, clusters;

        reading_object(rd, &item, known);
        workload = reading_member(rd, &item, "workload", REQUIRED);
        clusters = reading_member(rd, &item, "clusters", REQUIRED);
        rules[i].workload = reading_name(rd, &workload);
        rules[i].clusters = reading_names(rd, &clusters, 1, REQUEST_MAX_CLUSTERS);
        *ret_n = i + 1;
    }
    return rules;
}

static void request_options(struct reading *rd, struct plan_request *r, const struct place *top)
{
    static const char *const known[] = {"cost", "max", NULL};
    struct place moves = reading_member(rd, top, "moves", !REQUIRED),
                 deadline = reading_member(rd, top, "deadline", !REQUIRED),
                 dry_run = reading_member(rd, top, "dryRun", !REQUIRED), cost, max;
    const char *text = reading_string(rd, &deadline);
    double most;

    if (moves.value)
        reading_object(rd, &moves, known);
    cost = reading_member(rd, &moves, "cost", !REQUIRED);
    max = reading_member(rd, &moves, "max", !REQUIRED);
    r->move_cost = reading_number(rd, &cost, 0, MAX_MOVE_COST, 0);
    most = reading_number(rd, &max, 0, REQUEST_MAX_MOVES, -1);
    if (most != floor(most))
        (void)objection_set(rd->ob, 422, max.path, "%s: expected a whole number", max.path);
    r->max_moves = most < 0 ? SIZE_MAX : (size_t)most;
    r->dry_run = reading_bool(rd, &dry_run);
    if (text && (!duration_parse(str_of(text), &r->deadline_ms) || r->deadline_ms < REQUEST_MIN_DEADLINE_MS ||
                 r->deadline_ms > REQUEST_MAX_DEADLINE_MS))
        (void)objection_set(rd->ob, 422, deadline.path,
                            "%s: expected a duration of 10ms to 10m, such as \"5s\"", deadline.path);
}

static void request_all(struct reading *rd, struct plan_request *r)
{
    static const char *const known[] = {"namespace", "clusters", "targetWorkloads", "preference", "dryRun",
                                        "deadline",  "moves",    "spread",          "pin",        "forbid",
                                        NULL};
    struct place top = {.value = r->json}, namespace;

    reading_object(rd, &top, known);
    namespace = reading_member(rd, &top, "namespace", !REQUIRED);
    r->namespace = namespace.value ? reading_name(rd, &namespace) : "default";
    request_clusters(rd, r, &top);
    request_workloads(rd, r, &top);
    request_preference(rd, r, &top);
    request_options(rd, r, &top);
    request_spreads(rd, r, &top);
    r->pins = request_rules(rd, &top, "pin", &r->n_pins);
    r->forbids = request_rules(rd, &top, "forbid", &r->n_forbids);
}

int request_read(struct plan_request **ret, json_t *json, struct objection *ob)
{
    CLEANUP(cleanup_request_free) struct plan_request *r = calloc(1, sizeof(*r));
    struct reading rd = {.ob = ob};

    if (!r)
        return -ENOMEM;
    r->json = json_incref(json);
    r->arena.chunk_bytes = ARENA_BYTES;
    rd.arena = &r->arena;
    request_all(&rd, r);
    if (rd.no_memory)
        return -ENOMEM;
    if (ob->status)
        return -EINVAL;
    *ret = TAKE_PTR(r);
    return 0;
}

struct plan_request *request_free(struct plan_request *r)
{
    if (!r)
        return NULL;
    json_decref(r->json);
    arena_done(&r->arena);
    free(r);
    return NULL;
}

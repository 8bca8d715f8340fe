/* Reads what the schema of POST /plan has let through. Left to check are names, what excludes what, and texts
 * with a grammar of their own. */
#include "controller/assist/rules/request.h"

#include "controller/kube/json.h"
#include "exporter/base/doc.h"
#include "exporter/base/map.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

enum { ARENA_BYTES = 16 << 10, MAX_NAME_BYTES = 253, PATH_BYTES = 128 };

/* All below go on after an objection, with absent values. */
struct reading {
    struct plan_request *r;
    struct objection *ob;
    bool no_memory;
};

/* Where a value is: a member, or an item of a list. */
struct place {
    const struct place *up;
    const char *key; /* a literal; NULL: item i */
    size_t i;
};

static void place_print(const struct place *at, char path[PATH_BYTES])
{
    size_t n;

    *path = '\0';
    if (at->up)
        place_print(at->up, path);
    n = strlen(path);
    if (at->key)
        (void)snprintf(path + n, PATH_BYTES - n, "%s%s", n ? "." : "", at->key);
    else
        (void)snprintf(path + n, PATH_BYTES - n, "[%zu]", at->i);
}

static void PRINTF_LIKE(3, 4) reading_refuse(struct reading *rd, const struct place *at, const char *fmt, ...)
{
    char path[PATH_BYTES], text[1024];
    va_list args;

    place_print(at, path);
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    (void)objection_set(rd->ob, 422, path, "%s: %s", path, text);
}

static bool reading_failed(const struct reading *rd)
{
    return rd->no_memory || rd->ob->status;
}

/* n elements, zeroed. */
static void *reading_alloc(struct reading *rd, size_t n, size_t size)
{
    void *p = n ? arena_alloc(&rd->r->arena, n * size) : NULL;

    if (p)
        memset(p, 0, n * size);
    rd->no_memory = rd->no_memory || (n && !p);
    return p;
}

/* The list's length; 0 after a failure. */
static size_t reading_length(struct reading *rd, const json_t *list, size_t max, const struct place *at)
{
    size_t n = json_array_size(list);

    if (n > max)
        reading_refuse(rd, at, "has %zu items, expected at most %zu", n, max);
    return reading_failed(rd) ? 0 : n;
}

/* The name of an object of Kubernetes. */
static const char *reading_name(struct reading *rd, const json_t *v, const struct place *at)
{
    const char *s = kube_str(v, NULL);
    struct str name = str_of(s);

    if (name.n == 0 || name.n > MAX_NAME_BYTES || !str_has_only(name, "-.") || name.p[0] == '.')
        reading_refuse(rd, at, "is no name of a Kubernetes object");
    return s;
}

/* The names in a list, or the members `name` of its items; each is there once. */
static struct request_names reading_names(struct reading *rd, const json_t *list, bool of_objects, size_t max,
                                          const struct place *at)
{
    size_t n = reading_length(rd, list, max, at);
    struct request_names out = {.names = reading_alloc(rd, n, sizeof(char *))};
    struct map seen = {0};

    for (; out.n < n && !reading_failed(rd); out.n++) {
        const json_t *item = json_array_get(list, out.n);
        const struct place place = {at, NULL, out.n}, named = {&place, "name", 0};
        const struct place *here = of_objects ? &named : &place;
        const char *name = reading_name(rd, of_objects ? json_object_get(item, "name") : item, here);

        out.names[out.n] = name;
        if (name && map_get(&seen, name))
            reading_refuse(rd, here, "%s is there twice", name);
        else if (name && map_set(&seen, name, (void *)(uintptr_t)name) < 0)
            rd->no_memory = true;
    }
    map_done(&seen);
    return out;
}

/* An integer; absent: 1. */
static uint32_t reading_count(const json_t *map, const char *key)
{
    int64_t n = 1;

    (void)kube_int(map, &n, key, NULL);
    return (uint32_t)n;
}

/* ---- Members ---- */

static void request_clusters(struct reading *rd)
{
    const struct place at = {NULL, "clusters", 0};
    struct plan_request *r = rd->r;
    const json_t *list = kube_list(r->json, at.key, NULL);
    struct request_names names = reading_names(rd, list, true, REQUEST_MAX_CLUSTERS, &at);

    r->clusters = reading_alloc(rd, names.n, sizeof(*r->clusters));
    for (; r->n_clusters < names.n && !reading_failed(rd); r->n_clusters++) {
        const struct place item = {&at, NULL, r->n_clusters}, policies = {&item, "availablePolicies", 0};
        struct request_cluster *c = &r->clusters[r->n_clusters];

        c->name = names.names[r->n_clusters];
        c->policies = reading_names(rd, kube_list(json_array_get(list, item.i), policies.key, NULL), true,
                                    REQUEST_MAX_POLICIES, &policies);
        c->first_policy = r->n_policies;
        r->n_policies += c->policies.n;
    }
}

static void request_workloads(struct reading *rd)
{
    const struct place at = {NULL, "targetWorkloads", 0};
    struct plan_request *r = rd->r;
    const json_t *list = kube_list(r->json, at.key, NULL);
    struct request_names names = reading_names(rd, list, true, REQUEST_MAX_WORKLOADS, &at);

    r->workloads = reading_alloc(rd, names.n, sizeof(*r->workloads));
    for (; r->n_workloads < names.n && !reading_failed(rd); r->n_workloads++)
        r->workloads[r->n_workloads] = (struct request_workload){
            names.names[r->n_workloads], reading_count(json_array_get(list, r->n_workloads), "replicas")};
}

/* Reference documents have both spellings. */
static const char *request_score_name(struct reading *rd, const json_t *o, const struct place *at)
{
    const json_t *usual = json_object_get(o, "addonPlacementScore");
    const json_t *other = json_object_get(o, "addOnPlacementScore");
    const struct place first = {at, "addonPlacementScore", 0}, second = {at, "addOnPlacementScore", 0};

    if (usual && other)
        reading_refuse(rd, &second, "is there in both spellings");
    else if (!usual && !other)
        reading_refuse(rd, &first, "missing");
    else
        return reading_name(rd, usual ? usual : other, usual ? &first : &second);
    return NULL;
}

/* The sum's format counts for those that have none. */
static void request_score(struct reading *rd, struct request_score *s, const json_t *o,
                          const struct place *at, const json_t *sum)
{
    const struct place preference = {NULL, "preference", 0};
    const json_t *weight = json_object_get(o, "weight"), *own = json_object_get(o, "scoreDimensionFormat");
    const json_t *inherited = own ? NULL : json_object_get(sum, "scoreDimensionFormat");
    const struct place format = {inherited ? &preference : at, "scoreDimensionFormat", 0};
    const char *why = "missing";

    s->name = request_score_name(rd, o, at);
    s->weight = weight ? json_number_value(weight) : 1;
    if ((!own && !inherited) ||
        score_format_parse(&s->format, str_of(kube_str(own ? own : inherited, NULL)), &why) < 0)
        reading_refuse(rd, &format, "%s", why);
}

static void request_preference(struct reading *rd)
{
    const struct place at = {NULL, "preference", 0}, scores = {&at, "scores", 0};
    struct plan_request *r = rd->r;
    const json_t *o = kube_map(r->json, at.key, NULL), *list = kube_list(o, scores.key, NULL);
    size_t n = list ? reading_length(rd, list, REQUEST_MAX_SCORES, &scores) : 1;

    if (list && (json_object_get(o, "addonPlacementScore") || json_object_get(o, "addOnPlacementScore")))
        reading_refuse(rd, &scores, "stands in place of preference.addonPlacementScore");
    r->scores = reading_alloc(rd, n, sizeof(*r->scores));
    for (; r->n_scores < n && !reading_failed(rd); r->n_scores++) {
        const struct place item = {&scores, NULL, r->n_scores};

        request_score(rd, &r->scores[r->n_scores], list ? json_array_get(list, item.i) : o,
                      list ? &item : &at, list ? o : NULL);
    }
}

static void request_spreads(struct reading *rd)
{
    const struct place at = {NULL, "spread", 0};
    struct plan_request *r = rd->r;
    const json_t *list = kube_list(r->json, at.key, NULL);
    size_t n = reading_length(rd, list, REQUEST_MAX_SPREADS, &at);

    r->spreads = reading_alloc(rd, n, sizeof(*r->spreads));
    for (; r->n_spreads < n && !reading_failed(rd); r->n_spreads++) {
        const struct place item = {&at, NULL, r->n_spreads}, workloads = {&item, "workloads", 0};
        const json_t *o = json_array_get(list, item.i);

        r->spreads[r->n_spreads] =
            (struct request_spread){.label = cstr(kube_str(o, "label", NULL)),
                                    .max = reading_count(o, "max"),
                                    .workloads = reading_names(rd, kube_list(o, workloads.key, NULL), false,
                                                               REQUEST_MAX_WORKLOADS, &workloads)};
    }
}

static struct request_rule *request_rules(struct reading *rd, const char *key, size_t *ret_n)
{
    const struct place at = {NULL, key, 0};
    const json_t *list = kube_list(rd->r->json, key, NULL);
    size_t n = reading_length(rd, list, REQUEST_MAX_RULES, &at);
    struct request_rule *rules = reading_alloc(rd, n, sizeof(*rules));

    for (; *ret_n < n && !reading_failed(rd); ++*ret_n) {
        const struct place item = {&at, NULL, *ret_n}, workload = {&item, "workload", 0},
                           clusters = {&item, "clusters", 0};
        const json_t *o = json_array_get(list, item.i);

        rules[*ret_n] = (struct request_rule){
            reading_name(rd, json_object_get(o, workload.key), &workload),
            reading_names(rd, kube_list(o, clusters.key, NULL), false, REQUEST_MAX_CLUSTERS, &clusters)};
    }
    return rules;
}

static void request_options(struct reading *rd)
{
    const struct place namespace = {NULL, "namespace", 0}, deadline = {NULL, "deadline", 0};
    struct plan_request *r = rd->r;
    const json_t *name = json_object_get(r->json, namespace.key), *moves = kube_map(r->json, "moves", NULL);
    const char *text = kube_str(r->json, deadline.key, NULL);
    int64_t max;

    r->namespace = name ? reading_name(rd, name, &namespace) : "default";
    r->move_cost = json_number_value(json_object_get(moves, "cost"));
    r->max_moves = kube_int(moves, &max, "max", NULL) ? (size_t)max : SIZE_MAX;
    r->dry_run = json_is_true(json_object_get(r->json, "dryRun"));
    if (text && (!duration_parse(str_of(text), &r->deadline_ms) || r->deadline_ms < REQUEST_MIN_DEADLINE_MS ||
                 r->deadline_ms > REQUEST_MAX_DEADLINE_MS))
        reading_refuse(rd, &deadline, "expected a duration of 10ms to 10m, such as \"5s\"");
}

int request_read(struct plan_request **ret, json_t *json, struct objection *ob)
{
    CLEANUP(cleanup_request_free) struct plan_request *r = calloc(1, sizeof(*r));
    struct reading rd = {.r = r, .ob = ob};

    if (!r)
        return -ENOMEM;
    r->json = json_incref(json);
    r->arena.chunk_bytes = ARENA_BYTES;
    request_options(&rd);
    request_clusters(&rd);
    request_workloads(&rd);
    request_preference(&rd);
    request_spreads(&rd);
    r->pins = request_rules(&rd, "pin", &r->n_pins);
    r->forbids = request_rules(&rd, "forbid", &r->n_forbids);
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

/* Reads what the schema of POST /plan has let through. Left to check are names, what excludes what, and texts
 * with a grammar of their own. */
#include "controller/assist/rules/request.h"

#include "controller/assist/api/operation.h"
#include "controller/kube/json.h"
#include "exporter/base/doc.h"
#include "exporter/base/map.h"
#include "exporter/base/text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

/* ---- Objections ---- */

int objection_set(struct objection *ob, unsigned status, const char *field, const char *fmt, ...)
{
    char text[2048];
    va_list args;

    if (ob->status)
        return -EINVAL;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    ob->status = status;
    text_line(ob->field, sizeof(ob->field), str_of(field));
    text_line(ob->detail, sizeof(ob->detail), str_of(text));
    return -EINVAL;
}

/* ---- The names of score items ---- */

enum { MATCH_STEPS = 10000 };

static int format_add(struct score_format *f, enum score_part_kind kind, struct str text,
                      const char **ret_why)
{
    if (kind == SCORE_LITERAL && text.n == 0)
        return 0;
    for (size_t i = 0; i < f->n && (kind == SCORE_APP || kind == SCORE_DEVICE); i++)
        if (f->parts[i].kind == kind) {
            *ret_why = "has a placeholder twice";
            return -EINVAL;
        }
    if (f->n == SCORE_FORMAT_PARTS) {
        *ret_why = "has more than 16 parts";
        return -EINVAL;
    }
    f->parts[f->n++] = (struct score_part){kind, text};
    return 0;
}

static enum score_part_kind placeholder_kind(struct str name)
{
    if (str_eq(name, STR("app")))
        return SCORE_APP;
    return str_eq(name, STR("device")) ? SCORE_DEVICE : SCORE_ANY;
}

int score_format_parse(struct score_format *ret, struct str text, const char **ret_why)
{
    struct score_format f = {0};
    const char *p = text.p, *end = text.p + text.n, *literal = p;

    while (p < end) {
        const char *close;

        if (end - p < 2 || p[0] != '$' || p[1] != '{') {
            p++;
            continue;
        }
        close = memchr(p, '}', (size_t)(end - p));
        if (!close || close == p + 2) {
            *ret_why = close ? "has a placeholder without a name" : "has a ${ without its }";
            return -EINVAL;
        }
        if (format_add(&f, SCORE_LITERAL, (struct str){literal, (size_t)(p - literal)}, ret_why) < 0 ||
            format_add(&f, placeholder_kind((struct str){p + 2, (size_t)(close - p - 2)}), (struct str){0},
                       ret_why) < 0)
            return -EINVAL;
        p = literal = close + 1;
    }
    if (format_add(&f, SCORE_LITERAL, (struct str){literal, (size_t)(end - literal)}, ret_why) < 0)
        return -EINVAL;
    if (f.n == 0) {
        *ret_why = "is empty";
        return -EINVAL;
    }
    *ret = f;
    return 0;
}

struct matching {
    const struct score_format *format;
    const struct score_matcher *m;
    unsigned steps;
    size_t app, device; /* so far */
};

static void match_from(struct matching *at, size_t part, struct str rest);

/* The placeholder takes the first n bytes. */
static void match_capture(struct matching *at, size_t part, struct str rest, size_t n)
{
    struct str taken = {rest.p, n}, left = {rest.p + n, rest.n - n};
    struct matching next = *at;
    enum score_part_kind kind = at->format->parts[part].kind;

    if (kind == SCORE_APP)
        next.app = at->m->app(at->m->arg, taken);
    else if (kind == SCORE_DEVICE)
        next.device = at->m->device(at->m->arg, taken);
    if ((kind == SCORE_APP && next.app == SIZE_MAX) || (kind == SCORE_DEVICE && next.device == SIZE_MAX))
        return;
    match_from(&next, part + 1, left);
    at->steps = next.steps;
}

/* Recurses once for each part. */
static void match_from(struct matching *at, size_t part, struct str rest)
{
    const struct score_part *p = &at->format->parts[part], *next = p + 1;
    bool is_last = part + 1 >= at->format->n;

    if (part == at->format->n) {
        if (rest.n == 0)
            at->m->found(at->m->arg, at->app, at->device);
        return;
    }
    if (p->kind == SCORE_LITERAL) {
        if (str_starts(rest, p->text))
            match_from(at, part + 1, (struct str){rest.p + p->text.n, rest.n - p->text.n});
        return;
    }
    for (size_t n = is_last ? rest.n : 1; n > 0 && n <= rest.n && at->steps < MATCH_STEPS; n++) {
        at->steps++;
        if (is_last || next->kind != SCORE_LITERAL ||
            str_starts((struct str){rest.p + n, rest.n - n}, next->text))
            match_capture(at, part, rest, n);
    }
}

void score_format_match(const struct score_format *f, struct str name, const struct score_matcher *m)
{
    match_from(&(struct matching){.format = f, .m = m, .app = SIZE_MAX, .device = SIZE_MAX}, 0, name);
}

/* ---- The schema ---- */

/* clang-format off */
#define PLAN_SCORE_NAME \
    SCHEMA("addonPlacementScore": {"type": "string", "minLength": 1, "maxLength": 253, "description":) \
    SCHEMA_TEXT("Name of an AddOnPlacementScore, which each cluster of the request has in its namespace on " \
                "the hub.") SCHEMA(},)
#define PLAN_SCORE_FORMAT \
    SCHEMA("scoreDimensionFormat": {"type": "string", "minLength": 1, "description":) \
    SCHEMA_TEXT("Names of the score's items, such as ${app};${device}. ${app} is the workload's label app, " \
                "${device} the policy's label resource-supply-device; other placeholders match any text.") \
    SCHEMA(})
#define PLAN_RULES \
    SCHEMA({"type": "array", "items": {"type": "object", "additionalProperties": false, "required": \
        ["workload", "clusters"], "properties": {"workload": {"type": "string", "minLength": 1, \
        "maxLength": 253, "description": "One of targetWorkloads."}, "clusters": {"type": "array", \
        "items": {"type": "string"}, "description": "Some of clusters.", "minItems": 1}}},)

const char plan_request_schema[] =
    SCHEMA({"type": "object", "additionalProperties": false, "required": ["clusters", "targetWorkloads",
        "preference"], "properties": {
        "namespace": {"type": "string", "minLength": 1, "maxLength": 253, "description":
            "Of Policies, workloads and the objects that are made.", "default": "default"},
        "clusters": {"type": "array", "items": {"type": "object", "additionalProperties": false,
            "required": ["name", "availablePolicies"], "properties": {"name": {"type": "string",
            "minLength": 1, "maxLength": 253, "description": "A ManagedCluster."}, "availablePolicies":
            {"type": "array", "items": {"type": "object", "additionalProperties": false, "required":
            ["name"], "properties": {"name": {"type": "string", "minLength": 1, "maxLength": 253,
            "description": "A Policy with labels resource-supply-kind, -amount, -device."}}},
            "description": "At most one of each kind is bound to the cluster.", "maxItems": 64}}},
            "description": "Clusters, and the policies each of them may get.", "minItems": 1, "maxItems":
            10000},
        "targetWorkloads": {"type": "array", "items": {"type": "object", "additionalProperties": false,
            "required": ["name"], "properties": {"name": {"type": "string", "minLength": 1, "maxLength":
            253, "description":
            "A ManifestWorkReplicaSet with labels app, resource-request-kind, -amount."}, "replicas":
            {"type": "integer", "minimum": 1, "maximum": 10000, "default": 1, "description":
            "On how many clusters it is to run."}}}, "description": "What is to be placed.", "minItems":
            1, "maxItems": 200000},
        "preference": {"type": "object", "additionalProperties": false, "description":
            "What is to be maximised: one score, or a weighted sum of several.", "properties":
            {) PLAN_SCORE_NAME SCHEMA("addOnPlacementScore": {"type": "string", "description":
            "The same in another spelling.", "deprecated": true},) PLAN_SCORE_FORMAT SCHEMA(,
            "scores": {"type": "array", "items": {"type": "object", "additionalProperties": false,
            "properties": {) PLAN_SCORE_NAME SCHEMA("addOnPlacementScore": {"type": "string",
            "deprecated": true},) PLAN_SCORE_FORMAT SCHEMA(, "weight": {"type": "number", "minimum":
            -1000, "maximum": 1000, "default": 1}}}, "description":
            "In place of addonPlacementScore: the sum of weight times value.", "minItems": 1,
            "maxItems": 8}}},
        "dryRun": {"type": "boolean", "default": false, "description": "Answer only, write nothing."},
        "deadline": {"type": "string", "description":
            "For the solver, 10ms to 10m: 5s. The best answer so far counts.", "examples": ["5s"]},
        "moves": {"type": "object", "additionalProperties": false, "description":
            "A move is a replica that will not be where it runs now.", "properties": {"cost": {"type":
            "number", "minimum": 0, "maximum": 100000, "default": 0, "description":
            "Points of the score that a move must gain to be worth it."}, "max": {"type": "integer",
            "minimum": 0, "maximum": 1000000, "description": "At most so many moves."}}},
        "spread": {"type": "array", "items": {"type": "object", "additionalProperties": false, "required":
            ["label"], "properties": {"label": {"type": "string", "minLength": 1, "description":
            "A label of ManagedClusters, such as zone."}, "max": {"type": "integer", "minimum": 1,
            "maximum": 10000, "default": 1}, "workloads": {"type": "array", "items": {"type": "string"},
            "description": "These together; without it, each workload by itself.", "minItems": 1}}},
            "description": "At most max replicas on the clusters with the same value of a label.",
            "maxItems": 16},
        "pin":) PLAN_RULES SCHEMA(
            "description": "Workloads that may only go to these clusters.", "maxItems": 10000},
        "forbid":) PLAN_RULES SCHEMA(
            "description": "Workloads that may not go to these clusters.", "maxItems": 10000}},
        "examples": [{"namespace": "default", "clusters": [{"name": "worker01", "availablePolicies":
            [{"name": "policy-enable-mig-3g-worker01"}]}], "targetWorkloads": [{"name": "mwrs-app01"}],
            "preference": {"addonPlacementScore": "example-performance-score", "scoreDimensionFormat":
            "${app};${device}"}, "dryRun": true}]});
/* clang-format on */

/* ---- Reading ---- */

enum {
    ARENA_BYTES = 16 << 10,
    MAX_NAME_BYTES = 253,
    PATH_BYTES = 128,
    MIN_DEADLINE_MS = 10,
    MAX_DEADLINE_MS = 10 * 60 * 1000,
};

/* All below go on after an objection, with absent values. */
struct reading {
    struct plan_request *r;
    struct objection *ob;
};

/* Where a value is: a member, or an item of a list. */
struct field_path {
    const struct field_path *up;
    const char *key; /* a literal; NULL: item i */
    size_t i;
};

static void field_path_print(const struct field_path *at, char path[PATH_BYTES])
{
    size_t n;

    *path = '\0';
    if (at->up)
        field_path_print(at->up, path);
    n = strlen(path);
    if (at->key)
        (void)snprintf(path + n, PATH_BYTES - n, "%s%s", n ? "." : "", at->key);
    else
        (void)snprintf(path + n, PATH_BYTES - n, "[%zu]", at->i);
}

static void PRINTF_LIKE(3, 4)
    reading_refuse(struct reading *rd, const struct field_path *at, const char *fmt, ...)
{
    char path[PATH_BYTES], text[1024];
    va_list args;

    field_path_print(at, path);
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    (void)objection_set(rd->ob, 422, path, "%s: %s", path, text);
}

static bool reading_failed(const struct reading *rd)
{
    return rd->ob->status;
}

/* n elements, zeroed. */
static void *reading_alloc(struct reading *rd, size_t n, size_t size)
{
    return n ? memset(arena_alloc(&rd->r->arena, n * size), 0, n * size) : NULL;
}

/* The name of an object of Kubernetes. */
static const char *reading_name(struct reading *rd, const json_t *v, const struct field_path *at)
{
    const char *s = kube_str(v, NULL);
    struct str name = str_of(s);

    if (name.n == 0 || name.n > MAX_NAME_BYTES || !str_has_only(name, "-.") || name.p[0] == '.')
        reading_refuse(rd, at, "is not a valid name of a Kubernetes object");
    return s;
}

/* The names in a list, or the members `name` of its items; each is there once. */
static struct request_names reading_names(struct reading *rd, const json_t *list, bool of_objects,
                                          const struct field_path *at)
{
    size_t n = json_array_size(list);
    struct request_names out = {.names = reading_alloc(rd, n, sizeof(char *))};
    struct map seen = {0};

    for (; out.n < n && !reading_failed(rd); out.n++) {
        const json_t *item = json_array_get(list, out.n);
        const struct field_path place = {at, NULL, out.n}, named = {&place, "name", 0};
        const struct field_path *here = of_objects ? &named : &place;
        const char *name = reading_name(rd, of_objects ? json_object_get(item, "name") : item, here);

        out.names[out.n] = name;
        if (name && map_get(&seen, name))
            reading_refuse(rd, here, "%s appears twice", name);
        else if (name)
            map_set(&seen, name, (void *)(uintptr_t)name);
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
    const struct field_path at = {NULL, "clusters", 0};
    struct plan_request *r = rd->r;
    const json_t *list = kube_list(r->json, at.key, NULL);
    struct request_names names = reading_names(rd, list, true, &at);

    r->clusters = reading_alloc(rd, names.n, sizeof(*r->clusters));
    for (; r->n_clusters < names.n && !reading_failed(rd); r->n_clusters++) {
        const struct field_path item = {&at, NULL, r->n_clusters}, policies = {&item, "availablePolicies", 0};
        struct request_cluster *c = &r->clusters[r->n_clusters];

        c->name = names.names[r->n_clusters];
        c->policies =
            reading_names(rd, kube_list(json_array_get(list, item.i), policies.key, NULL), true, &policies);
        c->first_policy = r->n_policies;
        r->n_policies += c->policies.n;
    }
}

static void request_workloads(struct reading *rd)
{
    const struct field_path at = {NULL, "targetWorkloads", 0};
    struct plan_request *r = rd->r;
    const json_t *list = kube_list(r->json, at.key, NULL);
    struct request_names names = reading_names(rd, list, true, &at);

    r->workloads = reading_alloc(rd, names.n, sizeof(*r->workloads));
    for (; r->n_workloads < names.n && !reading_failed(rd); r->n_workloads++)
        r->workloads[r->n_workloads] = (struct request_workload){
            names.names[r->n_workloads], reading_count(json_array_get(list, r->n_workloads), "replicas")};
}

/* Reference documents have both spellings. */
static const char *request_score_name(struct reading *rd, const json_t *o, const struct field_path *at)
{
    const json_t *usual = json_object_get(o, "addonPlacementScore");
    const json_t *other = json_object_get(o, "addOnPlacementScore");
    const struct field_path first = {at, "addonPlacementScore", 0}, second = {at, "addOnPlacementScore", 0};

    if (usual && other)
        reading_refuse(rd, &second, "is given in both spellings");
    else if (!usual && !other)
        reading_refuse(rd, &first, "missing");
    else
        return reading_name(rd, usual ? usual : other, usual ? &first : &second);
    return NULL;
}

/* The sum's format counts for those that have none. */
static void request_score(struct reading *rd, struct request_score *s, const json_t *o,
                          const struct field_path *at, const json_t *sum)
{
    const struct field_path preference = {NULL, "preference", 0};
    const json_t *weight = json_object_get(o, "weight"), *own = json_object_get(o, "scoreDimensionFormat");
    const json_t *inherited = own ? NULL : json_object_get(sum, "scoreDimensionFormat");
    const struct field_path format = {inherited ? &preference : at, "scoreDimensionFormat", 0};
    const char *why = "missing";

    s->name = request_score_name(rd, o, at);
    s->weight = weight ? json_number_value(weight) : 1;
    if ((!own && !inherited) ||
        score_format_parse(&s->format, str_of(kube_str(own ? own : inherited, NULL)), &why) < 0)
        reading_refuse(rd, &format, "%s", why);
}

static void request_preference(struct reading *rd)
{
    const struct field_path at = {NULL, "preference", 0}, scores = {&at, "scores", 0};
    struct plan_request *r = rd->r;
    const json_t *o = kube_map(r->json, at.key, NULL), *list = kube_list(o, scores.key, NULL);
    size_t n = list ? json_array_size(list) : 1;

    if (list && (json_object_get(o, "addonPlacementScore") || json_object_get(o, "addOnPlacementScore")))
        reading_refuse(rd, &scores, "excludes preference.addonPlacementScore");
    r->scores = reading_alloc(rd, n, sizeof(*r->scores));
    for (; r->n_scores < n && !reading_failed(rd); r->n_scores++) {
        const struct field_path item = {&scores, NULL, r->n_scores};

        request_score(rd, &r->scores[r->n_scores], list ? json_array_get(list, item.i) : o,
                      list ? &item : &at, list ? o : NULL);
    }
}

static void request_spreads(struct reading *rd)
{
    const struct field_path at = {NULL, "spread", 0};
    struct plan_request *r = rd->r;
    const json_t *list = kube_list(r->json, at.key, NULL);
    size_t n = json_array_size(list);

    r->spreads = reading_alloc(rd, n, sizeof(*r->spreads));
    for (; r->n_spreads < n && !reading_failed(rd); r->n_spreads++) {
        const struct field_path item = {&at, NULL, r->n_spreads}, workloads = {&item, "workloads", 0};
        const json_t *o = json_array_get(list, item.i);

        r->spreads[r->n_spreads] = (struct request_spread){
            .label = cstr(kube_str(o, "label", NULL)),
            .max = reading_count(o, "max"),
            .workloads = reading_names(rd, kube_list(o, workloads.key, NULL), false, &workloads)};
    }
}

static struct request_rule *request_rules(struct reading *rd, const char *key, size_t *ret_n)
{
    const struct field_path at = {NULL, key, 0};
    const json_t *list = kube_list(rd->r->json, key, NULL);
    size_t n = json_array_size(list);
    struct request_rule *rules = reading_alloc(rd, n, sizeof(*rules));

    for (; *ret_n < n && !reading_failed(rd); ++*ret_n) {
        const struct field_path item = {&at, NULL, *ret_n}, workload = {&item, "workload", 0},
                                clusters = {&item, "clusters", 0};
        const json_t *o = json_array_get(list, item.i);

        rules[*ret_n] =
            (struct request_rule){reading_name(rd, json_object_get(o, workload.key), &workload),
                                  reading_names(rd, kube_list(o, clusters.key, NULL), false, &clusters)};
    }
    return rules;
}

static void request_options(struct reading *rd)
{
    const struct field_path namespace = {NULL, "namespace", 0}, deadline = {NULL, "deadline", 0};
    struct plan_request *r = rd->r;
    const json_t *name = json_object_get(r->json, namespace.key), *moves = kube_map(r->json, "moves", NULL);
    const char *text = kube_str(r->json, deadline.key, NULL);
    int64_t max;

    r->namespace = name ? reading_name(rd, name, &namespace) : "default";
    r->move_cost = json_number_value(json_object_get(moves, "cost"));
    r->max_moves = kube_int(moves, &max, "max", NULL) ? (size_t)max : SIZE_MAX;
    r->dry_run = json_is_true(json_object_get(r->json, "dryRun"));
    if (text && (!duration_parse(str_of(text), &r->deadline_ms) || r->deadline_ms < MIN_DEADLINE_MS ||
                 r->deadline_ms > MAX_DEADLINE_MS))
        reading_refuse(rd, &deadline, "expected a duration of 10ms to 10m, such as \"5s\"");
}

int request_read(struct plan_request **ret, json_t *json, struct objection *ob)
{
    CLEANUP(cleanup_request_free) struct plan_request *r = xcalloc(1, sizeof(*r));
    struct reading rd = {.r = r, .ob = ob};

    r->json = json_incref(json);
    r->arena.chunk_bytes = ARENA_BYTES;
    request_options(&rd);
    request_clusters(&rd);
    request_workloads(&rd);
    request_preference(&rd);
    request_spreads(&rd);
    r->pins = request_rules(&rd, "pin", &r->n_pins);
    r->forbids = request_rules(&rd, "forbid", &r->n_forbids);
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

/* Reads what the schema of POST /plan has let through. Left to check are names, what excludes what, and texts
 * with a grammar of their own. */
#include "controller/assist/rules/request.h"

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

/* Where a value is. */
struct field {
    char path[PATH_BYTES];
};

static struct field PRINTF_LIKE(1, 2) field_of(const char *fmt, ...)
{
    struct field at;
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(at.path, sizeof(at.path), fmt, args);
    va_end(args);
    return at;
}

static void PRINTF_LIKE(3, 4) reading_refuse(struct reading *rd, const char *path, const char *fmt, ...)
{
    char text[1024];
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    (void)objection_set(rd->ob, 422, path, "%s: %s", path, text);
}

/* n elements, zeroed. */
static void *reading_alloc(struct reading *rd, size_t n, size_t size)
{
    return n ? memset(arena_alloc(&rd->r->arena, n * size), 0, n * size) : NULL;
}

static bool name_is_valid(const char *s)
{
    struct str name = str_of(s);

    return name.n > 0 && name.n <= MAX_NAME_BYTES && str_has_only(name, "-.") && name.p[0] != '.';
}

/* The name of an object of Kubernetes. */
static const char *reading_name(struct reading *rd, const json_t *v, const char *path)
{
    const char *name = kube_str(v, NULL);

    if (!name_is_valid(name))
        reading_refuse(rd, path, "is not a valid name of a Kubernetes object");
    return name;
}

/* The names in a list, or the members `name` of its items; each is there once. */
static struct request_names reading_names(struct reading *rd, const json_t *list, bool of_objects,
                                          const char *path)
{
    size_t n = json_array_size(list);
    struct request_names out = {.names = reading_alloc(rd, n, sizeof(char *))};
    struct map seen = {0};

    for (; out.n < n && !rd->ob->status; out.n++) {
        const json_t *item = json_array_get(list, out.n);
        const char *name = of_objects ? kube_str(item, "name", NULL) : kube_str(item, NULL);
        bool is_valid = name_is_valid(name);

        out.names[out.n] = name;
        if (!is_valid || map_get(&seen, name))
            reading_refuse(rd, field_of("%s[%zu]%s", path, out.n, of_objects ? ".name" : "").path, "%s%s",
                           is_valid ? name : "is not a valid name of a Kubernetes object",
                           is_valid ? " appears twice" : "");
        else
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
    struct plan_request *r = rd->r;
    const json_t *list = kube_list(r->json, "clusters", NULL);
    struct request_names names = reading_names(rd, list, true, "clusters");

    r->clusters = reading_alloc(rd, names.n, sizeof(*r->clusters));
    for (; r->n_clusters < names.n && !rd->ob->status; r->n_clusters++) {
        const json_t *policies = kube_list(json_array_get(list, r->n_clusters), "availablePolicies", NULL);
        struct request_cluster *c = &r->clusters[r->n_clusters];

        c->name = names.names[r->n_clusters];
        c->policies = reading_names(rd, policies, true,
                                    field_of("clusters[%zu].availablePolicies", r->n_clusters).path);
        c->first_policy = r->n_policies;
        r->n_policies += c->policies.n;
    }
}

static void request_workloads(struct reading *rd)
{
    struct plan_request *r = rd->r;
    const json_t *list = kube_list(r->json, "targetWorkloads", NULL);
    struct request_names names = reading_names(rd, list, true, "targetWorkloads");

    r->workloads = reading_alloc(rd, names.n, sizeof(*r->workloads));
    for (; r->n_workloads < names.n; r->n_workloads++)
        r->workloads[r->n_workloads] = (struct request_workload){
            names.names[r->n_workloads], reading_count(json_array_get(list, r->n_workloads), "replicas")};
}

/* Reference documents have both spellings. */
static const char *request_score_name(struct reading *rd, const json_t *o, const char *at)
{
    const json_t *usual = json_object_get(o, "addonPlacementScore");
    const json_t *other = json_object_get(o, "addOnPlacementScore");
    struct field field = field_of("%s.%s", at, other ? "addOnPlacementScore" : "addonPlacementScore");

    if (usual && other)
        reading_refuse(rd, field.path, "is given in both spellings");
    else if (!usual && !other)
        reading_refuse(rd, field.path, "missing");
    else
        return reading_name(rd, usual ? usual : other, field.path);
    return NULL;
}

/* The sum's format counts for those that have none. */
static void request_score(struct reading *rd, struct request_score *s, const json_t *o, const char *at,
                          const json_t *sum)
{
    const json_t *weight = json_object_get(o, "weight");
    const char *own = kube_str(o, "scoreDimensionFormat", NULL), *why = "missing";
    const char *inherited = own ? NULL : kube_str(sum, "scoreDimensionFormat", NULL);
    const char *format = own ? own : inherited;

    s->name = request_score_name(rd, o, at);
    s->weight = weight ? json_number_value(weight) : 1;
    if (!format || score_format_parse(&s->format, str_of(format), &why) < 0)
        reading_refuse(rd, field_of("%s.scoreDimensionFormat", inherited ? "preference" : at).path, "%s",
                       why);
}

static void request_preference(struct reading *rd)
{
    struct plan_request *r = rd->r;
    const json_t *o = kube_map(r->json, "preference", NULL), *list = kube_list(o, "scores", NULL);
    size_t n = list ? json_array_size(list) : 1;

    if (list && (json_object_get(o, "addonPlacementScore") || json_object_get(o, "addOnPlacementScore")))
        reading_refuse(rd, "preference.scores", "excludes preference.addonPlacementScore");
    r->scores = reading_alloc(rd, n, sizeof(*r->scores));
    for (; r->n_scores < n && !rd->ob->status; r->n_scores++) {
        struct request_score *s = &r->scores[r->n_scores];

        if (list)
            request_score(rd, s, json_array_get(list, r->n_scores),
                          field_of("preference.scores[%zu]", r->n_scores).path, o);
        else
            request_score(rd, s, o, "preference", NULL);
    }
}

static void request_spreads(struct reading *rd)
{
    struct plan_request *r = rd->r;
    const json_t *list = kube_list(r->json, "spread", NULL);
    size_t n = json_array_size(list);

    r->spreads = reading_alloc(rd, n, sizeof(*r->spreads));
    for (; r->n_spreads < n && !rd->ob->status; r->n_spreads++) {
        const json_t *o = json_array_get(list, r->n_spreads);

        r->spreads[r->n_spreads] = (struct request_spread){
            .label = cstr(kube_str(o, "label", NULL)),
            .max = reading_count(o, "max"),
            .workloads = reading_names(rd, kube_list(o, "workloads", NULL), false,
                                       field_of("spread[%zu].workloads", r->n_spreads).path)};
    }
}

static struct request_rule *request_rules(struct reading *rd, const char *key, size_t *ret_n)
{
    const json_t *list = kube_list(rd->r->json, key, NULL);
    size_t n = json_array_size(list);
    struct request_rule *rules = reading_alloc(rd, n, sizeof(*rules));

    for (; *ret_n < n && !rd->ob->status; ++*ret_n) {
        const json_t *o = json_array_get(list, *ret_n);

        rules[*ret_n] = (struct request_rule){
            reading_name(rd, json_object_get(o, "workload"), field_of("%s[%zu].workload", key, *ret_n).path),
            reading_names(rd, kube_list(o, "clusters", NULL), false,
                          field_of("%s[%zu].clusters", key, *ret_n).path)};
    }
    return rules;
}

static void request_options(struct reading *rd)
{
    struct plan_request *r = rd->r;
    const json_t *name = json_object_get(r->json, "namespace"), *moves = kube_map(r->json, "moves", NULL);
    const char *text = kube_str(r->json, "deadline", NULL);
    int64_t max;

    r->namespace = name ? reading_name(rd, name, "namespace") : "default";
    r->move_cost = json_number_value(json_object_get(moves, "cost"));
    r->max_moves = kube_int(moves, &max, "max", NULL) ? (size_t)max : SIZE_MAX;
    r->dry_run = json_is_true(json_object_get(r->json, "dryRun"));
    if (text && (!duration_parse(str_of(text), &r->deadline_ms) || r->deadline_ms < MIN_DEADLINE_MS ||
                 r->deadline_ms > MAX_DEADLINE_MS))
        reading_refuse(rd, "deadline", "expected a duration of 10ms to 10m, such as \"5s\"");
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

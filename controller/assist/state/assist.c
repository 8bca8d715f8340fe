#include "controller/assist/state/assist.h"

#include "controller/assist/state/apply.h"
#include "controller/assist/state/assist_internal.h"
#include "controller/kube/client.h"
#include "controller/kube/verdict.h"
#include "exporter/base/buf.h"
#include "exporter/base/loop.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#define PLACEMENT_SCHEMA "/openapi/v3/apis/cluster.open-cluster-management.io/v1beta1"
#define CEL_MEMBER       "\"celSelector\""

enum { SCHEMA_MAX_BYTES = 16 << 20 };

const struct world *assist_world(const struct assist *a)
{
    return a->world;
}

const struct assist_options *assist_options(const struct assist *a)
{
    return &a->o;
}

const struct assist_last_plan *assist_last_plan(const struct assist *a)
{
    return a->has_last ? &a->last : NULL;
}

/* As the options have it; NULL if nothing may be written there. */
static const char *assist_writable(const struct assist *a, const char *namespace)
{
    for (size_t i = 0; i < a->o.n_write_namespaces; i++)
        if (strcmp(a->o.write_namespaces[i], namespace) == 0)
            return a->o.write_namespaces[i];
    return NULL;
}

bool assist_may_write(const struct assist *a, const char *namespace)
{
    return assist_writable(a, namespace) != NULL;
}

void assist_refuse(outcome_fn done, void *arg, unsigned status, const char *field, const char *fmt, ...)
{
    struct outcome o = {.status = status};
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(o.detail, sizeof(o.detail), fmt, args);
    va_end(args);
    if (field && *field)
        o.body = json_pack("{s:s}", "field", field);
    done(arg, &o);
    json_decref(o.body);
}

/* ---- Plans that are kept ---- */

struct kept_plan *kept_plan_free(struct kept_plan *p)
{
    if (!p || p->refs-- > 0)
        return NULL;
    json_decref(p->request);
    json_decref(p->fingerprint);
    json_decref(p->answer);
    json_decref(p->objects);
    free(p);
    return NULL;
}

static void assist_drop(struct assist *a, struct kept_plan *p)
{
    TAILQ_REMOVE(&a->plans, p, entry);
    a->n_plans--;
    (void)kept_plan_free(p);
}

static void assist_expire(struct assist *a)
{
    struct kept_plan *last;

    while ((last = TAILQ_LAST(&a->plans, plan_list)) &&
           (a->n_plans > PLANS_MAX_KEPT || mono_diff(last->made_at, loop_now(a->o.loop)) > PLAN_KEPT_MS))
        assist_drop(a, last);
}

struct kept_plan *assist_find(struct assist *a, const char *hash)
{
    struct kept_plan *p;

    assist_expire(a);
    TAILQ_FOREACH (p, &a->plans, entry)
        if (strcmp(p->hash, hash) == 0)
            return p;
    return NULL;
}

void assist_keep(struct assist *a, struct kept_plan *p)
{
    struct kept_plan *old = assist_find(a, p->hash);

    if (old)
        assist_drop(a, old);
    TAILQ_INSERT_HEAD(&a->plans, p, entry);
    a->n_plans++;
    assist_expire(a);
}

/* ---- Writing ---- */

/* The last plan counts as applied until objects of another plan, or none, are in its namespace. */
static void assist_note_written(struct assist *a, const struct kept_plan *p)
{
    const char *hash = json_string_value(json_object_get(a->last.answer, "planHash"));

    if (p && hash && strcmp(hash, p->hash) == 0)
        a->last.applied_at = loop_wall(a->o.loop);
    else if (a->has_last && strcmp(a->last.namespace, a->writes_namespace) == 0)
        a->last.applied_at = (unix_ms){0};
}

static void assist_on_written(void *arg, const struct outcome *o)
{
    struct assist *a = arg;
    CLEANUP(cleanup_kept_plan_free) struct kept_plan *p = TAKE_PTR(a->writing);
    struct apply *writer = TAKE_PTR(a->writer);
    json_auto_t *answer = p && o->status == 200 ? json_copy(p->answer) : NULL;
    struct outcome end = *o;

    if (o->status == 200)
        assist_note_written(a, p);
    if (answer) {
        end.body = answer;
        if (json_object_set_new(answer, "applied", json_true()) < 0 ||
            json_object_set(answer, "written", o->body) < 0)
            end.status = 500;
    }
    a->writer_done(a->writer_arg, &end);
    (void)apply_free(writer);
}

void assist_write(struct assist *a, const char *namespace, struct kept_plan *p, outcome_fn done, void *arg)
{
    CLEANUP(cleanup_kept_plan_free) struct kept_plan *own = p;
    const char *writable = assist_writable(a, namespace);
    const struct apply_options o = {.loop = a->o.loop,
                                    .kube = a->o.kube,
                                    .metrics = a->o.metrics,
                                    .namespace = namespace,
                                    .objects = p ? p->objects : NULL,
                                    .done = assist_on_written,
                                    .arg = a};

    if (!writable)
        assist_refuse(done, arg, 403, "namespace",
                      "writing to namespace %.200s is not allowed: start the optimizer with "
                      "--write-namespace=%.200s",
                      namespace, namespace);
    else if (a->is_ending)
        assist_refuse(done, arg, 503, NULL, "the optimizer is shutting down");
    else if (a->writer)
        assist_refuse(done, arg, 503, NULL, "another plan is being written; try again");
    else if (apply_start(&a->writer, &o) < 0)
        assist_refuse(done, arg, 500, NULL, "out of memory");
    else {
        a->writing = TAKE_PTR(own);
        a->writes_namespace = writable;
        a->writer_done = done;
        a->writer_arg = arg;
    }
}

/* ---- The schema of Placements ---- */

static void schema_on_piece(void *arg, struct str piece)
{
    struct assist *a = arg;

    if (buf_put_str(&a->schema_text, piece) < 0) {
        a->schema = kube_cancel(a->schema);
        a->cel = CEL_ABSENT;
        buf_done(&a->schema_text);
    }
}

static void schema_on_end(void *arg, struct kube_answer *answer)
{
    struct assist *a = arg;
    struct str text = buf_str(&a->schema_text);

    a->schema = NULL;
    /* A hub that does not tell has no celSelector until it does: each plan asks again. */
    if (answer->verdict == KUBE_OK)
        a->cel = text.n && memmem(text.p, text.n, CEL_MEMBER, strlen(CEL_MEMBER)) ? CEL_PRESENT : CEL_ABSENT;
    else if (a->cel == CEL_IS_ASKED)
        a->cel = kube_is_away(a->o.kube) ? CEL_UNKNOWN : CEL_ABSENT;
    buf_done(&a->schema_text);
}

void assist_ask_schema(struct assist *a)
{
    const struct kube_request rq = {.method = KUBE_GET, .path = PLACEMENT_SCHEMA, .on_data = schema_on_piece};

    if (a->cel == CEL_PRESENT || a->schema)
        return;
    a->schema_text.max = SCHEMA_MAX_BYTES;
    if (kube_start(&a->schema, a->o.kube, &rq, schema_on_end, a) == 0 && a->cel == CEL_UNKNOWN)
        a->cel = CEL_IS_ASKED;
}

/* ---- Beginning and end ---- */

int assist_new(struct assist **ret, const struct assist_options *o)
{
    CLEANUP(cleanup_assist_free) struct assist *a = calloc(1, sizeof(*a));
    int r;

    if (!a)
        return -ENOMEM;
    a->o = *o;
    TAILQ_INIT(&a->plans);
    r = worker_new(&a->solving.worker, o->loop) ?: worker_new(&a->comparing.worker, o->loop);
    r = r ?: world_new(&a->world, &(struct world_options){.loop = o->loop, .kube = o->kube});
    if (r < 0)
        return r;
    if (o->metrics)
        apply_count_from_zero(o->metrics);
    assist_ask_schema(a);
    *ret = TAKE_PTR(a);
    return 0;
}

struct assist *assist_free(struct assist *a)
{
    if (!a)
        return NULL;
    a->is_ending = true;
    atomic_store(&a->cancel, true);
    a->solving.worker = worker_free(a->solving.worker);
    a->comparing.worker = worker_free(a->comparing.worker);
    if (a->writer) {
        a->writer = apply_free(a->writer);
        assist_refuse(
            a->writer_done, a->writer_arg, 503, NULL,
            "the optimizer is shutting down while it writes; the next run completes or clears what is there");
    }
    (void)kept_plan_free(a->writing);
    (void)kube_cancel(a->schema);
    buf_done(&a->schema_text);
    while (!TAILQ_EMPTY(&a->plans))
        assist_drop(a, TAILQ_FIRST(&a->plans));
    a->world = world_free(a->world);
    json_decref(a->last.request);
    json_decref(a->last.answer);
    free(a);
    return NULL;
}

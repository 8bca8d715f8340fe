#include "controller/assist/state/assist.h"

#include "controller/assist/api/operation.h"
#include "controller/assist/rules/answer.h"
#include "controller/assist/rules/fingerprint.h"
#include "controller/assist/rules/model.h"
#include "controller/assist/rules/objects.h"
#include "controller/assist/rules/request.h"
#include "controller/assist/state/apply.h"
#include "controller/assist/state/snapshot.h"
#include "controller/kube/json.h"
#include "controller/optimize/problem.h"
#include "exporter/base/arena.h"
#include "exporter/base/backoff.h"
#include "exporter/base/buf.h"
#include "exporter/base/loop.h"
#include "exporter/base/worker.h"
#include "exporter/metric/metrics.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/queue.h>

enum { PLANS_MAX_KEPT = 16, PLAN_KEPT_MS = 15 * 60 * 1000, MAX_YAML_BYTES = 256 << 20 };

/* A plan that may be applied. */
struct kept_plan {
    unsigned refs; /* beside the first */
    char hash[PLAN_HASH_BYTES];
    json_t *request, *fingerprint;
    const char *namespace; /* of the request */
    json_t *answer;        /* with output_yaml, not yet applied */
    json_t *objects;       /* a list */
    bool is_empty;         /* nothing is placed */
    mono_ms made_at;
    double seconds, gap;
    const char *status, *engine;
    TAILQ_ENTRY(kept_plan) entry;
};

TAILQ_HEAD(plan_list, kept_plan);

/* A thread, and how many plans read the hub for it, wait or run. Plans to be applied are compared on a thread
 * of their own, so that they do not wait for solvers. */
struct plan_lane {
    struct worker *worker;
    unsigned queued;
};

struct assist {
    struct assist_options o;
    struct reader *reader;
    struct plan_lane solving, comparing;
    atomic_bool cancel;     /* read by the workers */
    struct plan_list plans; /* the latest first */
    size_t n_plans;
    struct apply *writer; /* NULL: none */
    outcome_fn writer_done;
    void *writer_arg;
    struct kept_plan *writing;    /* owned; NULL: a reset */
    const char *writes_namespace; /* one of o.write_namespaces */
    struct assist_last_plan last;
    bool has_last, is_ending;
};

enum plan_mode { PLAN_ONLY, PLAN_AND_APPLY, PLAN_COMPARE };

/* A plan that is being made, or one whose inputs are read again. */
struct plan_job {
    struct job job;
    struct assist *a;
    struct plan_lane *lane;
    enum plan_mode mode;
    struct plan_request *request;
    struct snapshot *snapshot;
    struct inputs in;
    uint32_t id;                /* in the objects' names */
    char hash[PLAN_HASH_BYTES]; /* of the plan that is to be applied */
    outcome_fn done;
    void *arg;
    /* Set by the worker. */
    bool has_run;
    int error;
    struct objection objection;
    struct kept_plan *plan;
    json_t *fingerprint; /* for PLAN_COMPARE */
};

struct reader *assist_reader(const struct assist *a)
{
    return a->reader;
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

/* Ends a request that failed. */
static void PRINTF_LIKE(5, 6)
    assist_refuse(outcome_fn done, void *arg, unsigned status, const char *field, const char *fmt, ...)
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

static struct kept_plan *kept_plan_ref(struct kept_plan *p)
{
    p->refs++;
    return p;
}

static struct kept_plan *kept_plan_free(struct kept_plan *p)
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

DEFINE_CLEANUP(struct kept_plan, kept_plan_free)

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

static struct kept_plan *assist_find(struct assist *a, const char *hash)
{
    struct kept_plan *p;

    assist_expire(a);
    TAILQ_FOREACH (p, &a->plans, entry)
        if (strcmp(p->hash, hash) == 0)
            return p;
    return NULL;
}

/* Puts the plan in place of an older one of the same hash. Takes it. */
static void assist_keep(struct assist *a, struct kept_plan *p)
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
        (void)json_object_set_new(answer, "applied", json_true());
        (void)json_object_set(answer, "written", o->body);
    }
    a->writer_done(a->writer_arg, &end);
    (void)apply_free(writer);
}

/* Writes the objects of a plan, which is taken (NULL: deletes all), if the namespace may be written to. */
static void assist_write(struct assist *a, const char *namespace, struct kept_plan *p, outcome_fn done,
                         void *arg)
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
        assist_refuse(done, arg, 422, "namespace", "not a namespace");
    else {
        a->writing = TAKE_PTR(own);
        a->writes_namespace = writable;
        a->writer_done = done;
        a->writer_arg = arg;
    }
}

static struct plan_job *plan_job_free(struct plan_job *j)
{
    if (!j)
        return NULL;
    (void)snapshot_free(j->snapshot);
    (void)request_free(j->request);
    (void)kept_plan_free(j->plan);
    json_decref(j->fingerprint);
    free(j);
    return NULL;
}
DEFINE_CLEANUP(struct plan_job, plan_job_free)

/* ---- Planning, on the worker ---- */

static int plan_describe(struct kept_plan *p, const struct model *m, const struct solution *s,
                         struct plan_job *j)
{
    const struct objects_run run = {j->id, p->hash};
    BUF_AUTO(yaml, MAX_YAML_BYTES);
    int r;

    p->is_empty = s->n_placed == 0;
    p->status = answer_status_word(answer_status(s));
    p->engine = cstr(s->engine);
    p->gap = solution_gap(s);
    p->answer = answer_make(m, s);
    p->fingerprint = fingerprint_make(m);
    r = fingerprint_hash(p->hash, p->request, p->fingerprint, json_object_get(p->answer, "placements"));
    r = r ?: objects_make(&p->objects, m, s, &run, &j->objection);
    r = r ?: yaml_print(p->objects, &yaml);
    (void)json_object_set_new(p->answer, "output_yaml", json_stringn(cstr(yaml.p), yaml.n));
    (void)json_object_set_new(p->answer, "planHash", json_string(p->hash));
    (void)json_object_set_new(p->answer, "applied", json_false());
    return r;
}

static int plan_solve(struct plan_job *j, const struct model *m)
{
    const struct solve_options o = {.deadline_ms = j->request->deadline_ms ? j->request->deadline_ms
                                                                           : j->a->o.deadline_ms,
                                    .cancel = &j->a->cancel};
    CLEANUP(cleanup_kept_plan_free) struct kept_plan *p = xcalloc(1, sizeof(*p));
    CLEANUP(solution_done) struct solution s = {0};
    mono_ms begin = clock_system.mono(&clock_system);
    int r;

    p->request = json_incref(j->request->json);
    p->namespace = j->request->namespace;
    solve(&s, &m->problem, &o);
    p->seconds = (double)mono_diff(begin, clock_system.mono(&clock_system)) / 1000;
    r = plan_describe(p, m, &s, j);
    if (r == 0)
        j->plan = TAKE_PTR(p);
    return r;
}

static void plan_run(struct job *job)
{
    struct plan_job *j = CONTAINER_OF(job, struct plan_job, job);
    CLEANUP(cleanup_model_free) struct model *m = NULL;

    j->has_run = true;
    j->error = model_new(&m, &j->in, &j->objection);
    if (j->error == 0 && j->mode == PLAN_COMPARE)
        j->fingerprint = fingerprint_make(m);
    else if (j->error == 0)
        j->error = plan_solve(j, m);
}

/* ---- What becomes of a plan ---- */

static void plan_count(struct assist *a, const struct kept_plan *p)
{
    json_t *list = json_object_get(p->answer, "leftOut"), *one;
    size_t i;

    if (!a->o.metrics)
        return;
    metric_add(a->o.metrics, METRIC_OPTIMIZER_PLANS, LV(p->engine, p->status), 1);
    metric_observe(a->o.metrics, METRIC_OPTIMIZER_SECONDS, LV_NONE, p->seconds);
    metric_set(a->o.metrics, METRIC_OPTIMIZER_GAP, LV_NONE, p->gap);
    json_array_foreach(list, i, one) metric_add(a->o.metrics, METRIC_OPTIMIZER_LEFT_OUT,
                                                LV(json_string_value(json_object_get(one, "reason"))), 1);
}

static void plan_show(struct assist *a, const struct kept_plan *p)
{
    json_t *answer = json_copy(p->answer);

    (void)json_object_del(answer, "output_yaml");
    json_decref(a->last.request);
    json_decref(a->last.answer);
    a->last = (struct assist_last_plan){.at = loop_wall(a->o.loop),
                                        .seconds = p->seconds,
                                        .namespace = p->namespace,
                                        .request = json_incref(p->request),
                                        .answer = answer};
    a->has_last = true;
}

static void plan_finish(struct plan_job *j)
{
    struct assist *a = j->a;
    struct kept_plan *p = TAKE_PTR(j->plan);
    json_t *notes = json_object_get(p->answer, "notes");

    snapshot_note_missing_kinds(j->snapshot, notes);
    if (j->mode == PLAN_AND_APPLY && p->is_empty)
        list_note(notes, "No workload can be placed, so nothing is written. POST /reset deletes what earlier "
                         "plans made.");
    p->made_at = loop_now(a->o.loop);
    plan_count(a, p);
    plan_show(a, p);
    assist_keep(a, p);
    if (j->mode == PLAN_AND_APPLY && !p->is_empty)
        assist_write(a, p->namespace, kept_plan_ref(p), j->done, j->arg);
    else
        j->done(j->arg, &(struct outcome){.status = 200, .body = p->answer});
}

static void plan_refuse_changed(struct plan_job *j, json_t *changes)
{
    struct outcome o = {.status = 409};
    json_t *first = json_array_get(changes, 0);
    size_t n = json_array_size(changes);

    if (n)
        (void)snprintf(o.detail, sizeof(o.detail),
                       "what the plan was made from has changed: %.60s %.200s: %.200s%s; make a new plan",
                       cstr(kube_str(first, "kind", NULL)), cstr(kube_str(first, "name", NULL)),
                       cstr(kube_str(first, "what", NULL)), n > 1 ? ", and others" : "");
    else
        (void)snprintf(o.detail, sizeof(o.detail),
                       "what the plan was made from has changed: %.700s; make a new plan",
                       j->objection.detail);
    o.body = json_pack("{s:O*}", "changed", changes);
    j->done(j->arg, &o);
    json_decref(o.body);
}

static void plan_compare(struct plan_job *j)
{
    struct kept_plan *p = assist_find(j->a, j->hash);
    json_auto_t *changes =
        p && j->fingerprint ? fingerprint_changes(p->fingerprint, j->fingerprint, p->hash) : json_array();

    if (!p)
        assist_refuse(j->done, j->arg, 404, "planHash", "the plan has expired; make a new plan");
    else if (j->objection.status || json_array_size(changes))
        plan_refuse_changed(j, changes);
    else
        assist_write(j->a, p->namespace, kept_plan_ref(p), j->done, j->arg);
}

static void plan_on_run(struct job *job)
{
    CLEANUP(cleanup_plan_job_free) struct plan_job *j = CONTAINER_OF(job, struct plan_job, job);

    j->lane->queued--;
    if (!j->has_run || j->a->is_ending)
        assist_refuse(j->done, j->arg, 503, NULL, "the optimizer is shutting down");
    else if (j->error < 0 && !j->objection.status)
        assist_refuse(j->done, j->arg, 500, NULL, "%s",
                      j->error == -ENOMEM ? "out of memory" : "the answer is too large");
    else if (j->mode == PLAN_COMPARE)
        plan_compare(j);
    else if (j->error < 0)
        assist_refuse(j->done, j->arg, j->objection.status, j->objection.field, "%s", j->objection.detail);
    else
        plan_finish(j);
}

/* ---- From the request to the worker ---- */

/* In the request's memory, which lives as long as the job. */
static void *plan_alloc(struct plan_job *j, size_t n, size_t size)
{
    return memset(arena_alloc(&j->request->arena, (n + 1) * size), 0, (n + 1) * size);
}

static void plan_take_named(struct plan_job *j)
{
    const struct plan_request *rq = j->request;
    const struct snapshot *s = j->snapshot;

    for (size_t c = 0; c < rq->n_clusters; c++) {
        const struct request_cluster *one = &rq->clusters[c];

        j->in.clusters[c] = snapshot_get(s, KIND_CLUSTERS, "", one->name);
        for (size_t i = 0; i < one->policies.n; i++)
            j->in.policies[one->first_policy + i] =
                snapshot_get(s, KIND_POLICIES, rq->namespace, one->policies.names[i]);
        for (size_t i = 0; i < rq->n_scores; i++) {
            const struct score *score = snapshot_score(s, one->name, rq->scores[i].name);

            if (score)
                j->in.scores[c * rq->n_scores + i] =
                    (struct input_score){true, score->is_expired, score->items, score->n_items};
        }
    }
    for (size_t i = 0; i < rq->n_workloads; i++) {
        const char *placement;

        j->in.workloads[i] = snapshot_get(s, KIND_WORKLOADS, rq->namespace, rq->workloads[i].name);
        placement = input_placement_name(j->in.workloads[i]);
        if (placement)
            j->in.placements[i] = snapshot_get(s, KIND_PLACEMENTS, rq->namespace, placement);
    }
}

static void plan_take_all(struct plan_job *j)
{
    static const enum kind made[] = {KIND_PLACEMENTS, KIND_BINDINGS};
    size_t at = 0;
    json_t *o;

    while ((o = snapshot_next(j->snapshot, KIND_DECISIONS, &at)))
        j->in.decisions[j->in.n_decisions++] = o;
    for (size_t i = 0; i < ARRAY_SIZE(made); i++)
        for (at = 0; (o = snapshot_next(j->snapshot, made[i], &at));)
            if (strcmp(cstr(kube_label(o, GENERATED_LABEL)), "true") == 0)
                j->in.generated[j->in.n_generated++] = o;
}

/* What the plan is made from, borrowed from the snapshot. */
static void plan_take_inputs(struct plan_job *j)
{
    const struct plan_request *rq = j->request;
    const struct snapshot_list *lists = j->snapshot->lists;

    j->in = (struct inputs){
        .request = rq,
        .clusters = plan_alloc(j, rq->n_clusters, sizeof(json_t *)),
        .policies = plan_alloc(j, rq->n_policies, sizeof(json_t *)),
        .workloads = plan_alloc(j, rq->n_workloads, sizeof(json_t *)),
        .placements = plan_alloc(j, rq->n_workloads, sizeof(json_t *)),
        .scores = plan_alloc(j, rq->n_clusters * rq->n_scores, sizeof(struct input_score)),
        .decisions = plan_alloc(j, lists[KIND_DECISIONS].n, sizeof(json_t *)),
        .generated = plan_alloc(j, lists[KIND_PLACEMENTS].n + lists[KIND_BINDINGS].n, sizeof(json_t *)),
        .has_cel = j->snapshot->has_cel,
        .lacks_set_binding = lists[KIND_SET_BINDINGS].n == 0 && !lists[KIND_SET_BINDINGS].lacks_kind,
    };
    plan_take_named(j);
    plan_take_all(j);
}

static void plan_on_read(void *arg, struct snapshot *s, const struct outcome *failure)
{
    CLEANUP(cleanup_plan_job_free) struct plan_job *j = arg;
    struct plan_lane *lane = j->lane;
    struct outcome end;

    j->snapshot = s;
    if (s) {
        plan_take_inputs(j);
        worker_start(lane->worker, &TAKE_PTR(j)->job);
        return;
    }
    lane->queued--;
    end = *failure;
    if (j->mode != PLAN_ONLY)
        (void)strncat(end.detail, "; nothing is changed", sizeof(end.detail) - strlen(end.detail) - 1);
    j->done(j->arg, &end);
}

static void plan_read(struct plan_job *j)
{
    const struct plan_request *rq = j->request;
    const struct reader_query q = {.kinds = KIND_BIT(KINDS) - 1 - KIND_BIT(KIND_SCORERS),
                                   .namespace = rq->namespace,
                                   .score = rq->n_scores == 1 ? rq->scores[0].name : NULL,
                                   .wants_cel = true};

    reader_read(j->a->reader, &q, plan_on_read, j);
}

static int plan_start(struct assist *a, json_t *json, enum plan_mode mode, const char *hash, outcome_fn done,
                      void *arg, struct objection *ob)
{
    CLEANUP(cleanup_plan_job_free) struct plan_job *j = xcalloc(1, sizeof(*j));
    int r = request_read(&j->request, json, ob);

    if (r < 0)
        return r;
    *j = (struct plan_job){.job = {.run = plan_run, .done = plan_on_run},
                           .a = a,
                           .lane = mode == PLAN_COMPARE ? &a->comparing : &a->solving,
                           .mode = mode == PLAN_AND_APPLY && j->request->dry_run ? PLAN_ONLY : mode,
                           .request = j->request,
                           .id = (uint32_t)rand_u64(),
                           .done = done,
                           .arg = arg};
    (void)snprintf(j->hash, sizeof(j->hash), "%s", cstr(hash));
    if (j->lane->queued >= PLAN_MAX_QUEUED)
        return objection_set(ob, 503, "", "%u plans are being made or wait; try again", j->lane->queued);
    if (j->mode != PLAN_ONLY && !assist_writable(a, j->request->namespace))
        return objection_set(ob, 403, "namespace",
                             "writing to namespace %s is not allowed: start the optimizer with "
                             "--write-namespace=%s%s",
                             j->request->namespace, j->request->namespace,
                             mode == PLAN_COMPARE ? "" : ", or ask with \"dryRun\": true");
    j->lane->queued++;
    plan_read(TAKE_PTR(j));
    return 0;
}

static void plan_begin(struct assist *a, json_t *json, enum plan_mode mode, const char *hash, outcome_fn done,
                       void *arg)
{
    struct objection ob = {0};

    if (a->is_ending)
        assist_refuse(done, arg, 503, NULL, "the optimizer is shutting down");
    else if (plan_start(a, json, mode, hash, done, arg, &ob) < 0)
        assist_refuse(done, arg, ob.status, ob.field, "%s", ob.detail);
}

void assist_plan(struct assist *a, json_t *request, bool plan_only, outcome_fn done, void *arg)
{
    plan_begin(a, request, plan_only ? PLAN_ONLY : PLAN_AND_APPLY, NULL, done, arg);
}

void assist_apply(struct assist *a, const char *hash, outcome_fn done, void *arg)
{
    struct kept_plan *p = assist_find(a, hash);

    if (!p)
        assist_refuse(done, arg, 404, "planHash",
                      "there is no such plan: plans are kept for 15 minutes; make a new plan");
    else if (p->is_empty)
        assist_refuse(done, arg, 409, "planHash",
                      "the plan places no workload; POST /reset deletes what earlier plans made");
    else
        plan_begin(a, p->request, PLAN_COMPARE, hash, done, arg);
}

void assist_reset(struct assist *a, const char *namespace, outcome_fn done, void *arg)
{
    assist_write(a, namespace, NULL, done, arg);
}

/* ---- Beginning and end ---- */

int assist_new(struct assist **ret, const struct assist_options *o)
{
    CLEANUP(cleanup_assist_free) struct assist *a = xcalloc(1, sizeof(*a));
    int r;

    a->o = *o;
    TAILQ_INIT(&a->plans);
    r = worker_new(&a->solving.worker, o->loop) ?: worker_new(&a->comparing.worker, o->loop);
    if (r == 0)
        a->reader = reader_new(o->loop, o->kube);
    if (r < 0)
        return r;
    if (o->metrics)
        apply_count_from_zero(o->metrics);
    *ret = TAKE_PTR(a);
    return 0;
}

struct assist *assist_free(struct assist *a)
{
    if (!a)
        return NULL;
    a->is_ending = true;
    atomic_store(&a->cancel, true);
    a->reader = reader_free(a->reader);
    a->solving.worker = worker_free(a->solving.worker);
    a->comparing.worker = worker_free(a->comparing.worker);
    if (a->writer) {
        a->writer = apply_free(a->writer);
        assist_refuse(
            a->writer_done, a->writer_arg, 503, NULL,
            "the optimizer is shutting down while it writes; the next run completes or clears what is there");
    }
    (void)kept_plan_free(a->writing);
    while (!TAILQ_EMPTY(&a->plans))
        assist_drop(a, TAILQ_FIRST(&a->plans));
    json_decref(a->last.request);
    json_decref(a->last.answer);
    free(a);
    return NULL;
}

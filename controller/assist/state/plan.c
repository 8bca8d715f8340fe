#include "controller/assist/state/plan.h"

#include "controller/assist/rules/answer.h"
#include "controller/assist/rules/fingerprint.h"
#include "controller/assist/rules/model.h"
#include "controller/assist/rules/objection.h"
#include "controller/assist/rules/objects.h"
#include "controller/assist/rules/request.h"
#include "controller/assist/rules/yaml.h"
#include "controller/assist/state/assist.h"
#include "controller/assist/state/assist_internal.h"
#include "controller/assist/state/gather.h"
#include "controller/assist/state/world.h"
#include "controller/kube/json.h"
#include "controller/optimize/problem.h"
#include "controller/optimize/solve.h"
#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/loop.h"
#include "exporter/base/rand.h"
#include "exporter/base/worker.h"
#include "exporter/metric/metrics.h"

#include <errno.h>
#include <stdio.h>

enum { MAX_YAML_BYTES = 256 << 20 };

enum plan_mode { PLAN_ONLY, PLAN_AND_APPLY, PLAN_COMPARE };

/* A plan that is being made, or one whose inputs are read again. */
struct plan_job {
    struct job job;
    struct assist *a;
    struct plan_lane *lane;
    enum plan_mode mode;
    struct plan_request *request;
    struct gathered gathered;
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

static struct plan_job *plan_job_free(struct plan_job *j)
{
    if (!j)
        return NULL;
    gathered_done(&j->gathered);
    (void)request_free(j->request);
    (void)kept_plan_free(j->plan);
    json_decref(j->fingerprint);
    free(j);
    return NULL;
}
DEFINE_CLEANUP(struct plan_job, plan_job_free)

/* ---- On the worker ---- */

/* The answer gets what follows from the objects. */
static int plan_add_texts(struct kept_plan *p)
{
    BUF_AUTO(yaml, MAX_YAML_BYTES);
    int r = yaml_print(p->objects, &yaml);

    if (r < 0)
        return r;
    return json_object_set_new(p->answer, "output_yaml", json_stringn(cstr(yaml.p), yaml.n)) < 0 ||
                   json_object_set_new(p->answer, "planHash", json_string(p->hash)) < 0 ||
                   json_object_set_new(p->answer, "applied", json_false()) < 0
               ? -ENOMEM
               : 0;
}

static int plan_describe(struct kept_plan *p, const struct model *m, const struct solution *s,
                         struct plan_job *j)
{
    const struct objects_run run = {j->id, p->hash};
    int r = answer_make(&p->answer, m, s);

    r = r ?: fingerprint_make(&p->fingerprint, m);
    r = r ?: fingerprint_hash(p->hash, p->request, p->fingerprint, json_object_get(p->answer, "placements"));
    r = r ?: objects_make(&p->objects, m, s, &run, &j->objection);
    r = r ?: plan_add_texts(p);
    p->is_empty = s->n_placed == 0;
    p->status = answer_status_word(answer_status(s));
    p->engine = cstr(s->engine);
    p->gap = solution_gap(s);
    return r;
}

static int plan_solve(struct plan_job *j, const struct model *m)
{
    const struct solve_options o = {.deadline_ms = j->request->deadline_ms ? j->request->deadline_ms
                                                                           : j->a->o.deadline_ms,
                                    .cbc = j->a->o.cbc,
                                    .cancel = &j->a->cancel};
    CLEANUP(cleanup_kept_plan_free) struct kept_plan *p = calloc(1, sizeof(*p));
    CLEANUP(solution_done) struct solution s = {0};
    mono_ms begin = clock_system.mono(&clock_system);
    int r;

    if (!p)
        return -ENOMEM;
    p->request = json_incref(j->request->json);
    p->namespace = j->request->namespace;
    r = solve(&s, &m->problem, &o);
    p->seconds = (double)mono_diff(begin, clock_system.mono(&clock_system)) / 1000;
    if (r == -EINVAL)
        return objection_set(&j->objection, 500, "", "the problem is not well-formed: %s",
                             cstr(problem_check(&m->problem)));
    r = r ?: plan_describe(p, m, &s, j);
    if (r == 0)
        j->plan = TAKE_PTR(p);
    return r;
}

static void plan_run(struct job *job)
{
    struct plan_job *j = CONTAINER_OF(job, struct plan_job, job);
    CLEANUP(cleanup_model_free) struct model *m = NULL;

    j->has_run = true;
    j->error = model_new(&m, &j->gathered.in, &j->objection);
    if (j->error == 0)
        j->error = j->mode == PLAN_COMPARE ? fingerprint_make(&j->fingerprint, m) : plan_solve(j, m);
}

/* ---- On the loop ---- */

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

    if (!answer)
        return;
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
    static const enum world_kind read[] = {WORLD_CLUSTERS,   WORLD_POLICIES,  WORLD_WORKLOADS,
                                           WORLD_PLACEMENTS, WORLD_DECISIONS, WORLD_SCORES};
    struct assist *a = j->a;
    struct kept_plan *p = TAKE_PTR(j->plan);
    json_t *notes = json_object_get(p->answer, "notes");
    int r = 0;

    for (size_t i = 0; i < ARRAY_SIZE(read); i++)
        r = r ?: world_note(a->world, read[i], notes);
    if (j->mode == PLAN_AND_APPLY && p->is_empty)
        r = r
                ?: json_array_append_new(notes,
                                         json_string("No workload can be placed, and so nothing is written. "
                                                     "POST /reset deletes what earlier plans made."));
    p->made_at = loop_now(a->o.loop);
    plan_count(a, p);
    plan_show(a, p);
    if (r < 0) {
        (void)kept_plan_free(p);
        assist_refuse(j->done, j->arg, 500, NULL, "out of memory");
        return;
    }
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
                       "what the plan was made from has changed: %.60s %.200s: %.200s%s; plan anew",
                       cstr(kube_str(first, "kind", NULL)), cstr(kube_str(first, "name", NULL)),
                       cstr(kube_str(first, "what", NULL)), n > 1 ? ", and others" : "");
    else
        (void)snprintf(o.detail, sizeof(o.detail),
                       "what the plan was made from has changed: %.700s; plan anew", j->objection.detail);
    o.body = json_pack("{s:O*}", "changed", changes);
    j->done(j->arg, &o);
    json_decref(o.body);
}

static void plan_compare(struct plan_job *j)
{
    struct kept_plan *p = assist_find(j->a, j->hash);
    json_auto_t *changes =
        p && j->fingerprint ? fingerprint_changes(p->fingerprint, j->fingerprint) : json_array();

    if (!p)
        assist_refuse(j->done, j->arg, 404, "planHash", "there is no such plan any more; plan anew");
    else if (j->objection.status || json_array_size(changes))
        plan_refuse_changed(j, changes);
    else if (!changes)
        assist_refuse(j->done, j->arg, 500, NULL, "out of memory");
    else
        assist_write(j->a, p->namespace, kept_plan_ref(p), j->done, j->arg);
}

static void plan_on_run(struct job *job)
{
    CLEANUP(cleanup_plan_job_free) struct plan_job *j = CONTAINER_OF(job, struct plan_job, job);

    j->lane->queued--;
    if (!j->has_run || j->a->is_ending)
        assist_refuse(j->done, j->arg, 503, NULL, "the optimizer is shutting down");
    else if (j->error == -ENOMEM || (j->error < 0 && !j->objection.status))
        assist_refuse(j->done, j->arg, 500, NULL, "%s",
                      j->error == -ENOMEM ? "out of memory" : "the answer is too large");
    else if (j->mode == PLAN_COMPARE)
        plan_compare(j);
    else if (j->error < 0)
        assist_refuse(j->done, j->arg, j->objection.status, j->objection.field, "%s", j->objection.detail);
    else
        plan_finish(j);
}

static struct plan_lane *plan_lane(struct assist *a, enum plan_mode mode)
{
    return mode == PLAN_COMPARE ? &a->comparing : &a->solving;
}

static int plan_start(struct assist *a, json_t *json, enum plan_mode mode, const char *hash, outcome_fn done,
                      void *arg, struct objection *ob)
{
    CLEANUP(cleanup_plan_job_free) struct plan_job *j = calloc(1, sizeof(*j));
    struct plan_lane *lane = plan_lane(a, mode);
    int r = j ? request_read(&j->request, json, ob) : -ENOMEM;

    if (r < 0)
        return r;
    j->mode = mode == PLAN_AND_APPLY && j->request->dry_run ? PLAN_ONLY : mode;
    if (j->mode != PLAN_ONLY && !assist_may_write(a, j->request->namespace))
        return objection_set(ob, 403, "namespace",
                             "writing to namespace %s is not allowed: start the optimizer with "
                             "--write-namespace=%s%s",
                             j->request->namespace, j->request->namespace,
                             mode == PLAN_COMPARE ? "" : ", or ask with \"dryRun\": true");
    r = gather(&j->gathered, a, j->request);
    if (r < 0)
        return r;
    j->job = (struct job){.run = plan_run, .done = plan_on_run};
    j->a = a;
    j->id = (uint32_t)rand_u64();
    j->done = done;
    j->arg = arg;
    (void)snprintf(j->hash, sizeof(j->hash), "%s", cstr(hash));
    j->lane = lane;
    lane->queued++;
    worker_start(lane->worker, &TAKE_PTR(j)->job);
    return 0;
}

static void plan_begin(struct assist *a, json_t *json, enum plan_mode mode, const char *hash, outcome_fn done,
                       void *arg)
{
    const struct plan_lane *lane = plan_lane(a, mode);
    struct objection ob = {0};
    int r;

    if (a->cel != CEL_IS_ASKED)
        assist_ask_schema(a);
    if (a->is_ending)
        r = objection_set(&ob, 503, "", "the optimizer is shutting down");
    else if (!world_synced(a->world) || a->cel == CEL_IS_ASKED)
        r = objection_set(&ob, 503, "", "the hub's objects are still being read; try again");
    else if (lane->queued >= PLAN_MAX_QUEUED)
        r = objection_set(&ob, 503, "", "%u plans are being made or wait; try again", lane->queued);
    else
        r = plan_start(a, json, mode, hash, done, arg, &ob);
    if (r < 0)
        assist_refuse(done, arg, ob.status ? ob.status : 500, ob.field, "%s",
                      ob.status ? ob.detail : "out of memory");
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
                      "there is no such plan: plans are kept for 15 minutes; plan anew");
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

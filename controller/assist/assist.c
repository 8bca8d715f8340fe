/* Owns the plans that are kept and those being made, the write under way, the worker that plans and the one
 * that compares, the reader of the hub, and the API. On the loop, but for the jobs' functions that say
 * otherwise. A plan is written only if what it was made from is still the same. */
#include "controller/assist/assist.h"

#include "controller/assist/api.h"
#include "controller/assist/api_error.h"
#include "controller/assist/api_request.h"
#include "controller/assist/apply.h"
#include "controller/assist/basis.h"
#include "controller/assist/call.h"
#include "controller/assist/choices.h"
#include "controller/assist/explain.h"
#include "controller/assist/kind.h"
#include "controller/assist/list.h"
#include "controller/assist/model.h"
#include "controller/assist/plan_answer.h"
#include "controller/assist/plan_objects.h"
#include "controller/assist/plan_request.h"
#include "controller/assist/preference.h"
#include "controller/assist/reader.h"
#include "controller/assist/scorer.h"
#include "controller/assist/scores.h"
#include "controller/assist/snapshot.h"
#include "controller/assist/yaml.h"
#include "controller/kube/json.h"
#include "controller/optimize/solution.h"
#include "controller/optimize/solve.h"
#include "exporter/base/alloc.h"
#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/escape.h"
#include "exporter/base/log.h"
#include "exporter/base/loop.h"
#include "exporter/base/random.h"
#include "exporter/base/secret.h"
#include "exporter/http/httpd.h"
#include "exporter/metric/metrics.h"
#include "exporter/ui/member.h"

#include <stdatomic.h>
#include <stdio.h>
#include <sys/queue.h>

enum {
    PLANS_MAX_KEPT = 16,
    PLANS_MAX_BYTES =
        320 << 20, /* of memory for the requests of kept plans; the latest one is kept in any case */
    PLAN_KEPT_MS = 15 * 60 * 1000,
    PLAN_HASH_BYTES = 17,
    MAX_YAML_BYTES = 256 << 20,
    STATUS_MAX_BYTES = 256 << 20,
};

/* A plan that may be applied. */
struct kept_plan {
    char hash[PLAN_HASH_BYTES];
    json_t *request, *answer;       /* the answer is that of POST /plan, without output_yaml */
    size_t request_bytes;           /* of memory, at most */
    json_t *yaml, *objects, *basis; /* objects: none if nothing is placed */
    double seconds;                 /* that solving took */
    mono_ms made_at;
    unix_ms at, applied_at; /* applied_at: when its objects were written; 0: not applied, or reset since */
    TAILQ_ENTRY(kept_plan) entry;
};

TAILQ_HEAD(plan_list, kept_plan);

enum plan_mode { PLAN_ONLY, PLAN_AND_APPLY, PLAN_COMPARE };

/* Plans to be applied are compared in a lane of their own, so that they do not wait for solvers. */
enum plan_lane { LANE_SOLVE, LANE_COMPARE, LANES };

static enum plan_lane plan_lane_of(enum plan_mode mode)
{
    return mode == PLAN_COMPARE ? LANE_COMPARE : LANE_SOLVE;
}

struct assist {
    struct assist_options o;
    struct snapshot_reader *reader;
    /* Threads, and how many plans read the hub for them, wait or run. */
    struct worker *worker[LANES];
    unsigned queued[LANES];
    atomic_bool cancel;          /* read by the workers */
    struct plan_list plans;      /* the latest first; it stays until there is another one */
    size_t n_plans, plans_bytes; /* plans_bytes: the sum of request_bytes */
    struct apply *writer;        /* NULL: none */
    struct call *writer_call;
    json_t *writing;              /* the answer of the plan, owned; NULL: a reset */
    const char *writes_namespace; /* one of o.write_namespaces */
    bool is_ending;
    struct api *api; /* this and the site, which is not owned: NULL before assist_serve() */
    const struct site *site;
};

/* A plan that is being made, or one whose inputs are read again. */
struct plan_job {
    struct job job;
    struct assist *a;
    struct call *call;
    enum plan_mode mode;
    struct kept_plan
        *plan; /* at first a request; of PLAN_COMPARE also hash and basis of the one to be applied */
    struct snapshot *hub;
    int64_t deadline_ms;
    uint32_t id; /* in the objects' names */
    /* Set by the worker. */
    bool has_run;
    int error;
    struct api_error api_error;
    json_t *changes;
};

static void assist_on_read(void *call, struct snapshot *s, const struct api_error *failure)
{
    struct call *c = call;

    c->hub = s;
    if (s)
        c->ended(c);
    else
        call_refuse(c, failure, NULL);
}

static void assist_list(void *a, struct call *c)
{
    const struct operation *o = c->operation;
    const struct reader_query q = {.kinds = o->kinds,
                                   .namespace = call_text(c, o->namespace),
                                   .cluster = call_text(c, o->cluster),
                                   .score = call_text(c, o->score)};

    reader_read(((struct assist *)a)->reader, &q, assist_on_read, c);
}

/* ---- Plans that are kept ---- */

/* Worker's thread, or the loop's. */
static void plan_job_clear(struct job *job)
{
    struct plan_job *j = CONTAINER_OF(job, struct plan_job, job);
    struct kept_plan *p = TAKE_PTR(j->plan);

    j->hub = snapshot_free(j->hub);
    json_decref(TAKE_PTR(j->changes));
    if (!p)
        return;
    json_decref(p->request);
    json_decref(p->answer);
    json_decref(p->yaml);
    json_decref(p->objects);
    json_decref(p->basis);
    free(p);
}

static void plan_job_on_cleared(struct job *job)
{
    struct plan_job *j = CONTAINER_OF(job, struct plan_job, job);

    plan_job_clear(job); /* unless the worker did */
    free(j);
}

/* On the worker that compares, since the trees of a large request take a second to free; on the loop if it
 * shares them with a plan that is kept. */
static struct plan_job *plan_job_free(struct plan_job *j)
{
    if (!j)
        return NULL;
    j->job = (struct job){.run = plan_job_clear, .done = plan_job_on_cleared};
    if (j->a->is_ending || j->mode == PLAN_COMPARE)
        plan_job_on_cleared(&j->job);
    else
        worker_start(j->a->worker[LANE_COMPARE], &j->job);
    return NULL;
}
DEFINE_CLEANUP(struct plan_job, plan_job_free)

/* Releases on the loop what calls hold, too. jansson's count of references is atomic but orders nothing: a
 * worker could free a tree whose last use on the loop it cannot see yet, as ThreadSanitizer has found. A
 * large reply, which a worker prints, is still released there. */
static void plan_release_shared(json_t **value)
{
    if (*value && (*value)->refcount > 1)
        json_decref(TAKE_PTR(*value));
}

static void plan_drop(struct assist *a, struct kept_plan *p)
{
    struct plan_job *j = xcalloc(1, sizeof(*j));

    TAILQ_REMOVE(&a->plans, p, entry);
    a->n_plans--;
    a->plans_bytes -= p->request_bytes;
    json_decref(TAKE_PTR(p->answer)); /* replies share its members */
    plan_release_shared(&p->yaml);
    plan_release_shared(&p->request);
    plan_release_shared(&p->objects);
    plan_release_shared(&p->basis);
    j->a = a;
    j->plan = p;
    (void)plan_job_free(j);
}

static bool plan_has_expired(const struct assist *a, const struct kept_plan *p)
{
    return mono_diff(p->made_at, loop_now(a->o.loop)) > PLAN_KEPT_MS;
}

static struct kept_plan *plan_find(const struct assist *a, const char *hash)
{
    struct kept_plan *p;

    TAILQ_FOREACH (p, &a->plans, entry)
        if (strcmp(p->hash, hash) == 0 && !plan_has_expired(a, p))
            return p;
    return NULL;
}

/* Puts the plan in place of an older one of the same hash. Takes it. */
static void plan_keep(struct assist *a, struct kept_plan *p)
{
    struct kept_plan *old = plan_find(a, p->hash);

    if (old)
        plan_drop(a, old);
    TAILQ_INSERT_HEAD(&a->plans, p, entry);
    a->n_plans++;
    a->plans_bytes += p->request_bytes;
    while (a->n_plans > PLANS_MAX_KEPT || (a->plans_bytes > PLANS_MAX_BYTES && a->n_plans > 1) ||
           plan_has_expired(a, TAILQ_LAST(&a->plans, plan_list)))
        plan_drop(a, TAILQ_LAST(&a->plans, plan_list));
}

/* ---- Answers ---- */

/* Of POST /plan. A new reference. */
static json_t *plan_answer(const struct kept_plan *p)
{
    json_t *answer = json_copy(p->answer);

    (void)json_object_set(answer, "output_yaml", p->yaml);
    return answer;
}

/* Takes the answer, which is not shared. */
static void plan_reply(struct call *c, json_t *answer)
{
    json_t *notes = list_head(json_object_get(answer, "notes"), SIZE_MAX);

    if (c->note)
        list_note(notes, "%s", c->note);
    (void)json_object_set_new(answer, "notes", notes);
    call_done(c, answer_cut(answer, c->max_bytes));
    json_decref(answer);
}

/* ---- Writing ---- */

/* As the options have it. NULL after a refusal: nothing may be written there, or now. */
static const char *assist_writable(const struct assist *a, struct call *c, const char *namespace)
{
    for (size_t i = 0; i < a->o.n_write_namespaces; i++)
        if (strcmp(a->o.write_namespaces[i], namespace) == 0)
            return a->o.write_namespaces[i];
    call_fail(c, 403, "namespace",
              "writing to namespace %.200s is not allowed: start the optimizer with --write-namespace=%.200s",
              namespace, namespace);
    return NULL;
}

/* The last plan counts as applied until objects of another plan, or none, are in its namespace. */
static void assist_note_written(struct assist *a, const char *hash)
{
    struct kept_plan *last = TAILQ_FIRST(&a->plans);

    if (last && strcmp(last->hash, cstr(hash)) == 0)
        last->applied_at = loop_wall(a->o.loop);
    else if (last && strcmp(request_namespace(last->request), a->writes_namespace) == 0)
        last->applied_at = (unix_ms){0};
}

static void assist_on_written(void *arg, const struct api_error *failure, json_t *written)
{
    struct assist *a = arg;
    struct apply *writer = TAKE_PTR(a->writer);
    json_t *answer = TAKE_PTR(a->writing);

    if (failure) {
        json_decref(answer);
        call_refuse(a->writer_call, failure, json_incref(written));
    } else {
        assist_note_written(a, kube_str(answer, "planHash", NULL));
        if (answer) {
            (void)json_object_set_new(answer, "applied", json_true());
            (void)json_object_set(answer, "written", written);
            plan_reply(a->writer_call, answer);
        } else
            call_done(a->writer_call, json_incref(written));
    }
    (void)apply_free(writer);
}

/* Writes the objects of a plan, or deletes all if it is NULL. */
static void assist_write(struct assist *a, struct call *c, const char *namespace, const struct kept_plan *p)
{
    const char *writable = assist_writable(a, c, namespace);

    if (!writable)
        return;
    if (a->writer || a->is_ending) {
        call_fail(c, 503, NULL, "%s",
                  a->writer ? "another plan is being written; try again" : "the optimizer is shutting down");
        return;
    }
    a->writing = p ? plan_answer(p) : NULL;
    a->writes_namespace = writable;
    a->writer_call = c;
    apply_start(&a->writer,
                &(struct apply_options){.loop = a->o.loop,
                                        .kube = a->o.kube,
                                        .metrics = a->o.metrics,
                                        .namespace = writable,
                                        .objects = p ? p->objects : NULL,
                                        .done = assist_on_written,
                                        .arg = a},
                a->reader);
}

/* ---- Planning, on the worker ---- */

/* Hexadecimal digits over the request, what the plan depends on, and the placements. */
static void kept_plan_hash(struct kept_plan *p)
{
    json_auto_t *all = json_pack("[O,O,O]", p->request, p->basis, json_object_get(p->answer, "placements"));
    CLEANUP(cleanup_free) char *text = json_dumps(all, JSON_COMPACT | JSON_SORT_KEYS);
    struct str part = str_of(text);
    char digest[DIGEST_TEXT_BYTES];

    digest_parts(digest, &part, 1);
    (void)snprintf(p->hash, sizeof(p->hash), "%.16s", digest);
}

static int plan_solve(struct plan_job *j, const struct fleet_model *m)
{
    CLEANUP(solution_done) struct solution s = {0};
    BUF_AUTO(yaml, MAX_YAML_BYTES);
    mono_ms begin = clock_system.mono(&clock_system);
    struct kept_plan *p = j->plan;
    int r;

    solve(&s, &m->problem, j->deadline_ms, &j->a->cancel);
    p->seconds = (double)mono_diff(begin, clock_system.mono(&clock_system)) / 1000;
    p->answer = answer_make(m, &s);
    p->basis = json_incref(m->basis);
    kept_plan_hash(p);
    r = objects_make(&p->objects, m, &s, j->id, p->hash, &j->api_error) ?: yaml_print(p->objects, &yaml);
    p->yaml = json_stringn(cstr(yaml.p), yaml.n);
    (void)json_object_set_new(p->answer, "planHash", json_string(p->hash));
    (void)json_object_set_new(p->answer, "applied", json_false());
    return r;
}

static void plan_run(struct job *job)
{
    struct plan_job *j = CONTAINER_OF(job, struct plan_job, job);
    CLEANUP(cleanup_model_free) struct fleet_model *m = NULL;

    j->has_run = true;
    j->error = request_make_model(&m, j->plan->request, j->hub, &j->api_error);
    if (j->error == 0 && j->mode == PLAN_COMPARE)
        j->changes = basis_changes(j->plan->basis, m, j->plan->hash);
    else if (j->error == 0)
        j->error = plan_solve(j, m);
}

/* ---- What becomes of a plan ---- */

/* Plans, and what they leave out, are counted from 0, so that the first of each kind is an increase. */
static void plan_count_from_zero(struct metrics *m)
{
    static const char *const engines[] = {"relaxation", "branch and bound"};
    static const char *const statuses[] = {"Optimal", "Feasible", "Infeasible"};
    static const char *const reasons[] = {"KindDiffers", "Pinned",        "NoScore",
                                          "MoveBudget",  "NegativeScore", "NoCapacity"};

    for (size_t i = 0; i < ARRAY_SIZE(engines); i++)
        for (size_t k = 0; k < ARRAY_SIZE(statuses); k++)
            metric_add(m, METRIC_OPTIMIZER_PLANS, LV(engines[i], statuses[k]), 0);
    for (size_t i = 0; i < ARRAY_SIZE(reasons); i++)
        metric_add(m, METRIC_OPTIMIZER_LEFT_OUT, LV(reasons[i]), 0);
}

static void plan_count(struct assist *a, const struct kept_plan *p)
{
    const json_t *answer = p->answer, *one;
    size_t i;

    metric_add(a->o.metrics, METRIC_OPTIMIZER_PLANS,
               LV(kube_str(answer, "engine", NULL), kube_str(answer, "status", NULL)), 1);
    metric_observe(a->o.metrics, METRIC_OPTIMIZER_SECONDS, LV_NONE, p->seconds);
    metric_set(a->o.metrics, METRIC_OPTIMIZER_GAP, LV_NONE,
               json_number_value(json_object_get(answer, "gap")));
    json_array_foreach(json_object_get(answer, "leftOut"), i, one)
    {
        metric_add(a->o.metrics, METRIC_OPTIMIZER_LEFT_OUT, LV(kube_str(one, "reason", NULL)), 1);
    }
}

static void plan_finish(struct plan_job *j)
{
    struct assist *a = j->a;
    struct kept_plan *p = TAKE_PTR(j->plan);
    json_t *notes = json_object_get(p->answer, "notes");

    snapshot_note_missing_kinds(j->hub, notes);
    if (j->mode == PLAN_AND_APPLY && json_array_size(p->objects) == 0)
        list_note(notes, "No workload can be placed, so nothing is written. POST /reset deletes what earlier "
                         "plans made.");
    p->made_at = loop_now(a->o.loop);
    p->at = loop_wall(a->o.loop);
    plan_count(a, p);
    plan_keep(a, p);
    if (j->mode == PLAN_AND_APPLY && json_array_size(p->objects) > 0)
        assist_write(a, j->call, request_namespace(p->request), p);
    else
        plan_reply(j->call, plan_answer(p));
}

/* "what the plan was made from has changed: Policy p: labels, and others; make a new plan" */
static void plan_explain_change(const struct plan_job *j, struct buf *into)
{
    const json_t *first = json_array_get(j->changes, 0);

    buf_puts(into, "what the plan was made from has changed: ");
    if (!first) { /* it cannot be made any more */
        buf_printf(into, "%.700s; make a new plan", j->api_error.detail);
        return;
    }
    buf_printf(into, "%.60s ", cstr(kube_str(first, "kind", NULL)));
    buf_printf(into, "%.200s: ", cstr(kube_str(first, "name", NULL)));
    buf_printf(into, "%.200s", cstr(kube_str(first, "what", NULL)));
    if (json_array_size(j->changes) > 1)
        buf_puts(into, ", and others");
    buf_puts(into, "; make a new plan");
}

static void plan_refuse_changed(struct plan_job *j)
{
    json_t *changes = j->changes ? json_incref(j->changes) : json_array(), *more = json_object();
    struct api_error error = {0};
    BUF_AUTO(text, sizeof(error.detail));

    plan_explain_change(j, &text);
    if (buf_failed(&text) < 0) /* a limit of each part keeps it below */
        memory_exhausted(text.n);
    (void)api_error_set(&error, 409, "%.*s", STR_ARG(buf_str(&text)));
    kube_set(more, "changed", changes);
    call_refuse(j->call, &error, more);
}

static void plan_compare(struct plan_job *j)
{
    const struct kept_plan *p = plan_find(j->a, j->plan->hash);

    if (!p)
        call_fail(j->call, 404, "planHash", "the plan has expired; make a new plan");
    else if (j->error < 0 || json_array_size(j->changes))
        plan_refuse_changed(j);
    else
        assist_write(j->a, j->call, request_namespace(p->request), p);
}

static void plan_on_run(struct job *job)
{
    CLEANUP(cleanup_plan_job_free) struct plan_job *j = CONTAINER_OF(job, struct plan_job, job);

    j->a->queued[plan_lane_of(j->mode)]--;
    if (!j->has_run || j->a->is_ending)
        call_fail(j->call, 503, NULL, "the optimizer is shutting down");
    else if (j->error < 0 && !j->api_error.status)
        call_fail(j->call, 500, NULL, "the answer is too large");
    else if (j->mode == PLAN_COMPARE)
        plan_compare(j);
    else if (j->error < 0)
        call_refuse(j->call, &j->api_error, NULL);
    else
        plan_finish(j);
}

/* ---- From the request to the worker ---- */

static void plan_on_read(void *arg, struct snapshot *s, const struct api_error *failure)
{
    CLEANUP(cleanup_plan_job_free) struct plan_job *j = arg;
    struct worker *worker = j->a->worker[plan_lane_of(j->mode)];
    struct api_error error = {0};

    j->hub = s;
    if (s) {
        worker_start(worker, &TAKE_PTR(j)->job);
        return;
    }
    j->a->queued[plan_lane_of(j->mode)]--;
    if (j->mode == PLAN_ONLY)
        error = *failure;
    else
        (void)api_error_set(&error, failure->status, "%.950s; nothing is changed", failure->detail);
    call_refuse(j->call, &error, NULL);
}

static void plan_start(struct assist *a, struct call *c, json_t *request, enum plan_mode mode,
                       const struct kept_plan *compared)
{
    unsigned *queued = &a->queued[plan_lane_of(mode)];
    int64_t deadline_ms = a->o.deadline_ms;
    struct plan_job *j;

    if (a->is_ending || *queued >= PLAN_MAX_QUEUED) {
        call_fail(c, 503, NULL, "%u plans are being made or wait; try again", *queued);
        return;
    }
    if (!call_deadline(c, &deadline_ms) ||
        (mode != PLAN_ONLY && !assist_writable(a, c, request_namespace(request))))
        return;
    j = xmalloc(sizeof(*j));
    *j = (struct plan_job){.job = {.run = plan_run, .done = plan_on_run},
                           .a = a,
                           .call = c,
                           .mode = mode,
                           .plan = xmalloc(sizeof(*j->plan)),
                           .deadline_ms = deadline_ms,
                           .id = (uint32_t)rand_u64()};
    /* The call's own arguments become the plan's: two threads must not give back references to one tree. */
    *j->plan = (struct kept_plan){.request = request == c->input ? TAKE_PTR(c->input) : json_incref(request),
                                  .request_bytes = c->input_bytes,
                                  .basis = compared ? json_incref(compared->basis) : NULL};
    (void)snprintf(j->plan->hash, PLAN_HASH_BYTES, "%s", compared ? compared->hash : "");
    (*queued)++;
    reader_read(a->reader,
                &(struct reader_query){.kinds = KIND_BIT(KINDS) - 1 - KIND_BIT(KIND_SCORERS) -
                                                KIND_BIT(KIND_BINDINGS),
                                       .namespace = request_namespace(request),
                                       .score = request_score(request)},
                plan_on_read, j);
}

void assist_plan(void *a, struct call *c)
{
    plan_start(a, c, c->input, PLAN_ONLY, NULL);
}

void assist_optimize(void *a, struct call *c)
{
    plan_start(a, c, c->input, kube_bool(c->input, "dryRun", NULL) ? PLAN_ONLY : PLAN_AND_APPLY, NULL);
}

void assist_apply(void *a, struct call *c)
{
    const struct kept_plan *p = plan_find(a, cstr(call_text(c, "planHash")));

    if (!p)
        call_fail(c, 404, "planHash",
                  "there is no such plan: plans are kept for 15 minutes; make a new plan");
    else if (json_array_size(p->objects) == 0)
        call_fail(c, 409, "planHash",
                  "the plan places no workload; POST /reset deletes what earlier plans made");
    else
        plan_start(a, c, p->request, PLAN_COMPARE, p);
}

void assist_reset(void *a, struct call *c)
{
    assist_write(a, c, request_namespace(c->input), NULL);
}

/* ---- What the page shows ---- */

/* GET /api/v1/status is asked for every few seconds, GET /api/v1/plan when its member `plan` changes. The
 * plan's "answer" is that of POST /plan. */

static void assist_reply_status(void *arg, const struct httpd_request *rq, struct httpd_reply *reply)
{
    BUF_AUTO(body, STATUS_MAX_BYTES);
    const struct assist *a = arg;
    const struct kept_plan *plan = TAILQ_FIRST(&a->plans);

    (void)rq;
    buf_puts(&body, "{");
    member_text(&body, "role", "optimizer");
    member_time(&body, "now", loop_wall(a->o.loop).ms);
    member_time(&body, "startedAt", metrics_process_start_ms());
    member_build(&body);
    member_list(&body, "writeNamespaces");
    for (size_t i = 0; i < a->o.n_write_namespaces; i++) {
        member_item(&body);
        buf_put_json(&body, str_of(a->o.write_namespaces[i]));
    }
    buf_puts(&body, "]");
    member_number(&body, "deadlineSeconds", (double)a->o.deadline_ms / 1000);
    member_bool(&body, "synced", reader_is_synced(a->reader));
    member_object(&body, "troubles");
    for (enum kind k = 0; k < KINDS; k++)
        member_text(&body, kind_info[k].resource->plural, reader_error(a->reader, k));
    buf_puts(&body, "}");
    if (member_object_if(&body, "plan", plan != NULL)) {
        member_text(&body, "hash", plan->hash);
        member_time(&body, "at", plan->at.ms);
        member_time(&body, "appliedAt", plan->applied_at.ms);
        buf_puts(&body, "}");
    }
    member_web_config(&body, site_access(a->site));
    buf_puts(&body, "}");
    api_reply(reply, buf_failed(&body), "", &body);
}

static json_t *web_time(unix_ms at)
{
    char when[32];

    unix_ms_format(at, when);
    return at.ms ? json_string(when) : json_null();
}

/* ---- The server ---- */

static const struct operation web_operations[] = {
    {"get_addonplacementscores_addonplacementscores_get", assist_list, scores_fill,
     KIND_BIT(KIND_SCORES) | KIND_BIT(KIND_SCORERS), .cluster = "namespace", .score = "name"},
    {"policies_list", assist_list, policies_fill,
     KIND_BIT(KIND_POLICIES) | KIND_BIT(KIND_CLUSTERS) | KIND_BIT(KIND_BINDINGS) | KIND_BIT(KIND_DECISIONS),
     .namespace = "namespace"},
    {"workloads_list", assist_list, workloads_fill, KIND_BIT(KIND_WORKLOADS) | KIND_BIT(KIND_DECISIONS),
     .namespace = "namespace"},
    {"scorers_list", assist_list, scorers_fill, KIND_BIT(KIND_SCORERS), .namespace = "namespace"},
    {"scorer_explain", assist_list, explain_fill,
     KIND_BIT(KIND_SCORERS) | KIND_BIT(KIND_CLUSTERS) | KIND_BIT(KIND_SCORES) | KIND_BIT(KIND_WORK),
     .cluster = "cluster"},
    {"plan", .run = assist_plan},
    {"apply", .run = assist_apply},
    {"optimize_optimize_post", .run = assist_optimize},
    {"reset_reset_post", .run = assist_reset},
};

static bool assist_is_ready(void *arg, struct buf *ret_why)
{
    const struct snapshot_reader *reader = ((const struct assist *)arg)->reader;

    if (reader_is_synced(reader))
        return true;
    for (enum kind k = 0; k < KINDS; k++)
        if (reader_error(reader, k))
            buf_printf(ret_why, "%s: %s\n", kind_info[k].resource->plural, reader_error(reader, k));
    return false;
}

static json_t *web_plan(const struct kept_plan *p)
{
    json_t *plan = json_object();

    kube_set(plan, "at", web_time(p->at));
    kube_set(plan, "appliedAt", web_time(p->applied_at));
    kube_set(plan, "seconds", json_real(p->seconds));
    kube_set(plan, "request", json_incref(p->request));
    kube_set(plan, "answer", json_incref(p->answer));
    return plan;
}

static void assist_reply_plan(void *arg, const struct httpd_request *rq, struct httpd_reply *reply)
{
    const struct assist *a = arg;
    const struct kept_plan *p = TAILQ_FIRST(&a->plans);

    (void)rq;
    if (p)
        api_answer(a->api, reply, web_plan(p));
    else
        httpd_reply_text(reply, 404, STR("nothing has been planned yet\n"));
}

static void assist_set_metrics(void *arg)
{
    reader_set_metrics(((const struct assist *)arg)->reader, ((const struct assist *)arg)->o.metrics);
}

int assist_serve(struct site **ret, struct assist *a, struct site_options *o, bool allow_writes,
                 char **ret_why)
{
    const struct api_options api = {
        .loop = o->access.loop,
        .metrics = o->access.metrics,
        .schemas = assist_schemas,
        .operations = web_operations,
        .n_operations = ARRAY_SIZE(web_operations),
        .arg = a,
        .allow_writes = allow_writes,
        .needs_token = o->access.guard != NULL,
    };
    static const char *const pages[] = {"/", NULL};
    const struct httpd_route own[] = {
        {.method = "GET", .path = "/api/v1/status", .fn = assist_reply_status, .arg = a},
        {.method = "GET", .path = "/api/v1/plan", .fn = assist_reply_plan, .arg = a},
    };
    struct httpd_route routes[ARRAY_SIZE(own) + ARRAY_SIZE(web_operations) + API_OWN_ROUTES]; /* are copied */
    int r = api_new(&a->api, &api);

    if (r < 0)
        return r;
    memcpy(routes, own, sizeof(own));
    o->routes = routes;
    o->n_routes = ARRAY_SIZE(own) + api_routes(a->api, routes + ARRAY_SIZE(own));
    o->pages = pages;
    o->before_metrics = assist_set_metrics;
    o->is_ready = assist_is_ready;
    o->access.arg = a;
    r = site_start(ret, o, ret_why);
    if (r < 0)
        return r;
    a->site = *ret;
    if (site_is_open(a->site))
        log_warn("everyone who reaches this address can plan and apply: set --token-file, "
                 "--web.kubernetes-auth or --web.config.file");
    return 0;
}

/* ---- Beginning and end ---- */

int assist_new(struct assist **ret, const struct assist_options *o)
{
    CLEANUP(cleanup_assist_free) struct assist *a = xcalloc(1, sizeof(*a));
    int r;

    a->o = *o;
    TAILQ_INIT(&a->plans);
    r = worker_new(&a->worker[LANE_SOLVE], o->loop) ?: worker_new(&a->worker[LANE_COMPARE], o->loop);
    if (r < 0)
        return r;
    a->reader = reader_new(o->loop, o->kube);
    apply_count_from_zero(o->metrics);
    plan_count_from_zero(o->metrics);
    *ret = TAKE_PTR(a);
    return 0;
}

void assist_end(struct assist *a)
{
    if (!a || a->is_ending)
        return;
    a->is_ending = true;
    atomic_store(&a->cancel, true);
    a->reader = reader_free(a->reader);
    for (size_t i = 0; i < ARRAY_SIZE(a->worker); i++)
        a->worker[i] = worker_free(a->worker[i]);
    if (a->writer)
        call_fail(a->writer_call, 503, NULL,
                  "the optimizer is shutting down while it writes; the next run completes or clears what is "
                  "there");
    a->writer = apply_free(a->writer);
    api_end(a->api);
}

struct assist *assist_free(struct assist *a)
{
    if (!a)
        return NULL;
    assist_end(a);
    json_decref(a->writing);
    a->api = api_free(a->api);
    while (!TAILQ_EMPTY(&a->plans))
        plan_drop(a, TAILQ_FIRST(&a->plans));
    free(a);
    return NULL;
}

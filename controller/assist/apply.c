/* Owns the steps of one writing, their calls and the objects that it has listed. On the loop. No step is
 * started after a failure, and none of a phase before all of the phase before it have ended. */
#include "controller/assist/apply.h"

#include "controller/assist/api_error.h"
#include "controller/assist/kind.h"
#include "controller/assist/list.h"
#include "controller/assist/reader.h"
#include "controller/assist/snapshot.h"
#include "controller/kube/answer.h"
#include "controller/kube/client.h"
#include "controller/kube/json.h"
#include "controller/kube/request.h"
#include "controller/kube/resource.h"
#include "controller/kube/verdict.h"
#include "exporter/base/alloc.h"
#include "exporter/base/clock.h"
#include "exporter/base/invariant.h"
#include "exporter/base/log.h"
#include "exporter/base/loop.h"
#include "exporter/metric/metrics.h"

enum {
    APPLY_CALLS = 8, /* at once */
    DELETIONS = 3,   /* the first phase of deletions, one for each kind; wanted objects have up to three */
    APPLY_MS = 60 * 1000, /* for all, and */
    APPLY_STEP_MS = 50,   /* for each step, to check and again to write it */
};

enum step_state { STEP_PENDING, STEP_WRITTEN, STEP_UNKNOWN /* no answer to the write */ };

struct step {
    struct apply *apply;
    struct kube_call *call;  /* NULL: none is under way */
    enum kube_method method; /* KUBE_CREATE, KUBE_MERGE_PATCH, KUBE_DELETE */
    enum kind kind;
    unsigned phase; /* all of a phase end before the next begins */
    const char *name;
    json_t *body; /* to send, but for the options of a deletion's check */
    enum step_state state;
};

struct apply {
    struct apply_options o;
    json_t *objects;      /* owned; NULL: a reset */
    struct snapshot *hub; /* the objects that have the label */
    bool is_writing;      /* after the check */
    /* In order of writing: Placements precede the bindings and workloads that refer to them, and are deleted
     * after them. */
    struct step *steps;
    size_t n, next; /* next: to start */
    unsigned active;
    struct timer deadline;
    struct api_error failure; /* the first one */
    json_t *conflicts;        /* "Kind/name" of objects without the label */
    json_t *failed;           /* of a reset: "Kind/name: why" */
};

static void apply_pump(struct apply *ap);

struct apply *apply_free(struct apply *ap)
{
    if (!ap)
        return NULL;
    loop_timer_clear(ap->o.loop, &ap->deadline);
    for (size_t i = 0; i < ap->n; i++) {
        (void)kube_cancel(ap->steps[i].call);
        json_decref(ap->steps[i].body);
    }
    free(ap->steps);
    (void)snapshot_free(ap->hub);
    json_decref(ap->objects);
    json_decref(ap->conflicts);
    json_decref(ap->failed);
    free(ap);
    return NULL;
}

/* ---- Steps ---- */

/* The body is taken. */
static void step_add(struct apply *ap, enum kube_method method, enum kind kind, unsigned phase,
                     const char *name, json_t *body)
{
    ap->steps[ap->n++] = (struct step){
        .apply = ap, .method = method, .kind = kind, .phase = phase, .name = name, .body = body};
}

/* A merge patch (RFC 7386) to the spec, label and annotation: what others have added stays, and so does the
 * status. The uid makes the API server refuse if the object has been replaced since it was listed. */
static json_t *step_patch(const json_t *before, const json_t *object)
{
    json_t *patch = json_object(), *metadata = kube_set_object(patch, "metadata");

    kube_set_str(metadata, "uid", kube_uid(before));
    kube_set_str(kube_set_object(metadata, "labels"), GENERATED_LABEL, "true");
    kube_set_str(kube_set_object(metadata, "annotations"), PLAN_ANNOTATION,
                 cstr(kube_annotation(object, PLAN_ANNOTATION)));
    kube_set(patch, "spec", json_incref(json_object_get(object, "spec")));
    return patch;
}

static json_t *step_deletion(const json_t *object)
{
    json_t *options = json_object();

    kube_set_str(options, "apiVersion", "v1");
    kube_set_str(options, "kind", "DeleteOptions");
    kube_set_str(kube_set_object(options, "preconditions"), "uid", kube_uid(object));
    return options;
}

/* From what is wanted: Placements of clusters, bindings, Placements of workloads. */
static void steps_add_wanted(struct apply *ap, json_t *wanted)
{
    json_t *object, *before;
    bool was_binding = false;
    unsigned phase = 0;
    size_t i;

    json_array_foreach(ap->objects, i, object)
    {
        bool is_binding = strcmp(cstr(kube_str(object, "kind", NULL)), kube_placementbindings.kind) == 0;
        enum kind kind = is_binding ? KIND_BINDINGS : KIND_PLACEMENTS;

        before = snapshot_get(ap->hub, kind, ap->o.namespace, kube_name(object));
        phase += is_binding != was_binding;
        was_binding = is_binding;
        if (before)
            (void)json_object_set_new(wanted, kube_uid(before), json_true());
        if (!before)
            step_add(ap, KUBE_CREATE, kind, phase, kube_name(object), json_incref(object));
        else if (!is_binding) /* one that is there is of an earlier attempt: their names are the plan's own */
            step_add(ap, KUBE_MERGE_PATCH, kind, phase, kube_name(object), step_patch(before, object));
    }
}

static void steps_add_old(struct apply *ap, const json_t *wanted, enum kind kind)
{
    const json_t *o;
    size_t at = 0;

    while ((o = snapshot_next(ap->hub, kind, &at)))
        if (!json_object_get(wanted, kube_uid(o)))
            step_add(ap, KUBE_DELETE, kind, DELETIONS + kind, kube_name(o), step_deletion(o));
}

/* ---- The end ---- */

/* {"created", "updated", "deleted", "unknown"}, the last only after a failure; of a reset {"deleted",
 * "failed"}. */
static json_t *apply_written(const struct apply *ap)
{
    static const char *const words[] = {
        [KUBE_CREATE] = "created", [KUBE_MERGE_PATCH] = "updated", [KUBE_DELETE] = "deleted"};
    json_t *all = ap->objects ? json_pack("{s:[], s:[], s:[]}", "created", "updated", "deleted")
                              : json_pack("{s:[], s:O}", "deleted", "failed", ap->failed);

    if (ap->failure.status)
        (void)json_object_set_new(all, "unknown", json_array());
    for (size_t i = 0; i < ap->n; i++) {
        const struct step *s = &ap->steps[i];

        if (s->state != STEP_PENDING)
            list_note(json_object_get(all, s->state == STEP_WRITTEN ? words[s->method] : "unknown"), "%s/%s",
                      kind_info[s->kind].resource->kind, s->name);
    }
    return all;
}

static void apply_end(struct apply *ap)
{
    json_auto_t *all = apply_written(ap), *more = NULL;
    size_t written = 0, unknown = json_array_size(json_object_get(all, "unknown"));
    struct api_error error = {0};

    loop_timer_clear(ap->o.loop, &ap->deadline);
    if (!ap->failure.status) {
        log_info(ap->objects ? "wrote the plan" : "deleted what plans had made",
                 L_STR("namespace", ap->o.namespace), L_INT("writes", ap->n));
        ap->o.done(ap->o.arg, NULL, all);
        return;
    }
    for (size_t i = 0; i < ap->n; i++)
        written += ap->steps[i].state == STEP_WRITTEN;
    if (written + unknown == 0)
        (void)api_error_set(&error, ap->failure.status, "%.700s; nothing is changed", ap->failure.detail);
    else
        (void)api_error_set(&error, ap->failure.status,
                            "%.700s; %zu of %zu writes succeeded and %zu more may have: apply again to "
                            "complete them, or POST /reset to delete what plans made",
                            ap->failure.detail, written, ap->n, unknown);
    more = json_pack("{s:O*, s:O*}", "written", written + unknown ? all : NULL, "conflicts",
                     json_array_size(ap->conflicts) ? ap->conflicts : NULL);
    log_warn("writing the plan failed", L_STR("namespace", ap->o.namespace), L_STR("err", error.detail));
    ap->o.done(ap->o.arg, &error, json_object_size(more) ? more : NULL);
}

/* Objects of the same names exist that no plan made. */
static void apply_fail_conflicts(struct apply *ap)
{
    const char *first = json_string_value(json_array_get(ap->conflicts, 0));
    const char *others = json_array_size(ap->conflicts) > 1 ? " and others" : "";

    (void)api_error_set(&ap->failure, 409,
                        "%.120s%s already exists and was not made by a plan (it has no label " GENERATED_LABEL
                        "=true): delete or rename it",
                        first, others);
}

/* All calls to check, or to write, have ended. */
static void apply_next(struct apply *ap)
{
    invariant(ap->active == 0);
    if (json_array_size(ap->conflicts) && !ap->failure.status)
        apply_fail_conflicts(ap);
    if (ap->is_writing || ap->failure.status) {
        apply_end(ap);
        return;
    }
    ap->is_writing = true;
    ap->next = 0;
    apply_pump(ap);
}

/* ---- Calls ---- */

void apply_count_from_zero(struct metrics *m)
{
    for (enum kube_verdict v = 0; v < KUBE_VERDICTS; v++) {
        metric_add(m, METRIC_OPTIMIZER_WRITES, LV(kube_placements.kind, kube_verdict_word(v)), 0);
        metric_add(m, METRIC_OPTIMIZER_WRITES, LV(kube_placementbindings.kind, kube_verdict_word(v)), 0);
    }
}

static void apply_on_step(void *arg, struct kube_answer *a)
{
    struct step *s = arg;
    struct apply *ap = s->apply;
    const char *kind = kind_info[s->kind].resource->kind;
    /* A deletion of what is gone has succeeded. */
    bool ok = a->verdict == KUBE_OK || (s->method == KUBE_DELETE && a->verdict == KUBE_NOT_FOUND);

    s->call = NULL;
    ap->active--;
    /* A check that is refused is a write that is refused. */
    if (ap->is_writing || a->verdict != KUBE_OK)
        metric_add(ap->o.metrics, METRIC_OPTIMIZER_WRITES, LV(kind, kube_verdict_word(a->verdict)), 1);
    if (ap->is_writing && ok)
        s->state = STEP_WRITTEN;
    else if (ap->is_writing && a->verdict == KUBE_RETRY)
        s->state = STEP_UNKNOWN;
    if (!ap->is_writing && a->verdict == KUBE_EXISTS)
        list_note(ap->conflicts, "%s/%s", kind, s->name);
    else if (!ok && !ap->objects)
        list_note(ap->failed, "%s/%s: %s", kind, s->name, a->why);
    else if (!ok && !ap->failure.status)
        (void)api_error_set(&ap->failure, reader_status(a->verdict), "%s", a->why);
    apply_pump(ap);
}

static void apply_start_step(struct apply *ap, struct step *s)
{
    bool deletes = s->method == KUBE_DELETE;
    json_auto_t *body = json_copy(s->body);
    const struct kube_request rq = {
        .method = s->method,
        .resource = kind_info[s->kind].resource,
        .namespace = ap->o.namespace,
        .name = s->method == KUBE_CREATE ? NULL : s->name,
        .body = body,
        .query = deletes ? NULL
                 : ap->is_writing
                     ? "fieldManager=dynamic-scoring-optimizer&fieldValidation=Strict"
                     : "fieldManager=dynamic-scoring-optimizer&fieldValidation=Strict&dryRun=All",
    };

    if (!ap->is_writing && deletes)
        (void)json_object_set_new(body, "dryRun", json_pack("[s]", "All"));
    s->call = kube_start(ap->o.kube, &rq, apply_on_step, s);
    ap->active++;
}

/* To write, phases do not overlap. */
static void apply_pump(struct apply *ap)
{
    while (ap->active < APPLY_CALLS && !ap->failure.status && ap->next < ap->n &&
           (ap->active == 0 || !ap->is_writing || ap->steps[ap->next].phase == ap->steps[ap->next - 1].phase))
        apply_start_step(ap, &ap->steps[ap->next++]);
    if (ap->active == 0)
        apply_next(ap);
}

/* The API server is too slow. What was sent may have been done. */
static void apply_on_deadline(struct timer *t)
{
    struct apply *ap = CONTAINER_OF(t, struct apply, deadline);

    for (struct step *s = ap->steps; s < ap->steps + ap->n; s++)
        if (s->call) {
            s->call = kube_cancel(s->call);
            s->state = ap->is_writing ? STEP_UNKNOWN : STEP_PENDING;
        }
    if (!ap->failure.status)
        (void)api_error_set(&ap->failure, 504, "the hub's API server did not answer in time");
    apply_end(ap);
}

/* ---- The beginning ---- */

static void apply_on_read(void *arg, struct snapshot *s, const struct api_error *failure)
{
    struct apply *ap = arg;
    json_auto_t *wanted = json_object();

    ap->hub = s;
    if (failure) {
        ap->failure = *failure;
        apply_end(ap);
        return;
    }
    ap->steps =
        xcalloc(json_array_size(ap->objects) + s->lists[KIND_PLACEMENTS].n + s->lists[KIND_BINDINGS].n + 1,
                sizeof(*ap->steps));
    steps_add_wanted(ap, wanted);
    steps_add_old(ap, wanted, KIND_BINDINGS);
    steps_add_old(ap, wanted, KIND_PLACEMENTS);
    loop_timer_set(ap->o.loop, &ap->deadline,
                   mono_add(loop_now(ap->o.loop), APPLY_MS + 2 * APPLY_STEP_MS * (int64_t)ap->n));
    apply_pump(ap);
}

void apply_start(struct apply **ret, const struct apply_options *o, struct snapshot_reader *r)
{
    const struct reader_query q = {.kinds = KIND_BIT(KIND_PLACEMENTS) | KIND_BIT(KIND_BINDINGS),
                                   .namespace = o->namespace,
                                   .label_selector = GENERATED_LABEL "=true"};
    struct apply *ap = xmalloc(sizeof(*ap));

    *ap = (struct apply){.o = *o,
                         .objects = json_incref(o->objects),
                         .is_writing = !o->objects, /* nothing to check */
                         .deadline.fn = apply_on_deadline,
                         .conflicts = json_array(),
                         .failed = json_array()};
    *ret = ap;
    reader_read(r, &q, apply_on_read, ap);
}

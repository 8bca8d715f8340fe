#include "controller/assist/state/apply.h"

#include "controller/assist/api/operation.h"
#include "controller/assist/rules/model.h"
#include "controller/assist/state/lister.h"
#include "controller/kube/client.h"
#include "controller/kube/json.h"
#include "exporter/base/clock.h"
#include "exporter/base/log.h"
#include "exporter/base/loop.h"
#include "exporter/base/text.h"

#include <stdarg.h>
#include <stdio.h>

enum {
    APPLY_CALLS = 8,      /* at once */
    APPLY_MS = 60 * 1000, /* for all, and */
    APPLY_STEP_MS = 50,   /* for each step, to check and again to write it */
    KEY_BYTES = 320,
    REMARK_BYTES = 256, /* of `detail`, for what is written */
};

enum apply_mode { APPLY_LISTING, APPLY_CHECKING, APPLY_WRITING };

/* In the order of writing: Placements exist before the bindings and workloads that refer to them, and are
 * deleted after them. */
enum phase { NEW_PLACEMENTS, NEW_BINDINGS, WORKLOADS, OLD_BINDINGS, OLD_PLACEMENTS };

enum step_state { STEP_PENDING, STEP_WRITTEN, STEP_UNKNOWN /* no answer to the write */ };

struct step {
    enum kube_method method; /* KUBE_CREATE, KUBE_MERGE_PATCH, KUBE_DELETE */
    const struct kube_resource *resource;
    const char *name;
    json_t *body;     /* to send, but for the options of a deletion's check */
    enum phase phase; /* all of a phase end before the next begins */
    enum step_state state;
};

struct apply_slot {
    struct apply *apply;
    struct kube_call *call; /* NULL: free */
    size_t step;
};

struct apply {
    struct apply_options o;
    char *namespace;
    enum apply_mode mode;
    json_t *owned; /* {"Placement/x": object}: those that have the label */
    struct step *steps;
    size_t n, next; /* next: to start */
    unsigned active;
    struct lister *lister;
    size_t listed; /* of apply_resources: the one that is listed, or all */
    struct apply_slot slots[APPLY_CALLS];
    struct timer deadline;
    struct outcome end; /* set with its status */
    json_t *conflicts;  /* "Kind/name" of objects without the label */
    json_t *failed;     /* of a reset: "Kind/name: why" */
};

static const struct kube_resource *const apply_resources[] = {&kube_placements, &kube_placementbindings};

static void apply_pump(struct apply *ap);

/* The first failure counts. */
static void PRINTF_LIKE(3, 4) apply_fail(struct apply *ap, unsigned status, const char *fmt, ...)
{
    char text[1024];
    va_list args;

    if (ap->end.status)
        return;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    ap->end.status = status;
    text_line(ap->end.detail, sizeof(ap->end.detail) - REMARK_BYTES, str_of(text));
}

struct apply *apply_free(struct apply *ap)
{
    if (!ap)
        return NULL;
    for (size_t i = 0; i < APPLY_CALLS; i++)
        (void)kube_cancel(ap->slots[i].call);
    (void)lister_free(ap->lister);
    loop_timer_clear(ap->o.loop, &ap->deadline);
    for (size_t i = 0; i < ap->n; i++)
        json_decref(ap->steps[i].body);
    free(ap->steps);
    json_decref(ap->owned);
    json_decref(ap->o.objects);
    json_decref(ap->conflicts);
    json_decref(ap->failed);
    json_decref(ap->end.body);
    free(ap->namespace);
    free(ap);
    return NULL;
}
DEFINE_CLEANUP(struct apply, apply_free)

/* ---- Steps ---- */

static const struct kube_resource *resource_of(const json_t *object)
{
    const char *kind = kube_str(object, "kind", NULL);

    return kind && strcmp(kind, kube_placementbindings.kind) == 0 ? &kube_placementbindings
                                                                  : &kube_placements;
}

static void step_key(const struct kube_resource *resource, const char *name, char out[KEY_BYTES])
{
    (void)snprintf(out, KEY_BYTES, "%s/%s", resource->kind, name);
}

/* A merge patch (RFC 7386) to the spec, label and annotation: what others have added stays, and so does the
 * status. The uid makes the API server refuse if the object has been replaced since it was listed. */
static json_t *step_patch(const json_t *before, const json_t *object)
{
    json_t *spec = json_deep_copy(json_object_get(object, "spec")), *v;
    const char *key;

    json_object_foreach(json_object_get(before, "spec"), key, v)
    {
        if (!json_object_get(spec, key))
            (void)json_object_set_new(spec, key, json_null());
    }
    return json_pack("{s:{s:s, s:{s:s}, s:{s:s}}, s:o}", "metadata", "uid", kube_uid(before), "labels",
                     GENERATED_LABEL, "true", "annotations", PLAN_ANNOTATION,
                     cstr(kube_annotation(object, PLAN_ANNOTATION)), "spec", spec);
}

static json_t *step_delete_options(const json_t *before)
{
    return json_pack("{s:s, s:s, s:{s:s}}", "apiVersion", "v1", "kind", "DeleteOptions", "preconditions",
                     "uid", kube_uid(before));
}

static void steps_add_wanted(struct apply *ap, json_t *object, bool *had_binding, json_t *wanted)
{
    struct step s = {.resource = resource_of(object), .name = kube_name(object), .method = KUBE_CREATE};
    const json_t *before;
    char key[KEY_BYTES];

    step_key(s.resource, s.name, key);
    before = json_object_get(ap->owned, key);
    (void)json_object_set_new(wanted, key, json_true());
    if (s.resource == &kube_placementbindings) {
        *had_binding = true;
        s.phase = NEW_BINDINGS;
        if (before) /* by an earlier attempt: their names are unique to the plan */
            return;
    } else {
        s.phase = *had_binding ? WORKLOADS : NEW_PLACEMENTS;
    }
    if (before)
        s.method = KUBE_MERGE_PATCH;
    s.body = before ? step_patch(before, object) : json_incref(object);
    ap->steps[ap->n++] = s;
}

static void steps_add_old(struct apply *ap, const json_t *wanted, const struct kube_resource *resource,
                          enum phase phase)
{
    const char *key;
    json_t *object;

    json_object_foreach(ap->owned, key, object)
    {
        if (resource_of(object) == resource && !json_object_get(wanted, key))
            ap->steps[ap->n++] = (struct step){.resource = resource,
                                               .name = kube_name(object),
                                               .method = KUBE_DELETE,
                                               .body = step_delete_options(object),
                                               .phase = phase};
    }
}

/* From what is wanted and what is there. */
static void steps_make(struct apply *ap)
{
    json_auto_t *wanted = json_object();
    bool had_binding = false;
    json_t *object;
    size_t i;

    ap->steps = xcalloc(json_array_size(ap->o.objects) + json_object_size(ap->owned) + 1, sizeof(*ap->steps));
    json_array_foreach(ap->o.objects, i, object)
    {
        steps_add_wanted(ap, object, &had_binding, wanted);
    }
    steps_add_old(ap, wanted, &kube_placementbindings, OLD_BINDINGS);
    steps_add_old(ap, wanted, &kube_placements, OLD_PLACEMENTS);
}

/* ---- The end ---- */

/* {"created", "updated", "deleted", "unknown"}, the last only after a failure; of a reset {"deleted",
 * "failed"}. */
static json_t *apply_written(const struct apply *ap)
{
    static const char *const words[] = {
        [KUBE_CREATE] = "created", [KUBE_MERGE_PATCH] = "updated", [KUBE_DELETE] = "deleted"};
    json_t *all = ap->o.objects ? json_pack("{s:[], s:[], s:[]}", "created", "updated", "deleted")
                                : json_pack("{s:[], s:O}", "deleted", "failed", ap->failed);

    if (ap->end.status)
        (void)json_object_set_new(all, "unknown", json_array());
    for (size_t i = 0; i < ap->n; i++) {
        const struct step *s = &ap->steps[i];

        if (s->state != STEP_PENDING)
            list_note(json_object_get(all, s->state == STEP_WRITTEN ? words[s->method] : "unknown"), "%s/%s",
                      s->resource->kind, s->name);
    }
    return all;
}

/* What an apply that failed has left on the hub. */
static void apply_note_written(struct apply *ap)
{
    size_t n = strlen(ap->end.detail), written = 0, unknown = 0;
    char *to = ap->end.detail + n;

    for (size_t i = 0; i < ap->n; i++) {
        written += ap->steps[i].state == STEP_WRITTEN;
        unknown += ap->steps[i].state == STEP_UNKNOWN;
    }
    if (written + unknown == 0)
        (void)snprintf(to, sizeof(ap->end.detail) - n, "; nothing is changed");
    else
        (void)snprintf(
            to, sizeof(ap->end.detail) - n,
            "; %zu of %zu writes succeeded and %zu more may have: apply again to complete them, or "
            "POST /reset to delete what plans made",
            written, ap->n, unknown);
    if (written + unknown || json_array_size(ap->conflicts))
        ap->end.body = json_pack("{s:o*, s:O*}", "written", written + unknown ? apply_written(ap) : NULL,
                                 "conflicts", json_array_size(ap->conflicts) ? ap->conflicts : NULL);
}

static void apply_end(struct apply *ap)
{
    loop_timer_clear(ap->o.loop, &ap->deadline);
    if (ap->end.status) {
        apply_note_written(ap);
        log_warn("writing the plan failed", L_STR("namespace", ap->namespace), L_STR("err", ap->end.detail));
    } else {
        ap->end.body = apply_written(ap);
        ap->end.status = 200;
        log_info(ap->o.objects ? "wrote the plan" : "deleted what plans had made",
                 L_STR("namespace", ap->namespace), L_INT("writes", ap->n));
    }
    ap->o.done(ap->o.arg, &ap->end);
}

/* All calls of the mode have ended. */
static void apply_next_mode(struct apply *ap)
{
    size_t conflicts = json_array_size(ap->conflicts);

    if (ap->mode == APPLY_LISTING && !ap->end.status)
        steps_make(ap);
    if (conflicts)
        apply_fail(ap, 409,
                   "%.120s%s already exists and was not made by a plan (it has no label " GENERATED_LABEL
                   "=true): delete or rename it",
                   json_string_value(json_array_get(ap->conflicts, 0)), conflicts > 1 ? " and others" : "");
    if (ap->mode == APPLY_WRITING || ap->end.status) {
        apply_end(ap);
        return;
    }
    ap->mode = ap->mode == APPLY_LISTING && ap->o.objects ? APPLY_CHECKING : APPLY_WRITING;
    ap->next = 0;
    /* It is set already, and so it can be moved. */
    loop_timer_set(ap->o.loop, &ap->deadline,
                   mono_add(loop_now(ap->o.loop), APPLY_MS + APPLY_STEP_MS * (int64_t)ap->n));
    apply_pump(ap);
}

/* ---- Calls ---- */

void apply_count_from_zero(struct metrics *m)
{
    for (size_t i = 0; i < ARRAY_SIZE(apply_resources); i++)
        for (enum kube_verdict v = 0; v < KUBE_VERDICTS; v++)
            metric_add(m, METRIC_OPTIMIZER_WRITES, LV(apply_resources[i]->kind, kube_verdict_word(v)), 0);
}

/* A check that is refused is a write that is refused. */
static void apply_count(const struct apply *ap, const struct step *s, const struct kube_answer *a)
{
    if ((ap->mode != APPLY_CHECKING || a->verdict != KUBE_OK) && ap->o.metrics)
        metric_add(ap->o.metrics, METRIC_OPTIMIZER_WRITES,
                   LV(s->resource->kind, kube_verdict_word(a->verdict)), 1);
}

static void apply_on_step(void *arg, struct kube_answer *a)
{
    struct apply_slot *slot = arg;
    struct apply *ap = slot->apply;
    struct step *s = &ap->steps[slot->step];
    /* A deletion of what is gone has succeeded. */
    bool ok = a->verdict == KUBE_OK || (s->method == KUBE_DELETE && a->verdict == KUBE_NOT_FOUND);

    slot->call = NULL;
    ap->active--;
    apply_count(ap, s, a);
    if (ap->mode == APPLY_WRITING && ok)
        s->state = STEP_WRITTEN;
    else if (ap->mode == APPLY_WRITING && a->verdict == KUBE_RETRY)
        s->state = STEP_UNKNOWN;
    if (ap->mode == APPLY_CHECKING && a->verdict == KUBE_EXISTS)
        list_note(ap->conflicts, "%s/%s", s->resource->kind, s->name);
    else if (!ok && ap->o.objects)
        apply_fail(ap, outcome_status(a->verdict), "%s", a->why);
    else if (!ok)
        list_note(ap->failed, "%s/%s: %s", s->resource->kind, s->name, a->why);
    apply_pump(ap);
}

static struct apply_slot *apply_free_slot(struct apply *ap)
{
    for (size_t i = 0; i < APPLY_CALLS; i++)
        if (!ap->slots[i].call)
            return &ap->slots[i];
    return NULL;
}

static void apply_start_step(struct apply *ap, size_t i)
{
    struct apply_slot *slot = apply_free_slot(ap);
    const struct step *s = &ap->steps[i];
    bool check = ap->mode == APPLY_CHECKING, deletes = s->method == KUBE_DELETE;
    json_auto_t *body = json_copy(s->body);
    const struct kube_request rq = {
        .method = s->method,
        .resource = s->resource,
        .namespace = ap->namespace,
        .name = s->method == KUBE_CREATE ? NULL : s->name,
        .body = body,
        .query = deletes ? NULL
                 : check ? "fieldManager=dynamic-scoring-optimizer&fieldValidation=Strict&dryRun=All"
                         : "fieldManager=dynamic-scoring-optimizer&fieldValidation=Strict",
    };

    if (check && deletes)
        (void)json_object_set_new(body, "dryRun", json_pack("[s]", "All"));
    slot->step = i;
    slot->call = kube_start(ap->o.kube, &rq, apply_on_step, slot);
    ap->active++;
}

/* ---- What is there ---- */

static void apply_on_object(void *arg, json_t *object)
{
    struct apply *ap = arg;
    const struct kube_resource *resource = apply_resources[ap->listed];
    char key[KEY_BYTES];

    step_key(resource, kube_name(object), key);
    (void)json_object_set_new(object, "kind", json_string(resource->kind));
    (void)json_object_set(ap->owned, key, object);
}

static int apply_start_list(struct apply *ap);

static void apply_on_list(void *arg, enum kube_verdict verdict, const char *why)
{
    struct apply *ap = arg;

    /* Reset of a hub without one of the kinds has nothing to delete there. */
    if (verdict != KUBE_OK && !(verdict == KUBE_NO_KIND && !ap->o.objects))
        apply_fail(ap, outcome_status(verdict), "%s", why);
    ap->lister = lister_free(ap->lister);
    if (++ap->listed < ARRAY_SIZE(apply_resources) && !ap->end.status) {
        if (apply_start_list(ap) == 0)
            return;
        apply_fail(ap, 500, "cannot send the request");
    }
    apply_next_mode(ap);
}

static int apply_start_list(struct apply *ap)
{
    const struct lister_options o = {.kube = ap->o.kube,
                                     .resource = apply_resources[ap->listed],
                                     .namespace = ap->namespace,
                                     .label_selector = GENERATED_LABEL "=true",
                                     .on_object = apply_on_object,
                                     .done = apply_on_list,
                                     .arg = ap};

    return lister_start(&ap->lister, &o);
}

/* ---- The order ---- */

/* Whether a step may start while others are under way: phases do not overlap. */
static bool phase_allows(const struct apply *ap, size_t i)
{
    for (size_t j = 0; j < APPLY_CALLS && ap->mode == APPLY_WRITING; j++)
        if (ap->slots[j].call)
            return ap->steps[ap->slots[j].step].phase == ap->steps[i].phase;
    return true;
}

static void apply_pump(struct apply *ap)
{
    while (ap->active < APPLY_CALLS && !ap->end.status && ap->next < ap->n && phase_allows(ap, ap->next))
        apply_start_step(ap, ap->next++);
    if (ap->active == 0)
        apply_next_mode(ap);
}

/* The API server is too slow. What was sent may have been done. */
static void apply_on_deadline(struct timer *t)
{
    struct apply *ap = CONTAINER_OF(t, struct apply, deadline);

    for (size_t i = 0; i < APPLY_CALLS; i++)
        if (ap->slots[i].call) {
            ap->slots[i].call = kube_cancel(ap->slots[i].call);
            if (ap->mode == APPLY_WRITING)
                ap->steps[ap->slots[i].step].state = STEP_UNKNOWN;
        }
    ap->lister = lister_free(ap->lister);
    ap->active = 0;
    apply_fail(ap, 504, "the hub's API server did not answer in time");
    apply_next_mode(ap);
}

int apply_start(struct apply **ret, const struct apply_options *o)
{
    CLEANUP(cleanup_apply_free) struct apply *ap = xcalloc(1, sizeof(*ap));
    int r;

    ap->o = *o;
    json_incref(ap->o.objects);
    ap->deadline.fn = apply_on_deadline;
    ap->namespace = xstrdup(o->namespace);
    ap->owned = json_object();
    ap->conflicts = json_array();
    ap->failed = json_array();
    for (size_t i = 0; i < APPLY_CALLS; i++)
        ap->slots[i].apply = ap;
    loop_timer_set(o->loop, &ap->deadline, mono_add(loop_now(o->loop), APPLY_MS));
    r = apply_start_list(ap);
    if (r == 0)
        *ret = TAKE_PTR(ap);
    return r;
}

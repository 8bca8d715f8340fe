#include "controller/assist/state/apply.h"

#include "controller/assist/rules/inputs.h"
#include "controller/assist/state/apply_internal.h"
#include "controller/kube/json.h"
#include "controller/kube/verdict.h"
#include "exporter/base/backoff.h"
#include "exporter/base/clock.h"
#include "exporter/base/log.h"
#include "exporter/base/loop.h"
#include "exporter/base/text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

enum { MAX_LIST_BYTES = 256 << 20 };

static void apply_pump(struct apply *ap);

/* Later reasons than the first are consequences. */
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
    text_line(ap->end.detail, sizeof(ap->end.detail) - 256, str_of(text));
}

static unsigned status_of(const struct kube_answer *a)
{
    static const unsigned statuses[KUBE_VERDICTS] = {
        [KUBE_RETRY] = 503,   [KUBE_UNAUTHORIZED] = 503, [KUBE_FORBIDDEN] = 403, [KUBE_NOT_FOUND] = 409,
        [KUBE_NO_KIND] = 503, [KUBE_EXISTS] = 409,       [KUBE_CONFLICT] = 409,  [KUBE_GONE] = 503,
        [KUBE_INVALID] = 422, [KUBE_TOO_LARGE] = 422,
    };

    return a->verdict == KUBE_RETRY && a->http_status == 0 ? 504 : statuses[a->verdict];
}

struct apply *apply_free(struct apply *ap)
{
    if (!ap)
        return NULL;
    for (size_t i = 0; i < APPLY_CALLS; i++)
        (void)kube_cancel(ap->slots[i].call);
    loop_timer_clear(ap->o.loop, &ap->deadline);
    loop_timer_clear(ap->o.loop, &ap->pause);
    apply_free_steps(ap);
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

/* ---- The end ---- */

/* What was made and could not be undone. */
static void apply_note_leftovers(struct apply *ap)
{
    json_t *left = json_array();
    size_t n = strlen(ap->end.detail);
    int r = left ? 0 : -ENOMEM;

    for (size_t i = 0; i < ap->n && r == 0; i++)
        if (ap->steps[i].state != STEP_PENDING)
            r = list_add_step(left, &ap->steps[i]);
    if (json_array_size(left) == 0)
        (void)snprintf(ap->end.detail + n, sizeof(ap->end.detail) - n, "; nothing is changed");
    else
        (void)snprintf(
            ap->end.detail + n, sizeof(ap->end.detail) - n,
            "; %zu objects could not be put back (first: %.80s): the next run or POST /reset clears them",
            json_array_size(left), json_string_value(json_array_get(left, 0)));
    ap->end.body = json_pack("{s:b, s:o, s:O*}", "rolledBack", json_array_size(left) == 0, "leftBehind", left,
                             "conflicts", json_array_size(ap->conflicts) ? ap->conflicts : NULL);
}

static void apply_end(struct apply *ap)
{
    outcome_fn done = ap->o.done;
    void *arg = ap->o.arg;

    loop_timer_clear(ap->o.loop, &ap->deadline);
    loop_timer_clear(ap->o.loop, &ap->pause);
    if (ap->end.status) {
        apply_note_leftovers(ap);
        log_warn("writing the plan failed", L_STR("namespace", ap->namespace), L_STR("err", ap->end.detail));
    } else {
        ap->end.status = 200;
        ap->end.body = apply_summary(ap);
        if (!ap->end.body)
            ap->end.status = 500;
        log_info(ap->o.objects ? "wrote the plan" : "deleted what plans had made",
                 L_STR("namespace", ap->namespace), L_INT("writes", ap->n));
    }
    done(arg, &ap->end);
}

/* Everything of the mode has ended. */
static void apply_next_mode(struct apply *ap)
{
    if (ap->mode == APPLY_LISTING && !ap->end.status && apply_plan_steps(ap) < 0)
        apply_fail(ap, 500, "out of memory");
    if (ap->mode == APPLY_CHECKING && json_array_size(ap->conflicts))
        apply_fail(ap, 409,
                   "objects of another hand are in the way: %.120s%s; delete them, or have their owner do it",
                   json_string_value(json_array_get(ap->conflicts, 0)),
                   json_array_size(ap->conflicts) > 1 ? " and others" : "");
    if (ap->mode < APPLY_WRITING && !ap->end.status) {
        ap->mode = ap->mode == APPLY_LISTING && ap->o.objects ? APPLY_CHECKING : APPLY_WRITING;
        ap->next = 0;
    } else if (ap->mode == APPLY_WRITING && ap->end.status) {
        ap->mode = APPLY_UNDOING;
        ap->next = ap->n;
    } else {
        apply_end(ap);
        return;
    }
    /* It is set already, and so it can be moved. */
    if (loop_timer_set(ap->o.loop, &ap->deadline,
                       mono_add(loop_now(ap->o.loop), APPLY_MS + APPLY_STEP_MS * (int64_t)ap->n)) < 0)
        apply_fail(ap, 500, "out of memory");
    apply_pump(ap);
}

/* ---- Calls ---- */

static struct apply_slot *apply_free_slot(struct apply *ap)
{
    for (size_t i = 0; i < APPLY_CALLS; i++)
        if (!ap->slots[i].call)
            return &ap->slots[i];
    return NULL;
}

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

static void checked(struct apply *ap, struct step *s, const struct kube_answer *a)
{
    bool is_gone = s->method == KUBE_DELETE && a->verdict == KUBE_NOT_FOUND;

    if (a->verdict == KUBE_EXISTS) {
        if (list_add_step(ap->conflicts, s) < 0)
            apply_fail(ap, 500, "out of memory");
    } else if (a->verdict != KUBE_OK && !is_gone) {
        apply_fail(ap, status_of(a), "%s", a->why);
    }
}

static void written(struct apply *ap, struct step *s, const struct kube_answer *a)
{
    /* An object that is to be deleted and is gone is as wanted. */
    bool is_gone = s->method == KUBE_DELETE && a->verdict == KUBE_NOT_FOUND;

    if (a->verdict == KUBE_OK || is_gone) {
        s->state = STEP_DONE;
        s->written = json_incref(kube_map(a->object, "metadata", NULL));
        return;
    }
    if (a->verdict == KUBE_RETRY)
        s->state = STEP_MAYBE;
    if (ap->o.objects)
        apply_fail(ap, status_of(a), "%s", a->why);
    else if (json_array_append_new(ap->failed,
                                   json_sprintf("%s/%s: %s", s->resource->kind, s->name, a->why)) < 0)
        apply_fail(ap, 500, "out of memory");
}

static void undone(struct step *s, const struct kube_answer *a)
{
    bool is_gone = s->method == KUBE_CREATE && a->verdict == KUBE_NOT_FOUND;
    /* If the write never happened, what it would have replaced is there. */
    bool never_was = s->state == STEP_MAYBE && s->method == KUBE_DELETE && a->verdict == KUBE_EXISTS;

    if (a->verdict == KUBE_OK || is_gone || never_was)
        s->state = STEP_PENDING;
    else if (a->verdict != KUBE_RETRY && a->verdict != KUBE_UNAUTHORIZED)
        s->state = STEP_STUCK;
}

static void apply_on_step(void *arg, struct kube_answer *a)
{
    struct apply_slot *slot = arg;
    struct apply *ap = slot->apply;
    struct step *s = &ap->steps[slot->step];

    slot->call = NULL;
    ap->active--;
    apply_count(ap, s, a);
    if (ap->mode == APPLY_CHECKING)
        checked(ap, s, a);
    else if (ap->mode == APPLY_WRITING)
        written(ap, s, a);
    else
        undone(s, a);
    apply_pump(ap);
}

static void apply_start_step(struct apply *ap, size_t i)
{
    struct apply_slot *slot = apply_free_slot(ap);
    struct kube_request rq;
    json_t *body = NULL;
    int r = step_request(&ap->steps[i], ap, &rq, &body);

    slot->step = i;
    r = r ?: kube_start(&slot->call, ap->o.kube, &rq, apply_on_step, slot);
    json_decref(body);
    if (r == 0)
        ap->active++;
    else if (ap->mode == APPLY_UNDOING)
        ap->steps[i].state = STEP_STUCK;
    else
        apply_fail(ap, 500, "%s", r == -ENOMEM ? "out of memory" : "cannot send the request");
}

static void apply_on_list(void *arg, struct kube_answer *a)
{
    struct apply_slot *slot = arg;
    struct apply *ap = slot->apply;
    const struct kube_resource *resource = apply_resources[slot->step];
    json_t *items = kube_list(a->object, "items", NULL), *o;
    size_t i;
    int r = 0;

    slot->call = NULL;
    ap->active--;
    /* Reset of a hub without one of the kinds has nothing to delete there. */
    if (a->verdict != KUBE_OK && !(a->verdict == KUBE_NO_KIND && !ap->o.objects))
        apply_fail(ap, status_of(a), "%s", a->why);
    json_array_foreach(items, i, o)
    {
        char key[320];

        (void)snprintf(key, sizeof(key), "%s/%s", resource->kind, kube_name(o));
        r = r ?: json_object_set_new(o, "kind", json_string(resource->kind));
        r = r
                ?: json_object_set_new(o, "apiVersion",
                                       json_sprintf("%s/%s", resource->group, resource->version));
        r = r ?: json_object_set(ap->owned, key, o);
    }
    if (r < 0)
        apply_fail(ap, 500, "out of memory");
    apply_pump(ap);
}

static void apply_start_list(struct apply *ap)
{
    struct apply_slot *slot = &ap->slots[ap->next];
    const struct kube_request rq = {.method = KUBE_LIST,
                                    .resource = apply_resources[ap->next],
                                    .namespace = ap->namespace,
                                    .label_selector = GENERATED_LABEL "=true",
                                    .max_answer = MAX_LIST_BYTES};

    slot->step = ap->next++;
    if (kube_start(&slot->call, ap->o.kube, &rq, apply_on_list, slot) == 0)
        ap->active++;
    else
        apply_fail(ap, 500, "cannot send the request");
}

/* ---- Which call is next ---- */

/* Whether a step may start while `active` calls are under way: phases do not overlap. */
static bool phase_allows(const struct apply *ap, size_t i)
{
    if (ap->active == 0 || ap->mode == APPLY_CHECKING)
        return true;
    for (size_t j = 0; j < APPLY_CALLS; j++)
        if (ap->slots[j].call)
            return ap->steps[ap->slots[j].step].phase == ap->steps[i].phase;
    return true;
}

/* Steps that are to be undone, from the last. */
static bool apply_undo_next(struct apply *ap)
{
    while (ap->next > 0 && ap->steps[ap->next - 1].state != STEP_DONE &&
           ap->steps[ap->next - 1].state != STEP_MAYBE)
        ap->next--;
    if (ap->next == 0 || !phase_allows(ap, ap->next - 1))
        return false;
    apply_start_step(ap, --ap->next);
    return true;
}

static bool apply_start_next(struct apply *ap)
{
    if (ap->mode == APPLY_UNDOING)
        return apply_undo_next(ap);
    if (ap->end.status)
        return false;
    if (ap->mode == APPLY_LISTING) {
        if (ap->next == ARRAY_SIZE(apply_resources))
            return false;
        apply_start_list(ap);
        return true;
    }
    if (ap->next == ap->n || !phase_allows(ap, ap->next))
        return false;
    apply_start_step(ap, ap->next++);
    return true;
}

/* Whether steps are left that another round may undo, until the deadline: an API server that restarts is away
 * for a while. */
static bool apply_undo_again(struct apply *ap)
{
    static const struct backoff pauses = {.min_ms = 1000, .max_ms = 8000};
    bool is_left = false;

    for (size_t i = 0; i < ap->n; i++)
        is_left = is_left || ap->steps[i].state == STEP_DONE || ap->steps[i].state == STEP_MAYBE;
    if (ap->mode != APPLY_UNDOING || !is_left)
        return false;
    ap->next = ap->n;
    return loop_timer_set(ap->o.loop, &ap->pause,
                          mono_add(loop_now(ap->o.loop), backoff_ms(&pauses, ++ap->round, -1))) == 0;
}

static void apply_pump(struct apply *ap)
{
    while (ap->active < APPLY_CALLS && apply_start_next(ap))
        ;
    if (ap->active == 0 && !apply_undo_again(ap))
        apply_next_mode(ap);
}

static void apply_on_pause(struct timer *t)
{
    apply_pump(CONTAINER_OF(t, struct apply, pause));
}

/* The API server is too slow. What was sent may have been done. */
static void apply_on_deadline(struct timer *t)
{
    struct apply *ap = CONTAINER_OF(t, struct apply, deadline);

    for (size_t i = 0; i < APPLY_CALLS; i++)
        if (ap->slots[i].call) {
            ap->slots[i].call = kube_cancel(ap->slots[i].call);
            if (ap->mode == APPLY_WRITING)
                ap->steps[ap->slots[i].step].state = STEP_MAYBE;
        }
    ap->active = 0;
    apply_fail(ap, 504, "the hub's API server did not answer in time");
    apply_next_mode(ap);
}

static void apply_on_begin(struct timer *t)
{
    struct apply *ap = CONTAINER_OF(t, struct apply, pause);

    ap->pause.fn = apply_on_pause;
    apply_pump(ap);
}

int apply_start(struct apply **ret, const struct apply_options *o)
{
    CLEANUP(cleanup_apply_free) struct apply *ap = calloc(1, sizeof(*ap));

    if (!ap)
        return -ENOMEM;
    ap->o = *o;
    json_incref(ap->o.objects);
    ap->deadline.fn = apply_on_deadline;
    ap->pause.fn = apply_on_begin;
    ap->namespace = str_dup(str_of(o->namespace));
    ap->owned = json_object();
    ap->conflicts = json_array();
    ap->failed = json_array();
    for (size_t i = 0; i < APPLY_CALLS; i++)
        ap->slots[i].apply = ap;
    if (!ap->namespace || !ap->owned || !ap->conflicts || !ap->failed ||
        loop_timer_set(o->loop, &ap->pause, loop_now(o->loop)) < 0 ||
        loop_timer_set(o->loop, &ap->deadline, mono_add(loop_now(o->loop), APPLY_MS)) < 0)
        return -ENOMEM;
    *ret = TAKE_PTR(ap);
    return 0;
}

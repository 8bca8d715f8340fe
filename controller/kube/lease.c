/* Owns its one call under way. Each step ends by setting the timer for the next; see client-go's
 * leaderelection. */
#include "controller/kube/lease.h"

#include "controller/kube/client_internal.h"
#include "controller/kube/time.h"
#include "exporter/base/rand.h"
#include "exporter/base/text.h"

#include <errno.h>
#include <stdio.h>

enum { DEFAULT_DURATION_MS = 15000, DEFAULT_RETRY_MS = 2000, MIN_CALL_MS = 1000 };

struct kube_lease {
    struct kube *kube;
    struct kube_lease_options o;
    char *namespace, *name, *identity;
    struct kube_call *call;
    struct timer timer, end; /* always set; `end` tells when leading ends unless renewed */
    json_t *seen;            /* the Lease as last seen; NULL: none, or not known */
    mono_ms changed_at;      /* when that version was first seen */
    mono_ms sent_at;         /* of the write under way */
    mono_ms leading_until;
    bool leading; /* what on_change was told */
    bool releasing;
    void (*released)(void *arg);
    char trouble[768];
    bool busy, dead;
};

static void step(struct kube_lease *l);

static void destroy(struct kube_lease *l)
{
    json_decref(l->seen);
    free(l->namespace);
    free(l->name);
    free(l->identity);
    free(l);
}

struct kube_lease *kube_lease_free(struct kube_lease *l)
{
    if (!l)
        return NULL;
    l->call = kube_cancel(l->call);
    loop_timer_clear(kube_loop(l->kube), &l->timer);
    loop_timer_clear(kube_loop(l->kube), &l->end);
    l->dead = true;
    if (!l->busy)
        destroy(l);
    return NULL;
}

static void leave(struct kube_lease *l)
{
    l->busy = false;
    if (l->dead)
        destroy(l);
}

static mono_ms now_of(const struct kube_lease *l)
{
    return loop_now(kube_loop(l->kube));
}

bool kube_lease_leading(const struct kube_lease *l)
{
    return l->leading && mono_before(now_of(l), l->leading_until);
}

const char *kube_lease_holder(const struct kube_lease *l)
{
    return cstr(kube_str(l->seen, "spec", "holderIdentity", NULL));
}

const char *kube_lease_trouble(const struct kube_lease *l)
{
    return l->trouble[0] ? l->trouble : NULL;
}

static void set_leading(struct kube_lease *l, bool leading)
{
    if (l->dead || l->leading == leading)
        return;
    l->leading = leading;
    if (l->o.on_change)
        l->o.on_change(l->o.arg, leading);
}

static void next_in(struct kube_lease *l, int64_t ms)
{
    if (!l->dead)
        kube_timer_move(kube_loop(l->kube), &l->timer, ms);
}

static void next_try(struct kube_lease *l)
{
    next_in(l, l->o.retry_ms + (int64_t)rand_below((uint64_t)l->o.retry_ms / 5 + 1));
}

static bool is_ours(const struct kube_lease *l)
{
    return strcmp(kube_lease_holder(l), l->identity) == 0;
}

/* Nobody's, or its holder has not renewed it for as long as it promised, all by our own clock. */
static bool is_free(const struct kube_lease *l)
{
    int64_t seconds = 0, ms = l->o.duration_ms;

    if (!*kube_lease_holder(l))
        return true;
    if (kube_int(l->seen, &seconds, "spec", "leaseDurationSeconds", NULL) && seconds > 0 &&
        seconds < 24 * 3600 && seconds * 1000 > ms)
        ms = seconds * 1000;
    return mono_diff(l->changed_at, now_of(l)) >= ms;
}

static void see(struct kube_lease *l, json_t *lease)
{
    if (!l->seen || strcmp(kube_version(l->seen), kube_version(lease)) != 0)
        l->changed_at = now_of(l);
    json_decref(l->seen);
    l->seen = json_incref(lease);
}

static void finish_release(struct kube_lease *l)
{
    void (*released)(void *arg) = l->released;

    l->released = NULL;
    next_in(l, KUBE_FAR_MS);
    if (released && !l->dead)
        released(l->o.arg);
}

/* The spec that says that we hold it, or no one does. NULL when memory is out. */
static json_t *new_spec(const struct kube_lease *l)
{
    const char *acquired = kube_str(l->seen, "spec", "acquireTime", NULL);
    char now[KUBE_TIME_BYTES];
    int64_t transitions = 0;

    kube_micro_time_format(loop_wall(kube_loop(l->kube)), now);
    (void)kube_int(l->seen, &transitions, "spec", "leaseTransitions", NULL);
    if (!is_ours(l)) {
        transitions += l->seen != NULL;
        acquired = now;
    }
    return json_pack("{s:s, s:I, s:s?, s:s, s:I}", "holderIdentity", l->releasing ? "" : l->identity,
                     "leaseDurationSeconds", (json_int_t)(l->releasing ? 1 : l->o.duration_ms / 1000),
                     "acquireTime", acquired, "renewTime", now, "leaseTransitions", (json_int_t)transitions);
}

/* What others wrote beside the spec stays. */
static json_t *new_lease(const struct kube_lease *l)
{
    json_t *lease = l->seen
                        ? json_copy(l->seen)
                        : json_pack("{s:s, s:s, s:{s:s, s:s}}", "apiVersion", "coordination.k8s.io/v1",
                                    "kind", "Lease", "metadata", "name", l->name, "namespace", l->namespace);

    if (lease && json_object_set_new(lease, "spec", new_spec(l)) < 0) {
        json_decref(lease);
        return NULL;
    }
    return lease;
}

static void failed(struct kube_lease *l, const char *why)
{
    text_line(l->trouble, sizeof(l->trouble), str_of(why));
    if (l->releasing)
        finish_release(l);
    else
        next_try(l);
}

static void on_written(void *arg, struct kube_answer *a);
static void on_read(void *arg, struct kube_answer *a);

static void call(struct kube_lease *l, enum kube_method method, const json_t *body, kube_done_fn done)
{
    const struct kube_request rq = {
        .method = method,
        .resource = &kube_leases,
        .namespace = l->namespace,
        .name = method == KUBE_CREATE ? NULL : l->name,
        .body = body,
        .timeout_ms = l->o.renew_deadline_ms / 2 > MIN_CALL_MS ? l->o.renew_deadline_ms / 2 : MIN_CALL_MS,
    };
    int r = kube_start(&l->call, l->kube, &rq, done, l);

    l->sent_at = now_of(l);
    if (r < 0)
        failed(l, r == -ENOMEM ? "out of memory" : "the lease's namespace or name cannot be asked for");
}

static void write_lease(struct kube_lease *l)
{
    json_auto_t *lease = new_lease(l);

    if (lease)
        call(l, l->seen ? KUBE_UPDATE : KUBE_CREATE, lease, on_written);
    else
        failed(l, "out of memory");
}

static void forget(struct kube_lease *l)
{
    json_decref(l->seen);
    l->seen = NULL;
}

/* We hold it from now on; that we may act on it counts from before the request was sent. */
static void held(struct kube_lease *l)
{
    l->leading_until = mono_add(l->sent_at, l->o.renew_deadline_ms);
    kube_timer_move(kube_loop(l->kube), &l->end, mono_diff(now_of(l), l->leading_until));
    next_try(l);
    if (mono_before(now_of(l), l->leading_until))
        set_leading(l, true);
}

static void on_written(void *arg, struct kube_answer *a)
{
    struct kube_lease *l = arg;

    l->busy = true;
    l->call = NULL;
    if (a->verdict == KUBE_OK) {
        l->trouble[0] = '\0';
        see(l, a->object);
        if (l->releasing)
            finish_release(l);
        else
            held(l);
    } else if (a->verdict == KUBE_CONFLICT || a->verdict == KUBE_EXISTS || a->verdict == KUBE_NOT_FOUND) {
        /* Someone else was faster: what we know is old. The time of the change is not known, so it counts
         * from the next look. */
        forget(l);
        failed(l, a->why);
    } else {
        failed(l, a->why);
    }
    leave(l);
}

static void lease_came(struct kube_lease *l, json_t *lease)
{
    see(l, lease);
    l->trouble[0] = '\0';
    if (l->releasing && !is_ours(l)) {
        finish_release(l);
        return;
    }
    if (is_ours(l) || is_free(l)) {
        write_lease(l);
        return;
    }
    next_try(l);
    set_leading(l, false);
}

static void on_read(void *arg, struct kube_answer *a)
{
    struct kube_lease *l = arg;

    l->busy = true;
    l->call = NULL;
    if (a->verdict == KUBE_OK) {
        lease_came(l, a->object);
    } else if (a->verdict == KUBE_NOT_FOUND && !l->releasing) {
        forget(l);
        write_lease(l);
    } else {
        failed(l, a->why);
    }
    leave(l);
}

/* The holder renews without looking; a conflict tells that it must look. */
static void step(struct kube_lease *l)
{
    if (l->call)
        return;
    if (l->leading && l->seen && is_ours(l) && !l->releasing)
        write_lease(l);
    else
        call(l, KUBE_GET, NULL, on_read);
}

static void on_timer(struct timer *t)
{
    struct kube_lease *l = CONTAINER_OF(t, struct kube_lease, timer);

    next_in(l, KUBE_FAR_MS);
    l->busy = true;
    step(l);
    leave(l);
}

static void on_end(struct timer *t)
{
    struct kube_lease *l = CONTAINER_OF(t, struct kube_lease, end);

    kube_timer_move(kube_loop(l->kube), t, KUBE_FAR_MS);
    l->busy = true;
    if (!mono_before(now_of(l), l->leading_until))
        set_leading(l, false);
    leave(l);
}

void kube_lease_release(struct kube_lease *l, void (*done)(void *arg))
{
    l->releasing = true;
    l->released = done;
    l->call = kube_cancel(l->call);
    next_in(l, 0);
    set_leading(l, false);
}

static int set_times(struct kube_lease *l, const struct kube_lease_options *o)
{
    l->o.duration_ms = o->duration_ms ? o->duration_ms : DEFAULT_DURATION_MS;
    l->o.renew_deadline_ms = o->renew_deadline_ms ? o->renew_deadline_ms : l->o.duration_ms * 2 / 3;
    l->o.retry_ms = o->retry_ms ? o->retry_ms : DEFAULT_RETRY_MS;
    if (l->o.duration_ms % 1000 != 0 || l->o.duration_ms <= l->o.renew_deadline_ms ||
        l->o.renew_deadline_ms <= l->o.retry_ms * 6 / 5 || l->o.retry_ms <= 0)
        return -EINVAL;
    return 0;
}

int kube_lease_new(struct kube_lease **ret, struct kube *k, const struct kube_lease_options *o)
{
    struct kube_lease *l = calloc(1, sizeof(*l));
    struct loop *loop = kube_loop(k);
    int r;

    if (!l)
        return -ENOMEM;
    l->kube = k;
    l->o = *o;
    l->timer.fn = on_timer;
    l->end.fn = on_end;
    r = set_times(l, o);
    if (r == 0)
        r = kube_copy(&l->namespace, o->namespace) ?: kube_copy(&l->name, o->name) ?: kube_copy(&l->identity, o->identity);
    if (r == 0)
        r = loop_timer_set(loop, &l->end, mono_add(loop_now(loop), KUBE_FAR_MS));
    if (r == 0)
        r = loop_timer_set(loop, &l->timer, loop_now(loop));
    if (r < 0) {
        (void)kube_lease_free(l);
        return r;
    }
    *ret = l;
    return 0;
}

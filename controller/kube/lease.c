/* Owns its one call under way, the Lease as last seen, and two timers: for the next step, and for the end of
 * leading or of a release. On the loop. Each step ends by setting the timer for the next; see client-go's
 * leaderelection. This process never says that it leads past what it has renewed. */
#include "controller/kube/lease.h"

#include "controller/kube/answer.h"
#include "controller/kube/client.h"
#include "controller/kube/json.h"
#include "controller/kube/request.h"
#include "controller/kube/resource.h"
#include "controller/kube/time.h"
#include "controller/kube/verdict.h"
#include "exporter/base/alloc.h"
#include "exporter/base/clock.h"
#include "exporter/base/invariant.h"
#include "exporter/base/log.h"
#include "exporter/base/loop.h"
#include "exporter/base/random.h"
#include "exporter/base/text.h"

#include <stdio.h>
#include <unistd.h>

enum { DURATION_MS = 15000, RENEW_DEADLINE_MS = 10000, RETRY_MS = 2000, RELEASE_MS = 5000 };

enum lease_role {
    ROLE_UNKNOWN, /* until the Lease has been read or written once */
    ROLE_STANDBY,
    ROLE_LEADER, /* and leading_until is ahead, or the timer `end` is due */
};

struct kube_lease {
    struct kube *kube;
    struct kube_lease_options o;
    struct kube_call *call;
    struct timer timer, end; /* `end`: when leading ends unless renewed, or a release */
    json_t *seen;            /* the Lease as last seen; NULL: none or unknown */
    bool is_absent;          /* it has been deleted since */
    mono_ms changed_at;      /* when that version, or its absence, was first seen */
    mono_ms sent_at;         /* of the call under way */
    mono_ms leading_until;
    enum lease_role role; /* as last passed to on_change */
    bool releasing;       /* no role follows, but ROLE_STANDBY */
    void (*released)(void *arg);
    void *released_arg;
    char last_error[768]; /* "": the last read or write succeeded */
};

struct kube_lease *kube_lease_free(struct kube_lease *l)
{
    if (!l)
        return NULL;
    l->call = kube_cancel(l->call);
    loop_timer_clear(kube_loop(l->kube), &l->timer);
    loop_timer_clear(kube_loop(l->kube), &l->end);
    json_decref(l->seen);
    free(l);
    return NULL;
}

bool kube_lease_leading(const struct kube_lease *l)
{
    return l->role == ROLE_LEADER && mono_before(kube_now(l->kube), l->leading_until);
}

const char *kube_lease_holder(const struct kube_lease *l)
{
    return cstr(kube_str(l->seen, "spec", "holderIdentity", NULL));
}

const char *kube_lease_error(const struct kube_lease *l)
{
    return l->last_error[0] ? l->last_error : NULL;
}

/* The only place where the role changes. */
static void lease_become(struct kube_lease *l, enum lease_role role)
{
    enum lease_role before = l->role;

    if (before == role)
        return;
    invariant(role != ROLE_UNKNOWN);
    invariant(role != ROLE_LEADER || (!l->releasing && mono_before(kube_now(l->kube), l->leading_until)));
    l->role = role;
    if (role == ROLE_LEADER)
        log_info("leading", L_STR("lease", l->o.name), L_STR("identity", l->o.identity));
    else if (before == ROLE_UNKNOWN)
        log_info("standing by", L_STR("lease", l->o.name), L_STR("identity", l->o.identity),
                 L_STR("leader", kube_lease_holder(l)));
    else if (!l->releasing)
        log_warn("no longer leading", L_STR("lease", l->o.name), L_STR("identity", l->o.identity));
    l->o.on_change(l->o.arg, role == ROLE_LEADER);
}

static bool lease_is_ours(const struct kube_lease *l)
{
    return strcmp(kube_lease_holder(l), l->o.identity) == 0;
}

/* Until it has not changed for the holder's duration by our own clock; at most 0 if it is free. */
static int64_t lease_expires_in_ms(const struct kube_lease *l)
{
    int64_t seconds = 0, ms = DURATION_MS;

    if (!*kube_lease_holder(l))
        return 0;
    if (kube_int(l->seen, &seconds, "spec", "leaseDurationSeconds", NULL) && seconds > 0 &&
        seconds < 24 * 3600 && seconds * 1000 > ms)
        ms = seconds * 1000;
    return ms - mono_diff(l->changed_at, kube_now(l->kube));
}

/* A store that was restored from a backup gives versions that it gave before: another holder's Lease may have
 * the very one that was seen last. */
static bool lease_is_as_seen(const struct kube_lease *l, const json_t *lease)
{
    return strcmp(kube_version(l->seen), kube_version(lease)) == 0 &&
           json_equal(kube_get(l->seen, "spec", NULL), kube_get(lease, "spec", NULL));
}

/* NULL: none, or unknown. */
static void lease_see(struct kube_lease *l, json_t *lease)
{
    if (!l->seen || !lease || l->is_absent || !lease_is_as_seen(l, lease))
        l->changed_at = kube_now(l->kube);
    l->is_absent = false;
    json_decref(l->seen);
    l->seen = json_incref(lease);
}

static void lease_finish_release(struct kube_lease *l)
{
    void (*released)(void *arg) = l->released;

    l->released = NULL;
    if (released)
        released(l->released_arg);
}

static void lease_tell_error_changed(const struct kube_lease *l)
{
    if (l->o.on_error_changed)
        l->o.on_error_changed(l->o.arg);
}

/* Tells when errors begin; lease_clear_error() tells of their end. */
static void lease_set_error(struct kube_lease *l, const char *error)
{
    bool is_first = !l->last_error[0];

    text_line(l->last_error, sizeof(l->last_error), str_of(error));
    if (!is_first)
        return;
    log_warn("Lease not read or written", L_STR("lease", l->o.name), L_STR("err", error));
    lease_tell_error_changed(l);
}

static void lease_clear_error(struct kube_lease *l)
{
    if (!l->last_error[0])
        return;
    l->last_error[0] = '\0';
    log_info("Lease read and written again", L_STR("lease", l->o.name));
    lease_tell_error_changed(l);
}

/* A release is tried once. */
static void lease_next_try(struct kube_lease *l)
{
    if (l->releasing)
        lease_finish_release(l);
    else
        kube_timer_move(kube_loop(l->kube), &l->timer, RETRY_MS + (int64_t)rand_below(RETRY_MS / 5 + 1));
}

static void lease_call(struct kube_lease *l, enum kube_method method, const json_t *body, kube_done_fn done)
{
    const struct kube_request rq = {
        .method = method,
        .resource = &kube_leases,
        .namespace = l->o.namespace,
        .name = method == KUBE_CREATE ? NULL : l->o.name,
        .body = body,
        .timeout_ms = RENEW_DEADLINE_MS / 2,
    };

    invariant(!l->call);
    l->sent_at = kube_now(l->kube);
    l->call = kube_start(l->kube, &rq, done, l);
}

static void lease_on_written(void *arg, struct kube_answer *a)
{
    struct kube_lease *l = arg;

    l->call = NULL;
    if (a->verdict == KUBE_OK) {
        lease_clear_error(l);
        lease_see(l, a->object);
        if (l->releasing) {
            lease_finish_release(l);
            return;
        }
        /* The Lease is ours. The time to lead counts from when the request was sent. */
        l->leading_until = mono_add(l->sent_at, RENEW_DEADLINE_MS);
        kube_timer_move(kube_loop(l->kube), &l->end, mono_diff(kube_now(l->kube), l->leading_until));
        lease_next_try(l);
        if (mono_before(kube_now(l->kube), l->leading_until))
            lease_become(l, ROLE_LEADER);
    } else if (a->verdict == KUBE_CONFLICT || a->verdict == KUBE_EXISTS || a->verdict == KUBE_NOT_FOUND) {
        /* Someone else was faster: our copy is old. When it changed is unknown, so that counts from the
         * next read. */
        lease_see(l, NULL);
        lease_next_try(l);
    } else {
        lease_set_error(l, a->why);
        lease_next_try(l);
    }
}

/* With us as the holder, or for a release nobody. */
static json_t *lease_spec(const struct kube_lease *l)
{
    json_t *spec = json_object();
    bool is_ours = lease_is_ours(l);
    char now[KUBE_TIME_BYTES];
    int64_t transitions = 0;

    kube_micro_time_format(loop_wall(kube_loop(l->kube)), now);
    (void)kube_int(l->seen, &transitions, "spec", "leaseTransitions", NULL);
    if (l->seen && !is_ours)
        transitions++;
    kube_set_str(spec, "holderIdentity", l->releasing ? "" : l->o.identity);
    kube_set_int(spec, "leaseDurationSeconds", l->releasing ? 1 : DURATION_MS / 1000);
    kube_set_str(spec, "acquireTime", is_ours ? kube_str(l->seen, "spec", "acquireTime", NULL) : now);
    kube_set_str(spec, "renewTime", now);
    kube_set_int(spec, "leaseTransitions", transitions);
    return spec;
}

/* Keeps what others wrote besides the spec. */
static void lease_write(struct kube_lease *l)
{
    json_auto_t *lease =
        l->seen ? json_copy(l->seen) : kube_resource_object(&kube_leases, l->o.namespace, l->o.name);

    kube_set(lease, "spec", lease_spec(l));
    lease_call(l, l->seen ? KUBE_UPDATE : KUBE_CREATE, lease, lease_on_written);
}

/* A standby looks twice as often as a leader renews, and as soon as the Lease expires. */
static void lease_stand_by(struct kube_lease *l, int64_t left_ms)
{
    int64_t pause_ms = RETRY_MS / 2 + (int64_t)rand_below(RETRY_MS / 10 + 1);

    kube_timer_move(kube_loop(l->kube), &l->timer, left_ms < pause_ms ? left_ms : pause_ms);
    lease_become(l, ROLE_STANDBY);
}

static void lease_take_answer(struct kube_lease *l, json_t *lease)
{
    int64_t left_ms;

    lease_clear_error(l);
    lease_see(l, lease);
    left_ms = lease_expires_in_ms(l);
    if (l->releasing && !lease_is_ours(l))
        lease_finish_release(l);
    else if (lease_is_ours(l) || left_ms <= 0)
        lease_write(l);
    else
        lease_stand_by(l, left_ms);
}

/* Someone has deleted the Lease. Its holder may lead for as long as it has last renewed it, and creates it
 * anew meanwhile: unlike client-go, others wait as for a Lease that does not change. Also who led before, as
 * it may have missed that another has taken over. */
static void lease_take_absence(struct kube_lease *l)
{
    int64_t left_ms;

    lease_clear_error(l);
    if (!l->is_absent)
        l->changed_at = kube_now(l->kube);
    l->is_absent = true;
    left_ms = DURATION_MS - mono_diff(l->changed_at, kube_now(l->kube));
    if (l->role != ROLE_UNKNOWN && !kube_lease_leading(l) && left_ms > 0) {
        lease_stand_by(l, left_ms);
        return;
    }
    json_decref(TAKE_PTR(l->seen)); /* so that it is created */
    lease_write(l);
}

static void lease_on_read(void *arg, struct kube_answer *a)
{
    struct kube_lease *l = arg;

    l->call = NULL;
    if (a->verdict == KUBE_OK) {
        lease_take_answer(l, a->object);
    } else if (a->verdict == KUBE_NOT_FOUND && !l->releasing) {
        lease_take_absence(l);
    } else {
        lease_set_error(l, a->why);
        lease_next_try(l);
    }
}

/* The holder renews without reading; after a conflict it reads. */
static void lease_on_timer(struct timer *t)
{
    struct kube_lease *l = CONTAINER_OF(t, struct kube_lease, timer);

    if (l->call)
        return;
    if (l->role == ROLE_LEADER && l->seen && lease_is_ours(l) && !l->releasing)
        lease_write(l);
    else
        lease_call(l, KUBE_GET, NULL, lease_on_read);
}

static void lease_on_end(struct timer *t)
{
    struct kube_lease *l = CONTAINER_OF(t, struct kube_lease, end);

    if (l->releasing)
        lease_finish_release(l);
    else if (l->role == ROLE_LEADER && !mono_before(kube_now(l->kube), l->leading_until))
        lease_become(l, ROLE_STANDBY);
}

void kube_lease_release(struct kube_lease *l, void (*done)(void *arg), void *arg)
{
    l->releasing = true;
    l->released = done;
    l->released_arg = arg;
    l->call = kube_cancel(l->call);
    kube_timer_move(kube_loop(l->kube), &l->timer, 0);
    kube_timer_move(kube_loop(l->kube), &l->end, RELEASE_MS);
    if (l->role == ROLE_LEADER)
        lease_become(l, ROLE_STANDBY);
}

void kube_lease_make_identity(char out[KUBE_IDENTITY_BYTES])
{
    char host[256] = "unknown";

    (void)gethostname(host, sizeof(host) - 1);
    (void)snprintf(out, KUBE_IDENTITY_BYTES, "%s_%016llx", host, (unsigned long long)rand_u64());
}

struct kube_lease *kube_lease_new(struct kube *k, const struct kube_lease_options *o)
{
    struct kube_lease *l = xcalloc(1, sizeof(*l));

    l->kube = k;
    l->o = *o;
    l->timer.fn = lease_on_timer;
    l->end.fn = lease_on_end;
    kube_timer_move(kube_loop(l->kube), &l->timer, 0);
    return l;
}

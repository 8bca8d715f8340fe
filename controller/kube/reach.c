/* Owns the timer and the call that ask the server, and the list of those who wait for its return. The
 * client notes the outcome of each of its calls here, that of the questions included; queues and watches
 * wait. Nothing is asked while calls succeed. */
#include "controller/kube/reach.h"

#include "controller/kube/client.h"
#include "controller/kube/request.h"
#include "controller/kube/verdict.h"
#include "exporter/base/alloc.h"
#include "exporter/base/clock.h"
#include "exporter/base/invariant.h"
#include "exporter/base/log.h"
#include "exporter/base/loop.h"
#include "exporter/base/random.h"

enum reach_state {
    REACH_UP,
    REACH_DOUBTED, /* a call got no answer, and the server has not been asked */
    REACH_AWAY,    /* nor did it answer when it was asked */
};

struct kube_reach {
    struct kube *kube;
    enum reach_state state;
    mono_ms doubted_at;     /* the first call without an answer */
    mono_ms away_at;        /* that of the last absence; 0: none so far */
    mono_ms cleared_at;     /* when it last answered instead, and only the call had failed; 0: never */
    struct timer timer;     /* to ask */
    struct kube_call *call; /* that asks */
    mono_ms asked_at;
    unsigned asked; /* since doubted_at */
    LIST_HEAD(, kube_waiter) waiters;
    unsigned era;
};

enum {
    DOUBT_MS = 1000, /* at most this until the first question: a fleet loses its server at one moment */
    ASK_MS = 5 * 1000,
    ASK_JITTER_MS = ASK_MS / 10,
    RETURN_MS = 10 * 1000,
    RETRY_AFTER_MAX_MS = 2 * 60 * 1000,
    ASK_TIMEOUT_MS = 5 * 1000,
    PATIENT_TIMEOUT_MS = 15 * 1000,
    PATIENT_EVERY = 6,
};

bool kube_is_unreachable(const struct kube *k)
{
    return kube_reach_of(k)->state == REACH_AWAY;
}

int64_t kube_absence_ms(const struct kube *k)
{
    const struct kube_reach *r = kube_reach_of(k);
    mono_ms now = kube_now(k);
    /* A call that fails again and again beside a server that is well must not pass for an absence. */
    bool credible =
        r->state == REACH_AWAY || !r->cleared_at.ms || mono_diff(r->cleared_at, now) >= KUBE_GRACE_MS;
    mono_ms since = r->state != REACH_UP && credible ? r->doubted_at : r->away_at;

    return since.ms ? mono_diff(since, now) : INT64_MAX;
}

void kube_waiter_add(struct kube *k, struct kube_waiter *w)
{
    LIST_INSERT_HEAD(&kube_reach_of(k)->waiters, w, entry);
}

int64_t kube_return_ms(void)
{
    return (int64_t)rand_below(RETURN_MS + 1);
}

/* Not before `ms` from now, nor sooner than the usual time after the last question. */
static void reach_ask_in(struct kube_reach *r, int64_t ms)
{
    int64_t pause = ASK_MS - ASK_JITTER_MS + (int64_t)rand_below(2 * ASK_JITTER_MS + 1);
    int64_t rest = pause - mono_diff(r->asked_at, kube_now(r->kube));

    kube_timer_move(kube_loop(r->kube), &r->timer, rest > ms ? rest : ms);
}

/* Of a call that failed: whether the server may be away. A body that is no document counts as no answer,
 * as it may be a proxy's; so do credentials that cannot be read. */
static bool answer_is_missing(const struct kube_answer *a)
{
    if (a->verdict == KUBE_RETRY)
        return a->http_status != 429;
    return a->verdict == KUBE_UNAUTHORIZED && a->http_status == 0;
}

static void reach_begin_doubt(struct kube_reach *r)
{
    invariant(r->state == REACH_UP);
    r->state = REACH_DOUBTED;
    r->doubted_at = kube_now(r->kube);
    r->asked = 0;
    reach_ask_in(r, (int64_t)rand_below(DOUBT_MS + 1));
}

static void reach_end_doubt(struct kube_reach *r)
{
    bool was_away = r->state == REACH_AWAY;
    struct kube_waiter *w;

    if (r->state == REACH_DOUBTED)
        r->cleared_at = kube_now(r->kube);
    r->state = REACH_UP;
    if (!was_away)
        return;
    log_debug("the API server answers again", L_STR("kube", kube_label_of(r->kube)));
    LIST_FOREACH (w, &r->waiters, entry)
        w->on_return(w);
}

void kube_reach_note(struct kube_reach *r, const struct kube_answer *a)
{
    bool is_missing = answer_is_missing(a);

    if (is_missing && r->state == REACH_UP)
        reach_begin_doubt(r);
    else if (!is_missing && a->http_status)
        reach_end_doubt(r);
}

/* kube_reach_note() has seen the answer. */
static void reach_on_asked(void *arg, struct kube_answer *a)
{
    struct kube_reach *r = arg;

    r->call = NULL;
    if (r->state == REACH_UP)
        return;
    if (r->state == REACH_DOUBTED)
        log_debug("the API server is away", L_STR("kube", kube_label_of(r->kube)));
    r->state = REACH_AWAY;
    r->away_at = r->doubted_at;
    reach_ask_in(r, a->retry_after_ms < RETRY_AFTER_MAX_MS ? a->retry_after_ms : RETRY_AFTER_MAX_MS);
}

/* Now and then patiently and for something simpler, in case that only the question is not answered: by a
 * slow network, a proxy, or a server that works but never becomes ready. */
static void reach_ask(struct timer *t)
{
    struct kube_reach *r = CONTAINER_OF(t, struct kube_reach, timer);
    bool patient = ++r->asked % PATIENT_EVERY == 0;
    const struct kube_request rq = {.method = KUBE_GET,
                                    .path = patient ? "/version" : "/readyz",
                                    .timeout_ms = patient ? PATIENT_TIMEOUT_MS : ASK_TIMEOUT_MS};

    if (r->state == REACH_UP || r->call)
        return;
    r->asked_at = kube_now(r->kube);
    r->call = kube_start(r->kube, &rq, reach_on_asked, r);
}

/* ---- Whether the store went back in time ---- */

unsigned kube_era(const struct kube *k)
{
    return kube_reach_of(k)->era;
}

void kube_note_restore(struct kube *k, const void *found_by)
{
    struct kube_reach *r = kube_reach_of(k);
    struct kube_waiter *w;

    r->era++;
    log_warn("the API server's store went back in time, as after a restore from a backup: listing all "
             "objects anew",
             L_STR("kube", kube_label_of(k)));
    LIST_FOREACH (w, &r->waiters, entry)
        if (w->on_restore)
            w->on_restore(w, found_by);
}

/* ---- Beginning and end ---- */

struct kube_reach *kube_reach_new(struct kube *k)
{
    struct kube_reach *r = xcalloc(1, sizeof(*r));

    r->kube = k;
    r->era = 1;
    r->timer.fn = reach_ask;
    r->asked_at = mono_add(kube_now(k), -ASK_MS - ASK_JITTER_MS);
    return r;
}

struct kube_reach *kube_reach_free(struct kube_reach *r)
{
    if (!r)
        return NULL;
    invariant(LIST_EMPTY(&r->waiters)); /* watches and queues end before their client */
    loop_timer_clear(kube_loop(r->kube), &r->timer);
    free(r);
    return NULL;
}

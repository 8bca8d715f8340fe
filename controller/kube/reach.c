/* Owns the list of those who wait for the API server's return. */
#include "controller/kube/reach.h"

#include "controller/kube/verdict.h"
#include "exporter/base/clock.h"
#include "exporter/base/log.h"
#include "exporter/base/loop.h"
#include "exporter/base/rand.h"

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

bool kube_is_away(const struct kube *k)
{
    return kube_reach(k)->state == REACH_AWAY;
}

int64_t kube_absence_ms(const struct kube *k)
{
    const struct kube_reach *r = kube_reach(k);
    mono_ms now = loop_now(kube_loop(k));
    /* A call that fails again and again beside a server that is well must not pass for an absence. */
    bool credible =
        r->state == REACH_AWAY || !r->cleared_at.ms || mono_diff(r->cleared_at, now) >= KUBE_GRACE_MS;
    mono_ms since = r->state != REACH_UP && credible ? r->doubted_at : r->away_at;

    return since.ms ? mono_diff(since, now) : INT64_MAX;
}

void kube_waiter_add(struct kube *k, struct kube_waiter *w)
{
    LIST_INSERT_HEAD(&kube_reach(k)->waiters, w, entry);
}

void kube_waiter_remove(struct kube_waiter *w)
{
    LIST_REMOVE(w, entry);
}

int64_t kube_return_ms(void)
{
    return (int64_t)rand_below(RETURN_MS + 1);
}

/* Not before `ms` from now, nor sooner than the usual time after the last question. */
static void reach_ask_in(struct kube_reach *r, int64_t ms)
{
    int64_t pause = ASK_MS - ASK_JITTER_MS + (int64_t)rand_below(2 * ASK_JITTER_MS + 1);
    int64_t rest = pause - mono_diff(r->asked_at, loop_now(kube_loop(r->kube)));

    kube_timer_move(kube_loop(r->kube), &r->timer, rest > ms ? rest : ms);
}

static void reach_doubt(struct kube_reach *r)
{
    if (r->state != REACH_UP)
        return;
    r->state = REACH_DOUBTED;
    r->doubted_at = loop_now(kube_loop(r->kube));
    r->asked = 0;
    reach_ask_in(r, (int64_t)rand_below(DOUBT_MS + 1));
}

static void reach_trust(struct kube_reach *r)
{
    bool returned = r->state == REACH_AWAY;
    struct kube_waiter *w;

    if (r->state == REACH_DOUBTED)
        r->cleared_at = loop_now(kube_loop(r->kube));
    r->state = REACH_UP;
    if (!returned)
        return;
    log_debug("the API server answers again", L_STR("kube", kube_label_of(r->kube)));
    LIST_FOREACH (w, &r->waiters, entry)
        w->on_return(w);
}

void kube_reach_note(struct kube *k, const struct kube_answer *a)
{
    bool overloaded = a->http_status == 429;

    if ((a->verdict == KUBE_RETRY && !overloaded) || (a->verdict == KUBE_UNAUTHORIZED && !a->http_status))
        reach_doubt(kube_reach(k));
    else if (a->http_status)
        reach_trust(kube_reach(k));
}

/* The server was asked, and its answer noted. */
static void reach_note_asked(struct kube_reach *r, int64_t retry_after_ms)
{
    if (r->state == REACH_UP)
        return;
    if (r->state == REACH_DOUBTED)
        log_debug("the API server is away", L_STR("kube", kube_label_of(r->kube)));
    r->state = REACH_AWAY;
    r->away_at = r->doubted_at;
    reach_ask_in(r, retry_after_ms < RETRY_AFTER_MAX_MS ? retry_after_ms : RETRY_AFTER_MAX_MS);
}

static void reach_on_asked(void *arg, struct kube_answer *a)
{
    struct kube_reach *r = arg;

    r->call = NULL;
    reach_note_asked(r, a->retry_after_ms);
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

    kube_timer_move(kube_loop(r->kube), t, KUBE_FAR_MS);
    if (r->state == REACH_UP || r->call)
        return;
    r->asked_at = loop_now(kube_loop(r->kube));
    if (kube_start(&r->call, r->kube, &rq, reach_on_asked, r) < 0)
        reach_note_asked(r, -1);
}

void kube_reach_init(struct kube *k)
{
    mono_ms now = loop_now(kube_loop(k));
    struct kube_reach *r = kube_reach(k);

    *r = (struct kube_reach){
        .kube = k, .timer.fn = reach_ask, .asked_at = mono_add(now, -ASK_MS - ASK_JITTER_MS)};
    loop_timer_set(kube_loop(k), &r->timer, mono_add(now, KUBE_FAR_MS));
}

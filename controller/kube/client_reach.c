/* Owns the list of those who wait for the API server's return. */
#include "controller/kube/client_internal.h"

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
};

int kube_reach_init(struct kube *k, void (*ask)(struct timer *t))
{
    mono_ms now = loop_now(k->loop);

    k->reach = (struct kube_reach){.timer.fn = ask, .asked_at = mono_add(now, -ASK_MS - ASK_JITTER_MS)};
    return loop_timer_set(k->loop, &k->reach.timer, mono_add(now, KUBE_FAR_MS));
}

bool kube_is_away(const struct kube *k)
{
    return k->reach.state == REACH_AWAY;
}

int64_t kube_absence_ms(const struct kube *k)
{
    const struct kube_reach *r = &k->reach;
    mono_ms now = loop_now(k->loop);
    /* A call that fails again and again beside a server that is well must not pass for an absence. */
    bool credible =
        r->state == REACH_AWAY || !r->cleared_at.ms || mono_diff(r->cleared_at, now) >= KUBE_GRACE_MS;
    mono_ms since = r->state != REACH_UP && credible ? r->doubted_at : r->away_at;

    return since.ms ? mono_diff(since, now) : INT64_MAX;
}

void kube_waiter_add(struct kube *k, struct kube_waiter *w)
{
    LIST_INSERT_HEAD(&k->reach.waiters, w, entry);
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
static void reach_ask_in(struct kube *k, int64_t ms)
{
    int64_t pause = ASK_MS - ASK_JITTER_MS + (int64_t)rand_below(2 * ASK_JITTER_MS + 1);
    int64_t rest = pause - mono_diff(k->reach.asked_at, loop_now(k->loop));

    kube_timer_move(k->loop, &k->reach.timer, rest > ms ? rest : ms);
}

static void reach_doubt(struct kube *k)
{
    if (k->reach.state != REACH_UP)
        return;
    k->reach.state = REACH_DOUBTED;
    k->reach.doubted_at = loop_now(k->loop);
    k->reach.asked = 0;
    reach_ask_in(k, (int64_t)rand_below(DOUBT_MS + 1));
}

static void reach_trust(struct kube *k)
{
    bool returned = k->reach.state == REACH_AWAY;
    struct kube_waiter *w;

    if (k->reach.state == REACH_DOUBTED)
        k->reach.cleared_at = loop_now(k->loop);
    k->reach.state = REACH_UP;
    if (!returned)
        return;
    log_debug("the API server answers again", L_STR("kube", k->label));
    LIST_FOREACH (w, &k->reach.waiters, entry)
        w->on_return(w);
}

void kube_reach_note(struct kube *k, const struct kube_answer *a)
{
    bool overloaded = a->http_status == 429;

    if ((a->verdict == KUBE_RETRY && !overloaded) || !k->config)
        reach_doubt(k);
    else if (a->http_status)
        reach_trust(k);
}

void kube_reach_asked(struct kube *k, int64_t retry_after_ms)
{
    if (k->reach.state == REACH_UP)
        return;
    if (k->reach.state == REACH_DOUBTED)
        log_debug("the API server is away", L_STR("kube", k->label));
    k->reach.state = REACH_AWAY;
    k->reach.away_at = k->reach.doubted_at;
    reach_ask_in(k, retry_after_ms < RETRY_AFTER_MAX_MS ? retry_after_ms : RETRY_AFTER_MAX_MS);
}

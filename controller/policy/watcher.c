/* Owns the two watches and what they told. An event only leads to a new decision, which is made from all
 * that is known; watcher_claim.c carries it out.
 *
 * Nothing becomes `compliant` by old news: a list of the Policies, read right before the claim is written,
 * has to show the same as the watch. */
#include "controller/policy/watcher.h"

#include "controller/kube/json.h"
#include "controller/policy/watcher_internal.h"
#include "exporter/base/clock.h"
#include "exporter/base/log.h"
#include "exporter/base/loop.h"

#include <errno.h>

enum {
    BLIND_MIN_MS = 60 * 1000, /* a compliant claim without news lasts as long at least */
    RETRY_MS = 5000,
};

static mono_ms watcher_now(const struct policy_watcher *w)
{
    return loop_now(kube_loop(w->o.kube));
}

static void watcher_decide_in(struct policy_watcher *w, int64_t ms)
{
    mono_ms at = mono_add(watcher_now(w), ms);

    if (w->timer.place && mono_before(w->timer.at, at))
        return;
    if (loop_timer_set(kube_loop(w->o.kube), &w->timer, at) < 0)
        policy_watcher_decide(w);
}

/* ---- What the watch of the Policies tells ---- */

static void policies_clear(struct policy_watcher *w)
{
    struct known_policy *p;

    for (size_t at = 0; (p = map_next(&w->policies, &at));)
        free(p);
    map_done(&w->policies);
}

static struct known_policy *policies_add(struct policy_watcher *w, const char *name)
{
    size_t n = strlen(name) + 1;
    struct known_policy *p = calloc(1, sizeof(*p) + n);

    if (!p)
        return NULL;
    memcpy(p->name, name, n);
    if (map_set(&w->policies, p->name, p) < 0) {
        free(p);
        return NULL;
    }
    return p;
}

/* Out of memory: reads them anew later. */
static void policies_forget(struct policy_watcher *w)
{
    w->policy_watch = kube_watch_free(w->policy_watch);
    policies_clear(w);
    watcher_decide_in(w, RETRY_MS);
}

static void policies_on_set(void *arg, json_t *object)
{
    struct policy_watcher *w = arg;
    struct known_policy *known = map_get(&w->policies, kube_name(object));
    struct policy is;

    policy_read(&is, object);
    if (is.state != POLICY_DISABLED && !(known && policy_stayed_compliant(&known->policy, &is)))
        w->is_broken = true;
    if (!known)
        known = policies_add(w, kube_name(object));
    if (known) {
        known->policy = is;
        watcher_decide_in(w, 0);
    } else {
        policies_forget(w);
    }
}

static void policies_on_delete(void *arg, const char *namespace, const char *name)
{
    struct policy_watcher *w = arg;

    (void)namespace;
    free(map_take(&w->policies, name));
    watcher_decide_in(w, 0);
}

static void policies_on_synced(void *arg)
{
    struct policy_watcher *w = arg;

    metric_set(w->o.metrics, METRIC_KUBE_UP, LV("policies", "cluster"), 1);
    watcher_decide_in(w, 0);
}

static void policies_on_trouble(void *arg, const char *text)
{
    struct policy_watcher *w = arg;
    bool lacks_kind = kube_watch_lacks_kind(w->policy_watch);

    metric_set(w->o.metrics, METRIC_KUBE_UP, LV("policies", "cluster"), text == NULL || lacks_kind);
    if (!text)
        log_info("watch of Policies works again", L_STR("namespace", w->o.namespace));
    else if (lacks_kind)
        log_warn("Policies are not installed on this cluster: the claim is empty", L_STR("err", text));
    else
        log_warn("watch of Policies failed", L_STR("namespace", w->o.namespace), L_STR("err", text));
    watcher_decide_in(w, 0);
}

static int policies_watch(struct policy_watcher *w)
{
    const struct kube_watch_options o = {.resource = &kube_policies,
                                         .namespace = w->o.namespace,
                                         .on_set = policies_on_set,
                                         .on_delete = policies_on_delete,
                                         .on_synced = policies_on_synced,
                                         .on_trouble = policies_on_trouble,
                                         .arg = w};

    return kube_watch_new(&w->policy_watch, w->o.kube, &o);
}

/* ---- Deciding ---- */

static void watcher_count(struct policy_watcher *w, struct policy_tally *t)
{
    const struct known_policy *p;

    for (size_t at = 0; (p = map_next(&w->policies, &at));)
        policy_tally_add(t, &p->policy);
    for (size_t i = 0; i < POLICY_STATES; i++)
        metric_set(w->o.metrics, METRIC_POLICY_POLICIES, LV(policy_state_word((enum policy_state)i)),
                   (double)t->n[i]);
}

/* Whether there has been no news for too long. Does not count while the API server is away, when nothing can
 * be written either: its return brings news first. */
static bool watcher_is_blind(struct policy_watcher *w)
{
    int64_t limit = w->o.stable_ms > BLIND_MIN_MS ? w->o.stable_ms : BLIND_MIN_MS;
    mono_ms now = watcher_now(w);

    if (w->policy_watch && kube_watch_synced(w->policy_watch) && !kube_watch_trouble(w->policy_watch)) {
        w->blind_at = (mono_ms){0};
        return false;
    }
    if (w->blind_at.ms == 0 || kube_is_away(w->o.kube))
        w->blind_at = now;
    watcher_decide_in(w, RETRY_MS);
    return mono_diff(w->blind_at, now) >= limit;
}

static void watcher_want(struct policy_watcher *w, enum claim_value v)
{
    if (!w->is_decided || w->wanted != v)
        log_info("policies decided", L_STR("value", claim_value_word(v)),
                 L_INT("policies", (int64_t)w->policies.n));
    w->is_decided = true;
    w->wanted = v;
    if (policy_claim_touch(w) < 0)
        watcher_decide_in(w, RETRY_MS);
}

/* All policies are compliant, and this is what the watch knows now. */
static void watcher_decide_run(struct policy_watcher *w)
{
    int64_t left;

    if (!w->has_run || w->is_broken) {
        w->is_resumed = !w->is_decided && !w->has_run;
        w->has_run = true;
        w->run_since = watcher_now(w);
    }
    left = w->o.stable_ms - mono_diff(w->run_since, watcher_now(w));
    if (w->is_resumed) {
        if (policy_claim_touch(w) < 0)
            watcher_decide_in(w, RETRY_MS);
    } else if (left > 0) {
        watcher_want(w, CLAIM_NONCOMPLIANT);
        watcher_decide_in(w, left);
    } else {
        watcher_want(w, CLAIM_COMPLIANT);
    }
}

/* Without news what was decided stays, but nothing stays compliant for long. */
static void watcher_decide_blind(struct policy_watcher *w, bool for_too_long)
{
    bool is_noncompliant = w->is_decided && w->wanted == CLAIM_NONCOMPLIANT;
    bool is_compliant = w->is_decided ? w->wanted == CLAIM_COMPLIANT : policy_claim_has(w, CLAIM_COMPLIANT);

    if (is_compliant && for_too_long) {
        log_warn("no news of the Policies for too long: they no longer count as compliant");
        w->has_run = w->is_resumed = false;
        is_noncompliant = true;
    }
    if (is_noncompliant)
        watcher_want(w, CLAIM_NONCOMPLIANT);
}

void policy_watcher_decide(struct policy_watcher *w)
{
    bool lacks_kind = w->policy_watch && kube_watch_lacks_kind(w->policy_watch);
    bool for_too_long, is_compliant;
    struct policy_tally t = {0};

    if (!w->policy_watch && policies_watch(w) < 0)
        watcher_decide_in(w, RETRY_MS);
    if (!kube_watch_synced(w->claim_watch))
        return;
    for_too_long = !lacks_kind && watcher_is_blind(w);
    if (!lacks_kind && w->blind_at.ms) {
        watcher_decide_blind(w, for_too_long);
        return;
    }
    watcher_count(w, &t);
    is_compliant = !lacks_kind && policy_tally_is_compliant(&t);
    w->is_resumed &= is_compliant;
    if (is_compliant)
        watcher_decide_run(w);
    else
        watcher_want(w, lacks_kind || policy_tally_enabled(&t) == 0 ? CLAIM_EMPTY : CLAIM_NONCOMPLIANT);
    w->has_run = is_compliant;
    w->is_broken = false;
}

static void watcher_on_timer(struct timer *t)
{
    policy_watcher_decide(CONTAINER_OF(t, struct policy_watcher, timer));
}

/* ---- Life ---- */

static void claims_on_synced(void *arg)
{
    struct policy_watcher *w = arg;

    metric_set(w->o.metrics, METRIC_KUBE_UP, LV("clusterclaims", "cluster"), 1);
    watcher_decide_in(w, 0);
}

static void claims_on_trouble(void *arg, const char *text)
{
    struct policy_watcher *w = arg;

    metric_set(w->o.metrics, METRIC_KUBE_UP, LV("clusterclaims", "cluster"), text == NULL);
    if (text)
        log_warn("watch of the ClusterClaim failed", L_STR("claim", w->o.claim), L_STR("err", text));
    else
        log_info("watch of the ClusterClaim works again", L_STR("claim", w->o.claim));
}

static int claims_watch(struct policy_watcher *w)
{
    const struct kube_watch_options o = {.resource = &kube_clusterclaims,
                                         .name = w->o.claim,
                                         .on_set = policy_claim_on_set,
                                         .on_delete = policy_claim_on_delete,
                                         .on_synced = claims_on_synced,
                                         .on_trouble = claims_on_trouble,
                                         .arg = w};

    return kube_watch_new(&w->claim_watch, w->o.kube, &o);
}

int policy_watcher_new(struct policy_watcher **ret, const struct policy_watcher_options *o)
{
    CLEANUP(cleanup_policy_watcher_free) struct policy_watcher *w = calloc(1, sizeof(*w));
    const struct kube_queue_options queue = {
        .work = policy_claim_work, .arg = w, .kube = o->kube, .max_retry_ms = RETRY_MS};
    int r = w ? 0 : -ENOMEM;

    if (r < 0)
        return r;
    w->o = *o;
    w->timer.fn = watcher_on_timer;
    r = kube_queue_new(&w->queue, kube_loop(o->kube), &queue);
    if (r == 0)
        r = policies_watch(w);
    if (r == 0)
        r = claims_watch(w);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(w);
    return 0;
}

struct policy_watcher *policy_watcher_free(struct policy_watcher *w)
{
    if (!w)
        return NULL;
    loop_timer_clear(kube_loop(w->o.kube), &w->timer);
    w->check = kube_cancel(w->check);
    w->write = kube_cancel(w->write);
    w->queue = kube_queue_free(w->queue);
    w->policy_watch = kube_watch_free(w->policy_watch);
    w->claim_watch = kube_watch_free(w->claim_watch);
    policies_clear(w);
    free(w);
    return NULL;
}

int policy_watcher_ready(const struct policy_watcher *w, bool *ret, struct buf *why)
{
    const struct kube_watch *watches[] = {w->policy_watch, w->claim_watch};
    static const char *const names[] = {"policies", "clusterclaims"};
    int r = 0;

    *ret = true;
    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(watches); i++) {
        const struct kube_watch *one = watches[i];
        const char *trouble = one ? kube_watch_trouble(one) : NULL;

        if (one && (kube_watch_synced(one) || (i == 0 && kube_watch_lacks_kind(one))))
            continue;
        *ret = false;
        r = buf_printf(why, "%s: not listed yet%s%s\n", names[i], trouble ? ": " : "", cstr(trouble));
    }
    return r;
}

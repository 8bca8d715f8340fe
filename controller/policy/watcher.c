/* Owns the two watches and what they told. An event only leads to a new decision, which is made from all
 * that is known.
 *
 * Nothing becomes `compliant` by old news: a list of the Policies, read right before the claim is written,
 * has to show the same as the watch. */
#include "controller/policy/watcher.h"

#include "controller/kube/client.h"
#include "controller/kube/json.h"
#include "controller/kube/watch.h"
#include "controller/kube/writer.h"
#include "controller/policy/claim.h"
#include "exporter/base/clock.h"
#include "exporter/base/log.h"
#include "exporter/base/loop.h"
#include "exporter/base/map.h"

#include <errno.h>
#include <stdio.h>

#define FIELD_MANAGER "dynamic-scoring-policy-watcher"

enum { CLAIM_BYTES = 64, CLAIM_VERSION_BYTES = 64 };

struct known_policy {
    struct policy policy;
    char name[];
};

/* The ClusterClaim as it was last seen or written. */
struct known_claim {
    bool exists;
    char value[CLAIM_BYTES]; /* cut */
    char version[CLAIM_VERSION_BYTES];
    unix_ms written_at; /* when a policy watcher wrote the value; 0: another did */
};

struct policy_watcher {
    struct policy_watcher_options o;
    struct kube_watch *policy_watch, *claim_watch;
    struct kube_writer writer; /* of one key */
    struct kube_object object; /* the claim, or the check before it is written */
    bool is_writing;           /* it is the claim */
    bool is_check_refused;     /* the last check was, which keeps the queue waiting */
    struct timer timer;        /* when to decide again without an event */
    struct map policies;       /* of struct known_policy */
    struct known_claim claim;

    /* A run: all enabled policies are compliant without a break. */
    bool has_run, is_broken; /* is_broken: there was a break since the last decision */
    mono_ms run_since;
    bool is_resumed;  /* the run was found at the start, and when it began has yet to be read */
    mono_ms blind_at; /* since when there is no news although the API server answers; 0: there is */
    bool is_decided;
    enum claim_value wanted; /* if is_decided */
};

enum {
    BLIND_MIN_MS = 60 * 1000, /* a compliant claim without news lasts as long at least */
    RETRY_MS = 5000,
    CHECK_MAX_BYTES = 64 << 20,
};

/* Decides what the claim should be, and asks for what that needs. */
static void watcher_decide(struct policy_watcher *w);

static mono_ms watcher_now(const struct policy_watcher *w)
{
    return loop_now(kube_loop(w->o.kube));
}

static void watcher_decide_in(struct policy_watcher *w, int64_t ms)
{
    mono_ms at = mono_add(watcher_now(w), ms);

    if (w->timer.place && mono_before(w->timer.at, at))
        return;
    loop_timer_set(kube_loop(w->o.kube), &w->timer, at);
}

/* ---- The claim: what others make of it, the check before it becomes compliant, and writing it ----
 *
 * Two watchers may run at once while one replaces the other. They see the same Policies, but not since the
 * same moment, so that each takes over the other's value instead of undoing it: `noncompliant` at once, as
 * the other has seen a break; `compliant` if all are compliant, as the other has seen for how long. */

/* ---- What is there ---- */

static bool claim_has(const struct policy_watcher *w, enum claim_value v)
{
    return w->claim.exists && strcmp(w->claim.value, claim_value_word(v)) == 0;
}

static bool claim_needs_write(const struct policy_watcher *w)
{
    return w->is_decided && !claim_has(w, w->wanted);
}

static bool claim_needs_check(const struct policy_watcher *w)
{
    return w->is_resumed || (claim_needs_write(w) && w->wanted == CLAIM_COMPLIANT);
}

static void claim_show(struct policy_watcher *w)
{
    for (size_t i = 0; i < CLAIM_VALUES; i++)
        metric_set(w->o.metrics, METRIC_POLICY_CLAIM, LV(claim_value_word((enum claim_value)i)),
                   claim_has(w, (enum claim_value)i));
    metric_set(w->o.metrics, METRIC_POLICY_CLAIM_BEHIND, LV_NONE, claim_needs_write(w));
}

/* False for an object older than what is known. */
static bool claim_take(struct policy_watcher *w, const json_t *object)
{
    struct known_claim *c = &w->claim;

    if (c->exists && !kube_version_newer(kube_version(object), c->version))
        return false;
    c->exists = true;
    (void)snprintf(c->value, sizeof(c->value), "%s", cstr(kube_str(object, "spec", "value", NULL)));
    (void)snprintf(c->version, sizeof(c->version), "%s", kube_version(object));
    c->written_at = claim_written_at(object, FIELD_MANAGER);
    claim_show(w);
    return true;
}

/* Another has changed the value that this watcher wants. */
static void claim_on_edit(struct policy_watcher *w)
{
    if (w->claim.written_at.ms == 0) {
        metric_add(w->o.metrics, METRIC_POLICY_CLAIM_EDITS, LV_NONE, 1);
        log_warn("the ClusterClaim was edited by another, restoring it", L_STR("claim", w->o.claim),
                 L_STR("value", w->claim.value), L_STR("wanted", claim_value_word(w->wanted)));
    } else if (w->wanted == CLAIM_COMPLIANT) {
        w->is_broken = true;
    } else if (claim_has(w, CLAIM_COMPLIANT) && w->has_run) {
        w->run_since = mono_add(loop_now(kube_loop(w->o.kube)), -w->o.stable_ms);
    }
}

static void claim_on_set(void *arg, json_t *object)
{
    struct policy_watcher *w = arg;

    if (!claim_take(w, object) || !kube_watch_synced(w->claim_watch))
        return;
    if (w->is_decided && !w->is_writing && !claim_has(w, w->wanted))
        claim_on_edit(w);
    watcher_decide(w);
}

static void claim_on_delete(void *arg, const char *namespace, const char *name)
{
    struct policy_watcher *w = arg;

    (void)namespace;
    log_warn("the ClusterClaim was deleted", L_STR("claim", name));
    metric_add(w->o.metrics, METRIC_POLICY_CLAIM_EDITS, LV_NONE, 1);
    w->claim = (struct known_claim){0};
    claim_show(w);
    watcher_decide(w);
}

/* ---- Writing ---- */

static void write_on_answer(struct kube_object *o, struct kube_answer *a)
{
    struct policy_watcher *w = CONTAINER_OF(o, struct policy_watcher, object);

    w->is_writing = false;
    if (a->verdict == KUBE_OK) {
        (void)claim_take(w, a->object);
        log_info("ClusterClaim written", L_STR("claim", w->o.claim), L_STR("value", w->claim.value));
        kube_object_set_trouble(o, "");
        kube_object_end(o, true, -1);
    } else {
        w->claim.exists &= a->verdict != KUBE_NOT_FOUND;
        kube_object_fail(o, a);
    }
    watcher_decide(w);
}

static void write_start(struct policy_watcher *w)
{
    const char *value = claim_value_word(w->wanted);
    bool exists = w->claim.exists;
    json_auto_t *body = exists
                            ? json_pack("{s:{s:s}}", "spec", "value", value)
                            : json_pack("{s:s, s:s, s:{s:s}, s:{s:s}}", "apiVersion",
                                        "cluster.open-cluster-management.io/v1alpha1", "kind", "ClusterClaim",
                                        "metadata", "name", w->o.claim, "spec", "value", value);
    const struct kube_request rq = {.method = exists ? KUBE_MERGE_PATCH : KUBE_CREATE,
                                    .resource = &kube_clusterclaims,
                                    .name = exists ? w->o.claim : NULL,
                                    .body = body};

    w->is_writing = true;
    kube_object_call(&w->object, exists ? "patch" : "create", &rq, (uint64_t)w->wanted + 1, write_on_answer);
}

/* ---- The check ---- */

/* Whether the list shows what the watch knows: all enabled policies compliant, and no others. */
static bool check_confirms(const struct policy_watcher *w, const json_t *items, struct policy_tally *t)
{
    struct policy_tally known = {0};
    const struct known_policy *p;
    json_t *item;
    size_t i;

    json_array_foreach(items, i, item)
    {
        struct policy is;

        policy_read(&is, item);
        policy_tally_add(t, &is);
        p = map_get(&w->policies, kube_name(item));
        if (is.state != POLICY_DISABLED && !(p && policy_stayed_compliant(&p->policy, &is)))
            return false;
    }
    for (size_t at = 0; (p = map_next(&w->policies, &at));)
        policy_tally_add(&known, &p->policy);
    return policy_tally_is_compliant(t) && policy_tally_enabled(t) == policy_tally_enabled(&known);
}

/* When the run began that was there at the start: by the objects' own times; or long ago if the claim says so
 * and no policy has broken it since. */
static void check_resume(struct policy_watcher *w, const struct policy_tally *t, unix_ms server)
{
    struct loop *l = kube_loop(w->o.kube);
    int64_t stable = server.ms ? policy_tally_stable_ms(t, loop_wall(l), server) : 0;
    bool claimed = claim_has(w, CLAIM_COMPLIANT) && t->broken_at.ms < w->claim.written_at.ms;

    if (claimed || stable > w->o.stable_ms)
        stable = w->o.stable_ms;
    w->run_since = mono_add(loop_now(l), -stable);
    w->is_resumed = false;
    log_info("policies were compliant at the start", L_INT("stable_ms", stable));
}

static void check_on_list(struct kube_object *o, struct kube_answer *a)
{
    struct policy_watcher *w = CONTAINER_OF(o, struct policy_watcher, object);
    struct policy_tally t = {0};
    bool confirms = a->verdict == KUBE_OK && w->has_run && !w->is_broken &&
                    check_confirms(w, kube_list(a->object, "items", NULL), &t);

    w->is_check_refused = a->verdict != KUBE_OK;
    if (w->is_check_refused)
        log_warn("Policies not listed, the claim does not become compliant", L_STR("err", a->why));
    else if (!confirms && w->policy_watch)
        kube_watch_hurry(w->policy_watch); /* it is behind */
    if (confirms && w->is_resumed) {
        check_resume(w, &t, a->date);
        watcher_decide(w);
    }
    if (confirms && claim_needs_write(w))
        write_start(w);
    else
        kube_object_end(o, confirms || !claim_needs_check(w), a->retry_after_ms);
}

static void check_start(struct policy_watcher *w)
{
    const struct kube_request rq = {.method = KUBE_LIST,
                                    .resource = &kube_policies,
                                    .namespace = w->o.namespace,
                                    .max_answer = CHECK_MAX_BYTES};

    kube_object_call(&w->object, NULL, &rq, 0, check_on_list);
}

/* Writes the claim, if it is not as wanted. -ENOMEM. */
static void claim_touch(struct policy_watcher *w)
{
    claim_show(w);
    if (w->is_check_refused && !claim_needs_check(w)) {
        /* What needs no check does not wait until the next one may be made. */
        kube_queue_forget(w->writer.queue, w->o.claim);
        w->is_check_refused = false;
    }
    if (w->is_resumed || claim_needs_write(w))
        kube_queue_add(w->writer.queue, w->o.claim);
}

/* The queue's work. */
static void claim_work(void *arg, const char *key)
{
    struct policy_watcher *w = arg;

    if (claim_needs_check(w))
        check_start(w);
    else if (claim_needs_write(w))
        write_start(w);
    else
        kube_queue_done(w->writer.queue, key, true, -1);
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
    struct known_policy *p = xcalloc(1, sizeof(*p) + n);

    memcpy(p->name, name, n);
    map_set(&w->policies, p->name, p);
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

    w->policy_watch = kube_watch_new(w->o.kube, &o);
    return 0;
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
    claim_touch(w);
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
        claim_touch(w);
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
    bool is_compliant = w->is_decided ? w->wanted == CLAIM_COMPLIANT : claim_has(w, CLAIM_COMPLIANT);

    if (is_compliant && for_too_long) {
        log_warn("no news of the Policies for too long: they no longer count as compliant");
        w->has_run = w->is_resumed = false;
        is_noncompliant = true;
    }
    if (is_noncompliant)
        watcher_want(w, CLAIM_NONCOMPLIANT);
}

static void watcher_decide(struct policy_watcher *w)
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
    watcher_decide(CONTAINER_OF(t, struct policy_watcher, timer));
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

static void claims_count(void *arg, const char *operation, const struct kube_answer *a)
{
    struct policy_watcher *w = arg;

    metric_add(w->o.metrics, METRIC_POLICY_CLAIM_WRITES, LV(operation, kube_verdict_word(a->verdict)), 1);
}

static int claims_watch(struct policy_watcher *w)
{
    const struct kube_watch_options o = {.resource = &kube_clusterclaims,
                                         .name = w->o.claim,
                                         .on_set = claim_on_set,
                                         .on_delete = claim_on_delete,
                                         .on_synced = claims_on_synced,
                                         .on_trouble = claims_on_trouble,
                                         .arg = w};

    w->claim_watch = kube_watch_new(w->o.kube, &o);
    return 0;
}

int policy_watcher_new(struct policy_watcher **ret, const struct policy_watcher_options *o)
{
    CLEANUP(cleanup_policy_watcher_free) struct policy_watcher *w = xcalloc(1, sizeof(*w));
    const struct kube_queue_options queue = {
        .work = claim_work, .arg = w, .kube = o->kube, .max_retry_ms = RETRY_MS};
    int r = 0;

    if (r < 0)
        return r;
    w->o = *o;
    w->timer.fn = watcher_on_timer;
    w->writer = (struct kube_writer){.kube = o->kube,
                                     .query = "fieldManager=" FIELD_MANAGER,
                                     .kind = "ClusterClaim",
                                     .detail = "claim",
                                     .count = claims_count,
                                     .arg = w};
    kube_object_init(&w->object, &w->writer, o->claim);
    w->writer.queue = kube_queue_new(kube_loop(o->kube), &queue);
    r = 0;
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
    kube_object_done(&w->object);
    w->writer.queue = kube_queue_free(w->writer.queue);
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

/* The ClusterClaim: what others make of it, the check before it becomes compliant, and writing it.
 *
 * Two watchers may run at once while one replaces the other. They see the same Policies, but not since the
 * same moment, so that each takes over the other's value instead of undoing it: `noncompliant` at once, as
 * the other has seen a break; `compliant` if all are compliant, as the other has seen for how long. */
#include "controller/kube/json.h"
#include "controller/kube/verdict.h"
#include "controller/policy/watcher_internal.h"
#include "exporter/base/clock.h"
#include "exporter/base/log.h"
#include "exporter/base/loop.h"

#include <errno.h>
#include <stdio.h>

#define FIELD_MANAGER "dynamic-scoring-policy-watcher"

enum { CHECK_MAX_BYTES = 64 << 20 };

static const char claim_key[] = "claim";

/* ---- What is there ---- */

bool policy_claim_has(const struct policy_watcher *w, enum claim_value v)
{
    return w->claim.exists && strcmp(w->claim.value, claim_value_word(v)) == 0;
}

static bool claim_needs_write(const struct policy_watcher *w)
{
    return w->is_decided && !policy_claim_has(w, w->wanted);
}

static bool claim_needs_check(const struct policy_watcher *w)
{
    return w->is_resumed || (claim_needs_write(w) && w->wanted == CLAIM_COMPLIANT);
}

static void claim_show(struct policy_watcher *w)
{
    for (size_t i = 0; i < CLAIM_VALUES; i++)
        metric_set(w->o.metrics, METRIC_POLICY_CLAIM, LV(claim_value_word((enum claim_value)i)),
                   policy_claim_has(w, (enum claim_value)i));
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
    } else if (policy_claim_has(w, CLAIM_COMPLIANT) && w->has_run) {
        w->run_since = mono_add(loop_now(kube_loop(w->o.kube)), -w->o.stable_ms);
    }
}

void policy_claim_on_set(void *arg, json_t *object)
{
    struct policy_watcher *w = arg;

    if (!claim_take(w, object) || !kube_watch_synced(w->claim_watch))
        return;
    if (w->is_decided && !w->write && !policy_claim_has(w, w->wanted))
        claim_on_edit(w);
    policy_watcher_decide(w);
}

void policy_claim_on_delete(void *arg, const char *namespace, const char *name)
{
    struct policy_watcher *w = arg;

    (void)namespace;
    log_warn("the ClusterClaim was deleted", L_STR("claim", name));
    metric_add(w->o.metrics, METRIC_POLICY_CLAIM_EDITS, LV_NONE, 1);
    w->claim = (struct known_claim){0};
    claim_show(w);
    policy_watcher_decide(w);
}

/* ---- Writing ---- */

static void write_on_answer(void *arg, struct kube_answer *a)
{
    struct policy_watcher *w = arg;
    const char *operation = w->is_creating ? "create" : "patch";
    int64_t wait_ms = a->retry_after_ms;
    bool is_ok = a->verdict == KUBE_OK;

    w->write = NULL;
    metric_add(w->o.metrics, METRIC_POLICY_CLAIM_WRITES, LV(operation, kube_verdict_word(a->verdict)), 1);
    if (is_ok) {
        (void)claim_take(w, a->object);
        wait_ms = last_write_note(&w->last_write, w->written == w->writing, loop_now(kube_loop(w->o.kube)),
                                  "ClusterClaim", w->o.claim);
        w->written = w->writing;
        log_info("ClusterClaim written", L_STR("claim", w->o.claim), L_STR("value", w->claim.value));
    } else if (kube_queue_failures(w->queue, claim_key) == 0) {
        log_warn("ClusterClaim not written", L_STR("claim", w->o.claim), L_STR("err", a->why));
    }
    if (a->verdict == KUBE_NOT_FOUND)
        w->claim.exists = false;
    kube_queue_done(w->queue, claim_key, is_ok && wait_ms < 0, wait_ms);
    policy_watcher_decide(w);
}

static void write_start(struct policy_watcher *w)
{
    const char *value = claim_value_word(w->wanted);
    json_auto_t *body = w->claim.exists
                            ? json_pack("{s:{s:s}}", "spec", "value", value)
                            : json_pack("{s:s, s:s, s:{s:s}, s:{s:s}}", "apiVersion",
                                        "cluster.open-cluster-management.io/v1alpha1", "kind", "ClusterClaim",
                                        "metadata", "name", w->o.claim, "spec", "value", value);
    const struct kube_request rq = {.method = w->claim.exists ? KUBE_MERGE_PATCH : KUBE_CREATE,
                                    .resource = &kube_clusterclaims,
                                    .name = w->claim.exists ? w->o.claim : NULL,
                                    .query = "fieldManager=" FIELD_MANAGER,
                                    .body = body};

    w->writing = w->wanted;
    w->is_creating = !w->claim.exists;
    if (!body || kube_start(&w->write, w->o.kube, &rq, write_on_answer, w) < 0)
        kube_queue_done(w->queue, claim_key, false, -1);
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
    bool claimed = policy_claim_has(w, CLAIM_COMPLIANT) && t->broken_at.ms < w->claim.written_at.ms;

    if (claimed || stable > w->o.stable_ms)
        stable = w->o.stable_ms;
    w->run_since = mono_add(loop_now(l), -stable);
    w->is_resumed = false;
    log_info("policies were compliant at the start", L_INT("stable_ms", stable));
}

static void check_on_list(void *arg, struct kube_answer *a)
{
    struct policy_watcher *w = arg;
    struct policy_tally t = {0};
    bool confirms = a->verdict == KUBE_OK && w->has_run && !w->is_broken &&
                    check_confirms(w, kube_list(a->object, "items", NULL), &t);

    w->check = NULL;
    w->is_check_refused = a->verdict != KUBE_OK;
    if (w->is_check_refused)
        log_warn("Policies not listed, the claim does not become compliant", L_STR("err", a->why));
    else if (!confirms && w->policy_watch)
        kube_watch_hurry(w->policy_watch); /* it is behind */
    if (confirms && w->is_resumed) {
        check_resume(w, &t, a->date);
        policy_watcher_decide(w);
    }
    if (confirms && claim_needs_write(w))
        write_start(w);
    else
        kube_queue_done(w->queue, claim_key, confirms || !claim_needs_check(w), a->retry_after_ms);
}

static void check_start(struct policy_watcher *w)
{
    const struct kube_request rq = {.method = KUBE_LIST,
                                    .resource = &kube_policies,
                                    .namespace = w->o.namespace,
                                    .max_answer = CHECK_MAX_BYTES};

    if (kube_start(&w->check, w->o.kube, &rq, check_on_list, w) < 0)
        kube_queue_done(w->queue, claim_key, false, -1);
}

int policy_claim_touch(struct policy_watcher *w)
{
    claim_show(w);
    if (w->is_check_refused && !claim_needs_check(w)) {
        /* What needs no check does not wait until the next one may be made. */
        kube_queue_forget(w->queue, claim_key);
        w->is_check_refused = false;
    }
    return w->is_resumed || claim_needs_write(w) ? kube_queue_add(w->queue, claim_key) : 0;
}

void policy_claim_work(void *arg, const char *key)
{
    struct policy_watcher *w = arg;

    if (claim_needs_check(w))
        check_start(w);
    else if (claim_needs_write(w))
        write_start(w);
    else
        kube_queue_done(w->queue, key, true, -1);
}

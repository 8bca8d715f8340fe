/* Owns the two watches, what they have shown, and the claim's state of writing. On the loop, called by the
 * watches, the queue and a timer. An event only leads to a new decision, which is made from all that is
 * known; without news of the Policies for long, nothing stays compliant. */
#include "controller/policy/watcher.h"

#include "controller/kube/answer.h"
#include "controller/kube/client.h"
#include "controller/kube/json.h"
#include "controller/kube/queue.h"
#include "controller/kube/reach.h"
#include "controller/kube/request.h"
#include "controller/kube/resource.h"
#include "controller/kube/time.h"
#include "controller/kube/verdict.h"
#include "controller/kube/version.h"
#include "controller/kube/watch.h"
#include "controller/kube/writer.h"
#include "exporter/base/alloc.h"
#include "exporter/base/clock.h"
#include "exporter/base/hash.h"
#include "exporter/base/log.h"
#include "exporter/base/loop.h"
#include "exporter/base/map.h"

#include <strings.h>

#define FIELD_MANAGER "dynamic-scoring-policy-watcher"

enum {
    SECOND_MS = 1000,
    BLIND_MIN_MS = 60 * 1000, /* a compliant claim without news lasts as long at least */
    RETRY_MS = 5000,
};

enum policy_state {
    POLICY_COMPLIANT,
    POLICY_NONCOMPLIANT,
    POLICY_PENDING,
    POLICY_UNKNOWN,  /* no status yet */
    POLICY_DISABLED, /* does not count */
    POLICY_STATES
};

static WORD_TABLE(policy_state_word, enum policy_state, POLICY_STATES,
                  {[POLICY_COMPLIANT] = "compliant",
                   [POLICY_NONCOMPLIANT] = "noncompliant",
                   [POLICY_PENDING] = "pending",
                   [POLICY_UNKNOWN] = "unknown",
                   [POLICY_DISABLED] = "disabled"});

enum claim_value { CLAIM_EMPTY, CLAIM_NONCOMPLIANT, CLAIM_COMPLIANT, CLAIM_VALUES, CLAIM_UNDECIDED };

static WORD_TABLE(
    claim_value_word, enum claim_value, CLAIM_VALUES,
    {[CLAIM_EMPTY] = "empty", [CLAIM_NONCOMPLIANT] = "noncompliant", [CLAIM_COMPLIANT] = "compliant"});

/* What counts of a Policy. Times in objects are those of the cluster's own clocks, in whole seconds. */
struct policy {
    enum policy_state state;
    uint64_t identity; /* of the object and its spec: another one is another demand on the cluster */
    unix_ms broken_at; /* when a template was last not compliant, as its history tells; 0: never */
    unix_ms edited_at; /* when more than the status last changed */
    unix_ms since;     /* compliant, with this spec, since this time or earlier; 0: unknown */
    char name[];
};

struct policy_tally {
    size_t n[POLICY_STATES];
    size_t enabled;
    unix_ms since;     /* the latest of the compliant ones; now if one is unknown */
    unix_ms broken_at; /* the latest broken_at or edited_at of these */
};

/* A watch, argument of its own callbacks. */
struct watched_kind {
    struct policy_watcher *w;
    struct kube_watch *watch;
    const struct kube_resource *resource;
};

struct policy_watcher {
    struct policy_watcher_options o;
    struct watched_kind policy_watch, claim_watch;
    struct kube_writer writer; /* of one key */
    struct kube_object object;
    struct timer timer;  /* when to decide again without an event */
    struct map policies; /* of struct policy */
    json_t *claim;       /* as it was last seen or written; NULL: there is none */
    unsigned claim_era;  /* kube_era() of its version */

    /* A run: all enabled policies are compliant without a break. */
    bool has_run, is_broken; /* is_broken: there was a break since the last decision */
    mono_ms run_since;
    mono_ms blind_at; /* since when there is no news although the API server answers; 0: there is */
    enum claim_value wanted;
};

static void watcher_decide(struct policy_watcher *w);

static void watcher_decide_in(struct policy_watcher *w, int64_t ms)
{
    mono_ms at = mono_add(kube_now(w->o.kube), ms);

    if (w->timer.place && mono_before(w->timer.at, at))
        return;
    loop_timer_set(kube_loop(w->o.kube), &w->timer, at);
}

/* ---- A Policy ---- */

static unix_ms time_later(unix_ms a, unix_ms b)
{
    return a.ms > b.ms ? a : b;
}

static enum policy_state policy_read_state(const json_t *object)
{
    const char *word = cstr(kube_str(object, "status", "compliant", NULL));

    if (kube_bool(object, "spec", "disabled", NULL))
        return POLICY_DISABLED;
    for (enum policy_state i = 0; i < POLICY_UNKNOWN; i++)
        if (strcasecmp(word, policy_state_word(i)) == 0)
            return i;
    return POLICY_UNKNOWN;
}

/* As Open Cluster Management reads them to set the template's state. */
static bool history_is_compliant(const json_t *entry)
{
    static const char combined[] = "(combined from similar events):";
    const char *message = cstr(kube_str(entry, "message", NULL));

    if (strncmp(message, combined, strlen(combined)) == 0)
        message += strlen(combined);
    message += strspn(message, " ");
    return strncasecmp(message, "compliant", strlen("compliant")) == 0;
}

/* The history of a template begins with the newest entry and has ten at most. */
static void policy_read_history(struct policy *p, const json_t *history)
{
    unix_ms since = {0};
    json_t *entry;
    size_t i;

    json_array_foreach(history, i, entry)
    {
        unix_ms at = kube_time_parse(kube_str(entry, "lastTimestamp", NULL));

        if (!history_is_compliant(entry)) {
            p->broken_at = time_later(p->broken_at, at);
            break;
        }
        since = at;
    }
    p->since = since.ms && p->since.ms ? time_later(p->since, since) : (unix_ms){0};
}

/* When anybody last changed more than the status: a list of who wrote which fields, and when. */
static unix_ms policy_edited_at(const json_t *object)
{
    unix_ms last = kube_time_parse(kube_str(object, "metadata", "creationTimestamp", NULL));
    json_t *entry;
    size_t i;

    json_array_foreach(kube_list(object, "metadata", "managedFields", NULL), i, entry)
    {
        if (!kube_str(entry, "subresource", NULL))
            last = time_later(last, kube_time_parse(kube_str(entry, "time", NULL)));
    }
    return last;
}

/* With the content of the spec: after a restore from a backup, another one may have the same generation. */
static uint64_t policy_identity(const json_t *object, int64_t generation)
{
    CLEANUP(cleanup_free)
    char *spec = json_dumps(kube_get(object, "spec", NULL), JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);
    uint64_t identity = hash_bytes(str_of(kube_uid(object)));

    return hash_chain(hash_chain_u64(identity, (uint64_t)generation), str_of(spec));
}

static void policy_read(struct policy *ret, const json_t *object)
{
    json_t *details = kube_list(object, "status", "details", NULL), *one;
    int64_t generation = 0;
    size_t i;

    (void)kube_int(object, &generation, "metadata", "generation", NULL);
    *ret = (struct policy){.state = policy_read_state(object),
                           .identity = policy_identity(object, generation),
                           .edited_at = policy_edited_at(object)};
    ret->since = ret->edited_at;
    json_array_foreach(details, i, one)
    {
        policy_read_history(ret, kube_list(one, "history", NULL));
    }
    /* Times are rounded down. */
    ret->since.ms = json_array_size(details) && ret->since.ms ? ret->since.ms + SECOND_MS : 0;
}

/* Whether the policy was compliant at two looks and, as far as its history tells, between them. */
static bool policy_stayed_compliant(const struct policy *was, const struct policy *is)
{
    return was->state == POLICY_COMPLIANT && is->state == POLICY_COMPLIANT && was->identity == is->identity &&
           is->broken_at.ms <= was->broken_at.ms;
}

/* ---- The claim ----
 *
 * Two watchers may run at once while one replaces the other. They see the same Policies, but not since the
 * same moment, so that each takes over the other's value instead of undoing it: `noncompliant` at once, as
 * the other has seen a break; `compliant` if all are compliant, as the other has seen for how long. */

/* When a policy watcher wrote the value of the ClusterClaim; 0 if the value is another's. */
static unix_ms claim_written_at(const json_t *claim)
{
    json_t *entry;
    size_t i;

    json_array_foreach(kube_list(claim, "metadata", "managedFields", NULL), i, entry)
    {
        if (kube_map(entry, "fieldsV1", "f:spec", "f:value", NULL) &&
            strcmp(cstr(kube_str(entry, "manager", NULL)), FIELD_MANAGER) == 0)
            return kube_time_parse(kube_str(entry, "time", NULL));
    }
    return (unix_ms){0};
}

static const char *claim_value(const struct policy_watcher *w)
{
    return cstr(kube_str(w->claim, "spec", "value", NULL));
}

static bool claim_has(const struct policy_watcher *w, enum claim_value v)
{
    return strcmp(claim_value(w), claim_value_word(v)) == 0;
}

static bool claim_needs_write(const struct policy_watcher *w)
{
    return w->wanted != CLAIM_UNDECIDED && !claim_has(w, w->wanted);
}

static void claim_show(struct policy_watcher *w)
{
    for (enum claim_value v = 0; v < CLAIM_VALUES; v++)
        metric_set(w->o.metrics, METRIC_POLICY_CLAIM, LV(claim_value_word(v)), claim_has(w, v));
    metric_set(w->o.metrics, METRIC_POLICY_CLAIM_BEHIND, LV_NONE, claim_needs_write(w));
}

static void claim_set(struct policy_watcher *w, json_t *object)
{
    json_decref(w->claim);
    w->claim = json_incref(object);
    w->claim_era = kube_era(w->o.kube);
    claim_show(w);
}

/* False for an object older than what is known. */
static bool claim_take(struct policy_watcher *w, json_t *object)
{
    bool same_era = w->claim_era == kube_era(w->o.kube);

    if (w->claim && same_era && !kube_version_newer(kube_version(object), kube_version(w->claim)))
        return false;
    claim_set(w, object);
    return true;
}

/* Another has changed the value that this watcher wants. */
static void claim_on_edit(struct policy_watcher *w)
{
    if (claim_written_at(w->claim).ms == 0) {
        metric_add(w->o.metrics, METRIC_POLICY_CLAIM_EDITS, LV_NONE, 1);
        log_warn("the ClusterClaim was edited by another, restoring it", L_STR("claim", w->o.claim),
                 L_STR("value", claim_value(w)), L_STR("wanted", claim_value_word(w->wanted)));
    } else if (w->wanted == CLAIM_COMPLIANT) {
        w->is_broken = true;
    } else if (claim_has(w, CLAIM_COMPLIANT) && w->has_run) {
        w->run_since = mono_add(kube_now(w->o.kube), -w->o.stable_ms);
    }
}

static void claim_on_set(void *arg, json_t *object)
{
    struct policy_watcher *w = ((struct watched_kind *)arg)->w;

    if (!claim_take(w, object) || !kube_watch_synced(w->claim_watch.watch))
        return;
    if (!w->object.call && claim_needs_write(w))
        claim_on_edit(w);
    watcher_decide(w);
}

static void claim_on_delete(void *arg, const char *namespace, const char *name)
{
    struct policy_watcher *w = ((struct watched_kind *)arg)->w;

    (void)namespace;
    log_warn("the ClusterClaim was deleted", L_STR("claim", name));
    metric_add(w->o.metrics, METRIC_POLICY_CLAIM_EDITS, LV_NONE, 1);
    claim_set(w, NULL);
    watcher_decide(w);
}

static void claim_on_written(struct kube_object *o, struct kube_answer *a)
{
    struct policy_watcher *w = CONTAINER_OF(o, struct policy_watcher, object);

    if (a->verdict == KUBE_OK) {
        (void)claim_take(w, a->object);
        log_info("ClusterClaim written", L_STR("claim", w->o.claim), L_STR("value", claim_value(w)));
        kube_object_clear_error(o);
        kube_object_end(o, true, -1);
    } else {
        if (a->verdict == KUBE_NOT_FOUND)
            claim_set(w, NULL);
        kube_object_fail(o, a);
    }
    watcher_decide(w);
}

/* A patch, or the whole object if there is none. */
static json_t *claim_body(const struct policy_watcher *w, const char *value)
{
    json_t *body = w->claim ? json_object() : kube_resource_object(&kube_clusterclaims, NULL, w->o.claim);

    kube_set_str(kube_set_object(body, "spec"), "value", value);
    return body;
}

/* The queue's work. */
static void claim_work(void *arg, const char *key)
{
    struct policy_watcher *w = arg;
    const char *value = claim_value_word(w->wanted);
    bool exists = w->claim;
    json_auto_t *body = claim_body(w, value);
    const struct kube_request rq = {.method = exists ? KUBE_MERGE_PATCH : KUBE_CREATE,
                                    .resource = &kube_clusterclaims,
                                    .name = exists ? w->o.claim : NULL,
                                    .body = body};

    if (!claim_needs_write(w)) {
        kube_queue_done(w->writer.queue, key, true, -1);
        return;
    }
    kube_object_call(&w->object, exists ? KUBE_WRITE_PATCH : KUBE_WRITE_CREATE, &rq,
                     (struct kube_goal){KUBE_GOAL_STATE, (uint64_t)w->wanted}, claim_on_written);
}

/* ---- What the watch of the Policies shows ---- */

static void policies_on_set(void *arg, json_t *object)
{
    struct policy_watcher *w = ((struct watched_kind *)arg)->w;
    struct policy *known = map_get(&w->policies, kube_name(object));
    struct policy is;

    policy_read(&is, object);
    if (is.state != POLICY_DISABLED && !(known && policy_stayed_compliant(known, &is)))
        w->is_broken = true;
    if (!known) {
        size_t n = strlen(kube_name(object)) + 1;

        known = xcalloc(1, sizeof(*known) + n);
        memcpy(known->name, kube_name(object), n);
        map_set(&w->policies, known->name, known);
    }
    *known = is; /* but its name */
    watcher_decide_in(w, 0);
}

static void policies_on_delete(void *arg, const char *namespace, const char *name)
{
    struct policy_watcher *w = ((struct watched_kind *)arg)->w;

    (void)namespace;
    free(map_take(&w->policies, name));
    watcher_decide_in(w, 0);
}

/* ---- Deciding ---- */

static void watcher_count(struct policy_watcher *w, struct policy_tally *t)
{
    unix_ms now = loop_wall(kube_loop(w->o.kube));
    const struct policy *p;

    for (size_t at = 0; (p = map_next(&w->policies, &at));) {
        t->n[p->state]++;
        t->enabled += p->state != POLICY_DISABLED;
        if (p->state != POLICY_COMPLIANT)
            continue;
        t->since = time_later(t->since, p->since.ms ? p->since : now);
        t->broken_at = time_later(t->broken_at, time_later(p->broken_at, p->edited_at));
    }
    for (enum policy_state i = 0; i < POLICY_STATES; i++)
        metric_set(w->o.metrics, METRIC_POLICY_POLICIES, LV(policy_state_word(i)), (double)t->n[i]);
}

static void watcher_want(struct policy_watcher *w, enum claim_value v)
{
    if (w->wanted != v)
        log_info("policies decided", L_STR("value", claim_value_word(v)),
                 L_INT("policies", (int64_t)w->policies.n));
    w->wanted = v;
    claim_show(w);
    if (claim_needs_write(w))
        kube_queue_add(w->writer.queue, w->o.claim);
}

/* For how long the policies were compliant before the start: by the objects' own times; or long enough if
 * the claim says so and no policy has broken it since. */
static int64_t watcher_stable_at_start(const struct policy_watcher *w, const struct policy_tally *t)
{
    int64_t stable = loop_wall(kube_loop(w->o.kube)).ms - t->since.ms;
    bool claimed = claim_has(w, CLAIM_COMPLIANT) && t->broken_at.ms < claim_written_at(w->claim).ms;

    if (claimed || stable > w->o.stable_ms)
        stable = w->o.stable_ms;
    if (stable < 0)
        stable = 0;
    log_info("policies were compliant at the start", L_INT("stable_ms", stable));
    return stable;
}

/* Whether the Policies were listed at the end of the stable time, as they are at the start. The stream may
 * have died in it without a sign, or this process may have stood still. Otherwise a list is asked for, which
 * leads to another decision. */
static bool watcher_has_news(const struct policy_watcher *w)
{
    struct kube_watch *watch = w->policy_watch.watch;
    mono_ms end = mono_add(w->run_since, w->o.stable_ms);

    if (w->wanted == CLAIM_UNDECIDED || !mono_before(kube_watch_listed(watch), end))
        return true;
    kube_watch_relist(watch);
    return false;
}

/* All policies are compliant, and this is what the watch knows now. */
static void watcher_decide_run(struct policy_watcher *w, const struct policy_tally *t)
{
    int64_t left;

    if (!w->has_run || w->is_broken)
        w->run_since =
            mono_add(kube_now(w->o.kube), w->wanted == CLAIM_UNDECIDED ? -watcher_stable_at_start(w, t) : 0);
    left = w->o.stable_ms - mono_diff(w->run_since, kube_now(w->o.kube));
    if (left <= 0 && w->wanted != CLAIM_COMPLIANT && !watcher_has_news(w))
        return;
    watcher_want(w, left > 0 ? CLAIM_NONCOMPLIANT : CLAIM_COMPLIANT);
    if (left > 0)
        watcher_decide_in(w, left);
}

/* Without news what was decided stays, but nothing stays compliant for long. Does not count while the API
 * server is away, when nothing can be written either: its return brings news first. */
static void watcher_decide_blind(struct policy_watcher *w)
{
    int64_t limit = w->o.stable_ms > BLIND_MIN_MS ? w->o.stable_ms : BLIND_MIN_MS;
    mono_ms now = kube_now(w->o.kube);

    if (w->blind_at.ms == 0 || kube_is_unreachable(w->o.kube))
        w->blind_at = now;
    watcher_decide_in(w, RETRY_MS);
    if ((w->wanted == CLAIM_UNDECIDED ? claim_has(w, CLAIM_COMPLIANT) : w->wanted == CLAIM_COMPLIANT) &&
        mono_diff(w->blind_at, now) >= limit) {
        log_warn("no news of the Policies for too long: they no longer count as compliant");
        w->has_run = false;
        watcher_want(w, CLAIM_NONCOMPLIANT);
    } else if (w->wanted == CLAIM_NONCOMPLIANT) {
        watcher_want(w, CLAIM_NONCOMPLIANT);
    }
}

static void watcher_decide(struct policy_watcher *w)
{
    bool lacks_kind = kube_watch_refused(w->policy_watch.watch) == KUBE_NO_KIND, is_compliant;
    struct policy_tally t = {0};

    if (!kube_watch_synced(w->claim_watch.watch))
        return;
    if (!lacks_kind &&
        (!kube_watch_synced(w->policy_watch.watch) || kube_watch_error(w->policy_watch.watch))) {
        watcher_decide_blind(w);
        return;
    }
    w->blind_at = (mono_ms){0};
    watcher_count(w, &t);
    is_compliant = !lacks_kind && t.enabled && t.n[POLICY_COMPLIANT] == t.enabled;
    if (is_compliant)
        watcher_decide_run(w, &t);
    else
        watcher_want(w, lacks_kind || t.enabled == 0 ? CLAIM_EMPTY : CLAIM_NONCOMPLIANT);
    w->has_run = is_compliant;
    w->is_broken = false;
}

static void watcher_on_timer(struct timer *t)
{
    watcher_decide(CONTAINER_OF(t, struct policy_watcher, timer));
}

/* ---- Life ---- */

static void watched_show(const struct watched_kind *x, bool is_up)
{
    metric_set(x->w->o.metrics, METRIC_KUBE_UP, LV(x->resource->plural, "cluster"), is_up);
    watcher_decide_in(x->w, 0);
}

static void watched_on_synced(void *arg)
{
    watched_show(arg, true);
}

static void watched_on_listed(void *arg)
{
    const struct watched_kind *x = arg;

    watcher_decide_in(x->w, 0);
}

static void watched_on_error(void *arg, const char *error)
{
    const struct watched_kind *x = arg;
    bool lacks_policies = x == &x->w->policy_watch && kube_watch_refused(x->watch) == KUBE_NO_KIND;

    watched_show(x, lacks_policies);
    if (lacks_policies)
        log_warn("Policies are not installed on this cluster: the claim is empty", L_STR("err", error));
    else
        log_warn("watch failed", L_STR("resource", x->resource->plural), L_STR("err", error));
}

static void watched_on_recovered(void *arg)
{
    const struct watched_kind *x = arg;

    watched_show(x, true);
    log_info("watch works again", L_STR("resource", x->resource->plural));
}

static void claims_count(void *arg, enum kube_operation operation, const struct kube_answer *a)
{
    struct policy_watcher *w = arg;

    metric_add(w->o.metrics, METRIC_POLICY_CLAIM_WRITES,
               LV(kube_operation_word(operation), kube_verdict_word(a->verdict)), 1);
}

static void watched_start(struct watched_kind *x, struct policy_watcher *w,
                          const struct kube_resource *resource, struct kube_watch_options o)
{
    *x = (struct watched_kind){.w = w, .resource = resource};
    o.resource = resource;
    o.on_synced = watched_on_synced;
    o.on_listed = watched_on_listed;
    o.on_error = watched_on_error;
    o.on_recovered = watched_on_recovered;
    o.arg = x;
    x->watch = kube_watch_new(w->o.kube, &o);
}

struct policy_watcher *policy_watcher_new(const struct policy_watcher_options *o)
{
    struct policy_watcher *w = xcalloc(1, sizeof(*w));
    const struct kube_queue_options queue = {
        .work = claim_work, .arg = w, .kube = o->kube, .max_retry_ms = RETRY_MS};
    struct kube_watch_options policies = {
        .namespace = o->namespace, .on_set = policies_on_set, .on_delete = policies_on_delete};
    struct kube_watch_options claims = {
        .name = o->claim, .on_set = claim_on_set, .on_delete = claim_on_delete};

    w->o = *o;
    w->wanted = CLAIM_UNDECIDED;
    w->timer.fn = watcher_on_timer;
    w->writer = (struct kube_writer){.kube = o->kube,
                                     .manager = FIELD_MANAGER,
                                     .kind = "ClusterClaim",
                                     .detail = "claim",
                                     .count = claims_count,
                                     .arg = w};
    kube_object_init(&w->object, &w->writer, o->claim);
    w->writer.queue = kube_queue_new(kube_loop(o->kube), &queue);
    watched_start(&w->policy_watch, w, &kube_policies, policies);
    watched_start(&w->claim_watch, w, &kube_clusterclaims, claims);
    return w;
}

struct policy_watcher *policy_watcher_free(struct policy_watcher *w)
{
    struct policy *p;

    if (!w)
        return NULL;
    loop_timer_clear(kube_loop(w->o.kube), &w->timer);
    kube_object_done(&w->object);
    w->writer.queue = kube_queue_free(w->writer.queue);
    w->policy_watch.watch = kube_watch_free(w->policy_watch.watch);
    w->claim_watch.watch = kube_watch_free(w->claim_watch.watch);
    for (size_t at = 0; (p = map_next(&w->policies, &at));)
        free(p);
    map_done(&w->policies);
    json_decref(w->claim);
    free(w);
    return NULL;
}

bool policy_watcher_ready(void *watcher, struct buf *why)
{
    const struct policy_watcher *w = watcher;
    const struct watched_kind *const all[] = {&w->policy_watch, &w->claim_watch};
    bool ready = true;

    for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
        const char *error = kube_watch_error(all[i]->watch);

        if (kube_watch_synced(all[i]->watch) || (i == 0 && kube_watch_refused(all[i]->watch) == KUBE_NO_KIND))
            continue;
        ready = false;
        buf_printf(why, "%s: not listed yet", all[i]->resource->plural);
        if (error)
            buf_printf(why, ": %s", error);
        buf_puts(why, "\n");
    }
    return ready;
}

/* Writes statuses and finalizers of DynamicScorers and DynamicScoringConfigs: a queue by object, and nothing that is already so. */
#include "controller/hub/state/hub_internal.h"

#include "exporter/base/log.h"

#include <errno.h>
#include <stdio.h>

enum {
    KEY_BYTES = 300,
    ACTIVE = 16,
    MIN_RETRY_MS = 1000,
    MAX_RETRY_MS = 60 * 1000,
    COUNTS_MS_A_CLUSTER = 10,
    COUNTS_MAX_MS = 10000,
    BEHIND_MS = 10 * 1000,
    QUARREL_MS = 10 * 60 * 1000,
    QUARREL_TOLD = 3
};

/* An object's part in it, whichever kind it is. */
struct subject {
    const struct kube_resource *resource;
    json_t *object;
    struct written *written;
    char *write_why; /* of 768 bytes */
};

void written_done(struct written *w)
{
    json_decref(w->sent);
    json_decref(w->result);
    *w = (struct written){0};
}

static bool find_subject(struct hub *h, const char *key, struct subject *ret)
{
    const char *slash = strchr(key, '/');

    if (strncmp(key, "scorer/", 7) == 0) {
        struct hub_scorer *s = hub_scorer_find(h, slash + 1);

        if (s)
            *ret = (struct subject){&kube_dynamicscorers, s->object, &s->written, s->write_why};
        return s;
    } else {
        struct hub_config *c = hub_config_find(h, slash + 1);

        if (c)
            *ret = (struct subject){&kube_dynamicscoringconfigs, c->object, &c->written, c->write_why};
        return c;
    }
}

static json_t *wanted_status(struct hub *h, const char *key)
{
    unix_ms now = loop_wall(h->o.loop);
    const char *name = strchr(key, '/') + 1;

    hub_tally(h);
    return strncmp(key, "scorer/", 7) == 0 ? status_of_scorer(hub_scorer_find(h, name), now)
                                           : status_of_config(h, hub_config_find(h, name), now);
}

/* ---- Whether there is anything to write ---- */

/* Whether the merge patch would change anything in the status that is there. */
static bool would_change(const json_t *status, const json_t *patch)
{
    const char *name;
    const json_t *wanted;

    json_object_foreach((json_t *)(uintptr_t)patch, name, wanted)
    {
        const json_t *there = json_object_get(status, name);

        if (json_is_null(wanted) ? there != NULL : !there || !json_equal(there, wanted))
            return true;
    }
    return false;
}

/* A copy without these members, and without this one of each condition. */
static json_t *without(const json_t *status, const char *const *members, const char *of_condition)
{
    json_t *copy = json_deep_copy(status), *condition;
    size_t i;

    for (const char *const *m = members; *m; m++)
        (void)json_object_del(copy, *m);
    json_array_foreach(kube_list(copy, "conditions", NULL), i, condition)
    {
        (void)json_object_del(condition, of_condition);
    }
    return copy;
}

/* Whether two statuses are the same apart from those. Not when memory is out. */
static bool same_without(const json_t *a, const json_t *b, const char *const *members,
                         const char *of_condition)
{
    json_auto_t *one = without(a, members, of_condition), *other = without(b, members, of_condition);

    return one && other && json_equal(one, other);
}

/* How long to wait with a change of mere numbers: while a large fleet is rolled out to, each second has others. */
static int64_t wait_with_counts(const struct hub *h, const struct subject *s, const json_t *wanted)
{
    static const char *const counts[] = {"clusters", "failingClusters", "summariesBytes", NULL};
    int64_t pause = (int64_t)h->totals.managed * COUNTS_MS_A_CLUSTER, since;

    if (!s->written->sent)
        return 0;
    since = mono_diff(s->written->at, loop_now(h->o.loop));
    pause = pause < COUNTS_MAX_MS ? pause : COUNTS_MAX_MS;
    return since < pause && same_without(wanted, s->written->sent, counts, "message") ? pause - since : 0;
}

/* Whether the watch has still to tell of the last write: what is there now is not known. Not for long: after a restore from a backup
 * versions go back. */
static bool is_behind(const struct hub *h, const struct subject *s)
{
    return *s->written->version && mono_diff(s->written->at, loop_now(h->o.loop)) < BEHIND_MS &&
           kube_version_newer(s->written->version, kube_version(s->object));
}

/* Whether the same was sent the last time. The times of conditions do not count: an API server whose CRD has none would let them start anew
 * each time. */
static bool sent_before(const struct subject *s, const json_t *wanted)
{
    static const char *const none[] = {NULL};

    return s->written->sent && same_without(wanted, s->written->sent, none, "lastTransitionTime");
}

/* Whether it was, and what the server made of it is still there. */
static bool written_before(const struct subject *s, const json_t *wanted)
{
    return json_equal(s->written->result, json_object_get(s->object, "status")) && sent_before(s, wanted);
}

/* Two that write over each other would do so without end. How long to wait with what was written at that time, and again so often. */
static int64_t wait_in_quarrel(const struct hub *h, mono_ms at, unsigned again)
{
    int64_t since = mono_diff(at, loop_now(h->o.loop));
    int64_t pause = again && since < QUARREL_MS ? kube_backoff_ms(again, MIN_RETRY_MS, MAX_RETRY_MS, -1) : 0;

    return since < pause ? pause - since : 0;
}

/* ---- Writing ---- */

/* One under way. It may outlive the object that it is about. */
struct hub_write {
    struct hub *hub;
    struct hub_write *next;
    struct kube_call *call;
    char key[KEY_BYTES];
    json_t *status; /* what is sent; NULL: finalizers */
    json_t *before; /* the status that was there */
};

static void write_free(struct hub_write *w)
{
    struct hub_write **at = &w->hub->writes;

    while (*at && *at != w)
        at = &(*at)->next;
    if (*at)
        *at = w->next;
    (void)kube_cancel(w->call);
    json_decref(w->status);
    json_decref(w->before);
    free(w);
}

static void tell_failure(const struct subject *s, const struct kube_answer *a)
{
    if (strcmp(s->write_why, a->why) != 0)
        log_warn("status not written", L_STR("kind", s->resource->kind), L_STR("name", kube_name(s->object)),
                 L_STR("err", a->why));
    (void)snprintf(s->write_why, 768, "%s", a->why);
}

/* Counts on when what is written is the same as before, not long after that. */
static void count_again(const struct hub *h, const struct subject *s, unsigned *n, mono_ms before, bool same)
{
    *n = same && mono_diff(before, loop_now(h->o.loop)) < QUARREL_MS ? *n + 1 : 0;
    if (*n == QUARREL_TOLD)
        log_warn("another changes it each time that it is written", L_STR("kind", s->resource->kind),
                 L_STR("name", kube_name(s->object)));
}

static void wrote_well(const struct subject *s, struct hub_write *w, json_t *answer)
{
    struct written *written = s->written;
    mono_ms now = loop_now(w->hub->o.loop);

    s->write_why[0] = '\0';
    (void)snprintf(written->version, sizeof(written->version), "%s", kube_version(answer));
    if (!w->status) {
        count_again(w->hub, s, &written->held, written->held_at, written->held_at.ms != 0);
        written->held_at = written->at = now;
        return;
    }
    count_again(w->hub, s, &written->again, written->at, sent_before(s, w->status));
    written->at = now;
    json_decref(written->sent);
    json_decref(written->result);
    written->sent = json_incref(w->status);
    written->result = json_incref(json_object_get(answer, "status"));
    status_events(w->hub->events, s->object, s->resource->kind, w->before, w->status);
}

static void wrote(void *arg, struct kube_answer *a)
{
    struct hub_write *w = arg;
    struct hub *h = w->hub;
    struct subject s;
    bool ok = a->verdict == KUBE_OK, found = find_subject(h, w->key, &s);

    hub_count_work(h, w->status ? "status" : "finalizer", a);
    w->call = NULL;
    if (found && ok)
        wrote_well(&s, w, a->object);
    else if (found)
        tell_failure(&s, a);
    hub_count_reconcile(h, "status", ok);
    /* After a finalizer comes the status, once the watch has told of the version that it is in. */
    kube_queue_done(h->status, w->key, ok || a->verdict == KUBE_NOT_FOUND, a->retry_after_ms);
    write_free(w);
}

static int start(struct hub *h, const char *key, const struct subject *s, json_t *patch, json_t *status)
{
    struct hub_write *w = calloc(1, sizeof(*w));
    struct kube_request rq = {
        .method = KUBE_MERGE_PATCH,
        .resource = s->resource,
        .namespace = h->o.namespace,
        .name = kube_name(s->object),
        .subresource = status ? "status" : NULL,
        .body = patch,
        .query = "fieldManager=dynamic-scoring-controller",
    };
    int r;

    if (!w)
        return -ENOMEM;
    w->hub = h;
    (void)snprintf(w->key, sizeof(w->key), "%s", key);
    w->status = json_incref(status);
    w->before = json_incref(json_object_get(s->object, "status"));
    /* A CRD of another make has no conditions, and all would be news each time. */
    if (!kube_get(w->before, "conditions", NULL) && s->written->sent) {
        json_decref(w->before);
        w->before = json_incref(s->written->sent);
    }
    r = kube_start(&w->call, h->o.kube, &rq, wrote, w);
    if (r < 0) {
        write_free(w);
        return r;
    }
    w->next = h->writes;
    h->writes = w;
    return 0;
}

/* 1 when a write is under way, 0 when there is nothing to write. */
static int look_at_finalizers(struct hub *h, const char *key, const struct subject *s)
{
    json_auto_t *patch = NULL;
    int64_t wait;
    int r = 0;

    if (s->resource != &kube_dynamicscoringconfigs)
        return 0;
    patch = hub_config_finalizers(h, hub_config_find(h, strchr(key, '/') + 1), &r);
    if (!patch)
        return r;
    wait = kube_str(s->object, "metadata", "deletionTimestamp", NULL)
               ? 0
               : wait_in_quarrel(h, s->written->held_at, s->written->held);
    if (wait)
        return kube_queue_add_after(h->status, key, wait);
    r = start(h, key, s, patch, NULL);
    return r < 0 ? r : 1;
}

static int write_status(struct hub *h, const char *key, const struct subject *s, json_t *status)
{
    json_auto_t *patch = json_pack("{s:O}", "status", status);
    int r = patch ? start(h, key, s, patch, status) : -ENOMEM;

    return r < 0 ? r : 1;
}

static int look_at_status(struct hub *h, const char *key, const struct subject *s)
{
    json_auto_t *status = wanted_status(h, key);
    int64_t wait;

    if (!status)
        return -ENOMEM;
    if (!would_change(json_object_get(s->object, "status"), status) || written_before(s, status))
        return 0;
    wait = sent_before(s, status) ? wait_in_quarrel(h, s->written->at, s->written->again)
                                  : wait_with_counts(h, s, status);
    return wait ? kube_queue_add_after(h->status, key, wait) : write_status(h, key, s, status);
}

static void work(void *arg, const char *key)
{
    struct hub *h = arg;
    struct subject s;
    int r;

    /* It is looked at again when the watch tells. */
    if (!h->active || !find_subject(h, key, &s) || is_behind(h, &s)) {
        kube_queue_done(h->status, key, true, -1);
        return;
    }
    r = look_at_finalizers(h, key, &s);
    if (r == 0)
        r = look_at_status(h, key, &s);
    if (r < 0)
        log_error("status not written", L_STR("object", key), L_ERR(r));
    if (r <= 0)
        kube_queue_done(h->status, key, r == 0, -1);
}

void hub_status_wanted(struct hub *h, const char *kind, const char *name)
{
    char key[KEY_BYTES];

    if (!h->active || !h->planned)
        return;
    (void)snprintf(key, sizeof(key), "%s/%s", kind, name);
    if (kube_queue_add(h->status, key) < 0)
        log_debug("status not looked at: out of memory");
}

int hub_statuses_new(struct hub *h)
{
    const struct kube_queue_options o = {.work = work,
                                         .arg = h,
                                         .max_active = ACTIVE,
                                         .min_retry_ms = MIN_RETRY_MS,
                                         .max_retry_ms = MAX_RETRY_MS,
                                         .per_second = 10 * (h->o.api_qps / 4 + 1),
                                         .burst = 10 * (h->o.api_burst / 4 + 1)};

    return kube_queue_new(&h->status, h->o.loop, &o);
}

void hub_statuses_cancel(struct hub *h)
{
    struct hub_config *c;
    size_t at = 0;

    while (h->writes) {
        kube_queue_done(h->status, h->writes->key, true, -1);
        write_free(h->writes);
    }
    /* Another writes them from now on. */
    for (size_t i = 0; i < h->n_scorers; i++)
        written_done(&h->by_age[i]->written);
    written_done(&h->config.written);
    while ((c = map_next(&h->other_configs, &at)))
        written_done(&c->written);
}

void hub_statuses_free(struct hub *h)
{
    hub_statuses_cancel(h);
    h->status = kube_queue_free(h->status);
}

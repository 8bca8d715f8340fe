/* Writes ManifestWorks: a queue by cluster, so that one that fails waits for its own back-off and no other for it. */
#include "controller/hub/state/hub_internal.h"

#include "exporter/base/log.h"

#include <errno.h>
#include <stdio.h>

enum {
    ACTIVE = 32,
    JOINS_ACTIVE = 8,
    JOINS_CROWD = 50,
    MIN_RETRY_MS = 500,
    MAX_RETRY_MS = 60 * 1000,
    OLD_MS = 60 * 1000,
    REWRITE_MS = 10 * 60 * 1000, /* writes of the same that come closer are a quarrel with someone */
    BODY_MAX_BYTES = 4 << 20
};

/* ---- Bodies ---- */

struct hub_body *hub_body_unref(struct hub_body *b)
{
    if (!b || --b->refs)
        return NULL;
    buf_done(&b->text);
    free(b);
    return NULL;
}

/* A body of its own for a work that is to be created; one for all of a group for those that are to be patched. */
static int make_body(struct hub_body **ret, struct hub *h, const struct hub_cluster *c)
{
    BUF_AUTO(summaries, BODY_MAX_BYTES);
    struct hub_body *b;
    int r;

    if (c->found.exists && h->body && h->body->group == c->group) {
        h->body->refs++;
        *ret = h->body;
        return 0;
    }
    b = calloc(1, sizeof(*b));
    if (!b)
        return -ENOMEM;
    *b = (struct hub_body){.refs = 1, .group = c->found.exists ? c->group : NULL};
    buf_init(&b->text, BODY_MAX_BYTES);
    r = plan_text(h->plan, c->group, &summaries);
    if (r == 0 && c->found.exists)
        r = work_patch(&b->text, h->o.agent_namespace, buf_str(&summaries));
    else if (r == 0)
        r = work_object(&b->text, c->name, h->o.agent_namespace, buf_str(&summaries));
    if (r < 0) {
        (void)hub_body_unref(b);
        return r;
    }
    if (b->group) {
        h->body = hub_body_unref(h->body);
        h->body = b;
        b->refs++;
    }
    *ret = b;
    return 0;
}

/* ---- One write ---- */

static void failed(struct hub_cluster *c, const char *why, bool first)
{
    if (first || strcmp(c->why, why) != 0)
        log_warn("ManifestWork not written", L_STR("cluster", c->name), L_STR("err", why));
    (void)snprintf(c->why, sizeof(c->why), "%.*s", (int)sizeof(c->why) - 1, why);
}

static void finish(struct hub *h, struct hub_cluster *c, bool ok, int64_t retry_after_ms)
{
    struct kube_queue *q = TAKE_PTR(c->queue);

    c->body = hub_body_unref(c->body);
    hub_count_reconcile(h, "works", ok);
    if (ok)
        c->failures = 0;
    kube_queue_done(q, c->name, ok, retry_after_ms);
    hub_touch(h);
    /* What was wanted may have changed meanwhile. */
    hub_cluster_settle(h, c);
    hub_cluster_forget(h, c);
}

static const char not_kept[] =
    "the API server does not keep the ManifestWork as it was written: does a webhook or "
    "another controller change it?";

/* Versions are numbers (KEP-5504); 0 for none. */
static uint64_t version_of(const json_t *object)
{
    return strtoull(kube_version(object), NULL, 10);
}

static bool is_as_kept(const struct hub_cluster *c)
{
    return c->found.frame && c->found.hash == c->kept;
}

/* What another undoes is written again at once; when that goes on, later and later, else two controllers write without end. */
static void keep(struct hub_cluster *c)
{
    mono_ms now = loop_now(c->hub->o.loop);
    bool again = c->kept == c->sent && mono_diff(c->kept_at, now) < REWRITE_MS;

    c->rewrites = again ? c->rewrites + 1 : 0;
    c->kept = c->sent;
    c->kept_at = now;
    if (c->rewrites == 1)
        log_warn("ManifestWork was changed or deleted by another, and written again",
                 L_STR("cluster", c->name));
}

/* From before the last write. Not for long: after a restore from a backup versions go back. */
static bool is_old(const struct hub_cluster *c, uint64_t version)
{
    return version && version < c->wrote && mono_diff(c->kept_at, loop_now(c->hub->o.loop)) < OLD_MS;
}

void hub_work_seen(struct hub *h, struct hub_cluster *c, const json_t *object)
{
    uint64_t version = version_of(object);

    c->seen = version;
    if (is_old(c, version))
        return;
    work_look(&c->found, object, h->o.agent_namespace);
    if (!version || version != c->wrote)
        return;
    c->lies = is_as_kept(c) ? 0 : c->lies + 1;
    if (c->lies)
        failed(c, not_kept, c->lies == 1);
}

/* The answer is metadata alone: what was sent is taken for what is there, until the watch shows it, if it has not yet. */
static bool take_answer(struct hub_cluster *c, const json_t *object)
{
    uint64_t version = version_of(object);
    bool ok = version > 0;

    c->wrote = version;
    if (ok)
        keep(c);
    if (ok && c->seen < version)
        c->found = (struct work_found){.exists = true, .ours = true, .frame = true, .hash = c->sent};
    else if (ok && c->seen == version)
        ok = is_as_kept(c);
    if (!ok)
        failed(c, version ? not_kept : "the API server's answer names no version", c->failures++ == 0);
    return ok;
}

static void wrote(void *arg, struct kube_answer *a)
{
    struct hub_cluster *c = arg;
    struct hub *h = c->hub;
    bool ok = a->verdict == KUBE_OK;

    c->call = NULL;
    hub_count_work(h, c->body->group ? "patch" : "create", a);
    if (ok)
        ok = take_answer(c, a->object);
    else
        failed(c, a->why, c->failures++ == 0);
    if (a->verdict == KUBE_NOT_FOUND)
        c->found = (struct work_found){0};
    finish(h, c, ok, a->retry_after_ms);
}

static void deleted(void *arg, struct kube_answer *a)
{
    struct hub_cluster *c = arg;
    struct hub *h = c->hub;
    bool ok = a->verdict == KUBE_OK || a->verdict == KUBE_NOT_FOUND;

    c->call = NULL;
    hub_count_work(h, "delete", a);
    if (a->verdict == KUBE_NOT_FOUND)
        c->found = (struct work_found){0};
    else if (ok)
        /* Until the watch says that it is gone, as the work agent's finalizer may hold it; it may have said so already. */
        c->found.deleting = c->found.exists;
    else
        failed(c, a->why, c->failures++ == 0);
    finish(h, c, ok, a->retry_after_ms);
}

static int start_write(struct hub *h, struct hub_cluster *c)
{
    const bool exists = c->found.exists;
    struct kube_request rq = {
        .method = exists ? KUBE_MERGE_PATCH : KUBE_CREATE,
        .resource = &kube_manifestworks,
        .namespace = c->name,
        .name = exists ? WORK_NAME : NULL,
        .query = "fieldManager=dynamic-scoring-controller",
        .metadata_only = true,
    };
    int r = make_body(&c->body, h, c);

    if (r < 0)
        return r;
    /* Of one that is made anew the answer tells, unless it is deleted meanwhile. */
    if (!exists)
        c->seen = 0;
    c->sent = c->wanted;
    rq.body_text = buf_str(&c->body->text);
    return kube_start(&c->call, h->o.kube, &rq, wrote, c);
}

static int start_delete(struct hub *h, struct hub_cluster *c)
{
    const struct kube_request rq = {
        .method = KUBE_DELETE, .resource = &kube_manifestworks, .namespace = c->name, .name = WORK_NAME};

    return kube_start(&c->call, h->o.kube, &rq, deleted, c);
}

static void work_on(struct hub *h, struct kube_queue *q, const char *name)
{
    struct hub_cluster *c = map_get(&h->clusters, name);
    int r;

    if (!c || !h->active || c->call || hub_cluster_in_sync(h, c)) {
        kube_queue_done(q, name, true, -1);
        return;
    }
    /* Not written over: someone is deleting it, and it is made anew when it is gone. */
    if (c->found.deleting) {
        kube_queue_done(q, name, true, -1);
        return;
    }
    c->queue = q;
    r = hub_cluster_wants(h, c) == HUB_WANT_WORK ? start_write(h, c) : start_delete(h, c);
    if (r == 0)
        return;
    failed(c, strerror(-r), c->failures++ == 0);
    c->queue = NULL;
    c->body = hub_body_unref(c->body);
    hub_count_reconcile(h, "works", false);
    kube_queue_done(q, name, false, -1);
}

static void on_work(void *arg, const char *name)
{
    work_on(arg, ((struct hub *)arg)->works, name);
}

static void on_join(void *arg, const char *name)
{
    work_on(arg, ((struct hub *)arg)->joins, name);
}

void hub_work_wanted(struct hub *h, struct hub_cluster *c)
{
    size_t joining = kube_queue_length(h->joins);
    /* So many at once are no joiners but a fleet's first roll-out: it takes both queues. */
    bool crowd = joining >= JOINS_CROWD && kube_queue_length(h->works) < joining;
    struct kube_queue *q = c->found.exists || crowd ? h->works : h->joins;
    bool same = c->wanted == c->kept && hub_cluster_wants(h, c) == HUB_WANT_WORK;
    unsigned n = same && c->rewrites > c->lies ? c->rewrites : c->lies;
    int64_t ms = n ? kube_backoff_ms(n, MIN_RETRY_MS, MAX_RETRY_MS, -1) : 0;

    if (c->call)
        return; /* looked at again when it ends */
    /* One that is changed under way, each time, is not to be written without end. */
    if (kube_queue_add_after(q, c->name, ms) < 0)
        log_error("ManifestWork not written: out of memory", L_STR("cluster", c->name));
}

/* A quarter of the rate, on top, is for clusters that join. */
int hub_works_new(struct hub *h)
{
    struct kube_queue_options o = {.work = on_work,
                                   .arg = h,
                                   .max_active = ACTIVE,
                                   .min_retry_ms = MIN_RETRY_MS,
                                   .max_retry_ms = MAX_RETRY_MS,
                                   .per_second = h->o.api_qps,
                                   .burst = h->o.api_burst};
    int r = kube_queue_new(&h->works, h->o.loop, &o);

    o.work = on_join;
    o.max_active = JOINS_ACTIVE;
    o.per_second = h->o.api_qps / 4 + 1;
    o.burst = h->o.api_burst / 4 + 1;
    return r ?: kube_queue_new(&h->joins, h->o.loop, &o);
}

void hub_works_cancel(struct hub *h)
{
    struct hub_cluster *c;
    size_t at = 0;

    while ((c = map_next(&h->clusters, &at))) {
        c->behind = false;
        c->failures = 0;
        c->why[0] = '\0';
        if (!c->call)
            continue;
        c->call = kube_cancel(c->call);
        c->body = hub_body_unref(c->body);
        kube_queue_done(TAKE_PTR(c->queue), c->name, true, -1);
    }
}

void hub_works_free(struct hub *h)
{
    hub_works_cancel(h);
    h->works = kube_queue_free(h->works);
    h->joins = kube_queue_free(h->joins);
}

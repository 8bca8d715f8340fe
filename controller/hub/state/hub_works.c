#include "controller/hub/state/hub_works.h"

#include "controller/hub/rules/plan.h"
#include "controller/hub/rules/work.h"
#include "controller/hub/rules/work_text.h"
#include "controller/hub/state/hub_counters.h"
#include "controller/hub/state/hub_schedule.h"
#include "controller/kube/client.h"
#include "controller/kube/json.h"
#include "controller/kube/last_write.h"
#include "controller/kube/queue.h"
#include "controller/kube/verdict.h"
#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/log.h"
#include "exporter/base/loop.h"
#include "exporter/base/map.h"

#include <errno.h>
#include <stdio.h>

enum {
    ACTIVE = 32,
    RESERVED_ACTIVE = 8, /* for clusters without a work */
    MIN_RETRY_MS = 500,
    MAX_RETRY_MS = 60 * 1000,
    STALE_EVENT_MS = 60 * 1000,
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

static int work_body_print(struct buf *into, const struct hub *h, const struct hub_cluster *c)
{
    BUF_AUTO(summaries, BODY_MAX_BYTES);
    int r = plan_text(h->plan, c->group, &summaries);

    if (r < 0)
        return r;
    return c->work.exists ? work_patch(into, h->o.agent_namespace, buf_str(&summaries))
                          : work_object(into, c->name, h->o.agent_namespace, buf_str(&summaries));
}

/* A creation has a body of its own; a patch is the same for all clusters of a group. */
static int work_body_make(struct hub_body **ret, struct hub *h, const struct hub_cluster *c)
{
    struct hub_body *b;
    int r;

    if (c->work.exists && h->body && h->body->group == c->group) {
        h->body->refs++;
        *ret = h->body;
        return 0;
    }
    b = calloc(1, sizeof(*b));
    if (!b)
        return -ENOMEM;
    *b = (struct hub_body){.refs = 1, .group = c->work.exists ? c->group : NULL};
    buf_init(&b->text, BODY_MAX_BYTES);
    r = work_body_print(&b->text, h, c);
    if (r < 0) {
        (void)hub_body_unref(b);
        return r;
    }
    if (b->group) {
        (void)hub_body_unref(h->body);
        h->body = b;
        b->refs++;
    }
    *ret = b;
    return 0;
}

/* ---- One write ---- */

static void work_set_error(struct hub_cluster *c, const char *error)
{
    if (strcmp(c->write_error, error) != 0)
        log_warn("ManifestWork not written", L_STR("cluster", c->name), L_STR("err", error));
    (void)snprintf(c->write_error, sizeof(c->write_error), "%.*s", (int)sizeof(c->write_error) - 1, error);
}

/* What ends with a short absence of the API server is no failure of the cluster: its ManifestWork is merely
 * behind. */
static void work_set_failed(struct hub_cluster *c, const struct kube_answer *a)
{
    if (a->verdict != KUBE_RETRY || kube_absence_ms(c->hub->o.kube) >= KUBE_GRACE_MS)
        work_set_error(c, a->why);
}

static void work_finish(struct hub_cluster *c, bool ok, int64_t retry_after_ms)
{
    struct hub *h = c->hub;

    c->body = hub_body_unref(c->body);
    c->failures = ok ? 0 : c->failures + 1;
    hub_count_reconcile(h, "works", ok);
    kube_queue_done(h->works, c->name, ok, retry_after_ms);
    hub_schedule_tally(h);
    h->on_work_written(h, c);
}

/* Versions are numbers (KEP-5504); 0 for none. */
static uint64_t work_version(const json_t *object)
{
    return strtoull(kube_version(object), NULL, 10);
}

/* The watch shows the very version that our write led to. */
static void work_check_stored(struct hub_cluster *c)
{
    if (!c->work.frame || c->work.hash != c->written_hash)
        work_set_error(c, "the ManifestWork was changed while it was written: "
                          "check for a mutating webhook or another controller");
}

/* An event from before our last write. Only for a while: after a restore from a backup versions go back. */
static bool work_is_stale(const struct hub_cluster *c, uint64_t version)
{
    return version && version < c->written_version &&
           mono_diff(c->last_write.at, loop_now(c->hub->o.loop)) < STALE_EVENT_MS;
}

void hub_work_observe(struct hub *h, struct hub_cluster *c, const json_t *object)
{
    uint64_t version = work_version(object);

    c->watched_version = version;
    if (work_is_stale(c, version))
        return;
    work_look(&c->work, object, h->o.agent_namespace);
    if (version && version == c->written_version)
        work_check_stored(c);
}

/* The answer is metadata alone: what was sent counts as what exists, until the watch shows it. Returns how
 * long to wait when another writer keeps undoing our writes, -1 otherwise. */
static int64_t work_take_answer(struct hub_cluster *c, uint64_t version)
{
    bool same = c->written_hash == c->call_hash;

    c->written_version = version;
    c->written_hash = c->call_hash;
    if (c->watched_version < version)
        c->work = (struct work_found){.exists = true, .ours = true, .frame = true, .hash = c->call_hash};
    else if (c->watched_version == version)
        work_check_stored(c);
    return last_write_note(&c->last_write, same, loop_now(c->hub->o.loop), "ManifestWork", c->name);
}

static void work_on_written(void *arg, struct kube_answer *a)
{
    struct hub_cluster *c = arg;
    uint64_t version = a->verdict == KUBE_OK ? work_version(a->object) : 0;
    int64_t wait_ms = a->retry_after_ms;

    c->call = NULL;
    hub_count_write(c->hub, c->body->group ? "patch" : "create", a);
    if (version)
        wait_ms = work_take_answer(c, version);
    else if (a->verdict == KUBE_OK)
        work_set_error(c, "the API server's answer has no resourceVersion");
    else
        work_set_failed(c, a);
    if (a->verdict == KUBE_NOT_FOUND)
        c->work = (struct work_found){0};
    work_finish(c, version && wait_ms < 0, wait_ms);
}

static void work_on_deleted(void *arg, struct kube_answer *a)
{
    struct hub_cluster *c = arg;
    bool ok = a->verdict == KUBE_OK || a->verdict == KUBE_NOT_FOUND;

    c->call = NULL;
    c->written_hash = 0; /* to create it again undoes nothing */
    hub_count_write(c->hub, "delete", a);
    if (a->verdict == KUBE_NOT_FOUND)
        c->work = (struct work_found){0};
    else if (ok)
        /* The work agent's finalizer may keep it for a while; the watch may also have shown its end
         * already. */
        c->work.deleting = c->work.exists;
    else
        work_set_failed(c, a);
    work_finish(c, ok, a->retry_after_ms);
}

static int work_start_write(struct hub *h, struct hub_cluster *c)
{
    const bool exists = c->work.exists;
    struct kube_request rq = {
        .method = exists ? KUBE_MERGE_PATCH : KUBE_CREATE,
        .resource = &kube_manifestworks,
        .namespace = c->name,
        .name = exists ? WORK_NAME : NULL,
        .query = "fieldManager=dynamic-scoring-controller",
        .metadata_only = true,
    };
    int r = work_body_make(&c->body, h, c);

    if (r < 0)
        return r;
    /* The answer to a creation is believed, unless the work is deleted meanwhile. */
    if (!exists)
        c->watched_version = 0;
    c->call_hash = c->wanted_hash;
    rq.body_text = buf_str(&c->body->text);
    return kube_start(&c->call, h->o.kube, &rq, work_on_written, c);
}

static int work_start_delete(struct hub *h, struct hub_cluster *c)
{
    const struct kube_request rq = {
        .method = KUBE_DELETE, .resource = &kube_manifestworks, .namespace = c->name, .name = WORK_NAME};

    return kube_start(&c->call, h->o.kube, &rq, work_on_deleted, c);
}

static void work_reconcile(void *arg, const char *name)
{
    struct hub *h = arg;
    struct hub_cluster *c = map_get(&h->clusters, name);
    int r;

    /* A work that someone is deleting is created again once it is gone. */
    if (!c || !h->active || c->call || c->work.deleting || hub_cluster_in_sync(h, c)) {
        kube_queue_done(h->works, name, true, -1);
        return;
    }
    r = hub_cluster_target(h, c) == TARGET_WORK ? work_start_write(h, c) : work_start_delete(h, c);
    if (r == 0)
        return;
    work_set_error(c, strerror(-r));
    c->failures++;
    c->body = hub_body_unref(c->body);
    hub_count_reconcile(h, "works", false);
    kube_queue_done(h->works, name, false, -1);
}

void hub_work_enqueue(struct hub *h, struct hub_cluster *c)
{
    enum kube_priority priority = c->work.exists ? KUBE_NORMAL : KUBE_HIGH;

    /* After a call under way the cluster is reconciled anyway. */
    if (!c->call && kube_queue_add_as(h->works, c->name, priority, 0) < 0)
        log_error("ManifestWork not written: out of memory", L_STR("cluster", c->name));
}

int hub_works_new(struct hub *h, void (*written)(struct hub *h, struct hub_cluster *c))
{
    /* A quarter of the rate and of the slots is on top, for clusters without a work: a roll-out does not
     * delay them. */
    const struct kube_queue_options o = {.work = work_reconcile,
                                         .arg = h,
                                         .kube = h->o.kube,
                                         .max_active = ACTIVE + RESERVED_ACTIVE,
                                         .reserved_active = RESERVED_ACTIVE,
                                         .min_retry_ms = MIN_RETRY_MS,
                                         .max_retry_ms = MAX_RETRY_MS,
                                         .per_second = h->o.api_qps + h->o.api_qps / 4 + 1,
                                         .burst = h->o.api_burst + h->o.api_burst / 4 + 1};

    h->on_work_written = written;
    return kube_queue_new(&h->works, h->o.loop, &o);
}

void hub_works_cancel(struct hub *h)
{
    struct hub_cluster *c;
    size_t at = 0;

    while ((c = map_next(&h->clusters, &at))) {
        c->behind = false;
        c->failures = 0;
        c->write_error[0] = '\0';
        if (!c->call)
            continue;
        c->call = kube_cancel(c->call);
        c->body = hub_body_unref(c->body);
        kube_queue_done(h->works, c->name, true, -1);
    }
}

void hub_works_free(struct hub *h)
{
    hub_works_cancel(h);
    h->works = kube_queue_free(h->works);
}

/* The spool of an endpoint: opened at start or as soon as that is possible, watched while it runs, and
 * closed with the true number of samples that wait in it. Sender thread. */
#include "remotewrite/endpoint_internal.h"

#include "exporter/base/backoff.h"
#include "exporter/base/log.h"
#include "remotewrite/intake.h"
#include "remotewrite/queue.h"
#include "remotewrite/spool.h"

#include <errno.h>

enum {
    MEMORY_BYTES = 8 << 20,
    MEMORY_ONLY_BYTES = 64 << 20,
    SEGMENT_MAX = 16 << 20,
    SEGMENT_MIN = 64 << 10,
};

static const struct backoff spool_backoff = {1000, 60 * 1000, 60 * 1000};

static void spool_retry_later(struct endpoint *e)
{
    e->spool_retry_at = mono_add(loop_now(e->loop), backoff_ms(&spool_backoff, ++e->spool_failures, -1));
}

static size_t segment_bytes(uint64_t max_bytes)
{
    uint64_t n = max_bytes / 8;

    return n > SEGMENT_MAX ? SEGMENT_MAX : n < SEGMENT_MIN ? SEGMENT_MIN : (size_t)n;
}

/* Notes why the spool is not open; logs it once until it is. */
static void spool_note_failure(struct endpoint *e, int error)
{
    if (e->draining) /* the leader has it; there is nothing to send here */
        return;
    if (error == -EBUSY)
        spool_ask_for(e->dir);
    if (e->spool_error == 0)
        log_error(error == -EBUSY ? "spool is in use by another process, keeping samples in memory"
                                  : "cannot open the spool, keeping samples in memory",
                  L_STR("remote_name", e->config->name), L_STR("dir", e->dir), L_ERR(error));
    e->spool_error = error;
    spool_retry_later(e);
}

static void spool_log_recovery(const struct endpoint *e, uint64_t lost_before)
{
    struct spool_stats found;
    struct queue_stats s;
    uint64_t lost;

    spool_stats(e->spool, &found);
    queue_stats(e->queue, &s);
    lost = s.dropped[DROP_DAMAGED] - lost_before;
    if (s.records || found.damaged_places || found.torn_bytes || found.unread.n)
        LOG_AT(found.damaged_places || lost || found.unread.n ? LOG_LEVEL_WARN : LOG_LEVEL_INFO, "spool read",
               L_STR("remote_name", e->config->name), L_INT("samples", s.samples),
               L_INT("records", s.records), L_INT("samples_lost", lost),
               L_INT("damaged_bytes", found.damaged_bytes), L_INT("torn_bytes", found.torn_bytes),
               L_INT("unread_segments", found.unread.n), L_INT("unread_bytes", found.unread.bytes));
}

static int spool_open(struct endpoint *e, struct spool **ret)
{
    return spool_new(ret, e->dir, segment_bytes(e->config->max_spool_bytes));
}

int endpoint_spool_open(struct endpoint *e)
{
    const struct rw_endpoint_config *c = e->config;
    struct queue_options o = {
        .max_bytes = !e->dir && !c->max_spool_given ? MEMORY_ONLY_BYTES : c->max_spool_bytes,
        .policy = c->full_policy,
        .age_limit_ms = c->sample_age_limit_ms,
        .memory_bytes = MEMORY_BYTES,
    };
    int r = e->dir ? spool_open(e, &e->spool) : 0;

    o.max_memory = e->dir && o.max_bytes > MEMORY_ONLY_BYTES ? MEMORY_ONLY_BYTES : o.max_bytes;
    if (!e->dir)
        log_warn("no storage path: pending samples are kept in memory and lost at a restart",
                 L_STR("remote_name", c->name));
    o.spool = e->spool;
    if (r == 0)
        r = queue_new(&e->queue, &o);
    if (r < 0 && e->dir) {
        spool_note_failure(e, r);
        o.spool = e->spool = spool_free(e->spool);
        r = queue_new(&e->queue, &o);
    }
    if (r < 0)
        return r;
    if (e->spool)
        spool_log_recovery(e, 0);
    return intake_new(&e->intake, c, e->queue, e->spool);
}

static void spool_reopen(struct endpoint *e)
{
    CLEANUP(cleanup_spool_free) struct spool *spool = NULL;
    struct queue_stats before;
    int r = spool_open(e, &spool);

    queue_stats(e->queue, &before);
    if (r == 0)
        r = queue_attach(e->queue, spool);
    if (r < 0) {
        spool_note_failure(e, r);
        return;
    }
    e->spool = TAKE_PTR(spool);
    e->spool_error = 0;
    e->spool_failures = 0;
    log_info("spool opened", L_STR("remote_name", e->config->name), L_STR("dir", e->dir));
    spool_log_recovery(e, before.dropped[DROP_DAMAGED]);
    intake_attach(e->intake, e->spool);
}

static void spool_on_removed(struct endpoint *e)
{
    uint64_t lost = queue_detach(e->queue);

    intake_attach(e->intake, NULL);
    e->spool = spool_free(e->spool);
    e->spool_error = -ENOENT;
    log_error("spool folder was removed, making it anew", L_STR("remote_name", e->config->name),
              L_STR("dir", e->dir), L_INT("samples_lost", lost));
    spool_reopen(e);
}

static void spool_check_files(struct endpoint *e)
{
    uint64_t lost = queue_check_files(e->queue);

    if (lost)
        log_error("spool segments were removed", L_STR("remote_name", e->config->name), L_STR("dir", e->dir),
                  L_INT("samples_lost", lost));
}

/* What failed is tried again with back-off, or `now`. */
static void spool_mend(struct endpoint *e, bool now)
{
    bool due = now || !mono_before(loop_now(e->loop), e->spool_retry_at);
    struct spool_stats found;
    struct queue_stats s;

    if (!e->spool) {
        if (due)
            spool_reopen(e);
        return;
    }
    if (due)
        queue_retry_unread(e->queue);
    queue_stats(e->queue, &s);
    if (due || s.disk_error == 0)
        queue_store_waiting(e->queue);
    queue_stats(e->queue, &s);
    spool_stats(e->spool, &found);
    if (s.disk_error == 0 && found.unread.n == 0)
        e->spool_failures = 0;
    else if (due)
        spool_retry_later(e);
}

static void spool_watch(struct endpoint *e, bool now)
{
    if (!e->dir)
        return;
    if (e->spool && !spool_is_there(e->spool))
        spool_on_removed(e);
    else if (e->spool)
        spool_check_files(e);
    spool_mend(e, now);
}

void endpoint_spool_tick(struct endpoint *e)
{
    spool_watch(e, false);
    endpoint_spool_log(e);
}

void endpoint_spool_log(struct endpoint *e)
{
    struct queue_stats s;

    queue_stats(e->queue, &s);
    if (s.disk_error < 0 && !e->disk_failing)
        log_error("cannot write the spool, keeping samples in memory", L_STR("remote_name", e->config->name),
                  L_STR("dir", e->dir), L_ERR(s.disk_error));
    else if (s.disk_error == 0 && e->disk_failing)
        log_info("spool is writable again", L_STR("remote_name", e->config->name), L_STR("dir", e->dir));
    e->disk_failing = s.disk_error < 0;
}

/* What fdatasync() has confirmed waits for the next start; the rest is lost. */
static void spool_last_words(struct endpoint *e)
{
    struct spool_stats found = {0};
    struct queue_stats s;
    int error;

    if (e->spool)
        spool_stats(e->spool, &found);
    queue_stats(e->queue, &s);
    error = e->spool_error < 0 ? e->spool_error : s.disk_error;
    if (s.samples > s.unsaved || found.unread.n)
        log_info(e->draining ? "samples remain in the spool for the leader"
                             : "samples remain in the spool for the next start",
                 L_STR("remote_name", e->config->name), L_INT("samples", s.samples - s.unsaved),
                 L_INT("unread_bytes", found.unread.bytes));
    if (s.unsaved == 0)
        return;
    queue_count_drop(e->queue, DROP_UNSAVED, s.unsaved);
    log_warn(e->dir ? "samples lost: not stored in the spool" : "samples lost: no spool",
             L_STR("remote_name", e->config->name), L_INT("samples", s.unsaved),
             L_STR("err", error < 0 ? strerror(-error) : ""));
}

bool endpoint_spool_is_wanted(const struct endpoint *e)
{
    return e->spool && spool_is_asked_for(e->spool);
}

void endpoint_spool_close(struct endpoint *e)
{
    if (e->queue && e->intake) {
        spool_watch(e, true);
        queue_save_position(e->queue, true);
        spool_last_words(e);
        (void)pthread_mutex_lock(&e->lock);
        queue_stats(e->queue, &e->state.queue);
        (void)pthread_mutex_unlock(&e->lock);
    }
    e->intake = intake_free(e->intake);
    e->queue = queue_free(e->queue);
    e->spool = spool_free(e->spool);
}

/* Owns the lanes with their records, and the limits. Endpoint's thread. A record in flight is never dropped,
 * and a read position never goes past a record that waits. It logs nothing: the endpoint does, by the
 * statistics. */
#include "remotewrite/queue.h"

#include "exporter/base/alloc.h"
#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/invariant.h"
#include "remotewrite/folder.h"
#include "remotewrite/lane.h"
#include "remotewrite/queue_internal.h"
#include "remotewrite/timestamp.h"

#include <errno.h>

enum { FRESH_PICKS = 3 };

const char *const queue_drop_words[DROPS] = {
    [DROP_FULL_OLDEST] = "full_oldest", [DROP_FULL_NEWEST] = "full_newest",
    [DROP_TOO_OLD] = "too_old",         [DROP_DAMAGED] = "damaged",
    [DROP_MEMORY] = "memory",           [DROP_REJECTED] = "rejected",
    [DROP_INVALID] = "invalid",         [DROP_BUSY] = "busy",
    [DROP_UNSAVED] = "unsaved",
};

struct queue *queue_new(const struct queue_options *o)
{
    struct queue *q = xcalloc(1, sizeof(*q));

    lanes_init(&q->lanes);
    LIST_INIT(&q->backlog.companions);
    LIST_INIT(&q->backlog.unsynced);
    folder_init(&q->folder, o->dir);
    queue_configure(q, o);
    q->next_seq = 1;
    return q;
}

void queue_configure(struct queue *q, const struct queue_options *o)
{
    q->o = *o;
    q->o.dir = NULL; /* of the caller, who may free it */
    if (!q->o.max_memory)
        q->o.max_memory = o->max_bytes;
    if (q->spool)
        q->spool->segment_bytes = o->segment_bytes;
}

/* ---- Records that end ---- */

void queue_forget(struct queue *q, struct record *r)
{
    record_unlink(&q->backlog, r);
    record_free(r);
}

struct queue *queue_free(struct queue *q)
{
    const struct backlog *b;
    struct lane *l;

    if (!q)
        return NULL;
    b = &q->backlog;
    if (b->picked)
        queue_put_back(q);
    TAILQ_FOREACH (l, &q->lanes.turns, turn)
        while (!TAILQ_EMPTY(&l->records))
            queue_forget(q, TAILQ_FIRST(&l->records));
    invariant(b->records == 0 && b->samples == 0 && b->memory == 0 && b->memory_only == 0);
    lanes_done(&q->lanes);
    queue_close_spool(q);
    folder_done(&q->folder);
    free(q);
    return NULL;
}

void queue_end_record(struct queue *q, struct record *r)
{
    struct lane *l = r->lane;

    if (r == TAILQ_FIRST(&l->records) && r->head.seq > l->done && !record_is_ahead(r)) {
        l->done = r->head.seq;
        q->position_changed = true;
    }
    queue_forget(q, r);
}

/* Also removes it from its segment. */
static void queue_remove(struct queue *q, struct record *r)
{
    struct spool_segment *segment = r->segment;

    queue_end_record(q, r);
    if (segment)
        spool_forget(segment);
}

void queue_count_drop(struct queue *q, enum queue_drop why, uint64_t samples)
{
    q->dropped[why] += samples;
}

void queue_drop(struct queue *q, struct record *r, enum queue_drop why)
{
    queue_count_drop(q, why, r->head.samples);
    queue_remove(q, r);
}

/* The segment, which may hold the record, need not hold it any more: it is in memory only. */
static void queue_leave_segment(struct queue *q, struct record *r)
{
    struct spool_segment *segment = r->segment;

    record_leave_segment(&q->backlog, r);
    spool_forget(segment);
}

/* Drops the records of a segment to make room. Those in flight stay, in memory only. */
static void queue_empty_segment(struct queue *q, const struct spool_segment *segment)
{
    struct lane *l;

    TAILQ_FOREACH (l, &q->lanes.turns, turn)
        for (struct record *r = TAILQ_FIRST(&l->records), *next; r; r = next) {
            next = TAILQ_NEXT(r, entry);
            if (r->segment != segment)
                continue;
            if (r->delivery == RECORD_WAITS)
                queue_drop(q, r, DROP_FULL_OLDEST);
            else
                queue_leave_segment(q, r);
        }
}

/* ---- Limits ---- */

static bool queue_disk_fails(const struct queue *q)
{
    return q->disk_error < 0 || q->append_error < 0;
}

/* Without a spool, or while writes to it fail, new records stay in memory. */
static bool queue_keeps_in_memory(const struct queue *q)
{
    return !q->spool || queue_disk_fails(q);
}

/* What segments may take. Those that are set aside count up to half of the limit, so that new samples always
 * have room. */
static uint64_t queue_disk_room(const struct queue *q)
{
    uint64_t idle = spool_idle_bytes(q->spool), half = q->o.max_bytes / 2;

    return q->o.max_bytes - (idle < half ? idle : half);
}

static bool queue_fits(const struct queue *q, uint64_t need)
{
    if (q->backlog.records >= QUEUE_MAX_RECORDS)
        return false;
    if (queue_keeps_in_memory(q) && q->backlog.memory_only + need > q->o.max_memory)
        return false;
    return !q->spool || q->spool->bytes + need <= queue_disk_room(q);
}

/* Whether it would fit if nothing else waited. */
static bool queue_may_fit(const struct queue *q, uint64_t need)
{
    if (queue_keeps_in_memory(q) && need > q->o.max_memory)
        return false;
    return !q->spool || need <= queue_disk_room(q);
}

/* Drops the oldest record that is in memory only. */
static bool queue_drop_in_memory(struct queue *q)
{
    struct record *oldest = NULL, *r;
    struct lane *l;

    TAILQ_FOREACH (l, &q->lanes.turns, turn) {
        r = TAILQ_FIRST(&l->records);
        while (r && (r->place != RECORD_IN_MEMORY || r->delivery != RECORD_WAITS))
            r = TAILQ_NEXT(r, entry);
        if (r && (!oldest || r->head.seq < oldest->head.seq))
            oldest = r;
    }
    if (oldest)
        queue_drop(q, oldest, DROP_FULL_OLDEST);
    return oldest != NULL;
}

/* Drops the oldest segment, or a record while the disk takes none. */
static bool queue_drop_oldest(struct queue *q)
{
    struct spool_segment *segment = q->spool ? spool_oldest(q->spool) : NULL;
    bool memory_full = q->backlog.memory_only && queue_keeps_in_memory(q);
    uint64_t before;

    if (memory_full && queue_drop_in_memory(q))
        return true;
    if (!segment)
        return false;
    before = q->spool->bytes;
    queue_empty_segment(q, segment);
    spool_leave_empty(q->spool);
    queue_remove_empty(q);
    return q->spool->bytes < before;
}

/* Drops records until `need` more bytes fit; false if the new record has to be dropped instead. */
static bool queue_make_room(struct queue *q, uint64_t need)
{
    if (!queue_may_fit(q, need))
        return false;
    if (!queue_fits(q, need))
        queue_remove_empty(q);
    while (!queue_fits(q, need))
        if (q->o.policy == RW_DROP_NEWEST || !queue_drop_oldest(q))
            return false;
    return true;
}

/* A record in flight is the first of its lane and is kept, even if records behind it expire. */
void queue_expire(struct queue *q, int64_t now_ms)
{
    struct lane *l;

    if (q->o.age_limit_ms == 0)
        return;
    TAILQ_FOREACH (l, &q->lanes.turns, turn) {
        struct record *r = TAILQ_FIRST(&l->records), *next;

        if (r && r->delivery != RECORD_WAITS)
            r = TAILQ_NEXT(r, entry);
        for (; r && r->head.last_ms < now_ms - q->o.age_limit_ms; r = next) {
            next = TAILQ_NEXT(r, entry);
            queue_drop(q, r, DROP_TOO_OLD);
        }
    }
}

/* ---- Records in ---- */

/* Writes the record, which is in memory only, to disk; it stays so if that fails. */
static void queue_store(struct queue *q, struct record *r)
{
    struct spool_segment *segment;
    uint32_t at;
    int error = spool_append(q->spool, &r->head, (struct str){r->payload, r->payload_n}, &segment, &at);

    if (error < 0) {
        q->append_error = error;
        return;
    }
    r->lane->segment = segment->number;
    record_was_written(&q->backlog, r, segment, at);
}

void queue_append(struct queue *q, struct record_head *h, char *payload, size_t payload_n)
{
    enum queue_drop full = q->o.policy == RW_DROP_NEWEST ? DROP_FULL_NEWEST : DROP_FULL_OLDEST;
    bool is_too_large = h->lane.n > LANE_NAME_MAX || payload_n > RECORD_MAX, linked;
    struct record *r;

    if (is_too_large || !queue_make_room(q, record_size(h, payload_n))) {
        queue_count_drop(q, is_too_large ? DROP_MEMORY : full, h->samples);
        free(payload);
        return;
    }
    h->seq = q->next_seq++;
    r = record_new(lanes_make(&q->lanes, h->lane), h, payload, payload_n);
    linked = record_link(&q->backlog, r);
    invariant(linked);
    r->lane->last_ms = lane_go_on(r->lane, r->lane->last_ms, h->last_ms);
    q->last_ms = last_ms_after(q->last_ms, h->last_ms);
    if (q->spool)
        queue_store(q, r);
}

void queue_sync(struct queue *q)
{
    bool none = LIST_EMPTY(&q->backlog.unsynced);
    int error = none ? 0 : spool_sync(q->spool);
    struct record *r;

    if (none && q->append_error == 0)
        return;
    while ((r = LIST_FIRST(&q->backlog.unsynced))) {
        if (error < 0) { /* the file cannot be trusted to hold the record */
            queue_leave_segment(q, r);
            continue;
        }
        record_was_synced(&q->backlog, r);
        if (q->backlog.memory > q->o.memory_bytes && r->delivery == RECORD_WAITS)
            record_uncache(&q->backlog, r);
    }
    q->disk_error = error < 0 ? error : q->append_error;
    q->append_error = 0;
}

void queue_store_waiting(struct queue *q)
{
    struct lane *l;
    struct record *r;

    if (!q->spool || q->backlog.memory_only == 0)
        return;
    TAILQ_FOREACH (l, &q->lanes.turns, turn)
        TAILQ_FOREACH (r, &l->records, entry) {
            if (q->append_error)
                break;
            if (r->place == RECORD_IN_MEMORY && !record_is_ahead(r) &&
                q->spool->bytes + r->payload_n < q->o.max_bytes)
                queue_store(q, r);
        }
    queue_sync(q);
}

int64_t queue_last_ms(struct queue *q, struct str lane)
{
    const struct lane *l = lanes_find(&q->lanes, lane);

    return l ? l->last_ms : INT64_MIN;
}

int64_t queue_next_ms(struct queue *q, struct str lane, int64_t at_ms)
{
    const struct lane *l = lanes_find(&q->lanes, lane);

    return l ? lane_next_ms(l, at_ms) : at_ms;
}

int64_t queue_newest_ms(const struct queue *q)
{
    return q->last_ms;
}

/* ---- Records out ---- */

/* The next non-empty lane in turn, fresh ones first: those without a backlog, whose first record is of the
 * newest round. Every fourth pick takes any lane, so that a backlog drains under a constant load of fresh
 * rounds. */
static struct lane *queue_next_lane(struct queue *q)
{
    bool want_fresh = q->picks++ % (FRESH_PICKS + 1) != FRESH_PICKS;
    struct lane *any = NULL, *l = q->lanes.served;

    for (size_t turns = q->lanes.n; turns; turns--) {
        const struct record *first;

        l = lanes_after(&q->lanes, l);
        first = TAILQ_FIRST(&l->records);
        if (!first)
            continue;
        if (want_fresh && first->head.last_ms == TAILQ_LAST(&l->records, lane_records)->head.last_ms)
            return l;
        if (!any)
            any = l;
    }
    return any;
}

struct record *queue_pick(struct queue *q, int64_t now_ms)
{
    struct lane *l;

    invariant(!q->backlog.picked);
    queue_expire(q, now_ms);
    l = queue_next_lane(q);
    if (!l)
        return NULL;
    q->lanes.served = l;
    record_pick(&q->backlog, TAILQ_FIRST(&l->records));
    return q->backlog.picked;
}

size_t queue_pick_more(struct queue *q, uint32_t samples, struct record **ret, size_t max)
{
    struct lane *picked = q->backlog.picked->lane;
    size_t n = 0;

    if (picked->name.n == 0)
        return 0;
    for (struct lane *l = lanes_after(&q->lanes, picked); l != picked && n < max;
         l = lanes_after(&q->lanes, l)) {
        struct record *r = TAILQ_FIRST(&l->records);

        if (!r || l->name.n == 0 || r->head.samples > samples)
            continue;
        ret[n++] = r;
        samples -= r->head.samples;
        q->lanes.served = l;
    }
    return n;
}

void queue_take_along(struct queue *q, struct record *r)
{
    record_accompany(&q->backlog, r);
}

void queue_finish(struct queue *q, struct record *r)
{
    invariant(r == q->backlog.picked);
    do {
        record_land(&q->backlog, r);
        queue_remove(q, r);
        r = LIST_FIRST(&q->backlog.companions);
    } while (r);
    invariant(q->backlog.in_flight == 0);
    queue_remove_empty(q);
}

/* The record waits again, behind older ones that came meanwhile. */
static void queue_return(struct queue *q, struct record *r)
{
    bool linked;

    record_land(&q->backlog, r);
    if (!record_is_ahead(r))
        return;
    record_unlink(&q->backlog, r);
    linked = record_link(&q->backlog, r);
    invariant(linked);
}

void queue_send_alone(struct queue *q)
{
    struct record *r;

    while ((r = LIST_FIRST(&q->backlog.companions)))
        queue_return(q, r);
}

void queue_put_back(struct queue *q)
{
    queue_send_alone(q);
    queue_return(q, q->backlog.picked);
}

size_t queue_in_flight(const struct queue *q)
{
    return q->backlog.in_flight;
}

/* The oldest timestamp that waits; 0 for none. */
static int64_t queue_oldest_ms(const struct queue *q)
{
    const struct lane *l;
    int64_t oldest_ms = 0;

    TAILQ_FOREACH (l, &q->lanes.turns, turn) {
        const struct record *first = TAILQ_FIRST(&l->records);

        if (first && (oldest_ms == 0 || first->head.first_ms < oldest_ms))
            oldest_ms = first->head.first_ms;
    }
    return oldest_ms;
}

struct queue_stats queue_stats(const struct queue *q)
{
    const struct spool *open = q->spool ? q->spool : q->left;
    struct queue_stats now = {
        .samples = q->backlog.samples,
        .records = q->backlog.records,
        .in_flight = q->backlog.in_flight,
        .lanes = q->lanes.n,
        .memory = q->backlog.memory,
        .unsaved = q->backlog.unsaved,
        .oldest_ms = queue_oldest_ms(q),
        .last_ms = q->last_ms,
        .disk_error = q->disk_error,
        .has_spool = open != NULL,
        .spool_error = q->spool_error,
        .spool = open ? spool_stats(open) : q->unopened,
    };

    memcpy(now.dropped, q->dropped, sizeof(now.dropped));
    return now;
}

/* Reads the payload of a record that is on disk only. */
static int queue_read_payload(struct queue *q, struct record *r)
{
    BUF_AUTO(bytes, RECORD_MAX + RECORD_HEAD + LANE_NAME_MAX);
    int error = spool_read(q->spool, r->segment, r->at, record_size(&r->head, r->payload_n), &bytes);

    if (error == 0) {
        record_was_read(&q->backlog, r, buf_take(&bytes).p);
        return 0;
    }
    if (error == -EBADMSG)
        return error;
    queue_leave_spool(q);
    return -ESTALE;
}

int queue_payload(struct queue *q, struct record *r, struct str *ret)
{
    int error = r->place == RECORD_STORED ? queue_read_payload(q, r) : 0;

    if (error < 0)
        return error;
    *ret = (struct str){r->payload, r->payload_n};
    return 0;
}

/* ---- Lanes that are forgotten ---- */

/* Whether a segment may hold a record of the lane: all have numbers up to that of the newest. */
static bool lane_is_stored(const struct queue *q, const struct lane *l)
{
    const struct spool_segment *oldest = q->spool ? spool_oldest(q->spool) : NULL;

    return oldest && l->segment >= oldest->number;
}

/* By both clocks: one that is a day ahead for a while must not make lanes be forgotten whose order still
 * matters once it is corrected. */
static bool lane_is_past(const struct lane *l, mono_ms now, int64_t wall_ms)
{
    return mono_diff(l->used_at, now) > CLOCK_BACK_MS && l->last_ms < wall_ms &&
           !is_behind(wall_ms, l->last_ms);
}

static void queue_remove_idle_lanes(struct queue *q)
{
    struct lane *next;

    for (struct lane *l = TAILQ_FIRST(&q->lanes.turns); l; l = next) {
        next = TAILQ_NEXT(l, turn);
        if (l->is_idle)
            lanes_remove(&q->lanes, l);
    }
    q->position_changed = true;
}

void queue_forget_lanes(struct queue *q, mono_ms now, int64_t wall_ms,
                        bool (*is_used)(void *arg, struct str lane), void *arg)
{
    size_t idle = 0, stored = 0;
    struct lane *l;

    TAILQ_FOREACH (l, &q->lanes.turns, turn) {
        if (!l->used_at.ms || !TAILQ_EMPTY(&l->records) || is_used(arg, l->name))
            l->used_at = now;
        l->is_idle = lane_is_past(l, now, wall_ms);
        if (l->is_idle && lane_is_stored(q, l))
            stored++;
    }
    /* The segment that is being written may be all that holds them, for days where little is written. */
    if (stored) {
        spool_leave_empty(q->spool);
        queue_remove_empty(q);
    }
    TAILQ_FOREACH (l, &q->lanes.turns, turn) {
        l->is_idle = l->is_idle && !lane_is_stored(q, l);
        idle += l->is_idle;
    }
    if (idle == 0)
        return;
    /* A power cut must not bring back a segment whose lanes are forgotten. */
    if (q->spool && spool_sync_folder(q->spool) < 0)
        return;
    queue_remove_idle_lanes(q);
}

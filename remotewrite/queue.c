/* Owns the lanes with their records, the limits, and all that is open of the spool: its folder, its
 * segments and its file of active series. Endpoint's thread. A record in flight is never dropped, and a read
 * position never goes past a record that waits. It logs nothing: the endpoint does, by the statistics. */
#include "remotewrite/queue.h"

#include "exporter/base/alloc.h"
#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/invariant.h"
#include "remotewrite/folder.h"
#include "remotewrite/lane.h"
#include "remotewrite/timestamp.h"

#include <errno.h>

enum {
    FRESH_PICKS = 3,
    QUEUE_MAX_RECORDS = 500000, /* limits the memory of the records themselves, about 100 bytes each */
    POSITION_MAX = 64 << 20,
    SEGMENT_FILE_MAX = 256 << 20,
};

/* Added to the numbers of records in memory while those of a spool are read, which go before them. */
static const uint64_t IN_MEMORY = 1ull << 63;

const char *const queue_drop_words[DROPS] = {
    [DROP_FULL_OLDEST] = "full_oldest", [DROP_FULL_NEWEST] = "full_newest",
    [DROP_TOO_OLD] = "too_old",         [DROP_DAMAGED] = "damaged",
    [DROP_MEMORY] = "memory",           [DROP_REJECTED] = "rejected",
    [DROP_INVALID] = "invalid",         [DROP_BUSY] = "busy",
    [DROP_UNSAVED] = "unsaved",
};

struct queue {
    struct queue_options o;
    struct lanes lanes;
    struct backlog backlog;
    unsigned picks;
    uint64_t next_seq;
    uint64_t dropped[DROPS];
    int64_t last_ms;  /* timestamp queued, by last_ms_after(); 0: none */
    int append_error; /* of a record since the last sync */
    int disk_error;   /* of the last sync, or write of positions */
    /* The spool. */
    struct folder folder;
    struct spool *spool;  /* in use; NULL: none */
    struct spool *left;   /* no longer in use, as something in it cannot be read: queue_watch() closes it */
    struct active active; /* in the same folder */
    int spool_error;      /* why it is not open */
    struct spool_stats unopened; /* what was found when it was tried last; all zero while it is open */
    uint64_t generation;         /* of the read positions */
    bool position_changed, position_unsynced;
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

/* Frees a record that waits. On disk it stays as it is. */
static void queue_forget(struct queue *q, struct record *r)
{
    record_unlink(&q->backlog, r);
    record_free(r);
}

/* Forgets the records that are on disk, which the next queue_open() finds there. */
static void queue_forget_written(struct queue *q)
{
    struct lane *l;

    TAILQ_FOREACH (l, &q->lanes.turns, turn)
        for (struct record *r = TAILQ_FIRST(&l->records), *next; r; r = next) {
            next = TAILQ_NEXT(r, entry);
            if (r->place != RECORD_IN_MEMORY)
                queue_forget(q, r);
        }
}

static void queue_close_spool(struct queue *q)
{
    active_close(&q->active);
    q->left = spool_free(q->left);
    q->spool = spool_free(q->spool);
    folder_close(&q->folder);
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

/* Removes the record, which was delivered or is dropped, from its lane, and frees it. */
static void queue_end_record(struct queue *q, struct record *r)
{
    struct lane *l = r->lane;

    if (r == TAILQ_FIRST(&l->records) && r->head.seq > l->done && !record_is_ahead(r)) {
        l->done = r->head.seq;
        q->position_changed = true;
    }
    queue_forget(q, r);
}

/* Likewise, and from its segment. */
static void queue_remove(struct queue *q, struct record *r)
{
    struct spool_segment *segment = r->segment;

    queue_end_record(q, r);
    if (segment)
        spool_forget(q->spool, segment);
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
    spool_forget(q->spool, segment);
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

/* All files are gone, so none is touched: drops what was only there. */
static void queue_lose_segments(struct queue *q)
{
    struct lane *l;

    TAILQ_FOREACH (l, &q->lanes.turns, turn)
        for (struct record *r = TAILQ_FIRST(&l->records), *next; r; r = next) {
            next = TAILQ_NEXT(r, entry);
            if (r->place == RECORD_STORED) {
                queue_count_drop(q, DROP_DAMAGED, r->head.samples);
                queue_end_record(q, r);
            } else if (r->place != RECORD_IN_MEMORY) {
                record_leave_segment(&q->backlog, r);
            }
        }
}

/* ---- Limits ---- */

static bool queue_disk_fails(const struct queue *q)
{
    return q->disk_error < 0 || q->append_error < 0;
}

static bool queue_fits(const struct queue *q, uint64_t need)
{
    uint64_t idle = q->spool ? spool_idle_bytes(q->spool) : 0, half = q->o.max_bytes / 2;

    if (q->backlog.records >= QUEUE_MAX_RECORDS)
        return false;
    /* Without a spool, or while writes to it fail, new records stay in memory. */
    if ((!q->spool || queue_disk_fails(q)) && q->backlog.memory_only + need > q->o.max_memory)
        return false;
    /* Segments that are set aside count up to half of the limit, so that new samples always have room. */
    return !q->spool || q->spool->bytes + (idle < half ? idle : half) + need <= q->o.max_bytes;
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
    bool memory_full = q->backlog.memory_only && (!q->spool || queue_disk_fails(q));

    if (memory_full && queue_drop_in_memory(q))
        return true;
    if (!segment)
        return false;
    queue_empty_segment(q, segment);
    return spool_oldest(q->spool) != segment || spool_shrink(q->spool);
}

/* Drops records until `need` more bytes fit; false if the new record has to be dropped instead. */
static bool queue_make_room(struct queue *q, uint64_t need)
{
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

/* Tries to store the records that are in memory only. */
static void queue_store_waiting(struct queue *q)
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

/* Something in the spool cannot be read: what it holds waits there, unused, until it can. */
static void queue_leave_spool(struct queue *q)
{
    invariant(!q->left);
    queue_save_position(q);
    queue_put_back(q);
    queue_forget_written(q);
    q->left = TAKE_PTR(q->spool);
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

/* ---- Read positions ---- */

static void queue_put_position(struct queue *q, bool wait_for_disk)
{
    CLEANUP(cleanup_free) struct position_lane *lanes = xmalloc(q->lanes.n * sizeof(*lanes));
    BUF_AUTO(bytes, POSITION_MAX);
    const struct lane *l;
    size_t n = 0;
    int r;

    TAILQ_FOREACH (l, &q->lanes.turns, turn)
        lanes[n++] = (struct position_lane){l->name, l->done, l->last_ms};
    invariant(n == q->lanes.n);
    /* Nobody else writes them: the files hold what was read first, or written last. */
    invariant(q->generation == q->spool->generation);
    r = position_write(&bytes, q->generation + 1, lanes, n);
    if (r == 0) {
        q->generation++;
        r = spool_put_position(q->spool, q->generation, buf_str(&bytes), wait_for_disk);
    }
    if (r < 0) {
        q->disk_error = r;
        return;
    }
    q->position_changed = false;
    q->position_unsynced = !wait_for_disk;
}

void queue_save_position(struct queue *q)
{
    if (q->spool && q->position_changed)
        queue_put_position(q, false);
}

void queue_sync_position(struct queue *q)
{
    if (q->spool && (q->position_changed || q->position_unsynced))
        queue_put_position(q, true);
}

/* Without a file that can be read, what was sent is unknown. */
static int queue_read_positions(struct queue *q, struct spool *spool)
{
    BUF_AUTO(bytes, POSITION_MAX);
    struct position_reader positions;
    struct position_lane from;
    struct lane *l;
    int r = spool_read_positions(spool, &bytes, &positions);

    if (r < 0)
        return r;
    q->generation = positions.generation;
    TAILQ_FOREACH (l, &q->lanes.turns, turn) {
        l->done = l->segment = 0;
        l->stored_ms = INT64_MIN;
    }
    while (position_next(&positions, &from)) {
        l = lanes_make(&q->lanes, from.name);
        l->done = from.seq;
        l->stored_ms = from.last_ms;
        if (from.seq >= q->next_seq)
            q->next_seq = from.seq + 1;
    }
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
    if (stored)
        (void)spool_shrink(q->spool);
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

/* ---- Reading segments ---- */

static void queue_read_record(struct queue *q, struct spool_segment *segment, const struct segment_item *item)
{
    const struct record_head *h = &item->head;
    struct lane *l = lanes_make(&q->lanes, h->lane);
    struct record *r;

    l->segment = segment->number;
    if (h->seq >= q->next_seq)
        q->next_seq = h->seq + 1;
    if (h->seq <= l->done)
        return;
    /* Not sent yet, so the positions do not know of a later one, unless that was in memory only. */
    l->stored_ms = lane_go_on(l, l->stored_ms, h->last_ms);
    if (q->backlog.records >= QUEUE_MAX_RECORDS) {
        queue_count_drop(q, DROP_FULL_OLDEST, h->samples);
        return;
    }
    r = record_found(l, item, segment);
    if (record_link(&q->backlog, r))
        spool_note_live(segment);
    else
        record_free(r);
}

/* Whether the lost record was delivered. Without the name of its lane, those with numbers above all delivered
 * ones were not. */
static bool queue_has_sent(const struct queue *q, const struct record_head *h)
{
    const struct lane *l;

    TAILQ_FOREACH (l, &q->lanes.turns, turn)
        if ((!h->lane.p || str_eq(h->lane, l->name)) && h->seq <= l->done)
            return true;
    return false;
}

static void queue_read_damage(struct queue *q, struct spool_segment *segment, const struct segment_item *item,
                              struct str bytes)
{
    struct record_head h;

    for (size_t at = item->at; segment_next_lost(bytes, &at, item->at + item->n, &h);)
        if (!queue_has_sent(q, &h))
            queue_count_drop(q, DROP_DAMAGED, h.samples);
    spool_note_damage(q->spool, segment, item->n);
}

/* What is torn was not finished, so that it was never taken, and the rest of the file is whole. */
static int queue_read_segment(struct queue *q, struct spool_segment *segment)
{
    BUF_AUTO(bytes, SEGMENT_FILE_MAX);
    struct segment_reader from;
    struct segment_item item;
    enum segment_found what;
    int r = spool_load(q->spool, segment, &bytes);

    if (r < 0)
        return r == -ENOENT ? 0 : r;
    from = (struct segment_reader){.bytes = buf_str(&bytes)};
    while ((what = segment_next(&from, &item)) != SEGMENT_END) {
        if (what == SEGMENT_RECORD)
            queue_read_record(q, segment, &item);
        else if (what == SEGMENT_TORN)
            spool_note_torn(q->spool, item.n);
        else
            queue_read_damage(q, segment, &item, buf_str(&bytes));
    }
    return 0;
}

/* ---- The spool comes and goes ---- */

static void queue_renumber(struct queue *q, uint64_t add)
{
    struct record *r;
    struct lane *l;

    TAILQ_FOREACH (l, &q->lanes.turns, turn)
        TAILQ_FOREACH (r, &l->records, entry)
            if (r->place == RECORD_IN_MEMORY)
                r->head.seq += add;
}

/* What is in memory goes on from what was in the spool. */
static void queue_merge_times(struct queue *q)
{
    int64_t stored_ms = 0;
    struct lane *l;

    TAILQ_FOREACH (l, &q->lanes.turns, turn) {
        stored_ms = later_ms(stored_ms, l->stored_ms);
        l->last_ms = l->last_ms == INT64_MIN ? l->stored_ms : last_ms_after(l->stored_ms, l->last_ms);
    }
    if (q->last_ms == 0)
        q->last_ms = stored_ms;
}

/* What was read counts as live in its segment, once. */
static void queue_check_live(const struct queue *q)
{
    const struct spool_segment *one;
    const struct record *r;
    const struct lane *l;
    uint64_t live = 0, written = 0;

    TAILQ_FOREACH (one, &q->spool->segments, entry)
        live += one->live;
    TAILQ_FOREACH (l, &q->lanes.turns, turn)
        TAILQ_FOREACH (r, &l->records, entry)
            written += r->place != RECORD_IN_MEMORY;
    invariant(live == written);
}

static int queue_read_segments(struct queue *q)
{
    struct spool_segment *next;

    for (struct spool_segment *one = spool_oldest(q->spool); one; one = next) {
        int r;

        next = TAILQ_NEXT(one, entry);
        invariant(!next || strcmp(one->name, next->name) <= 0);
        r = queue_read_segment(q, one);
        if (r < 0)
            return r;
    }
    return 0;
}

/* Takes the records of the spool before those in memory, and stores the latter in it. A negative errno if a
 * file cannot be read: nothing has changed. */
static int queue_attach(struct queue *q, struct spool *spool)
{
    uint64_t used = q->next_seq, dropped[DROPS];
    int r = queue_read_positions(q, spool);

    if (r < 0)
        return r;
    memcpy(dropped, q->dropped, sizeof(dropped));
    q->spool = spool;
    queue_renumber(q, IN_MEMORY);
    r = queue_read_segments(q);
    if (r < 0) {
        queue_forget_written(q);
        queue_renumber(q, -IN_MEMORY);
        q->spool = NULL;
        q->next_seq = used;
        memcpy(q->dropped, dropped, sizeof(dropped));
        return r;
    }
    queue_check_live(q);
    spool_trim(spool);
    queue_merge_times(q);
    queue_renumber(q, q->next_seq - IN_MEMORY);
    q->next_seq += used;
    q->position_changed = true;
    queue_store_waiting(q);
    return 0;
}

static void queue_note_failure(struct queue *q, int error, const struct spool_stats *found, mono_ms now)
{
    if (q->o.is_standby) /* the leader has the folder, and there is nothing to store in it here */
        return;
    if (error == -EBUSY)
        folder_ask_for(&q->folder);
    q->spool_error = error;
    q->unopened = *found;
    folder_retry_later(&q->folder, now);
}

bool queue_open(struct queue *q, mono_ms now)
{
    struct spool_stats found = {0};
    struct spool *spool = NULL;
    int r;

    if (!q->folder.path || q->spool || q->left || !folder_is_due(&q->folder, now))
        return false;
    r = folder_open(&q->folder) ?: spool_new(&spool, &q->folder, q->o.segment_bytes);
    if (r == 0) {
        r = queue_attach(q, spool);
        found = spool_stats(spool);
    }
    if (r < 0) {
        (void)spool_free(spool);
        folder_close(&q->folder);
        queue_note_failure(q, r, &found, now);
        return false;
    }
    invariant(q->spool == spool);
    q->spool_error = 0;
    q->unopened = (struct spool_stats){0};
    folder_note_success(&q->folder);
    return true;
}

/* The folder is gone, and with it what was only on disk. */
static void queue_lose_folder(struct queue *q, mono_ms now)
{
    queue_lose_segments(q);
    queue_close_spool(q);
    q->spool_error = -ENOENT;
    folder_retry_now(&q->folder, now);
}

bool queue_watch(struct queue *q, mono_ms now)
{
    bool is_due = folder_is_due(&q->folder, now);

    if (q->left) {
        struct spool_stats found = spool_stats(q->left);
        int error = q->left->read_error;

        queue_close_spool(q);
        queue_note_failure(q, error, &found, now);
        return true;
    }
    if (!q->spool)
        return true;
    if (!folder_is_there(&q->folder)) {
        queue_lose_folder(q, now);
        return false;
    }
    spool_trim(q->spool);
    if (is_due || q->disk_error == 0)
        queue_store_waiting(q);
    if (q->disk_error == 0)
        folder_note_success(&q->folder);
    else if (is_due)
        folder_retry_later(&q->folder, now);
    return true;
}

void queue_retry_now(struct queue *q, mono_ms now)
{
    folder_retry_now(&q->folder, now);
}

void queue_close(struct queue *q)
{
    queue_sync_position(q);
    queue_close_spool(q);
}

bool queue_is_wanted(const struct queue *q)
{
    return folder_is_open(&q->folder) && folder_is_wanted(&q->folder);
}

/* ---- Active series ---- */

void queue_load_active(struct queue *q, active_load_fn fn, void *arg)
{
    active_open(&q->active, &q->folder, fn, arg);
}

bool queue_has_active(const struct queue *q)
{
    return q->active.folder != NULL;
}

int queue_save_active(struct queue *q, struct active_set *const *sets, size_t n)
{
    return active_save(&q->active, sets, n);
}

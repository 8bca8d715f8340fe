/* Owns the lanes and the records in them. */
#include "remotewrite/queue.h"

#include "exporter/base/alloc.h"
#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/invariant.h"
#include "exporter/base/strset.h"
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

struct lane {
    struct lane *next;
    TAILQ_HEAD(records, record) records; /* by number, except that one in flight is the first */
    uint64_t done;                       /* this record of the lane and all before it were sent or dropped */
    int64_t last_ms;                     /* timestamp appended, by last_ms_after() */
    int64_t before_ms;                   /* likewise before last_ms went more than an hour ahead */
    int64_t stored_ms;                   /* likewise in the spool that is being attached */
    uint64_t segment;                    /* number of the newest with a record of it; 0: none */
    mono_ms used_at;                     /* when it had a record or was in use, as last seen by */
    bool is_idle;                        /* queue_forget_lanes() */
    struct str name;
    char text[];
};

struct queue {
    struct spool *spool;
    struct queue_options o;
    struct lane *lanes, **lanes_end;
    size_t n_lanes;
    struct strset names;   /* of the lanes, */
    struct lane **by_name; /* which have the same places here */
    struct lane *served;   /* the lane picked last */
    unsigned picks;
    struct record *picked;
    LIST_HEAD(, record) companions; /* of the picked one */
    LIST_HEAD(, record) unsynced;
    uint64_t next_seq, memory_only; /* bytes of payloads in memory only */
    uint64_t generation;            /* of the position files */
    bool position_changed, position_unsynced;
    int append_error; /* of a record since the last sync */
    struct queue_stats stats;
};

struct queue *queue_new(const struct queue_options *o)
{
    struct queue *q = xcalloc(1, sizeof(*q));

    queue_configure(q, o);
    q->lanes_end = &q->lanes;
    q->next_seq = 1;
    return q;
}

void queue_configure(struct queue *q, const struct queue_options *o)
{
    q->o = *o;
    if (!q->o.max_memory)
        q->o.max_memory = o->max_bytes;
}

/* ---- Lanes ---- */

/* Adds the lane to the list, and to the index. */
static void queue_index_lane(struct queue *q, struct lane *l)
{
    size_t place = strset_add(&q->names, l->name);

    if ((place & (place - 1)) == 0)
        q->by_name = xreallocarray(q->by_name, 2 * place + 1, sizeof(*q->by_name));
    q->by_name[place] = l;
    l->next = NULL;
    *q->lanes_end = l;
    q->lanes_end = &l->next;
    q->n_lanes++;
}

/* NULL if there is none of this name. */
static struct lane *queue_find_lane(const struct queue *q, struct str name)
{
    size_t place = strset_find(&q->names, name);

    return place == SIZE_MAX ? NULL : q->by_name[place];
}

/* The lane of this name, which is made if need be. */
static struct lane *queue_make_lane(struct queue *q, struct str name)
{
    struct lane *l = queue_find_lane(q, name);

    if (l)
        return l;
    l = xcalloc(1, sizeof(*l) + name.n + 1);
    TAILQ_INIT(&l->records);
    l->last_ms = l->before_ms = l->stored_ms = INT64_MIN;
    l->name = (struct str){memcpy(l->text, name.p, name.n), name.n};
    queue_index_lane(q, l);
    return l;
}

/* ---- A record's place, and its delivery: one function for each transition ---- */

static void record_check(const struct record *r)
{
    invariant((r->segment == NULL) == (r->place == RECORD_IN_MEMORY));
    invariant((r->payload == NULL) == (r->place == RECORD_STORED));
}

/* Counts the record, which is in its lane, where it is. */
static void queue_count_place(struct queue *q, const struct record *r)
{
    record_check(r);
    if (r->payload)
        q->stats.memory += r->payload_n;
    if (r->place == RECORD_IN_MEMORY) {
        q->memory_only += r->payload_n;
        q->stats.unsaved += r->head.samples;
    }
}

/* Takes back what queue_count_place() has counted, before the record goes somewhere else, or away. */
static void queue_uncount_place(struct queue *q, const struct record *r)
{
    record_check(r);
    if (r->payload) {
        invariant(q->stats.memory >= r->payload_n);
        q->stats.memory -= r->payload_n;
    }
    if (r->place == RECORD_IN_MEMORY) {
        invariant(q->memory_only >= r->payload_n && q->stats.unsaved >= r->head.samples);
        q->memory_only -= r->payload_n;
        q->stats.unsaved -= r->head.samples;
    }
}

static void record_enter(struct queue *q, struct record *r, enum record_place place)
{
    if (r->place == RECORD_WRITTEN)
        LIST_REMOVE(r, unsynced);
    if (place == RECORD_WRITTEN)
        LIST_INSERT_HEAD(&q->unsynced, r, unsynced);
    r->place = place;
    queue_count_place(q, r);
}

/* It is in this segment now, of which nothing was synced since. */
static void record_was_written(struct queue *q, struct record *r, struct spool_segment *segment, uint32_t at)
{
    invariant(r->place == RECORD_IN_MEMORY);
    queue_uncount_place(q, r);
    r->segment = segment;
    r->at = at;
    record_enter(q, r, RECORD_WRITTEN);
}

static void record_was_synced(struct queue *q, struct record *r)
{
    invariant(r->place == RECORD_WRITTEN);
    queue_uncount_place(q, r);
    record_enter(q, r, RECORD_CACHED);
}

/* Frees the memory of a record that nobody needs there now. */
static void record_uncache(struct queue *q, struct record *r)
{
    invariant(r->place == RECORD_CACHED && r->delivery == RECORD_WAITS);
    queue_uncount_place(q, r);
    free(TAKE_PTR(r->payload));
    record_enter(q, r, RECORD_STORED);
}

/* Its payload, which becomes the record's, was read. */
static void record_was_read(struct queue *q, struct record *r, char *payload)
{
    invariant(r->place == RECORD_STORED);
    queue_uncount_place(q, r);
    r->payload = payload;
    record_enter(q, r, RECORD_CACHED);
}

/* Its segment is gone, or is no longer counted on. */
static void record_leave_segment(struct queue *q, struct record *r)
{
    invariant(r->place == RECORD_WRITTEN || r->place == RECORD_CACHED);
    queue_uncount_place(q, r);
    r->segment = NULL;
    record_enter(q, r, RECORD_IN_MEMORY);
}

static void record_pick(struct queue *q, struct record *r)
{
    invariant(!q->picked && r->delivery == RECORD_WAITS && r == TAILQ_FIRST(&r->lane->records));
    r->delivery = RECORD_PICKED;
    q->picked = r;
    q->stats.in_flight++;
}

static void record_accompany(struct queue *q, struct record *r)
{
    invariant(q->picked && r->delivery == RECORD_WAITS && r == TAILQ_FIRST(&r->lane->records) && r->payload);
    r->delivery = RECORD_TRAVELS;
    LIST_INSERT_HEAD(&q->companions, r, companion);
    q->stats.in_flight++;
}

/* It is no longer in flight. Its place in the lane may be another from now on. */
static void record_land(struct queue *q, struct record *r)
{
    invariant(r->delivery != RECORD_WAITS && q->stats.in_flight > 0);
    if (r->delivery == RECORD_TRAVELS) {
        LIST_REMOVE(r, companion);
    } else {
        invariant(r == q->picked);
        q->picked = NULL;
    }
    r->delivery = RECORD_WAITS;
    q->stats.in_flight--;
}

/* Adds the record to its lane. False if the lane has its number. */
static bool queue_link(struct queue *q, struct record *r)
{
    struct lane *l = r->lane;
    struct record *before = TAILQ_LAST(&l->records, records);

    while (before && before->delivery == RECORD_WAITS && before->head.seq > r->head.seq)
        before = TAILQ_PREV(before, records, entry);
    if (before && before->head.seq == r->head.seq)
        return false;
    if (before)
        TAILQ_INSERT_AFTER(&l->records, before, r, entry);
    else
        TAILQ_INSERT_HEAD(&l->records, r, entry);
    q->stats.records++;
    q->stats.samples += r->head.samples;
    queue_count_place(q, r);
    return true;
}

/* Removes the record from its lane only. */
static void queue_unlink(struct queue *q, struct record *r)
{
    invariant(r->delivery == RECORD_WAITS);
    invariant(q->stats.records > 0 && q->stats.samples >= r->head.samples);
    TAILQ_REMOVE(&r->lane->records, r, entry);
    q->stats.records--;
    q->stats.samples -= r->head.samples;
    queue_uncount_place(q, r);
}

/* Frees a record that is in no lane. */
static void record_free(struct record *r)
{
    if (r->place == RECORD_WRITTEN)
        LIST_REMOVE(r, unsynced);
    free(r->payload);
    free(r);
}

/* Frees a record that waits. On disk it stays as it is. */
static void queue_forget(struct queue *q, struct record *r)
{
    queue_unlink(q, r);
    record_free(r);
}

/* Forgets the records that are on disk, which the next queue_attach() finds there. */
static void queue_forget_written(struct queue *q)
{
    for (struct lane *l = q->lanes; l; l = l->next)
        for (struct record *r = TAILQ_FIRST(&l->records), *next; r; r = next) {
            next = TAILQ_NEXT(r, entry);
            if (r->place != RECORD_IN_MEMORY)
                queue_forget(q, r);
        }
}

static void queue_free_lane(struct queue *q, struct lane *l)
{
    struct record *r;

    while ((r = TAILQ_FIRST(&l->records)))
        queue_forget(q, r);
    free(l);
}

struct queue *queue_free(struct queue *q)
{
    if (!q)
        return NULL;
    if (q->picked)
        queue_put_back(q);
    for (struct lane *l = q->lanes, *next; l; l = next) {
        next = l->next;
        queue_free_lane(q, l);
    }
    invariant(q->stats.records == 0 && q->stats.samples == 0 && q->stats.memory == 0 && q->memory_only == 0);
    strset_done(&q->names);
    free(q->by_name);
    free(q);
    return NULL;
}

/* Whether older records follow, which came with a spool while this one was in flight: its delivery says
 * nothing about them. */
static bool record_is_ahead(const struct record *r)
{
    const struct record *next = TAILQ_NEXT(r, entry);

    return next && next->head.seq < r->head.seq;
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
    q->stats.dropped[why] += samples;
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

    record_leave_segment(q, r);
    spool_forget(q->spool, segment);
}

/* Drops the records of a segment to make room. Those in flight stay, in memory only. */
static void queue_empty_segment(struct queue *q, const struct spool_segment *segment)
{
    for (struct lane *l = q->lanes; l; l = l->next)
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

/* All files are gone, so none is touched: drops what was only there. Returns the number of samples. */
static uint64_t queue_lose_segments(struct queue *q)
{
    uint64_t before = q->stats.dropped[DROP_DAMAGED];

    for (struct lane *l = q->lanes; l; l = l->next)
        for (struct record *r = TAILQ_FIRST(&l->records), *next; r; r = next) {
            next = TAILQ_NEXT(r, entry);
            if (r->place == RECORD_STORED) {
                queue_count_drop(q, DROP_DAMAGED, r->head.samples);
                queue_end_record(q, r);
            } else if (r->place != RECORD_IN_MEMORY) {
                record_leave_segment(q, r);
            }
        }
    return q->stats.dropped[DROP_DAMAGED] - before;
}

/* ---- Limits ---- */

static bool queue_disk_fails(const struct queue *q)
{
    return q->stats.disk_error < 0 || q->append_error < 0;
}

static bool queue_fits(const struct queue *q, uint64_t need)
{
    uint64_t idle = q->spool ? spool_idle_bytes(q->spool) : 0, half = q->o.max_bytes / 2;

    if (q->stats.records >= QUEUE_MAX_RECORDS)
        return false;
    /* Without a spool, or while writes to it fail, new records stay in memory. */
    if ((!q->spool || queue_disk_fails(q)) && q->memory_only + need > q->o.max_memory)
        return false;
    /* Segments that are set aside count up to half of the limit, so that new samples always have room. */
    return !q->spool || q->spool->bytes + (idle < half ? idle : half) + need <= q->o.max_bytes;
}

/* Drops the oldest record that is in memory only. */
static bool queue_drop_in_memory(struct queue *q)
{
    struct record *oldest = NULL, *r;

    for (struct lane *l = q->lanes; l; l = l->next) {
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
    struct spool_segment *segment = q->spool ? TAILQ_FIRST(&q->spool->segments) : NULL;
    bool memory_full = q->memory_only && (!q->spool || queue_disk_fails(q));

    if (memory_full && queue_drop_in_memory(q))
        return true;
    if (!segment)
        return false;
    queue_empty_segment(q, segment);
    return TAILQ_FIRST(&q->spool->segments) != segment || spool_shrink(q->spool);
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
    for (struct lane *l = q->o.age_limit_ms ? q->lanes : NULL; l; l = l->next) {
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
    record_was_written(q, r, segment, at);
}

static struct record *record_new(struct lane *l, const struct record_head *h, size_t payload_n)
{
    struct record *r = xcalloc(1, sizeof(*r));

    r->lane = l;
    r->head = *h;
    r->head.lane = l->name;
    r->payload_n = payload_n;
    return r;
}

/* The lane goes on from `last` to `next`: the last timestamp from then on. */
static int64_t lane_go_on(struct lane *l, int64_t last, int64_t next)
{
    if (next > last && !is_behind(next, last))
        l->before_ms = last;
    return last_ms_after(last, next);
}

static void lane_advance(struct lane *l, int64_t ms)
{
    l->last_ms = lane_go_on(l, l->last_ms, ms);
}

void queue_append(struct queue *q, struct record_head *h, char *payload, size_t payload_n)
{
    enum queue_drop full = q->o.policy == RW_DROP_NEWEST ? DROP_FULL_NEWEST : DROP_FULL_OLDEST;
    bool too_large = h->lane.n > LANE_NAME_MAX || payload_n > RECORD_MAX;
    struct record *r;

    if (too_large || !queue_make_room(q, record_size(h, payload_n))) {
        queue_count_drop(q, too_large ? DROP_MEMORY : full, h->samples);
        free(payload);
        return;
    }
    h->seq = q->next_seq++;
    r = record_new(queue_make_lane(q, h->lane), h, payload_n);
    r->payload = payload;
    (void)queue_link(q, r);
    lane_advance(r->lane, h->last_ms);
    q->stats.last_ms = last_ms_after(q->stats.last_ms, h->last_ms);
    if (q->spool)
        queue_store(q, r);
}

void queue_sync(struct queue *q)
{
    bool none = LIST_EMPTY(&q->unsynced);
    int error = none ? 0 : spool_sync(q->spool);
    struct record *r;

    if (none && q->append_error == 0)
        return;
    while ((r = LIST_FIRST(&q->unsynced))) {
        if (error < 0) { /* the file cannot be trusted to hold the record */
            queue_leave_segment(q, r);
            continue;
        }
        record_was_synced(q, r);
        if (q->stats.memory > q->o.memory_bytes && r->delivery == RECORD_WAITS)
            record_uncache(q, r);
    }
    q->stats.disk_error = error < 0 ? error : q->append_error;
    q->append_error = 0;
}

void queue_store_waiting(struct queue *q)
{
    if (!q->spool || q->memory_only == 0)
        return;
    for (struct lane *l = q->lanes; l; l = l->next)
        for (struct record *r = TAILQ_FIRST(&l->records); r && !q->append_error; r = TAILQ_NEXT(r, entry))
            if (r->place == RECORD_IN_MEMORY && !record_is_ahead(r) &&
                q->spool->bytes + r->payload_n < q->o.max_bytes)
                queue_store(q, r);
    queue_sync(q);
}

int64_t queue_last_ms(struct queue *q, struct str lane)
{
    const struct lane *l = queue_find_lane(q, lane);

    return l ? l->last_ms : INT64_MIN;
}

/* A receiver may have refused the timestamps of a clock that was ahead, so that those before it count. */
int64_t queue_next_ms(struct queue *q, struct str lane, int64_t at_ms)
{
    const struct lane *l = queue_find_lane(q, lane);

    if (l && is_behind(l->last_ms, at_ms))
        return l->last_ms + 1;
    if (l && is_behind(l->before_ms, at_ms))
        return l->before_ms + 1;
    return at_ms;
}

int64_t queue_newest_ms(const struct queue *q)
{
    return q->stats.last_ms;
}

/* ---- Records out ---- */

/* The next non-empty lane in turn, fresh ones first: those without a backlog, whose first record is of the
 * newest round. Every fourth pick takes any lane, so that a backlog drains under a constant load of fresh
 * rounds. */
static struct lane *queue_next_lane(struct queue *q)
{
    struct lane *any = NULL, *l = q->served;
    bool want_fresh = q->picks++ % (FRESH_PICKS + 1) != FRESH_PICKS;

    for (const struct lane *turns = q->lanes; turns; turns = turns->next) {
        const struct record *first;

        l = l && l->next ? l->next : q->lanes;
        first = TAILQ_FIRST(&l->records);
        if (first && want_fresh && first->head.last_ms == TAILQ_LAST(&l->records, records)->head.last_ms)
            return l;
        if (first && !any)
            any = l;
    }
    return any;
}

struct record *queue_pick(struct queue *q, int64_t now_ms)
{
    struct lane *l;

    invariant(!q->picked && LIST_EMPTY(&q->companions));
    queue_expire(q, now_ms);
    l = queue_next_lane(q);
    if (!l)
        return NULL;
    q->served = l;
    record_pick(q, TAILQ_FIRST(&l->records));
    return q->picked;
}

size_t queue_pick_more(struct queue *q, uint32_t samples, struct record **ret, size_t max)
{
    struct lane *l = q->picked->lane;
    size_t n = 0;

    for (const struct lane *turns = l->name.n ? q->lanes->next : NULL; turns && n < max;
         turns = turns->next) {
        struct record *r;

        l = l->next ? l->next : q->lanes;
        r = TAILQ_FIRST(&l->records);
        if (!r || l->name.n == 0 || r->head.samples > samples)
            continue;
        ret[n++] = r;
        samples -= r->head.samples;
        q->served = l;
    }
    return n;
}

void queue_take_along(struct queue *q, struct record *r)
{
    record_accompany(q, r);
}

void queue_finish(struct queue *q, struct record *r, enum queue_drop why, uint32_t dropped)
{
    invariant(r == q->picked);
    queue_count_drop(q, why, dropped);
    do {
        record_land(q, r);
        queue_remove(q, r);
        r = LIST_FIRST(&q->companions);
    } while (r);
}

/* The record waits again, behind older ones that came meanwhile. */
static void queue_return(struct queue *q, struct record *r)
{
    bool linked;

    record_land(q, r);
    if (!record_is_ahead(r))
        return;
    queue_unlink(q, r);
    linked = queue_link(q, r);
    invariant(linked);
}

void queue_send_alone(struct queue *q)
{
    struct record *r;

    while ((r = LIST_FIRST(&q->companions)))
        queue_return(q, r);
}

void queue_put_back(struct queue *q)
{
    queue_send_alone(q);
    queue_return(q, q->picked);
}

struct queue_stats queue_stats(const struct queue *q)
{
    struct queue_stats now = q->stats;

    now.lanes = q->n_lanes;

    for (const struct lane *l = q->lanes; l; l = l->next) {
        const struct record *first = TAILQ_FIRST(&l->records);

        if (!first)
            continue;
        if (!now.oldest_ms || first->head.first_ms < now.oldest_ms)
            now.oldest_ms = first->head.first_ms;
    }
    return now;
}

/* ---- Read positions ---- */

/* Writes the positions in place of the older of the two files. */
static void queue_put_position(struct queue *q, bool wait_for_disk)
{
    CLEANUP(cleanup_free) struct position_lane *lanes = xmalloc(q->n_lanes * sizeof(*lanes));
    BUF_AUTO(bytes, POSITION_MAX);
    size_t n = 0;
    int r;

    for (const struct lane *l = q->lanes; l; l = l->next)
        lanes[n++] = (struct position_lane){l->name, l->done, l->last_ms};
    invariant(n == q->n_lanes);
    r = position_write(&bytes, ++q->generation, lanes, n)
            ?: spool_put_position(q->spool, q->generation & 1, buf_str(&bytes), wait_for_disk);
    if (r < 0) {
        q->stats.disk_error = r;
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
    int r = spool_read_positions(spool, &bytes, &positions);

    if (r < 0)
        return r;
    q->generation = positions.generation;
    for (struct lane *l = q->lanes; l; l = l->next) {
        l->done = l->segment = 0;
        l->stored_ms = INT64_MIN;
    }
    while (position_next(&positions, &from)) {
        struct lane *l = queue_make_lane(q, from.name);

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
    const struct spool_segment *oldest = q->spool ? TAILQ_FIRST(&q->spool->segments) : NULL;

    return oldest && l->segment >= oldest->number;
}

/* By both clocks: one that is a day ahead for a while must not make lanes be forgotten whose order still
 * matters once it is corrected. */
static bool lane_is_past(const struct lane *l, mono_ms now, int64_t wall_ms)
{
    return mono_diff(l->used_at, now) > CLOCK_BACK_MS && l->last_ms < wall_ms &&
           !is_behind(wall_ms, l->last_ms);
}

/* Removes the idle lanes, and indexes the others anew. */
static void queue_remove_lanes(struct queue *q)
{
    struct lane *next;

    strset_done(&q->names);
    q->n_lanes = 0;
    q->lanes_end = &q->lanes;
    for (struct lane *l = TAKE_PTR(q->lanes); l; l = next) {
        next = l->next;
        if (!l->is_idle) {
            queue_index_lane(q, l);
            continue;
        }
        if (q->served == l)
            q->served = NULL;
        free(l);
    }
    q->position_changed = true;
}

void queue_forget_lanes(struct queue *q, mono_ms now, int64_t wall_ms,
                        bool (*is_used)(void *arg, struct str lane), void *arg)
{
    size_t idle = 0, stored = 0;

    for (struct lane *l = q->lanes; l; l = l->next) {
        if (!l->used_at.ms || !TAILQ_EMPTY(&l->records) || is_used(arg, l->name))
            l->used_at = now;
        l->is_idle = lane_is_past(l, now, wall_ms);
        stored += l->is_idle && lane_is_stored(q, l);
    }
    /* The segment that is being written may be all that holds them, for days where little is written. */
    if (stored)
        (void)spool_shrink(q->spool);
    for (struct lane *l = q->lanes; l; l = l->next) {
        l->is_idle = l->is_idle && !lane_is_stored(q, l);
        idle += l->is_idle;
    }
    if (idle == 0)
        return;
    /* A power cut must not bring back a segment whose lanes are forgotten. */
    if (q->spool) {
        q->spool->folder_dirty = true;
        if (spool_sync(q->spool) < 0)
            return;
    }
    queue_remove_lanes(q);
}

/* ---- Reading segments ---- */

static void queue_read_record(struct queue *q, struct spool_segment *segment, const struct segment_item *item)
{
    const struct record_head *h = &item->head;
    struct lane *l = queue_make_lane(q, h->lane);
    struct record *r;

    l->segment = segment->number;
    if (h->seq >= q->next_seq)
        q->next_seq = h->seq + 1;
    if (h->seq <= l->done)
        return;
    /* Not sent yet, so the positions do not know of a later one, unless that was in memory only. */
    l->stored_ms = lane_go_on(l, l->stored_ms, h->last_ms);
    if (q->stats.records >= QUEUE_MAX_RECORDS) {
        queue_count_drop(q, DROP_FULL_OLDEST, h->samples);
        return;
    }
    r = record_new(l, h, item->payload.n);
    r->place = RECORD_STORED;
    r->segment = segment;
    r->at = (uint32_t)item->at;
    if (queue_link(q, r))
        segment->live++;
    else
        record_free(r);
}

/* Whether the lost record was delivered. Without the name of its lane, those with numbers above all delivered
 * ones were not. */
static bool queue_has_sent(const struct queue *q, const struct record_head *h)
{
    for (const struct lane *l = q->lanes; l; l = l->next)
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
    q->spool->found.damaged_places++;
    q->spool->found.damaged_bytes += item->n;
    segment->damaged = true;
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
    while ((what = segment_next(&from, &item)) != SEGMENT_END)
        if (what == SEGMENT_RECORD)
            queue_read_record(q, segment, &item);
        else if (what == SEGMENT_TORN)
            q->spool->found.torn_bytes += item.n;
        else
            queue_read_damage(q, segment, &item, buf_str(&bytes));
    return 0;
}

int queue_payload(struct queue *q, struct record *r, struct str *ret)
{
    if (!r->payload) {
        BUF_AUTO(bytes, RECORD_MAX + RECORD_HEAD + LANE_NAME_MAX);
        int error = spool_read(q->spool, r->segment, r->at, record_size(&r->head, r->payload_n), &bytes);

        if (error < 0 && error != -EBADMSG) {
            queue_save_position(q);
            queue_put_back(q);
            queue_forget_written(q);
            q->spool = NULL;
            return -ESTALE;
        }
        if (error < 0)
            return error;
        record_was_read(q, r, buf_take(&bytes).p);
    }
    *ret = (struct str){r->payload, r->payload_n};
    return 0;
}

/* ---- The spool comes and goes ---- */

static void queue_renumber(struct queue *q, uint64_t add)
{
    struct record *r;

    for (struct lane *l = q->lanes; l; l = l->next)
        TAILQ_FOREACH (r, &l->records, entry)
            if (r->place == RECORD_IN_MEMORY)
                r->head.seq += add;
}

/* What is in memory goes on from what was in the spool. */
static void queue_merge_times(struct queue *q)
{
    int64_t stored_ms = 0;

    for (struct lane *l = q->lanes; l; l = l->next) {
        stored_ms = later_ms(stored_ms, l->stored_ms);
        l->last_ms = l->last_ms == INT64_MIN ? l->stored_ms : last_ms_after(l->stored_ms, l->last_ms);
    }
    if (q->stats.last_ms == 0)
        q->stats.last_ms = stored_ms;
}

/* What was read counts as live in its segment, once. */
static void queue_check_live(const struct queue *q)
{
    const struct spool_segment *one;
    const struct record *r;
    uint64_t live = 0, written = 0;

    TAILQ_FOREACH (one, &q->spool->segments, entry)
        live += one->live;
    for (const struct lane *l = q->lanes; l; l = l->next)
        TAILQ_FOREACH (r, &l->records, entry)
            written += r->place != RECORD_IN_MEMORY;
    invariant(live == written);
}

int queue_attach(struct queue *q, struct spool *spool)
{
    const struct queue_stats before = q->stats;
    struct spool_segment *next;
    uint64_t used = q->next_seq;
    int r = queue_read_positions(q, spool);

    if (r < 0)
        return r;
    q->spool = spool;
    queue_renumber(q, IN_MEMORY);
    for (struct spool_segment *one = TAILQ_FIRST(&spool->segments); one && r == 0; one = next) {
        next = TAILQ_NEXT(one, entry);
        invariant(!next || strcmp(one->name, next->name) <= 0);
        r = queue_read_segment(q, one);
    }
    if (r < 0) {
        queue_forget_written(q);
        q->spool = NULL;
        queue_renumber(q, -IN_MEMORY);
        q->next_seq = used;
        q->stats = before;
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

uint64_t queue_detach(struct queue *q)
{
    uint64_t lost = queue_lose_segments(q);

    q->spool = NULL;
    return lost;
}

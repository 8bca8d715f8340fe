/* Owns the lanes and the records in them. */
#include "remotewrite/queue_internal.h"

#include "exporter/base/buf.h"
#include "remotewrite/segment.h"

#include <errno.h>

enum { FRESH_PICKS = 3 };

const char *const queue_drop_words[DROPS] = {
    [DROP_FULL_OLDEST] = "full_oldest", [DROP_FULL_NEWEST] = "full_newest",
    [DROP_TOO_OLD] = "too_old",         [DROP_DAMAGED] = "damaged",
    [DROP_MEMORY] = "memory",           [DROP_REJECTED] = "rejected",
    [DROP_INVALID] = "invalid",         [DROP_BUSY] = "busy",
    [DROP_UNSAVED] = "unsaved",
};

int queue_new(struct queue **ret, const struct queue_options *o)
{
    CLEANUP(cleanup_queue_free) struct queue *q = calloc(1, sizeof(*q));
    int r = 0;

    if (!q)
        return -ENOMEM;
    q->spool = o->spool;
    q->max_bytes = o->max_bytes;
    q->max_memory = o->max_memory ? o->max_memory : o->max_bytes;
    q->policy = o->policy;
    q->age_limit_ms = o->age_limit_ms;
    q->memory_bytes = o->memory_bytes;
    q->lanes_end = &q->lanes;
    q->unsynced_end = &q->unsynced;
    q->next_seq = 1;
    if (q->spool)
        r = queue_recover(q);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(q);
    return 0;
}

void queue_free_record(struct record *r)
{
    free(r->payload);
    free(r);
}

struct queue *queue_free(struct queue *q)
{
    if (!q)
        return NULL;
    for (struct lane *l = q->lanes, *next; l; l = next) {
        next = l->next;
        while (l->head) {
            struct record *r = l->head;

            l->head = r->next;
            queue_free_record(r);
        }
        free(l);
    }
    free(q);
    return NULL;
}

struct lane *queue_find_lane(const struct queue *q, struct str name)
{
    struct lane *l = q->lanes;

    while (l && !str_eq(name, (struct str){l->name, l->name_n}))
        l = l->next;
    return l;
}

struct lane *queue_lane(struct queue *q, struct str name)
{
    struct lane *l = queue_find_lane(q, name);

    if (l)
        return l;
    l = calloc(1, sizeof(*l) + name.n + 1);
    if (!l)
        return NULL;
    l->last_ms = INT64_MIN;
    l->name_n = name.n;
    if (name.n)
        memcpy(l->name, name.p, name.n);
    *q->lanes_end = l;
    q->lanes_end = &l->next;
    return l;
}

/* Where a record with this number goes in the lane. */
static struct record **lane_place(const struct queue *q, struct lane *l, uint64_t seq)
{
    struct record *from = l->tail && l->tail->seq < seq ? l->tail : l->inserted;

    if (!from || from->seq >= seq)
        from = l->head && l->head == q->picked ? l->head : NULL;
    for (struct record *next = from ? from->next : l->head; next && next->seq < seq; next = next->next)
        from = next;
    return from ? &from->next : &l->head;
}

bool queue_link(struct queue *q, struct lane *l, struct record *r)
{
    struct record **at = lane_place(q, l, r->seq);

    if (*at && (*at)->seq == r->seq)
        return false;
    r->lane = l;
    r->next = *at;
    *at = l->inserted = r;
    if (!r->next)
        l->tail = r;
    l->n++;
    if (r->last_ms > l->last_ms)
        l->last_ms = r->last_ms;
    if (r->last_ms > q->stats.newest_ever_ms)
        q->stats.newest_ever_ms = r->last_ms;
    q->stats.records++;
    q->stats.samples += r->samples;
    q->stats.bytes += r->payload_n;
    if (r->payload)
        q->stats.memory += r->payload_n;
    if (!r->place.segment) {
        q->memory_only += r->payload_n;
        q->stats.unsaved += r->samples;
    }
    return true;
}

static void queue_forget_unsynced(struct queue *q, struct record *r)
{
    for (struct record **at = &q->unsynced; *at; at = &(*at)->next_unsynced)
        if (*at == r) {
            *at = r->next_unsynced;
            if (q->unsynced_end == &r->next_unsynced)
                q->unsynced_end = at;
            return;
        }
}

struct record *queue_unlink(struct queue *q, struct record **at)
{
    struct record *r = *at, *before = NULL;
    struct lane *l = r->lane;

    for (struct record *p = l->tail == r ? l->head : NULL; p && p != r; p = p->next)
        before = p;
    if (l->tail == r)
        l->tail = before;
    if (l->inserted == r)
        l->inserted = NULL;
    *at = r->next;
    l->n--;
    q->stats.records--;
    q->stats.samples -= r->samples;
    q->stats.bytes -= r->payload_n;
    if (r->payload)
        q->stats.memory -= r->payload_n;
    if (!r->place.segment) {
        q->memory_only -= r->payload_n;
        q->stats.unsaved -= r->samples;
    }
    queue_forget_unsynced(q, r);
    return r;
}

void queue_remove(struct queue *q, struct record **at)
{
    struct record *r = *at;
    struct lane *l = r->lane;
    bool late = r->place.segment && spool_is_late(r->place.segment);

    if (late) {
        q->position_changed = true;
    } else if (r == l->head && r->seq > l->done) {
        l->done = r->seq;
        q->position_changed = true;
    }
    (void)queue_unlink(q, at);
    if (r->place.segment)
        spool_forget(q->spool, r->place);
    queue_free_record(r);
}

void queue_count_drop(struct queue *q, enum queue_drop why, uint64_t samples)
{
    q->stats.dropped[why] += samples;
}

void queue_store(struct queue *q, struct record *r, const struct record_head *h)
{
    int error = q->spool ? spool_append(q->spool, h, (struct str){r->payload, r->payload_n}, &r->place) : 0;

    if (error < 0) {
        r->place = (struct spool_place){0};
        q->append_error = error;
    } else if (q->spool) {
        *q->unsynced_end = r;
        q->unsynced_end = &r->next_unsynced;
    }
}

struct record *queue_new_record(const struct record_head *h)
{
    struct record *r = calloc(1, sizeof(*r));

    if (r)
        *r = (struct record){.seq = h->seq,
                             .kind = h->kind,
                             .samples = h->samples,
                             .first_ms = h->first_ms,
                             .last_ms = h->last_ms};
    return r;
}

int queue_append(struct queue *q, struct record_head *h, char *payload, size_t payload_n, int64_t now_ms)
{
    struct lane *l = h->lane.n <= LANE_NAME_MAX && payload_n <= RECORD_MAX ? queue_lane(q, h->lane) : NULL;
    struct record *r = l ? queue_new_record(h) : NULL;
    enum queue_drop why = DROP_MEMORY;

    queue_expire(q, now_ms);
    if (!r || !queue_make_room(q, RECORD_HEAD + h->lane.n + payload_n, &why)) {
        queue_count_drop(q, why, h->samples);
        free(payload);
        free(r);
        return why == DROP_MEMORY ? -ENOMEM : 0;
    }
    r->seq = h->seq = q->next_seq++;
    r->payload = payload;
    r->payload_n = payload_n;
    queue_store(q, r, h);
    (void)queue_link(q, l, r);
    return 0;
}

/* A payload on disk leaves memory if the cache is over its limit. */
static void record_release_memory(struct queue *q, struct record *r)
{
    if (q->stats.memory <= q->memory_bytes || r == q->picked || !r->payload || !r->place.segment)
        return;
    q->stats.memory -= r->payload_n;
    free(r->payload);
    r->payload = NULL;
}

void queue_leave_disk(struct queue *q, struct record *r, bool forget)
{
    if (!r->place.segment)
        return;
    if (forget)
        spool_forget(q->spool, r->place);
    r->place = (struct spool_place){0};
    q->memory_only += r->payload_n;
    q->stats.unsaved += r->samples;
}

void queue_sync(struct queue *q)
{
    struct record *r = q->unsynced, *next;
    int error = r ? spool_sync(q->spool) : 0;

    if (!r && q->append_error == 0)
        return;
    q->unsynced = NULL;
    q->unsynced_end = &q->unsynced;
    for (; r; r = next) {
        next = r->next_unsynced;
        r->next_unsynced = NULL;
        /* After a failed sync the file cannot be trusted to hold the record. */
        if (error < 0)
            queue_leave_disk(q, r, true);
        else
            record_release_memory(q, r);
    }
    q->stats.disk_error = error < 0 ? error : q->append_error;
    q->append_error = 0;
}

int64_t queue_last_ms(const struct queue *q, struct str lane)
{
    const struct lane *l = queue_find_lane(q, lane);

    return l ? l->last_ms : INT64_MIN;
}

static bool record_is_too_old(const struct queue *q, const struct record *r, int64_t now_ms)
{
    return r->last_ms < now_ms - q->age_limit_ms;
}

/* The picked record is the first of its lane and is kept, even if records behind it expire. */
void queue_expire(struct queue *q, int64_t now_ms)
{
    for (struct lane *l = q->age_limit_ms ? q->lanes : NULL; l; l = l->next) {
        struct record **at = l->head && l->head == q->picked ? &l->head->next : &l->head;

        while (*at && record_is_too_old(q, *at, now_ms)) {
            queue_count_drop(q, DROP_TOO_OLD, (*at)->samples);
            queue_remove(q, at);
        }
    }
}

/* True if the lane has no backlog: its first record is of the newest round. */
static bool lane_is_fresh(const struct lane *l)
{
    return l->head->last_ms >= l->last_ms;
}

/* The next non-empty lane in turn, fresh ones first; every fourth pick takes any lane, so that a backlog
 * drains under a constant load of fresh rounds. */
static struct lane *queue_next_lane(struct queue *q)
{
    struct lane *any = NULL, *l = q->served;
    bool want_fresh = q->picks++ % (FRESH_PICKS + 1) != FRESH_PICKS;
    size_t lanes = 0;

    for (struct lane *p = q->lanes; p; p = p->next)
        lanes++;
    for (; lanes; lanes--) {
        l = l && l->next ? l->next : q->lanes;
        if (l->head && want_fresh && lane_is_fresh(l))
            return l;
        if (l->head && !any)
            any = l;
    }
    return any;
}

struct record *queue_pick(struct queue *q, int64_t now_ms)
{
    struct lane *l;

    queue_expire(q, now_ms);
    l = queue_next_lane(q);
    if (!l)
        return NULL;
    q->served = l;
    q->picked = l->head;
    return l->head;
}

int queue_payload(struct queue *q, struct record *r, struct str *ret)
{
    BUF_AUTO(bytes, RECORD_MAX + RECORD_HEAD + LANE_NAME_MAX);
    int error = r->payload ? 0 : spool_read(q->spool, r->place, &bytes);

    if (error < 0 && error != -EBADMSG && error != -ENOMEM) {
        struct spool_reader reader = queue_reader(q);

        error = spool_set_unread(q->spool, r->place.segment, &reader, error) ?: -ESTALE;
    }
    if (error < 0)
        return error;
    if (!r->payload) {
        r->payload = buf_take(&bytes).p;
        q->stats.memory += r->payload_n;
    }
    *ret = (struct str){r->payload, r->payload_n};
    return 0;
}

void queue_finish(struct queue *q, struct record *r, enum queue_drop why, uint32_t dropped)
{
    queue_count_drop(q, why, dropped);
    q->picked = NULL;
    queue_remove(q, &r->lane->head);
}

struct str queue_record_lane(const struct record *r)
{
    return (struct str){r->lane->name, r->lane->name_n};
}

void queue_put_back(struct queue *q)
{
    q->picked = NULL;
}

void queue_stats(const struct queue *q, struct queue_stats *ret)
{
    *ret = q->stats;
    for (const struct lane *l = q->lanes; l; l = l->next) {
        if (!l->head)
            continue;
        if (!ret->oldest_ms || l->head->first_ms < ret->oldest_ms)
            ret->oldest_ms = l->head->first_ms;
        if (l->tail->last_ms > ret->newest_ms)
            ret->newest_ms = l->tail->last_ms;
    }
}

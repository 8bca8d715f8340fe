/* Owns a record's two states, and the sums over all of them. Endpoint's thread. Nothing else writes `place`,
 * `delivery`, or a member of struct backlog. */
#include "remotewrite/record.h"

#include "exporter/base/alloc.h"
#include "exporter/base/invariant.h"

/* ---- A record ---- */

static struct record *record_make(struct lane *l, const struct record_head *h, size_t payload_n)
{
    struct record *r = xcalloc(1, sizeof(*r));

    r->lane = l;
    r->head = *h;
    r->head.lane = l->name;
    r->payload_n = payload_n;
    return r;
}

struct record *record_new(struct lane *l, const struct record_head *h, char *payload, size_t payload_n)
{
    struct record *r = record_make(l, h, payload_n);

    r->place = RECORD_IN_MEMORY;
    r->payload = payload;
    return r;
}

struct record *record_found(struct lane *l, const struct segment_item *item, struct spool_segment *segment)
{
    struct record *r = record_make(l, &item->head, item->payload.n);

    r->place = RECORD_STORED;
    r->segment = segment;
    r->at = (uint32_t)item->at;
    return r;
}

void record_free(struct record *r)
{
    invariant(r->delivery == RECORD_WAITS);
    if (r->place == RECORD_WRITTEN)
        LIST_REMOVE(r, unsynced);
    free(r->payload);
    free(r);
}

/* ---- Sums ---- */

static void record_check(const struct record *r)
{
    invariant((r->segment == NULL) == (r->place == RECORD_IN_MEMORY));
    invariant((r->payload == NULL) == (r->place == RECORD_STORED));
}

/* Counts the record, which is in its lane, where it is. */
static void backlog_count_place(struct backlog *b, const struct record *r)
{
    record_check(r);
    if (r->payload)
        b->memory += r->payload_n;
    if (r->place == RECORD_IN_MEMORY) {
        b->memory_only += r->payload_n;
        b->unsaved += r->head.samples;
    }
}

/* Takes back what backlog_count_place() has counted, before the record goes somewhere else, or away. */
static void backlog_uncount_place(struct backlog *b, const struct record *r)
{
    record_check(r);
    if (r->payload) {
        invariant(b->memory >= r->payload_n);
        b->memory -= r->payload_n;
    }
    if (r->place == RECORD_IN_MEMORY) {
        invariant(b->memory_only >= r->payload_n && b->unsaved >= r->head.samples);
        b->memory_only -= r->payload_n;
        b->unsaved -= r->head.samples;
    }
}

/* ---- In its lane ---- */

bool record_link(struct backlog *b, struct record *r)
{
    struct lane *l = r->lane;
    struct record *before = TAILQ_LAST(&l->records, lane_records);

    while (before && before->delivery == RECORD_WAITS && before->head.seq > r->head.seq)
        before = TAILQ_PREV(before, lane_records, entry);
    if (before && before->head.seq == r->head.seq)
        return false;
    if (before)
        TAILQ_INSERT_AFTER(&l->records, before, r, entry);
    else
        TAILQ_INSERT_HEAD(&l->records, r, entry);
    b->records++;
    b->samples += r->head.samples;
    backlog_count_place(b, r);
    return true;
}

void record_unlink(struct backlog *b, struct record *r)
{
    invariant(r->delivery == RECORD_WAITS);
    invariant(b->records > 0 && b->samples >= r->head.samples);
    TAILQ_REMOVE(&r->lane->records, r, entry);
    b->records--;
    b->samples -= r->head.samples;
    backlog_uncount_place(b, r);
}

bool record_is_ahead(const struct record *r)
{
    const struct record *next = TAILQ_NEXT(r, entry);

    return next && next->head.seq < r->head.seq;
}

/* ---- Place ---- */

static void record_enter(struct backlog *b, struct record *r, enum record_place place)
{
    if (r->place == RECORD_WRITTEN)
        LIST_REMOVE(r, unsynced);
    if (place == RECORD_WRITTEN)
        LIST_INSERT_HEAD(&b->unsynced, r, unsynced);
    r->place = place;
    backlog_count_place(b, r);
}

void record_was_written(struct backlog *b, struct record *r, struct spool_segment *segment, uint32_t at)
{
    invariant(r->place == RECORD_IN_MEMORY);
    backlog_uncount_place(b, r);
    r->segment = segment;
    r->at = at;
    record_enter(b, r, RECORD_WRITTEN);
}

void record_was_synced(struct backlog *b, struct record *r)
{
    invariant(r->place == RECORD_WRITTEN);
    backlog_uncount_place(b, r);
    record_enter(b, r, RECORD_CACHED);
}

void record_uncache(struct backlog *b, struct record *r)
{
    invariant(r->place == RECORD_CACHED && r->delivery == RECORD_WAITS);
    backlog_uncount_place(b, r);
    free(TAKE_PTR(r->payload));
    record_enter(b, r, RECORD_STORED);
}

void record_was_read(struct backlog *b, struct record *r, char *payload)
{
    invariant(r->place == RECORD_STORED);
    backlog_uncount_place(b, r);
    r->payload = payload;
    record_enter(b, r, RECORD_CACHED);
}

void record_leave_segment(struct backlog *b, struct record *r)
{
    invariant(r->place == RECORD_WRITTEN || r->place == RECORD_CACHED);
    backlog_uncount_place(b, r);
    r->segment = NULL;
    record_enter(b, r, RECORD_IN_MEMORY);
}

/* ---- Delivery ---- */

void record_pick(struct backlog *b, struct record *r)
{
    invariant(!b->picked && LIST_EMPTY(&b->companions) && b->in_flight == 0);
    invariant(r->delivery == RECORD_WAITS && r == TAILQ_FIRST(&r->lane->records));
    r->delivery = RECORD_PICKED;
    b->picked = r;
    b->in_flight++;
}

void record_accompany(struct backlog *b, struct record *r)
{
    invariant(b->picked && r->delivery == RECORD_WAITS && r == TAILQ_FIRST(&r->lane->records) && r->payload);
    r->delivery = RECORD_TRAVELS;
    LIST_INSERT_HEAD(&b->companions, r, companion);
    b->in_flight++;
}

void record_land(struct backlog *b, struct record *r)
{
    invariant(r->delivery != RECORD_WAITS && b->in_flight > 0);
    if (r->delivery == RECORD_TRAVELS) {
        LIST_REMOVE(r, companion);
    } else {
        invariant(r == b->picked);
        b->picked = NULL;
    }
    r->delivery = RECORD_WAITS;
    b->in_flight--;
}

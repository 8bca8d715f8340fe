/* The queue and its spool while it runs: when the disk fails, the folder or its files are removed, or the
 * spool can be opened only later. */
#include "remotewrite/queue_internal.h"

#include <errno.h>

static struct str lane_name(const struct lane *l)
{
    return (struct str){l->name, l->name_n};
}

/* Moves the records of `from`, which are older, to the front, but not before the picked one. */
static void lane_take(struct queue *q, struct lane *l, struct lane *from)
{
    struct record **at = l->head && l->head == q->picked ? &l->head->next : &l->head;

    for (struct record *r = from->head; r; r = r->next)
        r->lane = l;
    if (from->head) {
        if (!*at)
            l->tail = from->tail;
        from->tail->next = *at;
        *at = from->head;
    }
    l->n += from->n;
    l->done = from->done;
    if (from->last_ms > l->last_ms)
        l->last_ms = from->last_ms;
    from->head = from->tail = NULL;
}

/* Numbers the records in memory after all those of the spool. If the picked one is now followed by older
 * ones, it gets no number: its delivery says nothing about them. */
static void queue_renumber(struct queue *q, const struct queue *from)
{
    const struct lane *older = q->picked ? queue_find_lane(from, lane_name(q->picked->lane)) : NULL;

    for (struct lane *l = q->lanes; l; l = l->next)
        for (struct record *r = l->head; r; r = r->next)
            r->seq += from->next_seq;
    if (older && older->head)
        q->picked->seq = 0;
    q->next_seq += from->next_seq;
}

int queue_attach(struct queue *q, struct spool *spool)
{
    CLEANUP(cleanup_queue_free) struct queue *from = NULL;
    struct queue_options o = {.spool = spool, .max_bytes = q->max_bytes};
    int r = queue_new(&from, &o);

    if (r < 0)
        return r;
    for (struct lane *l = from->lanes; l; l = l->next)
        if (!queue_lane(q, lane_name(l)))
            return -ENOMEM;
    queue_renumber(q, from);
    for (struct lane *l = from->lanes; l; l = l->next)
        lane_take(q, queue_find_lane(q, lane_name(l)), l);
    q->stats.samples += from->stats.samples;
    q->stats.records += from->stats.records;
    q->stats.bytes += from->stats.bytes;
    if (from->stats.newest_ever_ms > q->stats.newest_ever_ms)
        q->stats.newest_ever_ms = from->stats.newest_ever_ms;
    for (unsigned i = 0; i < DROPS; i++)
        q->stats.dropped[i] += from->stats.dropped[i];
    q->generation = from->generation;
    q->position_changed = true;
    q->spool = spool;
    queue_store_waiting(q);
    return 0;
}

/* The record *at has lost its file: keeps it in memory, or drops it. The samples dropped are added to
 * ret_lost. Where the next record is. */
static struct record **queue_lose_file(struct queue *q, struct record **at, bool forget, uint64_t *ret_lost)
{
    struct record *r = *at;

    queue_leave_disk(q, r, forget);
    if (r->payload)
        return &r->next;
    queue_count_drop(q, DROP_DAMAGED, r->samples);
    *ret_lost += r->samples;
    queue_remove(q, at);
    return at;
}

/* All segments for NULL. */
static uint64_t queue_lose_segment(struct queue *q, const struct spool_segment *segment)
{
    uint64_t lost = 0;

    for (struct lane *l = q->lanes; l; l = l->next)
        for (struct record **at = &l->head; *at;)
            if (!segment || (*at)->place.segment == segment)
                at = queue_lose_file(q, at, segment != NULL, &lost);
            else
                at = &(*at)->next;
    return lost;
}

uint64_t queue_detach(struct queue *q)
{
    uint64_t lost = queue_lose_segment(q, NULL);

    q->unsynced = NULL;
    q->unsynced_end = &q->unsynced;
    q->spool = NULL;
    return lost;
}

uint64_t queue_check_files(struct queue *q)
{
    struct spool_segment *segment;
    uint64_t lost = 0;

    if (!q->spool)
        return 0;
    while ((segment = spool_missing(q->spool))) {
        lost += queue_lose_segment(q, segment);
        spool_trim(q->spool);
    }
    spool_trim(q->spool);
    return lost;
}

static void record_store_waiting(struct queue *q, struct record *r)
{
    struct record_head h = {.seq = r->seq,
                            .kind = r->kind,
                            .samples = r->samples,
                            .first_ms = r->first_ms,
                            .last_ms = r->last_ms,
                            .lane = lane_name(r->lane)};

    queue_store(q, r, &h);
    if (!r->place.segment)
        return;
    q->memory_only -= r->payload_n;
    q->stats.unsaved -= r->samples;
}

/* Gives the record that was picked during queue_attach() a number: the last of its lane. */
static void lane_number_head(struct queue *q, struct lane *l)
{
    struct record *r = l->head;

    if (!r || r->seq != 0 || r == q->picked)
        return;
    (void)queue_unlink(q, &l->head);
    r->seq = q->next_seq++;
    (void)queue_link(q, l, r);
}

void queue_store_waiting(struct queue *q)
{
    if (!q->spool || q->memory_only == 0)
        return;
    for (struct lane *l = q->lanes; l; l = l->next) {
        lane_number_head(q, l);
        for (struct record *r = l->head; r && q->append_error == 0; r = r->next)
            if (!r->place.segment && r->seq && spool_bytes(q->spool) + r->payload_n < q->max_bytes)
                record_store_waiting(q, r);
    }
    queue_sync(q);
}

void queue_retry_unread(struct queue *q)
{
    struct spool_reader reader = queue_reader(q);

    if (q->spool && spool_retry(q->spool, &reader) > 0)
        q->position_changed = true;
    queue_end_reading(q);
}

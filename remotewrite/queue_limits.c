/* The limits of the queue: which records to queue_drop_full when it is full. */
#include "remotewrite/queue_internal.h"

/* Segments that are unread or set aside count up to half of the limit, so that new samples always have
 * room. */
static uint64_t queue_bytes(const struct queue *q)
{
    uint64_t idle = q->spool ? spool_idle_bytes(q->spool) : 0;

    if (!q->spool)
        return q->memory_only;
    return spool_bytes(q->spool) + (idle < q->max_bytes / 2 ? idle : q->max_bytes / 2);
}

static bool queue_disk_fails(const struct queue *q)
{
    return q->stats.disk_error < 0 || q->append_error < 0;
}

static bool queue_fits(const struct queue *q, uint64_t need)
{
    uint64_t max = q->spool ? q->max_bytes : q->max_memory;

    /* While writes fail, new records stay in memory. */
    if (q->spool && queue_disk_fails(q) && q->memory_only + need > q->max_memory)
        return false;
    return queue_bytes(q) + need <= max && q->stats.records < QUEUE_MAX_RECORDS;
}

static void queue_drop_full(struct queue *q, struct record **at)
{
    queue_count_drop(q, DROP_FULL_OLDEST, (*at)->samples);
    queue_remove(q, at);
}

/* The picked record loses its place on disk but stays in memory until its response arrives. */
static void queue_drop_segment(struct queue *q, const struct spool_segment *segment)
{
    for (struct lane *l = q->lanes; l; l = l->next)
        for (struct record **at = &l->head, *r; (r = *at);) {
            if (r->place.segment == segment && r == q->picked)
                queue_leave_disk(q, r, true);
            else if (r->place.segment == segment) {
                queue_drop_full(q, at);
                continue;
            }
            at = &r->next;
        }
}

static struct record **lane_first_in_memory(const struct queue *q, struct lane *l)
{
    struct record **at = &l->head;

    while (*at && ((*at)->place.segment || *at == q->picked))
        at = &(*at)->next;
    return at;
}

/* Drops the oldest record that is in memory only. */
static bool queue_drop_in_memory(struct queue *q)
{
    struct record **oldest = NULL;

    for (struct lane *l = q->lanes; l; l = l->next) {
        struct record **at = lane_first_in_memory(q, l);

        if (*at && (!oldest || (*at)->seq < (*oldest)->seq))
            oldest = at;
    }
    if (oldest)
        queue_drop_full(q, oldest);
    return oldest != NULL;
}

static bool queue_drop_oldest(struct queue *q)
{
    struct spool_segment *segment = q->spool ? spool_oldest(q->spool) : NULL;
    bool memory_full = q->memory_only && (!q->spool || queue_disk_fails(q));

    if (memory_full && queue_drop_in_memory(q))
        return true;
    if (!segment)
        return false;
    queue_drop_segment(q, segment);
    return spool_oldest(q->spool) != segment || spool_shrink(q->spool);
}

bool queue_make_room(struct queue *q, uint64_t need, enum queue_drop *ret_why)
{
    *ret_why = q->policy == RW_DROP_NEWEST ? DROP_FULL_NEWEST : DROP_FULL_OLDEST;
    while (!queue_fits(q, need))
        if (q->policy == RW_DROP_NEWEST || !queue_drop_oldest(q))
            return false;
    return true;
}

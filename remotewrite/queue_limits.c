/* The queue's ceilings: what goes when there is no room. */
#include "remotewrite/queue_internal.h"

static uint64_t in_use(const struct queue *q)
{
    return q->spool ? spool_bytes(q->spool) : q->memory_only;
}

static bool fits(const struct queue *q, uint64_t need)
{
    uint64_t max = q->spool ? q->max_bytes : q->max_memory;

    /* While the disk fails, what comes stays in memory. */
    if (q->spool && q->stats.disk_error < 0 && q->memory_only + need > q->max_memory)
        return false;
    return in_use(q) + need <= max && q->stats.records < QUEUE_MAX_RECORDS;
}

static void drop(struct queue *q, struct record **at)
{
    queue_count_drop(q, DROP_FULL_OLDEST, (*at)->samples);
    queue_remove(q, at);
}

/* The record under way loses its place on disk, but stays in memory until its answer comes. */
static void detach(struct queue *q, struct record *r)
{
    spool_forget(q->spool, r->place);
    r->place = (struct spool_place){0};
    q->memory_only += r->payload_n;
}

static void drop_segment(struct queue *q, const struct spool_segment *segment)
{
    for (struct lane *l = q->lanes; l; l = l->next)
        for (struct record **at = &l->head, *r; (r = *at);) {
            if (r->place.segment == segment && r == q->held)
                detach(q, r);
            else if (r->place.segment == segment) {
                drop(q, at);
                continue;
            }
            at = &r->next;
        }
}

static struct record **first_in_memory(const struct queue *q, struct lane *l)
{
    struct record **at = &l->head;

    while (*at && ((*at)->place.segment || *at == q->held))
        at = &(*at)->next;
    return at;
}

/* The oldest of those that are in memory only. */
static bool drop_in_memory(struct queue *q)
{
    struct record **oldest = NULL;

    for (struct lane *l = q->lanes; l; l = l->next) {
        struct record **at = first_in_memory(q, l);

        if (*at && (!oldest || (*at)->seq < (*oldest)->seq))
            oldest = at;
    }
    if (oldest)
        drop(q, oldest);
    return oldest != NULL;
}

static bool drop_oldest(struct queue *q)
{
    struct spool_segment *segment = q->spool ? spool_oldest(q->spool) : NULL;
    bool memory_full = q->memory_only && (!q->spool || q->stats.disk_error < 0);

    if (memory_full && drop_in_memory(q))
        return true;
    if (!segment)
        return false;
    drop_segment(q, segment);
    return spool_oldest(q->spool) != segment || spool_shrink(q->spool);
}

bool queue_make_room(struct queue *q, uint64_t need, enum queue_drop *ret_why)
{
    *ret_why = q->policy == RW_DROP_NEWEST ? DROP_FULL_NEWEST : DROP_FULL_OLDEST;
    while (!fits(q, need))
        if (q->policy == RW_DROP_NEWEST || !drop_oldest(q))
            return false;
    return true;
}

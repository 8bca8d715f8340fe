/* Read positions in the spool: recovering what is still to be sent, and storing what was sent. */
#include "remotewrite/queue_internal.h"

#include "exporter/base/buf.h"
#include "remotewrite/position.h"

#include <errno.h>

enum { POSITION_MAX = 64 << 20, LANES_KEPT = 10000 };

static int position_restore_lane(void *arg, const struct position_lane *from)
{
    struct queue *q = arg;
    struct lane *l = queue_lane(q, from->name);

    if (!l)
        return -ENOMEM;
    l->done = from->seq;
    l->last_ms = from->last_ms;
    if (from->seq >= q->next_seq)
        q->next_seq = from->seq + 1;
    return 0;
}

/* Restores the newer of the two files that is intact. */
static int queue_read_positions(struct queue *q)
{
    BUF_AUTO(a, POSITION_MAX);
    BUF_AUTO(b, POSITION_MAX);
    struct buf *files[] = {&a, &b};
    static const char *const names[] = {"position.a", "position.b"};
    const struct buf *best = NULL;

    for (unsigned i = 0; i < 2; i++) {
        uint64_t generation;
        int r = spool_read_file(q->spool, names[i], files[i]);

        if (r == -ENOMEM)
            return r;
        if (r == 0 && position_generation(buf_str(files[i]), &generation) == 0 &&
            generation >= q->generation) {
            q->generation = generation;
            best = files[i];
        }
    }
    return best ? position_read(buf_str(best), position_restore_lane, q) : 0;
}

static int queue_restore_record(void *arg, const struct record_head *h, struct spool_place at)
{
    struct queue *q = arg;
    struct lane *l = queue_lane(q, h->lane);
    struct record *r;

    if (!l)
        return -ENOMEM;
    if (h->seq >= q->next_seq)
        q->next_seq = h->seq + 1;
    if (h->seq <= l->done || (l->tail && h->seq <= l->tail->seq) || q->stats.records >= QUEUE_MAX_RECORDS)
        return 0;
    r = calloc(1, sizeof(*r));
    if (!r)
        return -ENOMEM;
    *r = (struct record){.seq = h->seq,
                         .kind = h->kind,
                         .samples = h->samples,
                         .first_ms = h->first_ms,
                         .last_ms = h->last_ms,
                         .place = at,
                         .payload_n = at.n};
    queue_link(q, l, r);
    return 1;
}

int queue_recover(struct queue *q, struct spool_found *ret)
{
    return queue_read_positions(q) ?: spool_recover(q->spool, queue_restore_record, q, ret);
}

static int queue_encode_positions(const struct queue *q, struct buf *into)
{
    CLEANUP(cleanup_free) struct position_lane *list = calloc(LANES_KEPT, sizeof(*list));
    size_t n = 0;

    if (!list)
        return -ENOMEM;
    for (const struct lane *l = q->lanes; l && n < LANES_KEPT; l = l->next)
        list[n++] = (struct position_lane){{l->name, l->name_n}, l->done, l->last_ms};
    return position_put(into, q->generation, list, n);
}

void queue_save_position(struct queue *q, bool wait_for_disk)
{
    BUF_AUTO(bytes, POSITION_MAX);
    int r;

    if (!q->spool || (!q->position_changed && !(wait_for_disk && q->position_unsynced)))
        return;
    q->generation++;
    r = queue_encode_positions(q, &bytes);
    if (r == 0)
        r = spool_put_position(q->spool, q->generation & 1, buf_str(&bytes), wait_for_disk);
    if (r < 0) {
        q->stats.disk_error = r;
        return;
    }
    q->position_changed = false;
    q->position_unsynced = !wait_for_disk;
}

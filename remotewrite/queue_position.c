/* Read positions in the spool: recovering what is still to be sent, and storing what was sent. */
#include "remotewrite/queue_internal.h"

#include "exporter/base/buf.h"
#include "remotewrite/position.h"

#include <errno.h>

enum { POSITION_MAX = 64 << 20, LANES_KEPT = 10000 };

static const uint64_t UNREAD_NUMBERS = 1ull << 32;

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

/* Restores the newer of the two files that is intact. If one cannot be read, the other, which may be a
 * record behind, will do; if none can, what was sent is unknown. */
static int queue_read_positions(struct queue *q)
{
    BUF_AUTO(a, POSITION_MAX);
    BUF_AUTO(b, POSITION_MAX);
    struct buf *files[] = {&a, &b};
    static const char *const names[] = {"position.a", "position.b"};
    const struct buf *best = NULL;
    int error = 0;

    for (unsigned i = 0; i < 2; i++) {
        uint64_t generation;
        int r = spool_read_file(q->spool, names[i], files[i]);

        if (r < 0 && r != -ENOENT)
            error = r;
        if (r == 0 && position_generation(buf_str(files[i]), &generation) == 0 &&
            generation >= q->generation) {
            q->generation = generation;
            best = files[i];
        }
    }
    return best ? position_read(buf_str(best), position_restore_lane, q) : error;
}

static int position_restore_late(void *arg, const struct position_lane *from)
{
    struct lane *l = queue_lane(arg, from->name);

    if (!l)
        return -ENOMEM;
    l->segment_done = from->seq;
    return 0;
}

/* If they are damaged, all records of the segment are sent, some perhaps again. */
static int queue_on_positions(void *arg, struct str positions)
{
    struct queue *q = arg;
    int r;

    for (struct lane *l = q->lanes; l; l = l->next)
        l->segment_done = 0;
    r = position_read(positions, position_restore_late, q);
    return r == -ENOMEM ? r : 0;
}

static int queue_on_record(void *arg, const struct record_head *h, struct spool_place at)
{
    struct queue *q = arg;
    struct lane *l = queue_lane(q, h->lane);
    struct record *r;

    if (!l)
        return -ENOMEM;
    if (h->seq >= q->next_seq)
        q->next_seq = h->seq + 1;
    if (h->seq <= (spool_is_late(at.segment) ? l->segment_done : l->done))
        return 0;
    if (q->stats.records >= QUEUE_MAX_RECORDS) {
        queue_count_drop(q, DROP_FULL_NEWEST, h->samples);
        return 0;
    }
    r = queue_new_record(h);
    if (!r)
        return -ENOMEM;
    r->place = at;
    r->payload_n = at.n;
    if (queue_link(q, l, r))
        return 1;
    free(r);
    return 0;
}

/* True if the lost record had been delivered. Without the name of its lane, those with numbers above all
 * delivered ones had not. */
static bool lost_was_done(const struct queue *q, const struct spool_segment *segment,
                          const struct record_head *h)
{
    bool late = spool_is_late(segment);

    for (const struct lane *l = q->lanes; l; l = l->next)
        if ((!h->lane.p || str_eq(h->lane, (struct str){l->name, l->name_n})) &&
            h->seq <= (late ? l->segment_done : l->done))
            return true;
    return false;
}

/* Counted by queue_end_reading(): the record may have been written a second time, after the disk failed. */
static void queue_on_lost(void *arg, const struct spool_segment *segment, const struct record_head *h)
{
    struct queue *q = arg;
    struct lost_record *more;

    if (lost_was_done(q, segment, h))
        return;
    more = realloc(q->lost, (q->n_lost + 1) * sizeof(*more));
    if (!more) {
        queue_count_drop(q, DROP_DAMAGED, h->samples);
        return;
    }
    q->lost = more;
    q->lost[q->n_lost++] = (struct lost_record){h->seq, h->samples};
}

static bool queue_has(const struct queue *q, uint64_t seq)
{
    for (const struct lane *l = q->lanes; l; l = l->next)
        for (const struct record *r = l->head; r && r->seq <= seq; r = r->next)
            if (r->seq == seq)
                return true;
    return false;
}

void queue_end_reading(struct queue *q)
{
    for (struct lane *l = q->lanes; l; l = l->next)
        l->inserted = NULL;
    for (size_t i = 0; i < q->n_lost; i++)
        if (!queue_has(q, q->lost[i].seq))
            queue_count_drop(q, DROP_DAMAGED, q->lost[i].samples);
    free(q->lost);
    q->lost = NULL;
    q->n_lost = 0;
}

static void queue_on_unread(void *arg, const struct spool_segment *segment)
{
    struct queue *q = arg;

    for (struct lane *l = q->lanes; l; l = l->next)
        for (struct record **at = &l->head; *at;) {
            struct record *r = *at;

            if (r->place.segment != segment) {
                at = &r->next;
                continue;
            }
            if (q->picked == r)
                q->picked = NULL;
            queue_free_record(queue_unlink(q, at));
        }
}

static int queue_encode_positions(void *arg, const struct spool_segment *segment, struct buf *into);

struct spool_reader queue_reader(struct queue *q)
{
    return (struct spool_reader){.on_positions = queue_on_positions,
                                 .on_record = queue_on_record,
                                 .on_lost = queue_on_lost,
                                 .on_unread = queue_on_unread,
                                 .positions = queue_encode_positions,
                                 .arg = q};
}

int queue_recover(struct queue *q)
{
    struct spool_reader reader = queue_reader(q);
    struct spool_stats found;
    int r = queue_read_positions(q) ?: spool_recover(q->spool, &reader);

    queue_end_reading(q);
    if (r < 0)
        return r;
    /* The numbers in an unread segment are unknown: new records must not get them again. */
    spool_stats(q->spool, &found);
    if (found.unread.n)
        q->next_seq += UNREAD_NUMBERS;
    return 0;
}

/* The read positions in a late segment: all before the first record that waits. */
static uint64_t lane_done_in(const struct lane *l, const struct spool_segment *segment)
{
    const struct record *r = l->head;

    if (!segment)
        return l->done;
    while (r && r->place.segment != segment)
        r = r->next;
    return r ? r->seq - 1 : UINT64_MAX;
}

static int queue_encode_positions(void *arg, const struct spool_segment *segment, struct buf *into)
{
    const struct queue *q = arg;
    CLEANUP(cleanup_free) struct position_lane *list = calloc(LANES_KEPT, sizeof(*list));
    size_t n = 0;

    if (!list)
        return -ENOMEM;
    for (const struct lane *l = q->lanes; l && n < LANES_KEPT; l = l->next)
        list[n++] = (struct position_lane){{l->name, l->name_n}, lane_done_in(l, segment), l->last_ms};
    return position_put(into, segment ? 1 : q->generation, list, n);
}

void queue_save_position(struct queue *q, bool wait_for_disk)
{
    BUF_AUTO(bytes, POSITION_MAX);
    struct spool_reader reader = queue_reader(q);
    int r;

    if (!q->spool || (!q->position_changed && !(wait_for_disk && q->position_unsynced)))
        return;
    q->generation++;
    r = spool_save_late(q->spool, &reader)
            ?: queue_encode_positions(q, NULL, &bytes)
            ?: spool_put_position(q->spool, q->generation & 1, buf_str(&bytes), wait_for_disk);
    if (r < 0) {
        q->stats.disk_error = r;
        return;
    }
    q->position_changed = false;
    q->position_unsynced = !wait_for_disk;
}

/* Owns all that is open of the spool: its folder, its segments and its file of active series. Called by the
 * endpoint, and by queue.c where something cannot be read; on the endpoint's thread. What is read goes before
 * what is in memory, and a file that cannot be read leaves the queue as it was. */
#include "exporter/base/alloc.h"
#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/invariant.h"
#include "remotewrite/folder.h"
#include "remotewrite/lane.h"
#include "remotewrite/queue_internal.h"
#include "remotewrite/timestamp.h"

#include <errno.h>

enum { POSITION_MAX = 64 << 20, SEGMENT_FILE_MAX = 256 << 20 };

/* Added to the numbers of records in memory while those of a spool are read, which go before them. */
static const uint64_t IN_MEMORY = 1ull << 63;

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
    if (r == 0)
        r = spool_put_position(q->spool, q->generation + 1, buf_str(&bytes), wait_for_disk);
    if (r < 0) {
        q->disk_error = r;
        return;
    }
    q->generation++;
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

/* The positions alone know then what was sent, and the last timestamp of a scorer that has sent all: without
 * it, a clock that is behind would give later samples times that are taken. Where they cannot be written,
 * segments go all the same, since a full disk needs that room. */
void queue_remove_empty(struct queue *q)
{
    if (!q->spool || !spool_has_empty(q->spool))
        return;
    queue_sync_position(q);
    spool_remove_empty(q->spool);
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

void queue_close_spool(struct queue *q)
{
    active_close(&q->active);
    q->left = spool_free(q->left);
    q->spool = spool_free(q->spool);
    folder_close(&q->folder);
}

void queue_leave_spool(struct queue *q)
{
    invariant(!q->left);
    queue_save_position(q);
    queue_put_back(q);
    queue_forget_written(q);
    q->left = TAKE_PTR(q->spool);
}

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
    queue_merge_times(q);
    queue_renumber(q, q->next_seq - IN_MEMORY);
    q->next_seq += used;
    q->position_changed = true;
    queue_remove_empty(q);
    spool_trim_aside(spool);
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
    queue_remove_empty(q);
    spool_trim_aside(q->spool);
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

/* Owns the files of active series; a set belongs to the intake. Endpoint's thread. The files are only
 * appended to, until most of what they hold is obsolete; then a new one takes the name of the first, and the
 * second goes. No file that has a name is ever half written, but for its end. */
#include "remotewrite/active.h"

#include "exporter/base/alloc.h"
#include "exporter/base/buf.h"
#include "exporter/base/invariant.h"
#include "exporter/base/map.h"
#include "exporter/base/strset.h"
#include "remotewrite/body.h"
#include "remotewrite/format.h"
#include "remotewrite/frame.h"
#include "remotewrite/labels.h"

#include <errno.h>

enum {
    ACTIVE_SLACK = 64 << 10,
    ACTIVE_MAX = 1 << 30,
    CHANGED_PART = 2,     /* a set of which more than this part has changed is stored whole */
    LOADED_SERIES = 10000 /* in a frame */
};

static const uint64_t ACTIVE_FIRST_SEQ = 1ull << 32;

static const char active_name[] = "active", active_new[] = "active.new";
static const char changes_name[] = "active.changes", changes_new[] = "active.changes.new";

/* ---- A set ---- */

void active_set_init(struct active_set *set, struct str lane, const struct frames *frames)
{
    *set = (struct active_set){.lane = lane, .frames = frames, .changes = {.max = ACTIVE_MAX}};
}

void active_set_done(struct active_set *set)
{
    buf_done(&set->changes);
}

static void active_set_enter(struct active_set *set, enum active_state state)
{
    if (state != ACTIVE_HAS_CHANGED)
        buf_done(&set->changes);
    set->state = state;
}

void active_set_replace(struct active_set *set)
{
    active_set_enter(set, ACTIVE_IS_UNSTORED);
}

static void put_record(struct buf *into, const struct record_head *h, struct str block)
{
    char head[RECORD_HEAD];

    record_head_put(head, h, block);
    buf_put(into, head, sizeof(head));
    buf_put_str(into, h->lane);
    buf_put_str(into, block);
}

/* Without a set that it could be read with, or if that is not much larger, a change is no change. */
static void active_set_note(struct active_set *set, enum record_kind kind, const struct frame *f)
{
    struct record_head h = {.kind = kind, .seq = set->seq, .samples = (uint32_t)f->n, .lane = set->lane};

    if (set->state == ACTIVE_IS_UNSTORED)
        return;
    put_record(&set->changes, &h, (struct str){f->block, f->block_n});
    if (buf_failed(&set->changes) < 0 || set->changes.n > set->stored / CHANGED_PART)
        active_set_enter(set, ACTIVE_IS_UNSTORED);
    else
        active_set_enter(set, ACTIVE_HAS_CHANGED);
}

void active_set_add(struct active_set *set, const struct frame *came)
{
    active_set_note(set, RECORD_SAMPLES, came);
}

void active_set_remove(struct active_set *set, const struct frame *went)
{
    active_set_note(set, RECORD_MARKERS, went);
}

/* ---- Writing ---- */

/* Writes a frame of a set to the end of a file of *at bytes. */
static int active_put(struct active *a, const char *file, size_t *at, const struct record_head *h,
                      struct str block)
{
    BUF_AUTO(bytes, ACTIVE_MAX);
    int r;

    put_record(&bytes, h, block);
    r = buf_failed(&bytes) ?: folder_append(a->folder, file, *at, buf_str(&bytes));
    *at += bytes.n;
    return r;
}

/* Writes the set, or that it is empty, to the end of a file of *at bytes. */
static int active_put_set(struct active *a, struct active_set *set, const char *file, size_t *at)
{
    const struct frames *frames = set->frames;
    struct record_head h = {.kind = frames->n ? RECORD_SAMPLES : RECORD_MARKERS,
                            .seq = a->next_seq++,
                            .last_ms = (int64_t)frames->n,
                            .lane = set->lane};
    size_t before = *at;
    int r = 0;

    if (frames->n == 0)
        r = active_put(a, file, at, &h, STR(""));
    for (size_t i = 0; i < frames->n && r == 0; i++) {
        const struct frame *f = frames->list[i];

        h.samples = (uint32_t)f->n;
        h.first_ms = (int64_t)i;
        r = active_put(a, file, at, &h, (struct str){f->block, f->block_n});
    }
    set->seq = h.seq;
    set->stored = *at - before;
    return r;
}

/* Writes all sets that have series to a new file, which then takes the name. If that fails, the old files
 * stay, and what the sets say of their places in them is wrong. */
static int active_rewrite(struct active *a, struct active_set *const *sets, size_t n)
{
    size_t at = SEGMENT_HEAD;
    int r;

    folder_remove(a->folder, active_new);
    r = folder_append(a->folder, active_new, 0, (struct str){segment_magic, SEGMENT_HEAD});
    for (size_t i = 0; i < n && r == 0; i++) {
        sets[i]->stored = 0;
        if (sets[i]->frames->n)
            r = active_put_set(a, sets[i], active_new, &at);
    }
    r = r ?: folder_commit(a->folder, active_new, active_name);
    for (size_t i = 0; i < n; i++)
        active_set_enter(sets[i], r == 0 ? ACTIVE_IS_STORED : ACTIVE_IS_UNSTORED);
    if (r < 0) {
        folder_remove(a->folder, active_new);
        return r;
    }
    folder_remove(a->folder, changes_name); /* if it stays, its changes are of other sets */
    a->stored = at;
    a->changes = 0;
    return 0;
}

/* Appends the sets that are to be stored whole. */
static int active_append_sets(struct active *a, struct active_set *const *sets, size_t n)
{
    size_t at = a->stored;
    int r = 0;

    for (size_t i = 0; i < n && r == 0; i++)
        if (sets[i]->state == ACTIVE_IS_UNSTORED)
            r = active_put_set(a, sets[i], active_name, &at);
    if (r == 0 && at > a->stored)
        r = folder_commit(a->folder, active_name, active_name);
    if (r < 0)
        return r;
    a->stored = at;
    for (size_t i = 0; i < n; i++)
        if (sets[i]->state == ACTIVE_IS_UNSTORED)
            active_set_enter(sets[i], ACTIVE_IS_STORED);
    return 0;
}

/* Writes records to the file of changes, and syncs it. */
static int active_put_changes(struct active *a, struct str records)
{
    int r;

    if (a->changes > 0) {
        r = folder_append(a->folder, changes_name, a->changes, records);
        r = r ?: folder_commit(a->folder, changes_name, changes_name);
        a->changes += r == 0 ? records.n : 0;
        return r;
    }
    folder_remove(a->folder, changes_new);
    r = folder_append(a->folder, changes_new, 0, (struct str){segment_magic, SEGMENT_HEAD});
    r = r ?: folder_append(a->folder, changes_new, SEGMENT_HEAD, records);
    r = r ?: folder_commit(a->folder, changes_new, changes_name);
    if (r < 0)
        folder_remove(a->folder, changes_new);
    else
        a->changes = SEGMENT_HEAD + records.n;
    return r;
}

static int active_append_changes(struct active *a, struct active_set *const *sets, size_t n)
{
    BUF_AUTO(records, ACTIVE_MAX);
    int r;

    for (size_t i = 0; i < n; i++)
        buf_put_str(&records, buf_str(&sets[i]->changes));
    r = buf_failed(&records);
    if (r == 0 && records.n > 0)
        r = active_put_changes(a, buf_str(&records));
    for (size_t i = 0; i < n && r == 0; i++)
        active_set_enter(sets[i], ACTIVE_IS_STORED);
    return r;
}

static int active_store(struct active *a, struct active_set *const *sets, size_t n)
{
    size_t used = 0;
    int r;

    for (size_t i = 0; i < n; i++)
        used += sets[i]->stored;
    if (a->stored == 0 || a->stored + a->changes > 2 * used + ACTIVE_SLACK)
        r = active_rewrite(a, sets, n);
    else
        r = active_append_sets(a, sets, n) ?: active_append_changes(a, sets, n);
    if (r == -ESTALE) /* someone has changed a file */
        a->stored = 0;
    return r;
}

int active_save(struct active *a, struct active_set *const *sets, size_t n)
{
    int r;

    invariant(a->folder);
    r = active_store(a, sets, n);
    if (r == -ESTALE)
        r = active_store(a, sets, n);
    for (size_t i = 0; i < n; i++)
        invariant(r < 0 || sets[i]->state == ACTIVE_IS_STORED);
    return r;
}

/* ---- Reading ---- */

/* A scorer as the files have it: the frames of its set, then the blocks of its changes. */
struct active_lane {
    struct active_lane *next; /* in the order of the file */
    uint64_t seq;
    struct frames frames;
    size_t n_set;  /* the frames that are its set */
    bool *went;    /* by frame after these: its series ended */
    bool has_went; /* some did */
    struct str name;
    char text[];
};

struct active_reader {
    struct map by_name;
    struct active_lane *first, **last;
    uint64_t next_seq;
};

static struct active_lane *reader_lane(struct active_reader *r, struct str name)
{
    struct active_lane *l = map_get_str(&r->by_name, name);

    if (l)
        return l;
    l = xcalloc(1, sizeof(*l) + name.n + 1);
    l->name = (struct str){memcpy(l->text, name.p, name.n), name.n};
    map_set_str(&r->by_name, l->name, l);
    *r->last = l;
    r->last = &l->next;
    return l;
}

static void reader_done(struct active_reader *r)
{
    for (struct active_lane *l = r->first, *next; l; l = next) {
        next = l->next;
        frames_done(&l->frames);
        free(l->went);
        free(l);
    }
    map_done(&r->by_name);
}

static struct frame *frame_of_block(const struct segment_item *item)
{
    struct frame *f = xcalloc(1, sizeof(*f));

    f->block = str_dup(item->payload);
    f->block_n = item->payload.n;
    f->n = item->head.samples;
    return f;
}

/* The set is complete as far as it is intact. */
static void reader_take_set(struct active_reader *r, const struct record_head *h, struct frames *set)
{
    struct active_lane *l = reader_lane(r, h->lane);

    frames_done(&l->frames);
    l->frames = *set;
    *set = (struct frames){0};
    l->n_set = l->frames.n;
    l->seq = h->seq;
}

static void reader_note_seq(struct active_reader *r, uint64_t seq)
{
    if (seq >= r->next_seq && seq < UINT64_MAX)
        r->next_seq = seq + 1;
}

static void reader_read_sets(struct active_reader *r, struct str bytes)
{
    CLEANUP(frames_done) struct frames set = {0};
    struct segment_reader from = {.bytes = bytes};
    struct segment_item item, last = {0};
    enum segment_found found;

    while ((found = segment_next(&from, &item)) != SEGMENT_END) {
        const struct record_head *h = &item.head;

        if (found != SEGMENT_RECORD)
            continue;
        reader_note_seq(r, h->seq);
        if (set.n && h->seq != last.head.seq)
            reader_take_set(r, &last.head, &set);
        last = item;
        if (h->kind == RECORD_SAMPLES)
            frames_add(&set, frame_of_block(&item));
        if (h->kind == RECORD_MARKERS || h->first_ms + 1 == h->last_ms)
            reader_take_set(r, h, &set);
    }
}

static void reader_take_change(struct active_reader *r, const struct segment_item *item)
{
    struct active_lane *l = map_get_str(&r->by_name, item->head.lane);

    if (!l || l->seq != item->head.seq || l->n_set == 0)
        return;
    frames_add(&l->frames, frame_of_block(item));
    l->went = xreallocarray(l->went, l->frames.n - l->n_set, sizeof(l->went[0]));
    l->went[l->frames.n - l->n_set - 1] = item->head.kind == RECORD_MARKERS;
    l->has_went = l->has_went || item->head.kind == RECORD_MARKERS;
}

static void reader_read_changes(struct active_reader *r, struct str bytes)
{
    struct segment_reader from = {.bytes = bytes};
    struct segment_item item;
    enum segment_found found;

    while ((found = segment_next(&from, &item)) != SEGMENT_END) {
        if (found != SEGMENT_RECORD)
            continue;
        reader_note_seq(r, item.head.seq);
        reader_take_change(r, &item);
    }
}

/* The labels of all blocks, one after the other; ret_end[i] is the number of series up to block i. */
static struct label_bytes *active_lane_labels(const struct active_lane *l, size_t *ret_end)
{
    struct label_bytes *all = xcalloc(1, sizeof(*all));

    buf_init(&all->bytes, LABEL_BYTES_MAX);
    for (size_t i = 0; i < l->frames.n; i++) {
        const struct frame *f = l->frames.list[i];
        struct buf_mark mark = buf_mark(&all->bytes);
        size_t n = all->n;

        /* What cannot be read is ignored. */
        if (body_labels((struct str){f->block, f->block_n}, all) < 0) {
            buf_rollback(&all->bytes, mark);
            all->n = n;
        }
        ret_end[i] = all->n;
    }
    return all;
}

/* Which of the series in the order of `seen` are there after all changes. */
static bool *active_lane_replay(const struct active_lane *l, const struct label_bytes *all, const size_t *end,
                                struct strset *seen)
{
    bool *there = xcalloc(size_max(all->n, 1), sizeof(*there));

    for (size_t i = 0, k = 0; i < l->frames.n; i++)
        for (; k < end[i]; k++)
            there[strset_add(seen, label_bytes_at(all, k))] = i < l->n_set || !l->went[i - l->n_set];
    return there;
}

/* Frames of these series, which are only blocks, as if they had been read. */
static void frames_of_labels(const struct label_bytes *labels, struct frames *into)
{
    for (size_t i = 0; i < labels->n; i += into->list[into->n - 1]->n) {
        struct frame *f = frame_new(labels, i, size_min(LOADED_SERIES, labels->n - i), 0);

        free(TAKE_PTR(f->value_at));
        free(TAKE_PTR(f->series));
        frames_add(into, f);
    }
}

/* Replaces the blocks by frames of the series that are there after all changes. */
static void active_lane_apply(struct active_lane *l)
{
    CLEANUP(cleanup_free) size_t *end = xmalloc(l->frames.n * sizeof(*end));
    CLEANUP(cleanup_label_bytes_free) struct label_bytes *all = active_lane_labels(l, end);
    CLEANUP(cleanup_label_bytes_free) struct label_bytes *left = xcalloc(1, sizeof(*left));
    CLEANUP(strset_done) struct strset seen = {0};
    CLEANUP(cleanup_free) bool *there = active_lane_replay(l, all, end, &seen);

    buf_init(&left->bytes, LABEL_BYTES_MAX);
    left->at = xcalloc(seen.n + 1, sizeof(left->at[0]));
    for (size_t i = 0; i < seen.n; i++) {
        if (!there[i])
            continue;
        buf_put_str(&left->bytes, seen.list[i]);
        left->at[++left->n] = left->bytes.n;
    }
    invariant(buf_failed(&left->bytes) == 0); /* they are a part of `all`, which has the same limit */
    frames_done(&l->frames);
    frames_of_labels(left, &l->frames);
}

uint64_t active_read(struct str sets, struct str changes, active_load_fn fn, void *arg)
{
    CLEANUP(reader_done) struct active_reader r = {.next_seq = ACTIVE_FIRST_SEQ};

    r.last = &r.first;
    reader_read_sets(&r, sets);
    reader_read_changes(&r, changes);
    for (struct active_lane *l = r.first; l; l = l->next) {
        if (l->has_went)
            active_lane_apply(l);
        if (l->frames.n > 0)
            fn(arg, l->name, &l->frames);
    }
    return r.next_seq;
}

void active_open(struct active *a, struct folder *folder, active_load_fn fn, void *arg)
{
    BUF_AUTO(sets, ACTIVE_MAX);
    BUF_AUTO(changes, ACTIVE_MAX);

    a->folder = folder;
    a->stored = a->changes = 0;
    if (folder_read(folder, active_name, &sets) < 0)
        buf_clear(&sets);
    if (folder_read(folder, changes_name, &changes) < 0)
        buf_clear(&changes);
    a->next_seq = active_read(buf_str(&sets), buf_str(&changes), fn, arg);
}

void active_close(struct active *a)
{
    a->folder = NULL;
}

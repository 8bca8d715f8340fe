/* Owns the series of a frame while they change. It walks over the series of the old block, keeps count of
 * where in the message something was cut out or put in, and so knows for each copy how far away its source is
 * now. Positions are those of the old message, from the first change on: what lies before it does not
 * matter. */
#include "remotewrite/revision.h"

#include "exporter/base/alloc.h"
#include "exporter/base/invariant.h"
#include "exporter/metric/series.h"
#include "exporter/num/num.h"
#include "remotewrite/format.h"
#include "remotewrite/packer.h"

/* At this position of the old message, so many bytes gave way to others. */
struct raw_change {
    int64_t at;
    size_t was, now;
};

struct reviser {
    const struct frame *f;
    const struct revision *v;
    struct revision_room *room; /* the new block */
    size_t block_n;
    uint32_t *value_at; /* of the new frame, as the next three */
    uint32_t *series;
    size_t n, raw_n;
    size_t next;                /* index in the new set of the series to come */
    size_t packed;              /* index of the series after the one that was packed last */
    struct raw_change *changes; /* those that a copy may reach over */
    size_t n_changes, changes_cap;
    int64_t raw; /* where the walk is in the old message */
};

/* ---- Elements of the old block ---- */

struct snappy_element {
    size_t n;    /* bytes of the message */
    size_t back; /* a copy: from so far back; 0: a literal */
    const char *begin, *end;
};

/* Reads the element at p. The block is our own. */
static inline struct snappy_element element_at(const char *p)
{
    size_t tag = (unsigned char)*p, n = tag >> 2;

    switch (tag & 3) {
    case 1:
        return (struct snappy_element){(n & 7) + 4, (n >> 3) << 8 | (unsigned char)p[1], p, p + 2};
    case 2:
        return (struct snappy_element){n + 1, get_le(p + 1, 2), p, p + 3};
    default:
        break;
    }
    invariant((tag & 3) == 0);
    if (n < 60)
        return (struct snappy_element){n + 1, 0, p, p + 1 + n + 1};
    n = get_le(p + 1, n - 59);
    return (struct snappy_element){n + 1, 0, p, p + 1 + ((tag >> 2) - 59) + n + 1};
}

/* Where series i of a frame begins in its block; the end of the block for i = n. */
static const char *frame_series(const struct frame *f, size_t i)
{
    if (i == 0)
        return f->block + varint_size(f->raw_n);
    return f->block + f->value_at[i - 1] + VALUE_TO_TIME + f->time_n;
}

/* The bytes of a series in the message. Sets *ret_reaches if it copies from further back than `reach` bytes
 * before its beginning. */
static size_t series_raw_size(const struct frame *f, size_t i, int64_t reach, bool *ret_reaches)
{
    const char *p = frame_series(f, i), *end = frame_series(f, i + 1);
    bool reaches = false;
    size_t n = 0;

    while (p < end) {
        struct snappy_element e = element_at(p);

        reaches |= (int64_t)e.back - (int64_t)n > reach;
        n += e.n;
        p = e.end;
    }
    *ret_reaches = reaches;
    return n;
}

/* ---- Changes of the message ---- */

static void reviser_note_change(struct reviser *r, size_t was, size_t now)
{
    if (r->n_changes == r->changes_cap) {
        r->changes_cap = size_max(16, r->changes_cap * 2);
        r->changes = xreallocarray(r->changes, r->changes_cap, sizeof(*r->changes));
    }
    r->changes[r->n_changes++] = (struct raw_change){r->raw, was, now};
    r->raw += (int64_t)was;
    r->raw_n += now;
    r->raw_n -= was;
}

/* The end of the last change. */
static int64_t reviser_changed_until(const struct reviser *r)
{
    const struct raw_change *last = &r->changes[r->n_changes - 1];

    return last->at + (int64_t)last->was;
}

/* Forgets the changes if no copy from here on can reach over one. */
static void reviser_forget_changes(struct reviser *r)
{
    if (reviser_changed_until(r) + PACKER_WINDOW > r->raw)
        return;
    r->n_changes = 0;
    r->raw = 0;
}

/* How far back the bytes are now that were `back` bytes before the position `at`; 0 if they are gone. */
static size_t reviser_distance(const struct reviser *r, int64_t at, size_t back)
{
    int64_t source = at - (int64_t)back, now = (int64_t)back;

    for (size_t i = r->n_changes; i-- > 0;) {
        const struct raw_change *c = &r->changes[i];

        if (c->at + (int64_t)c->was <= source)
            break;
        if (c->at <= source)
            return 0;
        now += (int64_t)c->now - (int64_t)c->was;
    }
    return (size_t)now;
}

/* ---- The new block ---- */

/* Room for n more bytes; their address. */
static inline char *reviser_room(struct reviser *r, size_t n)
{
    struct revision_room *room = r->room;

    if (UNLIKELY(room->cap - r->block_n < n)) {
        room->cap = room->cap + room->cap / 4 + n;
        room->p = xrealloc(room->p, room->cap);
    }
    return room->p + r->block_n;
}

/* The series that comes next ends at `end`, and its literal with it. */
static inline void reviser_end_series(struct reviser *r, const char *end)
{
    r->block_n = (size_t)(end - r->room->p);
    r->value_at[r->n] = (uint32_t)(r->block_n - VALUE_TO_TIME - r->f->time_n);
    r->series[r->n++] = (uint32_t)r->next++;
}

/* The packer is to know the series before the one that comes next, which it does if it has packed that. */
static void reviser_learn(struct reviser *r)
{
    struct packer *k = &r->room->packer;
    struct str labels = STR("");

    if (!k->raw)
        packer_init(k);
    if (r->packed == r->next)
        return;
    if (r->n > 0)
        labels = label_source_at(r->v->labels, r->next - 1);
    packer_learn(k, labels, r->f->time_n, r->v->at);
}

/* Packs the series that comes next, behind the one before it. Returns its bytes in the message; 0 if it has
 * no labels, or if the message would be too long. */
static size_t reviser_pack(struct reviser *r)
{
    struct packer *k = &r->room->packer;
    struct str labels;
    size_t size;

    reviser_learn(r);
    labels = label_source_at(r->v->labels, r->next);
    if (labels.n == 0)
        return 0;
    size = packer_series_size(labels.n, r->f->time_n);
    if (r->raw_n + size > FRAME_RAW_MAX)
        return 0;
    k->out = reviser_room(r, packer_series_room(size));
    (void)packer_put(k, labels, r->f->time_n, r->v->at);
    reviser_end_series(r, k->out);
    r->packed = r->next;
    return size;
}

static bool reviser_insert(struct reviser *r)
{
    size_t size = reviser_pack(r);

    reviser_note_change(r, 0, size);
    return size > 0;
}

/* Writes an element of a series that stays, at this position, with the present distance. The end of what was
 * written; NULL if there is none. */
static char *reviser_put_element(const struct reviser *r, const struct snappy_element *e, int64_t at,
                                 char *out)
{
    size_t back = e->back ? reviser_distance(r, at, e->back) : 0;

    if (back == e->back)
        return mempcpy(out, e->begin, (size_t)(e->end - e->begin));
    if (back == 0 || back > PACKER_WINDOW)
        return NULL;
    return packer_put_copy(out, back, e->n);
}

/* Copies series i of the old frame with the present distances. False if it is too far from what it copies, or
 * that has gone. */
static bool reviser_adapt(struct reviser *r, size_t i)
{
    const char *p = frame_series(r->f, i), *end = frame_series(r->f, i + 1);
    size_t n = (size_t)(end - p);
    char *out = reviser_room(r, n + n / 2 + 1); /* a copy of two bytes may become one of three */
    int64_t at = r->raw;

    while (p < end) {
        struct snappy_element e = element_at(p);

        out = reviser_put_element(r, &e, at, out);
        if (!out)
            return false;
        at += (int64_t)e.n;
        p = e.end;
    }
    reviser_end_series(r, out);
    return true;
}

static void reviser_copy(struct reviser *r, size_t i)
{
    const char *p = frame_series(r->f, i);
    size_t n = (size_t)(frame_series(r->f, i + 1) - p);

    reviser_end_series(r, mempcpy(reviser_room(r, n), p, n));
}

/* Series i of the old frame stays. */
static bool reviser_keep(struct reviser *r, size_t i)
{
    bool reaches;
    size_t size;

    if (r->n_changes == 0) {
        reviser_copy(r, i);
        return true;
    }
    size = series_raw_size(r->f, i, r->raw - reviser_changed_until(r), &reaches);
    if (!reaches) {
        reviser_copy(r, i);
    } else if (!reviser_adapt(r, i)) {
        size_t packed = reviser_pack(r);

        if (packed == 0)
            return false;
        invariant(packed == size);
    }
    r->raw += (int64_t)size;
    reviser_forget_changes(r);
    return true;
}

static bool reviser_walk(struct reviser *r)
{
    for (size_t i = 0; i < r->f->n; i++) {
        uint32_t to = r->v->moved[r->f->series[i]];
        bool reaches;

        if (to == SERIES_GONE) {
            reviser_note_change(r, series_raw_size(r->f, i, 0, &reaches), 0);
            continue;
        }
        while (r->next < to)
            if (!reviser_insert(r))
                return false;
        if (!reviser_keep(r, i))
            return false;
    }
    while (r->next < r->v->end)
        if (!reviser_insert(r))
            return false;
    return true;
}

/* ---- A frame ---- */

/* The length of the message stands at the head of the block, for which room of `head` bytes was left. */
static void reviser_put_head(struct reviser *r, size_t head)
{
    size_t need = varint_size(r->raw_n);
    char *block;

    if (need != head) {
        (void)reviser_room(r, need);
        block = r->room->p;
        memmove(block + need, block + head, r->block_n - head);
        for (size_t i = 0; i < r->n; i++)
            r->value_at[i] += (uint32_t)(need - head);
        r->block_n = r->block_n + need - head;
    }
    (void)put_varint(r->room->p, r->raw_n);
}

void revision_room_done(struct revision_room *room)
{
    free(room->p);
    packer_done(&room->packer);
    *room = (struct revision_room){0};
}

static void reviser_done(struct reviser *r)
{
    free(r->changes);
    free(r->value_at);
    free(r->series);
}

bool frame_revise(struct frame *f, const struct revision *v, struct revision_room *room)
{
    size_t head = varint_size(f->raw_n), n = v->end - v->begin;
    CLEANUP(reviser_done)
    struct reviser r = {
        .f = f, .v = v, .room = room, .next = v->begin, .raw_n = f->raw_n, .packed = SIZE_MAX};

    invariant(n > 0 && f->time_n == varint_size((uint64_t)v->at));
    r.value_at = xmalloc(n * sizeof(r.value_at[0]));
    r.series = xmalloc(n * sizeof(r.series[0]));
    (void)reviser_room(&r, head);
    r.block_n = head;
    if (!reviser_walk(&r))
        return false;
    invariant(r.n == n);
    reviser_put_head(&r, head);
    free(f->value_at);
    free(f->series);
    f->value_at = TAKE_PTR(r.value_at);
    f->series = TAKE_PTR(r.series);
    f->n = n;
    f->raw_n = r.raw_n;
    f->block_n = r.block_n;
    f->block = xrealloc(f->block, f->block_n);
    memcpy(f->block, room->p, f->block_n);
    return true;
}

void frame_renumber(struct frame *f, const uint32_t *moved)
{
    for (size_t i = 0; i < f->n; i++)
        f->series[i] = moved[f->series[i]];
}

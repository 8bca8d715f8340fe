/* Copies of series. Each is a piece of an arena: labels, their texts, then the chunks, each with its head. */
#include "exporter/tsdb/view.h"

#include "exporter/base/arena.h"
#include "exporter/tsdb/chunk.h"
#include "exporter/tsdb/slab.h"
#include "exporter/tsdb/symbols.h"
#include "exporter/tsdb/tsdb.h"

#include <string.h>

/* PIECE_BLOCKS: what is copied while the lock is held. */
enum { ARENA_BYTES = 256 << 10, PIECE_BLOCKS = 500 };

struct view_series {
    const struct tsdb_label *labels;
    const struct view_chunk *chunks;
    uint32_t n_labels, n_chunks;
};

/* The next chunk follows after the bytes of the stream and CHUNK_PAD, at a multiple of 8. */
struct view_chunk {
    struct chunk_head head;
    unsigned char data[];
};

struct tsdb_view {
    struct arena arena;
    struct view_series *list;
    size_t n, cap;
    int64_t from, to;
    uint64_t bytes, max;
};

int view_new(struct tsdb_view **ret, int64_t from_ms, int64_t to_ms, uint64_t max_bytes)
{
    struct tsdb_view *v = calloc(1, sizeof(*v));

    if (!v)
        return -ENOMEM;
    *v = (struct tsdb_view){
        .arena = {.chunk_bytes = ARENA_BYTES}, .from = from_ms, .to = to_ms, .max = max_bytes};
    *ret = v;
    return 0;
}

struct tsdb_view *tsdb_view_free(struct tsdb_view *v)
{
    if (!v)
        return NULL;
    arena_done(&v->arena);
    free(v->list);
    free(v);
    return NULL;
}

size_t view_stream_bytes(const struct chunk_head *head)
{
    return (((size_t)head->bits + 7) / 8 + CHUNK_PAD + 7) / 8 * 8;
}

static size_t view_chunk_bytes(const struct chunk_head *head)
{
    return sizeof(struct view_chunk) + view_stream_bytes(head);
}

/* What is to be copied of a series. */
struct extent {
    uint32_t first, n; /* chunks */
    size_t bytes;
};

static struct extent view_extent(const struct tsdb_view *v, const struct tsdb *t, const struct series *s,
                                 uint32_t *blocks)
{
    struct extent e = {0};

    for (uint32_t id = s->first_chunk, next; id; id = next) {
        const struct block *b = block_at(t, id);
        int64_t end; /* no sample of the chunk is later */

        next = b->first.next_chunk;
        end = next ? block_at(t, next)->first.head.t - 1 : s->codec.t;
        *blocks += 1 + b->first.head.bits / 8 / BLOCK_DATA;
        if (end < v->from)
            continue;
        if (b->first.head.t > v->to)
            break;
        e.first = e.first ? e.first : id;
        e.n++;
        e.bytes += view_chunk_bytes(&b->first.head);
    }
    return e;
}

static int view_room(struct tsdb_view *v)
{
    size_t cap = v->cap ? v->cap * 2 : 64;
    struct view_series *list;

    if (v->n < v->cap)
        return 0;
    if (v->max - v->bytes < (cap - v->cap) * sizeof(*list))
        return -EFBIG;
    list = realloc(v->list, cap * sizeof(*list));
    if (!list)
        return -ENOMEM;
    v->bytes += (cap - v->cap) * sizeof(*list);
    v->list = list;
    v->cap = cap;
    return 0;
}

static struct str view_text(char **room, struct str text)
{
    struct str copy = {*room, text.n};

    memcpy(*room, text.p, text.n);
    *room += text.n;
    return copy;
}

int view_add(struct tsdb_view *v, const struct tsdb *t, const struct series *s, uint32_t *blocks)
{
    struct extent e = view_extent(v, t, s, blocks);
    size_t bytes = e.bytes + s->n_pairs * sizeof(struct tsdb_label);
    struct tsdb_label *labels;
    unsigned char *chunk;
    char *text;
    int r;

    if (e.n == 0)
        return 0;
    for (uint32_t i = 0; i < 2u * s->n_pairs; i++)
        bytes += symbols_text(&t->symbols, s->pairs[i]).n;
    if (v->max - v->bytes < bytes)
        return -EFBIG;
    r = view_room(v);
    if (r < 0)
        return r;
    chunk = arena_alloc(&v->arena, bytes);
    if (!chunk)
        return -ENOMEM;
    v->bytes += bytes;
    labels = (struct tsdb_label *)(void *)(chunk + e.bytes);
    text = (char *)(labels + s->n_pairs);
    v->list[v->n++] = (struct view_series){
        .labels = labels, .chunks = (const void *)chunk, .n_labels = s->n_pairs, .n_chunks = e.n};
    for (uint32_t i = 0; i < s->n_pairs; i++) {
        labels[i].name = view_text(&text, symbols_text(&t->symbols, s->pairs[2 * i]));
        labels[i].value = view_text(&text, symbols_text(&t->symbols, s->pairs[2 * i + 1]));
    }
    for (uint32_t id = e.first, i = 0; i < e.n; i++) {
        const struct block *b = block_at(t, id);

        /* Zeros after the stream, since it may be stored. */
        memset(chunk + view_chunk_bytes(&b->first.head) - 2 * CHUNK_PAD, 0, 2 * CHUNK_PAD);
        memcpy(chunk, &b->first.head, sizeof(b->first.head));
        chunk_copy(t, id, chunk + sizeof(b->first.head));
        chunk += view_chunk_bytes(&b->first.head);
        id = b->first.next_chunk;
    }
    return 0;
}

int view_add_some(struct tsdb_view *v, struct tsdb *t, uint32_t *at)
{
    uint32_t blocks = 0;
    int r = 0;

    tsdb_lock(t);
    for (uint32_t last = slab_last(&t->series); *at < last && blocks < PIECE_BLOCKS && r == 0; blocks++) {
        const struct series *s = series_find(t, ++*at);

        r = s ? view_add(v, t, s, &blocks) : 0;
    }
    tsdb_unlock(t);
    return r;
}

struct str view_chunks(const struct tsdb_view *v, size_t i, uint32_t *ret_n)
{
    const char *begin = (const char *)v->list[i].chunks;

    *ret_n = v->list[i].n_chunks;
    return (struct str){begin, (size_t)((const char *)v->list[i].labels - begin)};
}

size_t tsdb_view_count(const struct tsdb_view *v)
{
    return v->n;
}

uint64_t tsdb_view_bytes(const struct tsdb_view *v)
{
    return v->bytes;
}

const struct tsdb_label *tsdb_view_labels(const struct tsdb_view *v, size_t i, size_t *ret_n)
{
    *ret_n = v->list[i].n_labels;
    return v->list[i].labels;
}

static void iter_open(struct tsdb_iter *it)
{
    const struct view_chunk *chunk = it->next;

    chunk_reader_init(&it->in, &chunk->head, chunk->data);
    it->next =
        (const struct view_chunk *)(const void *)((const char *)chunk + view_chunk_bytes(&chunk->head));
    it->chunks--;
}

void tsdb_iter_init(struct tsdb_iter *it, const struct tsdb_view *v, size_t i)
{
    *it = (struct tsdb_iter){
        .from = v->from, .to = v->to, .next = v->list[i].chunks, .chunks = v->list[i].n_chunks};
    iter_open(it);
}

bool tsdb_iter_next(struct tsdb_iter *it, int64_t *ret_t, double *ret_v)
{
    uint64_t v;

    for (;;) {
        int r = chunk_next(&it->in, ret_t, &v);

        if (r == 0 && it->chunks > 0) {
            iter_open(it);
            continue;
        }
        if (r <= 0 || *ret_t > it->to)
            return false;
        if (*ret_t < it->from)
            continue;
        memcpy(ret_v, &v, sizeof(v));
        return true;
    }
}

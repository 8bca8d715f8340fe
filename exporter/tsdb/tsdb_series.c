/* The chunks of a series: lists of blocks. */
#include "exporter/tsdb/tsdb_internal.h"

#include "exporter/tsdb/index.h"

#include <string.h>

/* A chunk is sealed when it is full, or covers a quarter of the age if that is not too few samples. */
enum { SEAL_MIN_SAMPLES = 32, SEAL_PART = 4 };

static void chunk_free(struct tsdb *t, uint32_t chunk)
{
    for (uint32_t next; chunk; chunk = next) {
        next = block_at(t, chunk)->next;
        slab_free(&t->blocks, chunk);
    }
}

static bool is_sealed(const struct tsdb *t, const struct chunk_head *open, int64_t t_ms)
{
    return open->count == CHUNK_MAX_SAMPLES ||
           (open->count >= SEAL_MIN_SAMPLES && t_ms - open->t >= t->age_ms / SEAL_PART);
}

static int series_start_chunk(struct tsdb *t, struct series *s, int64_t t_ms, uint64_t v)
{
    struct block *b;
    uint32_t id;
    int r = slab_alloc(&t->blocks, &id);

    if (r < 0)
        return r;
    b = block_at(t, id);
    chunk_start(&b->first.head, &s->codec, t_ms, v);
    if (s->last_chunk)
        block_at(t, s->last_chunk)->first.next_chunk = id;
    else
        s->first_chunk = id;
    s->last_chunk = s->last_block = id;
    return 0;
}

/* The room that follows a byte of the stream in its block. */
static unsigned char *block_room(struct block *b, uint32_t byte, uint32_t *ret_n)
{
    uint32_t at = byte < FIRST_DATA ? byte : (byte - FIRST_DATA) % BLOCK_DATA;

    *ret_n = (byte < FIRST_DATA ? FIRST_DATA : BLOCK_DATA) - at;
    return (byte < FIRST_DATA ? b->first.data : b->data) + at;
}

/* Writes the bits, which begin at the last byte of the stream if that is not full. */
static int series_write(struct tsdb *t, struct series *s, const struct chunk_bits *bits)
{
    struct chunk_head *head = &block_at(t, s->last_chunk)->first.head;
    uint32_t byte = head->bits / 8, n = (bits->n + 7) / 8, room, next;
    /* Whether the last block is full: the byte at which the stream goes on belongs to the next one. */
    bool full = head->bits % 8 == 0 && byte >= FIRST_DATA && (byte - FIRST_DATA) % BLOCK_DATA == 0;
    unsigned char *to = block_room(block_at(t, s->last_block), byte, &room);
    int r;

    if (full)
        room = 0;
    if (n > room) {
        r = slab_alloc(&t->blocks, &next);
        if (r < 0)
            return r;
        block_at(t, s->last_block)->next = next;
        s->last_block = next;
        memcpy(block_at(t, next)->data, bits->bytes + room, n - room);
        n = room;
    }
    memcpy(to, bits->bytes, n);
    head->bits = (uint16_t)(head->bits / 8 * 8 + bits->n);
    return 0;
}

static int series_encode(struct tsdb *t, struct series *s, int64_t t_ms, uint64_t v)
{
    struct chunk_head *head = &block_at(t, s->last_chunk)->first.head;
    struct chunk_codec codec = s->codec;
    struct chunk_bits bits = {.n = head->bits % 8};
    uint32_t room;
    int r;

    if (bits.n)
        bits.bytes[0] = *block_room(block_at(t, s->last_block), head->bits / 8, &room);
    chunk_encode(&codec, &bits, t_ms, v);
    r = series_write(t, s, &bits);
    if (r < 0)
        return r;
    head->count++;
    s->codec = codec;
    return 0;
}

int series_append(struct tsdb *t, struct series *s, int64_t t_ms, uint64_t v)
{
    int r;

    if (s->last_chunk && !is_sealed(t, &block_at(t, s->last_chunk)->first.head, t_ms)) {
        r = series_encode(t, s, t_ms, v);
    } else {
        t->stats.samples_expired += series_drop_before(t, s, t_ms - t->age_ms);
        r = series_start_chunk(t, s, t_ms, v);
    }
    t->samples += r == 0;
    return r;
}

unsigned series_drop_chunk(struct tsdb *t, struct series *s)
{
    const struct block *b = block_at(t, s->first_chunk);
    uint32_t chunk = s->first_chunk;
    unsigned count = b->first.head.count;

    s->first_chunk = b->first.next_chunk;
    if (chunk == s->last_chunk)
        s->last_chunk = s->last_block = 0;
    chunk_free(t, chunk);
    t->samples -= count;
    return count;
}

uint64_t series_drop_before(struct tsdb *t, struct series *s, int64_t before)
{
    uint64_t dropped = 0;

    while (s->first_chunk != s->last_chunk) {
        uint32_t next = block_at(t, s->first_chunk)->first.next_chunk;

        if (block_at(t, next)->first.head.t > before)
            break;
        dropped += series_drop_chunk(t, s);
    }
    return dropped;
}

void chunk_copy(const struct tsdb *t, uint32_t chunk, unsigned char *to)
{
    const struct block *b = block_at(t, chunk);
    size_t left = ((size_t)b->first.head.bits + 7) / 8, n = size_min(left, FIRST_DATA);

    memcpy(to, b->first.data, n);
    while ((left -= n) > 0) {
        to += n;
        b = block_at(t, b->next);
        n = size_min(left, BLOCK_DATA);
        memcpy(to, b->data, n);
    }
}

void series_remove(struct tsdb *t, uint32_t id)
{
    struct series *s = series_at(t, id);

    while (s->first_chunk)
        (void)series_drop_chunk(t, s);
    index_remove(&t->index, s->hash, id);
    if (s->next)
        series_at(t, s->next)->previous = s->previous;
    if (s->previous)
        series_at(t, s->previous)->next = s->next;
    for (uint32_t i = 0; i < s->n_pairs; i++) {
        if (s->pairs[2 * i] == t->name_symbol && !s->previous)
            symbols_at(&t->symbols, s->pairs[2 * i + 1])->series = s->next;
        symbols_unref(&t->symbols, s->pairs[2 * i]);
        symbols_unref(&t->symbols, s->pairs[2 * i + 1]);
    }
    free(s->pairs);
    budget_give(&t->budget, budget_cost(2 * sizeof(*s->pairs) * s->n_pairs));
    slab_free(&t->series, id);
}

/* The chunks of a series: lists of blocks. */
#include "exporter/tsdb/tsdb_internal.h"

#include "exporter/tsdb/index.h"

#include <string.h>

/* A chunk is sealed once it would need another block, if it has this many samples, or fewer that cover a part
 * of the age: few chunks, whose blocks are full. */
enum { SEAL_SAMPLES = 120, SEAL_MIN_SAMPLES = 16, SEAL_PART = 4 };

static void chunk_free(struct tsdb *t, uint32_t chunk)
{
    for (uint32_t next; chunk; chunk = next) {
        next = block_at(t, chunk)->next;
        slab_free(&t->blocks, chunk);
    }
}

static bool is_sealed(const struct tsdb *t, const struct chunk_head *open, int64_t t_ms, bool needs_block)
{
    if (open->count == CHUNK_MAX_SAMPLES)
        return true;
    return needs_block && (open->count >= SEAL_SAMPLES ||
                           (open->count >= SEAL_MIN_SAMPLES && t_ms - open->t >= t->age_ms / SEAL_PART));
}

static int series_start_chunk(struct tsdb *t, struct series *s, int64_t t_ms, uint64_t v)
{
    struct block *b;
    uint32_t id;
    int r = slab_alloc(&t->blocks, &id);

    if (r < 0)
        return r;
    t->stats.samples_expired += series_drop_before(t, s, t_ms - t->age_ms);
    b = block_at(t, id);
    chunk_start(&b->first.head, &s->codec, t_ms, v);
    if (s->last_chunk)
        block_at(t, s->last_chunk)->first.next_chunk = id;
    else
        s->first_chunk = id;
    s->last_chunk = s->last_block = id;
    t->samples++;
    return 0;
}

/* Where the byte of the stream is in its block. */
static unsigned char *block_byte(struct block *b, uint32_t byte)
{
    return byte < FIRST_DATA ? b->first.data + byte : b->data + (byte - FIRST_DATA) % BLOCK_DATA;
}

/* Bytes from the end of the stream to the end of the last block, a last byte that is not full included. */
static uint32_t block_room(uint32_t bits)
{
    uint32_t used = (bits + 7) / 8, end = FIRST_DATA;

    if (used > FIRST_DATA)
        end += (used - FIRST_DATA + BLOCK_DATA - 1) / BLOCK_DATA * BLOCK_DATA;
    return end - bits / 8;
}

/* Writes the bits, which begin at the last byte of the stream if that is not full. */
static int series_write(struct tsdb *t, struct series *s, const struct chunk_bits *bits, uint32_t room)
{
    struct chunk_head *head = &block_at(t, s->last_chunk)->first.head;
    uint32_t n = (bits->n + 7) / 8, next;

    if (n > room) {
        int r = slab_alloc(&t->blocks, &next);

        if (r < 0)
            return r;
        memcpy(block_at(t, next)->data, bits->bytes + room, n - room);
        n = room;
    }
    if (n > 0)
        memcpy(block_byte(block_at(t, s->last_block), head->bits / 8), bits->bytes, n);
    if ((bits->n + 7) / 8 > room) {
        block_at(t, s->last_block)->next = next;
        s->last_block = next;
    }
    head->bits = (uint16_t)(head->bits / 8 * 8 + bits->n);
    head->count++;
    return 0;
}

int series_append(struct tsdb *t, struct series *s, int64_t t_ms, uint64_t v)
{
    struct chunk_codec codec = s->codec;
    struct chunk_bits bits = {0};
    const struct chunk_head *head;
    uint32_t room;
    int r;

    if (!s->last_chunk)
        return series_start_chunk(t, s, t_ms, v);
    head = &block_at(t, s->last_chunk)->first.head;
    room = block_room(head->bits);
    bits.n = head->bits % 8;
    if (bits.n)
        bits.bytes[0] = *block_byte(block_at(t, s->last_block), head->bits / 8);
    chunk_encode(&codec, &bits, t_ms, v);
    if (is_sealed(t, head, t_ms, (bits.n + 7) / 8 > room))
        return series_start_chunk(t, s, t_ms, v);
    r = series_write(t, s, &bits, room);
    if (r < 0)
        return r;
    s->codec = codec;
    t->samples++;
    return 0;
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

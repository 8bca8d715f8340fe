/* Makes frames and fills them in. Owns nothing but what it returns. Endpoint's thread, though nothing here
 * depends on that. */
#include "remotewrite/frame.h"

#include "exporter/base/alloc.h"
#include "exporter/num/num.h"
#include "remotewrite/format.h"
#include "remotewrite/labels.h"
#include "remotewrite/packer.h"

/* Sets the size of the message, and limits the series to what fits. */
static void frame_measure(struct frame *f, const struct label_bytes *l, size_t first)
{
    for (size_t i = 0; i < f->n; i++) {
        size_t n = packer_series_size(label_bytes_at(l, first + i).n, f->time_n);

        if (i && f->raw_n + n > FRAME_RAW_MAX)
            f->n = i;
        else
            f->raw_n += n;
    }
}

struct frame *frame_new(const struct label_bytes *l, size_t first, size_t n, int64_t at)
{
    CLEANUP(packer_done) struct packer k = {0};
    struct frame *f = xcalloc(1, sizeof(*f));

    f->n = n;
    f->time_n = varint_size((uint64_t)at);
    frame_measure(f, l, first);
    f->block = xmalloc(VARINT_MAX + packer_series_room(f->raw_n) + 8 * f->n);
    f->value_at = xmalloc(f->n * sizeof(f->value_at[0]));
    f->series = xmalloc(f->n * sizeof(f->series[0]));
    packer_init(&k);
    k.out = put_varint(f->block, f->raw_n);
    for (size_t i = 0; i < f->n; i++) {
        f->value_at[i] = (uint32_t)(packer_put(&k, label_bytes_at(l, first + i), f->time_n, at) - f->block);
        f->series[i] = l->series ? l->series[first + i] : (uint32_t)(first + i);
    }
    f->block_n = (size_t)(k.out - f->block);
    f->block = xrealloc(f->block, f->block_n);
    f->packed_n = f->block_n;
    f->packed = f->n;
    return f;
}

bool frame_is_loose(const struct frame *f)
{
    return (uint64_t)f->block_n * f->packed > (uint64_t)f->packed_n * f->n / 8 * 9;
}

struct frame *frame_free(struct frame *f)
{
    if (!f)
        return NULL;
    free(f->block);
    free(f->value_at);
    free(f->series);
    free(f);
    return NULL;
}

void frames_add(struct frames *f, struct frame *one)
{
    f->list = xreallocarray(f->list, f->n + 1, sizeof(f->list[0]));
    f->list[f->n++] = one;
}

void frames_done(struct frames *f)
{
    for (size_t i = 0; i < f->n; i++)
        (void)frame_free(f->list[i]);
    free(f->list);
    *f = (struct frames){0};
}

static inline uint64_t value_bits(double v)
{
    /* A NaN with the bits of the stale marker would end the series. */
    return LIKELY(v == v) ? double_bits(v) : RW_NAN_BITS;
}

/* Stale markers if values is NULL. That and a constant time_n make each store one or two instructions. */
static inline __attribute__((always_inline)) void fill(const struct frame *f, char *out, const double *values,
                                                       const char *time, size_t time_n)
{
    for (size_t i = 0; i < f->n; i++) {
        char *to = out + f->value_at[i];

        put_le(to, values ? value_bits(values[f->series[i]]) : RW_STALE_BITS, 8);
        memcpy(to + VALUE_TO_TIME, time, time_n);
    }
}

void frame_fill(const struct frame *f, char *out, const double *values, int64_t at)
{
    char time[VARINT_MAX];

    (void)put_varint(time, (uint64_t)at);
    memcpy(out, f->block, f->block_n);
    if (LIKELY(f->time_n == 6))
        fill(f, out, values, time, 6);
    else
        fill(f, out, values, time, f->time_n);
}

void frame_fill_markers(const struct frame *f, char *out, int64_t at)
{
    char time[VARINT_MAX];

    (void)put_varint(time, (uint64_t)at);
    memcpy(out, f->block, f->block_n);
    fill(f, out, NULL, time, f->time_n);
}

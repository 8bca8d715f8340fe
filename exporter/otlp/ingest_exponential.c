/* Exponential histograms become classic ones whose bounds are powers of two, which every scale above 0
 * refines and every one below 0 is a part of. A cumulative histogram's filled range only grows, so its
 * buckets stay. The range of deltas changes with each point; they have the bucket +Inf only. */
#include "exporter/otlp/ingest_internal.h"
#include "exporter/otlp/wire.h"

#include <math.h>

/* Buckets beyond 2^-80 and 2^80 are merged into the last ones. */
enum { EXPONENT_MAX = 80, EXPONENTS = 2 * EXPONENT_MAX + 2, SCALE_MIN = -20, SHIFT_MAX = 40 };

/* One sign's counts by the power of two that is their upper bound's magnitude: [0] is 2^-80, the last is
 * larger than 2^80. */
struct side {
    uint64_t counts[EXPONENTS];
    uint64_t total;
    int low, high; /* filled range; low > high: empty */
};

struct exponential {
    uint64_t count, zero;
    int32_t scale;
    struct str positive, negative; /* Buckets messages */
    bool has_sum;
    double sum;
};

/* The power of two of a bucket's upper bound. */
static int64_t exponent_of(int64_t index, int32_t scale)
{
    if (scale >= 0)
        return (index >> (scale < SHIFT_MAX ? scale : SHIFT_MAX)) + 1;
    return (index + 1) * ((int64_t)1 << -scale);
}

static bool side_add(struct side *s, int64_t index, int32_t scale, uint64_t count)
{
    int64_t e = exponent_of(index, scale);
    int at = (int)(e < -EXPONENT_MAX ? 0 : e > EXPONENT_MAX ? EXPONENTS - 1 : e + EXPONENT_MAX);

    if (count == 0)
        return true;
    s->low = at < s->low ? at : s->low;
    s->high = at > s->high ? at : s->high;
    s->counts[at] += count;
    return !__builtin_add_overflow(s->total, count, &s->total);
}

static bool side_read(struct side *s, struct str buckets, int32_t scale)
{
    struct wire w = wire_of(buckets), packed;
    struct wire_field f;
    int64_t index = 0;
    uint64_t count;
    bool ok = true;

    *s = (struct side){.low = EXPONENTS, .high = -1};
    while (wire_next(&w, &f))
        if (f.number == BUCKETS_OFFSET)
            index = wire_sint32(f.value);
    w = wire_of(buckets);
    while (ok && wire_next(&w, &f)) {
        if (f.number != BUCKETS_COUNTS)
            continue;
        if (f.type == WIRE_VARINT)
            ok = side_add(s, index++, scale, f.value);
        for (packed = wire_of(f.bytes); f.type == WIRE_BYTES && ok && packed.p < packed.end;)
            ok = wire_varint(&packed, &count) && side_add(s, index++, scale, count);
    }
    return ok;
}

static void add_bucket(struct ingest *in, double bound, uint64_t total)
{
    ingest_part(in, PART_BUCKET, bound, (double)total);
}

/* Negative values come first: those of (-2^(e), -2^(e-1)] and more are at most -2^(e-1). */
static void add_buckets(struct ingest *in, const struct side *negative, uint64_t zero,
                        const struct side *positive)
{
    uint64_t total = 0;

    for (int i = negative->high; i >= negative->low; i--) {
        total += negative->counts[i];
        add_bucket(in, -ldexp(1, i - EXPONENT_MAX - 1), total);
    }
    total += zero;
    if (zero || negative->total)
        add_bucket(in, 0, total);
    for (int i = positive->low; i <= positive->high && i < EXPONENTS - 1; i++) {
        total += positive->counts[i];
        add_bucket(in, ldexp(1, i - EXPONENT_MAX), total);
    }
}

static unsigned ingest_add_exponential(struct ingest *in, const struct exponential *x)
{
    struct side negative, positive;
    uint64_t total;

    if (x->scale < SCALE_MIN || !side_read(&negative, x->negative, x->scale) ||
        !side_read(&positive, x->positive, x->scale) ||
        __builtin_add_overflow(negative.total, positive.total, &total) ||
        __builtin_add_overflow(total, x->zero, &total) || total != x->count)
        return OTLP_INVALID;
    ingest_part(in, PART_COUNT, 0, (double)x->count);
    if (x->has_sum)
        ingest_part(in, PART_SUM, 0, x->sum);
    if (in->metric.temporality != TEMPORALITY_DELTA)
        add_buckets(in, &negative, x->zero, &positive);
    add_bucket(in, HUGE_VAL, x->count);
    return TSDB_OK;
}

unsigned ingest_read_exponential(struct ingest *in, struct ingest_point *pt)
{
    struct wire w = wire_of(pt->message);
    struct exponential x = {0};
    struct ingest_run run = {0};
    struct wire_field f;

    pt->attributes = EXPONENTIAL_ATTRIBUTES;
    while (wire_next(&w, &f))
        switch (f.number) {
        case POINT_COUNT:
            x.count = f.value;
            break;
        case POINT_SUM:
            x.has_sum = true;
            x.sum = wire_double(f.value);
            break;
        case EXPONENTIAL_SCALE:
            x.scale = wire_sint32(f.value);
            break;
        case EXPONENTIAL_ZERO_COUNT:
            x.zero = f.value;
            break;
        case EXPONENTIAL_POSITIVE:
            x.positive = f.bytes;
            break;
        case EXPONENTIAL_NEGATIVE:
            x.negative = f.bytes;
            break;
        default:
            ingest_read_common(pt, &run, &f, EXPONENTIAL_FLAGS);
        }
    ingest_end_run(pt, &run);
    return ingest_add_exponential(in, &x);
}

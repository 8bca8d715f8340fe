/* Reads the points of each kind. */
#include "exporter/base/hash.h"
#include "exporter/otlp/ingest_internal.h"
#include "exporter/otlp/wire.h"

#include <math.h>

void ingest_end_run(struct ingest_point *pt, struct ingest_run *run)
{
    if (run->from)
        pt->attributes_hash =
            hash_chain(pt->attributes_hash, (struct str){run->from, (size_t)(run->to - run->from)});
}

void ingest_read_common(struct ingest_point *pt, struct ingest_run *run, const struct wire_field *f,
                        unsigned flags)
{
    if (f->number == pt->attributes) {
        if (run->to != f->from) {
            ingest_end_run(pt, run);
            run->from = f->from;
        }
        run->to = f->bytes.p + f->bytes.n;
    } else if (f->number == POINT_START) {
        pt->start_ns = f->value;
    } else if (f->number == POINT_TIME) {
        pt->time_ns = f->value;
    } else if (f->number == flags) {
        pt->flags = f->value;
    }
}

/* ---- Numbers ---- */

unsigned ingest_read_number(struct ingest *in, struct ingest_point *pt)
{
    struct wire w = wire_of(pt->message);
    bool has_value = false;
    struct ingest_run run = {0};
    struct wire_field f;
    double value = 0;

    pt->attributes = NUMBER_ATTRIBUTES;
    while (wire_next(&w, &f))
        switch (f.number) {
        case NUMBER_DOUBLE:
        case NUMBER_INT:
            value = f.number == NUMBER_INT ? (double)(int64_t)f.value : wire_double(f.value);
            has_value = true;
            break;
        default:
            ingest_read_common(pt, &run, &f, NUMBER_FLAGS);
        }
    ingest_end_run(pt, &run);
    ingest_part(in, PART_VALUE, 0, value);
    return has_value || (pt->flags & FLAG_NO_RECORDED_VALUE) ? TSDB_OK : OTLP_INVALID;
}

/* ---- Histograms ---- */

/* Appends fixed-size numbers of a field, packed or not. False if there are too many. */
static bool add_fixed(const struct wire_field *f, uint64_t *list, size_t *n)
{
    size_t count = f->type == WIRE_BYTES ? f->bytes.n / 8 : 1;

    if (count > INGEST_MAX_BUCKETS - *n)
        return false;
    memcpy(list + *n, f->type == WIRE_BYTES ? f->bytes.p : (const char *)&f->value, count * 8);
    *n += count;
    return true;
}

struct histogram {
    uint64_t count, counts[INGEST_MAX_BUCKETS], bounds[INGEST_MAX_BUCKETS];
    size_t n_counts, n_bounds;
    bool has_sum;
    double sum;
};

/* Bounds increase, and there is one more bucket than bounds, or none. Their counts add up to the count. */
static bool is_consistent(const struct histogram *h)
{
    uint64_t total = 0;

    for (size_t i = 0; i < h->n_bounds; i++)
        if (isnan(wire_double(h->bounds[i])) ||
            (i > 0 && wire_double(h->bounds[i]) <= wire_double(h->bounds[i - 1])))
            return false;
    for (size_t i = 0; i < h->n_counts; i++)
        if (__builtin_add_overflow(total, h->counts[i], &total))
            return false;
    return h->n_counts == 0 || (h->n_counts == h->n_bounds + 1 && total == h->count);
}

static void add_histogram(struct ingest *in, const struct histogram *h)
{
    uint64_t total = 0;

    ingest_part(in, PART_COUNT, 0, (double)h->count);
    if (h->has_sum)
        ingest_part(in, PART_SUM, 0, h->sum);
    for (size_t i = 0; i < h->n_bounds && i < h->n_counts; i++) {
        total += h->counts[i];
        if (wire_double(h->bounds[i]) != HUGE_VAL)
            ingest_part(in, PART_BUCKET, wire_double(h->bounds[i]), (double)total);
    }
    ingest_part(in, PART_BUCKET, HUGE_VAL, (double)h->count);
}

unsigned ingest_read_histogram(struct ingest *in, struct ingest_point *pt)
{
    struct wire w = wire_of(pt->message);
    struct histogram h = {0};
    struct ingest_run run = {0};
    struct wire_field f;
    bool fits = true;

    pt->attributes = HISTOGRAM_ATTRIBUTES;
    while (wire_next(&w, &f))
        switch (f.number) {
        case POINT_COUNT:
            h.count = f.value;
            break;
        case POINT_SUM:
            h.has_sum = true;
            h.sum = wire_double(f.value);
            break;
        case HISTOGRAM_COUNTS:
            fits &= add_fixed(&f, h.counts, &h.n_counts);
            break;
        case HISTOGRAM_BOUNDS:
            fits &= add_fixed(&f, h.bounds, &h.n_bounds);
            break;
        default:
            ingest_read_common(pt, &run, &f, HISTOGRAM_FLAGS);
        }
    ingest_end_run(pt, &run);
    if (!fits || !is_consistent(&h))
        return OTLP_INVALID;
    add_histogram(in, &h);
    return TSDB_OK;
}

/* ---- Summaries ---- */

unsigned ingest_read_summary(struct ingest *in, struct ingest_point *pt)
{
    struct wire w = wire_of(pt->message), q;
    double count = 0, sum = 0;
    struct ingest_run run = {0};
    struct wire_field f, g;

    pt->attributes = SUMMARY_ATTRIBUTES;
    in->n_parts = 2; /* filled in below, before the quantiles */
    while (wire_next(&w, &f))
        switch (f.number) {
        case POINT_COUNT:
            count = (double)f.value;
            break;
        case POINT_SUM:
            sum = wire_double(f.value);
            break;
        case SUMMARY_QUANTILES: {
            double quantile = 0, value = 0;
            for (q = wire_of(f.bytes); wire_next(&q, &g);)
                if (g.number == QUANTILE_QUANTILE)
                    quantile = wire_double(g.value);
                else if (g.number == QUANTILE_VALUE)
                    value = wire_double(g.value);
            if (in->n_parts == INGEST_MAX_PARTS || isnan(quantile))
                return OTLP_INVALID;
            ingest_part(in, PART_QUANTILE, quantile, value);
            break;
        }
        default:
            ingest_read_common(pt, &run, &f, SUMMARY_FLAGS);
        }
    ingest_end_run(pt, &run);
    in->parts[0] = (struct ingest_part){PART_COUNT, 0, count};
    in->parts[1] = (struct ingest_part){PART_SUM, 0, sum};
    return TSDB_OK;
}

/* A window that slides over the samples of one series. Each sample enters and leaves it once; sums, averages,
 * minima and maxima of the samples in it take constant time on average, by two stacks: `ahead` holds the
 * fold of each of the older samples with all after it up to `middle`, and `behind` the fold of those from
 * `middle` on. */
#ifndef DS_PROMQL_WINDOW_H
#define DS_PROMQL_WINDOW_H

#include "exporter/base/def.h"
#include "exporter/promql/fold.h"

#include <stdbool.h>

enum window_track {
    TRACK_NOTHING,
    TRACK_RESETS, /* where a counter began again */
    TRACK_SUM,
    TRACK_MIN,
    TRACK_MAX,
};

struct window {
    enum window_track track;
    size_t max; /* samples */
    int64_t *t; /* samples `first` to `end` - 1 are in the window */
    double *v;
    struct fold *ahead;
    size_t *resets; /* indices of samples that are less than the one before, in order */
    struct fold behind;
    size_t first, middle, end, cap;
    size_t first_reset, end_reset;
};

void window_init(struct window *w, enum window_track track, size_t max_samples);
void window_done(struct window *w);
/* Empties it for another series. */
void window_clear(struct window *w);
/* Adds a sample later than all others. -EFBIG, -ENOMEM. */
MUST_USE int window_push(struct window *w, int64_t t, double v);
/* Drops the samples up to and including the time. */
void window_drop(struct window *w, int64_t up_to);

static inline size_t window_count(const struct window *w)
{
    return w->end - w->first;
}

/* The sum, minimum or maximum of all samples; there must be some. */
struct fold window_fold(const struct window *w);

#endif

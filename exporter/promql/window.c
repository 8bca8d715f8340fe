#include "exporter/promql/window.h"

#include <errno.h>
#include <math.h>
#include <string.h>

enum { FIRST_CAP = 64 };

/* Joins two parts of the window. Of equal values the older one counts; NaN counts only without another. */
static struct fold fold_join(enum window_track track, struct fold older, struct fold newer)
{
    switch (track) {
    case TRACK_SUM:
        fold_add(&older, newer.value);
        older.error = isinf(older.value) ? 0 : older.error + newer.error;
        return older;
    case TRACK_MIN:
        return newer.value < older.value || isnan(older.value) ? newer : older;
    default:
        return newer.value > older.value || isnan(older.value) ? newer : older;
    }
}

static bool window_folds(const struct window *w)
{
    return w->track >= TRACK_SUM;
}

void window_init(struct window *w, enum window_track track, size_t max_samples)
{
    *w = (struct window){.track = track, .max = max_samples};
}

void window_done(struct window *w)
{
    free(w->t);
    free(w->v);
    free(w->ahead);
    free(w->resets);
    window_init(w, w->track, w->max);
}

void window_clear(struct window *w)
{
    w->first = w->middle = w->end = 0;
    w->first_reset = w->end_reset = 0;
}

static int grow_array(void *array, size_t cap, size_t size)
{
    void **at = array, *p = reallocarray(*at, cap, size);

    if (!p)
        return -ENOMEM;
    *at = p;
    return 0;
}

static int window_grow(struct window *w)
{
    size_t cap = w->cap ? w->cap * 2 : FIRST_CAP;
    int r;

    if (w->cap >= w->max)
        return -EFBIG;
    r = grow_array(&w->t, cap, sizeof(*w->t)) ?: grow_array(&w->v, cap, sizeof(*w->v));
    if (r == 0 && window_folds(w))
        r = grow_array(&w->ahead, cap, sizeof(*w->ahead));
    if (r == 0 && w->track == TRACK_RESETS)
        r = grow_array(&w->resets, cap, sizeof(*w->resets));
    if (r == 0)
        w->cap = cap;
    return r;
}

/* Moves the samples to the begin of the arrays. */
static void window_compact(struct window *w)
{
    size_t n = window_count(w), resets = w->end_reset - w->first_reset;

    memmove(w->t, w->t + w->first, n * sizeof(*w->t));
    memmove(w->v, w->v + w->first, n * sizeof(*w->v));
    if (window_folds(w) && w->middle > w->first)
        memmove(w->ahead, w->ahead + w->first, (w->middle - w->first) * sizeof(*w->ahead));
    for (size_t i = 0; i < resets; i++)
        w->resets[i] = w->resets[w->first_reset + i] - w->first;
    w->first_reset = 0;
    w->end_reset = resets;
    w->middle -= w->first;
    w->end = n;
    w->first = 0;
}

int window_push(struct window *w, int64_t t, double v)
{
    if (w->end == w->cap) {
        int r = w->first > w->cap / 2 ? 0 : window_grow(w);

        if (r < 0)
            return r;
        if (w->end == w->cap)
            window_compact(w);
    }
    if (w->track == TRACK_RESETS && w->end > w->first && v < w->v[w->end - 1])
        w->resets[w->end_reset++] = w->end;
    if (window_folds(w)) {
        struct fold one = {.value = v};

        w->behind = w->end > w->middle ? fold_join(w->track, w->behind, one) : one;
    }
    w->t[w->end] = t;
    w->v[w->end++] = v;
    return 0;
}

/* Folds the samples from `first` on anew, and moves `middle` to the end. */
static void window_flip(struct window *w)
{
    for (size_t i = w->end; i-- > w->first;) {
        struct fold one = {.value = w->v[i]};

        w->ahead[i] = i + 1 < w->end ? fold_join(w->track, one, w->ahead[i + 1]) : one;
    }
    w->middle = w->end;
}

void window_drop(struct window *w, int64_t up_to)
{
    while (w->first < w->end && w->t[w->first] <= up_to)
        w->first++;
    while (w->first_reset < w->end_reset && w->resets[w->first_reset] <= w->first)
        w->first_reset++;
    if (window_folds(w) && w->first > w->middle)
        window_flip(w);
    else if (!window_folds(w))
        w->middle = w->first;
}

struct fold window_fold(const struct window *w)
{
    if (w->first == w->middle)
        return w->behind;
    if (w->middle == w->end)
        return w->ahead[w->first];
    return fold_join(w->track, w->ahead[w->first], w->behind);
}

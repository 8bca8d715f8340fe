#include "exporter/models/spacing.h"

#include <float.h>
#include <math.h>

/* The shortest distance of two samples; 0 if timestamps do not increase. */
static double step_of(const struct input_series *in)
{
    double step = DBL_MAX;

    for (size_t i = 1; i < in->n; i++) {
        double distance = in->times[i] - in->times[i - 1];

        if (!(distance > 0))
            return 0;
        step = distance < step ? distance : step;
    }
    return step;
}

/* The last sample before index i whose value is finite; in->n if there is none. */
static size_t finite_before(const struct input_series *in, size_t i)
{
    while (i-- > 0)
        if (isfinite(in->values[i]))
            return i;
    return in->n;
}

/* Steps from sample i to sample k, which follows. A count beyond what may be filled need not be exact. */
static size_t steps_between(const struct input_series *in, size_t i, size_t k, double step)
{
    double steps = (in->times[k] - in->times[i]) / step;

    return steps < 1e6 ? (size_t)(steps + 0.5) : 1000000;
}

/* What can be used: from which sample on, how many samples, how many steps. */
struct usable {
    size_t first, last, samples, length;
    bool cut; /* there is a long gap before `first` */
};

static struct usable find_usable(const struct input_series *in, double step)
{
    size_t last = finite_before(in, in->n);
    struct usable u = {.first = last, .last = last, .samples = last < in->n, .length = 1};

    for (size_t i = last; i < in->n;) {
        size_t steps;

        i = finite_before(in, i);
        if (i == in->n)
            break;
        steps = steps_between(in, i, u.first, step);
        u.cut = steps > MAX_GAP + 1;
        if (u.cut)
            break;
        u.length += steps;
        u.samples++;
        u.first = i;
    }
    return u;
}

static void fill(const struct input_series *in, const struct usable *u, double step, double *out)
{
    size_t before = u->first;

    *out++ = in->values[before];
    for (size_t i = before + 1; i <= u->last; i++) {
        double from = in->values[before];
        size_t steps;

        if (!isfinite(in->values[i]))
            continue;
        steps = steps_between(in, before, i, step);
        for (size_t k = 1; k < steps; k++) {
            double part = (double)k / (double)steps;

            *out++ = from * (1 - part) + in->values[i] * part;
        }
        *out++ = in->values[i];
        before = i;
    }
}

bool space_evenly(const struct input_series *in, size_t min_samples, double *out, struct spacing *ret,
                  enum left_out *ret_why)
{
    double step = step_of(in);
    struct usable u;

    if (in->n < min_samples) {
        *ret_why = LEFT_OUT_SHORT;
        return false;
    }
    if (step == 0) {
        *ret_why = LEFT_OUT_DISORDERED;
        return false;
    }
    u = find_usable(in, step);
    if (u.samples < min_samples || u.length > 2 * u.samples) {
        *ret_why = u.samples == 0 ? LEFT_OUT_NOT_FINITE : LEFT_OUT_GAPPY;
        return false;
    }
    fill(in, &u, step, out);
    *ret = (struct spacing){.n = u.length, .last = in->times[u.last], .step = step};
    return true;
}

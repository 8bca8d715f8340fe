#include "exporter/promql/fold.h"

#include <math.h>

void fold_add(struct fold *sum, double v)
{
    double t = sum->value + v;

    if (isinf(t))
        sum->error = 0;
    else if (fabs(sum->value) >= fabs(v))
        sum->error += (sum->value - t) + v;
    else
        sum->error += (v - t) + sum->value;
    sum->value = t;
}

double fold_total(const struct fold *sum)
{
    return isinf(sum->value) ? sum->value : sum->value + sum->error;
}

/* Goes on with a mean of `count` values, of which v is the last. */
static void mean_update(struct mean *m, double v, double count)
{
    double q = (count - 1) / count;

    m->sum = (struct fold){q * m->sum.value, q * m->sum.error};
    fold_add(&m->sum, v / count);
    m->count = -count;
}

void mean_add(struct mean *m, double v)
{
    double count = fabs(m->count) + 1;
    struct fold sum = m->sum;

    if (m->count < 0) {
        mean_update(m, v, count);
        return;
    }
    if (count == 1) {
        *m = (struct mean){{v, 0}, 1};
        return;
    }
    fold_add(&sum, v);
    if (!isinf(sum.value)) {
        *m = (struct mean){sum, count};
        return;
    }
    m->sum.value /= count - 1;
    m->sum.error /= count - 1;
    mean_update(m, v, count);
}

double mean_value(const struct mean *m)
{
    if (m->count < 0)
        return m->sum.value + m->sum.error;
    return m->sum.value / m->count + m->sum.error / m->count;
}

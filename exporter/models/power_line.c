#include "exporter/models/power_line.h"

#include <errno.h>
#include <math.h>

static const double MAX_MINUTE = 1e15; /* of timestamps; any is far enough */

void power_line_done(struct power_line *l)
{
    free(l->points);
    for (struct power_line *part = l->rest, *next; part; part = next) {
        next = part->rest;
        free(part->points);
        free(part);
    }
    *l = (struct power_line){0};
}

int power_line_read(struct power_line *ret, const struct input_series *series)
{
    struct power_point *points = malloc(size_max(series->n, 1) * sizeof(*points));
    size_t n = 0;

    if (!points)
        return -ENOMEM;
    for (size_t i = 0; i < series->n; i++) {
        double minute = floor(series->times[i] / 60);

        if ((i > 0 && !(series->times[i] > series->times[i - 1])) || !(fabs(minute) < MAX_MINUTE)) {
            free(points);
            return -EINVAL;
        }
        if (!isfinite(series->values[i]))
            continue;
        n += n == 0 || points[n - 1].minute != (int64_t)minute;
        points[n - 1] = (struct power_point){(int64_t)minute, series->values[i], 1};
    }
    *ret = (struct power_line){points, n, NULL};
    return 0;
}

/* Adds points to the first part of a line. */
static int power_line_add_points(struct power_line *into, const struct power_line *from, bool same_node)
{
    struct power_point *points = malloc(size_max(into->n + from->n, 1) * sizeof(*points));
    size_t n = 0, i = 0, k = 0;

    if (!points)
        return -ENOMEM;
    while (i < into->n || k < from->n) {
        const struct power_point *a = i < into->n ? &into->points[i] : NULL;
        const struct power_point *b = k < from->n ? &from->points[k] : NULL;

        if (a && b && a->minute == b->minute)
            points[n++] =
                (struct power_point){a->minute, a->sum + b->sum, same_node ? 1 : a->nodes + b->nodes};
        else
            points[n++] = !b || (a && a->minute < b->minute) ? *a : *b;
        i += a && a->minute == points[n - 1].minute;
        k += b && b->minute == points[n - 1].minute;
    }
    free(into->points);
    into->points = points;
    into->n = n;
    return 0;
}

static int power_line_add_part(struct power_line *l, bool same_node)
{
    struct power_line *part = l->rest;
    int r = power_line_add_points(l, part, same_node);

    if (r < 0)
        return r;
    l->rest = part->rest;
    free(part->points);
    free(part);
    return 0;
}

/* Begins a part with the points of `from`. */
static int power_line_push(struct power_line *into, const struct power_line *from)
{
    CLEANUP(power_line_done) struct power_line copy = {0};
    struct power_line *rest;
    int r = power_line_add_points(&copy, from, true);

    if (r < 0)
        return r;
    rest = malloc(sizeof(*rest));
    if (!rest)
        return -ENOMEM;
    *rest = *into;
    *into = (struct power_line){TAKE_PTR(copy.points), copy.n, rest};
    return 0;
}

int power_line_add(struct power_line *into, const struct power_line *from, bool same_node)
{
    int r;

    if (from->n == 0)
        return 0;
    if (into->n > 2 * from->n)
        return power_line_push(into, from);
    r = power_line_add_points(into, from, same_node);
    while (r == 0 && into->rest && into->rest->n <= 2 * into->n)
        r = power_line_add_part(into, same_node);
    return r;
}

int power_line_merge(struct power_line *l, bool same_node)
{
    int r = 0;

    while (r == 0 && l->rest)
        r = power_line_add_part(l, same_node);
    return r;
}

double power_line_highest_mean(const struct power_line *l)
{
    double highest = -INFINITY;

    for (size_t i = 0; i < l->n; i++)
        highest = fmax(highest, l->points[i].sum / l->points[i].nodes);
    return highest;
}

int power_line_fill(const struct power_line *l, double **ret, size_t *ret_n)
{
    int64_t first = l->points[0].minute, minutes = l->points[l->n - 1].minute - first + 1;
    double *values;
    size_t n = 0;

    if (minutes > POWER_MAX_MINUTES)
        return -ERANGE;
    values = malloc((size_t)minutes * sizeof(*values));
    if (!values)
        return -ENOMEM;
    for (size_t i = 0; i < l->n; i++) {
        for (; first + (int64_t)n < l->points[i].minute; n++)
            values[n] = values[n - 1];
        values[n++] = l->points[i].sum;
    }
    *ret = values;
    *ret_n = n;
    return 0;
}

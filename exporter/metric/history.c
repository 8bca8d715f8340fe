/* Owns the rows of one history, in the order of time. A plot cannot show more than a float holds. */
#include "exporter/metric/history.h"

#include "exporter/base/alloc.h"
#include "exporter/base/invariant.h"

#include <string.h>

struct history {
    size_t columns, n;
    uint32_t at[HISTORY_LENGTH]; /* Unix time in seconds */
    float values[];              /* HISTORY_LENGTH rows, the oldest first */
};

static struct history *history_new(size_t columns)
{
    struct history *h = xcalloc(1, sizeof(*h) + HISTORY_LENGTH * columns * sizeof(float));

    h->columns = columns;
    return h;
}

static void history_drop_oldest(struct history *h)
{
    h->n--;
    memmove(h->at, h->at + 1, h->n * sizeof(h->at[0]));
    memmove(h->values, h->values + h->columns, h->n * h->columns * sizeof(float));
}

void history_add(struct history **h, size_t columns, unix_ms at, const double *values)
{
    struct history *to = *h;

    if (!to)
        to = *h = history_new(columns);
    invariant(to->columns == columns);
    if (to->n == HISTORY_LENGTH)
        history_drop_oldest(to);
    to->at[to->n] = (uint32_t)(at.ms / 1000);
    for (size_t i = 0; i < columns; i++)
        to->values[to->n * columns + i] = (float)values[i];
    to->n++;
}

struct history *history_free(struct history *h)
{
    free(h);
    return NULL;
}

size_t history_rows(const struct history *h)
{
    return h ? h->n : 0;
}

uint32_t history_seconds(const struct history *h, size_t row)
{
    invariant(row < h->n);
    return h->at[row];
}

double history_value(const struct history *h, size_t row, size_t column)
{
    invariant(row < h->n && column < h->columns);
    return h->values[row * h->columns + column];
}

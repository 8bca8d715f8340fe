#include "exporter/ui/history.h"

#include "exporter/num/num.h"
#include "exporter/ui/out.h"

#include <math.h>
#include <stdio.h>

struct history {
    uint32_t columns, n, next;
    uint32_t at[HISTORY_LENGTH]; /* Unix time in seconds */
    float values[];              /* HISTORY_LENGTH rows */
};

void history_add(struct history **h, size_t columns, unix_ms at, const double *values)
{
    struct history *to = *h;

    if (!to)
        to = *h = xcalloc(1, sizeof(*to) + HISTORY_LENGTH * columns * sizeof(float));
    if (!to)
        return;
    to->columns = (uint32_t)columns;
    to->at[to->next] = (uint32_t)(at.ms / 1000);
    for (size_t i = 0; i < columns; i++)
        to->values[to->next * columns + i] = (float)values[i];
    to->next = (to->next + 1) % HISTORY_LENGTH;
    to->n += to->n < HISTORY_LENGTH;
}

struct history *history_free(struct history *h)
{
    free(h);
    return NULL;
}

/* The place of the i-th row, the oldest first. */
static size_t history_row(const struct history *h, size_t i)
{
    return (h->next + HISTORY_LENGTH - h->n + i) % HISTORY_LENGTH;
}

/* Six digits are more than a plot can show. */
static void history_value(struct out *o, float v)
{
    char digits[32];

    (void)snprintf(digits, sizeof(digits), "%.6g", (double)v);
    out_puts(o, isfinite(v) ? digits : "null");
}

void member_history(struct out *o, const struct history *h, const char *const *names)
{
    size_t n = h ? h->n : 0;
    char digits[NUM_MAX];

    member_object(o, "history");
    member_list(o, "unixSeconds");
    for (size_t i = 0; i < n; i++) {
        member_item(o);
        out_str(o, (struct str){digits, num_put_u64(digits, h->at[history_row(h, i)])});
    }
    out_puts(o, "]");
    for (size_t column = 0; names[column]; column++) {
        member_list(o, names[column]);
        for (size_t i = 0; i < n; i++) {
            member_item(o);
            history_value(o, h->values[history_row(h, i) * h->columns + column]);
        }
        out_puts(o, "]");
    }
    out_puts(o, "}");
}

#include "exporter/promql/row.h"

#include "exporter/base/json.h"
#include "exporter/num/num.h"
#include "exporter/promql/function.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { POINT_TEXT_MAX = 32 };

/* Seconds, with three decimals if there are any. */
static int put_point(struct buf *b, int64_t ms)
{
    uint64_t abs = ms < 0 ? 0 - (uint64_t)ms : (uint64_t)ms;
    int r = buf_printf(b, "[%s%llu", ms < 0 ? "-" : "", (unsigned long long)(abs / 1000));

    if (r == 0 && abs % 1000)
        r = buf_printf(b, ".%03u", (unsigned)(abs % 1000));
    return r ?: buf_puts(b, ",\"");
}

int row_points_init(struct row_points *p, size_t n, int64_t start_ms, int64_t step_ms)
{
    struct row_points new = {.n = n, .start_ms = start_ms, .step_ms = step_ms};
    int r;

    buf_init(&new.text, n * POINT_TEXT_MAX);
    new.offsets = calloc(n + 1, sizeof(*new.offsets));
    r = new.offsets ? 0 : -ENOMEM;
    for (size_t i = 0; i < n && r == 0; i++) {
        r = put_point(&new.text, row_point(&new, i));
        new.offsets[i + 1] = (uint32_t) new.text.n;
    }
    *p = new;
    if (r < 0)
        row_points_done(p);
    return r;
}

void row_points_done(struct row_points *p)
{
    buf_done(&p->text);
    free(p->offsets);
    *p = (struct row_points){0};
}

int labels_compare(const struct tsdb_label *a, size_t n_a, const struct tsdb_label *b, size_t n_b)
{
    for (size_t i = 0; i < n_a && i < n_b; i++) {
        int order = str_cmp(a[i].name, b[i].name) ?: str_cmp(a[i].value, b[i].value);

        if (order)
            return order;
    }
    return (n_a > n_b) - (n_a < n_b);
}

/* The digits of num_put_double()'s text "d.ddde[+-]x", and the exponent of the first. */
static size_t split_digits(const char *text, size_t n, char *digits, int *ret_exponent)
{
    size_t k = 0, i;

    for (i = 0; i < n && text[i] != 'e'; i++)
        if (text[i] != '.' && text[i] != '-')
            digits[k++] = text[i];
    *ret_exponent = i < n ? atoi(text + i + 1) : 0;
    return k;
}

/* strconv's format 'f' for what num_put_double() writes with an exponent: 1e-6 to 1e-5, 1e17 to 1e21. */
static size_t row_put_decimal(const char *text, size_t n, char *to)
{
    char digits[NUM_MAX];
    int exponent;
    size_t k = split_digits(text, n, digits, &exponent), at = 0;

    if (text[0] == '-')
        to[at++] = '-';
    if (exponent < 0) {
        at += (size_t)sprintf(to + at, "0.%0*d", -exponent - 1, 0);
        memcpy(to + at, digits, k);
        return at + k;
    }
    memcpy(to + at, digits, k);
    memset(to + at + k, '0', (size_t)exponent + 1 - k);
    return at + (size_t)exponent + 1;
}

/* Go writes at least two digits of an exponent. */
static size_t pad_exponent(char *text, size_t n)
{
    if (n < 3 || (text[n - 2] != '-' && text[n - 2] != '+'))
        return n;
    text[n] = text[n - 1];
    text[n - 1] = '0';
    return n + 1;
}

size_t row_value(double v, char to[ROW_VALUE_MAX])
{
    char text[NUM_MAX + 1];
    size_t n = num_put_double(to, v);
    double abs = fabs(v);

    if ((abs >= 1e-5 && abs < 1e17) || v == 0 || !isfinite(v))
        return n;
    if (abs < 1e-6 || abs >= 1e21)
        return pad_exponent(to, n);
    *(char *)mempcpy(text, to, n) = '\0';
    return row_put_decimal(text, n, to);
}

static int put_labels(struct buf *out, const struct row *row)
{
    int r = buf_puts(out, out->n ? ",{\"metric\":{" : "{\"metric\":{");

    for (size_t i = 0; i < row->n_labels && r == 0; i++) {
        r = i ? buf_putc(out, ',') : 0;
        r = r ?: buf_put_json(out, row->labels[i].name) ?: buf_putc(out, ':');
        r = r ?: buf_put_json(out, row->labels[i].value);
    }
    return r ?: buf_puts(out, "},\"values\":[");
}

int row_write(const struct row *row, const struct row_points *p, struct buf *out)
{
    size_t first = 0;
    int r;

    while (first < p->n && value_is_absent(row->values[first]))
        first++;
    if (first == p->n)
        return 0;
    r = put_labels(out, row);
    for (size_t i = first; i < p->n && r == 0; i++) {
        size_t n = p->offsets[i + 1] - p->offsets[i];
        char *to;

        if (value_is_absent(row->values[i]))
            continue;
        r = buf_room(out, 1 + n + ROW_VALUE_MAX + 2, &to);
        if (r < 0)
            break;
        if (i > first)
            *to++ = ',';
        to = mempcpy(to, p->text.p + p->offsets[i], n);
        to += row_value(row->values[i], to);
        *to++ = '"';
        *to++ = ']';
        out->n = (size_t)(to - out->p);
    }
    r = r ?: buf_puts(out, "]}");
    return r ?: 1;
}

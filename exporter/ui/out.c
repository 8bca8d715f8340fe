#include "exporter/ui/out.h"

#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/http.h"
#include "exporter/base/json.h"
#include "exporter/metric/metrics.h"
#include "exporter/num/num.h"
#include "exporter/web/access.h"

#include <math.h>
#include <stdio.h>

int out_end(struct out *o)
{
    if (o->error)
        buf_truncate(o->b, o->mark);
    return o->error;
}

void out_str(struct out *o, struct str s)
{
    if (o->error == 0)
        o->error = buf_put_str(o->b, s);
}

void out_puts(struct out *o, const char *s)
{
    out_str(o, str_of(s));
}

void out_printf(struct out *o, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    if (o->error == 0)
        o->error = buf_vprintf(o->b, fmt, ap);
    va_end(ap);
}

void out_url(struct out *o, const char *url)
{
    if (o->error == 0)
        o->error = http_url_for_people(str_of(url), o->b);
}

struct phrase words_seconds(double s)
{
    static const struct {
        int64_t seconds, lesser;
        char unit, lesser_unit;
    } scales[] = {{86400, 3600, 'd', 'h'}, {3600, 60, 'h', 'm'}, {60, 1, 'm', 's'}};
    struct phrase w;
    size_t i = 0;
    int64_t whole;
    int n;

    if (!(s >= 60)) {
        if (s >= 0.9995)
            (void)snprintf(w.s, sizeof(w.s), "%.3g s", s);
        else
            (void)snprintf(w.s, sizeof(w.s), "%.*f ms", s < 0.000995 ? 2 : s < 0.00995 ? 1 : 0, s * 1000);
        return w;
    }
    whole = s < 9e15 ? (int64_t)s : (int64_t)9e15;
    while (whole < scales[i].seconds)
        i++;
    n = snprintf(w.s, sizeof(w.s), "%lld%c", (long long)(whole / scales[i].seconds), scales[i].unit);
    whole = whole % scales[i].seconds / scales[i].lesser;
    if (whole)
        (void)snprintf(w.s + n, sizeof(w.s) - (size_t)n, " %lld%c", (long long)whole, scales[i].lesser_unit);
    return w;
}

struct phrase words_count(uint64_t n, const char *one, const char *many)
{
    char digits[24];
    int len = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)n);
    struct phrase w;
    size_t at = 0;

    for (int i = 0; i < len; i++) {
        if (i && (len - i) % 3 == 0)
            w.s[at++] = ',';
        w.s[at++] = digits[i];
    }
    (void)snprintf(w.s + at, sizeof(w.s) - at, " %s", n == 1 ? one : many);
    return w;
}

/* ---- JSON ---- */

/* Writes a comma unless the next value is the first in its object or list. */
static void member_comma(struct out *o, char open)
{
    if (o->b->n && o->b->p[o->b->n - 1] != open)
        out_puts(o, ",");
}

void member(struct out *o, const char *key)
{
    member_comma(o, '{');
    out_puts(o, "\"");
    out_puts(o, key);
    out_puts(o, "\":");
}

void member_item(struct out *o)
{
    member_comma(o, '[');
}

void value_text(struct out *o, struct str s)
{
    if (o->error == 0)
        o->error = buf_put_json(o->b, s);
}

void member_text(struct out *o, const char *key, const char *value)
{
    member(o, key);
    if (value)
        value_text(o, str_of(value));
    else
        out_puts(o, "null");
}

void member_words(struct out *o, const char *key, const char *value)
{
    member_text(o, key, *cstr(value) ? value : NULL);
}

void value_number(struct out *o, double v)
{
    char digits[NUM_MAX];
    struct str s = {digits, num_put_double(digits, v)};

    if (isfinite(v))
        out_str(o, s);
    else
        value_text(o, s);
}

void member_number(struct out *o, const char *key, double v)
{
    member(o, key);
    value_number(o, v);
}

void member_count(struct out *o, const char *key, uint64_t v)
{
    char digits[NUM_MAX];

    member(o, key);
    out_str(o, (struct str){digits, num_put_u64(digits, v)});
}

void member_bool(struct out *o, const char *key, bool v)
{
    member(o, key);
    out_puts(o, v ? "true" : "false");
}

void member_time(struct out *o, const char *key, int64_t ms)
{
    char when[32];

    unix_ms_format((unix_ms){ms}, when);
    member_text(o, key, ms ? when : NULL);
}

void member_url(struct out *o, const char *key, const char *value)
{
    BUF_AUTO(plain, 1 << 20);

    if (o->error == 0 && value)
        o->error = http_url_for_people(str_of(value), &plain);
    member(o, key);
    if (value)
        value_text(o, buf_str(&plain));
    else
        out_puts(o, "null");
}

void member_object(struct out *o, const char *key)
{
    member(o, key);
    out_puts(o, "{");
}

void member_list(struct out *o, const char *key)
{
    member(o, key);
    out_puts(o, "[");
}

bool member_object_if(struct out *o, const char *key, bool there)
{
    if (there)
        member_object(o, key);
    else
        member_text(o, key, NULL);
    return there;
}

void member_build(struct out *o)
{
    member_object(o, "build");
    member_text(o, "version", ds_version);
    member_text(o, "revision", ds_revision);
    out_puts(o, "}");
}

void member_problems(struct out *o, const char *problems)
{
    struct str rest = str_of(problems);

    member_list(o, "problems");
    while (rest.n) {
        struct str line = str_take(&rest, '\n');

        if (line.n) {
            member_item(o);
            value_text(o, line);
        }
    }
    out_puts(o, "]");
}

void member_web_config(struct out *o, const struct access *access)
{
    const struct access_status *s = access_status(access);

    if (!member_object_if(o, "webConfig", s))
        return;
    member_text(o, "file", s->file);
    member_bool(o, "ok", s->ok);
    member_time(o, "lastTriedAt", s->at_ms);
    member_problems(o, s->problems);
    out_puts(o, "}");
}

/* ---- History ---- */

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

void member_history(struct out *o, const struct history *h, const char *const *names)
{
    size_t n = h ? h->n : 0;

    member_object(o, "history");
    member_list(o, "unixSeconds");
    for (size_t i = 0; i < n; i++) {
        member_item(o);
        out_printf(o, "%u", h->at[history_row(h, i)]);
    }
    out_puts(o, "]");
    for (size_t column = 0; names[column]; column++) {
        member_list(o, names[column]);
        for (size_t i = 0; i < n; i++) {
            double v = h->values[history_row(h, i) * h->columns + column];

            member_item(o);
            if (isfinite(v))
                out_printf(o, "%.6g", v); /* more digits than a plot can show */
            else
                out_puts(o, "null");
        }
        out_puts(o, "]");
    }
    out_puts(o, "}");
}

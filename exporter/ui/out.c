/* Writes what people and programs read of the program's state: amounts in words, members of JSON objects,
 * and scores in columns. Owns nothing: all is appended to the caller's buffer. Any thread that may read
 * its input. */
#include "exporter/ui/out.h"

#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/escape.h"
#include "exporter/base/utf8.h"
#include "exporter/http/http.h"
#include "exporter/metric/history.h"
#include "exporter/metric/metrics.h"
#include "exporter/metric/series.h"
#include "exporter/num/num.h"
#include "exporter/web/access.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>

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
static void member_comma(struct buf *o, char open)
{
    if (o->n && o->p[o->n - 1] != open)
        buf_puts(o, ",");
}

void member(struct buf *o, const char *key)
{
    member_comma(o, '{');
    buf_puts(o, "\"");
    buf_puts(o, key);
    buf_puts(o, "\":");
}

void member_item(struct buf *o)
{
    member_comma(o, '[');
}

void member_text(struct buf *o, const char *key, const char *value)
{
    member(o, key);
    if (value)
        buf_put_json(o, str_of(value));
    else
        buf_puts(o, "null");
}

void member_words(struct buf *o, const char *key, const char *value)
{
    member_text(o, key, *cstr(value) ? value : NULL);
}

void value_number(struct buf *o, double v)
{
    char digits[NUM_MAX];
    struct str s = {digits, num_put_double(digits, v)};

    if (isfinite(v))
        buf_put_str(o, s);
    else
        buf_put_json(o, s);
}

void member_number(struct buf *o, const char *key, double v)
{
    member(o, key);
    value_number(o, v);
}

void member_count(struct buf *o, const char *key, uint64_t v)
{
    char digits[NUM_MAX];

    member(o, key);
    buf_put_str(o, (struct str){digits, num_put_u64(digits, v)});
}

void member_bool(struct buf *o, const char *key, bool v)
{
    member(o, key);
    buf_puts(o, v ? "true" : "false");
}

void member_time(struct buf *o, const char *key, int64_t ms)
{
    char when[32];

    unix_ms_format((unix_ms){ms}, when);
    member_text(o, key, ms ? when : NULL);
}

void member_url(struct buf *o, const char *key, const char *value)
{
    BUF_AUTO(plain, 1 << 20);
    int r;

    if (!value) {
        member_text(o, key, NULL);
        return;
    }
    http_url_for_people(str_of(value), &plain);
    r = buf_failed(&plain);
    if (r < 0) {
        buf_fail(o, r);
        return;
    }
    member(o, key);
    buf_put_json(o, buf_str(&plain));
}

void member_object(struct buf *o, const char *key)
{
    member(o, key);
    buf_puts(o, "{");
}

void member_list(struct buf *o, const char *key)
{
    member(o, key);
    buf_puts(o, "[");
}

bool member_object_if(struct buf *o, const char *key, bool there)
{
    if (there)
        member_object(o, key);
    else
        member_text(o, key, NULL);
    return there;
}

void member_build(struct buf *o)
{
    member_object(o, "build");
    member_text(o, "version", ds_version);
    member_text(o, "revision", ds_revision);
    buf_puts(o, "}");
}

void member_problems(struct buf *o, const char *problems)
{
    struct str rest = str_of(problems);

    member_list(o, "problems");
    while (rest.n) {
        struct str line = str_take(&rest, '\n');

        if (line.n) {
            member_item(o);
            buf_put_json(o, line);
        }
    }
    buf_puts(o, "]");
}

void member_web_config(struct buf *o, const struct access *access)
{
    const struct access_status *s = access_status(access);

    if (!member_object_if(o, "webConfig", s))
        return;
    member_text(o, "file", s->file);
    member_bool(o, "ok", s->ok);
    member_time(o, "lastTriedAt", s->at_ms);
    member_problems(o, s->problems);
    buf_puts(o, "}");
}

static void member_history_column(struct buf *o, const char *name, const struct history *h, size_t column)
{
    member_list(o, name);
    for (size_t row = 0; row < history_rows(h); row++) {
        double v = history_value(h, row, column);

        member_item(o);
        if (isfinite(v))
            buf_printf(o, "%.6g", v); /* more digits than a plot can show */
        else
            buf_puts(o, "null");
    }
    buf_puts(o, "]");
}

void member_history(struct buf *o, const struct history *h, const char *const *names)
{
    member_object(o, "history");
    member_list(o, "unixSeconds");
    for (size_t row = 0; row < history_rows(h); row++) {
        member_item(o);
        buf_printf(o, "%u", history_seconds(h, row));
    }
    buf_puts(o, "]");
    for (size_t column = 0; names[column]; column++)
        member_history_column(o, names[column], h, column);
    buf_puts(o, "}");
}

/* ---- Highest and lowest scores ---- */

/* Puts series i into a list of the n so far with the largest value times `sign`, of which it keeps `most`. */
static void rank_one(const double *values, size_t *list, size_t n, size_t most, size_t i, double sign)
{
    size_t at = size_min(n, most - 1);

    if (n == most && !(sign * values[i] > sign * values[list[at]]))
        return;
    for (; at > 0 && sign * values[i] > sign * values[list[at - 1]]; at--)
        list[at] = list[at - 1];
    list[at] = i;
}

void rank_scores(const struct batch *b, size_t most, struct ranking *ret)
{
    size_t count = b ? series_count(b->set) : 0;

    *ret = (struct ranking){0};
    for (size_t i = 0; i < count; i++) {
        if (isnan(b->values[i])) {
            ret->nans++;
            continue;
        }
        rank_one(b->values, ret->highest, ret->n, most, i, 1);
        rank_one(b->values, ret->lowest, ret->n, most, i, -1);
        ret->numbers++;
        ret->n = size_min(ret->numbers, most);
    }
}

const char *const shown_label_names[] = {"node", "namespace", "app", "pod", "container", "device", "meta"};

void shown_labels(const struct batch *b, size_t series, struct str ret[SHOWN_LABELS])
{
    static const enum ds_label order[SHOWN_LABELS] = {DS_NODE,      DS_NAMESPACE, DS_APP, DS_POD,
                                                      DS_CONTAINER, DS_DEVICE,    DS_META};
    struct str values[DS_LABELS];

    series_labels(b->set, series, values);
    for (unsigned i = 0; i < SHOWN_LABELS; i++)
        ret[i] = values[order[i]];
}

/* ---- Columns for a terminal ---- */

enum { GAP = 2, WIDEST = 60, CELL_BYTES = 1 << 20 };

static size_t grid_chars(struct str s)
{
    size_t chars = 0;

    for (size_t at = 0; at < s.n; chars++)
        at += size_max(utf8_char((struct str){s.p + at, s.n - at}), 1);
    return chars;
}

void grid_clean(struct buf *o, struct str s)
{
    while (s.n) {
        size_t n = utf8_char(s);
        struct str c = {s.p, n};

        if (*s.p == '\n' || *s.p == '\t')
            c = STR(" ");
        else if (n == 0 || utf8_is_control(s.p, n))
            c = STR("\xef\xbf\xbd");
        buf_put_str(o, c);
        s.p += size_max(n, 1);
        s.n -= size_max(n, 1);
    }
}

void grid_cut(struct buf *o, struct str s, size_t chars)
{
    bool whole = grid_chars(s) <= chars;
    size_t at = 0;

    for (size_t i = whole ? 0 : 1; at < s.n && (whole || i < chars); i++)
        at += size_max(utf8_char((struct str){s.p + at, s.n - at}), 1);
    buf_put_str(o, (struct str){s.p, at});
    if (!whole)
        buf_puts(o, "…");
}

struct grid {
    struct str cells[1 + RANKED_MAX][SHOWN_LABELS]; /* the names first; those that no row has are empty */
    size_t widths[SHOWN_LABELS];
};

static void grid_add_labels(struct grid *g, size_t row, const struct batch *b, size_t series)
{
    shown_labels(b, series, g->cells[row]);
    for (size_t i = 0; i < SHOWN_LABELS; i++)
        if (g->cells[row][i].n) {
            g->cells[0][i] = str_of(shown_label_names[i]);
            g->widths[i] = size_max(g->widths[i], size_max(g->cells[0][i].n, grid_chars(g->cells[row][i])));
            g->widths[i] = size_min(g->widths[i], WIDEST);
        }
}

/* The columns of labels, which start at `indent`. */
static void grid_put_row(struct buf *o, const struct grid *g, size_t row, size_t indent)
{
    buf_printf(o, "%*s", (int)indent, "");
    for (size_t i = 0; i < SHOWN_LABELS; i++) {
        BUF_AUTO(text, CELL_BYTES);

        if (!g->cells[0][i].n)
            continue;
        grid_clean(&text, g->cells[row][i]);
        for (size_t k = 0; row == 0 && k < text.n; k++)
            text.p[k] = (char)toupper((unsigned char)text.p[k]);
        grid_cut(o, buf_str(&text), g->widths[i]);
        buf_printf(o, "%*s", (int)(g->widths[i] - size_min(grid_chars(buf_str(&text)), g->widths[i]) + GAP),
                   "");
    }
}

void grid_scores(struct buf *o, const struct batch *b, const size_t *series, size_t n, size_t indent)
{
    struct grid g = {0};
    char scores[RANKED_MAX][NUM_MAX];
    size_t whole = 0; /* the most characters before a point */

    for (size_t row = 0; row < n; row++) {
        grid_add_labels(&g, row + 1, b, series[row]);
        scores[row][num_put_double(scores[row], b->values[series[row]])] = '\0';
        whole = size_max(whole, strcspn(scores[row], "."));
    }
    grid_put_row(o, &g, 0, indent);
    buf_puts(o, "SCORE\n");
    for (size_t row = 0; row < n; row++) {
        grid_put_row(o, &g, row + 1, indent);
        buf_printf(o, "%*s%s\n", (int)(whole - strcspn(scores[row], ".")), "", scores[row]);
    }
}

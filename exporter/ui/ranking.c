#include "exporter/ui/ranking.h"

#include "exporter/base/buf.h"
#include "exporter/base/text.h"
#include "exporter/num/num.h"

#include <ctype.h>
#include <math.h>

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

size_t shown_labels(const struct batch *b, size_t series, struct shown_label ret[SHOWN_LABELS])
{
    static const enum ds_label order[SHOWN_LABELS] = {DS_NODE,      DS_NAMESPACE, DS_APP, DS_POD,
                                                      DS_CONTAINER, DS_DEVICE,    DS_META};
    struct str values[DS_LABELS];
    size_t n = 0;

    series_labels(b->set, series, values);
    for (unsigned i = 0; i < SHOWN_LABELS; i++)
        if (values[order[i]].n)
            ret[n++] = (struct shown_label){i, ds_label_sources[order[i]].p, values[order[i]]};
    return n;
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

/* C0, DEL, C1; U+061C, U+200E, U+200F, U+2028 to U+202E, U+2066 to U+2069. */
static bool is_unfit(const unsigned char *p, size_t n)
{
    if (n == 1)
        return p[0] < 0x20 || p[0] == 0x7f;
    if (n == 2)
        return (p[0] == 0xc2 && p[1] < 0xa0) || (p[0] == 0xd8 && p[1] == 0x9c);
    if (n == 3 && p[0] == 0xe2)
        return (p[1] == 0x80 && (p[2] == 0x8e || p[2] == 0x8f || (p[2] >= 0xa8 && p[2] <= 0xae))) ||
               (p[1] == 0x81 && p[2] >= 0xa6 && p[2] <= 0xa9);
    return n == 0;
}

void grid_clean(struct out *o, struct str s)
{
    while (s.n) {
        size_t n = utf8_char(s);
        struct str c = {s.p, n};

        if (*s.p == '\n' || *s.p == '\t')
            c = STR(" ");
        else if (is_unfit((const unsigned char *)s.p, n))
            c = STR("\xef\xbf\xbd");
        out_str(o, c);
        s.p += size_max(n, 1);
        s.n -= size_max(n, 1);
    }
}

void grid_cut(struct out *o, struct str s, size_t chars)
{
    bool whole = grid_chars(s) <= chars;
    size_t at = 0;

    for (size_t i = whole ? 0 : 1; at < s.n && (whole || i < chars); i++)
        at += size_max(utf8_char((struct str){s.p + at, s.n - at}), 1);
    out_str(o, (struct str){s.p, at});
    if (!whole)
        out_puts(o, "…");
}

struct grid {
    struct str cells[1 + RANKED_MAX][SHOWN_LABELS]; /* the names first; those that no row has are empty */
    size_t widths[SHOWN_LABELS];
};

static void grid_add_labels(struct grid *g, size_t row, const struct batch *b, size_t series)
{
    struct shown_label labels[SHOWN_LABELS];
    size_t n = shown_labels(b, series, labels);

    for (size_t i = 0; i < n; i++) {
        unsigned place = labels[i].place;
        size_t wide = size_max(strlen(labels[i].name), grid_chars(labels[i].value));

        g->cells[0][place] = str_of(labels[i].name);
        g->cells[row][place] = labels[i].value;
        g->widths[place] = size_max(g->widths[place], size_min(wide, WIDEST));
    }
}

/* The columns of labels, which start at `indent`. */
static void grid_put_row(struct out *o, const struct grid *g, size_t row, size_t indent)
{
    out_printf(o, "%*s", (int)indent, "");
    for (size_t i = 0; i < SHOWN_LABELS; i++) {
        BUF_AUTO(text, CELL_BYTES);
        struct out cell = out_begin(&text);

        if (!g->cells[0][i].n)
            continue;
        grid_clean(&cell, g->cells[row][i]);
        for (size_t k = 0; row == 0 && k < text.n; k++)
            text.p[k] = (char)toupper((unsigned char)text.p[k]);
        grid_cut(o, buf_str(&text), g->widths[i]);
        out_printf(o, "%*s", (int)(g->widths[i] - size_min(grid_chars(buf_str(&text)), g->widths[i]) + GAP),
                   "");
    }
}

void grid_scores(struct out *o, const struct batch *b, const size_t *series, size_t n, size_t indent)
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
    out_puts(o, "SCORE\n");
    for (size_t row = 0; row < n; row++) {
        grid_put_row(o, &g, row + 1, indent);
        out_printf(o, "%*s%s\n", (int)(whole - strcspn(scores[row], ".")), "", scores[row]);
    }
}

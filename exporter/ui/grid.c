/* Lays out columns by characters, not bytes. Owns nothing. */
#include "exporter/ui/grid.h"

#include "exporter/base/utf8.h"
#include "exporter/num/num.h"
#include "exporter/ui/ranking.h"

#include <ctype.h>

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

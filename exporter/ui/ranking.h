/* A batch's highest and lowest scores, and the labels that tell its series apart. */
#ifndef DS_UI_RANKING_H
#define DS_UI_RANKING_H

#include "exporter/metric/series.h"
#include "exporter/ui/out.h"

enum { RANKED_MAX = 20 };

/* Places of series in their set. Equal scores keep the set's order; NaN is in neither list. */
struct ranking {
    size_t numbers, nans; /* how many scores are a number, and how many are NaN */
    size_t n;             /* length of each list: `numbers`, or the most that were asked for */
    size_t highest[RANKED_MAX], lowest[RANKED_MAX];
};

/* One pass over the values. most <= RANKED_MAX; b may be NULL. */
void rank_scores(const struct batch *b, size_t most, struct ranking *ret);

/* A label that is set, other than those that all series of a scorer share by design. */
struct shown_label {
    unsigned place;   /* in the order below, whether the others are set or not */
    const char *name; /* without ds_ */
    struct str value;
};
enum { SHOWN_LABELS = 7 };

/* In the order in which people look for a thing: node, namespace, app, pod, container, device, meta. The
 * values belong to the set. Returns how many. */
size_t shown_labels(const struct batch *b, size_t series, struct shown_label ret[SHOWN_LABELS]);

/* ---- Scores in columns for a terminal. Widths are counted in characters, and no label can move the cursor
 * or change the direction of writing ---- */

/* Appends s with control characters and bidirectional controls replaced by U+FFFD; line ends and tabs become
 * spaces. */
void grid_clean(struct out *o, struct str s);
/* Appends at most `chars` characters of s; the last is "…" if s was cut. */
void grid_cut(struct out *o, struct str s, size_t chars);
/* Appends a header and n lines (RANKED_MAX at most). Labels are cut to 60 characters. */
void grid_scores(struct out *o, const struct batch *b, const size_t *series, size_t n, size_t indent);

#endif

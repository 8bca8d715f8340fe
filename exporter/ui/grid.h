/* Scores in columns for a terminal. Widths are counted in characters, and no label can move the cursor or
 * change the direction of writing. */
#ifndef DS_UI_GRID_H
#define DS_UI_GRID_H

#include "exporter/ui/out.h"
#include "exporter/ui/ranking.h"

size_t grid_chars(struct str s);
/* Appends s with control characters and bidirectional controls replaced by U+FFFD; line ends and tabs become
 * spaces. */
void grid_clean(struct out *o, struct str s);
/* Appends at most `chars` characters of s; the last is "…" if s was cut. */
void grid_cut(struct out *o, struct str s, size_t chars);
/* Appends a header and n lines (RANKED_MAX at most). Labels are cut, to three characters at least, until
 * each line has at most `width` characters; 0 for no limit. */
void grid_scores(struct out *o, const struct batch *b, const size_t *series, size_t n, size_t indent,
                 size_t width);

#endif

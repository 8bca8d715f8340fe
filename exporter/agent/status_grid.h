/* Scores in columns for a terminal. Columns are counted in characters, and nothing in them can move the
 * cursor or turn the direction of writing. */
#ifndef DS_AGENT_STATUS_GRID_H
#define DS_AGENT_STATUS_GRID_H

#include "exporter/agent/status_text.h"

size_t grid_chars(struct str s);
/* Appends s with control characters, and those that turn the direction of writing, replaced by U+FFFD; line
 * ends and tabs become spaces. */
void grid_clean(struct out *o, struct str s);
/* Appends at most `chars` characters of s; the last is "…" where more had been. */
void grid_cut(struct out *o, struct str s, size_t chars);
/* A header and n lines (RANKED_MAX at most), of which none is longer than `width` characters if the labels
 * can be cut so far; 0 for no limit. */
void grid_scores(struct out *o, const struct batch *b, const size_t *series, size_t n, size_t indent,
                 size_t width);

#endif

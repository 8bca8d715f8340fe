/* Scores in columns for a terminal, whose cursor and direction of writing no label can change. Pure; any
 * thread. */
#pragma once

#include "exporter/base/buf.h"
#include "exporter/metric/batch.h"

/* Appends s with U+FFFD for control and bidirectional characters, and spaces for line ends and tabs. */
void grid_clean(struct buf *o, struct str s);
/* Appends at most `chars` characters of s; the last is "…" if s was cut. */
void grid_cut(struct buf *o, struct str s, size_t chars);
/* Appends a header and n lines (RANKED_MAX at most). Labels are cut to 60 characters. */
void grid_scores(struct buf *o, const struct batch *b, const size_t *series, size_t n, size_t indent);

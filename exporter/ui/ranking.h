/* A batch's highest and lowest scores, and the labels that tell its series apart. Pure; any thread. */
#pragma once

#include "exporter/metric/batch.h"

enum { RANKED_MAX = 20 };

/* Places of series in their set. Equal scores keep the set's order; NaN is in neither list. */
struct ranking {
    size_t numbers, nans; /* how many scores are a number, and how many are NaN */
    size_t n;             /* length of each list: `numbers`, or the most that were asked for */
    size_t highest[RANKED_MAX], lowest[RANKED_MAX];
};

/* One pass over the values. most <= RANKED_MAX; b may be NULL. */
void rank_scores(const struct batch *b, size_t most, struct ranking *ret);

/* The labels that tell a scorer's series apart, in the order in which people look: node, namespace, ... */
enum { SHOWN_LABELS = 7 };
extern const char *const shown_label_names[SHOWN_LABELS];

/* The values, which belong to the set; empty if not set. */
void shown_labels(const struct batch *b, size_t series, struct str ret[SHOWN_LABELS]);

/* Finds the few scores that people look at first, in one pass. Owns nothing. */
#include "exporter/ui/ranking.h"

#include "exporter/metric/series.h"

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

#include "exporter/ui/ranking.h"

#include <math.h>

/* Puts series i into a list of the n best so far, of which it keeps `most`. */
static void rank_one(const double *values, size_t *list, size_t n, size_t most, size_t i, bool high)
{
    size_t at = n;

    if (n == most) {
        double worst = values[list[n - 1]];
        if (high ? !(values[i] > worst) : !(values[i] < worst))
            return;
        at = n - 1;
    }
    for (; at > 0; at--) {
        double before = values[list[at - 1]];
        if (high ? !(values[i] > before) : !(values[i] < before))
            break;
        list[at] = list[at - 1];
    }
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
        rank_one(b->values, ret->highest, ret->n, most, i, true);
        rank_one(b->values, ret->lowest, ret->n, most, i, false);
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

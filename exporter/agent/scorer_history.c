#include "exporter/agent/scorer_history.h"

#include "exporter/base/clock.h"
#include "exporter/metric/series.h"
#include "exporter/score/error.h"
#include "exporter/score/source.h"
#include "exporter/score/summary.h"

#include <math.h>

enum { FETCH, PERFORM, LOWEST, MEAN, HIGHEST, COLUMNS };

const char *const scorer_history_names[] = {"fetchSeconds", "performSeconds", "lowest",
                                            "mean",         "highest",        NULL};

/* Of what is a number. */
static void history_scores(double ret[COLUMNS], const struct batch *b)
{
    double sum = 0;
    size_t n = 0;

    for (size_t i = 0; i < series_count(b->set); i++) {
        if (!isfinite(b->values[i]))
            continue;
        sum += b->values[i];
        ret[LOWEST] = n && ret[LOWEST] < b->values[i] ? ret[LOWEST] : b->values[i];
        ret[HIGHEST] = n && ret[HIGHEST] > b->values[i] ? ret[HIGHEST] : b->values[i];
        n++;
    }
    if (n)
        ret[MEAN] = sum / (double)n;
}

void scorer_history_add(struct history **h, const struct summary *s, const struct round_result *r,
                        unix_ms now)
{
    double values[COLUMNS] = {NAN, NAN, NAN, NAN, NAN};

    if (r->fetched && s->source.type != SOURCE_NONE)
        values[FETCH] = r->fetch_s;
    if (r->performed)
        values[PERFORM] = r->perform_s;
    if (r->error == ROUND_OK)
        history_scores(values, r->batch);
    history_add(h, COLUMNS, now, values);
}

#include "exporter/tsdb/tsdb_metrics.h"

void tsdb_set_metrics(struct tsdb *t, struct metrics *m)
{
    struct tsdb_stats s;

    tsdb_stats(t, &s);
    metric_set(m, METRIC_OTLP_SERIES, LV_NONE, (double)s.series);
    metric_set(m, METRIC_OTLP_SERIES_LIMIT, LV_NONE, (double)s.max_series);
    metric_set(m, METRIC_OTLP_MEMORY, LV_NONE, (double)s.bytes);
    metric_set(m, METRIC_OTLP_MEMORY_LIMIT, LV_NONE, (double)s.max_bytes);
    metric_set(m, METRIC_OTLP_SAMPLES, LV_NONE, (double)s.samples);
    metric_set(m, METRIC_OTLP_RANGE, LV_NONE, (double)s.age_ms / 1000);
    metric_set(m, METRIC_OTLP_EVICTED, LV_NONE, (double)s.samples_evicted);
}

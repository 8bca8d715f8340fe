/* The store's metrics. */
#ifndef DS_TSDB_TSDB_METRICS_H
#define DS_TSDB_TSDB_METRICS_H

#include "exporter/metric/metrics.h"
#include "exporter/tsdb/tsdb.h"

/* Loop thread. */
void tsdb_set_metrics(struct tsdb *t, struct metrics *m);

#endif

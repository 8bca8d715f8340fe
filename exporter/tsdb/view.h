/* Private to tsdb*.c and view.c: putting a view together. */
#ifndef DS_TSDB_VIEW_H
#define DS_TSDB_VIEW_H

#include "exporter/tsdb/tsdb.h"
#include "exporter/tsdb/tsdb_internal.h"

MUST_USE int view_new(struct tsdb_view **ret, int64_t from_ms, int64_t to_ms, uint64_t max_bytes);
/* Lock held. Copies the labels of a series and its chunks of the time range, if it has any. Adds the
 * number of blocks that it read to *blocks. -EFBIG, -ENOMEM. */
MUST_USE int view_add(struct tsdb_view *v, const struct tsdb *t, const struct series *s, uint32_t *blocks);

#endif

/* Private to tsdb*.c and view.c: putting a view together. */
#ifndef DS_TSDB_VIEW_H
#define DS_TSDB_VIEW_H

#include "exporter/tsdb/tsdb.h"
#include "exporter/tsdb/tsdb_internal.h"

MUST_USE int view_new(struct tsdb_view **ret, int64_t from_ms, int64_t to_ms, uint64_t max_bytes);
/* Lock held. Copies the labels of a series and its chunks of the time range, if it has any. Adds the
 * number of blocks that it read to *blocks. -EFBIG, -ENOMEM. */
MUST_USE int view_add(struct tsdb_view *v, const struct tsdb *t, const struct series *s, uint32_t *blocks);
/* Takes the lock, and adds series with numbers greater than *at, as many as may be at a time; sets *at to the
 * number of the last one looked at. A reader (struct tsdb) may call it. -EFBIG, -ENOMEM. */
MUST_USE int view_add_some(struct tsdb_view *v, struct tsdb *t, uint32_t *at);
/* The bytes of the chunks of the i-th series: each a head and view_stream_bytes(). */
struct str view_chunks(const struct tsdb_view *v, size_t i, uint32_t *ret_n);
/* The bytes of a stream, and CHUNK_PAD or more. */
size_t view_stream_bytes(const struct chunk_head *head);

#endif

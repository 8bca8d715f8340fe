/* The store's series in a file, so that they outlive a restart. README.md describes the format. */
#ifndef DS_TSDB_SNAPSHOT_H
#define DS_TSDB_SNAPSHOT_H

#include "exporter/tsdb/tsdb.h"

/* Writes all series to DIR/otlp-series, by way of another file, so that there is always a whole one. Makes
 * DIR if it is missing. Takes the store's lock for a few series at a time. Blocks on the disk; one thread at
 * a time. A negative errno. */
MUST_USE int snapshot_save(struct tsdb *t, const char *dir);

struct snapshot_loaded {
    uint64_t series, samples; /* samples that are too old are not counted */
};

/* Appends what the file holds, up to its end or to the first damage. Keeps samples for at least as long as
 * the store that was saved did, until tsdb_set_age(). 0 also without a file. -EBADMSG if the file is damaged
 * or of another version; a negative errno of reading. *ret is set in any case. */
MUST_USE int snapshot_load(struct tsdb *t, const char *dir, struct snapshot_loaded *ret);

#endif

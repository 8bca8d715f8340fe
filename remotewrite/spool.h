/* The files of one endpoint's spool: segments of records, read positions, and active series.
 *
 *     DIR/lock  DIR/000000000001.seg ...  DIR/position.a  DIR/position.b  DIR/active.HASH
 *
 * Sender thread only. A failed write is reported, and the next one is tried again; the caller keeps what
 * was not written. */
#ifndef DS_REMOTEWRITE_SPOOL_H
#define DS_REMOTEWRITE_SPOOL_H

#include "exporter/base/buf.h"
#include "remotewrite/segment.h"

struct spool;
struct spool_segment;

/* Creates the folder if needed and locks it. -EBUSY if another process holds the lock, or another errno. */
MUST_USE int spool_new(struct spool **ret, const char *dir, size_t segment_bytes);
struct spool *spool_free(struct spool *s);
DEFINE_CLEANUP(struct spool, spool_free)

/* Where a record is. */
struct spool_place {
    struct spool_segment *segment; /* NULL: nowhere */
    uint32_t record;               /* offset of its head */
    uint32_t at, n;                /* offset and length of its payload */
};

struct spool_found {
    uint64_t damaged_bytes, damaged_places;
    uint64_t torn_bytes;
};

/* Reads all segments, oldest first, and calls on_record for each intact record: it returns 1 to keep the
 * record, 0 to discard it, or -ENOMEM. Call it once, before anything else. */
MUST_USE int spool_recover(struct spool *s,
                           int (*on_record)(void *arg, const struct record_head *h, struct spool_place at),
                           void *arg, struct spool_found *ret);
/* Appends a record and counts it as live. On error, a negative errno, nothing is stored. */
MUST_USE int spool_append(struct spool *s, const struct record_head *h, struct str payload,
                          struct spool_place *ret);
/* Syncs what was appended to disk. On failure it may not be there. */
MUST_USE int spool_sync(struct spool *s);
/* Appends the payload to `into` after verifying its checksum. -EBADMSG if it is damaged. */
MUST_USE int spool_read(struct spool *s, struct spool_place at, struct buf *into);
/* The record is no longer needed; segments without live records are removed. */
void spool_forget(struct spool *s, struct spool_place at);
/* Bytes of all segments; the oldest segment or NULL. */
uint64_t spool_bytes(const struct spool *s);
struct spool_segment *spool_oldest(const struct spool *s);
/* Removes the current segment if it has no live records, to make room; else false. */
bool spool_shrink(struct spool *s);

/* Small files beside the segments; `name` has no slash. A write goes to a temporary file, which is synced
 * and renamed. */
MUST_USE int spool_write_file(struct spool *s, const char *name, struct str bytes);
MUST_USE int spool_read_file(struct spool *s, const char *name, struct buf *into);
void spool_remove_file(struct spool *s, const char *name);
/* Calls fn for each file whose name has this prefix, in no order, until it returns other than 0. */
MUST_USE int spool_each_file(struct spool *s, const char *prefix, int (*fn)(void *arg, const char *name),
                             void *arg);
/* Writes one of the two position files, 0 or 1, in place. */
MUST_USE int spool_put_position(struct spool *s, unsigned which, struct str bytes, bool wait_for_disk);

#endif

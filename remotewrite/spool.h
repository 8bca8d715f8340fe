/* The files of one endpoint's spool: segments, and how far each lane has been read.
 *
 *     DIR/lock  DIR/000000000001.seg ...  DIR/position.a  DIR/position.b  DIR/active.HASH
 *
 * Belongs to the sender thread. After a failed write the spool says so and is tried again; what could not be written is the
 * caller's to keep. */
#ifndef DS_REMOTEWRITE_SPOOL_H
#define DS_REMOTEWRITE_SPOOL_H

#include "remotewrite/segment.h"

struct spool;
struct spool_segment;

/* Makes the folder where needed and locks it. -EBUSY when another process has it, or what the system says. */
MUST_USE int spool_new(struct spool **ret, const char *dir, size_t segment_bytes);
struct spool *spool_free(struct spool *s);
DEFINE_CLEANUP(struct spool, spool_free)
const char *spool_dir(const struct spool *s);

/* A record that is in a segment. */
struct spool_place {
    struct spool_segment *segment; /* NULL: nowhere */
    uint32_t record;               /* where its head begins */
    uint32_t at, n;                /* the payload */
};

struct spool_found {
    uint64_t damaged_bytes, damaged_places;
    uint64_t torn_bytes;
};

/* Reads all segments, oldest first; each whole record is shown to `on_record`, which says whether it is wanted (1), is not
 * (0) or -ENOMEM. A torn tail is cut off. Once, before anything else. */
MUST_USE int spool_recover(struct spool *s,
                           int (*on_record)(void *arg, const struct record_head *h, struct spool_place at),
                           void *arg, struct spool_found *ret);
/* Appends a record and counts it as live. Negative errno: it is nowhere. */
MUST_USE int spool_append(struct spool *s, const struct record_head *h, struct str payload,
                          struct spool_place *ret);
/* What was appended is on the disk. On failure it may not be. */
MUST_USE int spool_sync(struct spool *s);
/* Appends the payload to `into`, checksum verified. -EBADMSG when it is damaged. */
MUST_USE int spool_read(struct spool *s, struct spool_place at, struct buf *into);
/* The record is not needed any more; segments without live records go. */
void spool_forget(struct spool *s, struct spool_place at);
/* Bytes of all segment files; the oldest of these, NULL for none. */
uint64_t spool_bytes(const struct spool *s);
struct spool_segment *spool_oldest(const struct spool *s);
/* Gives up the current segment if it holds nothing wanted: room for what is to come. False when it does. */
bool spool_shrink(struct spool *s);

/* Small whole files beside the segments. `name` has no slash. Written beside the old one, synced, renamed. */
MUST_USE int spool_write_file(struct spool *s, const char *name, struct str bytes);
MUST_USE int spool_read_file(struct spool *s, const char *name, struct buf *into);
void spool_remove_file(struct spool *s, const char *name);
/* Calls fn for each file whose name starts so, in no order, until it returns other than 0. */
MUST_USE int spool_each_file(struct spool *s, const char *prefix, int (*fn)(void *arg, const char *name),
                             void *arg);
/* One of the two position files (which: 0 or 1), written in place. */
MUST_USE int spool_put_position(struct spool *s, unsigned which, struct str bytes, bool wait_for_disk);

#endif

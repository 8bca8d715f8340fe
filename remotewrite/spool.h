/* The files of one endpoint's spool: segments of records, read positions, and active series.
 *
 *     DIR/lock  DIR/wanted  DIR/000000000001.seg ...  DIR/position.a  DIR/position.b  DIR/active.HASH
 *
 * A segment that was not read well is never deleted. One that cannot be read (EACCES, EIO, EMFILE, ...)
 * stays and is tried again; its read positions are kept in NUMBER.done, because those of the spool go on.
 * A damaged one is renamed to NUMBER.seg.damaged when the records that can be read are no longer needed, one
 * of another version to NUMBER.seg.unknown at once. The oldest of these go when they are more than
 * SPOOL_ASIDE_FILES, or larger than four segments.
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

/* The lock is held by an agent that no longer leads: asks it to close the spool. */
void spool_ask_for(const char *dir);
/* Whether another process has asked since the spool was opened. */
bool spool_is_asked_for(const struct spool *s);

/* Where a record is. */
struct spool_place {
    struct spool_segment *segment; /* NULL: nowhere */
    uint32_t record;               /* offset of its head */
    uint32_t at, n;                /* offset and length of its payload */
};

enum { SPOOL_ASIDE_FILES = 64, SPOOL_ERROR_BYTES = 512 };

struct spool_files {
    size_t n;
    uint64_t bytes;
};

struct spool_stats {
    uint64_t bytes;                         /* of all segments, those below included */
    struct spool_files unread;              /* cannot be read at the moment */
    struct spool_files damaged, unknown;    /* set aside */
    uint64_t damaged_bytes, damaged_places; /* found since the spool was opened */
    uint64_t torn_bytes;
    char error[SPOOL_ERROR_BYTES]; /* why a segment is unread; empty if none is */
};

/* Who takes the records of the segments that are read. */
struct spool_reader {
    /* A segment with read positions of its own follows, instead of those of the spool; 0 or -ENOMEM. */
    int (*on_positions)(void *arg, struct str positions);
    /* An intact record: 1 to keep it, 0 to discard it, or -ENOMEM. */
    int (*on_record)(void *arg, const struct record_head *h, struct spool_place at);
    /* A record that is lost to damage: its head, see segment_next_lost(). */
    void (*on_lost)(void *arg, const struct spool_segment *segment, const struct record_head *h);
    /* The segment became unread: forgets its records without spool_forget(). */
    void (*on_unread)(void *arg, const struct spool_segment *segment);
    /* The current read positions of the spool (NULL), or in a segment with its own. -ENOMEM. */
    int (*positions)(void *arg, const struct spool_segment *segment, struct buf *into);
    void *arg;
};

/* Reads all segments, oldest first. Call it once, before anything else. On error nothing was removed. */
MUST_USE int spool_recover(struct spool *s, const struct spool_reader *reader);
/* Tries to read the unread segments again. The number of those that were read. */
size_t spool_retry(struct spool *s, const struct spool_reader *reader);
/* A record of the segment could not be read: the segment becomes unread. -ENOMEM: nothing has changed. */
MUST_USE int spool_set_unread(struct spool *s, struct spool_segment *segment,
                              const struct spool_reader *reader, int error);
void spool_stats(const struct spool *s, struct spool_stats *ret);
/* Appends a record and counts it as live. On error, a negative errno, nothing is stored. */
MUST_USE int spool_append(struct spool *s, const struct record_head *h, struct str payload,
                          struct spool_place *ret);
/* Syncs what was appended to disk. On failure it may not be there. */
MUST_USE int spool_sync(struct spool *s);
/* Appends the payload to `into` after verifying its checksum. -EBADMSG if it is damaged, or its file gone. */
MUST_USE int spool_read(struct spool *s, struct spool_place at, struct buf *into);
/* The record is no longer needed; segments without live records are removed. */
void spool_forget(struct spool *s, struct spool_place at);
/* Bytes of the segments with records in use; of those unread or set aside; the oldest segment or NULL. */
uint64_t spool_bytes(const struct spool *s);
uint64_t spool_idle_bytes(const struct spool *s);
struct spool_segment *spool_oldest(const struct spool *s);
/* Removes the current segment if it has no live records, to make room; else false. */
bool spool_shrink(struct spool *s);
/* Removes segments without records in use, keeps the limits of files set aside, and notes those that someone
 * has removed. */
void spool_trim(struct spool *s);
/* False if the folder was removed, or replaced by another one. */
bool spool_is_there(struct spool *s);
/* A segment whose file was removed, or NULL; it is no longer written to. */
struct spool_segment *spool_missing(struct spool *s);
/* True for a segment with read positions of its own. */
bool spool_is_late(const struct spool_segment *segment);
/* Stores those positions. On error the positions of the spool must not be stored either. */
MUST_USE int spool_save_late(struct spool *s, const struct spool_reader *reader);

/* Small files beside the segments; `name` has no slash. A write goes to a temporary file, which is synced
 * if wait_for_disk, and renamed. */
MUST_USE int spool_write_file(struct spool *s, const char *name, struct str bytes, bool wait_for_disk);
MUST_USE int spool_read_file(struct spool *s, const char *name, struct buf *into);
void spool_remove_file(struct spool *s, const char *name);
/* Calls fn for each file whose name has this prefix, in no order, until it returns other than 0. */
MUST_USE int spool_each_file(struct spool *s, const char *prefix, int (*fn)(void *arg, const char *name),
                             void *arg);
/* Writes one of the two position files, 0 or 1, in place. */
MUST_USE int spool_put_position(struct spool *s, unsigned which, struct str bytes, bool wait_for_disk);

#endif

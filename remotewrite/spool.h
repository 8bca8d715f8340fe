/* The files of one endpoint's spool: segments of records, read positions, and active series.
 *
 *     DIR/lock  DIR/wanted  DIR/000000000001.seg ...  DIR/position.a  DIR/position.b  DIR/active
 *
 * While a segment cannot be read (EACCES, EIO, EMFILE, ...), the spool is not used. A damaged one is renamed
 * to NUMBER.seg.damaged when its intact records are no longer needed, one of another version to
 * NUMBER.seg.unknown at once. Sender thread only. */
#pragma once

#include "remotewrite/format.h"

#include <sys/queue.h>

enum { SPOOL_ASIDE_FILES = 64, SPOOL_ERROR_BYTES = 512, SPOOL_NAME_BYTES = 40 };

struct spool_segment {
    TAILQ_ENTRY(spool_segment) entry; /* by name */
    char name[SPOOL_NAME_BYTES];      /* of the file */
    uint64_t number;                  /* in its name; those of newer segments are higher */
    uint32_t size;
    size_t live;  /* records still needed */
    bool damaged; /* set aside when it is no longer needed */
};
TAILQ_HEAD(spool_segments, spool_segment);

struct spool_files {
    size_t n;
    uint64_t bytes;
};

struct spool_stats {
    uint64_t bytes;                         /* of all segments, those below included */
    struct spool_files unread;              /* the segment that cannot be read */
    struct spool_files damaged, unknown;    /* set aside */
    uint64_t damaged_bytes, damaged_places; /* found since the spool was opened */
    uint64_t torn_bytes;
    char error[SPOOL_ERROR_BYTES]; /* why it cannot be read; empty if all can */
};

struct spool {
    char *dir;
    int dir_fd, lock_fd;
    size_t segment_bytes;
    struct spool_segments segments;
    struct spool_segment *current; /* the segment being written; NULL: none yet */
    int fd;                        /* of current */
    int position_fd[2];
    uint64_t bytes; /* of segments */
    uint64_t next_number;
    int read_error;           /* negative errno: a segment cannot be read */
    struct spool_stats found; /* damage, and what was set aside */
    bool dirty, folder_dirty, sync_failed;
};

/* Creates the folder if needed, locks it and lists its segments. -EBUSY: another process holds the lock. */
MUST_USE int spool_new(struct spool **ret, const char *dir, size_t segment_bytes);
struct spool *spool_free(struct spool *s);
DEFINE_CLEANUP(struct spool, spool_free)

/* The lock is held by an agent that no longer leads: asks it to close the spool. */
void spool_ask_for(const char *dir);
/* Whether another process has asked since the spool was opened. */
bool spool_is_asked_for(const struct spool *s);

/* Appends the content of a segment to `bytes`. -ENOENT: it is gone or was set aside, and is freed. Another
 * errno: it cannot be read, as spool_stats() tells from now on. */
MUST_USE int spool_load(struct spool *s, struct spool_segment *segment, struct buf *bytes);

/* All zero for NULL. */
struct spool_stats spool_stats(const struct spool *s);
/* Appends a record, and counts it as live in its segment. */
MUST_USE int spool_append(struct spool *s, const struct record_head *h, struct str payload,
                          struct spool_segment **ret_segment, uint32_t *ret_at);
/* Syncs what was appended to disk. On failure it may not be there. */
MUST_USE int spool_sync(struct spool *s);
/* Reads the payload of a record of n bytes into an empty buffer. -EBADMSG: damaged, or the file is gone. */
MUST_USE int spool_read(struct spool *s, struct spool_segment *segment, uint32_t at, size_t n,
                        struct buf *into);
/* The record is no longer needed; segments without live records are removed. */
void spool_forget(struct spool *s, struct spool_segment *segment);
/* Bytes of the segments that are set aside. */
uint64_t spool_idle_bytes(const struct spool *s);
/* Removes the current segment if it has no live records, to make room; else false. */
bool spool_shrink(struct spool *s);
/* Removes segments without records in use, and keeps the limits of files set aside. */
void spool_trim(struct spool *s);
/* False if the folder was removed, or replaced by another one. */
bool spool_is_there(struct spool *s);

/* Appends to a file of `at` bytes, or creates it. -ESTALE: another size. A failure leaves it as it was. */
MUST_USE int spool_append_file(struct spool *s, const char *name, size_t at, struct str bytes);
/* Syncs the file that was appended to. If it is not called `name` yet, it replaces the file that is. */
MUST_USE int spool_commit_file(struct spool *s, const char *appended, const char *name);
MUST_USE int spool_read_file(struct spool *s, const char *name, struct buf *into);
void spool_remove_file(struct spool *s, const char *name);

/* Reads the newer intact position file. ret->next is NULL if there is none; an errno if none can be read. */
MUST_USE int spool_read_positions(struct spool *s, struct buf *into, struct position_reader *ret);
/* Writes one of the two in place. */
MUST_USE int spool_put_position(struct spool *s, unsigned which, struct str bytes, bool wait_for_disk);

/* The segments of one endpoint's spool, and how far they were delivered. Endpoint's thread; called by
 * the queue.
 *
 *     000000000001.seg ...       records, see format.h
 *     position.a position.b position.c
 *                                read positions, written in turn
 *     lock wanted                see folder.h
 *     active active.changes      see active.h
 *
 * While a segment cannot be read (EACCES, EIO, EMFILE, ...), the spool is not used. A damaged one is renamed
 * to NUMBER.seg.damaged when its intact records are no longer needed, one of another version to
 * NUMBER.seg.unknown at once. */
#pragma once

#include "remotewrite/folder.h"
#include "remotewrite/format.h"

#include <sys/queue.h>

enum { SPOOL_ASIDE_FILES = 64, SPOOL_ERROR_BYTES = 512, SPOOL_NAME_BYTES = 40, POSITION_FILES = 3 };

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
    struct folder *folder; /* open; not owned */
    size_t segment_bytes;
    struct spool_segments segments;
    struct spool_segment *current; /* the segment being written; NULL: none yet */
    int fd;                        /* of current */
    int position_fd[POSITION_FILES];
    size_t newest, synced; /* of these files: read or written last, and synced last; POSITION_FILES: none */
    uint64_t generation;   /* of the newest */
    uint64_t bytes;        /* of segments */
    uint64_t next_number;
    int read_error;           /* negative errno: a segment cannot be read */
    struct spool_stats found; /* damage, and what was set aside */
    bool dirty, sync_failed;
};

/* Lists the segments of the folder, which is open. */
MUST_USE int spool_new(struct spool **ret, struct folder *folder, size_t segment_bytes);
struct spool *spool_free(struct spool *s);
DEFINE_CLEANUP(struct spool, spool_free)

/* ---- Segments ---- */

/* The oldest; NULL if there is none. */
static inline struct spool_segment *spool_oldest(const struct spool *s)
{
    return TAILQ_FIRST(&s->segments);
}

/* Appends the content of a segment to `bytes`. -ENOENT: it is gone or was set aside, and is freed. Another
 * errno: it cannot be read, as spool_stats() tells from now on. */
MUST_USE int spool_load(struct spool *s, struct spool_segment *segment, struct buf *bytes);
/* Notes what was found in a segment that was loaded: a record that is needed, */
void spool_note_live(struct spool_segment *segment);
/* n bytes that are lost, or n bytes of a record that was not finished. */
void spool_note_damage(struct spool *s, struct spool_segment *segment, size_t n);
void spool_note_torn(struct spool *s, size_t n);

struct spool_stats spool_stats(const struct spool *s);
/* Appends a record, and counts it as live in its segment. */
MUST_USE int spool_append(struct spool *s, const struct record_head *h, struct str payload,
                          struct spool_segment **ret_segment, uint32_t *ret_at);
/* Syncs what was appended to disk. On failure it may not be there. */
MUST_USE int spool_sync(struct spool *s);
/* Likewise, and the removal of segments, which need not be on disk otherwise. */
MUST_USE int spool_sync_folder(struct spool *s);
/* Reads the payload of a record of n bytes into an empty buffer. -EBADMSG: damaged, or the file is gone. */
MUST_USE int spool_read(struct spool *s, struct spool_segment *segment, uint32_t at, size_t n,
                        struct buf *into);
/* The record is no longer needed. */
void spool_forget(struct spool_segment *segment);
/* Bytes of the segments that are set aside. */
uint64_t spool_idle_bytes(const struct spool *s);
/* The segment that is written may be removed, too, if it has no live records. */
void spool_leave_empty(struct spool *s);
/* Whether there are segments without live records, other than a small one that is written. */
bool spool_has_empty(const struct spool *s);
/* Removes them. After a power cut that may be done and what was written to other files before be lost, so the
 * read positions must be on disk by then. */
void spool_remove_empty(struct spool *s);
/* Keeps the limits of files set aside. */
void spool_trim_aside(struct spool *s);

/* ---- Read positions ---- */

/* Reads the newest intact position file, and syncs it. ret->next is NULL if there is none; an errno if none
 * can be read. */
MUST_USE int spool_read_positions(struct spool *s, struct buf *into, struct position_reader *ret);
/* Writes the positions of this generation, the next one. Two files stay as they are: the newest, which a
 * kill -9 leaves, and the one synced last, which a power cut leaves. After a failure, which may have damaged
 * the third, the next try is over the same. */
MUST_USE int spool_put_position(struct spool *s, uint64_t generation, struct str bytes, bool wait_for_disk);

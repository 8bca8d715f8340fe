/* Private to spool*.c. */
#ifndef DS_REMOTEWRITE_SPOOL_INTERNAL_H
#define DS_REMOTEWRITE_SPOOL_INTERNAL_H

#include "remotewrite/spool.h"

struct spool_segment {
    struct spool_segment *next; /* newer */
    uint64_t number;
    uint32_t size;
    size_t live;  /* records still needed */
    bool scanned; /* its damage has been counted */
    bool damaged; /* set aside when it is no longer needed */
    int error;    /* why it is unread; negative errno */
    /* Its own read positions, from the first time that it could not be read. */
    bool late, positions_stored;
    struct buf positions;
};

enum spool_aside_kind { ASIDE_DAMAGED, ASIDE_UNKNOWN, ASIDE_KINDS };

struct spool {
    char *dir;
    int dir_fd, lock_fd;
    size_t segment_bytes;
    struct spool_segment *oldest; /* those that were read, by number */
    struct spool_segment *unread; /* by number */
    struct spool_files aside[ASIDE_KINDS];
    struct spool_segment *current; /* the segment being written; NULL: none yet */
    int fd;                        /* of current */
    int position_fd[2];
    uint64_t bytes, unread_bytes, next_number;
    uint64_t damaged_bytes, damaged_places, torn_bytes;
    bool dirty, folder_dirty, sync_failed;
};

enum { SPOOL_PATH_BYTES = 4352, POSITIONS_MAX = 64 << 20 };

struct spool_name {
    char text[40];
};

/* The path of a file of the folder, for messages too; false if it is cut. */
bool spool_path(const struct spool *s, const char *name, char out[SPOOL_PATH_BYTES]);
/* The name of a file by its number: ".seg" of a segment, ".done" of its read positions. */
struct spool_name spool_name(uint64_t number, const char *suffix);
/* NULL when out of memory. */
struct spool_segment *spool_segment_new(uint64_t number);
struct spool_segment *spool_segment_free(struct spool_segment *segment);
/* Adds the segment to a list, by number, or removes it from one. */
void spool_link(struct spool_segment **list, struct spool_segment *segment);
void spool_unlink(struct spool_segment **list, struct spool_segment *segment);
/* A number is in use. */
void spool_use_number(struct spool *s, uint64_t number);
void spool_close_current(struct spool *s);
/* Removes segments without live records. */
void spool_drop_empty(struct spool *s);

/* The ends of the names of such files, after the number. */
extern const char *const spool_aside_suffixes[ASIDE_KINDS];
/* Renames the file of the segment, which is in no list. A negative errno: it is still there. */
int spool_set_aside(struct spool *s, const struct spool_segment *segment, enum spool_aside_kind kind);

#endif

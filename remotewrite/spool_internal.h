/* Private to spool*.c. */
#ifndef DS_REMOTEWRITE_SPOOL_INTERNAL_H
#define DS_REMOTEWRITE_SPOOL_INTERNAL_H

#include "remotewrite/spool.h"

struct spool_segment {
    struct spool_segment *next; /* newer */
    uint64_t number;
    uint32_t size;
    size_t live; /* records still needed */
};

struct spool {
    char *dir;
    int dir_fd, lock_fd;
    size_t segment_bytes;
    struct spool_segment *oldest, **newest_next;
    struct spool_segment *current; /* the segment being written; NULL: none yet */
    int fd;                        /* of current */
    int position_fd[2];
    uint64_t bytes, next_number;
    bool dirty, folder_dirty, sync_failed;
};

/* Adds a segment after the newest. NULL when out of memory. */
struct spool_segment *spool_add_segment(struct spool *s, uint64_t number);
/* Removes segments without live records. */
void spool_drop_empty(struct spool *s);

#endif

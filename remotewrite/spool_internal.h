/* What the files of the spool share; nothing else includes it. */
#ifndef DS_REMOTEWRITE_SPOOL_INTERNAL_H
#define DS_REMOTEWRITE_SPOOL_INTERNAL_H

#include "remotewrite/spool.h"

struct spool_segment {
    struct spool_segment *next; /* newer */
    uint64_t number;
    uint32_t size;
    size_t live; /* records that are still wanted */
};

struct spool {
    char *dir;
    int dir_fd, lock_fd;
    size_t segment_bytes;
    struct spool_segment *oldest, **newest_next;
    struct spool_segment *current; /* the one that is written to; NULL: none yet */
    int fd;                        /* of current */
    int position_fd[2];
    uint64_t bytes, next_number;
    bool dirty, folder_dirty, sync_failed;
};

/* Links a segment behind the newest. NULL when memory is out. */
struct spool_segment *spool_add_segment(struct spool *s, uint64_t number);
/* Removes the segments that hold nothing wanted. */
void spool_drop_empty(struct spool *s);

#endif

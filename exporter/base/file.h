/* Reading whole files, and noticing that they have changed. */
#ifndef DS_BASE_FILE_H
#define DS_BASE_FILE_H

#include "exporter/base/buf.h"

#include <sys/stat.h>

/* Appends the file's bytes to `into`. Negative errno of open or read; -EFBIG over the buffer's ceiling;
 * -EISDIR for a directory. Opens the path each time, so that it follows the symlink swap of a Kubernetes
 * volume. */
MUST_USE int file_read(const char *path, struct buf *into);
/* Like file_read(), but gives the writer of a pipe up to `ms` to write all of it. -ETIMEDOUT. Blocks. */
MUST_USE int file_read_within(const char *path, struct buf *into, int64_t ms);

/* What a file was when it was read. A replaced symbolic link leads to another file. */
struct file_stamp {
    dev_t device;
    ino_t inode;
    off_t size;
    struct timespec modified;
};

/* All 0 if there is no such file. Take it before the file is read, so that a later change is seen. */
struct file_stamp file_stamp(const char *path);
bool file_stamp_is(const struct file_stamp *a, const struct file_stamp *b);

#endif

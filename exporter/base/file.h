/* Reading whole files, and noticing that they have changed. */
#ifndef DS_BASE_FILE_H
#define DS_BASE_FILE_H

#include "exporter/base/buf.h"

#include <stdint.h>

/* Appends the file's bytes to `into`. Negative errno of open or read; -EFBIG over the buffer's ceiling;
 * -EISDIR for a directory. Opens the path each time, so that it follows the symlink swap of a Kubernetes
 * volume. */
MUST_USE int file_read(const char *path, struct buf *into);
/* Like file_read(), but gives the writer of a pipe up to `ms` to write all of it. -ETIMEDOUT. Blocks. */
MUST_USE int file_read_within(const char *path, struct buf *into, int64_t ms);

/* A hash of what a change of the file alters; 0 if there is none. A replaced symbolic link leads to another
 * file. Take it before the file is read, so that a later change is seen. */
uint64_t file_stamp(const char *path);

#endif

/* Reading whole files. */
#ifndef DS_BASE_FILE_H
#define DS_BASE_FILE_H

#include "exporter/base/buf.h"

/* Appends the file's bytes to `into`. Negative errno of open or read; -EFBIG over the buffer's ceiling;
 * -EISDIR for a directory. Opens the path each time, so that it follows the symlink swap of a Kubernetes
 * volume. */
MUST_USE int file_read(const char *path, struct buf *into);
/* Like file_read(), but gives the writer of a pipe up to `ms` to write all of it. -ETIMEDOUT. Blocks. */
MUST_USE int file_read_within(const char *path, struct buf *into, int64_t ms);

#endif

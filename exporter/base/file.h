/* Whole files, and noticing that they have changed. */
#pragma once

#include "exporter/base/buf.h"

/* Appends the file's bytes. Opens the path each time, since Kubernetes swaps symlinks. The errno of open or
 * read, -EISDIR, -EFBIG over the buffer's ceiling. */
MUST_USE int file_read(const char *path, struct buf *into);
/* Like file_read(), but gives the writer of a pipe up to `ms` to write all of it. -ETIMEDOUT. Blocks. */
MUST_USE int file_read_within(const char *path, struct buf *into, int64_t ms);

/* A hash of what changes with the file or a link to it; 0 without one. Take it before the file is read. */
uint64_t file_stamp(const char *path);

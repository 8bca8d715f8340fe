/* Reading whole files. */
#ifndef DS_BASE_FILE_H
#define DS_BASE_FILE_H

#include "exporter/base/buf.h"

/* Appends the file's bytes to `into`. Negative errno of open or read; -EFBIG past the buffer's ceiling;
 * -EISDIR for a folder. Opened by path each time, so a Kubernetes volume's symlink swap is seen. */
MUST_USE int file_read(const char *path, struct buf *into);

#endif

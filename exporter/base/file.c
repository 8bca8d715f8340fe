#include "exporter/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

int file_read(const char *path, struct buf *into)
{
    CLEANUP(cleanup_close) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    size_t mark = into->n;
    struct stat st;
    ssize_t got;

    if (fd < 0 || fstat(fd, &st) < 0)
        return -errno;
    if (S_ISDIR(st.st_mode))
        return -EISDIR;
    do {
        /* One byte more than the file's size, so that the end is seen without growing the buffer. */
        size_t want = st.st_size > 0 && into->n == mark ? (size_t)st.st_size + 1 : 4096;
        char *to;
        int r = buf_room(into, size_min(want, into->max - into->n), &to);
        if (r == 0 && into->n == into->max)
            r = read(fd, &(char){0}, 1) == 0 ? 1 : -EFBIG;
        if (r != 0) {
            if (r < 0)
                buf_truncate(into, mark);
            return r < 0 ? r : 0;
        }
        got = read(fd, to, size_min(want, into->max - into->n));
        if (got > 0)
            into->n += (size_t)got;
    } while (got > 0 || (got < 0 && errno == EINTR));
    if (got < 0) {
        int r = -errno;
        buf_truncate(into, mark);
        return r;
    }
    return 0;
}

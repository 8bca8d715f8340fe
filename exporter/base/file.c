/* Opens, reads and closes within one call: no descriptor stays. Blocks for as long as the file system
 * does, or until the deadline where there is one. */
#include "exporter/base/file.h"

#include "exporter/base/clock.h"
#include "exporter/base/hash.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>

/* False after the deadline. A pipe without a writer counts as readable only once it has had one. */
static bool wait_for_bytes(int fd, mono_ms deadline)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    int64_t left = mono_diff(clock_system.mono(&clock_system), deadline);

    return left > 0 && poll(&p, 1, (int)left) != 0;
}

/* The bytes read, at most 0 at the end. -EFBIG, -ENOMEM, or errno of read. */
static ssize_t read_some(int fd, size_t want, struct buf *into)
{
    char *to;
    ssize_t got;
    int r = buf_reserve(into, size_min(want, into->max - into->n), &to);

    if (r == 0 && into->n == into->max)
        return read(fd, &(char){0}, 1) == 0 ? 0 : -EFBIG;
    if (r < 0)
        return r;
    got = read(fd, to, size_min(want, into->max - into->n));
    if (got > 0)
        into->n += (size_t)got;
    return got < 0 ? -errno : got;
}

int file_read_within(const char *path, struct buf *into, int64_t ms)
{
    CLEANUP(cleanup_close) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    mono_ms deadline = mono_add(clock_system.mono(&clock_system), ms);
    struct buf_mark mark = buf_mark(into);
    struct stat st;
    ssize_t got;

    if (fd < 0 || fstat(fd, &st) < 0)
        return -errno;
    do {
        /* One byte more than the file's size, so that the end is seen without growing the buffer. */
        size_t want = st.st_size > 0 && into->n == mark.n ? (size_t)st.st_size + 1 : 4096;

        if (ms && !S_ISREG(st.st_mode) && !wait_for_bytes(fd, deadline))
            got = -ETIMEDOUT;
        else
            got = read_some(fd, want, into);
    } while (got > 0 || got == -EINTR || (got == -EAGAIN && ms));
    if (got < 0)
        buf_rollback(into, mark);
    return (int)got;
}

int file_read(const char *path, struct buf *into)
{
    return file_read_within(path, into, 0);
}

uint64_t file_stamp(const char *path)
{
    struct stat st;

    if (stat(path, &st) < 0)
        return 0;
    return hash_chain_u64(hash_chain_u64(hash_chain_u64(st.st_dev, st.st_ino), (uint64_t)st.st_size),
                          (uint64_t)st.st_mtim.tv_sec * 1000000000 + (uint64_t)st.st_mtim.tv_nsec);
}

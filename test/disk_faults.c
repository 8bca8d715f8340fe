#include "test/disk_faults.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/types.h>
#include <sys/uio.h>

static long calls_left, failures_left;
static int failure;
static bool has_failed;

void disk_fail_at(long nth, long calls, int error)
{
    calls_left = nth;
    failures_left = nth > 0 ? calls : 0;
    failure = error;
    has_failed = false;
}

bool disk_has_failed(void)
{
    return has_failed;
}

static bool fails(void)
{
    if (failures_left <= 0 || (calls_left > 0 && --calls_left > 0))
        return false;
    failures_left--;
    has_failed = true;
    errno = failure;
    return true;
}

/* How many of n bytes are written; -1: the write fails. A disk is full in the middle of a write. */
static ssize_t room(size_t n)
{
    bool first = !has_failed;

    if (!fails())
        return (ssize_t)n;
    return first && failure == ENOSPC ? (ssize_t)(n / 2) : -1;
}

int __real_open(const char *path, int flags, ...);
int __real_openat(int dir, const char *path, int flags, ...);
ssize_t __real_read(int fd, void *to, size_t n);
ssize_t __real_pread(int fd, void *to, size_t n, off_t at);
ssize_t __real_write(int fd, const void *from, size_t n);
ssize_t __real_pwrite(int fd, const void *from, size_t n, off_t at);
ssize_t __real_pwritev(int fd, const struct iovec *parts, int n, off_t at);
int __real_ftruncate(int fd, off_t size);
int __real_renameat(int from_dir, const char *from, int to_dir, const char *to);

int __wrap_open(const char *path, int flags, ...);
int __wrap_openat(int dir, const char *path, int flags, ...);
ssize_t __wrap_read(int fd, void *to, size_t n);
ssize_t __wrap_pread(int fd, void *to, size_t n, off_t at);
ssize_t __wrap_write(int fd, const void *from, size_t n);
ssize_t __wrap_pwrite(int fd, const void *from, size_t n, off_t at);
ssize_t __wrap_pwritev(int fd, const struct iovec *parts, int n, off_t at);
int __wrap_fsync(int fd);
int __wrap_fdatasync(int fd);
int __wrap_ftruncate(int fd, off_t size);
int __wrap_renameat(int from_dir, const char *from, int to_dir, const char *to);

int __wrap_open(const char *path, int flags, ...)
{
    va_list ap;
    int mode = 0;

    if (flags & O_CREAT) {
        va_start(ap, flags);
        mode = va_arg(ap, int);
        va_end(ap);
    }
    return fails() ? -1 : __real_open(path, flags, mode);
}

int __wrap_openat(int dir, const char *path, int flags, ...)
{
    va_list ap;
    int mode = 0;

    if (flags & O_CREAT) {
        va_start(ap, flags);
        mode = va_arg(ap, int);
        va_end(ap);
    }
    return fails() ? -1 : __real_openat(dir, path, flags, mode);
}

ssize_t __wrap_read(int fd, void *to, size_t n)
{
    return fails() ? -1 : __real_read(fd, to, n);
}

ssize_t __wrap_pread(int fd, void *to, size_t n, off_t at)
{
    return fails() ? -1 : __real_pread(fd, to, n, at);
}

ssize_t __wrap_write(int fd, const void *from, size_t n)
{
    ssize_t some = room(n);

    return some < 0 ? -1 : __real_write(fd, from, (size_t)some);
}

ssize_t __wrap_pwrite(int fd, const void *from, size_t n, off_t at)
{
    ssize_t some = room(n);

    return some < 0 ? -1 : __real_pwrite(fd, from, (size_t)some, at);
}

ssize_t __wrap_pwritev(int fd, const struct iovec *parts, int n, off_t at)
{
    bool first = !has_failed;

    if (!fails())
        return __real_pwritev(fd, parts, n, at);
    return first && failure == ENOSPC ? __real_pwritev(fd, parts, 1, at) : -1;
}

/* Succeed without waiting for the disk: the tests end processes, not machines. */
int __wrap_fsync(int fd)
{
    (void)fd;
    return fails() ? -1 : 0;
}

int __wrap_fdatasync(int fd)
{
    (void)fd;
    return fails() ? -1 : 0;
}

int __wrap_ftruncate(int fd, off_t size)
{
    return fails() ? -1 : __real_ftruncate(fd, size);
}

int __wrap_renameat(int from_dir, const char *from, int to_dir, const char *to)
{
    return fails() ? -1 : __real_renameat(from_dir, from, to_dir, to);
}

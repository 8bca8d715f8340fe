/* The small files beside the segments. */
#include "remotewrite/spool_internal.h"

#include "exporter/base/buf.h"
#include "exporter/base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

static int spool_write_all(int fd, struct str bytes)
{
    while (bytes.n) {
        ssize_t n = write(fd, bytes.p, bytes.n);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : -ENOSPC;
        bytes = (struct str){bytes.p + n, bytes.n - (size_t)n};
    }
    return 0;
}

int spool_write_file(struct spool *s, const char *name, struct str bytes, bool wait_for_disk)
{
    CLEANUP(cleanup_close) int fd = -1;
    char temporary[64];
    int r;

    (void)snprintf(temporary, sizeof(temporary), "new.%.48s", name);
    fd = openat(s->dir_fd, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    r = spool_write_all(fd, bytes);
    if (r == 0 &&
        ((wait_for_disk && fdatasync(fd) < 0) || renameat(s->dir_fd, temporary, s->dir_fd, name) < 0))
        r = -errno;
    if (r == 0)
        s->folder_dirty = true;
    else
        (void)unlinkat(s->dir_fd, temporary, 0);
    return r;
}

bool spool_path(const struct spool *s, const char *name, char out[SPOOL_PATH_BYTES])
{
    int n = snprintf(out, SPOOL_PATH_BYTES, "%s/%s", s->dir, name);

    return n > 0 && n < SPOOL_PATH_BYTES;
}

int spool_read_file(struct spool *s, const char *name, struct buf *into)
{
    char path[SPOOL_PATH_BYTES];

    return spool_path(s, name, path) ? file_read(path, into) : -ENAMETOOLONG;
}

void spool_remove_file(struct spool *s, const char *name)
{
    (void)unlinkat(s->dir_fd, name, 0);
}

int spool_put_position(struct spool *s, unsigned which, struct str bytes, bool wait_for_disk)
{
    static const char *const names[] = {"position.a", "position.b"};
    int *fd = &s->position_fd[which];
    ssize_t n;

    if (*fd < 0)
        *fd = openat(s->dir_fd, names[which], O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (*fd < 0)
        return -errno;
    n = pwrite(*fd, bytes.p, bytes.n, 0);
    if (n != (ssize_t)bytes.n)
        return n < 0 ? -errno : -ENOSPC;
    return wait_for_disk && fdatasync(*fd) < 0 ? -errno : 0;
}

int spool_each_file(struct spool *s, const char *prefix, int (*fn)(void *arg, const char *name), void *arg)
{
    int fd = openat(s->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    struct dirent *entry;

    if (!d) {
        r = -errno;
        cleanup_close(&fd);
        return r;
    }
    while (r == 0) {
        errno = 0;
        entry = readdir(d);
        if (!entry) {
            r = -errno;
            break;
        }
        if (strncmp(entry->d_name, prefix, strlen(prefix)) == 0)
            r = fn(arg, entry->d_name);
    }
    (void)closedir(d);
    return r;
}

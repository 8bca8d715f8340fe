/* Owns the descriptors of a folder and of its lock, and the back-off after which it is tried again. The
 * endpoint's thread calls it; it logs nothing, as the endpoint knows what a failure means. */
#include "remotewrite/folder.h"

#include "exporter/base/alloc.h"
#include "exporter/base/backoff.h"
#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/file.h"
#include "exporter/base/invariant.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>

static const struct backoff folder_backoff = {1000, 60 * 1000, 60 * 1000};

static const char lock_name[] = "lock", wanted_name[] = "wanted";

void folder_init(struct folder *f, const char *path)
{
    *f = (struct folder){.path = path ? xstrdup(path) : NULL, .fd = -1, .lock_fd = -1};
}

void folder_done(struct folder *f)
{
    folder_close(f);
    free(TAKE_PTR(f->path));
}

/* ---- Open or not, and for whom ---- */

/* Creates the missing folders of the path. */
static int folder_make(const char *of_path)
{
    CLEANUP(cleanup_free) char *path = xstrdup(of_path);
    char *end = path;

    do {
        end = strchr(end + 1, '/');
        if (end)
            *end = '\0';
        if (mkdir(path, 0700) < 0 && errno != EEXIST)
            return -errno;
        if (end)
            *end = '/';
    } while (end);
    return 0;
}

static int folder_lock(struct folder *f)
{
    f->lock_fd = openat(f->fd, lock_name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (f->lock_fd < 0)
        return -errno;
    if (flock(f->lock_fd, LOCK_EX | LOCK_NB) < 0)
        return errno == EWOULDBLOCK ? -EBUSY : -errno;
    return 0;
}

int folder_open(struct folder *f)
{
    int r;

    invariant(f->path && f->fd < 0 && f->lock_fd < 0);
    r = folder_make(f->path);
    if (r < 0)
        return r;
    f->fd = open(f->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (f->fd < 0)
        return -errno;
    r = folder_lock(f);
    if (r < 0) {
        folder_close(f);
        return r;
    }
    f->is_unsynced = false;
    folder_remove(f, wanted_name);
    return 0;
}

void folder_close(struct folder *f)
{
    cleanup_close(&f->lock_fd);
    cleanup_close(&f->fd);
    f->lock_fd = f->fd = -1;
}

bool folder_is_there(const struct folder *f)
{
    struct stat now, was;

    invariant(folder_is_open(f));
    /* Errors other than ENOENT say nothing about the folder, which is still open. */
    if (stat(f->path, &now) < 0)
        return errno != ENOENT;
    return fstat(f->fd, &was) < 0 || (now.st_dev == was.st_dev && now.st_ino == was.st_ino);
}

void folder_ask_for(const struct folder *f)
{
    struct folder other = {.fd = open(f->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), .lock_fd = -1};
    int fd = other.fd < 0 ? -1 : folder_create(&other, wanted_name);

    cleanup_close(&fd);
    folder_close(&other);
}

bool folder_is_wanted(const struct folder *f)
{
    invariant(folder_is_open(f));
    return faccessat(f->fd, wanted_name, F_OK, 0) == 0;
}

/* ---- When to try again ---- */

bool folder_is_due(const struct folder *f, mono_ms now)
{
    return !mono_before(now, f->retry_at);
}

void folder_retry_later(struct folder *f, mono_ms now)
{
    f->failures++;
    f->retry_at = mono_add(now, backoff_ms(&folder_backoff, f->failures, -1));
}

void folder_retry_now(struct folder *f, mono_ms now)
{
    f->retry_at = now;
}

void folder_note_success(struct folder *f)
{
    f->failures = 0;
}

/* ---- Small files ---- */

int write_result(ssize_t n, size_t want)
{
    if (n < 0)
        return -errno;
    return (size_t)n == want ? 0 : -ENOSPC;
}

/* A FIFO in the place of the file would be a wait without end: it is removed. */
int folder_create(const struct folder *f, const char *name)
{
    int fd = openat(f->fd, name, O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0600);

    if (fd < 0 && errno == ENXIO && unlinkat(f->fd, name, 0) == 0)
        fd = openat(f->fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    return fd;
}

int folder_append(const struct folder *f, const char *name, size_t at, struct str bytes)
{
    CLEANUP(cleanup_close) int fd = folder_create(f, name);
    struct stat st;
    int r;

    if (fd < 0 || fstat(fd, &st) < 0)
        return -errno;
    if ((size_t)st.st_size != at)
        return -ESTALE;
    r = write_result(pwrite(fd, bytes.p, bytes.n, (off_t)at), bytes.n);
    if (r < 0 && ftruncate(fd, (off_t)at) < 0)
        r = -ESTALE;
    return r;
}

int folder_commit(struct folder *f, const char *appended, const char *name)
{
    CLEANUP(cleanup_close) int fd = folder_create(f, appended);

    if (fd < 0 || fdatasync(fd) < 0)
        return -errno;
    if (strcmp(appended, name) == 0)
        return 0;
    if (renameat(f->fd, appended, f->fd, name) < 0)
        return -errno;
    f->is_unsynced = true;
    return folder_sync(f);
}

int folder_sync(struct folder *f)
{
    if (f->is_unsynced && fsync(f->fd) < 0)
        return -errno;
    f->is_unsynced = false;
    return 0;
}

int folder_read(const struct folder *f, const char *name, struct buf *into)
{
    CLEANUP(cleanup_free) char *path = xasprintf("%s/%s", f->path, name);

    return file_read(path, into);
}

void folder_remove(const struct folder *f, const char *name)
{
    (void)unlinkat(f->fd, name, 0);
}

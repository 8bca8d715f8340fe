/* Owns the disks and the descriptors. Paths below /u are on the disk of the process that runs; there are no
 * others. What a directory holds is durable after fsync() of the directory; new directories always are, as a
 * journal keeps them. */
#include "test/universe/sim.h"

#include "exporter/base/alloc.h"
#include "exporter/base/def.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>

enum { MAX_FILES = 96, MAX_FDS = 256, FIRST_FD = 100000, PATH_BYTES = 256 };

struct inode {
    unsigned refs; /* names and descriptors */
    bool is_dir;
    ino_t number;
    const void *locked_by;
    char *now, *synced; /* content, and what a power cut leaves of it */
    size_t now_n, synced_n, dirty_from;
};

struct entry {
    char path[PATH_BYTES];
    struct inode *now, *synced;
};

struct disk {
    struct entry list[MAX_FILES];
    size_t n;
    ino_t numbers;
    struct stream *faults;
    unsigned per_mille;
    int64_t locked_until; /* files, by another process */
    int64_t locked_at;    /* first by one of ours; 0: never */
    bool failed, unreadable;
};

static struct {
    struct inode *inode;
    struct disk *disk;
    char path[PATH_BYTES];
    size_t at;
} fds[MAX_FDS];

static struct inode *inode_unref(struct inode *i)
{
    if (i && --i->refs == 0) {
        free(i->now);
        free(i->synced);
        free(i);
    }
    return NULL;
}

static struct inode *inode_ref(struct inode *i)
{
    if (i)
        i->refs++;
    return i;
}

static void inode_resize(struct inode *i, size_t n)
{
    i->now = xrealloc(i->now, n + 1);
    if (n > i->now_n)
        memset(i->now + i->now_n, 0, n - i->now_n);
    i->dirty_from = size_min(i->dirty_from, size_min(n, i->now_n));
    i->now_n = n;
}

static void inode_sync(struct inode *i)
{
    i->synced = xrealloc(i->synced, i->now_n + 1);
    if (i->now_n > i->dirty_from)
        memcpy(i->synced + i->dirty_from, i->now + i->dirty_from, i->now_n - i->dirty_from);
    i->synced_n = i->dirty_from = i->now_n;
}

static struct entry *disk_find(struct disk *d, const char *path)
{
    for (size_t i = 0; i < d->n; i++)
        if (strcmp(d->list[i].path, path) == 0)
            return &d->list[i];
    return NULL;
}

static struct entry *disk_entry(struct disk *d, const char *path)
{
    struct entry *e = disk_find(d, path);

    if (e)
        return e;
    for (e = d->list; e < d->list + d->n && (e->now || e->synced); e++)
        ;
    if (e == d->list + MAX_FILES)
        violated(ORACLE_MODEL, "more than %d files on one disk", MAX_FILES);
    d->n += e == d->list + d->n;
    *e = (struct entry){.now = NULL};
    (void)snprintf(e->path, sizeof(e->path), "%s", path);
    return e;
}

static struct entry *disk_make(struct disk *d, const char *path, bool is_dir)
{
    struct entry *e = disk_entry(d, path);

    e->now = xcalloc(1, sizeof(*e->now));
    e->now->refs = 1;
    e->now->is_dir = is_dir;
    e->now->number = ++d->numbers;
    if (is_dir)
        e->synced = inode_ref(e->now);
    return e;
}

struct disk *disk_new(void)
{
    struct disk *d = xcalloc(1, sizeof(*d));

    (void)disk_make(d, "/u", true);
    return d;
}

struct disk *disk_free(struct disk *d)
{
    for (size_t i = 0; i < d->n; i++) {
        (void)inode_unref(d->list[i].now);
        (void)inode_unref(d->list[i].synced);
    }
    free(d);
    return NULL;
}

void disk_put(struct disk *d, const char *path, const char *text)
{
    struct entry *e = disk_find(d, path);

    if (!e || !e->now)
        e = disk_make(d, path, false);
    inode_resize(e->now, strlen(text));
    memcpy(e->now->now, text, strlen(text));
    e->now->dirty_from = 0;
    inode_sync(e->now);
    (void)inode_unref(e->synced);
    e->synced = inode_ref(e->now);
}

/* A file that was written, but not synced, may have lost all, some or nothing of that. */
static void inode_after(struct entry *to, const struct inode *i, bool power_cut, struct stream *s)
{
    size_t n = i->now_n;

    to->now->now = xmalloc(i->now_n + i->synced_n + 1);
    if (!power_cut || (i->dirty_from >= i->now_n && i->synced_n == i->now_n)) {
        memcpy(to->now->now, cstr(i->now), n);
    } else {
        size_t kept = i->now_n > i->dirty_from ? stream_below(s, i->now_n - i->dirty_from + 1) : 0;

        reached[REACHED_TORN] += kept > 0 && i->dirty_from + kept < i->now_n;
        n = i->dirty_from + kept > i->synced_n ? i->dirty_from + kept : i->synced_n;
        memcpy(to->now->now, cstr(i->synced), i->synced_n);
        memcpy(to->now->now + i->dirty_from, cstr(i->now) + (i->now_n ? i->dirty_from : 0), kept);
    }
    to->now->now_n = n;
}

struct disk *disk_after(const struct disk *d, bool power_cut, struct stream *s)
{
    struct disk *to = xcalloc(1, sizeof(*to));
    bool names_kept = stream_chance(s, 500);

    to->faults = d->faults;
    to->numbers = d->numbers;
    for (size_t i = 0; i < d->n; i++) {
        const struct entry *e = &d->list[i];
        const struct inode *inode = power_cut && !names_kept ? e->synced : e->now;
        struct entry *made;

        if (!inode)
            continue;
        made = disk_make(to, e->path, inode->is_dir);
        made->now->number = inode->number;
        if (inode->is_dir)
            continue;
        inode_after(made, inode, power_cut, s);
        made->now->dirty_from = 0;
        if (power_cut || e->synced == e->now) {
            made->synced = inode_ref(made->now);
            if (power_cut)
                inode_sync(made->now);
        }
        if (!power_cut) { /* what was not synced before the kill still is not */
            made->now->synced = xmalloc(inode->synced_n + 1);
            memcpy(made->now->synced, cstr(inode->synced), inode->synced_n);
            made->now->synced_n = inode->synced_n;
            made->now->dirty_from = inode->dirty_from;
        }
    }
    return to;
}

void disk_set_faults(struct disk *d, struct stream *s, unsigned per_mille)
{
    d->faults = s;
    d->per_mille = per_mille;
}

void disk_lock(struct disk *d, int64_t until_ms)
{
    d->locked_until = until_ms;
}

int64_t disk_locked_at(const struct disk *d)
{
    return d->locked_at ? d->locked_at : INT64_MAX;
}

bool disk_has_failed(const struct disk *d)
{
    return d->failed;
}

bool disk_was_unreadable(const struct disk *d)
{
    return d->unreadable;
}

/* ---- The calls ---- */

/* Before each call on a file: where a process may be killed. */
static struct disk *enter(void)
{
    if (!sim_process) {
        errno = ENOENT;
        return NULL;
    }
    if (sim_process->die_in && --sim_process->die_in == 0 && !sim_process->dead)
        world_on_kill_in_call();
    return sim_process->disk;
}

static bool fails(struct disk *d, enum reached what, int error)
{
    if (!d->faults || !d->per_mille || sim_process->dead || !stream_chance(d->faults, d->per_mille))
        return false;
    reached[what]++;
    d->failed = true;
    trace("a%d disk: %s", sim_process->node, strerror(error));
    errno = error;
    return true;
}

static bool is_ours(int fd)
{
    return fd >= FIRST_FD && fd < FIRST_FD + MAX_FDS && fds[fd - FIRST_FD].inode;
}

static int at_path(int dir, const char *name, char path[PATH_BYTES])
{
    if (*name == '/' || dir == AT_FDCWD)
        return snprintf(path, PATH_BYTES, "%s", name);
    if (strcmp(name, ".") == 0)
        return snprintf(path, PATH_BYTES, "%s", fds[dir - FIRST_FD].path);
    return snprintf(path, PATH_BYTES, "%s/%s", fds[dir - FIRST_FD].path, name);
}

static int fail(int error)
{
    errno = error;
    return -1;
}

static int open_at(int dir, const char *name, int flags)
{
    struct disk *d = enter();
    char path[PATH_BYTES];
    struct entry *e;
    int i;

    (void)at_path(dir, name, path);
    if (!d || strncmp(path, "/u/", 3) != 0)
        return fail(ENOENT);
    e = disk_find(d, path);
    if (e && e->now && (flags & O_EXCL))
        return fail(EEXIST);
    if ((!e || !e->now) && !(flags & O_CREAT))
        return fail(ENOENT);
    if (!e || !e->now) {
        if (fails(d, REACHED_DISK_FULL, ENOSPC))
            return -1;
        e = disk_make(d, path, false);
    }
    for (i = 0; i < MAX_FDS && fds[i].inode; i++)
        ;
    if (i == MAX_FDS)
        violated(ORACLE_MODEL, "more than %d open files", MAX_FDS);
    fds[i].inode = inode_ref(e->now);
    fds[i].disk = d;
    fds[i].at = 0;
    memcpy(fds[i].path, path, sizeof(path));
    if ((flags & O_TRUNC) && !e->now->is_dir)
        inode_resize(e->now, 0);
    return FIRST_FD + i;
}

#define WRAP(type, name, ...)        \
    type __wrap_##name(__VA_ARGS__); \
    type __wrap_##name(__VA_ARGS__)

WRAP(int, open, const char *path, int flags, ...)
{
    return open_at(AT_FDCWD, path, flags);
}

WRAP(int, openat, int dir, const char *path, int flags, ...)
{
    return open_at(dir, path, flags);
}

int __real_close(int fd);
WRAP(int, close, int fd)
{
    if (!is_ours(fd))
        return __real_close(fd);
    (void)enter();
    if (fds[fd - FIRST_FD].inode->locked_by == &fds[fd - FIRST_FD])
        fds[fd - FIRST_FD].inode->locked_by = NULL;
    fds[fd - FIRST_FD].inode = inode_unref(fds[fd - FIRST_FD].inode);
    if (fds[fd - FIRST_FD].inode)
        fds[fd - FIRST_FD].inode = NULL;
    return 0;
}

WRAP(int, flock, int fd, int how)
{
    struct inode *i = fds[fd - FIRST_FD].inode;

    (void)how;
    if (sim_now_ms < fds[fd - FIRST_FD].disk->locked_until) {
        reached[REACHED_LOCKED]++;
        return fail(EWOULDBLOCK);
    }
    if (i->locked_by)
        return fail(EWOULDBLOCK);
    i->locked_by = &fds[fd - FIRST_FD];
    if (!fds[fd - FIRST_FD].disk->locked_at)
        fds[fd - FIRST_FD].disk->locked_at = sim_now_ms;
    return 0;
}

static ssize_t read_at(int fd, void *to, size_t n, size_t at)
{
    const struct inode *i = fds[fd - FIRST_FD].inode;
    struct disk *d = fds[fd - FIRST_FD].disk;
    size_t some = at < i->now_n ? size_min(n, i->now_n - at) : 0;

    if (strstr(fds[fd - FIRST_FD].path, "/remote-write/") && fails(d, REACHED_READ_FAILED, EIO)) {
        d->unreadable = true;
        return -1;
    }
    if (some)
        memcpy(to, i->now + at, some);
    return (ssize_t)some;
}

WRAP(ssize_t, read, int fd, void *to, size_t n)
{
    ssize_t got = read_at(fd, to, n, fds[fd - FIRST_FD].at);

    fds[fd - FIRST_FD].at += got > 0 ? (size_t)got : 0;
    return got;
}

WRAP(ssize_t, pread, int fd, void *to, size_t n, off_t at)
{
    return read_at(fd, to, n, (size_t)at);
}

static ssize_t write_at(int fd, const void *from, size_t n, size_t at)
{
    struct disk *d = enter();
    struct inode *i = fds[fd - FIRST_FD].inode;

    if (d != fds[fd - FIRST_FD].disk)
        d = fds[fd - FIRST_FD].disk;
    if (fails(d, REACHED_DISK_FULL, ENOSPC)) {
        if (!(n /= 2))
            return -1;
    }
    if (at + n > i->now_n)
        inode_resize(i, at + n);
    memcpy(i->now + at, from, n);
    i->dirty_from = size_min(i->dirty_from, at);
    return (ssize_t)n;
}

WRAP(ssize_t, write, int fd, const void *from, size_t n)
{
    ssize_t put;

    if (fd == STDERR_FILENO) {
        world_on_log((struct str){from, n});
        return (ssize_t)n;
    }
    put = write_at(fd, from, n, fds[fd - FIRST_FD].at);
    if (put > 0)
        fds[fd - FIRST_FD].at += (size_t)put;
    return put;
}

WRAP(ssize_t, pwrite, int fd, const void *from, size_t n, off_t at)
{
    return write_at(fd, from, n, (size_t)at);
}

WRAP(ssize_t, pwritev, int fd, const struct iovec *parts, int n, off_t at)
{
    ssize_t sum = 0;

    for (int i = 0; i < n; i++) {
        ssize_t put = write_at(fd, parts[i].iov_base, parts[i].iov_len, (size_t)(at + sum));

        if (put < 0)
            return sum ? sum : -1;
        sum += put;
        if ((size_t)put < parts[i].iov_len)
            break;
    }
    return sum;
}

WRAP(int, ftruncate, int fd, off_t n)
{
    (void)enter();
    inode_resize(fds[fd - FIRST_FD].inode, (size_t)n);
    return 0;
}

static bool is_not_synced(const char *path)
{
    return planted == PLANT_NO_SYNC || (planted == PLANT_UNSYNCED && strstr(path, "/position."));
}

WRAP(int, fdatasync, int fd)
{
    struct disk *d = enter();

    if (fails(d, REACHED_SYNC_FAILED, EIO))
        return -1;
    if (!is_not_synced(fds[fd - FIRST_FD].path))
        inode_sync(fds[fd - FIRST_FD].inode);
    return 0;
}

static bool is_in(const char *path, const char *dir)
{
    size_t n = strlen(dir);

    return strncmp(path, dir, n) == 0 && path[n] == '/' && !strchr(path + n + 1, '/');
}

WRAP(int, fsync, int fd)
{
    struct disk *d = enter();

    if (fails(d, REACHED_SYNC_FAILED, EIO))
        return -1;
    for (size_t i = 0; i < d->n; i++)
        if (is_in(d->list[i].path, fds[fd - FIRST_FD].path) && d->list[i].now != d->list[i].synced) {
            (void)inode_unref(d->list[i].synced);
            d->list[i].synced = inode_ref(d->list[i].now);
        }
    return 0;
}

WRAP(int, unlinkat, int dir, const char *name, int flags)
{
    struct disk *d = enter();
    char path[PATH_BYTES];
    struct entry *e;

    (void)flags;
    (void)at_path(dir, name, path);
    e = disk_find(d, path);
    if (!e || !e->now)
        return fail(ENOENT);
    e->now = inode_unref(e->now);
    return 0;
}

WRAP(int, renameat, int from_dir, const char *from, int to_dir, const char *to)
{
    struct disk *d = enter();
    char from_path[PATH_BYTES], to_path[PATH_BYTES];
    struct entry *e, *target;

    (void)at_path(from_dir, from, from_path);
    (void)at_path(to_dir, to, to_path);
    e = disk_find(d, from_path);
    if (!e || !e->now)
        return fail(ENOENT);
    target = disk_entry(d, to_path);
    e = disk_find(d, from_path);
    (void)inode_unref(target->now);
    target->now = TAKE_PTR(e->now);
    return 0;
}

WRAP(int, mkdir, const char *path, mode_t mode)
{
    struct disk *d = enter();
    const struct entry *e = disk_find(d, path);

    (void)mode;
    if (e && e->now)
        return fail(EEXIST);
    (void)disk_make(d, path, true);
    return 0;
}

static int stat_of(const struct inode *i, bool linked, struct stat *ret)
{
    memset(ret, 0, sizeof(*ret));
    ret->st_mode = (i->is_dir ? S_IFDIR : S_IFREG) | 0600;
    ret->st_size = (off_t)i->now_n;
    ret->st_nlink = linked;
    ret->st_ino = i->number;
    return 0;
}

WRAP(int, stat, const char *path, struct stat *ret)
{
    struct disk *d = enter();
    const struct entry *e = d ? disk_find(d, path) : NULL;

    return e && e->now ? stat_of(e->now, true, ret) : fail(ENOENT);
}

WRAP(int, fstat, int fd, struct stat *ret)
{
    const struct entry *e = disk_find(fds[fd - FIRST_FD].disk, fds[fd - FIRST_FD].path);

    return stat_of(fds[fd - FIRST_FD].inode, e && e->now == fds[fd - FIRST_FD].inode, ret);
}

WRAP(int, fstatat, int dir, const char *name, struct stat *ret, int flags)
{
    char path[PATH_BYTES];

    (void)flags;
    (void)at_path(dir, name, path);
    return __wrap_stat(path, ret);
}

WRAP(int, faccessat, int dir, const char *name, int mode, int flags)
{
    struct stat st;

    (void)mode;
    return __wrap_fstatat(dir, name, &st, flags);
}

WRAP(int, access, const char *path, int mode)
{
    return __wrap_faccessat(AT_FDCWD, path, mode, 0);
}

/* ---- Directories ---- */

struct listing {
    int fd;
    size_t next;
    struct dirent entry;
};

WRAP(DIR *, fdopendir, int fd)
{
    struct listing *l = xcalloc(1, sizeof(*l));

    l->fd = fd;
    return (DIR *)l;
}

WRAP(DIR *, opendir, const char *path)
{
    (void)path;
    errno = ENOENT;
    return NULL;
}

WRAP(struct dirent *, readdir, DIR *dir)
{
    struct listing *l = (struct listing *)dir;
    const struct disk *d = fds[l->fd - FIRST_FD].disk;
    const char *path = fds[l->fd - FIRST_FD].path;

    while (l->next < d->n) {
        const struct entry *e = &d->list[l->next++];

        if (!e->now || !is_in(e->path, path))
            continue;
        (void)snprintf(l->entry.d_name, sizeof(l->entry.d_name), "%s", e->path + strlen(path) + 1);
        return &l->entry;
    }
    return NULL;
}

WRAP(int, closedir, DIR *dir)
{
    int fd = ((struct listing *)dir)->fd;

    free(dir);
    return __wrap_close(fd);
}

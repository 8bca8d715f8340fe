/* Owns the files of the folder and their descriptors. */
#include "remotewrite/spool.h"

#include "remotewrite/spool_internal.h"

#include "exporter/base/buf.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>

static const char wanted[] = "wanted";

struct spool_name spool_name(uint64_t number, const char *suffix)
{
    struct spool_name name;

    (void)snprintf(name.text, sizeof(name.text), "%012" PRIu64 "%s", number, suffix);
    return name;
}

/* Creates the missing folders of the path. */
static int spool_make_folders(const char *dir)
{
    CLEANUP(cleanup_free) char *path = strdup(dir);

    if (!path)
        return -ENOMEM;
    for (char *p = path + 1;; p++) {
        char c = *p;

        if (c != '/' && c != '\0')
            continue;
        *p = '\0';
        if (mkdir(path, 0700) < 0 && errno != EEXIST)
            return -errno;
        if (c == '\0')
            return 0;
        *p = c;
    }
}

void spool_ask_for(const char *dir)
{
    int dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), fd;

    if (dir_fd < 0)
        return;
    fd = openat(dir_fd, wanted, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    cleanup_close(&fd);
    cleanup_close(&dir_fd);
}

bool spool_is_asked_for(const struct spool *s)
{
    return faccessat(s->dir_fd, wanted, F_OK, 0) == 0;
}

int spool_new(struct spool **ret, const char *dir, size_t segment_bytes)
{
    CLEANUP(cleanup_spool_free) struct spool *s = calloc(1, sizeof(*s));
    int r;

    if (!s)
        return -ENOMEM;
    s->dir_fd = s->lock_fd = s->fd = s->position_fd[0] = s->position_fd[1] = -1;
    s->segment_bytes = segment_bytes;
    s->next_number = 1;
    s->dir = strdup(dir);
    if (!s->dir)
        return -ENOMEM;
    r = spool_make_folders(dir);
    if (r < 0)
        return r;
    s->dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (s->dir_fd < 0)
        return -errno;
    s->lock_fd = openat(s->dir_fd, "lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (s->lock_fd < 0)
        return -errno;
    if (flock(s->lock_fd, LOCK_EX | LOCK_NB) < 0)
        return errno == EWOULDBLOCK ? -EBUSY : -errno;
    (void)unlinkat(s->dir_fd, wanted, 0);
    *ret = TAKE_PTR(s);
    return 0;
}

struct spool *spool_free(struct spool *s)
{
    if (!s)
        return NULL;
    for (struct spool_segment *next; s->oldest; s->oldest = next) {
        next = s->oldest->next;
        (void)spool_segment_free(s->oldest);
    }
    for (struct spool_segment *next; s->unread; s->unread = next) {
        next = s->unread->next;
        (void)spool_segment_free(s->unread);
    }
    cleanup_close(&s->fd);
    cleanup_close(&s->position_fd[0]);
    cleanup_close(&s->position_fd[1]);
    cleanup_close(&s->lock_fd);
    cleanup_close(&s->dir_fd);
    free(s->dir);
    free(s);
    return NULL;
}

uint64_t spool_bytes(const struct spool *s)
{
    return s->bytes;
}

struct spool_segment *spool_oldest(const struct spool *s)
{
    return s->oldest;
}

void spool_close_current(struct spool *s)
{
    if (s->dirty && s->fd >= 0 && fdatasync(s->fd) < 0)
        s->sync_failed = true;
    s->dirty = false;
    cleanup_close(&s->fd);
    s->fd = -1;
    s->current = NULL;
}

struct spool_segment *spool_segment_new(uint64_t number)
{
    struct spool_segment *segment = calloc(1, sizeof(*segment));

    if (!segment)
        return NULL;
    segment->number = number;
    buf_init(&segment->positions, POSITIONS_MAX);
    return segment;
}

struct spool_segment *spool_segment_free(struct spool_segment *segment)
{
    if (segment)
        buf_done(&segment->positions);
    free(segment);
    return NULL;
}

void spool_link(struct spool_segment **list, struct spool_segment *segment)
{
    while (*list && (*list)->number < segment->number)
        list = &(*list)->next;
    segment->next = *list;
    *list = segment;
}

void spool_unlink(struct spool_segment **list, struct spool_segment *segment)
{
    while (*list != segment)
        list = &(*list)->next;
    *list = segment->next;
}

void spool_use_number(struct spool *s, uint64_t number)
{
    if (number >= s->next_number)
        s->next_number = number + 1;
}

/* If the file of a damaged segment cannot be renamed, the next start finds it again. */
static void spool_remove_segment(struct spool *s, struct spool_segment *segment)
{
    spool_unlink(&s->oldest, segment);
    if (s->current == segment) {
        s->dirty = false;
        spool_close_current(s);
    }
    s->bytes -= segment->size;
    if (segment->damaged)
        (void)spool_set_aside(s, segment, ASIDE_DAMAGED);
    else
        (void)unlinkat(s->dir_fd, spool_name(segment->number, ".seg").text, 0);
    if (segment->late)
        (void)unlinkat(s->dir_fd, spool_name(segment->number, ".done").text, 0);
    (void)spool_segment_free(segment);
}

static int spool_begin_segment(struct spool *s)
{
    const struct spool_name name = spool_name(s->next_number, ".seg");
    struct spool_segment *segment;
    int fd, r;

    fd = openat(s->dir_fd, name.text, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    r = fd < 0 ? -errno : 0;
    if (fd >= 0) {
        ssize_t n = write(fd, segment_magic, SEGMENT_HEAD);

        r = n == SEGMENT_HEAD ? 0 : n < 0 ? -errno : -ENOSPC;
    }
    segment = r == 0 ? spool_segment_new(s->next_number) : NULL;
    if (!segment) {
        if (fd >= 0) {
            (void)unlinkat(s->dir_fd, name.text, 0);
            (void)close(fd);
        }
        return r < 0 ? r : -ENOMEM;
    }
    spool_link(&s->oldest, segment);
    spool_use_number(s, segment->number);
    segment->size = SEGMENT_HEAD;
    s->bytes += SEGMENT_HEAD;
    s->current = segment;
    s->fd = fd;
    s->folder_dirty = true;
    return 0;
}

/* Closes the current segment if the next record would make it too large. */
static int spool_rotate(struct spool *s, size_t need)
{
    if (s->current && s->current->size > SEGMENT_HEAD && s->current->size + need > s->segment_bytes) {
        spool_close_current(s);
        spool_drop_empty(s);
    }
    return s->current ? 0 : spool_begin_segment(s);
}

int spool_append(struct spool *s, const struct record_head *h, struct str payload, struct spool_place *ret)
{
    size_t total = RECORD_HEAD + h->lane.n + payload.n;
    char head[RECORD_HEAD];
    struct iovec parts[] = {
        {head, RECORD_HEAD},
        {(void *)(uintptr_t)h->lane.p, h->lane.n},
        {(void *)(uintptr_t)payload.p, payload.n},
    };
    ssize_t written;
    int r = spool_rotate(s, total);

    if (r < 0)
        return r;
    if (payload.n > RECORD_MAX || s->current->size + total > UINT32_MAX)
        return -EFBIG;
    record_head_put(head, h, payload);
    written = pwritev(s->fd, parts, ARRAY_SIZE(parts), s->current->size);
    if (written != (ssize_t)total) {
        r = written < 0 ? -errno : -ENOSPC;
        /* Half a record is harmless, but costs a search at the next start. At the file size limit, a new file
         * has room again. */
        if (ftruncate(s->fd, s->current->size) < 0 || (r == -EFBIG && s->current->size > SEGMENT_HEAD))
            spool_close_current(s);
        return r;
    }
    *ret = (struct spool_place){.segment = s->current,
                                .record = s->current->size,
                                .at = s->current->size + RECORD_HEAD + (uint32_t)h->lane.n,
                                .n = (uint32_t)payload.n};
    s->current->size += (uint32_t)total;
    s->current->live++;
    s->bytes += total;
    s->dirty = true;
    return 0;
}

int spool_sync(struct spool *s)
{
    int r = s->sync_failed ? -EIO : 0;

    if (s->dirty && s->fd >= 0 && fdatasync(s->fd) < 0)
        r = -errno;
    if (s->folder_dirty && fsync(s->dir_fd) < 0)
        r = -errno;
    s->dirty = s->folder_dirty = s->sync_failed = false;
    /* After a failed sync the kernel may have discarded dirty pages: do not append to this file. */
    if (r < 0)
        spool_close_current(s);
    return r;
}

int spool_read(struct spool *s, struct spool_place at, struct buf *into)
{
    CLEANUP(cleanup_close) int fd = -1;
    size_t total = at.at - at.record + at.n, mark = into->n;
    struct segment_item item;
    char *room;
    ssize_t got;
    int r = buf_room(into, total, &room);

    if (r < 0)
        return r;
    fd = openat(s->dir_fd, spool_name(at.segment->number, ".seg").text, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? -EBADMSG : -errno;
    got = pread(fd, room, total, at.record);
    if (got < 0)
        return -errno;
    if ((size_t)got != total || !record_read((struct str){room, total}, 0, &item) || item.payload.n != at.n) {
        at.segment->damaged = true;
        s->damaged_places++;
        s->damaged_bytes += total;
        return -EBADMSG;
    }
    memmove(room, item.payload.p, at.n);
    into->n = mark + at.n;
    return 0;
}

void spool_forget(struct spool *s, struct spool_place at)
{
    struct spool_segment *segment = at.segment;

    if (!segment || --segment->live > 0)
        return;
    if (segment != s->current || segment->size > s->segment_bytes / 4)
        spool_remove_segment(s, segment);
}

void spool_drop_empty(struct spool *s)
{
    struct spool_segment *next;

    for (struct spool_segment *segment = s->oldest; segment; segment = next) {
        next = segment->next;
        if (segment->live == 0 && segment != s->current)
            spool_remove_segment(s, segment);
    }
}

bool spool_shrink(struct spool *s)
{
    if (!s->current || s->current->live || s->current->size <= SEGMENT_HEAD)
        return false;
    spool_remove_segment(s, s->current);
    return true;
}

bool spool_is_there(struct spool *s)
{
    struct stat now, was;

    /* Errors other than ENOENT say nothing about the folder, which is still open. */
    if (stat(s->dir, &now) < 0)
        return errno != ENOENT;
    return fstat(s->dir_fd, &was) < 0 || (now.st_dev == was.st_dev && now.st_ino == was.st_ino);
}

struct spool_segment *spool_missing(struct spool *s)
{
    struct spool_segment *segment = s->oldest;
    struct stat st;

    while (segment &&
           (fstatat(s->dir_fd, spool_name(segment->number, ".seg").text, &st, AT_SYMLINK_NOFOLLOW) == 0 ||
            errno != ENOENT))
        segment = segment->next;
    if (segment && segment == s->current)
        spool_close_current(s);
    return segment;
}

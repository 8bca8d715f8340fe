/* Owns the list of segments, the descriptor of the one that is written, and those of the position files. The
 * endpoint's thread calls it, by the queue. It never reads a record that it has not checked, never appends to
 * a file whose last sync has failed, and never removes a segment with records that are still needed. */
#include "remotewrite/spool.h"

#include "exporter/base/alloc.h"
#include "exporter/base/buf.h"
#include "exporter/base/invariant.h"
#include "exporter/base/log.h"
#include "exporter/base/text.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/uio.h>

enum {
    POSITIONS_MAX = 64 << 20,
    NUMBER_DIGITS = 12,
    UNREAD_TEXT_MAX = 8 << 10,
    ASIDE_SEGMENTS = 4, /* files set aside may be as large as this number of segments */
};

static const char unknown_suffix[] = ".seg.unknown", damaged_suffix[] = ".seg.damaged";
static const char *const position_names[POSITION_FILES] = {"position.a", "position.b", "position.c"};

/* The segment that is written has a descriptor, and no other one has. */
static void spool_check_current(const struct spool *s)
{
    invariant((s->current == NULL) == (s->fd < 0));
    invariant(!s->current || s->current->size >= SEGMENT_HEAD);
}

/* Adds a copy of the segment, by name. */
static struct spool_segment *spool_link(struct spool *s, const struct spool_segment *made)
{
    struct spool_segment *before = TAILQ_LAST(&s->segments, spool_segments);
    struct spool_segment *segment = xmalloc(sizeof(*segment));

    *segment = *made;
    s->bytes += segment->size;
    while (before && strcmp(before->name, segment->name) > 0)
        before = TAILQ_PREV(before, spool_segments, entry);
    if (before)
        TAILQ_INSERT_AFTER(&s->segments, before, segment, entry);
    else
        TAILQ_INSERT_HEAD(&s->segments, segment, entry);
    invariant(!before || strcmp(before->name, segment->name) <= 0);
    return segment;
}

/* A file whose name begins with a number. */
struct spool_entry {
    char name[SPOOL_NAME_BYTES];
    const char *suffix; /* of the name */
    uint64_t number, bytes;
    bool is_file;
};

/* Reads the entry of this name in the folder. False if it is none of these. */
static bool spool_read_entry(const struct spool *s, const char *name, struct spool_entry *ret)
{
    struct spool_entry one = {.suffix = name + NUMBER_DIGITS};
    struct stat st = {0};
    int end = 0;

    if (sscanf(name, "%12" SCNu64 "%n", &one.number, &end) != 1 || end != NUMBER_DIGITS)
        return false;
    (void)fstatat(s->folder->fd, name, &st, AT_SYMLINK_NOFOLLOW);
    (void)snprintf(one.name, sizeof(one.name), "%.39s", name);
    one.bytes = (uint64_t)st.st_size;
    one.is_file = S_ISREG(st.st_mode);
    *ret = one;
    return true;
}

/* Calls fn with each of them. */
static int spool_each_entry(struct spool *s,
                            void (*fn)(struct spool *s, const struct spool_entry *one, void *arg), void *arg)
{
    CLEANUP(cleanup_close) int fd = openat(s->folder->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    const struct dirent *entry;
    int r;

    if (!d)
        return -errno;
    fd = -1;
    for (;;) {
        struct spool_entry one;

        errno = 0; /* readdir() leaves it at the end */
        entry = readdir(d);
        if (!entry)
            break;
        if (spool_read_entry(s, entry->d_name, &one))
            fn(s, &one, arg);
    }
    r = -errno;
    (void)closedir(d);
    return r;
}

/* arg: the name of the oldest so far, or "". */
static void spool_count_aside(struct spool *s, const struct spool_entry *one, void *arg)
{
    struct spool_files *files = NULL;
    char *oldest = arg;

    if (strcmp(one->suffix, damaged_suffix) == 0)
        files = &s->found.damaged;
    else if (strcmp(one->suffix, unknown_suffix) == 0)
        files = &s->found.unknown;
    if (!files)
        return;
    files->n++;
    files->bytes += one->bytes;
    if (!*oldest || strcmp(one->name, oldest) < 0)
        memcpy(oldest, one->name, SPOOL_NAME_BYTES);
}

/* Counts the files that were set aside; *oldest is the name of the oldest, or "". */
static int spool_measure_aside(struct spool *s, char oldest[SPOOL_NAME_BYTES])
{
    *oldest = '\0';
    s->found.damaged = s->found.unknown = (struct spool_files){0};
    return spool_each_entry(s, spool_count_aside, oldest);
}

/* Lists a segment, and notes the number, whatever the file is. */
static void spool_note_entry(struct spool *s, const struct spool_entry *one, void *arg)
{
    struct spool_segment made = {.number = one->number};

    spool_count_aside(s, one, arg);
    if (one->number >= s->next_number)
        s->next_number = one->number + 1;
    if (strcmp(one->suffix, ".seg") != 0)
        return;
    memcpy(made.name, one->name, SPOOL_NAME_BYTES);
    made.size = one->is_file ? (uint32_t)size_min((size_t)one->bytes, UINT32_MAX) : 0;
    (void)spool_link(s, &made);
}

int spool_new(struct spool **ret, struct folder *folder, size_t segment_bytes)
{
    CLEANUP(cleanup_spool_free) struct spool *s = xcalloc(1, sizeof(*s));
    char oldest[SPOOL_NAME_BYTES] = "";
    int r;

    invariant(folder_is_open(folder));
    s->folder = folder;
    s->fd = -1;
    for (size_t i = 0; i < POSITION_FILES; i++)
        s->position_fd[i] = -1;
    s->newest = s->synced = POSITION_FILES;
    s->segment_bytes = segment_bytes;
    s->next_number = 1;
    TAILQ_INIT(&s->segments);
    r = spool_each_entry(s, spool_note_entry, oldest);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(s);
    return 0;
}

struct spool *spool_free(struct spool *s)
{
    struct spool_segment *segment;

    if (!s)
        return NULL;
    while ((segment = TAILQ_FIRST(&s->segments))) {
        TAILQ_REMOVE(&s->segments, segment, entry);
        free(segment);
    }
    cleanup_close(&s->fd);
    for (size_t i = 0; i < POSITION_FILES; i++)
        cleanup_close(&s->position_fd[i]);
    free(s);
    return NULL;
}

/* ---- Segments read, and files that were set aside ---- */

/* Renames the file of the segment. A negative errno: it is still there. */
static int spool_set_aside(struct spool *s, const struct spool_segment *segment, const char *suffix,
                           const char *what)
{
    CLEANUP(cleanup_free)
    char *path = xasprintf("%s/%.*s%s", s->folder->path, NUMBER_DIGITS, segment->name, suffix);

    if (renameat(s->folder->fd, segment->name, s->folder->fd, strrchr(path, '/') + 1) < 0)
        return -errno;
    log_error(what, L_STR("path", path), L_INT("bytes", segment->size));
    s->folder->is_unsynced = true;
    return 0;
}

/* spool_trim_aside() measures what these set aside. */
static int spool_set_aside_unknown(struct spool *s, const struct spool_segment *segment)
{
    int r = spool_set_aside(s, segment, unknown_suffix, "spool segment of another version set aside");

    s->found.unknown.n += r == 0;
    return r;
}

static int spool_set_aside_damaged(struct spool *s, const struct spool_segment *segment)
{
    int r = spool_set_aside(s, segment, damaged_suffix, "damaged spool segment set aside");

    s->found.damaged.n += r == 0;
    return r;
}

static void spool_note_unread(struct spool *s, const struct spool_segment *segment, int error)
{
    BUF_AUTO(text, UNREAD_TEXT_MAX);

    buf_printf(&text, "cannot read spool segment %s/%s: %s", s->folder->path, segment->name,
               strerror(-error));
    text_line(s->found.error, sizeof(s->found.error), buf_str(&text));
    s->read_error = error;
    s->found.unread = (struct spool_files){1, segment->size};
}

int spool_load(struct spool *s, struct spool_segment *segment, struct buf *bytes)
{
    int r = folder_read(s->folder, segment->name, bytes);

    if (r == 0 && segment_has_other_version(buf_str(bytes)))
        r = spool_set_aside_unknown(s, segment) ?: -ENOENT;
    if (r < 0 && r != -ENOENT) {
        spool_note_unread(s, segment, r);
        return r;
    }
    invariant(segment->live == 0 && segment != s->current && s->bytes >= segment->size);
    s->bytes -= segment->size;
    segment->size = (uint32_t)bytes->n;
    s->bytes += r == 0 ? segment->size : 0;
    if (r == 0)
        return 0;
    TAILQ_REMOVE(&s->segments, segment, entry);
    free(segment);
    return r;
}

void spool_note_live(struct spool_segment *segment)
{
    segment->live++;
}

void spool_note_damage(struct spool *s, struct spool_segment *segment, size_t n)
{
    segment->damaged = true;
    s->found.damaged_places++;
    s->found.damaged_bytes += n;
}

void spool_note_torn(struct spool *s, size_t n)
{
    s->found.torn_bytes += n;
}

static void spool_close_current(struct spool *s)
{
    if (s->dirty && s->fd >= 0 && fdatasync(s->fd) < 0)
        s->sync_failed = true;
    s->dirty = false;
    cleanup_close(&s->fd);
    s->fd = -1;
    s->current = NULL;
}

/* If the file of a damaged segment cannot be renamed, the next start finds it again. */
static void spool_remove_segment(struct spool *s, struct spool_segment *segment)
{
    invariant(segment->live == 0 && s->bytes >= segment->size);
    TAILQ_REMOVE(&s->segments, segment, entry);
    if (s->current == segment) {
        s->dirty = false;
        spool_close_current(s);
    }
    s->bytes -= segment->size;
    if (segment->damaged)
        (void)spool_set_aside_damaged(s, segment);
    else
        folder_remove(s->folder, segment->name);
    free(segment);
}

/* Whether it can go. The one that is written stays until it is large, as a new one costs two syncs. */
static bool spool_is_empty(const struct spool *s, const struct spool_segment *segment)
{
    return segment->live == 0 && (segment != s->current || segment->size > s->segment_bytes / 4);
}

bool spool_has_empty(const struct spool *s)
{
    const struct spool_segment *segment;

    TAILQ_FOREACH (segment, &s->segments, entry)
        if (spool_is_empty(s, segment))
            return true;
    return false;
}

void spool_remove_empty(struct spool *s)
{
    struct spool_segment *next;

    for (struct spool_segment *segment = TAILQ_FIRST(&s->segments); segment; segment = next) {
        next = TAILQ_NEXT(segment, entry);
        if (spool_is_empty(s, segment))
            spool_remove_segment(s, segment);
    }
}

uint64_t spool_idle_bytes(const struct spool *s)
{
    return s->found.damaged.bytes + s->found.unknown.bytes;
}

void spool_trim_aside(struct spool *s)
{
    while (s->found.damaged.n + s->found.unknown.n) {
        char oldest[SPOOL_NAME_BYTES];
        size_t n;

        if (spool_measure_aside(s, oldest) < 0)
            return;
        n = s->found.damaged.n + s->found.unknown.n;
        /* The newest stays, whatever its size. */
        if (n <= 1 ||
            (n <= SPOOL_ASIDE_FILES && spool_idle_bytes(s) <= (uint64_t)ASIDE_SEGMENTS * s->segment_bytes))
            return;
        log_warn("old spool segment removed that was set aside", L_STR("dir", s->folder->path),
                 L_STR("file", oldest));
        if (unlinkat(s->folder->fd, oldest, 0) < 0)
            return;
    }
}

struct spool_stats spool_stats(const struct spool *s)
{
    struct spool_stats now = s->found;

    now.bytes = s->bytes + spool_idle_bytes(s);
    return now;
}

/* ---- Records ---- */

static int spool_begin_segment(struct spool *s)
{
    struct spool_segment made = {.number = s->next_number, .size = SEGMENT_HEAD};
    int fd, r;

    (void)snprintf(made.name, sizeof(made.name), "%012" PRIu64 ".seg", s->next_number);
    fd = openat(s->folder->fd, made.name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    r = write_result(fd < 0 ? -1 : write(fd, segment_magic, SEGMENT_HEAD), SEGMENT_HEAD);
    if (r < 0) {
        if (fd >= 0)
            (void)unlinkat(s->folder->fd, made.name, 0);
        cleanup_close(&fd);
        return r;
    }
    s->next_number++;
    s->current = spool_link(s, &made);
    s->fd = fd;
    s->folder->is_unsynced = true;
    return 0;
}

int spool_append(struct spool *s, const struct record_head *h, struct str payload,
                 struct spool_segment **ret_segment, uint32_t *ret_at)
{
    size_t total = record_size(h, payload.n);
    char head[RECORD_HEAD];
    struct iovec parts[] = {
        {head, RECORD_HEAD},
        {(void *)(uintptr_t)h->lane.p, h->lane.n},
        {(void *)(uintptr_t)payload.p, payload.n},
    };
    int r;

    if (s->current && s->current->size > SEGMENT_HEAD && s->current->size + total > s->segment_bytes)
        spool_close_current(s);
    r = s->current ? 0 : spool_begin_segment(s);
    if (r < 0)
        return r;
    spool_check_current(s);
    if (payload.n > RECORD_MAX || s->current->size + total > UINT32_MAX)
        return -EFBIG;
    record_head_put(head, h, payload);
    r = write_result(pwritev(s->fd, parts, ARRAY_SIZE(parts), s->current->size), total);
    if (r < 0) {
        /* Half a record is harmless, but costs a search at the next start. At the file size limit, a new file
         * has room again. */
        if (ftruncate(s->fd, s->current->size) < 0 || (r == -EFBIG && s->current->size > SEGMENT_HEAD))
            spool_close_current(s);
        return r;
    }
    *ret_segment = s->current;
    *ret_at = s->current->size;
    s->current->size += (uint32_t)total;
    s->current->live++;
    s->bytes += total;
    s->dirty = true;
    invariant(*ret_at >= SEGMENT_HEAD && *ret_at + total == s->current->size);
    return 0;
}

int spool_sync(struct spool *s)
{
    int r = s->sync_failed ? -EIO : 0;
    struct stat st;

    if (s->dirty && s->fd >= 0 && fdatasync(s->fd) < 0)
        r = -errno;
    if (s->fd >= 0 && fstat(s->fd, &st) == 0 && st.st_nlink == 0) /* someone has removed the file */
        r = -ENOENT;
    r = folder_sync(s->folder) ?: r;
    s->dirty = s->sync_failed = false;
    /* After a failed sync the kernel may have discarded dirty pages: do not append to this file. */
    if (r < 0)
        spool_close_current(s);
    return r;
}

int spool_sync_folder(struct spool *s)
{
    s->folder->is_unsynced = true;
    return spool_sync(s);
}

int spool_read(struct spool *s, struct spool_segment *segment, uint32_t at, size_t n, struct buf *into)
{
    CLEANUP(cleanup_close)
    int fd = openat(s->folder->fd, segment->name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct segment_item item;
    char *room;
    ssize_t got;
    int r;

    /* Where we have written it, or found it when the segment was read as a whole. */
    invariant(segment->live > 0 && at >= SEGMENT_HEAD && at + n <= segment->size);
    if ((fd < 0 && errno == ENOENT) || buf_reserve(into, n, &room) < 0)
        return -EBADMSG;
    got = fd < 0 ? -1 : pread(fd, room, n, at);
    if (got < 0) {
        r = -errno;
        spool_note_unread(s, segment, r);
        return r;
    }
    if ((size_t)got != n || !record_read((struct str){room, n}, 0, &item) || item.n != n) {
        spool_note_damage(s, segment, n);
        return -EBADMSG;
    }
    memmove(room, item.payload.p, item.payload.n);
    into->n = item.payload.n;
    return 0;
}

void spool_forget(struct spool_segment *segment)
{
    invariant(segment->live > 0);
    segment->live--;
}

void spool_leave_empty(struct spool *s)
{
    if (s->current && s->current->live == 0 && s->current->size > SEGMENT_HEAD)
        spool_close_current(s);
}

/* ---- Read positions ---- */

static int spool_open_position(struct spool *s, size_t file)
{
    int *fd = &s->position_fd[file];

    if (*fd >= 0)
        return 0;
    *fd = folder_create(s->folder, position_names[file]);
    if (*fd < 0)
        return -errno;
    s->folder->is_unsynced = true;
    return 0;
}

static int spool_sync_position(struct spool *s, size_t file)
{
    int r = fdatasync(s->position_fd[file]) < 0 ? -errno : folder_sync(s->folder);

    if (r == 0)
        s->synced = file;
    return r;
}

int spool_read_positions(struct spool *s, struct buf *into, struct position_reader *ret)
{
    int error = 0;

    *ret = (struct position_reader){0};
    for (size_t i = 0; i < POSITION_FILES; i++) {
        BUF_AUTO(bytes, POSITIONS_MAX);
        struct position_reader one;
        int r = folder_read(s->folder, position_names[i], &bytes);

        if (r < 0 && r != -ENOENT)
            error = r;
        if (r < 0 || !position_open(&one, buf_str(&bytes)) || (ret->next && one.generation < ret->generation))
            continue;
        buf_done(into);
        *into = buf_take(&bytes);
        *ret = one;
        s->newest = i;
    }
    s->generation = ret->generation;
    if (!ret->next)
        return error;
    /* After kill -9 it need not be on disk. Where that fails, the next ones are synced within a second. */
    if (spool_open_position(s, s->newest) == 0)
        (void)spool_sync_position(s, s->newest);
    return 0;
}

/* The next file in turn, of those that may be overwritten. */
static size_t spool_next_position(const struct spool *s)
{
    size_t next = s->newest == POSITION_FILES ? 0 : s->newest;

    while (next == s->newest || next == s->synced)
        next = (next + 1) % POSITION_FILES;
    return next;
}

int spool_put_position(struct spool *s, uint64_t generation, struct str bytes, bool wait_for_disk)
{
    size_t file = spool_next_position(s);
    int r = spool_open_position(s, file);

    invariant(generation == s->generation + 1);
    if (r < 0)
        return r;
    r = write_result(pwrite(s->position_fd[file], bytes.p, bytes.n, 0), bytes.n);
    if (r == 0 && wait_for_disk)
        r = spool_sync_position(s, file);
    if (r < 0)
        return r;
    s->generation = generation;
    s->newest = file;
    return 0;
}

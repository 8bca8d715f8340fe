/* Recovering a spool at start, and the small files beside its segments. */
#include "remotewrite/spool_internal.h"

#include "exporter/base/buf.h"
#include "exporter/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>

enum { SEGMENT_FILE_MAX = 256 << 20, PATH_BYTES = 4352 };

struct segment_numbers {
    uint64_t *list;
    size_t n, cap;
};

static int numbers_add(void *arg, const char *name)
{
    struct segment_numbers *all = arg;
    uint64_t number;
    int end = 0;

    if (sscanf(name, "%12" SCNu64 ".seg%n", &number, &end) != 1 || end != 16 || name[16])
        return 0;
    if (all->n == all->cap) {
        uint64_t *more = realloc(all->list, (all->cap = all->cap * 2 + 16) * sizeof(*more));

        if (!more)
            return -ENOMEM;
        all->list = more;
    }
    all->list[all->n++] = number;
    return 0;
}

static int compare_numbers(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

struct spool_recovery {
    struct spool *spool;
    int (*on_record)(void *arg, const struct record_head *h, struct spool_place at);
    void *arg;
    struct spool_found *found;
};

static int recover_records(struct spool_recovery *v, struct spool_segment *segment, struct str bytes)
{
    struct segment_reader reader;
    struct segment_item item;
    enum segment_found what;
    int r = 0;

    segment_reader_init(&reader, bytes);
    while (r >= 0 && (what = segment_next(&reader, &item)) != SEGMENT_END && what != SEGMENT_TORN) {
        struct spool_place place = {segment, (uint32_t)item.at, (uint32_t)(item.payload.p - bytes.p),
                                    (uint32_t)item.payload.n};

        if (what == SEGMENT_DAMAGE) {
            v->found->damaged_places++;
            v->found->damaged_bytes += item.n;
            continue;
        }
        r = v->on_record(v->arg, &item.head, place);
        segment->live += r > 0;
    }
    if (r >= 0 && what == SEGMENT_TORN)
        v->found->torn_bytes += item.n;
    return r < 0 ? r : 0;
}

static int recover_segment(struct spool_recovery *v, uint64_t number)
{
    BUF_AUTO(bytes, SEGMENT_FILE_MAX);
    struct spool_segment *segment;
    char name[32];
    int r;

    (void)snprintf(name, sizeof(name), "%012" PRIu64 ".seg", number);
    segment = spool_add_segment(v->spool, number);
    if (!segment)
        return -ENOMEM;
    r = spool_read_file(v->spool, name, &bytes);
    if (r == -ENOMEM)
        return r;
    if (r < 0) {
        v->found->damaged_places++;
        return 0;
    }
    segment->size = (uint32_t)bytes.n;
    v->spool->bytes += bytes.n;
    return recover_records(v, segment, buf_str(&bytes));
}

int spool_recover(struct spool *s,
                  int (*on_record)(void *arg, const struct record_head *h, struct spool_place at), void *arg,
                  struct spool_found *ret)
{
    struct spool_recovery v = {.spool = s, .on_record = on_record, .arg = arg, .found = ret};
    struct segment_numbers all = {0};
    int r = spool_each_file(s, "", numbers_add, &all);

    *ret = (struct spool_found){0};
    if (r == 0 && all.n)
        qsort(all.list, all.n, sizeof(all.list[0]), compare_numbers);
    for (size_t i = 0; i < all.n && r == 0; i++)
        r = recover_segment(&v, all.list[i]);
    free(all.list);
    spool_drop_empty(s);
    return r;
}

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

int spool_write_file(struct spool *s, const char *name, struct str bytes)
{
    CLEANUP(cleanup_close) int fd = -1;
    char temporary[64];
    int r;

    (void)snprintf(temporary, sizeof(temporary), "new.%.48s", name);
    fd = openat(s->dir_fd, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    r = spool_write_all(fd, bytes);
    if (r == 0 && (fdatasync(fd) < 0 || renameat(s->dir_fd, temporary, s->dir_fd, name) < 0))
        r = -errno;
    if (r == 0)
        s->folder_dirty = true;
    else
        (void)unlinkat(s->dir_fd, temporary, 0);
    return r;
}

int spool_read_file(struct spool *s, const char *name, struct buf *into)
{
    char path[PATH_BYTES];
    int n = snprintf(path, sizeof(path), "%s/%s", s->dir, name);

    return n < 0 || (size_t)n >= sizeof(path) ? -ENAMETOOLONG : file_read(path, into);
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

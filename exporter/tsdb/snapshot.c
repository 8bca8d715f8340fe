#include "exporter/tsdb/snapshot.h"

#include "exporter/base/buf.h"
#include "exporter/tsdb/chunk.h"
#include "exporter/tsdb/view.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <zlib.h>

#define FILE_NAME "otlp-series"

enum { MAGIC = 0x32535344, FLUSH_BYTES = 1 << 20, RECORD_MAX = 64 << 20 };

/* All numbers are in the byte order of the machine, which the first one shows. */
struct file_head {
    uint32_t magic, crc; /* of what follows here */
    int64_t age_ms, complete_from, series_limit_ms, bytes_limit_ms;
};

/* Then labels as lengths and bytes, and n_chunks heads, each with its stream as in a view. The last record
 * has no labels, and the number of records as n_bytes. */
struct record_head {
    uint32_t crc; /* of what follows here, and of the bytes */
    uint32_t n_bytes, n_chunks, n_labels;
};

/* --- writing --- */

struct writer {
    int fd;
    struct buf out;
    uint32_t records;
};

static int writer_flush(struct writer *w)
{
    for (size_t at = 0; at < w->out.n;) {
        ssize_t n = write(w->fd, w->out.p + at, w->out.n - at);

        if (n < 0 && errno != EINTR)
            return -errno;
        at += n > 0 ? (size_t)n : 0;
    }
    buf_truncate(&w->out, 0);
    return 0;
}

static uint32_t checksum(const void *p, size_t n)
{
    return (uint32_t)crc32_z(0, (const unsigned char *)p, n);
}

static int put_text(struct buf *b, struct str s)
{
    uint32_t n = (uint32_t)s.n;

    return buf_put(b, &n, sizeof(n)) ?: buf_put_str(b, s);
}

static int writer_put(struct writer *w, const struct tsdb_view *v, size_t i)
{
    struct record_head head = {0};
    size_t begin = w->out.n, n;
    const struct tsdb_label *labels = tsdb_view_labels(v, i, &n);
    struct str chunks = view_chunks(v, i, &head.n_chunks);
    int r = buf_put(&w->out, &head, sizeof(head));

    for (size_t k = 0; k < n && r == 0; k++)
        r = put_text(&w->out, labels[k].name) ?: put_text(&w->out, labels[k].value);
    r = r ?: buf_put_str(&w->out, chunks);
    if (r < 0)
        return r;
    head.n_labels = (uint32_t)n;
    head.n_bytes = (uint32_t)(w->out.n - begin - sizeof(head));
    memcpy(w->out.p + begin, &head, sizeof(head));
    head.crc = checksum(w->out.p + begin + sizeof(head.crc), w->out.n - begin - sizeof(head.crc));
    memcpy(w->out.p + begin, &head.crc, sizeof(head.crc));
    w->records++;
    return w->out.n >= FLUSH_BYTES ? writer_flush(w) : 0;
}

static int writer_begin(struct writer *w, struct tsdb *t)
{
    struct file_head head = {.magic = MAGIC};

    tsdb_lock(t);
    t->readers++;
    head.age_ms = t->age_ms;
    head.complete_from = t->complete_from;
    head.series_limit_ms = t->stats.series_limit_ms;
    head.bytes_limit_ms = t->stats.bytes_limit_ms;
    tsdb_unlock(t);
    head.crc = checksum(&head.age_ms, sizeof(head) - 8);
    return buf_put(&w->out, &head, sizeof(head));
}

static int writer_end(struct writer *w)
{
    struct record_head head = {.n_bytes = w->records};

    head.crc = checksum(&head.n_bytes, sizeof(head) - sizeof(head.crc));
    return buf_put(&w->out, &head, sizeof(head)) ?: writer_flush(w) ?: fsync(w->fd) < 0 ? -errno : 0;
}

/* All series, some of them at a time. */
static int writer_run(struct writer *w, struct tsdb *t)
{
    int r = writer_begin(w, t);

    for (uint32_t at = 0; r == 0;) {
        CLEANUP(cleanup_tsdb_view_free) struct tsdb_view *v = NULL;
        uint32_t before = at;

        r = view_new(&v, INT64_MIN, INT64_MAX, UINT64_MAX) ?: view_add_some(v, t, &at);
        for (size_t i = 0; r == 0 && i < tsdb_view_count(v); i++)
            r = writer_put(w, v, i);
        if (at == before)
            break;
    }
    tsdb_lock(t);
    t->readers--;
    tsdb_unlock(t);
    return r ?: writer_end(w);
}

int snapshot_save(struct tsdb *t, const char *dir)
{
    int made = mkdir(dir, 0700) < 0 && errno != EEXIST ? -errno : 0;
    CLEANUP(cleanup_close) int dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct writer w = {.fd = -1};
    int r = dir_fd >= 0 ? 0 : made ? made : -errno;

    buf_init(&w.out, RECORD_MAX + FLUSH_BYTES);
    if (r == 0) {
        w.fd = openat(dir_fd, FILE_NAME ".tmp", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        r = w.fd < 0 ? -errno : writer_run(&w, t);
    }
    cleanup_close(&w.fd);
    buf_done(&w.out);
    if (r == 0 && (renameat(dir_fd, FILE_NAME ".tmp", dir_fd, FILE_NAME) < 0 || fsync(dir_fd) < 0))
        r = -errno;
    if (r < 0 && w.fd >= 0)
        (void)unlinkat(dir_fd, FILE_NAME ".tmp", 0);
    return r;
}

/* --- reading --- */

struct input {
    const char *p, *end;
};

static bool input_take(struct input *in, size_t n, const char **ret)
{
    *ret = in->p;
    if ((size_t)(in->end - in->p) < n)
        return false;
    in->p += n;
    return true;
}

static bool input_text(struct input *in, struct str *ret)
{
    const char *p;
    uint32_t n;

    if (!input_take(in, sizeof(n), &p))
        return false;
    memcpy(&n, p, sizeof(n));
    ret->n = n;
    return input_take(in, n, &ret->p);
}

/* Appends the samples of a chunk. The view's CHUNK_PAD bytes follow its stream. */
static int load_chunk(struct tsdb *t, uint64_t ref, struct input *in, struct snapshot_loaded *ret)
{
    struct tsdb_sample samples[CHUNK_MAX_SAMPLES];
    enum tsdb_result results[CHUNK_MAX_SAMPLES];
    struct chunk_reader reader;
    struct chunk_head head;
    const char *p;
    size_t n = 0;
    int64_t at;
    uint64_t v;
    int r;

    if (!input_take(in, sizeof(head), &p))
        return -EBADMSG;
    memcpy(&head, p, sizeof(head));
    if (head.count == 0 || !input_take(in, view_stream_bytes(&head), &p))
        return -EBADMSG;
    chunk_reader_init(&reader, &head, (const unsigned char *)p);
    while ((r = chunk_next(&reader, &at, &v)) == 1) {
        samples[n].ref = ref;
        samples[n].t_ms = at;
        memcpy(&samples[n++].v, &v, sizeof(v));
    }
    ret->samples += n - tsdb_append(t, samples, n, results);
    return r;
}

static int load_record(struct tsdb *t, const struct record_head *head, struct input *in,
                       struct snapshot_loaded *ret)
{
    struct tsdb_label labels[TSDB_MAX_LABELS];
    uint64_t ref = 0;
    enum tsdb_result result;
    int r = 0;

    if (head->n_labels > TSDB_MAX_LABELS)
        return -EBADMSG;
    for (uint32_t i = 0; i < head->n_labels; i++)
        if (!input_text(in, &labels[i].name) || !input_text(in, &labels[i].value))
            return -EBADMSG;
    result = tsdb_ref(t, labels, head->n_labels, &ref);
    if (result == TSDB_BAD_LABELS)
        return -EBADMSG;
    if (result != TSDB_OK) /* beyond a limit of today: counted there */
        return 0;
    ret->series++;
    for (uint32_t i = 0; i < head->n_chunks && r == 0; i++)
        r = load_chunk(t, ref, in, ret);
    return r ?: in->p == in->end ? 0 : -EBADMSG;
}

/* Reads n bytes. -EBADMSG if the file ends before. */
static int read_all(int fd, void *to, size_t n)
{
    for (size_t at = 0; at < n;) {
        ssize_t got = read(fd, (char *)to + at, n - at);

        if (got == 0)
            return -EBADMSG;
        if (got < 0 && errno != EINTR)
            return -errno;
        at += got > 0 ? (size_t)got : 0;
    }
    return 0;
}

static int load_head(struct tsdb *t, int fd, struct file_head *head)
{
    int r = read_all(fd, head, sizeof(*head));

    if (r < 0)
        return r;
    if (head->magic != MAGIC || head->crc != checksum(&head->age_ms, sizeof(*head) - 8))
        return -EBADMSG;
    tsdb_lock(t);
    if (head->age_ms > t->age_ms)
        t->age_ms = head->age_ms;
    tsdb_unlock(t);
    return 0;
}

static int load_records(struct tsdb *t, int fd, struct snapshot_loaded *ret)
{
    CLEANUP(buf_done) struct buf bytes = {.max = RECORD_MAX + sizeof(struct record_head)};

    for (uint32_t records = 0;; records++) {
        struct record_head head;
        struct input in;
        char *room;
        int r = read_all(fd, &head, sizeof(head));

        if (r < 0)
            return r;
        if (head.n_labels == 0)
            return head.crc == checksum(&head.n_bytes, sizeof(head) - 4) && head.n_bytes == records
                       ? 0
                       : -EBADMSG;
        if (head.n_bytes > RECORD_MAX)
            return -EBADMSG;
        buf_truncate(&bytes, 0);
        r = buf_room(&bytes, sizeof(head) + head.n_bytes, &room);
        r = r ?: read_all(fd, room + sizeof(head), head.n_bytes);
        if (r < 0)
            return r;
        memcpy(room, &head, sizeof(head));
        in = (struct input){room + sizeof(head), room + sizeof(head) + head.n_bytes};
        if (head.crc != checksum(room + sizeof(head.crc), (size_t)(in.end - room) - sizeof(head.crc)))
            return -EBADMSG;
        r = load_record(t, &head, &in, ret);
        if (r < 0)
            return r;
    }
}

int snapshot_load(struct tsdb *t, const char *dir, struct snapshot_loaded *ret)
{
    CLEANUP(cleanup_close) int dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), fd = -1;
    struct file_head head;
    int r;

    *ret = (struct snapshot_loaded){0};
    if (dir_fd >= 0)
        fd = openat(dir_fd, FILE_NAME, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? 0 : -errno;
    r = load_head(t, fd, &head);
    if (r < 0)
        return r;
    r = load_records(t, fd, ret);
    /* Last: while samples are missing, new series are refused. */
    tsdb_lock(t);
    if (head.complete_from > t->complete_from)
        t->complete_from = head.complete_from;
    if (head.series_limit_ms > t->stats.series_limit_ms)
        t->stats.series_limit_ms = head.series_limit_ms;
    if (head.bytes_limit_ms > t->stats.bytes_limit_ms)
        t->stats.bytes_limit_ms = head.bytes_limit_ms;
    tsdb_unlock(t);
    return r;
}

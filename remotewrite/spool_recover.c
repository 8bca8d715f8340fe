/* Reading the segments: at start, and again those that could not be read. */
#include "remotewrite/spool_internal.h"

#include "exporter/base/buf.h"
#include "exporter/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>

enum { SEGMENT_FILE_MAX = 256 << 20 };

/* What a file of the folder is. */
enum listed_kind { LISTED_SEGMENT, LISTED_POSITIONS, LISTED_ASIDE, LISTED_KINDS };

struct listed_file {
    uint64_t number;
    enum listed_kind kind;
};

struct spool_listing {
    struct listed_file *list;
    size_t n, cap;
};

static enum listed_kind listed_kind_of(const char *suffix)
{
    if (strcmp(suffix, ".seg") == 0)
        return LISTED_SEGMENT;
    if (strcmp(suffix, ".done") == 0)
        return LISTED_POSITIONS;
    for (unsigned kind = 0; kind < ASIDE_KINDS; kind++)
        if (strcmp(suffix, spool_aside_suffixes[kind]) == 0)
            return LISTED_ASIDE;
    return LISTED_KINDS;
}

static int listing_add(void *arg, const char *name)
{
    struct spool_listing *all = arg;
    struct listed_file file;
    int end = 0;

    if (sscanf(name, "%12" SCNu64 "%n", &file.number, &end) != 1 || end != 12)
        return 0;
    file.kind = listed_kind_of(name + end);
    if (file.kind == LISTED_KINDS)
        return 0;
    if (all->n == all->cap) {
        struct listed_file *more = realloc(all->list, (all->cap = all->cap * 2 + 16) * sizeof(*more));

        if (!more)
            return -ENOMEM;
        all->list = more;
    }
    all->list[all->n++] = file;
    return 0;
}

static int compare_listed(const void *a, const void *b)
{
    const struct listed_file *x = a, *y = b;

    return x->number != y->number ? (x->number > y->number) - (x->number < y->number)
                                  : (x->kind > y->kind) - (x->kind < y->kind);
}

static int recover_records(const struct spool_reader *reader, struct spool_segment *segment, struct str bytes,
                           bool *ret_damage)
{
    struct segment_reader from;
    struct segment_item item;
    enum segment_found what;
    int r = segment->late ? reader->on_positions(reader->arg, buf_str(&segment->positions)) : 0;

    segment_reader_init(&from, bytes);
    while (r >= 0 && (what = segment_next(&from, &item)) != SEGMENT_END) {
        struct spool_place place = {segment, (uint32_t)item.at, (uint32_t)(item.payload.p - bytes.p),
                                    (uint32_t)item.payload.n};

        *ret_damage = *ret_damage || what != SEGMENT_RECORD;
        if (what != SEGMENT_RECORD)
            continue;
        r = reader->on_record(reader->arg, &item.head, place);
        segment->live += r > 0;
    }
    return r < 0 ? r : 0;
}

/* Once per segment. A torn record was not finished, so the rest of the file is whole. */
static void recover_damage(struct spool *s, const struct spool_reader *reader, struct spool_segment *segment,
                           struct str bytes)
{
    struct segment_reader from;
    struct segment_item item;
    enum segment_found what;

    segment_reader_init(&from, bytes);
    while ((what = segment_next(&from, &item)) != SEGMENT_END) {
        struct record_head h;

        if (what == SEGMENT_RECORD)
            continue;
        for (size_t at = item.at; segment_next_lost(bytes, &at, item.at + item.n, &h);)
            reader->on_lost(reader->arg, segment, &h);
        if (what == SEGMENT_TORN) {
            s->torn_bytes += item.n;
            continue;
        }
        s->damaged_places++;
        s->damaged_bytes += item.n;
        segment->damaged = true;
    }
    segment->scanned = true;
}

static uint32_t segment_file_size(const struct spool *s, const struct spool_segment *segment)
{
    const struct spool_name name = spool_name(segment->number, ".seg");
    struct stat st;

    if (fstatat(s->dir_fd, name.text, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
        return 0;
    return st.st_size > UINT32_MAX ? UINT32_MAX : (uint32_t)st.st_size;
}

/* Stores the positions of the segment; on disk, the first time. */
static int late_store(struct spool *s, struct spool_segment *segment)
{
    bool first = !segment->positions_stored;
    int r =
        spool_write_file(s, spool_name(segment->number, ".done").text, buf_str(&segment->positions), first);

    if (r == 0 && first && fsync(s->dir_fd) < 0)
        r = -errno;
    segment->positions_stored = !first || r == 0;
    return r;
}

/* From now on the spool's read positions may pass records that the segment holds. */
static int segment_take_positions(struct spool *s, const struct spool_reader *reader,
                                  struct spool_segment *segment)
{
    int r = segment->late ? 0 : reader->positions(reader->arg, NULL, &segment->positions);

    if (r < 0 || segment->late)
        return r;
    segment->late = true;
    (void)late_store(s, segment); /* else tried again before the positions of the spool are stored */
    return 0;
}

/* The segment, which is in no list, cannot be read now. */
static int spool_keep_unread(struct spool *s, const struct spool_reader *reader,
                             struct spool_segment *segment, int error)
{
    char path[SPOOL_PATH_BYTES];
    /* One line for all segments that fail alike. */
    bool news = segment->error == 0 && (!s->unread || s->unread->error != error);
    int r;

    segment->error = error;
    segment->size = segment_file_size(s, segment);
    segment->live = 0;
    s->unread_bytes += segment->size;
    spool_link(&s->unread, segment);
    r = segment_take_positions(s, reader, segment);
    (void)spool_path(s, spool_name(segment->number, ".seg").text, path);
    if (news)
        log_error("cannot read a spool segment, it stays and is tried again", L_STR("path", path),
                  L_INT("bytes", segment->size), L_ERR(error));
    return r;
}

static int read_segment(struct spool *s, struct spool_segment *segment, struct buf *bytes)
{
    if (segment->late && segment->positions.n == 0) {
        int r = spool_read_file(s, spool_name(segment->number, ".done").text, &segment->positions);

        if (r < 0 && r != -ENOENT)
            return r;
        segment->positions_stored = true;
    }
    return spool_read_file(s, spool_name(segment->number, ".seg").text, bytes);
}

/* Reads a segment that is in no list, and adds it to one or frees it. */
static int recover_segment(struct spool *s, const struct spool_reader *reader, struct spool_segment *segment)
{
    BUF_AUTO(bytes, SEGMENT_FILE_MAX);
    bool damage = false;
    int r = read_segment(s, segment, &bytes);

    if (r == 0 && segment_has_other_version(buf_str(&bytes))) {
        segment->size = (uint32_t)bytes.n;
        r = spool_set_aside(s, segment, ASIDE_UNKNOWN);
        if (r == 0) {
            (void)spool_segment_free(segment);
            return 0;
        }
    }
    if (r == 0) {
        r = recover_records(reader, segment, buf_str(&bytes), &damage);
        if (r < 0)
            reader->on_unread(reader->arg, segment);
    }
    if (r == -ENOENT) {
        log_error("spool segment was removed before it was read", L_STR("dir", s->dir),
                  L_INT("segment", segment->number), L_INT("bytes", segment->size));
        (void)spool_segment_free(segment);
        return 0;
    }
    if (r < 0)
        return spool_keep_unread(s, reader, segment, r);
    if (damage && !segment->scanned)
        recover_damage(s, reader, segment, buf_str(&bytes));
    if (segment->error < 0)
        log_info("spool segment can be read again", L_STR("dir", s->dir), L_INT("segment", segment->number));
    segment->error = 0;
    segment->size = (uint32_t)bytes.n;
    s->bytes += bytes.n;
    spool_link(&s->oldest, segment);
    return 0;
}

static int recover_file(struct spool *s, const struct spool_reader *reader, const struct listed_file *file,
                        bool late)
{
    struct spool_segment *segment;

    spool_use_number(s, file->number);
    if (file->kind != LISTED_SEGMENT)
        return 0;
    segment = spool_segment_new(file->number);
    if (!segment)
        return -ENOMEM;
    segment->late = late;
    return recover_segment(s, reader, segment);
}

int spool_recover(struct spool *s, const struct spool_reader *reader)
{
    struct spool_listing all = {0};
    int r = spool_each_file(s, "", listing_add, &all);

    if (r == 0 && all.n)
        qsort(all.list, all.n, sizeof(all.list[0]), compare_listed);
    for (size_t i = 0; i < all.n && r == 0; i++) {
        const struct listed_file *next = i + 1 < all.n ? &all.list[i + 1] : &all.list[i];

        r = recover_file(s, reader, &all.list[i],
                         next->kind == LISTED_POSITIONS && next->number == all.list[i].number);
    }
    free(all.list);
    if (r < 0)
        return r;
    spool_trim(s);
    return 0;
}

size_t spool_retry(struct spool *s, const struct spool_reader *reader)
{
    struct spool_segment *list = s->unread, *next;
    size_t before = 0, after = 0;

    s->unread = NULL;
    for (; list; list = next, before++) {
        next = list->next;
        s->unread_bytes -= list->size;
        (void)recover_segment(s, reader, list); /* has its positions, so it cannot fail */
    }
    for (const struct spool_segment *segment = s->unread; segment; segment = segment->next)
        after++;
    spool_drop_empty(s);
    return before - after;
}

int spool_set_unread(struct spool *s, struct spool_segment *segment, const struct spool_reader *reader,
                     int error)
{
    int r = segment_take_positions(s, reader, segment);

    if (r < 0)
        return r;
    if (segment == s->current)
        spool_close_current(s);
    spool_unlink(&s->oldest, segment);
    s->bytes -= segment->size;
    reader->on_unread(reader->arg, segment);
    return spool_keep_unread(s, reader, segment, error);
}

bool spool_is_late(const struct spool_segment *segment)
{
    return segment->late;
}

int spool_save_late(struct spool *s, const struct spool_reader *reader)
{
    int r = 0;

    for (struct spool_segment *segment = s->unread; segment && r == 0; segment = segment->next)
        if (!segment->positions_stored && segment->positions.n)
            r = late_store(s, segment);
    for (struct spool_segment *segment = s->oldest; segment && r == 0; segment = segment->next) {
        BUF_AUTO(now, POSITIONS_MAX);

        if (!segment->late)
            continue;
        r = reader->positions(reader->arg, segment, &now);
        if (r < 0 || (segment->positions_stored && str_eq(buf_str(&now), buf_str(&segment->positions))))
            continue;
        buf_done(&segment->positions);
        segment->positions = buf_take(&now);
        r = late_store(s, segment);
    }
    return r;
}

/* Owns the file of active series. Called by queue.c, on the endpoint's thread. The file is only appended to,
 * until most of it is obsolete; then a new one takes its name. No file that has the name is ever half
 * written, but for its end. */
#include "remotewrite/active.h"

#include "exporter/base/alloc.h"
#include "exporter/base/buf.h"
#include "exporter/base/invariant.h"
#include "remotewrite/format.h"
#include "remotewrite/frame.h"

#include <errno.h>

enum { ACTIVE_SLACK = 64 << 10, ACTIVE_MAX = 1 << 30 };

static const char active_name[] = "active", active_new[] = "active.new";

/* Writes a frame of a set to the end of a file of *at bytes. */
static int active_put(struct active *a, const char *file, size_t *at, const struct record_head *h,
                      struct str block)
{
    char head[RECORD_HEAD];
    BUF_AUTO(bytes, ACTIVE_MAX);
    int r;

    record_head_put(head, h, block);
    buf_put(&bytes, head, sizeof(head));
    buf_put_str(&bytes, h->lane);
    buf_put_str(&bytes, block);
    r = buf_failed(&bytes) ?: folder_append(a->folder, file, *at, buf_str(&bytes));
    *at += bytes.n;
    return r;
}

/* Writes the set, or that it is empty, to the end of a file of *at bytes. */
static int active_put_set(struct active *a, struct active_set *set, const char *file, size_t *at)
{
    const struct frames *frames = set->frames;
    struct record_head h = {.kind = frames->n ? RECORD_SAMPLES : RECORD_MARKERS,
                            .seq = a->sets++,
                            .last_ms = (int64_t)frames->n,
                            .lane = set->lane};
    size_t before = *at;
    int r = 0;

    if (frames->n == 0)
        r = active_put(a, file, at, &h, STR(""));
    for (size_t i = 0; i < frames->n && r == 0; i++) {
        const struct frame *f = frames->list[i];

        h.samples = (uint32_t)f->n;
        h.first_ms = (int64_t)i;
        r = active_put(a, file, at, &h, (struct str){f->block, f->block_n});
    }
    set->stored = *at - before;
    return r;
}

/* Writes all sets that have series to a new file, which then takes the name. */
static int active_rewrite(struct active *a, struct active_set *const *sets, size_t n)
{
    size_t at = SEGMENT_HEAD;
    int r;

    folder_remove(a->folder, active_new);
    r = folder_append(a->folder, active_new, 0, (struct str){segment_magic, SEGMENT_HEAD});
    for (size_t i = 0; i < n && r == 0; i++) {
        sets[i]->stored = 0;
        if (sets[i]->frames->n)
            r = active_put_set(a, sets[i], active_new, &at);
    }
    r = r ?: folder_commit(a->folder, active_new, active_name);
    if (r < 0)
        folder_remove(a->folder, active_new);
    else
        a->stored = at;
    return r;
}

/* Appends the sets that have changed. */
static int active_append(struct active *a, struct active_set *const *sets, size_t n)
{
    size_t at = a->stored;
    int r = 0;

    for (size_t i = 0; i < n && r == 0; i++)
        if (sets[i]->is_unsaved)
            r = active_put_set(a, sets[i], active_name, &at);
    r = r ?: folder_commit(a->folder, active_name, active_name);
    if (r == 0)
        a->stored = at;
    return r;
}

static int active_store(struct active *a, struct active_set *const *sets, size_t n)
{
    size_t used = 0;
    int r;

    for (size_t i = 0; i < n; i++)
        used += sets[i]->stored;
    if (a->stored == 0 || a->stored > 2 * used + ACTIVE_SLACK)
        r = active_rewrite(a, sets, n);
    else
        r = active_append(a, sets, n);
    if (r == -ESTALE) /* someone has changed the file */
        a->stored = 0;
    return r;
}

int active_save(struct active *a, struct active_set *const *sets, size_t n)
{
    int r;

    invariant(a->folder);
    r = active_store(a, sets, n);
    if (r == -ESTALE)
        r = active_store(a, sets, n);
    for (size_t i = 0; i < n && r == 0; i++)
        sets[i]->is_unsaved = false;
    return r;
}

void active_open(struct active *a, struct folder *folder, active_load_fn fn, void *arg)
{
    CLEANUP(frames_done) struct frames set = {0};
    BUF_AUTO(bytes, ACTIVE_MAX);
    struct segment_reader from;
    struct segment_item item, last = {0};
    enum segment_found found;

    a->folder = folder;
    a->stored = 0;
    if (folder_read(folder, active_name, &bytes) < 0)
        return;
    from = (struct segment_reader){.bytes = buf_str(&bytes)};
    while ((found = segment_next(&from, &item)) != SEGMENT_END) {
        const struct record_head *h = &item.head;

        if (found != SEGMENT_RECORD)
            continue;
        if (set.n && h->seq != last.head.seq) {
            fn(arg, last.head.lane, &set);
            frames_done(&set);
        }
        last = item;
        if (h->kind == RECORD_SAMPLES) {
            struct frame *f = xcalloc(1, sizeof(*f));

            f->block = str_dup(item.payload);
            f->block_n = item.payload.n;
            f->n = h->samples;
            frames_add(&set, f);
        }
        if (h->kind == RECORD_MARKERS || h->first_ms + 1 == h->last_ms) {
            fn(arg, h->lane, &set);
            frames_done(&set);
        }
    }
}

void active_close(struct active *a)
{
    a->folder = NULL;
}

/* Owns each scorer's set of series and the frames built from it. */
#include "remotewrite/intake.h"

#include "exporter/base/buf.h"
#include "exporter/base/log.h"
#include "exporter/metric/series.h"
#include "exporter/num/num.h"
#include "remotewrite/body.h"
#include "remotewrite/format.h"
#include "remotewrite/spool.h"

#include <errno.h>
#include <stdio.h>

enum { CLOCK_BACK_MS = 3600 * 1000 };

/* The series of one scorer; without a name, the program's own metrics. */
struct intake_lane {
    struct intake_lane *next;
    struct series_set *set; /* of the last batch; NULL: none yet in this run */
    struct frame **frames;  /* of that set */
    size_t n_frames;
    struct label_bytes *labels; /* active series without a set: of the previous run, or the own metrics */
    struct batch *taken;        /* not queued yet */
    int64_t taken_ms;           /* the timestamp that it gets */
    bool unsaved;               /* its active series are not on disk as they are now */
    bool lives;                 /* what was on disk at the start is no longer of interest */
    size_t stored;              /* bytes of its set in the file of active series */
    mono_ms grace_until;        /* 0: not begun */
    size_t invalid;             /* series of the set that are dropped */
    struct str name;
    char text[];
};

struct intake {
    const struct rw_endpoint_config *config;
    struct queue *queue;
    struct spool *spool;
    struct intake_lane *lanes;
    struct families families;
    uint64_t sets; /* stored in this run */
    size_t stored; /* bytes of the file of active series; 0: it is not ours yet */
    bool save_failed;
};

/* ---- The file of active series ---- */

int active_put(struct buf *into, struct str lane, uint64_t set, const struct frame *f, size_t i, size_t n)
{
    struct record_head h = {.kind = f ? RECORD_SAMPLES : RECORD_MARKERS,
                            .seq = set,
                            .samples = f ? (uint32_t)f->n : 0,
                            .first_ms = (int64_t)i,
                            .last_ms = (int64_t)n,
                            .lane = lane};
    struct str block = f ? (struct str){f->block, f->block_n} : STR("");
    char head[RECORD_HEAD];

    record_head_put(head, &h, block);
    return buf_put(into, head, sizeof(head)) ?: buf_put_str(into, lane) ?: buf_put_str(into, block);
}

bool active_next(struct active_reader *r, struct str *ret_lane, struct label_bytes **ret)
{
    enum segment_found found;
    struct segment_item item;
    const struct record_head *h = &item.head;

    while ((found = segment_next(&r->records, &item)) != SEGMENT_END) {
        bool last = true;

        if (found != SEGMENT_RECORD)
            continue;
        if (r->labels && h->seq != r->set) { /* its last frame is damaged */
            r->records.next = item.at;
        } else {
            r->lane = h->lane;
            r->set = h->seq;
            if (h->kind == RECORD_SAMPLES) {
                r->labels = r->labels ?: xcalloc(1, sizeof(*r->labels));
                (void)!body_labels(item.payload, r->labels);
                last = h->first_ms + 1 == h->last_ms;
            }
        }
        if (last) {
            *ret_lane = r->lane;
            *ret = TAKE_PTR(r->labels);
            return true;
        }
    }
    r->labels = label_bytes_free(r->labels);
    return false;
}

/* ---- Lanes ---- */

static void lane_drop_frames(struct intake_lane *l)
{
    for (size_t i = 0; i < l->n_frames; i++)
        (void)frame_free(l->frames[i]);
    free(l->frames);
    l->frames = NULL;
    l->n_frames = 0;
}

static void lane_add_frames(const struct intake *in, struct intake_lane *l, const struct label_bytes *labels,
                            int64_t at_ms)
{
    size_t most = (size_t)in->config->max_samples_per_send;

    for (size_t i = 0; i < labels->n; i += l->frames[l->n_frames++]->n) {
        l->frames = xrealloc(l->frames, (l->n_frames + 1) * sizeof(l->frames[0]));
        l->frames[l->n_frames] = frame_new(labels, NULL, i, size_min(most, labels->n - i), at_ms);
    }
}

static struct intake_lane *lane_get(struct intake *in, struct str name, bool make)
{
    struct intake_lane **at = &in->lanes, *l;

    while ((l = *at) && !str_eq(name, l->name))
        at = &l->next;
    if (l || !make)
        return l;
    l = xcalloc(1, sizeof(*l) + name.n + 1);
    l->name = (struct str){memcpy(l->text, name.p, name.n), name.n};
    *at = l;
    return l;
}

struct intake *intake_new(const struct rw_endpoint_config *c, struct queue *q)
{
    struct intake *in = xcalloc(1, sizeof(*in));

    in->config = c;
    in->queue = q;
    in->families.started_ms = metrics_process_start_ms();
    return in;
}

enum { ACTIVE_SLACK = 64 << 10, ACTIVE_MAX = 1 << 30 };

static const char active_name[] = "active", active_new[] = "active.new";

/* Writes the lane's set, or that it has none, to the end of a file of *at bytes. */
static int lane_save(struct intake *in, struct intake_lane *l, const char *file, size_t *at)
{
    bool made = l->n_frames == 0 && l->labels;
    size_t before = *at;
    int r = 0;

    if (made)
        lane_add_frames(in, l, l->labels, 0);
    for (size_t i = 0; (i == 0 || i < l->n_frames) && r == 0; i++) {
        const struct frame *f = l->n_frames ? l->frames[i] : NULL;
        BUF_AUTO(bytes, ACTIVE_MAX);

        r = active_put(&bytes, l->name, in->sets, f, i, l->n_frames)
                ?: spool_append_file(in->spool, file, *at, buf_str(&bytes));
        *at += bytes.n;
    }
    in->sets++;
    l->stored = *at - before;
    if (made)
        lane_drop_frames(l);
    return r;
}

/* Appends the sets that have changed, or writes all to a new file if most of the old one is obsolete. */
static int intake_store(struct intake *in)
{
    const char *file = active_name;
    size_t used = 0, at = in->stored;
    bool whole;
    int r = 0;

    for (const struct intake_lane *l = in->lanes; l; l = l->next)
        used += l->stored;
    whole = in->stored == 0 || in->stored > 2 * used + ACTIVE_SLACK;
    if (whole) {
        file = active_new;
        at = SEGMENT_HEAD;
        spool_remove_file(in->spool, file);
        r = spool_append_file(in->spool, file, 0, (struct str){segment_magic, SEGMENT_HEAD});
    }
    for (struct intake_lane *l = in->lanes; l && r == 0; l = l->next)
        if (whole ? l->n_frames || l->labels : l->unsaved)
            r = lane_save(in, l, file, &at);
    r = r ?: spool_commit_file(in->spool, file, active_name);
    if (r < 0 && whole)
        spool_remove_file(in->spool, file);
    in->stored = r == 0 ? at : r == -ESTALE ? 0 : in->stored;
    return r;
}

/* Stores the active series that have changed. A failure costs no more than markers after a crash. */
static void intake_save(struct intake *in)
{
    bool unsaved = false;
    int r;

    for (const struct intake_lane *l = in->lanes; l; l = l->next)
        unsaved = unsaved || l->unsaved;
    if (!unsaved || !in->spool)
        return;
    r = intake_store(in);
    if (r == -ESTALE) /* someone has changed the file */
        r = intake_store(in);
    if (r < 0 && !in->save_failed)
        log_warn("cannot store the active series: after a crash they get no stale markers",
                 L_STR("remote_name", in->config->name), L_ERR(r));
    in->save_failed = r < 0;
    for (struct intake_lane *l = in->lanes; l && r == 0; l = l->next)
        l->unsaved = false;
}

/* What is damaged is ignored: such series get no markers, and end after the receiver's lookback of five
 * minutes. */
static void intake_load(struct intake *in)
{
    BUF_AUTO(bytes, ACTIVE_MAX);
    struct active_reader from = {0};
    struct label_bytes *labels;
    struct str lane;

    if (spool_read_file(in->spool, active_name, &bytes) < 0)
        return;
    from.records.bytes = buf_str(&bytes);
    while (active_next(&from, &lane, &labels)) {
        struct intake_lane *l = lane_get(in, lane, true);

        if (l->lives) {
            (void)label_bytes_free(labels);
            continue;
        }
        (void)label_bytes_free(l->labels);
        l->labels = labels;
    }
}

void intake_attach(struct intake *in, struct spool *spool)
{
    in->spool = spool;
    in->stored = 0;
    if (!spool)
        return;
    intake_load(in);
    for (struct intake_lane *l = in->lanes; l; l = l->next)
        l->unsaved = true;
    intake_save(in);
}

struct intake *intake_free(struct intake *in)
{
    if (!in)
        return NULL;
    for (struct intake_lane *l = in->lanes, *next; l; l = next) {
        next = l->next;
        lane_drop_frames(l);
        (void)batch_unref(l->taken);
        (void)series_set_unref(l->set);
        (void)label_bytes_free(l->labels);
        free(l);
    }
    families_done(&in->families);
    free(in);
    return NULL;
}

/* Receivers insist on order within a series, so a clock that was set back yields the last timestamp of the
 * lane plus 1 ms. After a step back of more than an hour the earlier time must have been wrong. */
static int64_t lane_next_ms(const struct intake *in, const struct intake_lane *l, int64_t at_ms)
{
    int64_t last = queue_last_ms(in->queue, l->name);

    return last >= at_ms && last - at_ms < CLOCK_BACK_MS ? last + 1 : at_ms;
}

/* Queues a frame with values, or with stale markers if values is NULL. */
static void lane_append(struct intake *in, const struct intake_lane *l, const struct frame *f,
                        const double *values, int64_t at_ms)
{
    char *payload = xmalloc(f->block_n);
    struct record_head h = {.kind = values ? RECORD_SAMPLES : RECORD_MARKERS,
                            .samples = (uint32_t)f->n,
                            .first_ms = at_ms,
                            .last_ms = at_ms,
                            .lane = l->name};

    frame_fill(f, payload, values, at_ms);
    queue_append(in->queue, &h, payload, f->block_n);
}

/* Queues stale markers for the series pick[0..n) of these. */
static void lane_end_series(struct intake *in, const struct intake_lane *l, const struct label_bytes *labels,
                            const uint32_t *pick, size_t n, int64_t at_ms)
{
    size_t most = (size_t)in->config->max_samples_per_send;

    for (size_t i = 0; i < n;) {
        CLEANUP(cleanup_frame_free)
        struct frame *f = frame_new(labels, pick + i, 0, size_min(most, n - i), at_ms);

        lane_append(in, l, f, NULL, at_ms);
        i += f->n;
    }
}

/* Queues stale markers for active series that are not in the new set, nor in its labels; both may be NULL. */
static void lane_end_missing(struct intake *in, const struct intake_lane *l, const struct series_set *set,
                             const struct label_bytes *now, int64_t at_ms)
{
    bool by_name =
        !l->labels && !in->config->relabel.n; /* rules may give a new series the labels of an old one */
    CLEANUP(cleanup_free) uint32_t *gone = NULL;
    size_t step, n = !l->labels && l->set ? series_set_missing(l->set, set, &gone) : 0;

    step = by_name ? (size_t)in->config->max_samples_per_send : n;
    for (size_t i = 0; i < n; i += step) {
        CLEANUP(cleanup_label_bytes_free)
        struct label_bytes *was =
            label_bytes_new(l->set, gone + i, 0, size_min(step, n - i), in->config, NULL);
        CLEANUP(cleanup_free) uint32_t *pick = NULL;
        size_t picked = label_bytes_missing(was, by_name ? NULL : now, &pick);

        lane_end_series(in, l, was, pick, picked, at_ms);
    }
    if (l->labels) {
        n = label_bytes_missing(l->labels, now, &gone);
        lane_end_series(in, l, l->labels, gone, n, at_ms);
    }
}

static void lane_publish(struct intake *in, const struct intake_lane *l, const double *values, int64_t at_ms)
{
    for (size_t i = 0; i < l->n_frames; i++)
        lane_append(in, l, l->frames[i], values, at_ms);
    queue_count_drop(in->queue, DROP_INVALID, l->invalid);
}

/* A crash may come in between, hence the order: stale markers first, then the active series, then their
 * samples. At worst a marker is sent twice. */
void intake_commit(struct intake *in)
{
    queue_sync(in->queue);
    intake_save(in);
    for (struct intake_lane *l = in->lanes; l; l = l->next) {
        if (l->taken)
            lane_publish(in, l, l->taken->values, l->taken_ms);
        l->taken = batch_unref(l->taken);
    }
    queue_sync(in->queue);
}

static void lane_log_dropped(const struct intake *in, const struct intake_lane *l,
                             const struct label_bytes *labels)
{
    if (labels->invalid)
        log_warn("series with invalid labels dropped", L_STR("remote_name", in->config->name),
                 L_STR("score_name", l->text), L_INT("series", labels->invalid),
                 L_STR("invalid_name", labels->bad_name));
    if (labels->over_limit)
        log_warn("series dropped: a regex of write_relabel_configs exceeded its match limit",
                 L_STR("remote_name", in->config->name), L_STR("score_name", l->text),
                 L_INT("series", labels->over_limit));
}

/* The scorer's first batch, or one with other series than the last. */
static void lane_set_series(struct intake *in, struct intake_lane *l, struct series_set *set, int64_t at_ms)
{
    CLEANUP(cleanup_label_bytes_free) struct label_bytes *labels = NULL;
    size_t all = series_count(set), step = all;

    /* Mostly, all labels are never needed at once. */
    if (!in->config->relabel.n && !l->labels)
        step = (size_t)in->config->max_samples_per_send;
    lane_drop_frames(l);
    l->invalid = 0;
    for (size_t i = 0; i < all; i += step) {
        (void)label_bytes_free(labels);
        labels = label_bytes_new(set, NULL, i, size_min(step, all - i), in->config, &in->families);
        lane_add_frames(in, l, labels, at_ms);
        lane_log_dropped(in, l, labels);
        l->invalid += labels->invalid + labels->over_limit;
    }
    lane_end_missing(in, l, set, labels, at_ms);
    l->unsaved = true;
    l->labels = label_bytes_free(l->labels);
    (void)series_set_unref(l->set);
    l->set = series_set_ref(set);
    l->lives = true;
}

void intake_publish(struct intake *in, struct batch *b)
{
    struct intake_lane *l = lane_get(in, str_of(b->score_name), true);
    int64_t at_ms;

    if (l->taken)
        intake_commit(in);
    at_ms = lane_next_ms(in, l, b->at.ms);
    if (l->set != b->set || (l->n_frames && l->frames[0]->time_n != varint_size((uint64_t)at_ms)))
        lane_set_series(in, l, b->set, at_ms);
    l->taken = batch_ref(b);
    l->taken_ms = at_ms;
}

/* Ends every series of the lane. */
static void lane_end(struct intake *in, struct intake_lane *l, int64_t at_ms)
{
    if (l->taken)
        intake_commit(in);
    lane_end_missing(in, l, NULL, NULL, lane_next_ms(in, l, at_ms));
    lane_drop_frames(l);
    l->labels = label_bytes_free(l->labels);
    l->set = series_set_unref(l->set);
    l->unsaved = l->lives = true;
}

void intake_withdraw(struct intake *in, struct str score_name, int64_t at_ms)
{
    struct intake_lane *l = lane_get(in, score_name, false);

    if (l)
        lane_end(in, l, at_ms);
}

void intake_grace(struct intake *in, mono_ms now, int64_t at_ms)
{
    for (struct intake_lane *l = in->lanes; l; l = l->next) {
        if (!l->labels || l->name.n == 0)
            continue;
        if (l->grace_until.ms == 0)
            l->grace_until = mono_add(now, INTAKE_GRACE_MS);
        if (mono_before(now, l->grace_until))
            continue;
        log_info("scorer missing since the restart, ending its series",
                 L_STR("remote_name", in->config->name), L_STR("score_name", l->text),
                 L_INT("series", l->labels->n));
        lane_end(in, l, at_ms);
    }
    intake_commit(in);
}

void intake_stop(struct intake *in, int64_t now_ms)
{
    for (struct intake_lane *l = in->lanes; l; l = l->next)
        lane_end(in, l, now_ms);
    intake_commit(in);
}

const struct families *intake_families(const struct intake *in)
{
    return &in->families;
}

size_t intake_series(const struct intake *in)
{
    size_t n = 0;

    for (const struct intake_lane *l = in->lanes; l; l = l->next) {
        n += l->labels ? l->labels->n : 0;
        for (size_t i = 0; i < l->n_frames; i++)
            n += l->frames[i]->n;
    }
    return n;
}

/* ---- The program's own metrics ---- */

static const enum family_type family_types[] = {[METRIC_TYPE_COUNTER] = FAMILY_COUNTER,
                                                [METRIC_TYPE_GAUGE] = FAMILY_GAUGE,
                                                [METRIC_TYPE_HISTOGRAM] = FAMILY_HISTOGRAM};

/* Collects the labels and values of every sample, and notes their metadata. */
struct collector {
    struct families *families;
    struct label_maker *maker;
    double *values;
    size_t n, cap;
};

static int collect_sample(void *arg, const struct metric_sample *s)
{
    struct collector *c = arg;
    struct label labels[1 + METRIC_MAX_LABELS];
    char name[FAMILY_NAME_MAX + 1];

    (void)snprintf(name, sizeof(name), "%s%s", s->info->name, s->suffix);
    labels[0] = (struct label){STR("__name__"), str_of(name)};
    for (size_t i = 0; i < s->n_labels; i++)
        labels[1 + i] = (struct label){s->labels[i].name, s->labels[i].value};
    if (!label_maker_add(c->maker, labels, 1 + s->n_labels, (uint32_t)c->n))
        return 0;
    if (c->n == c->cap)
        c->values = xrealloc(c->values, (c->cap = size_max(256, c->cap * 2)) * sizeof(c->values[0]));
    c->values[c->n++] = s->value;
    families_note(c->families, label_maker_name(c->maker), s->suffix, family_types[s->info->type],
                  s->info->help);
    return 0;
}

/* They are few and their series change often: only the labels are kept, not the frames. */
void intake_metrics(struct intake *in, const struct metrics *m, int64_t at_ms)
{
    CLEANUP(cleanup_label_maker_free) struct label_maker *maker = label_maker_new(in->config, 0);
    struct collector c = {.families = &in->families, .maker = maker};
    struct intake_lane *l = lane_get(in, STR(""), true);
    struct label_bytes *labels;
    bool changed;

    (void)metrics_each(m, collect_sample, &c);
    labels = label_maker_end(maker);
    at_ms = lane_next_ms(in, l, at_ms);
    changed = !l->labels || !str_eq((struct str){l->labels->bytes, l->labels->bytes_n},
                                    (struct str){labels->bytes, labels->bytes_n});
    if (changed)
        lane_end_missing(in, l, NULL, labels, at_ms);
    lane_add_frames(in, l, labels, at_ms);
    if (changed) {
        l->unsaved = true;
        intake_commit(in);
        lane_log_dropped(in, l, labels);
    }
    l->invalid = labels->invalid;
    lane_publish(in, l, c.values, at_ms);
    lane_drop_frames(l);
    free(c.values);
    (void)label_bytes_free(l->labels);
    l->labels = labels;
    l->lives = true;
}

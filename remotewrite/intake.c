/* Owns each scorer's set of series and the frames built from it. Called by the endpoint, on its thread. No
 * series is left without an end: it is active, at the latest when its first sample is queued, until its stale
 * marker is queued. */
#include "remotewrite/intake.h"

#include "exporter/base/alloc.h"
#include "exporter/base/buf.h"
#include "exporter/base/invariant.h"
#include "exporter/base/log.h"
#include "exporter/base/map.h"
#include "exporter/metric/batch.h"
#include "exporter/metric/series.h"
#include "exporter/num/num.h"
#include "remotewrite/active.h"
#include "remotewrite/body.h"
#include "remotewrite/families.h"
#include "remotewrite/format.h"
#include "remotewrite/frame.h"
#include "remotewrite/revision.h"

#include <errno.h>
#include <stdio.h>

enum {
    REVISED_PART = 4,   /* a frame of which more than this part has changed is made anew, */
    SMALL_PART = 4,     /* and one that is smaller than this part of a request is joined with another */
    MERGING_TRIED = 64, /* series of a scorer, for one that the rules do not drop */
};

/* The series of one scorer; without a name, the program's own metrics. */
struct intake_lane {
    TAILQ_ENTRY(intake_lane) entry;
    struct series_set *set; /* of the last batch; NULL: none yet in this run, or the own metrics */
    struct frames frames;   /* of the active series; those of the previous run are only blocks */
    struct batch *taken;    /* not queued yet */
    int64_t taken_ms;       /* the timestamp that it gets */
    struct active_set active;
    bool is_settled;     /* its series are those of a scorer that runs, or have ended */
    mono_ms grace_until; /* 0: not begun */
    size_t invalid;      /* series of the set that are dropped */
    uint64_t configured; /* the configuration that the labels of the frames come from, by number */
    struct str name;
    char text[];
};

struct intake {
    const struct rw_endpoint_config *config;
    uint64_t configured; /* number of the configuration */
    struct queue *queue;
    struct map by_name; /* the lanes, for finding one */
    TAILQ_HEAD(, intake_lane) lanes;
    struct families families;
    bool has_loaded; /* what the previous run, or who led meanwhile, has left */
    bool save_failed;
};

/* ---- Frames ---- */

/* Adds frames of these labels. */
static void frames_make(const struct intake *in, struct frames *f, const struct label_bytes *labels,
                        int64_t at_ms)
{
    size_t most = (size_t)in->config->max_samples_per_send;

    for (size_t i = 0; i < labels->n; i += f->list[f->n - 1]->n)
        frames_add(f, frame_new(labels, i, size_min(most, labels->n - i), at_ms));
}

static struct label_bytes *frames_labels(const struct frames *f)
{
    struct label_bytes *labels = xcalloc(1, sizeof(*labels));
    size_t unreadable = 0;

    buf_init(&labels->bytes, LABEL_BYTES_MAX);
    for (size_t i = 0; i < f->n; i++)
        if (body_labels((struct str){f->list[i]->block, f->list[i]->block_n}, labels) < 0)
            unreadable += f->list[i]->n;
    if (unreadable > 0)
        log_warn("could not read the labels of active series; they get no stale markers",
                 L_INT("series", (int64_t)unreadable));
    return labels;
}

static size_t frames_series(const struct frames *f)
{
    size_t n = 0;

    for (size_t i = 0; i < f->n; i++)
        n += f->list[i]->n;
    return n;
}

/* ---- Lanes ---- */

/* NULL if there is none of this name. */
static struct intake_lane *lane_find(const struct intake *in, struct str name)
{
    return map_get_str(&in->by_name, name);
}

/* The lane of this name, which is made if need be. */
static struct intake_lane *lane_make(struct intake *in, struct str name)
{
    struct intake_lane *l = lane_find(in, name);

    if (l)
        return l;
    l = xcalloc(1, sizeof(*l) + name.n + 1);
    l->name = (struct str){memcpy(l->text, name.p, name.n), name.n};
    active_set_init(&l->active, l->name, &l->frames);
    map_set_str(&in->by_name, l->name, l);
    TAILQ_INSERT_TAIL(&in->lanes, l, entry);
    return l;
}

struct intake *intake_new(const struct rw_endpoint_config *c, struct queue *q)
{
    struct intake *in = xcalloc(1, sizeof(*in));

    in->config = c;
    in->queue = q;
    TAILQ_INIT(&in->lanes);
    in->families.started_ms = metrics_process_start_ms();
    return in;
}

/* ---- Active series on disk ---- */

/* Stores the active series that have changed. A failure costs no more than markers after a crash. */
static void intake_save(struct intake *in)
{
    CLEANUP(cleanup_free) struct active_set **sets = NULL;
    struct intake_lane *l;
    bool unsaved = false;
    size_t n = 0;
    int r;

    TAILQ_FOREACH (l, &in->lanes, entry) {
        unsaved = unsaved || l->active.state != ACTIVE_IS_STORED;
        n++;
    }
    if (!unsaved || !queue_has_active(in->queue))
        return;
    sets = xmalloc(n * sizeof(struct active_set *));
    n = 0;
    TAILQ_FOREACH (l, &in->lanes, entry)
        sets[n++] = &l->active;
    r = queue_save_active(in->queue, sets, n);
    if (r < 0 && !in->save_failed)
        log_warn("cannot store the active series: after a crash they get no stale markers",
                 L_STR("remote_name", in->config->name), L_ERR(r));
    in->save_failed = r < 0;
}

/* The series of the lane, and these, are those of a previous run. */
static void lane_join(const struct intake *in, struct intake_lane *l, const struct frames *before)
{
    CLEANUP(cleanup_label_bytes_free) struct label_bytes *was = frames_labels(before), *now = NULL;

    invariant(!l->set && !l->taken);
    now = frames_labels(&l->frames);
    label_bytes_distil(was, now);
    frames_done(&l->frames);
    frames_make(in, &l->frames, now, 0);
    frames_make(in, &l->frames, was, 0);
}

/* A set of the previous run, or of an agent that led meanwhile, unless the lane has gone on without it. */
static void lane_load(void *arg, struct str name, struct frames *frames)
{
    struct intake_lane *l = lane_make(arg, name);

    if (l->is_settled)
        return;
    if (l->frames.n) {
        lane_join(arg, l, frames);
        return;
    }
    l->frames = *frames;
    *frames = (struct frames){0};
}

/* Stores the active series of all lanes. */
static void intake_store_all(struct intake *in)
{
    struct intake_lane *l;

    TAILQ_FOREACH (l, &in->lanes, entry)
        active_set_replace(&l->active);
    intake_save(in);
    in->has_loaded = true;
}

void intake_attach_standby(struct intake *in)
{
    intake_resume(in);
    queue_load_active(in->queue, lane_load, in);
    intake_store_all(in);
}

static void lane_free(struct intake *in, struct intake_lane *l)
{
    const struct intake_lane *taken = map_take_str(&in->by_name, l->name);

    invariant(taken == l);
    TAILQ_REMOVE(&in->lanes, l, entry);
    frames_done(&l->frames);
    active_set_done(&l->active);
    (void)batch_unref(l->taken);
    (void)series_set_unref(l->set);
    free(l);
}

struct intake *intake_free(struct intake *in)
{
    struct intake_lane *l;

    if (!in)
        return NULL;
    while ((l = TAILQ_FIRST(&in->lanes)))
        lane_free(in, l);
    map_done(&in->by_name);
    families_done(&in->families);
    free(in);
    return NULL;
}

/* ---- Samples and stale markers ---- */

/* Queues the payload of a frame, which becomes the queue's. */
static void lane_append(struct intake *in, const struct intake_lane *l, const struct frame *f,
                        enum record_kind kind, char *payload, int64_t at_ms)
{
    struct record_head h = {
        .kind = kind, .samples = (uint32_t)f->n, .first_ms = at_ms, .last_ms = at_ms, .lane = l->name};

    queue_append(in->queue, &h, payload, f->block_n);
}

static void lane_append_values(struct intake *in, const struct intake_lane *l, const struct frame *f,
                               const double *values, int64_t at_ms)
{
    char *payload = xmalloc(f->block_n);

    frame_fill(f, payload, values, at_ms);
    lane_append(in, l, f, RECORD_SAMPLES, payload, at_ms);
}

static void lane_append_markers(struct intake *in, const struct intake_lane *l, const struct frame *f,
                                int64_t at_ms)
{
    char *payload = xmalloc(f->block_n);

    frame_fill_markers(f, payload, at_ms);
    lane_append(in, l, f, RECORD_MARKERS, payload, at_ms);
}

/* Queues stale markers for these series. */
static void lane_end_series(struct intake *in, const struct intake_lane *l, const struct label_bytes *labels,
                            int64_t at_ms)
{
    CLEANUP(frames_done) struct frames frames = {0};

    frames_make(in, &frames, labels, at_ms);
    for (size_t i = 0; i < frames.n; i++)
        lane_append_markers(in, l, frames.list[i], at_ms);
}

/* Queues stale markers for active series with labels that `now` (may be NULL) does not have. */
static void lane_end_labels(struct intake *in, const struct intake_lane *l, const struct label_bytes *now,
                            int64_t at_ms)
{
    CLEANUP(cleanup_label_bytes_free) struct label_bytes *was = frames_labels(&l->frames);

    label_bytes_distil(was, now);
    lane_end_series(in, l, was, at_ms);
}

/* The spool has been opened at that time. */
struct intake_loading {
    struct intake *in;
    int64_t at_ms;
};

/* The spool was opened only after the lane's first batch: what the previous run had, and the lane lacks, has
 * ended meanwhile. */
static void lane_load_or_end(void *arg, struct str name, struct frames *before)
{
    const struct intake_loading *x = arg;
    struct intake_lane *l = lane_make(x->in, name);
    CLEANUP(cleanup_label_bytes_free) struct label_bytes *was = NULL, *now = NULL;

    if (!l->is_settled) {
        lane_load(x->in, name, before);
        return;
    }
    was = frames_labels(before);
    now = frames_labels(&l->frames);
    label_bytes_distil(was, now);
    lane_end_series(x->in, l, was, queue_next_ms(x->in->queue, l->name, x->at_ms));
}

/* What a run had stored before it lost the spool for a while has got its markers since. As for
 * intake_commit(): markers first, then the active series. */
void intake_attach(struct intake *in, int64_t at_ms)
{
    struct intake_loading x = {in, at_ms};

    if (in->has_loaded)
        queue_load_active(in->queue, lane_load, in);
    else
        queue_load_active(in->queue, lane_load_or_end, &x);
    queue_sync(in->queue);
    intake_store_all(in);
}

/* Queues stale markers for the series of a frame, which are active no more. */
static void lane_end_frame(struct intake *in, struct intake_lane *l, const struct frame *f, int64_t at_ms)
{
    lane_append_markers(in, l, f, at_ms);
    active_set_remove(&l->active, f);
}

/* Likewise for these series of the last set. */
static void lane_end_names(struct intake *in, struct intake_lane *l, const uint32_t *gone, size_t n,
                           int64_t at_ms)
{
    size_t most = (size_t)in->config->max_samples_per_send;

    for (size_t i = 0; i < n; i += most) {
        CLEANUP(cleanup_label_bytes_free)
        struct label_bytes *was = label_bytes_pick(l->set, gone + i, size_min(most, n - i), in->config);
        CLEANUP(frames_done) struct frames frames = {0};

        frames_make(in, &frames, was, at_ms);
        for (size_t k = 0; k < frames.n; k++)
            lane_end_frame(in, l, frames.list[k], at_ms);
    }
}

/* These series of the new set are active. */
static void lane_begin_names(struct intake *in, struct intake_lane *l, const struct series_set *set,
                             const uint32_t *fresh, size_t n, int64_t at_ms)
{
    CLEANUP(cleanup_label_bytes_free) struct label_bytes *labels = NULL;
    CLEANUP(frames_done) struct frames frames = {0};

    if (n == 0 || l->active.state == ACTIVE_IS_UNSTORED)
        return;
    labels = label_bytes_pick(set, fresh, n, in->config);
    frames_make(in, &frames, labels, at_ms);
    for (size_t i = 0; i < frames.n; i++)
        active_set_add(&l->active, frames.list[i]);
}

/* Of series of a previous run, or from before a reload, only labels are known; and rules may give a new
 * series the labels of an old one. */
static bool lane_compares_labels(const struct intake *in, const struct intake_lane *l)
{
    return in->config->relabel.n || (l->frames.n && (!l->set || l->configured != in->configured));
}

/* Whether the frames of the lane can be filled in. Those of a previous run cannot. */
static bool lane_has_frames_for(const struct intake_lane *l, int64_t at_ms)
{
    const struct frame *first = l->frames.n ? l->frames.list[0] : NULL;

    return first && first->value_at && first->time_n == varint_size((uint64_t)at_ms);
}

/* Queues stale markers for all active series. */
static void lane_end_all(struct intake *in, const struct intake_lane *l, int64_t at_ms)
{
    if (!lane_has_frames_for(l, at_ms)) {
        lane_end_labels(in, l, NULL, at_ms);
        return;
    }
    for (size_t i = 0; i < l->frames.n; i++)
        lane_append_markers(in, l, l->frames.list[i], at_ms);
}

static void lane_publish(struct intake *in, const struct intake_lane *l, const double *values, int64_t at_ms)
{
    for (size_t i = 0; i < l->frames.n; i++)
        lane_append_values(in, l, l->frames.list[i], values, at_ms);
    queue_count_drop(in->queue, DROP_INVALID, l->invalid);
}

/* A crash may come in between, hence the order: stale markers first, then the active series, then their
 * samples. At worst a marker is sent twice. */
void intake_commit(struct intake *in)
{
    struct intake_lane *l;

    queue_sync(in->queue);
    intake_save(in);
    TAILQ_FOREACH (l, &in->lanes, entry) {
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
    if (labels->merged)
        log_warn("series dropped: write_relabel_configs give them the labels of another series",
                 L_STR("remote_name", in->config->name), L_STR("score_name", l->text),
                 L_INT("series", labels->merged));
    if (labels->over_limit)
        log_warn("series dropped: a regex of write_relabel_configs exceeded its match limit",
                 L_STR("remote_name", in->config->name), L_STR("score_name", l->text),
                 L_INT("series", labels->over_limit));
}

/* Makes frames of `each` series for [from, to), whose labels are never needed at once. */
static void lane_frame_range(struct intake *in, struct intake_lane *l, const struct series_set *set,
                             size_t from, size_t to, size_t each, int64_t at_ms, struct frames *into)
{
    for (size_t at = from; at < to; at += size_min(each, to - at)) {
        CLEANUP(cleanup_label_bytes_free)
        struct label_bytes *labels =
            label_bytes_new(set, at, size_min(each, to - at), in->config, &in->families);

        frames_make(in, into, labels, at_ms);
        lane_log_dropped(in, l, labels);
        l->invalid += label_bytes_left_out(labels);
    }
}

/* Instead of frames that have grown or shrunk: of about the same size, so that each has room to grow. */
static void lane_remake_frames(struct intake *in, struct intake_lane *l, const struct series_set *set,
                               size_t from, size_t to, int64_t at_ms, struct frames *into)
{
    size_t most = (size_t)in->config->max_samples_per_send, parts = (to - from + most - 1) / most;

    if (from < to)
        lane_frame_range(in, l, set, from, to, (to - from + parts - 1) / parts, at_ms, into);
}

/* What becomes of a frame when the set changes. */
enum frame_fate {
    FRAME_STAYS,
    FRAME_IS_REVISED,
    FRAME_IS_REMADE, /* with its neighbours of the same fate, in frames of about the same size */
    FRAME_ENDS,
};

struct frame_plan {
    enum frame_fate fate;
    size_t gone;       /* series of the frame */
    size_t begin, end; /* what it is to have of the new set */
};

/* The series of the new set between those of two frames belong to the first of them. */
static void plan_ranges(const struct frames *frames, const struct series_diff *d, size_t n,
                        struct frame_plan *plan)
{
    for (size_t i = frames->n, end = n; i-- > 0; end = plan[i].begin) {
        const struct frame *f = frames->list[i];

        plan[i] = (struct frame_plan){.begin = end, .end = end};
        for (size_t k = f->n; k-- > 0;) {
            uint32_t to = d->moved[f->series[k]];

            if (to == SERIES_GONE)
                plan[i].gone++;
            else
                plan[i].begin = to;
        }
        if (i == 0)
            plan[i].begin = 0;
    }
}

static enum frame_fate plan_fate(const struct frame *f, const struct frame_plan *p, size_t most)
{
    size_t n = p->end - p->begin, kept = f->n - p->gone, changes = n - kept + p->gone;

    if (n == 0)
        return FRAME_ENDS;
    if (changes == 0)
        return FRAME_STAYS;
    if (n > most || changes > f->n / REVISED_PART || frame_is_loose(f))
        return FRAME_IS_REMADE;
    return FRAME_IS_REVISED;
}

/* A request for each of many small frames would cost more than to make larger ones of them and their
 * neighbours, now and then. */
static void plan_join_small(struct frame_plan *plan, size_t n, size_t most)
{
    for (size_t i = 0; i < n; i++) {
        size_t series = plan[i].end - plan[i].begin;

        if (series == 0 || series >= most / SMALL_PART || n == 1)
            continue;
        plan[i].fate = FRAME_IS_REMADE;
        if (i > 0 && plan[i - 1].fate != FRAME_ENDS)
            plan[i - 1].fate = FRAME_IS_REMADE;
        else if (i + 1 < n && plan[i + 1].fate != FRAME_ENDS)
            plan[i + 1].fate = FRAME_IS_REMADE;
    }
}

static struct frame_plan *lane_plan(const struct intake *in, const struct intake_lane *l,
                                    const struct series_diff *d, size_t n)
{
    struct frame_plan *plan = xcalloc(l->frames.n, sizeof(*plan));
    size_t most = (size_t)in->config->max_samples_per_send;

    plan_ranges(&l->frames, d, n, plan);
    for (size_t i = 0; i < l->frames.n; i++)
        plan[i].fate = plan_fate(l->frames.list[i], &plan[i], most);
    plan_join_small(plan, l->frames.n, most);
    return plan;
}

/* Queues stale markers for the series that are gone; where that are all of a frame, it serves for them. */
static void lane_end_gone(struct intake *in, struct intake_lane *l, const struct frame_plan *plan,
                          const struct series_diff *d, int64_t at_ms)
{
    CLEANUP(cleanup_free) uint32_t *some = xmalloc(d->n_gone * sizeof(*some));
    size_t n = 0, gone = 0;

    for (size_t i = 0; i < l->frames.n; i++) {
        const struct frame *f = l->frames.list[i];

        if (plan[i].gone == f->n) {
            lane_end_frame(in, l, f, at_ms);
        } else {
            memcpy(some + n, d->gone + gone, plan[i].gone * sizeof(*some));
            n += plan[i].gone;
        }
        gone += plan[i].gone;
    }
    invariant(gone == d->n_gone);
    lane_end_names(in, l, some, n, at_ms);
}

/* The frames of the new set, in its order, from those of the last one. */
static void lane_revise_frames(struct intake *in, struct intake_lane *l, const struct series_set *set,
                               const struct series_diff *d, const struct frame_plan *plan, int64_t at_ms,
                               struct frames *into)
{
    CLEANUP(cleanup_label_source_free) struct label_source *labels = label_source_new(set, in->config);
    CLEANUP(revision_room_done) struct revision_room room = {0};

    for (size_t i = 0, next; i < l->frames.n; i = next) {
        struct revision v = {d->moved, plan[i].begin, plan[i].end, labels, at_ms};

        next = i + 1;
        if (plan[i].fate == FRAME_STAYS)
            frame_renumber(l->frames.list[i], d->moved);
        if (plan[i].fate == FRAME_STAYS ||
            (plan[i].fate == FRAME_IS_REVISED && frame_revise(l->frames.list[i], &v, &room))) {
            frames_add(into, TAKE_PTR(l->frames.list[i]));
            continue;
        }
        l->frames.list[i] = frame_free(l->frames.list[i]);
        for (; plan[i].fate == FRAME_IS_REMADE && next < l->frames.n && plan[next].fate == FRAME_IS_REMADE;
             next++)
            l->frames.list[next] = frame_free(l->frames.list[next]);
        lane_remake_frames(in, l, set, plan[i].begin, plan[next - 1].end, at_ms, into);
    }
}

/* Makes frames for a set, with those of the last one where that spares work; queues markers for what is
 * gone. */
static void lane_frame_parts(struct intake *in, struct intake_lane *l, const struct series_set *set,
                             int64_t at_ms, struct frames *into)
{
    CLEANUP(series_diff_done) struct series_diff d = {0};
    CLEANUP(cleanup_free) struct frame_plan *plan = NULL;
    bool has_all = l->invalid == 0 && lane_has_frames_for(l, at_ms);

    invariant(l->set || !has_all); /* frames of a previous run cannot be filled in */
    l->invalid = 0;
    if (l->set)
        series_diff_init(&d, l->set, set);
    if (!has_all || d.n_gone + d.n_fresh > series_count(set) / 2)
        active_set_replace(&l->active);
    if (!has_all) {
        lane_end_names(in, l, d.gone, d.n_gone, at_ms);
        frames_done(&l->frames);
        lane_frame_range(in, l, set, 0, series_count(set), (size_t)in->config->max_samples_per_send, at_ms,
                         into);
        return;
    }
    plan = lane_plan(in, l, &d, series_count(set));
    lane_end_gone(in, l, plan, &d, at_ms);
    lane_begin_names(in, l, set, d.fresh, d.n_fresh, at_ms);
    lane_revise_frames(in, l, set, &d, plan, at_ms, into);
}

/* Likewise where labels are compared, which takes all of them at once. */
static void lane_frame_whole(struct intake *in, struct intake_lane *l, const struct series_set *set,
                             int64_t at_ms, struct frames *into)
{
    CLEANUP(cleanup_label_bytes_free)
    struct label_bytes *labels = label_bytes_new(set, 0, series_count(set), in->config, &in->families);

    frames_make(in, into, labels, at_ms);
    lane_log_dropped(in, l, labels);
    l->invalid = label_bytes_left_out(labels);
    lane_end_labels(in, l, labels, at_ms);
    active_set_replace(&l->active);
}

/* Warns of another scorer from which write_relabel_configs do not tell this one apart: by one of its series
 * that are sent, of the first few. */
static void lane_warn_of_merging(const struct intake *in, const struct intake_lane *l)
{
    CLEANUP(cleanup_label_source_free) struct label_source *s = label_source_new(l->set, in->config);
    size_t n = size_min(series_count(l->set), MERGING_TRIED), i = 0;
    const struct intake_lane *other;

    while (i < n && label_source_at(s, i).n == 0)
        i++;
    if (i == n)
        return;
    TAILQ_FOREACH (other, &in->lanes, entry)
        if (other != l && other->set && label_source_is_same_for(s, i, other->name)) {
            log_warn("write_relabel_configs do not tell two scorers apart, their scores may share series",
                     L_STR("remote_name", in->config->name), L_STR("score_name", l->text),
                     L_STR("other_score_name", other->text));
            return;
        }
}

/* The lane has come, or the rules have changed. */
static void lane_note_rules(struct intake *in, struct intake_lane *l)
{
    if (in->config->relabel.n)
        lane_warn_of_merging(in, l);
    l->configured = in->configured;
}

/* The scorer's first batch, or one with other series than the last. */
static void lane_set_series(struct intake *in, struct intake_lane *l, struct series_set *set, int64_t at_ms)
{
    bool is_new = !l->set || l->configured != in->configured;
    struct frames frames = {0};

    if (lane_compares_labels(in, l))
        lane_frame_whole(in, l, set, at_ms, &frames);
    else
        lane_frame_parts(in, l, set, at_ms, &frames);
    frames_done(&l->frames);
    l->frames = frames;
    (void)series_set_unref(l->set);
    l->set = series_set_ref(set);
    if (is_new)
        lane_note_rules(in, l);
    l->is_settled = true;
}

static void lane_take(struct intake *in, struct intake_lane *l, struct batch *b, int64_t at_ms)
{
    if (l->taken)
        intake_commit(in);
    at_ms = queue_next_ms(in->queue, l->name, at_ms);
    if (l->set != b->set || (l->frames.n && l->frames.list[0]->time_n != varint_size((uint64_t)at_ms)))
        lane_set_series(in, l, b->set, at_ms);
    l->taken = batch_ref(b);
    l->taken_ms = at_ms;
}

void intake_publish(struct intake *in, struct batch *b, int64_t at_ms)
{
    lane_take(in, lane_make(in, str_of(b->score_name)), b, at_ms);
}

void intake_configure(struct intake *in, const struct rw_endpoint_config *c)
{
    in->config = c;
    in->configured++;
}

/* Gives the series the labels of the present configuration, and queues what has changed. As for
 * intake_commit(): markers first, then the active series, then samples. */
static void lane_relabel(struct intake *in, struct intake_lane *l, const double *values, int64_t at_ms)
{
    CLEANUP(cleanup_label_bytes_free) struct label_bytes *was = frames_labels(&l->frames), *labels, *fresh;
    CLEANUP(frames_done) struct frames changed = {0};
    size_t n = series_count(l->set);

    labels = label_bytes_new(l->set, 0, n, in->config, &in->families);
    fresh = label_bytes_new(l->set, 0, n, in->config, NULL);
    label_bytes_distil(fresh, was);
    label_bytes_distil(was, labels);
    lane_end_series(in, l, was, at_ms);
    frames_done(&l->frames);
    frames_make(in, &l->frames, labels, at_ms);
    frames_make(in, &changed, fresh, at_ms);
    l->invalid = label_bytes_left_out(labels);
    lane_note_rules(in, l);
    lane_log_dropped(in, l, labels);
    if (was->n || fresh->n)
        active_set_replace(&l->active);
    intake_commit(in);
    for (size_t i = 0; i < changed.n; i++)
        lane_append_values(in, l, changed.list[i], values, at_ms);
}

void intake_renew(struct intake *in, struct batch *b, int64_t at_ms)
{
    struct intake_lane *l = lane_make(in, str_of(b->score_name));

    if (l->taken)
        intake_commit(in);
    if (l->set == b->set)
        lane_relabel(in, l, b->values, queue_next_ms(in->queue, l->name, at_ms));
    else
        lane_take(in, l, b, at_ms);
}

/* Ends every series of the lane. */
static void lane_end(struct intake *in, struct intake_lane *l, int64_t at_ms)
{
    if (l->taken)
        intake_commit(in);
    lane_end_all(in, l, queue_next_ms(in->queue, l->name, at_ms));
    frames_done(&l->frames);
    l->set = series_set_unref(l->set);
    active_set_replace(&l->active);
    l->is_settled = true;
}

void intake_withdraw(struct intake *in, struct str score_name, int64_t at_ms)
{
    struct intake_lane *l = lane_find(in, score_name);

    if (l)
        lane_end(in, l, at_ms);
}

void intake_resume(struct intake *in)
{
    struct intake_lane *l;

    intake_commit(in);
    TAILQ_FOREACH (l, &in->lanes, entry) {
        l->set = series_set_unref(l->set);
        l->is_settled = false;
        l->grace_until = (mono_ms){0};
    }
    /* Who led meanwhile may have had the folder. */
    if (!queue_has_active(in->queue))
        in->has_loaded = false;
}

/* Whether the active series of the lane do not go on. A scorer has some time to come back; whether the own
 * metrics do is for the configuration to say. */
static bool lane_is_missing(const struct intake *in, struct intake_lane *l, mono_ms now)
{
    if (l->frames.n == 0)
        return false;
    if (l->name.n == 0)
        return !in->config->send_health_metrics;
    if (l->is_settled)
        return false;
    if (l->grace_until.ms == 0)
        l->grace_until = mono_add(now, INTAKE_GRACE_MS);
    return !mono_before(now, l->grace_until);
}

static void lane_log_missing(const struct intake *in, const struct intake_lane *l)
{
    size_t n = frames_series(&l->frames);

    if (l->name.n == 0)
        log_info("send_health_metrics is off, ending the series of own metrics",
                 L_STR("remote_name", in->config->name), L_INT("series", n));
    else
        log_info("scorer missing since the restart, ending its series",
                 L_STR("remote_name", in->config->name), L_STR("score_name", l->text), L_INT("series", n));
}

void intake_grace(struct intake *in, mono_ms now, int64_t at_ms)
{
    struct intake_lane *l;

    TAILQ_FOREACH (l, &in->lanes, entry) {
        if (!lane_is_missing(in, l, now))
            continue;
        lane_log_missing(in, l);
        lane_end(in, l, at_ms);
    }
    intake_commit(in);
}

void intake_stop(struct intake *in, int64_t now_ms)
{
    struct intake_lane *l;

    TAILQ_FOREACH (l, &in->lanes, entry)
        lane_end(in, l, now_ms);
    intake_commit(in);
}

/* Whether it has series, or their end is not on disk yet. Without a spool that is open, series which the
 * previous run left there may get their markers twice. */
static bool intake_uses_lane(void *arg, struct str name)
{
    struct intake *in = arg;
    const struct intake_lane *l = lane_find(in, name);

    return l && (l->set || l->taken || l->frames.n ||
                 (queue_has_active(in->queue) && l->active.state != ACTIVE_IS_STORED));
}

void intake_forget(struct intake *in, mono_ms now, int64_t wall_ms)
{
    struct intake_lane *next;

    queue_forget_lanes(in->queue, now, wall_ms, intake_uses_lane, in);
    for (struct intake_lane *l = TAILQ_FIRST(&in->lanes); l; l = next) {
        next = TAILQ_NEXT(l, entry);
        if (!intake_uses_lane(in, l->name) && queue_last_ms(in->queue, l->name) == INT64_MIN)
            lane_free(in, l);
    }
}

const struct families *intake_families(const struct intake *in)
{
    return &in->families;
}

size_t intake_series(const struct intake *in)
{
    const struct intake_lane *l;
    size_t n = 0;

    TAILQ_FOREACH (l, &in->lanes, entry)
        n += frames_series(&l->frames);
    return n;
}

/* ---- The program's own metrics ---- */

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
    families_note(c->families, label_maker_name(c->maker), s->suffix, s->info->type, s->info->help);
    return 0;
}

void intake_metrics(struct intake *in, const struct metrics *m, int64_t at_ms)
{
    CLEANUP(cleanup_label_maker_free) struct label_maker *maker = label_maker_new(in->config);
    CLEANUP(cleanup_label_bytes_free) struct label_bytes *labels = NULL, *was = NULL;
    struct collector c = {.families = &in->families, .maker = maker};
    struct intake_lane *l = lane_make(in, STR(""));
    bool changed;

    (void)metrics_each(m, collect_sample, &c);
    labels = label_maker_end(maker);
    at_ms = queue_next_ms(in->queue, l->name, at_ms);
    was = frames_labels(&l->frames);
    changed = !l->is_settled || !str_eq(buf_str(&was->bytes), buf_str(&labels->bytes));
    if (changed)
        lane_end_labels(in, l, labels, at_ms);
    frames_done(&l->frames);
    frames_make(in, &l->frames, labels, at_ms);
    if (changed) {
        active_set_replace(&l->active);
        l->is_settled = true;
        intake_commit(in);
        lane_log_dropped(in, l, labels);
    }
    l->invalid = label_bytes_left_out(labels);
    lane_publish(in, l, c.values, at_ms);
    free(c.values);
}

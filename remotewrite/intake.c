/* Owns each scorer's set of series and the frames built from it. */
#include "remotewrite/intake.h"

#include "exporter/base/hash.h"
#include "exporter/base/log.h"
#include "exporter/metric/series.h"
#include "remotewrite/active.h"
#include "remotewrite/intake_internal.h"
#include "remotewrite/segment.h"

#include <errno.h>

enum { CLOCK_BACK_MS = 3600 * 1000 };

static void lane_drop_frames(struct intake_lane *l)
{
    for (size_t i = 0; i < l->n_frames; i++)
        (void)frame_free(l->frames[i]);
    free(l->frames);
    l->frames = NULL;
    l->n_frames = 0;
}

static struct intake_lane *lane_free(struct intake_lane *l)
{
    if (!l)
        return NULL;
    lane_drop_frames(l);
    (void)series_set_unref(l->set);
    (void)label_bytes_free(l->labels);
    free(l);
    return NULL;
}

static struct intake_lane *lane_get(struct intake *in, struct str name, bool make)
{
    struct intake_lane **at = &in->lanes, *l;

    while ((l = *at) && !str_eq(name, (struct str){l->name, l->name_n}))
        at = &l->next;
    if (l || !make)
        return l;
    l = calloc(1, sizeof(*l) + name.n + 1);
    if (!l)
        return NULL;
    l->name_n = name.n;
    if (name.n)
        memcpy(l->name, name.p, name.n);
    *at = l;
    return l;
}

static int lane_restore(void *arg, struct str name, struct label_bytes *labels)
{
    struct intake_lane *l = lane_get(arg, name, true);

    if (!l || l->labels || l->set) {
        (void)label_bytes_free(labels);
        return l ? 0 : -ENOMEM;
    }
    l->labels = labels;
    l->n = labels->n;
    return 0;
}

int intake_new(struct intake **ret, const struct rw_endpoint_config *c, struct queue *q, struct spool *spool)
{
    CLEANUP(cleanup_intake_free) struct intake *in = calloc(1, sizeof(*in));
    int r;

    if (!in)
        return -ENOMEM;
    in->config = c;
    in->queue = q;
    in->spool = spool;
    in->families.started_ms = metrics_process_start_ms();
    r = spool ? active_load(spool, lane_restore, in) : 0;
    if (r == -ENOMEM)
        return r;
    *ret = TAKE_PTR(in);
    return 0;
}

static int lane_store(struct intake *in, struct intake_lane *l)
{
    CLEANUP(cleanup_label_bytes_free) struct label_bytes *labels = NULL;
    int r = l->set ? label_bytes_new(&labels, l->set, in->config) : 0;

    return r < 0 ? r : active_save(in->spool, (struct str){l->name, l->name_n}, labels ? labels : l->labels);
}

void intake_attach(struct intake *in, struct spool *spool)
{
    int r;

    in->spool = spool;
    r = spool ? active_load(spool, lane_restore, in) : 0;
    for (struct intake_lane *l = spool ? in->lanes : NULL; l && r == 0; l = l->next)
        r = lane_store(in, l);
    if (r < 0)
        log_warn("cannot store the active series: after a crash they get no stale markers",
                 L_STR("remote_name", in->config->name), L_ERR(r));
}

struct intake *intake_free(struct intake *in)
{
    while (in && in->lanes) {
        struct intake_lane *next = in->lanes->next;

        (void)lane_free(in->lanes);
        in->lanes = next;
    }
    if (in)
        families_done(&in->families);
    free(in);
    return NULL;
}

/* Receivers insist on order within a series, so a clock that was set back yields the last timestamp of the
 * lane plus 1 ms. After a step back of more than an hour the earlier time must have been wrong. */
static int64_t lane_next_ms(const struct intake *in, const struct intake_lane *l, int64_t at_ms)
{
    int64_t last = queue_last_ms(in->queue, (struct str){l->name, l->name_n});

    return last >= at_ms && last - at_ms < CLOCK_BACK_MS ? last + 1 : at_ms;
}

/* Queues a frame with values, or with stale markers if values is NULL. */
static int lane_append(struct intake *in, const struct intake_lane *l, const struct frame *f,
                       const double *values, int64_t at_ms, int64_t now_ms)
{
    char *payload = malloc(f->block_n);
    struct record_head h = {.kind = values ? RECORD_SAMPLES : RECORD_MARKERS,
                            .samples = (uint32_t)f->n,
                            .first_ms = at_ms,
                            .last_ms = at_ms,
                            .lane = {l->name, l->name_n}};

    if (!payload) {
        queue_count_drop(in->queue, DROP_MEMORY, f->n);
        return -ENOMEM;
    }
    frame_fill(f, payload, values, at_ms);
    return queue_append(in->queue, &h, payload, f->block_n, now_ms);
}

static int lane_append_markers(struct intake *in, const struct intake_lane *l,
                               const struct label_bytes *labels, const uint32_t *pick, size_t n,
                               int64_t at_ms, int64_t now_ms)
{
    size_t most = (size_t)in->config->max_samples_per_send;
    int r = 0;

    for (size_t i = 0; i < n && r == 0; i += most) {
        CLEANUP(cleanup_frame_free) struct frame *f = NULL;

        r = frame_new(&f, labels, pick + i, 0, size_min(most, n - i), at_ms)
                ?: lane_append(in, l, f, NULL, at_ms, now_ms);
    }
    return r;
}

/* Queues stale markers for active series that are not in `now`, which may be NULL. */
static int lane_end_missing(struct intake *in, struct intake_lane *l, const struct label_bytes *now,
                            int64_t at_ms, int64_t now_ms)
{
    CLEANUP(cleanup_label_bytes_free) struct label_bytes *was = NULL;
    CLEANUP(cleanup_free) uint32_t *gone = NULL;
    const struct label_bytes *before = l->labels;
    size_t n;
    int r = 0;

    if (!before && l->set) {
        r = label_bytes_new(&was, l->set, in->config);
        before = was;
    }
    if (r < 0 || !before)
        return r;
    r = label_bytes_missing(before, now, &gone, &n);
    return r < 0 ? r : lane_append_markers(in, l, before, gone, n, at_ms, now_ms);
}

static int lane_make_frames(struct intake *in, struct intake_lane *l, const struct label_bytes *labels,
                            int64_t at_ms)
{
    size_t most = (size_t)in->config->max_samples_per_send;
    int r = 0;

    lane_drop_frames(l);
    l->frames = calloc(labels->n / most + 1, sizeof(struct frame *));
    if (!l->frames)
        return -ENOMEM;
    for (size_t i = 0; i < labels->n && r == 0; i += most) {
        r = frame_new(&l->frames[l->n_frames], labels, NULL, i, size_min(most, labels->n - i), at_ms);
        l->n_frames += r == 0;
    }
    if (r < 0)
        lane_drop_frames(l);
    return r;
}

/* Stores the active series on disk. A crash may come in between, hence the order: stale markers first,
 * then the active series, then their samples. At worst a marker is sent twice. */
static int lane_remember(struct intake *in, const struct intake_lane *l, const struct label_bytes *labels)
{
    int r;

    queue_sync(in->queue);
    r = in->spool ? active_save(in->spool, (struct str){l->name, l->name_n}, labels) : 0;
    if (r < 0 && r != -ENOMEM) {
        log_warn("cannot store the active series: after a crash they get no stale markers",
                 L_STR("remote_name", in->config->name), L_ERR(r));
        r = 0;
    }
    return r;
}

/* Logs each invalid name once. */
static void intake_warn_names(struct intake *in, const struct label_bytes *labels)
{
    for (size_t i = 0; i < labels->n_bad_names; i++) {
        uint64_t hash = hash_bytes(str_of(labels->bad_names[i]));
        size_t k = 0;

        while (k < in->n_warned && in->warned[k] != hash)
            k++;
        if (k < in->n_warned || k == INTAKE_WARNED)
            continue;
        in->warned[in->n_warned++] = hash;
        log_warn("series dropped: invalid name after relabelling", L_STR("remote_name", in->config->name),
                 L_STR("name", labels->bad_names[i]));
    }
}

static void lane_log_dropped(struct intake *in, const struct intake_lane *l, const struct label_bytes *labels)
{
    intake_warn_names(in, labels);
    if (labels->invalid)
        log_warn("series with invalid labels dropped", L_STR("remote_name", in->config->name),
                 L_STR("score_name", l->name), L_INT("series", labels->invalid));
    if (labels->over_limit)
        log_warn("series dropped: a regex of write_relabel_configs exceeded its match limit",
                 L_STR("remote_name", in->config->name), L_STR("score_name", l->name),
                 L_INT("series", labels->over_limit));
}

/* Only relabelling changes the name. */
static void intake_note_names(struct intake *in, const struct label_bytes *labels)
{
    struct str last = STR("");

    for (size_t i = 0; i < (in->config->relabel.n ? labels->n : size_min(labels->n, 1)); i++) {
        struct str name = label_bytes_name(labels, i);

        if (!str_eq(name, last))
            families_note(&in->families, name, "", FAMILY_GAUGE, SCORE_HELP);
        last = name;
    }
}

/* The scorer's first batch, or one with other series than the last. */
static int lane_set_series(struct intake *in, struct intake_lane *l, struct series_set *set, int64_t at_ms,
                           int64_t now_ms)
{
    CLEANUP(cleanup_label_bytes_free) struct label_bytes *labels = NULL;
    int r = label_bytes_new(&labels, set, in->config)
                ?: lane_end_missing(in, l, labels, at_ms, now_ms)
                ?: lane_remember(in, l, labels)
                ?: lane_make_frames(in, l, labels, at_ms);

    if (r < 0)
        return r;
    lane_log_dropped(in, l, labels);
    intake_note_names(in, labels);
    l->invalid = labels->invalid + labels->over_limit;
    l->labels = label_bytes_free(l->labels);
    (void)series_set_unref(l->set);
    l->set = series_set_ref(set);
    l->n = labels->n;
    return 0;
}

static bool lane_frames_fit(const struct intake_lane *l, const struct series_set *set, int64_t at_ms)
{
    return l->set == set && l->frames &&
           (l->n_frames == 0 || l->frames[0]->time_n == frame_time_bytes(at_ms));
}

int intake_publish(struct intake *in, const struct batch *b, int64_t now_ms)
{
    struct intake_lane *l = lane_get(in, str_of(b->score_name), true);
    int64_t at_ms = l ? lane_next_ms(in, l, b->at.ms) : 0;
    int r = l ? 0 : -ENOMEM;

    if (r == 0 && !lane_frames_fit(l, b->set, at_ms))
        r = lane_set_series(in, l, b->set, at_ms, now_ms);
    if (r < 0) {
        queue_count_drop(in->queue, DROP_MEMORY, series_count(b->set));
        return r;
    }
    for (size_t i = 0; i < l->n_frames; i++)
        r = lane_append(in, l, l->frames[i], b->values, at_ms, now_ms) ?: r;
    queue_count_drop(in->queue, DROP_INVALID, l->invalid);
    queue_sync(in->queue);
    return r;
}

/* Ends every series of the lane. */
static int lane_end(struct intake *in, struct intake_lane *l, int64_t at_ms, int64_t now_ms)
{
    int r = lane_end_missing(in, l, NULL, lane_next_ms(in, l, at_ms), now_ms) ?: lane_remember(in, l, NULL);

    if (r < 0)
        return r;
    lane_drop_frames(l);
    l->labels = label_bytes_free(l->labels);
    l->set = series_set_unref(l->set);
    l->n = 0;
    return 0;
}

int intake_withdraw(struct intake *in, struct str score_name, int64_t at_ms, int64_t now_ms)
{
    struct intake_lane *l = lane_get(in, score_name, false);

    return l ? lane_end(in, l, at_ms, now_ms) : 0;
}

void intake_grace(struct intake *in, int64_t now_ms)
{
    for (struct intake_lane *l = in->lanes; l; l = l->next) {
        if (!l->labels || l->name_n == 0)
            continue;
        if (l->grace_until_ms == 0)
            l->grace_until_ms = now_ms + INTAKE_GRACE_MS;
        if (now_ms < l->grace_until_ms)
            continue;
        log_info("scorer missing since the restart, ending its series",
                 L_STR("remote_name", in->config->name), L_STR("score_name", l->name), L_INT("series", l->n));
        if (lane_end(in, l, now_ms, now_ms) < 0)
            l->grace_until_ms = now_ms + INTAKE_GRACE_MS;
    }
}

void intake_stop(struct intake *in, int64_t now_ms)
{
    for (struct intake_lane *l = in->lanes; l; l = l->next)
        if (lane_end(in, l, now_ms, now_ms) < 0)
            log_error("stale markers not queued: out of memory", L_STR("remote_name", in->config->name),
                      L_STR("score_name", l->name));
}

const struct families *intake_families(const struct intake *in)
{
    return &in->families;
}

size_t intake_series(const struct intake *in)
{
    size_t n = 0;

    for (const struct intake_lane *l = in->lanes; l; l = l->next)
        n += l->n;
    return n;
}

/* The own metrics are few and their series change often: only the labels are kept, not the frames. */
static int publish_metrics(struct intake *in, struct intake_lane *l, struct label_bytes *labels,
                           const double *values, int64_t at_ms, int64_t now_ms)
{
    bool same = l->labels && l->labels->n == labels->n && l->labels->bytes_n == labels->bytes_n &&
                memcmp(l->labels->bytes, labels->bytes, labels->bytes_n) == 0;
    int r = same ? 0 : lane_end_missing(in, l, labels, at_ms, now_ms) ?: lane_remember(in, l, labels);

    r = r ?: lane_make_frames(in, l, labels, at_ms);
    for (size_t i = 0; r == 0 && i < l->n_frames; i++)
        r = lane_append(in, l, l->frames[i], values, at_ms, now_ms);
    lane_drop_frames(l);
    queue_sync(in->queue);
    return r;
}

int intake_metrics(struct intake *in, const struct metrics *m, int64_t at_ms, int64_t now_ms)
{
    CLEANUP(cleanup_label_bytes_free) struct label_bytes *labels = NULL;
    CLEANUP(cleanup_free) double *values = NULL;
    struct intake_lane *l = lane_get(in, STR(""), true);
    int r = l ? intake_collect_metrics(in, m, &labels, &values) : -ENOMEM;

    r = r ?: publish_metrics(in, l, labels, values, lane_next_ms(in, l, at_ms), now_ms);
    if (r < 0)
        return r;
    intake_warn_names(in, labels);
    queue_count_drop(in->queue, DROP_INVALID, labels->invalid);
    (void)label_bytes_free(l->labels);
    l->labels = TAKE_PTR(labels);
    l->n = l->labels->n;
    return 0;
}

/* Owns each scorer's set of series and the frames built from it. */
#include "remotewrite/intake.h"

#include "exporter/base/buf.h"
#include "exporter/base/log.h"
#include "exporter/base/map.h"
#include "exporter/metric/series.h"
#include "remotewrite/body.h"
#include "remotewrite/format.h"
#include "remotewrite/spool.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

enum { CLOCK_BACK_MS = 3600 * 1000 };

/* The series of one scorer; without a name, the program's own metrics. */
struct intake_lane {
    struct intake_lane *next;
    struct series_set *set; /* of the last batch; NULL: none yet in this run */
    struct frame **frames;  /* of that set */
    size_t n_frames;
    struct label_bytes *labels; /* active series without a set: of the previous run, or the own metrics */
    mono_ms grace_until;        /* 0: not begun */
    size_t n;                   /* active series */
    size_t invalid;             /* series of the set that are dropped */
    size_t name_n;
    char name[];
};

struct intake {
    const struct rw_endpoint_config *config;
    struct queue *queue;
    struct spool *spool;
    struct intake_lane *lanes;
    struct families families;
};

/* ---- Active series on disk ---- */

/* "DSRWACT1", crc32c, count, length of the lane's name, 0; the name; then the labels of each series,
 * preceded by their length. */
enum { ACTIVE_HEAD = 24, ACTIVE_CRC = 8, ACTIVE_COUNT = 12, ACTIVE_LANE = 16, ACTIVE_MAX = 1 << 30 };

static const char active_magic[] = "DSRWACT1";

static uint32_t active_crc(struct str bytes)
{
    return crc32c(0, (struct str){bytes.p + ACTIVE_COUNT, bytes.n - ACTIVE_COUNT});
}

int active_put(struct buf *into, struct str lane, const struct label_bytes *l)
{
    size_t n = ACTIVE_HEAD + lane.n + l->bytes_n + 4 * l->n;
    char *head, *p;
    int r = buf_room(into, n, &head);

    if (r < 0)
        return r;
    memset(head, 0, ACTIVE_HEAD);
    memcpy(head, active_magic, 8);
    put_le(head + ACTIVE_COUNT, l->n, 4);
    put_le(head + ACTIVE_LANE, lane.n, 4);
    p = mempcpy(head + ACTIVE_HEAD, lane.p, lane.n);
    for (size_t i = 0; i < l->n; i++) {
        struct str labels = label_bytes_at(l, i);

        put_le(p, labels.n, 4);
        p = mempcpy(p + 4, labels.p, labels.n);
    }
    put_le(head + ACTIVE_CRC, active_crc((struct str){head, n}), 4);
    into->n += n;
    return 0;
}

int active_read(struct str bytes, struct str *ret_lane, struct label_bytes **ret)
{
    CLEANUP(cleanup_label_bytes_free) struct label_bytes *l = NULL;
    const char *p = bytes.p + ACTIVE_HEAD, *end = bytes.p + bytes.n;
    size_t n, lane_n;
    char *to;

    if (bytes.n < ACTIVE_HEAD || memcmp(bytes.p, active_magic, 8) != 0 ||
        active_crc(bytes) != get_le(bytes.p + ACTIVE_CRC, 4))
        return -EBADMSG;
    n = get_le(bytes.p + ACTIVE_COUNT, 4);
    lane_n = get_le(bytes.p + ACTIVE_LANE, 4);
    if (lane_n > (size_t)(end - p) || n > ((size_t)(end - p) - lane_n) / 4)
        return -EBADMSG;
    *ret_lane = (struct str){p, lane_n};
    p += lane_n;
    l = xcalloc(1, sizeof(*l));
    l->bytes = to = xmalloc((size_t)(end - p) + 1);
    l->at = xcalloc(n + 1, sizeof(l->at[0]));
    for (size_t length; l->n < n; p += 4 + length) {
        if (end - p < 4 || (length = get_le(p, 4)) > (size_t)(end - p) - 4)
            return -EBADMSG;
        to = mempcpy(to, p + 4, length);
        l->at[++l->n] = (size_t)(to - l->bytes);
    }
    l->bytes_n = (size_t)(to - l->bytes);
    if (p != end)
        return -EBADMSG;
    *ret = TAKE_PTR(l);
    return 0;
}

/* Stores the active series of a lane; without any (l may be NULL) the file is removed. */
static int active_save(struct spool *s, struct str lane, const struct label_bytes *l)
{
    BUF_AUTO(bytes, ACTIVE_MAX);
    char name[32];
    int r;

    /* A score name may contain any character, so the file is named by its hash; the content has the name. */
    (void)snprintf(name, sizeof(name), "active.%016" PRIx64, hash_lasting(lane));
    if (!l || l->n == 0) {
        spool_remove_file(s, name);
        return 0;
    }
    r = active_put(&bytes, lane, l);
    return r < 0 ? r : spool_write_file(s, name, buf_str(&bytes));
}

/* ---- Lanes ---- */

static struct str lane_score(const struct intake_lane *l)
{
    return (struct str){l->name, l->name_n};
}

static void lane_drop_frames(struct intake_lane *l)
{
    for (size_t i = 0; i < l->n_frames; i++)
        (void)frame_free(l->frames[i]);
    free(l->frames);
    l->frames = NULL;
    l->n_frames = 0;
}

static struct intake_lane *lane_get(struct intake *in, struct str name, bool make)
{
    struct intake_lane **at = &in->lanes, *l;

    while ((l = *at) && !str_eq(name, lane_score(l)))
        at = &l->next;
    if (l || !make)
        return l;
    l = xcalloc(1, sizeof(*l) + name.n + 1);
    l->name_n = name.n;
    if (name.n)
        memcpy(l->name, name.p, name.n);
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

/* Logs a failure to store the active series, which costs no more than markers after a crash. */
static void intake_save(const struct intake *in, const struct intake_lane *l,
                        const struct label_bytes *labels)
{
    int r = in->spool ? active_save(in->spool, lane_score(l), labels) : 0;

    if (r < 0)
        log_warn("cannot store the active series: after a crash they get no stale markers",
                 L_STR("remote_name", in->config->name), L_ERR(r));
}

/* Ignores a damaged file: its series get no markers and end after the receiver's lookback of five minutes. */
static void intake_load_file(struct intake *in, const char *name)
{
    BUF_AUTO(bytes, ACTIVE_MAX);
    struct label_bytes *labels;
    struct intake_lane *l;
    struct str lane;

    if (spool_read_file(in->spool, name, &bytes) < 0 || active_read(buf_str(&bytes), &lane, &labels) < 0)
        return;
    l = lane_get(in, lane, true);
    if (l->labels || l->set) {
        (void)label_bytes_free(labels);
        return;
    }
    l->labels = labels;
    l->n = labels->n;
}

void intake_attach(struct intake *in, struct spool *spool)
{
    const struct dirent *entry;
    DIR *d = spool ? spool_list(spool) : NULL;

    in->spool = spool;
    for (struct intake_lane *l = in->lanes; spool && l; l = l->next) {
        CLEANUP(cleanup_label_bytes_free)
        struct label_bytes *labels = l->set ? label_bytes_new(l->set, in->config, NULL) : NULL;

        if (labels || l->labels)
            intake_save(in, l, labels ? labels : l->labels);
    }
    while (d && (entry = readdir(d)))
        if (strncmp(entry->d_name, "active.", 7) == 0)
            intake_load_file(in, entry->d_name);
    if (d)
        (void)closedir(d);
}

struct intake *intake_free(struct intake *in)
{
    if (!in)
        return NULL;
    for (struct intake_lane *l = in->lanes, *next; l; l = next) {
        next = l->next;
        lane_drop_frames(l);
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
    int64_t last = queue_last_ms(in->queue, lane_score(l));

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
                            .lane = lane_score(l)};

    frame_fill(f, payload, values, at_ms);
    queue_append(in->queue, &h, payload, f->block_n);
}

/* Queues stale markers for active series that are not in `now`, which may be NULL. */
static void lane_end_missing(struct intake *in, const struct intake_lane *l, const struct label_bytes *now,
                             int64_t at_ms)
{
    CLEANUP(cleanup_label_bytes_free)
    struct label_bytes *was = !l->labels && l->set ? label_bytes_new(l->set, in->config, NULL) : NULL;
    CLEANUP(cleanup_free) uint32_t *gone = NULL;
    const struct label_bytes *before = was ? was : l->labels;
    size_t most = (size_t)in->config->max_samples_per_send;
    size_t n = before ? label_bytes_missing(before, now, &gone) : 0;

    for (size_t i = 0; i < n;) {
        CLEANUP(cleanup_frame_free)
        struct frame *f = frame_new(before, gone + i, 0, size_min(most, n - i), at_ms);

        lane_append(in, l, f, NULL, at_ms);
        i += f->n;
    }
}

static void lane_make_frames(const struct intake *in, struct intake_lane *l, const struct label_bytes *labels,
                             int64_t at_ms)
{
    size_t most = (size_t)in->config->max_samples_per_send;

    lane_drop_frames(l);
    for (size_t i = 0; i < labels->n; i += l->frames[l->n_frames++]->n) {
        l->frames = xrealloc(l->frames, (l->n_frames + 1) * sizeof(l->frames[0]));
        l->frames[l->n_frames] = frame_new(labels, NULL, i, size_min(most, labels->n - i), at_ms);
    }
}

/* Stores the active series on disk. A crash may come in between, hence the order: stale markers first,
 * then the active series, then their samples. At worst a marker is sent twice. */
static void lane_remember(struct intake *in, const struct intake_lane *l, const struct label_bytes *labels)
{
    queue_sync(in->queue);
    intake_save(in, l, labels);
}

static void lane_publish(struct intake *in, const struct intake_lane *l, const double *values, int64_t at_ms)
{
    for (size_t i = 0; i < l->n_frames; i++)
        lane_append(in, l, l->frames[i], values, at_ms);
    queue_count_drop(in->queue, DROP_INVALID, l->invalid);
    queue_sync(in->queue);
}

static void lane_log_dropped(const struct intake *in, const struct intake_lane *l,
                             const struct label_bytes *labels)
{
    if (labels->invalid)
        log_warn("series with invalid labels dropped", L_STR("remote_name", in->config->name),
                 L_STR("score_name", l->name), L_INT("series", labels->invalid),
                 L_STR("invalid_name", labels->bad_name));
    if (labels->over_limit)
        log_warn("series dropped: a regex of write_relabel_configs exceeded its match limit",
                 L_STR("remote_name", in->config->name), L_STR("score_name", l->name),
                 L_INT("series", labels->over_limit));
}

/* The scorer's first batch, or one with other series than the last. */
static void lane_set_series(struct intake *in, struct intake_lane *l, struct series_set *set, int64_t at_ms)
{
    CLEANUP(cleanup_label_bytes_free)
    struct label_bytes *labels = label_bytes_new(set, in->config, &in->families);

    lane_end_missing(in, l, labels, at_ms);
    lane_remember(in, l, labels);
    lane_make_frames(in, l, labels, at_ms);
    lane_log_dropped(in, l, labels);
    l->invalid = labels->invalid + labels->over_limit;
    l->labels = label_bytes_free(l->labels);
    (void)series_set_unref(l->set);
    l->set = series_set_ref(set);
    l->n = labels->n;
}

void intake_publish(struct intake *in, const struct batch *b)
{
    struct intake_lane *l = lane_get(in, str_of(b->score_name), true);
    int64_t at_ms = lane_next_ms(in, l, b->at.ms);

    if (l->set != b->set || (l->n_frames && l->frames[0]->time_n != frame_time_bytes(at_ms)))
        lane_set_series(in, l, b->set, at_ms);
    lane_publish(in, l, b->values, at_ms);
}

/* Ends every series of the lane. */
static void lane_end(struct intake *in, struct intake_lane *l, int64_t at_ms)
{
    lane_end_missing(in, l, NULL, lane_next_ms(in, l, at_ms));
    lane_remember(in, l, NULL);
    lane_drop_frames(l);
    l->labels = label_bytes_free(l->labels);
    l->set = series_set_unref(l->set);
    l->n = 0;
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
        if (!l->labels || l->name_n == 0)
            continue;
        if (l->grace_until.ms == 0)
            l->grace_until = mono_add(now, INTAKE_GRACE_MS);
        if (mono_before(now, l->grace_until))
            continue;
        log_info("scorer missing since the restart, ending its series",
                 L_STR("remote_name", in->config->name), L_STR("score_name", l->name), L_INT("series", l->n));
        lane_end(in, l, at_ms);
    }
}

void intake_stop(struct intake *in, int64_t now_ms)
{
    for (struct intake_lane *l = in->lanes; l; l = l->next)
        lane_end(in, l, now_ms);
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

    (void)metrics_each(m, collect_sample, &c);
    labels = label_maker_end(maker);
    at_ms = lane_next_ms(in, l, at_ms);
    if (!l->labels || !str_eq((struct str){l->labels->bytes, l->labels->bytes_n},
                              (struct str){labels->bytes, labels->bytes_n})) {
        lane_end_missing(in, l, labels, at_ms);
        lane_remember(in, l, labels);
        lane_log_dropped(in, l, labels);
    }
    lane_make_frames(in, l, labels, at_ms);
    l->invalid = labels->invalid;
    lane_publish(in, l, c.values, at_ms);
    lane_drop_frames(l);
    free(c.values);
    (void)label_bytes_free(l->labels);
    l->labels = labels;
    l->n = labels->n;
}

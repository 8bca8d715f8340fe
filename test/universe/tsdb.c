/* Owns the ledger of samples and a TSDB that compares with it what arrives. The ledger is filled where the
 * endpoint's thread has taken a batch: from then on, what is on disk must arrive, whatever happens. */
#include "exporter/base/def.h"
#include "exporter/metric/batch.h"
#include "exporter/metric/series.h"
#include "remotewrite/format.h"
#include "remotewrite/frame.h"
#include "remotewrite/intake.h"
#include "remotewrite/queue.h"
#include "test/bench/gen.h"
#include "test/universe/sim.h"
#include "test/universe/world.h"

#include <remote_v1.pb-c.h>
#include <remote_v2.pb-c.h>
#include <snappy-c.h>
#include <zstd.h>

enum {
    TABLE = 1 << 15,
    MAX_SERIES = 4096,
    MAX_BATCHES = 4096,
    SETTLE_MS = 5000, /* until the position of what was delivered survives a kill */
    SEND_MS = 30000,  /* to deliver the last samples of a run */
    RATE_PER_MINUTE = 30,
    HOUR_MS = 3600 * 1000,
    OPENS_MS = 20 * 1000, /* in which a folder is tried again; less than a request may take */
};

struct series_state {
    uint64_t key;
    int64_t last_ms, order_ms; /* order_ms: of the newest, or of one that was excused for being older */
    uint64_t last_bits, batch;
    unsigned lane;
    int agent;
    bool marker_lost; /* rejected by the TSDB, or excused for being older than the last sample */
    bool is_unstored; /* of another replica, in a batch that was not on disk: a kill makes it unknown */
};

struct lane_state {
    uint64_t batch;
    bool ended;
};

/* A sample: where it is from, and what became of it. */
struct taken {
    uint64_t key, bits, batch; /* batch: 0 for a stale marker */
    unsigned life;             /* of the agent, when it last knew that it arrived */
    bool used, is_due, arrived, acknowledged, excused;
};

/* The samples of a round. Once the agent knows that all arrived, none of them is sent again. */
struct batch_state {
    size_t left; /* not acknowledged */
    int64_t done_at;
    unsigned life;     /* of the last acknowledgement; 0: none yet */
    bool across_lives; /* acknowledged in several: the read position covers whole records only */
    bool unanswered;   /* its agent gave up while the last acknowledgement was on its way */
    int agent;         /* of the last acknowledgement */
};

static struct {
    struct lane_state lanes[AGENTS * SCORERS];
    struct series_state series[MAX_SERIES];
    size_t n_series;
    struct taken samples[TABLE];
    size_t n_samples;
    struct batch_state batch[MAX_BATCHES];
    struct {
        uint64_t key, hash;
    } bodies[TABLE];
    uint64_t batches;
    enum { TSDB_OK, TSDB_503, TSDB_429, TSDB_POISON, TSDB_SMALL, TSDB_OLD, TSDB_404 } state;
    int64_t until;
} ledger;

/* ---- The ledger ---- */

static struct taken *sample_at(uint64_t key)
{
    size_t i = key % TABLE;

    while (ledger.samples[i].used && ledger.samples[i].key != key)
        i = (i + 1) % TABLE;
    if (!ledger.samples[i].used && ++ledger.n_samples == TABLE)
        violated(ORACLE_MODEL, "more than %d samples", TABLE);
    ledger.samples[i].used = true;
    ledger.samples[i].key = key;
    return &ledger.samples[i];
}

static uint64_t sample_key(uint64_t series, int64_t at)
{
    return fnv(series, &at, sizeof(at));
}

static struct series_state *series_at(uint64_t key, int agent)
{
    for (size_t i = 0; i < ledger.n_series; i++)
        if (ledger.series[i].key == key)
            return &ledger.series[i];
    if (ledger.n_series == MAX_SERIES)
        violated(ORACLE_MODEL, "more than %d series", MAX_SERIES);
    ledger.series[ledger.n_series] =
        (struct series_state){.key = key, .agent = agent, .last_ms = INT64_MIN, .order_ms = INT64_MIN};
    return &ledger.series[ledger.n_series++];
}

static uint64_t label_key(uint64_t key, struct str name, struct str value)
{
    return fnv(fnv(fnv(key, name.p, name.n), "=", 1), value.p, value.n) * 31 + 1;
}

static uint64_t batch_series_key(const struct batch *b, size_t i)
{
    uint64_t key = label_key(FNV_START, STR("__name__"), STR(SCORE_METRIC));
    struct str values[DS_LABELS];

    series_labels(b->set, i, values);
    for (size_t l = 0; l < DS_LABELS; l++)
        if (values[l].n)
            key = label_key(key, ds_label_names[l], values[l]);
    return key;
}

/* The batches that an intake has taken, and what it has queued of them. */
static struct taking {
    const struct process *process;
    struct batch *batch;
    struct queue *queue;
    int64_t at;
    uint64_t samples;
    bool is_renewed; /* what was current, for an endpoint that starts late or goes on */
} taking[AGENTS * SCORERS];

static unsigned lane_of(int agent, const char *score_name)
{
    return (unsigned)agent * SCORERS + (unsigned)(score_name[1] - '0');
}

void __real_queue_append(struct queue *q, struct record_head *h, char *payload, size_t n);
void __wrap_queue_append(struct queue *q, struct record_head *h, char *payload, size_t n);
void __wrap_queue_append(struct queue *q, struct record_head *h, char *payload, size_t n)
{
    if (h->kind == RECORD_SAMPLES && h->lane.n) {
        struct taking *k = &taking[lane_of(sim_process->node, h->lane.p)];

        k->queue = q;
        k->at = h->first_ms;
        k->samples += h->samples;
    }
    __real_queue_append(q, h, payload, n);
}

/* A batch is queued at its own time or later, after what was there before. One that a new endpoint gets is
 * queued at the time of that, which a clock that went back meanwhile may have made earlier. */
static bool is_too_early(const struct taking *k)
{
    return !k->is_renewed && k->at < k->batch->at.ms;
}

/* The batch is in the queue. */
static void take_batch(struct taking *k, unsigned lane)
{
    const struct batch *b = k->batch;
    int agent = (int)(lane / SCORERS);
    bool is_safe;

    if (k->samples != series_count(b->set) || is_too_early(k))
        violated(ORACLE_LEDGER, "a%d queued %llu of %zu samples of %s", agent, (unsigned long long)k->samples,
                 series_count(b->set), b->score_name);
    is_safe = !sim_process->dead && queue_stats(k->queue).unsaved == 0;
    if (++ledger.batches == MAX_BATCHES)
        violated(ORACLE_MODEL, "more than %d batches", MAX_BATCHES);
    ledger.lanes[lane] = (struct lane_state){.batch = ledger.batches};
    ledger.batch[ledger.batches].left = series_count(b->set);
    for (size_t i = 0; i < series_count(b->set); i++) {
        struct series_state *s = series_at(batch_series_key(b, i), agent);
        struct taken *one = sample_at(sample_key(s->key, k->at));

        s->is_unstored = !is_safe && s->batch && s->lane != lane;
        s->batch = one->batch = ledger.batches;
        s->lane = lane;
        one->bits = double_bits(b->values[i]);
        one->is_due = is_safe && sim_now_ms < RUN_MS - SEND_MS;
    }
    trace("a%d took %zu samples of %s, score %.0f%s", agent, series_count(b->set), b->score_name,
          b->values[0], is_safe ? "" : ", not on disk");
}

/* Those of this process that are queued now. What a process takes that was dead before does not count. */
static void take_queued(bool was_dead)
{
    for (unsigned lane = 0; lane < ARRAY_SIZE(taking); lane++) {
        struct taking *k = &taking[lane];

        if (!k->batch || k->process != sim_process || (k->samples == 0 && !was_dead))
            continue;
        if (!was_dead)
            take_batch(k, lane);
        (void)batch_unref(k->batch);
        *k = (struct taking){.batch = NULL};
    }
}

void __real_intake_commit(struct intake *in);
void __wrap_intake_commit(struct intake *in);
void __wrap_intake_commit(struct intake *in)
{
    bool was_dead = sim_process->dead;

    __real_intake_commit(in);
    take_queued(was_dead);
}

/* The intake has taken the batch, of which nothing is queued yet. */
static void begin_taking(struct batch *b, bool is_renewed)
{
    struct taking *k = &taking[lane_of(sim_process->node, b->score_name)];

    (void)batch_unref(k->batch); /* of an earlier process, or one that was renewed without a change */
    *k = (struct taking){.process = sim_process, .batch = batch_ref(b), .is_renewed = is_renewed};
}

void __real_intake_publish(struct intake *in, struct batch *b, int64_t at_ms);
void __wrap_intake_publish(struct intake *in, struct batch *b, int64_t at_ms);
void __wrap_intake_publish(struct intake *in, struct batch *b, int64_t at_ms)
{
    bool was_dead = sim_process->dead;

    __real_intake_publish(in, b, at_ms); /* which may have to queue earlier ones */
    take_queued(was_dead);
    if (!was_dead)
        begin_taking(b, false);
}

/* A new endpoint queues the batch as a whole. One that goes on queues nothing, as no labels change here. */
void __real_intake_renew(struct intake *in, struct batch *b, int64_t at_ms);
void __wrap_intake_renew(struct intake *in, struct batch *b, int64_t at_ms);
void __wrap_intake_renew(struct intake *in, struct batch *b, int64_t at_ms)
{
    bool was_dead = sim_process->dead;

    __real_intake_renew(in, b, at_ms);
    take_queued(was_dead);
    if (!was_dead)
        begin_taking(b, true);
}

void __real_intake_withdraw(struct intake *in, struct str score_name, int64_t at_ms);
void __wrap_intake_withdraw(struct intake *in, struct str score_name, int64_t at_ms);
void __wrap_intake_withdraw(struct intake *in, struct str score_name, int64_t at_ms)
{
    bool was_dead = sim_process->dead;

    if (planted != PLANT_NO_MARKER)
        __real_intake_withdraw(in, score_name, planted == PLANT_EARLY_MARKER ? at_ms - 7200000 : at_ms);
    take_queued(was_dead);
    if (!sim_process->dead)
        ledger.lanes[lane_of(sim_process->node, score_name.p)].ended = true;
}

/* ---- The TSDB ---- */

/* A sample on the wire, of any format. */
struct wire {
    uint64_t key, bits;
    int64_t at;
    bool is_poison;
};

struct wire_request {
    struct wire list[64];
    size_t n;
    enum reached form;
};

static unsigned wire_lanes; /* of the request that is read: a bit for each scorer */

/* The labels of a series must be sorted. */
static void wire_add_label(struct wire *s, const char **before, const char *name, const char *value)
{
    if (*before && strcmp(*before, name) >= 0)
        violated(ORACLE_WIRE, "labels are not sorted: %s, %s", *before, name);
    *before = name;
    s->key = label_key(s->key, str_of(name), str_of(value));
    s->is_poison = s->is_poison || (strcmp(name, "ds_node") == 0 && strcmp(value, "n0") == 0);
    if (strcmp(name, "ds_score_name") == 0)
        wire_lanes |= 1u << (value[1] - '0');
}

static struct wire *wire_add(struct wire_request *rq, double value, int64_t at)
{
    struct wire *s = &rq->list[rq->n++];

    if (rq->n > ARRAY_SIZE(rq->list))
        violated(ORACLE_WIRE, "a request with more than %zu samples", ARRAY_SIZE(rq->list));
    *s = (struct wire){.key = FNV_START, .at = at};
    s->bits = double_bits(value);
    return s;
}

static bool wire_read_v1(struct wire_request *rq, const char *plain, size_t n)
{
    Rw__V1__WriteRequest *m = rw__v1__write_request__unpack(NULL, n, (const uint8_t *)plain);

    for (size_t i = 0; m && i < m->n_timeseries; i++) {
        const Rw__V1__TimeSeries *from = m->timeseries[i];
        struct wire *s = wire_add(rq, from->samples[0]->value, from->samples[0]->timestamp);
        const char *before = NULL;

        for (size_t l = 0; l < from->n_labels; l++)
            wire_add_label(s, &before, from->labels[l]->name, from->labels[l]->value);
    }
    rw__v1__write_request__free_unpacked(m, NULL);
    return m != NULL;
}

static bool wire_read_v2(struct wire_request *rq, const char *plain, size_t n)
{
    Rw__V2__Request *m = rw__v2__request__unpack(NULL, n, (const uint8_t *)plain);

    for (size_t i = 0; m && i < m->n_timeseries; i++) {
        const Rw__V2__TimeSeries *from = m->timeseries[i];
        struct wire *s = wire_add(rq, from->samples[0]->value, from->samples[0]->timestamp);
        const char *before = NULL;

        for (size_t l = 0; l + 1 < from->n_labels_refs; l += 2) {
            if (from->labels_refs[l] >= m->n_symbols || from->labels_refs[l + 1] >= m->n_symbols)
                violated(ORACLE_WIRE, "a reference to a symbol that is not there");
            wire_add_label(s, &before, m->symbols[from->labels_refs[l]],
                           m->symbols[from->labels_refs[l + 1]]);
        }
    }
    rw__v2__request__free_unpacked(m, NULL);
    return m != NULL;
}

/* A sample arrived, and its answer will, at that time. */
static void tsdb_acknowledge(struct taken *one, const struct sim_node *a, int64_t at)
{
    struct batch_state *b = &ledger.batch[one->batch];

    one->life = a->life;
    if (one->acknowledged || !one->batch)
        return;
    one->acknowledged = true;
    b->across_lives |= b->life && b->life != a->life;
    b->life = a->life;
    b->agent = a->id;
    if (--b->left == 0)
        b->done_at = at;
}

/* As when a reload closes an endpoint that did not get rid of its samples in time. */
void tsdb_give_up(const struct sim_node *a)
{
    for (struct batch_state *b = ledger.batch; b <= ledger.batch + ledger.batches; b++)
        if (b->agent == a->id && b->life == a->life && b->left == 0 && b->done_at > sim_now_ms)
            b->unanswered = true;
}

/* Whether the agent had stored, or still knows, that all of the batch had arrived: a position that is not
 * stored yet is lost by a kill. */
static bool is_known_done(const struct batch_state *b, const struct sim_node *a)
{
    if (b->left || b->across_lives || b->unanswered)
        return false;
    if (b->life == a->life)
        return b->done_at < sim_now_ms;
    return b->done_at + SETTLE_MS < a->died_at[b->life];
}

/* Whether the agent may have lost a position that was stored: with the power, while it stood still, or by a
 * disk that fails. */
static bool may_have_lost(const struct batch_state *b, const struct taken *one, const struct sim_node *a)
{
    return b->life <= a->cut_life || b->life <= a->stood_life || one->life <= a->cut_life || a->disk_failed ||
           disk_has_failed(a->process->disk);
}

static void check_repeated(const struct taken *one, const struct sim_node *a)
{
    const struct batch_state *b = &ledger.batch[one->batch];

    if (one->batch && is_known_done(b, a) && !may_have_lost(b, one, a))
        violated(ORACLE_LEDGER, "a%d sent a sample again, %lld ms after all of its round had arrived", a->id,
                 (long long)(sim_now_ms - b->done_at));
}

/* Newer samples overtake those in a spool that cannot be read. What was sent while the disk failed is unknown
 * after a kill. In both cases, where the clock went back, the next samples may have time stamps of others. */
static bool is_in_order(const struct sim_node *a)
{
    return !a->unreadable && !a->forgot && !disk_was_unreadable(a->process->disk) &&
           !(a->was_killed && a->disk_failed);
}

/* Whether the time is that of a clock that was a day ahead. */
static bool is_ahead(int64_t at)
{
    return at - (SIM_BEGAN_MS + sim_now_ms) >= HOUR_MS;
}

/* A clock that goes a day ahead for the second time may be behind where it was at the first, and by then the
 * agent has forgotten those times, as it must. */
static bool is_ahead_again(const struct sim_node *a, int64_t at)
{
    return a->times_ahead > 1 && is_ahead(at);
}

/* Whether a sample of the newest round comes behind times of a clock that was a day ahead, from an agent
 * whose order is unknown, so that order_ms does not tell. */
static bool is_behind_ahead(const struct series_state *s, const struct sim_node *a, const struct taken *one,
                            int64_t at)
{
    return !is_in_order(a) && a->times_ahead > 0 && one->batch == s->batch && s->last_ms != INT64_MIN &&
           s->last_ms - at >= HOUR_MS;
}

/* Whether a sample is the series' last one from now on. What had arrived may come again after a power cut,
 * and so may times of a clock that was ahead, which do not count a second time: what follows is earlier. */
static bool is_newest(const struct series_state *s, const struct taken *one, int64_t at, bool is_back)
{
    if (at > s->last_ms)
        return !one->arrived || !is_ahead(at);
    return is_back && !one->arrived;
}

/* Whether a sample may come behind a later one: of a clock that was a day ahead before; one that was
 * rejected, which may be sent again after a power cut; or the last of a replica, which sends them late. */
static bool is_excused(const struct sim_node *a, const struct taken *one, int64_t at, bool is_back)
{
    return is_back || is_ahead_again(a, at) || one->excused || fleet_elects(a);
}

static bool is_out_of_order(const struct sim_node *a, const struct series_state *s, const struct taken *one,
                            int64_t at, bool is_back)
{
    return !one->arrived && at <= s->order_ms && is_in_order(a) && !is_excused(a, one, at, is_back);
}

static void tsdb_take(const struct wire_request *rq, const struct sim_node *a, int64_t answer_at)
{
    bool in_order = is_in_order(a);

    for (const struct wire *wire = rq->list; wire < rq->list + rq->n; wire++) {
        struct series_state *s = series_at(wire->key, a->id);
        struct taken *one = sample_at(sample_key(s->key, wire->at));
        /* After a clock that was a day ahead. */
        bool is_late = one->excused && one->batch < s->batch; /* rejected, and sent again after a power cut */
        bool is_back = a->times_ahead > 0 && !one->arrived && !is_late && s->order_ms != INT64_MIN &&
                       s->order_ms - wire->at >= HOUR_MS;
        bool counts;

        reached[REACHED_CLOCK_BACK] += is_back;
        if (wire->bits == RW_STALE_BITS && !one->arrived)
            one->bits = wire->bits;
        if (one->bits != wire->bits && in_order)
            violated(ORACLE_LEDGER, "a%d sent another value for a sample", a->id);
        if (one->arrived)
            check_repeated(one, a);
        if (is_out_of_order(a, s, one, wire->at, is_back))
            violated(ORACLE_LEDGER, "a%d sent a %s out of order, %lld ms after the last", a->id,
                     wire->bits == RW_STALE_BITS ? "stale marker" : "sample",
                     (long long)(wire->at - s->order_ms));
        if (!one->arrived && (wire->at > s->order_ms || is_back || !in_order))
            s->order_ms = wire->at;
        s->marker_lost |= (!in_order || fleet_elects(a) || is_ahead_again(a, wire->at)) &&
                          wire->bits == RW_STALE_BITS && wire->at < s->last_ms;
        counts = is_newest(s, one, wire->at, is_back || is_behind_ahead(s, a, one, wire->at));
        one->arrived = true;
        if (!universe.answer_is_lost)
            tsdb_acknowledge(one, a, answer_at);
        reached[REACHED_MARKER] += wire->bits == RW_STALE_BITS;
        if (!counts)
            continue;
        s->last_ms = wire->at;
        s->last_bits = wire->bits;
    }
}

/* A repeated request is the same bytes, in the same format. */
static void tsdb_check_body(const struct wire_request *rq, struct str body, const struct sim_node *a)
{
    uint64_t key = FNV_START + rq->form, hash = fnv(FNV_START, body.p, body.n);
    size_t i;

    for (i = 0; i < rq->n; i++)
        key = fnv(key, (uint64_t[]){rq->list[i].key, (uint64_t)rq->list[i].at}, 16);
    for (i = key % TABLE; ledger.bodies[i].key && ledger.bodies[i].key != key; i = (i + 1) % TABLE)
        ;
    reached[REACHED_REPEAT] += ledger.bodies[i].key != 0;
    if (ledger.bodies[i].key && ledger.bodies[i].hash != hash && is_in_order(a))
        violated(ORACLE_WIRE, "a%d repeated a request with other bytes", a->id);
    ledger.bodies[i].key = key;
    ledger.bodies[i].hash = hash;
}

/* A request that is rejected for good: what it holds need not arrive. */
static void tsdb_excuse(const struct wire_request *rq, int agent, bool poison_only)
{
    for (size_t i = 0; i < rq->n; i++) {
        struct series_state *s = series_at(rq->list[i].key, agent);

        if (poison_only && !rq->list[i].is_poison)
            continue;
        s->marker_lost = s->marker_lost || rq->list[i].bits == RW_STALE_BITS;
        /* After a restart, the agent knows no times but those of the future. */
        if (s->order_ms != INT64_MIN && rq->list[i].at - s->order_ms >= HOUR_MS)
            s->order_ms = rq->list[i].at;
        sample_at(sample_key(s->key, rq->list[i].at))->excused = true;
    }
}

static void tsdb_answer(const struct wire_request *rq, struct sim_node *a, const char *tenant,
                        struct response *r)
{
    bool poisoned = false;

    for (size_t i = 0; i < rq->n; i++)
        poisoned = poisoned || rq->list[i].is_poison;
    r->status = 204;
    if (ledger.state == TSDB_503 || ledger.state == TSDB_429) {
        if (sim_now_ms / 60000 != a->minute)
            a->requests = 0;
        a->minute = sim_now_ms / 60000;
        if (++a->requests > RATE_PER_MINUTE)
            violated(ORACLE_WIRE, "a%d sent more than %d requests a minute to a TSDB in trouble", a->id,
                     RATE_PER_MINUTE);
    }
    if (ledger.state == TSDB_503) {
        reached[REACHED_ECHOED_SECRET]++;
        respond(r, 503, a->token, REACHED_503); /* which must not be shown */
    } else if (ledger.state == TSDB_429) {
        r->retry_after_s = 1 + (int64_t)stream_below(&universe.network, 90);
        a->not_before = sim_now_ms + r->delay_ms + r->retry_after_s * 1000;
        a->told_tenant = strtoul(tenant, NULL, 10);
        respond(r, 429, "slow down", REACHED_429);
    } else if (ledger.state == TSDB_POISON && poisoned) {
        tsdb_excuse(rq, a->id, true);
        respond(r, 400, "out of bounds", REACHED_400);
    } else if (ledger.state == TSDB_SMALL && rq->n > 2) {
        respond(r, 413, "too large", REACHED_413);
    } else if (ledger.state == TSDB_404) {
        tsdb_excuse(rq, a->id, false);
        respond(r, 404, "no such tenant", REACHED_404);
    } else if (ledger.state == TSDB_OLD && rq->form == REACHED_V2) {
        respond(r, 415, "no such format", REACHED_415);
    } else {
        tsdb_take(rq, a, sim_now_ms + r->delay_ms);
        if (rq->form == REACHED_V2)
            r->written = (int64_t)rq->n;
    }
}

/* The same samples, encoded anew. */
static struct str reencode(const char *plain, size_t n)
{
    static char other[64 << 10];
    size_t room = sizeof(other);

    (void)snappy_compress(plain, n, other, &room);
    return (struct str){other, room};
}

static bool is_zstd(const struct request *rq)
{
    return strcmp(rq->content_encoding, "zstd") == 0;
}

static enum reached form_of(const struct request *rq)
{
    if (strstr(rq->content_type, "v2.Request"))
        return REACHED_V2;
    return is_zstd(rq) ? REACHED_ZSTD : REACHED_V1;
}

/* Decompresses the body into `plain`, which has room for *n bytes. False if it is damaged. */
static bool tsdb_decompress(const struct request *rq, char *plain, size_t *n)
{
    static ZSTD_DCtx *zstd;

    if (!is_zstd(rq))
        return snappy_uncompress(rq->body.p, rq->body.n, plain, n) == SNAPPY_OK;
    zstd = zstd ?: ZSTD_createDCtx();
    *n = ZSTD_decompressDCtx(zstd, plain, *n, rq->body.p, rq->body.n);
    return !ZSTD_isError(*n);
}

/* The folder that another process holds is free from now on, and the answer takes long enough for the agent
 * to find that out: its spool opens while records of several scorers share a request in flight. By chance
 * alone that happens in one seed of eighty. */
static void tsdb_open_in_flight(struct sim_node *a, struct response *r)
{
    bool shares = (wire_lanes & (wire_lanes - 1)) != 0;

    if (!shares || sim_now_ms >= a->locked_until || !stream_chance(&universe.locks, 500))
        return;
    a->locked_until = sim_now_ms;
    disk_lock(a->process->disk, sim_now_ms);
    r->delay_ms += OPENS_MS;
}

void tsdb_serve(const struct request *rq, struct sim_node *a, struct response *r)
{
    static char plain[256 << 10];
    static struct wire_request wire;
    size_t n = sizeof(plain);
    struct str body = rq->body;
    bool good;

    if (strncmp(rq->authorization, "Bearer ", 7) != 0 || strcmp(rq->authorization + 7, a->token) != 0)
        violated(ORACLE_WIRE, "a%d sent no token: %s", a->id, rq->authorization);
    if (sim_now_ms < a->not_before && strtoul(rq->tenant, NULL, 10) == a->told_tenant)
        violated(ORACLE_WIRE, "a%d came %lld ms before Retry-After has passed", a->id,
                 (long long)(a->not_before - sim_now_ms));
    wire.n = wire_lanes = 0;
    wire.form = form_of(rq);
    reached[wire.form]++;
    good = tsdb_decompress(rq, plain, &n) &&
           (wire.form == REACHED_V2 ? wire_read_v2(&wire, plain, n) : wire_read_v1(&wire, plain, n));
    if (!good)
        violated(ORACLE_WIRE, "a%d sent what is no request", a->id);
    if (planted == PLANT_OTHER_BYTES && stream_chance(&universe.network, 500))
        body = reencode(plain, n);
    tsdb_check_body(&wire, body, a);
    tsdb_open_in_flight(a, r);
    tsdb_answer(&wire, a, rq->tenant, r);
    trace("a%d sent %zu samples, %zu bytes: %ld", a->id, wire.n, body.n, r->status);
}

/* ---- Troubles, and the end ---- */

void tsdb_turn(void)
{
    ledger.state = (unsigned)stream_below(&universe.faults, TSDB_404 + 1);
    ledger.until =
        sim_now_ms + (int64_t)stream_below(&universe.faults, ledger.state == TSDB_404 ? 20000 : 300000);
    trace("tsdb turns to %u", (unsigned)ledger.state);
}

void tsdb_tick(void)
{
    if (ledger.state && sim_now_ms >= ledger.until)
        ledger.state = TSDB_OK;
}

void tsdb_heal(void)
{
    ledger.state = TSDB_OK;
}

/* Whether the agent that took the series' last batch may not know of the series any more, or has lost their
 * markers: a reload that changes an endpoint closes it, and what a full disk did not take is lost with it. */
static bool may_have_forgotten(const struct sim_node *took)
{
    bool reopened = took->life > 1 || took->reloads > 0 || fleet_elects(took);

    return took->forgot || (reopened && (took->disk_failed || disk_has_failed(took->process->disk)));
}

static void check_series_end(const struct series_state *s)
{
    const struct lane_state *lane = &ledger.lanes[s->lane];
    const struct sim_node *a = &universe.nodes[s->agent];
    const struct sim_node *took = &universe.nodes[s->lane / SCORERS];
    bool is_scored = fleet_scorers(a) >> s->lane % SCORERS & 1;
    bool is_active = s->batch == lane->batch && !lane->ended && is_scored;
    bool has_samples = s->last_ms != INT64_MIN, has_marker = has_samples && s->last_bits == RW_STALE_BITS;

    if (fleet_elects(took) && !fleet_leads(took))
        return; /* the series go on elsewhere, or another replica has ended them */
    if (is_active && (has_marker || !has_samples))
        violated(ORACLE_LEDGER, "a%d: an active series ends with a stale marker", s->agent);
    if (is_active || !has_samples || has_marker || s->marker_lost || may_have_forgotten(took))
        return;
    if (s->is_unstored && took->was_killed)
        return;
    violated(
        ORACLE_LEDGER,
        "a%d: a series of s%u that ended has no stale marker: the last sample, of round %llu of %llu, has "
        "%lld",
        s->agent, s->lane % SCORERS, (unsigned long long)s->batch, (unsigned long long)lane->batch,
        (long long)s->last_ms);
}

/* All that was taken is there, and each series that ended has its marker. */
void tsdb_check_end(void)
{
    size_t missing = 0, must = 0;

    for (size_t i = 0; i < TABLE; i++) {
        const struct taken *s = &ledger.samples[i];

        must += s->is_due;
        missing += s->is_due && !s->arrived && !s->excused;
        if (s->is_due && !s->arrived && !s->excused)
            trace("missing: score %.0f", double_of(s->bits));
    }
    if (missing)
        violated(ORACLE_LEDGER, "%zu of %zu samples that were on disk never arrived", missing, must);
    for (size_t i = 0; i < ledger.n_series; i++)
        check_series_end(&ledger.series[i]);
}

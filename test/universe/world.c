/* Owns the agents, the servers, the ledger of samples and the schedule of faults. The ledger is filled where
 * the sender thread has taken a batch: from then on, what is on disk must arrive, whatever happens. */
#include "test/universe/world.h"

#include "exporter/agent/agent.h"
#include "exporter/agent/scorer.h"
#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/def.h"
#include "exporter/base/loop.h"
#include "exporter/metric/page.h"
#include "exporter/metric/series.h"
#include "exporter/score/error.h"
#include "remotewrite/body.h"
#include "remotewrite/config.h"
#include "remotewrite/format.h"
#include "remotewrite/intake.h"
#include "remotewrite/queue.h"
#include "remotewrite/sink.h"
#include "remotewrite/spool.h"
#include "remotewrite/transport.h"
#include "test/bench/gen.h"
#include "test/universe/sim.h"

#include <remote_v1.pb-c.h>
#include <remote_v2.pb-c.h>
#include <snappy-c.h>
#include <stdio.h>
#include <zstd.h>

enum {
    AGENTS = 5, /* at most, and so on: each seed has a shape */
    SCORERS = 3,
    MORE_SERIES = 6,
    FAULTS_MS = 20 * 60 * 1000,
    HEAL_MS =
        15 * 60 * 1000,  /* longer than all back-off, and the grace period for series of an earlier life */
    LOOP_MS = 10 * 1000, /* what holds the loop */
    FLUSH_MS = 3000,
    SEND_MS = 30000, /* to deliver the last samples of a run */
    TABLE = 1 << 17,
    MAX_SERIES = 4096,
    MAX_BATCHES = 4096,
    MAX_LIVES = 256,
    SETTLE_MS = 5000, /* until the position of what was delivered survives a kill */
    MAX_SCORES = 1 << 16,
    RATE_PER_MINUTE = 30,
};

struct agent_node {
    int id;
    struct process *process; /* NULL: down */
    struct disk *disk;       /* while it is down */
    struct disk *left;       /* by a process that was killed within a call */
    struct agent *agent;
    struct agent_options options;
    struct rw_sink *remote_write;
    struct timer poll;
    bool wants_reload, wants_stop;
    int64_t up_at, not_before, partition_until, minute;
    unsigned requests; /* in this minute, to a TSDB in trouble */
    unsigned scorers;  /* a bit for each */
    bool was_killed, disk_failed, unreadable;
    unsigned life, cut_life; /* its number; that of the last one that a power cut has ended */
    int64_t died_at[MAX_LIVES];
    char token[32];
};

struct series_state {
    uint64_t key;
    int64_t last_ms;
    uint64_t last_bits, batch;
    unsigned lane;
    int agent;
    bool marker_lost; /* rejected by the TSDB */
};

struct lane_state {
    uint64_t batch;
    bool ended;
};

/* A sample: where it is from, and what became of it. */
struct taken {
    uint64_t key, bits, batch; /* batch: 0 for a stale marker */
    bool used, is_due, arrived, acknowledged, excused;
};

/* The samples of a round. Once the agent knows that all arrived, none of them is sent again. */
struct batch_state {
    size_t left; /* not acknowledged */
    int64_t done_at;
    unsigned life;
};

static struct {
    int n_agents;
    unsigned n_scorers, more_series, interval_s;
    const char *protocol;
    struct agent_node agents[AGENTS];
    struct stream faults, network, disk, answers;
    struct lane_state lanes[AGENTS * SCORERS];
    struct series_state series[MAX_SERIES];
    size_t n_series;
    struct taken samples[TABLE];
    struct batch_state batch[MAX_BATCHES];
    struct {
        uint64_t key, hash;
    } bodies[TABLE];
    int64_t score_at[MAX_SCORES];
    unsigned n_scores, variant;
    uint64_t batches;
    int64_t next_fault, next_look;
    bool healed, answer_is_lost;
    unsigned bad_network, bad_disk, kills; /* per mille */
    enum { TSDB_OK, TSDB_503, TSDB_429, TSDB_POISON, TSDB_SMALL, TSDB_OLD, TSDB_404 } tsdb;
    int64_t tsdb_until;
} w;

/* ---- The ledger ---- */

static struct taken *sample_at(uint64_t key)
{
    size_t i = key % TABLE;

    while (w.samples[i].used && w.samples[i].key != key)
        i = (i + 1) % TABLE;
    w.samples[i].used = true;
    w.samples[i].key = key;
    return &w.samples[i];
}

static uint64_t sample_key(uint64_t series, int64_t at)
{
    return fnv(series, &at, sizeof(at));
}

static struct series_state *series_at(uint64_t key, int agent)
{
    for (size_t i = 0; i < w.n_series; i++)
        if (w.series[i].key == key)
            return &w.series[i];
    if (w.n_series == MAX_SERIES)
        violated("more than %d series", MAX_SERIES);
    w.series[w.n_series] = (struct series_state){.key = key, .agent = agent, .last_ms = INT64_MIN};
    return &w.series[w.n_series++];
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

/* What the intake that runs has queued. */
static struct {
    struct queue *queue;
    int64_t at;
    uint64_t samples;
} taking;

void __real_queue_append(struct queue *q, struct record_head *h, char *payload, size_t n);
void __wrap_queue_append(struct queue *q, struct record_head *h, char *payload, size_t n);
void __wrap_queue_append(struct queue *q, struct record_head *h, char *payload, size_t n)
{
    taking.queue = q;
    if (h->kind == RECORD_SAMPLES) {
        taking.at = h->first_ms;
        taking.samples += h->samples;
    }
    __real_queue_append(q, h, payload, n);
}

void __real_intake_publish(struct intake *in, const struct batch *b);
void __wrap_intake_publish(struct intake *in, const struct batch *b);
void __wrap_intake_publish(struct intake *in, const struct batch *b)
{
    int agent = sim_process->agent;
    unsigned lane = (unsigned)agent * SCORERS + (unsigned)(b->score_name[1] - '0');
    bool is_safe, was_dead = sim_process->dead;

    taking.samples = 0;
    __real_intake_publish(in, b);
    if (was_dead || taking.samples == 0)
        return;
    if (taking.samples != series_count(b->set) || taking.at < b->at.ms)
        violated("a%d queued %llu of %zu samples of %s", agent, (unsigned long long)taking.samples,
                 series_count(b->set), b->score_name);
    is_safe = !sim_process->dead && queue_stats(taking.queue).unsaved == 0;
    if (++w.batches == MAX_BATCHES)
        violated("more than %d batches", MAX_BATCHES);
    w.lanes[lane] = (struct lane_state){.batch = w.batches};
    w.batch[w.batches].left = series_count(b->set);
    for (size_t i = 0; i < series_count(b->set); i++) {
        struct series_state *s = series_at(batch_series_key(b, i), agent);
        struct taken *one = sample_at(sample_key(s->key, taking.at));

        s->batch = one->batch = w.batches;
        s->lane = lane;
        memcpy(&one->bits, &b->values[i], sizeof(one->bits));
        one->is_due = is_safe && sim_now_ms < FAULTS_MS + HEAL_MS - SEND_MS;
    }
    trace("a%d took %zu samples of %s, score %.0f%s", agent, series_count(b->set), b->score_name,
          b->values[0], is_safe ? "" : ", not on disk");
}

void __real_intake_withdraw(struct intake *in, struct str score_name, int64_t at_ms);
void __wrap_intake_withdraw(struct intake *in, struct str score_name, int64_t at_ms);
void __wrap_intake_withdraw(struct intake *in, struct str score_name, int64_t at_ms)
{
    if (planted != PLANT_NO_MARKER)
        __real_intake_withdraw(in, score_name, planted == PLANT_EARLY_MARKER ? at_ms - 7200000 : at_ms);
    if (!sim_process->dead)
        w.lanes[(unsigned)sim_process->agent * SCORERS + (unsigned)(score_name.p[1] - '0')].ended = true;
}

/* ---- Planted bugs in functions that are called across files ---- */

int __real_spool_write_file(struct spool *s, const char *name, struct str bytes, bool wait_for_disk);
int __wrap_spool_write_file(struct spool *s, const char *name, struct str bytes, bool wait_for_disk);
int __wrap_spool_write_file(struct spool *s, const char *name, struct str bytes, bool wait_for_disk)
{
    if (planted == PLANT_NO_ACTIVE_SET && strncmp(name, "active.", 7) == 0)
        return 0;
    return __real_spool_write_file(s, name, bytes, wait_for_disk);
}

int __real_spool_put_position(struct spool *s, unsigned which, struct str bytes, bool wait_for_disk);
int __wrap_spool_put_position(struct spool *s, unsigned which, struct str bytes, bool wait_for_disk);
int __wrap_spool_put_position(struct spool *s, unsigned which, struct str bytes, bool wait_for_disk)
{
    return planted == PLANT_LOST_POSITION ? 0 : __real_spool_put_position(s, which, bytes, wait_for_disk);
}

int64_t __real_backoff_ms(const struct backoff *b, unsigned nth, int64_t retry_after_ms);
int64_t __wrap_backoff_ms(const struct backoff *b, unsigned nth, int64_t retry_after_ms);
int64_t __wrap_backoff_ms(const struct backoff *b, unsigned nth, int64_t retry_after_ms)
{
    if (planted == PLANT_NO_BACKOFF)
        return retry_after_ms > 0 ? retry_after_ms : 0;
    return __real_backoff_ms(b, nth, retry_after_ms);
}

enum rw_verdict __real_transport_verdict(const struct transport_answer *a);
enum rw_verdict __wrap_transport_verdict(const struct transport_answer *a);
enum rw_verdict __wrap_transport_verdict(const struct transport_answer *a)
{
    enum rw_verdict v = __real_transport_verdict(a);

    if ((planted == PLANT_DROP_5XX && a->status >= 500) || (planted == PLANT_DROP_400 && a->status == 400) ||
        (planted == PLANT_DROP_413 && a->status == 413))
        return VERDICT_DROP;
    if (v >= VERDICT_RETRY && v <= VERDICT_STEP_DOWN)
        reached[REACHED_VERDICT_RETRY + v - VERDICT_RETRY]++;
    return v;
}

struct sink *__real_page_sink(struct page *p);
struct sink *__wrap_page_sink(struct page *p);
struct sink *__wrap_page_sink(struct page *p)
{
    static struct sink_ops without;
    struct sink *s = __real_page_sink(p);

    if (planted == PLANT_OLD_SCORES) {
        without = *s->ops;
        without.withdraw = NULL;
        s->ops = &without;
    }
    return s;
}

size_t __real_secret_hide(char *text, size_t n);
size_t __wrap_secret_hide(char *text, size_t n);
size_t __wrap_secret_hide(char *text, size_t n)
{
    return planted == PLANT_SHOWN_SECRET ? n : __real_secret_hide(text, n);
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

/* The labels of a series must be sorted. */
static void wire_add_label(struct wire *s, const char **before, const char *name, const char *value)
{
    if (*before && strcmp(*before, name) >= 0)
        violated("labels are not sorted: %s, %s", *before, name);
    *before = name;
    s->key = label_key(s->key, str_of(name), str_of(value));
    s->is_poison = s->is_poison || (strcmp(name, "ds_node") == 0 && strcmp(value, "n0") == 0);
}

static struct wire *wire_add(struct wire_request *rq, double value, int64_t at)
{
    struct wire *s = &rq->list[rq->n++];

    if (rq->n > ARRAY_SIZE(rq->list))
        violated("a request with more than %zu samples", ARRAY_SIZE(rq->list));
    *s = (struct wire){.key = FNV_START, .at = at};
    memcpy(&s->bits, &value, sizeof(s->bits));
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
                violated("a reference to a symbol that is not there");
            wire_add_label(s, &before, m->symbols[from->labels_refs[l]],
                           m->symbols[from->labels_refs[l + 1]]);
        }
    }
    rw__v2__request__free_unpacked(m, NULL);
    return m != NULL;
}

/* A sample arrived, and its answer will, at that time. */
static void tsdb_acknowledge(struct taken *one, const struct agent_node *a, int64_t at)
{
    struct batch_state *b = &w.batch[one->batch];

    if (one->acknowledged || !one->batch)
        return;
    one->acknowledged = true;
    if (--b->left > 0)
        return;
    b->done_at = at;
    b->life = a->life;
}

/* A position that was stored may be lost with the power only, or by a disk that fails. */
static void check_repeated(const struct taken *one, const struct agent_node *a)
{
    const struct batch_state *b = &w.batch[one->batch];
    int64_t until = b->life == a->life ? sim_now_ms : a->died_at[b->life];

    if (one->batch && b->left == 0 && b->done_at + SETTLE_MS < until && b->life > a->cut_life &&
        !a->disk_failed && !disk_has_failed(a->process->disk))
        violated("a%d sent a sample again, %lld ms after all of its round had arrived", a->id,
                 (long long)(sim_now_ms - b->done_at));
}

/* Newer samples overtake those in a spool that cannot be read. What was sent while the disk failed is unknown
 * after a kill. In both cases, where the clock went back, the next samples may have time stamps of others. */
static bool is_in_order(const struct agent_node *a)
{
    return !a->unreadable && !disk_was_unreadable(a->process->disk) && !(a->was_killed && a->disk_failed);
}

static void tsdb_take(const struct wire_request *rq, const struct agent_node *a, int64_t answer_at)
{
    bool in_order = is_in_order(a);

    for (const struct wire *wire = rq->list; wire < rq->list + rq->n; wire++) {
        struct series_state *s = series_at(wire->key, a->id);
        struct taken *one = sample_at(sample_key(s->key, wire->at));

        if (wire->bits == RW_STALE_BITS && !one->arrived)
            one->bits = wire->bits;
        if (one->bits != wire->bits && in_order)
            violated("a%d sent another value for a sample", a->id);
        if (one->arrived)
            check_repeated(one, a);
        /* After a power cut, what was rejected may be sent again. */
        if (!one->arrived && !one->excused && in_order && wire->at <= s->last_ms)
            violated("a%d sent a %s out of order, %lld ms after the last", a->id,
                     wire->bits == RW_STALE_BITS ? "stale marker" : "sample",
                     (long long)(wire->at - s->last_ms));
        one->arrived = true;
        if (!w.answer_is_lost)
            tsdb_acknowledge(one, a, answer_at);
        reached[REACHED_MARKER] += wire->bits == RW_STALE_BITS;
        if (wire->at <= s->last_ms)
            continue;
        s->last_ms = wire->at;
        s->last_bits = wire->bits;
    }
}

/* A repeated request is the same bytes, in the same format. */
static void tsdb_check_body(const struct wire_request *rq, struct str body, const struct agent_node *a)
{
    uint64_t key = FNV_START + rq->form, hash = fnv(FNV_START, body.p, body.n);
    size_t i;

    for (i = 0; i < rq->n; i++)
        key = fnv(key, (uint64_t[]){rq->list[i].key, (uint64_t)rq->list[i].at}, 16);
    for (i = key % TABLE; w.bodies[i].key && w.bodies[i].key != key; i = (i + 1) % TABLE)
        ;
    reached[REACHED_REPEAT] += w.bodies[i].key != 0;
    if (w.bodies[i].key && w.bodies[i].hash != hash && is_in_order(a))
        violated("a%d repeated a request with other bytes", a->id);
    w.bodies[i].key = key;
    w.bodies[i].hash = hash;
}

static void respond(struct response *r, long status, const char *text, enum reached what)
{
    r->status = status;
    r->body = xstrdup(text);
    r->body_n = strlen(text);
    reached[what]++;
}

/* A request that is rejected for good: what it holds need not arrive. */
static void tsdb_excuse(const struct wire_request *rq, int agent, bool poison_only)
{
    for (size_t i = 0; i < rq->n; i++) {
        struct series_state *s = series_at(rq->list[i].key, agent);

        if (poison_only && !rq->list[i].is_poison)
            continue;
        s->marker_lost = s->marker_lost || rq->list[i].bits == RW_STALE_BITS;
        sample_at(sample_key(s->key, rq->list[i].at))->excused = true;
    }
}

static void tsdb_answer(const struct wire_request *rq, struct agent_node *a, struct response *r)
{
    bool poisoned = false;

    for (size_t i = 0; i < rq->n; i++)
        poisoned = poisoned || rq->list[i].is_poison;
    r->status = 204;
    if (w.tsdb == TSDB_503 || w.tsdb == TSDB_429) {
        if (sim_now_ms / 60000 != a->minute)
            a->requests = 0;
        a->minute = sim_now_ms / 60000;
        if (++a->requests > RATE_PER_MINUTE)
            violated("a%d sent more than %d requests a minute to a TSDB in trouble", a->id, RATE_PER_MINUTE);
    }
    if (w.tsdb == TSDB_503) {
        reached[REACHED_ECHOED_SECRET]++;
        respond(r, 503, a->token, REACHED_503); /* which must not be shown */
    } else if (w.tsdb == TSDB_429) {
        r->retry_after_s = 1 + (int64_t)stream_below(&w.network, 90);
        a->not_before = sim_now_ms + r->delay_ms + r->retry_after_s * 1000;
        respond(r, 429, "slow down", REACHED_429);
    } else if (w.tsdb == TSDB_POISON && poisoned) {
        tsdb_excuse(rq, a->id, true);
        respond(r, 400, "out of bounds", REACHED_400);
    } else if (w.tsdb == TSDB_SMALL && rq->n > 2) {
        respond(r, 413, "too large", REACHED_413);
    } else if (w.tsdb == TSDB_404) {
        tsdb_excuse(rq, a->id, false);
        respond(r, 404, "no such tenant", REACHED_404);
    } else if (w.tsdb == TSDB_OLD && rq->form == REACHED_V2) {
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

static void tsdb_serve(const struct request *rq, struct agent_node *a, struct response *r)
{
    static char plain[256 << 10];
    static struct wire_request wire;
    size_t n = sizeof(plain);
    struct str body = rq->body;
    bool good;

    if (strncmp(rq->authorization, "Bearer ", 7) != 0 || strcmp(rq->authorization + 7, a->token) != 0)
        violated("a%d sent no token: %s", a->id, rq->authorization);
    if (sim_now_ms < a->not_before)
        violated("a%d came %lld ms before Retry-After has passed", a->id,
                 (long long)(a->not_before - sim_now_ms));
    if (strcmp(rq->content_encoding, "zstd") == 0) {
        n = ZSTD_decompress(plain, sizeof(plain), body.p, body.n);
        good = !ZSTD_isError(n);
    } else {
        good = snappy_uncompress(body.p, body.n, plain, &n) == SNAPPY_OK;
    }
    wire.n = 0;
    wire.form = strstr(rq->content_type, "v2.Request")      ? REACHED_V2
                : strcmp(rq->content_encoding, "zstd") == 0 ? REACHED_ZSTD
                                                            : REACHED_V1;
    reached[wire.form]++;
    if (!good || !(wire.form == REACHED_V2 ? wire_read_v2(&wire, plain, n) : wire_read_v1(&wire, plain, n)))
        violated("a%d sent what is no request", a->id);
    if (planted == PLANT_OTHER_BYTES && stream_chance(&w.network, 500))
        body = reencode(plain, n);
    tsdb_check_body(&wire, body, a);
    tsdb_answer(&wire, a, r);
    trace("a%d sent %zu samples, %zu bytes: %ld", a->id, wire.n, body.n, r->status);
}

/* ---- Prometheus and the scoring APIs ---- */

static void prometheus_serve(struct response *r)
{
    r->status = 200;
    r->body = xstrdup("{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"result\":[{\"metric\":{"
                      "\"node\":\"n1\"},"
                      "\"values\":[[1,\"2\"]]}]}}");
    r->body_n = strlen(r->body);
}

/* Each answer's scores are a number of its own, so that /metrics shows how old a score is. The last series
 * changes now and then. */
static void scoring_serve(struct response *r)
{
    unsigned score = ++w.n_scores % MAX_SCORES;
    char more[MORE_SERIES * 64] = "";
    int n = 0;

    if (stream_chance(&w.answers, w.healed ? 0 : 60)) {
        w.variant++;
        reached[REACHED_SERIES_ENDED]++;
    }
    w.score_at[score] = sim_now_ms;
    for (unsigned i = 0; i < w.more_series; i++)
        n += snprintf(more + n, sizeof(more) - (size_t)n, "{\"metric\":{\"device\":\"d%u\"},\"score\":%u},",
                      i, score);
    r->status = 200;
    r->body = xasprintf("{\"results\":[%s{\"metric\":{\"node\":\"n0\"},\"score\":%u},{\"metric\":{\"node\":"
                        "\"n1\"},\"score\":%u},"
                        "{\"metric\":{\"node\":\"n2\",\"pod\":\"p\"},\"score\":%u},"
                        "{\"metric\":{\"node\":\"n3\",\"pod\":\"v%u\"},\"score\":%u}]}",
                        more, score, score, score, w.variant, score);
    r->body_n = strlen(r->body);
}

static void answer_badly(struct response *r)
{
    static const char *const bad[] = {"", "{\"results\":[{\"metric\":", "[1,2]", "{\"results\":7}"};

    free(r->body);
    if (stream_chance(&w.network, 500))
        respond(r, 500, "overloaded", REACHED_BAD_ANSWER);
    else
        respond(r, 200, bad[stream_below(&w.network, ARRAY_SIZE(bad))], REACHED_BAD_ANSWER);
}

void world_serve(const struct request *rq, struct response *ret)
{
    struct agent_node *a = &w.agents[rq->agent];
    bool is_tsdb = strstr(rq->url, "//tsdb/"), faulty = !w.healed && stream_chance(&w.network, w.bad_network);

    *ret = (struct response){.delay_ms = 1 + (int64_t)stream_below(&w.network, 50)};
    if (sim_now_ms < a->partition_until) {
        ret->refused = true;
        return;
    }
    if (faulty && stream_chance(&w.network, 300)) { /* before it arrives */
        ret->hangs = true;
        reached[REACHED_HANG]++;
        return;
    }
    w.answer_is_lost = faulty;
    if (is_tsdb)
        tsdb_serve(rq, a, ret);
    else if (strstr(rq->url, "//prometheus/"))
        prometheus_serve(ret);
    else
        scoring_serve(ret);
    if (faulty && !is_tsdb && stream_chance(&w.network, 500)) {
        answer_badly(ret);
    } else if (faulty && ret->status != 429) { /* which nobody would honour then */
        ret->hangs = true;
        reached[REACHED_ANSWER_LOST]++;
    }
}

static void check_secrets(struct str text, const char *where)
{
    for (int i = 0; i < w.n_agents; i++)
        if (memmem(text.p, text.n, w.agents[i].token, strlen(w.agents[i].token)))
            violated("a secret is in %s: %.*s", where, STR_ARG(text));
}

void world_on_log(struct str line)
{
    if (!sim_process || sim_process->dead)
        return;
    check_secrets(line, "the log");
    reached[REACHED_EXPIRED] += memmem(line.p, line.n, "scores expired", 14) != NULL;
    trace("a%d log: %.*s", sim_process->agent, (int)line.n - 1, line.p);
}

/* ---- Agents ---- */

static void agent_write_config(struct agent_node *a)
{
    struct disk *disk = a->process ? a->process->disk : a->disk;
    BUF_AUTO(text, 16 << 10);
    int r = buf_printf(&text, "{\"clusterName\":\"c%d\",\"storagePath\":\"/u/data\",\"summaries\":[", a->id);

    for (unsigned i = 0, n = 0; i < w.n_scorers; i++)
        if (a->scorers >> i & 1)
            r = r
                    ?: buf_printf(&text,
                                  "%s{\"name\":\"s%u\",\"scoreName\":\"s%u\",\"sourceType\":\"Prometheus\","
                                  "\"sourceEndpoint\":\"http://prometheus/api/v1/"
                                  "query_range\",\"sourceQuery\":\"up\","
                                  "\"scoringEndpoint\":\"http://score/s%u\",\"scoringInterval\":%u}",
                                  n++ ? "," : "", i, i, i, w.interval_s);
    r = r
            ?: buf_printf(&text,
                          "],\"remoteWrite\":[{\"name\":\"hub\",\"url\":\"http://tsdb/api/v1/"
                          "write\",\"protocol\":\"%s\","
                          "\"authorization\":{\"credentials\":\"%s\"},\"metadata_config\":{\"send\":false},"
                          "\"send_health_metrics\":false,\"queue_config\":{\"max_samples_per_send\":3,"
                          "\"max_spool_bytes\":4194304}}]}",
                          w.protocol, a->token);
    r = r ?: buf_putc(&text, '\0');
    if (r < 0)
        violated("configuration too long");
    disk_put(disk, "/u/agent.json", text.p);
}

static void agent_on_config(void *arg, const struct config *c)
{
    rw_sink_apply(((struct agent_node *)arg)->remote_write, c->section, c->storage_path);
}

static void agent_on_render(void *arg)
{
    rw_sink_refresh(((struct agent_node *)arg)->remote_write);
}

static void agent_on_poll(struct timer *t)
{
    struct agent_node *a = CONTAINER_OF(t, struct agent_node, poll);
    struct loop *loop = a->process->loop;

    if (a->wants_stop) {
        loop_stop(loop);
        return;
    }
    if (a->wants_reload && agent_reload(a->agent, NULL) < 0)
        violated("a%d rejects its configuration", a->id);
    a->wants_reload = false;
    loop_timer_set(loop, t, mono_add(loop_now(loop), 1000));
}

/* As controller/cmd_agent.c does it, without HTTP server and cluster. */
static void *agent_main(void *arg)
{
    struct agent_node *a = arg;
    struct process *p = a->process;

    if (loop_new(&p->loop, &clock_system) < 0)
        violated("no loop");
    a->options = (struct agent_options){.config_file = "/u/agent.json", .section = &rw_config_section};
    if (agent_new(&a->agent, p->loop, &a->options) < 0)
        violated("no agent");
    a->remote_write = rw_sink_new(a->agent);
    agent_set_hooks(a->agent,
                    &(struct agent_hooks){.config = agent_on_config, .render = agent_on_render, .arg = a});
    if (agent_reload(a->agent, NULL) < 0)
        violated("a%d rejects its configuration", a->id);
    a->poll = (struct timer){.fn = agent_on_poll};
    loop_timer_set(p->loop, &a->poll, loop_now(p->loop));
    if (!p->dead)
        (void)loop_run(p->loop);
    agent_set_hooks(a->agent, NULL);
    a->remote_write = rw_sink_stop(a->remote_write, p->dead ? 0 : FLUSH_MS);
    a->agent = agent_free(a->agent);
    p->loop = loop_free(p->loop);
    return NULL;
}

static void agent_start(struct agent_node *a)
{
    a->process = xcalloc(1, sizeof(*a->process));
    a->process->agent = a->id;
    a->process->disk = TAKE_PTR(a->disk);
    a->process->wall_ms = w.healed ? 0 : (int64_t)stream_below(&w.faults, 20 * 60000) - 10 * 60000;
    a->wants_stop = a->wants_reload = false;
    a->not_before = 0;
    if (++a->life == MAX_LIVES)
        violated("more than %d lives", MAX_LIVES);
    agent_write_config(a);
    trace("a%d starts", a->id);
    process_start(a->process, agent_main, a);
}

/* The process has ended: what it leaves is for the next. */
static void agent_bury(struct agent_node *a)
{
    struct process *p = a->process;

    a->disk_failed = a->disk_failed || disk_has_failed(p->disk);
    a->unreadable = a->unreadable || disk_was_unreadable(p->disk);
    if (!p->dead)
        a->died_at[a->life] = sim_now_ms;
    if (a->left)
        p->disk = disk_free(p->disk);
    a->disk = a->left ? TAKE_PTR(a->left) : p->disk;
    free(p);
    a->process = NULL;
    a->up_at = sim_now_ms + (w.healed ? 0 : (int64_t)stream_below(&w.faults, 90000));
}

static void agent_kill(struct agent_node *a, bool power_cut)
{
    a->process->dead = true;
    a->was_killed = true;
    a->died_at[a->life] = sim_now_ms;
    if (power_cut)
        a->cut_life = a->life;
    a->left = disk_after(a->process->disk, power_cut, &w.disk);
    reached[power_cut ? REACHED_POWER_CUT : REACHED_KILL]++;
    trace("a%d %s", a->id, power_cut ? "loses power" : "is killed");
}

void world_on_kill_in_call(void)
{
    reached[REACHED_KILL_IN_CALL]++;
    agent_kill(&w.agents[sim_process->agent], stream_chance(&w.faults, 500));
}

/* ---- Faults ---- */

static void fault_tsdb(void)
{
    w.tsdb = (unsigned)stream_below(&w.faults, TSDB_404 + 1);
    w.tsdb_until = sim_now_ms + (int64_t)stream_below(&w.faults, w.tsdb == TSDB_404 ? 20000 : 300000);
    trace("tsdb turns to %u", (unsigned)w.tsdb);
}

static void fault_agent(struct agent_node *a)
{
    uint64_t what = stream_below(&w.faults, 1000);

    if (!a->process || !a->process->loop || a->process->dead)
        return;
    if (what < w.kills) {
        agent_kill(a, stream_chance(&w.faults, 500));
    } else if (what < 2 * w.kills) {
        a->process->die_in = 1 + (unsigned)stream_below(&w.faults, 60);
    } else if (what < 3 * w.kills) {
        a->wants_stop = true;
        reached[REACHED_STOP]++;
    } else if (what < 650) {
        unsigned before = a->scorers;

        a->scorers = (unsigned)stream_below(&w.faults, 1u << w.n_scorers);
        reached[REACHED_REMOVED] += (before & ~a->scorers) != 0;
        reached[REACHED_RELOAD]++;
        agent_write_config(a);
        a->wants_reload = true;
        trace("a%d gets scorers %u", a->id, a->scorers);
    } else if (what < 800) {
        a->partition_until = sim_now_ms + (int64_t)stream_below(&w.faults, 300000);
        reached[REACHED_PARTITION]++;
    } else {
        a->process->wall_ms = (int64_t)stream_below(&w.faults, 20 * 60000) - 10 * 60000;
        reached[REACHED_CLOCK_JUMP]++;
        trace("a%d clock is wrong by %lld ms", a->id, (long long)a->process->wall_ms);
    }
    disk_set_faults(a->process->disk, &w.disk, w.bad_disk);
}

static void look_at_page(struct agent_node *a)
{
    BUF_AUTO(text, 4 << 20);

    if (!a->process || a->process->dead || !a->agent || page_print(agent_state(a->agent)->page, &text) < 0 ||
        buf_putc(&text, '\0') < 0)
        return;
    check_secrets(buf_str(&text), "/metrics");
    for (const char *line = text.p; (line = strstr(line, "\ndynamic_score{")); line++) {
        unsigned score = (unsigned)strtoul(strstr(line, "} ") + 2, NULL, 10) % MAX_SCORES;
        int64_t age = sim_now_ms - w.score_at[score];

        if (age > 4000 * (int64_t)w.interval_s + LOOP_MS) /* three of the longest rounds, and the round */
            violated("a%d shows a score of %lld ms ago", a->id, (long long)age);
    }
}

/* After each step of any strand. */
static void between_steps(void)
{
    for (int i = 0; i < w.n_agents; i++) {
        struct agent_node *a = &w.agents[i];

        if (a->process && a->process->dead) {
            if (a->process->loop)
                loop_stop(a->process->loop);
            sim_finish(a->process);
        }
        if (a->process && a->process->strands == 0)
            agent_bury(a);
        if (!a->process && sim_now_ms >= a->up_at)
            agent_start(a);
    }
    if (sim_now_ms >= w.next_look) {
        w.next_look = sim_now_ms + 20000;
        for (int i = 0; i < w.n_agents; i++)
            look_at_page(&w.agents[i]);
    }
    if (w.tsdb && sim_now_ms >= w.tsdb_until)
        w.tsdb = TSDB_OK;
    if (w.healed || sim_now_ms < w.next_fault)
        return;
    w.next_fault = sim_now_ms + (int64_t)stream_below(&w.faults, 60000);
    if (stream_chance(&w.faults, 400))
        fault_tsdb();
    else
        fault_agent(&w.agents[stream_below(&w.faults, (uint64_t)w.n_agents)]);
}

/* ---- A run ---- */

/* Time passes in small steps, so that an agent that is down starts although no strand runs. */
static void pass(int64_t until)
{
    while (sim_now_ms < until) {
        between_steps();
        sim_run(sim_now_ms + 500, between_steps);
    }
}

static void heal(void)
{
    w.healed = true;
    w.tsdb = TSDB_OK;
    trace("everything heals");
    for (int i = 0; i < w.n_agents; i++) {
        struct agent_node *a = &w.agents[i];

        a->partition_until = a->up_at = 0;
        a->scorers |= 1;
        if (a->process && !a->process->dead) {
            a->process->die_in = 0;
            disk_set_faults(a->process->disk, NULL, 0);
            agent_write_config(a);
            a->wants_reload = true;
        } else if (a->disk) {
            disk_set_faults(a->disk, NULL, 0);
        }
    }
}

static double bits_value(uint64_t bits)
{
    double v;

    memcpy(&v, &bits, sizeof(v));
    return v;
}

/* All that was taken is there, and each series that ended has its marker. */
static void check_end(void)
{
    size_t missing = 0, must = 0;

    for (size_t i = 0; i < TABLE; i++) {
        const struct taken *s = &w.samples[i];

        must += s->is_due;
        missing += s->is_due && !s->arrived && !s->excused;
        if (s->is_due && !s->arrived && !s->excused)
            trace("missing: score %.0f", bits_value(s->bits));
    }
    if (missing)
        violated("%zu of %zu samples that were on disk never arrived", missing, must);
    for (size_t i = 0; i < w.n_series; i++) {
        const struct series_state *s = &w.series[i];
        const struct lane_state *lane = &w.lanes[s->lane];
        const struct agent_node *a = &w.agents[s->agent];
        bool active = s->batch == lane->batch && !lane->ended && (a->scorers >> s->lane % SCORERS & 1);

        if (active && (s->last_bits == RW_STALE_BITS || s->last_ms == INT64_MIN))
            violated("a%d: an active series ends with a stale marker", s->agent);
        if (!active && s->last_ms != INT64_MIN && s->last_bits != RW_STALE_BITS && !s->marker_lost &&
            !(a->was_killed && a->disk_failed))
            violated("a%d: a series that ended has no stale marker", s->agent);
    }
    for (int i = 0; i < w.n_agents; i++) {
        size_t n;
        const struct endpoint_status *e = rw_sink_endpoints(w.agents[i].remote_write, &n);

        if (n != 1 || e->samples_pending > 64)
            violated("a%d: %llu samples are still pending", i, (unsigned long long)e->samples_pending);
        if (scorer_state(agent_state(w.agents[i].agent)->scorers[0]) != SCORER_OK)
            violated("a%d: its scorer has not recovered", i);
    }
}

int64_t world_run(uint64_t seed)
{
    struct stream setup;

    stream_init(&setup, seed, "setup");
    stream_init(&w.faults, seed, "faults");
    stream_init(&w.network, seed, "network");
    stream_init(&w.disk, seed, "disk");
    stream_init(&w.answers, seed, "answers");
    w.n_agents = stream_chance(&setup, 500) ? AGENTS : 3;
    w.n_scorers = w.n_agents == AGENTS ? 1 : SCORERS;
    w.more_series = w.n_agents == AGENTS ? MORE_SERIES : 0;
    w.interval_s = w.n_agents == AGENTS ? 60 : 30;
    w.protocol = (const char *const[]){"1.0", "1.0", "2.0", "auto", "vm"}[stream_below(&setup, 5)];
    w.bad_network = (unsigned)stream_below(&setup, 2) * 100;
    w.bad_disk = stream_chance(&setup, 300) ? 20 : 0;
    w.kills = (unsigned)stream_below(&setup, 3) * 90;
    for (int i = 0; i < w.n_agents; i++) {
        struct agent_node *a = &w.agents[i];

        a->id = i;
        a->scorers = (1u << w.n_scorers) - 1;
        a->disk = disk_new();
        (void)snprintf(a->token, sizeof(a->token), "token-of-a%d-%08llx", i,
                       (unsigned long long)(seed * 2654435761u));
    }
    pass(FAULTS_MS);
    heal();
    pass(FAULTS_MS + HEAL_MS);
    check_end();
    trace("end");
    return sim_now_ms;
}

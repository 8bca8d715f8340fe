/* Owns a queue of one key and the ConfigMap's state of writing. On the loop: touched by the agent's sink
 * and by the placement, written in the queue's turn. Nothing is written while no state has changed and the
 * times are not due; an error of the hub's API server is not reported before it has lasted. */
#include "controller/agent_report.h"

#include "controller/kube/answer.h"
#include "controller/kube/client.h"
#include "controller/kube/json.h"
#include "controller/kube/queue.h"
#include "controller/kube/reach.h"
#include "controller/kube/request.h"
#include "controller/kube/resource.h"
#include "controller/kube/server_clock.h"
#include "controller/kube/verdict.h"
#include "controller/kube/writer.h"
#include "controller/placement/placement.h"
#include "exporter/agent/agent.h"
#include "exporter/agent/scorer.h"
#include "exporter/base/alloc.h"
#include "exporter/base/clock.h"
#include "exporter/base/hash.h"
#include "exporter/base/utf8.h"
#include "exporter/score/feature.h"
#include "exporter/score/round_error.h"
#include "exporter/score/scorer_state.h"
#include "exporter/score/summary.h"

#include <stdio.h>

enum {
    GATHER_MS = 1000,         /* delay, so that changes that come together are one write */
    TIMES_MS = 300 * 1000,    /* interval of writes when only times change, */
    TIMES_MIN_MS = 10 * 1000, /* or half the life of the scores that expire first */
    SCORERS_BYTES = 50000,    /* of the list: status feedback carries about 59 KB in one string */
    ERROR_BYTES = 399,
    PROBLEM_BYTES = 2000,
};

#define REPORT_CONFIGMAP "dynamic-scoring-status"
#define REPORT_KEY       "status"

struct agent_report {
    struct agent_report_options o;
    struct kube_writer writer;
    struct kube_object object;
    uint64_t written_states; /* a hash of all but the times; 0: none, or unknown */
    unsigned written_era;    /* kube_era() of that */
    mono_ms written_at;
    int64_t recheck_ms; /* until an error that was withheld is reported; INT64_MAX: none was */
};

/* Several lines: the first say the most. */
static json_t *report_lines(const char *text)
{
    struct str s = str_of(text);

    s = utf8_cut((struct str){s.p, utf8_valid_prefix(s)}, PROBLEM_BYTES);
    return json_stringn(s.p, s.n);
}

/* A time of the scorer's last success, by the clock of the hub's API server, as the hub reads it. */
static json_t *report_time(const struct agent_report *r, const struct scorer *s, int64_t ms)
{
    char text[32];

    if (ms == 0)
        return json_null();
    if (r->o.placement)
        ms += placement_clock_set_by_ms(r->o.placement, s->summary.score_name);
    if (r->o.hub)
        ms += kube_clock_offset_ms(r->o.hub);
    unix_ms_format((unix_ms){ms}, text);
    return json_string(text);
}

/* An error of the hub's API server, or "" while it may be one of a short absence. That costs no score, which
 * is valid for one and a half intervals or more, and a fleet that reported it would have its reports copied
 * to the hub, twice, just when the hub returns. */
static const char *report_hub_error(struct agent_report *r, const char *text, int64_t interval_ms)
{
    int64_t grace = interval_ms > KUBE_GRACE_MS ? interval_ms : KUBE_GRACE_MS;
    int64_t left = grace - (r->o.hub ? kube_absence_ms(r->o.hub) : grace);

    if (!*cstr(text) || left <= 0)
        return cstr(text);
    r->recheck_ms = left < r->recheck_ms ? left : r->recheck_ms;
    return "";
}

/* Whose fault the failure of the last round is; NULL if it did not fail, or by the agent's own fault. */
static const char *report_failed_stage(const struct scorer_status *st)
{
    enum round_error last = st->last.error;
    bool is_own = last == ROUND_MEMORY || last == ROUND_SECRET || last == ROUND_SERIES;

    return st->rounds && last != ROUND_OK && !is_own ? round_stage_word(st->last.stage) : NULL;
}

/* Nothing for an empty text. */
static void report_put_line(json_t *object, const char *key, const char *text)
{
    if (*text)
        kube_set(object, key, kube_line(text, ERROR_BYTES));
}

/* What became of the scorer on the hub. */
static void report_put_placement(struct agent_report *r, json_t *object, const struct summary *sum)
{
    const char *error;

    if (!r->o.placement)
        return;
    error = report_hub_error(r, placement_error(r->o.placement, sum), sum->interval_ms);
    report_put_line(object, "placementError", error);
    report_put_line(object, "noItems", placement_why_no_items(r->o.placement, sum->score_name));
}

static json_t *report_scorer(struct agent_report *r, const struct scorer *s, bool times)
{
    const struct scorer_status *st = &s->status;
    char error[ROUND_REASON_BYTES];
    json_t *one = json_object();

    kube_set_str(one, "scoreName", s->summary.score_name);
    kube_set_str(one, "state", scorer_state_word(scorer_state(s)));
    if (times)
        kube_set(one, "lastSuccess", report_time(r, s, st->succeeded_ms));
    if (times && s->batch)
        kube_set(one, "validUntil", report_time(r, s, st->expires_ms));
    kube_set_str(one, "failedStage", report_failed_stage(st));
    scorer_error_text(s, error, sizeof(error));
    report_put_line(one, "error", error);
    report_put_placement(r, one, &s->summary);
    return one;
}

/* Scorers beyond SCORERS_BYTES are counted in `notShown`. */
static json_t *report_scorers(struct agent_report *r, bool times, size_t *ret_left_out)
{
    const struct agent_state *a = agent_state(r->o.agent);
    json_t *list = json_array();
    size_t bytes = 0, i = 0;

    for (; i < a->n_scorers; i++) {
        json_t *one = report_scorer(r, a->scorers[i], times);

        bytes += json_dumpb(one, NULL, 0, JSON_COMPACT) + 2;
        if (bytes > SCORERS_BYTES) {
            json_decref(one);
            break;
        }
        kube_append(list, one);
    }
    *ret_left_out = a->n_scorers - i;
    return list;
}

/* What it knows beyond the first release, for the hub. */
static json_t *report_features(void)
{
    json_t *list = json_array();

    for (enum feature f = 0; f < FEATURES; f++)
        json_array_append_new(list, json_string(feature_word(f)));
    return list;
}

static char *report_text(struct agent_report *r, bool times)
{
    const struct reload_status *reload = &agent_state(r->o.agent)->reload;
    const char *hub_error = r->o.placement ? placement_hub_error(r->o.placement) : NULL;
    json_auto_t *status = json_object();
    size_t left_out;
    json_t *scorers;

    r->recheck_ms = INT64_MAX;
    scorers = report_scorers(r, times, &left_out);
    kube_set_bool(status, "configurationInForce", reload->ok);
    kube_set(status, "features", report_features());
    if (reload->problems)
        kube_set(status, "configurationProblems", report_lines(reload->problems));
    report_put_line(status, "hubError", report_hub_error(r, hub_error, 0));
    kube_set(status, "scorers", scorers);
    if (left_out)
        kube_set_int(status, "notShown", (int64_t)left_out);
    if (r->o.hub && kube_clock_is_skewed(r->o.hub))
        kube_set_int(status, "clockOffsetSeconds", kube_clock_offset_ms(r->o.hub) / 1000);
    return json_dumps(status, JSON_COMPACT);
}

static uint64_t report_hash(struct agent_report *r)
{
    CLEANUP(cleanup_free) char *text = report_text(r, false);

    return hash_bytes(str_of(text));
}

/* Often enough that the hub never has to guess whether scores have expired. */
static int64_t report_times_ms(const struct agent_report *r)
{
    const struct agent_state *a = agent_state(r->o.agent);
    int64_t ms = TIMES_MS;

    for (size_t i = 0; i < a->n_scorers; i++) {
        int64_t life = a->scorers[i]->status.life_ms;

        if (a->scorers[i]->batch && life / 2 < ms)
            ms = life / 2;
    }
    return ms < TIMES_MIN_MS ? TIMES_MIN_MS : ms;
}

void agent_report_touch(struct agent_report *r)
{
    if (r)
        kube_queue_add_after(r->writer.queue, REPORT_KEY, GATHER_MS);
}

static void report_write(struct agent_report *r, enum kube_method method);

static void report_on_written(struct kube_object *o, struct kube_answer *a)
{
    struct agent_report *r = CONTAINER_OF(o, struct agent_report, object);

    if (a->verdict == KUBE_NOT_FOUND && o->operation == KUBE_WRITE_PATCH) {
        report_write(r, KUBE_CREATE);
    } else if (a->verdict != KUBE_OK) {
        r->written_states = 0; /* it may have been written all the same */
        kube_object_fail(o, a);
    } else {
        r->written_at = kube_now(r->o.cluster);
        kube_object_clear_error(o);
        kube_object_end(o, true, -1);
        if (r->recheck_ms < INT64_MAX)
            kube_queue_add_after(r->writer.queue, REPORT_KEY, r->recheck_ms);
    }
}

static json_t *report_configmap(const struct agent_report *r, const char *text)
{
    json_t *object = kube_resource_object(&kube_configmaps, r->o.namespace, REPORT_CONFIGMAP);
    json_t *labels = kube_set_object(kube_get(object, "metadata", NULL), "labels");

    kube_set_str(labels, "app.kubernetes.io/managed-by", "dynamic-scoring");
    kube_set_str(kube_set_object(object, "data"), REPORT_KEY, text);
    return object;
}

static void report_write(struct agent_report *r, enum kube_method method)
{
    CLEANUP(cleanup_free) char *text = report_text(r, true);
    json_auto_t *body = report_configmap(r, text);
    bool creates = method == KUBE_CREATE;
    const struct kube_request rq = {
        .method = method,
        .resource = &kube_configmaps,
        .namespace = r->o.namespace,
        .name = creates ? NULL : REPORT_CONFIGMAP,
        .body = body,
    };

    r->written_states = report_hash(r);
    r->written_era = kube_era(r->o.cluster);
    kube_object_call(&r->object, creates ? KUBE_WRITE_CREATE : KUBE_WRITE_PATCH, &rq, KUBE_NO_GOAL,
                     report_on_written);
}

/* The queue's work: writes the report if more than its times has changed, or if those are due. */
static void report_work(void *arg, const char *key)
{
    struct agent_report *r = arg;
    int64_t left = report_times_ms(r) - mono_diff(r->written_at, kube_now(r->o.cluster));
    bool is_known = r->written_era == kube_era(r->o.cluster);

    if (!is_known || r->written_states != report_hash(r) || left <= 0) {
        report_write(r, KUBE_MERGE_PATCH);
        return;
    }
    kube_queue_done(r->writer.queue, key, true, -1);
    kube_queue_add_after(r->writer.queue, REPORT_KEY, r->recheck_ms < left ? r->recheck_ms : left);
}

struct agent_report *agent_report_new(const struct agent_report_options *o)
{
    struct agent_report *r = xcalloc(1, sizeof(*r));
    const struct kube_queue_options q = {
        .work = report_work, .arg = r, .kube = o->cluster, .min_retry_ms = 5000};

    r->o = *o;
    r->writer = (struct kube_writer){
        .kube = o->cluster, .manager = "dynamic-scoring-agent", .kind = "report", .detail = "key"};
    r->writer.queue = kube_queue_new(kube_loop(o->cluster), &q);
    kube_object_init(&r->object, &r->writer, REPORT_KEY);
    return r;
}

struct agent_report *agent_report_free(struct agent_report *r)
{
    if (!r)
        return NULL;
    kube_object_done(&r->object);
    r->writer.queue = kube_queue_free(r->writer.queue);
    free(r);
    return NULL;
}

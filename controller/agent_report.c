#include "controller/agent_report.h"

#include "controller/kube/client.h"
#include "controller/kube/writer.h"
#include "exporter/agent/agent.h"
#include "exporter/agent/scorer.h"
#include "exporter/base/clock.h"
#include "exporter/base/hash.h"
#include "exporter/base/loop.h"
#include "exporter/base/text.h"
#include "exporter/base/utf8.h"
#include "exporter/score/error.h"
#include "exporter/score/round.h"

#include <errno.h>
#include <stdio.h>

enum {
    GATHER_MS = 1000,      /* delay, so that changes that come together are one write */
    TIMES_MS = 300 * 1000, /* interval of writes when only times change */
    SCORERS_BYTES = 50000, /* of the list: status feedback carries about 59 KB in one string */
    ERROR_BYTES = 400,
    PROBLEM_BYTES = 2000,
};

static const char key[] = "status";

struct agent_report {
    struct agent_report_options o;
    struct kube_writer writer;
    struct kube_object object;
    struct timer timer;
    uint64_t written_states, sent_states; /* a hash of all but the times; 0: none */
    mono_ms written_at;
    int64_t recheck_ms; /* until an error that was withheld is reported; INT64_MAX: none was */
};

static json_t *report_line(const char *text)
{
    char line[ERROR_BYTES];

    text_line(line, sizeof(line), str_of(text));
    return json_string(line);
}

/* Several lines: the first say the most. */
static json_t *report_lines(const char *text)
{
    struct str s = str_of(text);

    s = utf8_cut((struct str){s.p, utf8_valid_prefix(s)}, PROBLEM_BYTES);
    return json_stringn(s.p, s.n);
}

static json_t *report_time(int64_t ms)
{
    char text[32];

    if (ms == 0)
        return json_null();
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
    bool is_own =
        st->last.error == ROUND_MEMORY || st->last.error == ROUND_SECRET || st->last.error == ROUND_SERIES;

    return st->rounds && st->last.error != ROUND_OK && !is_own ? round_stage_word(st->last.stage) : NULL;
}

static json_t *report_scorer(struct agent_report *r, const struct scorer *s, bool times)
{
    const struct scorer_status *st = scorer_status(s);
    const char *trouble = report_hub_error(r, r->o.placement ? placement_trouble(r->o.placement, s) : "",
                                           scorer_summary(s)->interval_ms);
    char error[ROUND_REASON_BYTES];

    scorer_error_text(st, error, sizeof(error));
    return json_pack("{s:s, s:s, s:o*, s:s*, s:o*, s:o*}", "scoreName", scorer_summary(s)->score_name,
                     "state", scorer_state_word(scorer_state(s)), "lastSuccess",
                     times ? report_time(st->succeeded_ms) : NULL, "failedStage", report_failed_stage(st),
                     "error", error[0] ? report_line(error) : NULL, "placementError",
                     trouble[0] ? report_line(trouble) : NULL);
}

/* Scorers beyond SCORERS_BYTES are counted in `notShown`. */
static json_t *report_scorers(struct agent_report *r, bool times, size_t *ret_left_out)
{
    json_t *list = json_array();
    size_t bytes = 0, n = r->o.agent->n_scorers, i = 0;

    for (; list && i < n; i++) {
        json_t *one = report_scorer(r, r->o.agent->scorers[i], times);
        bytes += one ? json_dumpb(one, NULL, 0, JSON_COMPACT) + 2 : SCORERS_BYTES;
        if (bytes > SCORERS_BYTES) {
            json_decref(one);
            break;
        }
        if (json_array_append_new(list, one) < 0)
            break;
    }
    *ret_left_out = n - i;
    return list;
}

static json_t *report_value(struct agent_report *r, bool times)
{
    const struct reload_status *reload = &r->o.agent->reload;
    const char *hub = r->o.placement ? placement_hub_trouble(r->o.placement) : NULL;
    size_t left_out;
    json_t *scorers;

    r->recheck_ms = INT64_MAX;
    scorers = report_scorers(r, times, &left_out);
    hub = report_hub_error(r, hub, 0);
    return json_pack("{s:b, s:o*, s:o*, s:o, s:o*}", "configurationInForce", reload->ok,
                     "configurationProblems", reload->problems ? report_lines(reload->problems) : NULL,
                     "hubError", *hub ? report_line(hub) : NULL, "scorers", scorers, "notShown",
                     left_out ? json_integer((json_int_t)left_out) : NULL);
}

static char *report_text(struct agent_report *r, bool times)
{
    json_t *value = report_value(r, times);
    char *text = value ? json_dumps(value, JSON_COMPACT) : NULL;

    json_decref(value);
    return text;
}

static uint64_t report_hash(struct agent_report *r)
{
    CLEANUP(cleanup_free) char *text = report_text(r, false);

    return hash_bytes(str_of(text));
}

static void report_set_timer(struct agent_report *r, int64_t ms)
{
    struct loop *l = kube_loop(r->o.cluster);

    loop_timer_set(l, &r->timer, mono_add(loop_now(l), ms));
}

static void report_on_timer(struct timer *t)
{
    struct agent_report *r = CONTAINER_OF(t, struct agent_report, timer);
    int64_t age = mono_diff(r->written_at, loop_now(kube_loop(r->o.cluster)));

    if (r->written_states == report_hash(r) && age < TIMES_MS)
        report_set_timer(r, r->recheck_ms < TIMES_MS - age ? r->recheck_ms : TIMES_MS - age);
    else
        kube_queue_add(r->writer.queue, key);
}

void agent_report_touch(struct agent_report *r)
{
    mono_ms soon = mono_add(loop_now(kube_loop(r->o.cluster)), GATHER_MS);

    if (r->timer.place == 0 || mono_before(soon, r->timer.at))
        report_set_timer(r, GATHER_MS);
}

static void report_write(struct agent_report *r, enum kube_method method);

static void report_on_written(struct kube_object *o, struct kube_answer *a)
{
    struct agent_report *r = CONTAINER_OF(o, struct agent_report, object);

    if (a->verdict == KUBE_NOT_FOUND && strcmp(o->operation, "patch") == 0) {
        report_write(r, KUBE_CREATE);
    } else if (a->verdict != KUBE_OK) {
        kube_object_fail(o, a);
    } else {
        r->written_states = r->sent_states;
        r->written_at = loop_now(kube_loop(r->o.cluster));
        if (r->recheck_ms < INT64_MAX && r->timer.place == 0)
            report_set_timer(r, r->recheck_ms);
        kube_object_set_trouble(o, "");
        kube_object_end(o, true, -1);
    }
}

static void report_write(struct agent_report *r, enum kube_method method)
{
    CLEANUP(cleanup_free) char *text = report_text(r, true);
    bool creates = method == KUBE_CREATE;
    json_auto_t *body =
        text ? json_pack("{s:s, s:s, s:{s:s, s:s, s:{s:s}}, s:{s:s}}", "apiVersion", "v1", "kind",
                         "ConfigMap", "metadata", "name", REPORT_CONFIGMAP, "namespace", r->o.namespace,
                         "labels", "app.kubernetes.io/managed-by", "dynamic-scoring", "data", key, text)
             : NULL;
    const struct kube_request rq = {
        .method = method,
        .resource = &kube_configmaps,
        .namespace = r->o.namespace,
        .name = creates ? NULL : REPORT_CONFIGMAP,
        .body = body,
    };

    r->sent_states = report_hash(r);
    kube_object_call(&r->object, creates ? "create" : "patch", &rq, 0, report_on_written);
}

static void report_work(void *arg, const char *what)
{
    (void)what;
    report_write(arg, KUBE_MERGE_PATCH);
}

struct agent_report *agent_report_new(const struct agent_report_options *o)
{
    struct agent_report *r = xcalloc(1, sizeof(*r));
    const struct kube_queue_options q = {
        .work = report_work, .arg = r, .kube = o->cluster, .min_retry_ms = 5000};

    r->o = *o;
    r->timer.fn = report_on_timer;
    r->writer = (struct kube_writer){.kube = o->cluster, .kind = "report", .detail = "key"};
    kube_object_init(&r->object, &r->writer, key);
    r->writer.queue = kube_queue_new(kube_loop(o->cluster), &q);
    return r;
}

struct agent_report *agent_report_free(struct agent_report *r)
{
    if (!r)
        return NULL;
    loop_timer_clear(kube_loop(r->o.cluster), &r->timer);
    kube_object_done(&r->object);
    r->writer.queue = kube_queue_free(r->writer.queue);
    free(r);
    return NULL;
}

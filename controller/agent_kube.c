/* Owns the Lease, and while this agent leads the AddOnPlacementScores and the report. */
#include "controller/agent_kube.h"

#include "controller/kube/answer.h"
#include "controller/kube/client.h"
#include "controller/kube/json.h"
#include "controller/kube/lease.h"
#include "controller/kube/queue.h"
#include "controller/kube/reach.h"
#include "controller/kube/request.h"
#include "controller/kube/resource.h"
#include "controller/kube/server_clock.h"
#include "controller/kube/verdict.h"
#include "controller/kube/watch.h"
#include "controller/kube/writer.h"
#include "controller/placement/items.h"
#include "controller/placement/placement.h"
#include "exporter/agent/config.h"
#include "exporter/agent/scorer.h"
#include "exporter/base/alloc.h"
#include "exporter/base/base64.h"
#include "exporter/base/clock.h"
#include "exporter/base/doc.h"
#include "exporter/base/glob.h"
#include "exporter/base/hash.h"
#include "exporter/base/log.h"
#include "exporter/base/loop.h"
#include "exporter/base/map.h"
#include "exporter/base/utf8.h"
#include "exporter/metric/metrics.h"
#include "exporter/score/round_error.h"
#include "exporter/score/scorer_state.h"
#include "exporter/score/sink.h"
#include "remotewrite/config.h"

#include <errno.h>
#include <stdio.h>

/* A Secret that the configuration names. */
struct watched_secret {
    struct agent_kube *k;
    char *name; /* the key */
    struct kube_watch *watch;
    json_t *data; /* base64; NULL while the Secret does not exist */
    bool trusts_ca;
    bool wanted;
};

struct agent_report {
    struct kube_writer writer; /* its queue is NULL without a cluster, as on a standby */
    struct kube_object object;
    uint64_t written_states; /* a hash of all but the times; 0: none, or unknown */
    unsigned written_era;    /* kube_era() of that */
    mono_ms written_at;
    int64_t recheck_ms; /* until an error that was withheld is reported; INT64_MAX: none was */
};

struct agent_kube {
    struct sink sink; /* AddOnPlacementScores */
    struct agent *agent;
    struct agent_kube_options o;
    struct kube *hub, *cluster;
    struct secrets secrets; /* reads `watched` */
    struct map watched;     /* by name; none if tokens come from files */
    struct kube_watch *configmap;
    struct placement *placement; /* NULL without a hub, as on a standby */
    struct agent_report report;
    struct kube_lease *lease; /* NULL without an election */
    char identity[KUBE_IDENTITY_BYTES], lease_name[OBJECT_NAME_MAX + 1];
    char *namespace, *configmap_namespace, *configmap_name;
    char *owner;
    char *shown;        /* "namespace/name" of the ConfigMap */
    bool scorers_known; /* the ConfigMap was read, or does not exist */
    bool is_missing;    /* it does not exist */
    json_t *first;      /* with `once`: the ConfigMap */
    struct timer once;  /* applies it when its Secrets have been read */
};

static struct loop *kube_agent_loop(const struct agent_kube *k)
{
    return agent_state(k->agent)->loop;
}

/* ---- Credentials from Secrets in the agent's namespace ----
 *
 * Each is watched by its name, so that a new or changed Secret takes effect at once. */

static void secrets_drop_data(struct watched_secret *w)
{
    kube_wipe_strings(w->data);
    json_decref(w->data);
    w->data = NULL;
}

/* Otherwise a summary could send the hub's credentials, a Secret of the same namespace, anywhere. */
static bool secrets_is_forbidden(const char *name, const json_t *data)
{
    return glob_match("*-hub-kubeconfig", name) || json_object_get(data, "kubeconfig");
}

static int secrets_look(struct secrets *base, const char *name, bool *ret_trusts_ca, const char **ret_why)
{
    const struct watched_secret *w = map_get(&CONTAINER_OF(base, struct agent_kube, secrets)->watched, name);

    if (!w || !w->data) {
        *ret_why = w ? kube_watch_error(w->watch) : NULL;
        return *ret_why ? -EACCES : -ENOENT;
    }
    if (secrets_is_forbidden(name, w->data)) {
        *ret_why = "refused: it contains credentials for an API server";
        return -EPERM;
    }
    *ret_trusts_ca = w->trusts_ca;
    return 0;
}

static int secrets_read(struct secrets *base, const char *name, const char *key, struct buf *into,
                        const char **ret_why)
{
    const struct watched_secret *w = map_get(&CONTAINER_OF(base, struct agent_kube, secrets)->watched, name);
    struct str value = kube_text(w->data, key, NULL);
    int r = value.p ? base64_decode(value, into) : -ENOENT;

    if (r == -EINVAL)
        *ret_why = "not valid base64";
    return r;
}

/* Wakes the scorers that use the Secret. */
static void secrets_wake(const struct watched_secret *w)
{
    const struct agent_state *a = agent_state(w->k->agent);

    for (size_t i = 0; i < a->n_scorers; i++) {
        const struct summary *sum = &a->scorers[i]->summary;
        bool named = strcmp(cstr(sum->scoring_auth.name), w->name) == 0;

        for (size_t n = 0; n < sum->n_sources; n++)
            named = named || strcmp(cstr(sum->sources[n].auth.name), w->name) == 0;
        if (named)
            scorer_wake(a->scorers[i]);
    }
}

static void secrets_on_set(void *arg, json_t *object)
{
    struct watched_secret *w = arg;
    json_t *data = kube_map(object, "data", NULL);
    const char *type = cstr(kube_str(object, "type", NULL));
    /* The authority in a service account's Secret is the API server's. */
    bool trusts_ca = !*type || strcmp(type, "Opaque") == 0 || strcmp(type, "kubernetes.io/tls") == 0;

    if (w->data && w->trusts_ca == trusts_ca && json_equal(w->data, data))
        return;
    if (w->data)
        log_info("secret changed", L_STR("secret", w->name));
    secrets_drop_data(w);
    w->data = json_incref(data);
    w->trusts_ca = trusts_ca;
    if (secrets_is_forbidden(w->name, data))
        log_error("secret refused: it contains credentials for an API server", L_STR("secret", w->name));
    secrets_wake(w);
}

static void secrets_on_delete(void *arg, const char *namespace, const char *name)
{
    struct watched_secret *w = arg;

    (void)namespace;
    log_warn("secret deleted", L_STR("secret", name));
    secrets_drop_data(w);
}

/* With `once`: applies the ConfigMap in the loop's next turn when each Secret was read or cannot be read. The
 * scorers that this starts may free the very watch that reports here. */
static void secrets_check_ready(struct agent_kube *k)
{
    const struct watched_secret *w;

    if (!k->first)
        return;
    for (size_t at = 0; (w = map_next(&k->watched, &at));)
        if (!kube_watch_synced(w->watch) && !kube_watch_error(w->watch))
            return;
    loop_timer_set(kube_agent_loop(k), &k->once, loop_now(kube_agent_loop(k)));
}

static void secrets_on_synced(void *arg)
{
    secrets_check_ready(((struct watched_secret *)arg)->k);
}

static void secrets_on_error(void *arg, const char *error)
{
    const struct watched_secret *w = arg;

    log_warn("watch of secret failed", L_STR("secret", w->name), L_STR("err", error));
    secrets_check_ready(w->k);
}

static void secrets_want(struct agent_kube *k, const char *name)
{
    struct kube_watch_options o = {.resource = &kube_secrets,
                                   .namespace = k->namespace,
                                   .name = name,
                                   .on_set = secrets_on_set,
                                   .on_delete = secrets_on_delete,
                                   .on_synced = secrets_on_synced,
                                   .on_error = secrets_on_error,
                                   .on_recovered = secrets_on_synced};
    struct watched_secret *w;

    if (!name)
        return;
    w = map_get(&k->watched, name);
    if (!w) {
        w = xcalloc(1, sizeof(*w));
        *w = (struct watched_secret){.k = k, .name = xstrdup(name)};
        map_set(&k->watched, w->name, w);
        o.arg = w;
        w->watch = kube_watch_new(k->cluster, &o);
    }
    w->wanted = true;
}

/* Watches the Secrets that these summaries refer to, and no others. */
static void secrets_sync(struct agent_kube *k, const struct summaries *wanted)
{
    struct watched_secret *w;

    for (size_t at = 0; (w = map_next(&k->watched, &at));)
        w->wanted = false;
    for (size_t i = 0; k->secrets.read && i < wanted->n; i++) {
        const struct summary *sum = &wanted->list[i];

        for (size_t n = 0; n < sum->n_sources; n++)
            secrets_want(k, sum->sources[n].auth.name);
        secrets_want(k, sum->scoring_auth.name);
    }
    for (size_t at = 0; (w = map_next(&k->watched, &at));) {
        if (w->wanted)
            continue;
        (void)map_take(&k->watched, w->name);
        w->watch = kube_watch_free(w->watch);
        secrets_drop_data(w);
        free(w->name);
        free(w);
        at = 0; /* the map has changed */
    }
}

/* ---- The report ----
 *
 * The ConfigMap `dynamic-scoring-status` in the agent's namespace: the state of each scorer, for the hub and
 * for people without access to the agent. Its key `status` holds one JSON object, small enough for a
 * ManifestWork's feedback rule. */

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

/* Several lines: the first say the most. */
static json_t *report_lines(const char *text)
{
    struct str s = str_of(text);

    s = utf8_cut((struct str){s.p, utf8_valid_prefix(s)}, PROBLEM_BYTES);
    return json_stringn(s.p, s.n);
}

/* By the clock of the hub's API server, as the hub reads it. */
static json_t *report_time(const struct agent_kube *k, int64_t ms)
{
    char text[32];

    if (ms == 0)
        return json_null();
    if (k->hub)
        ms += kube_clock_offset_ms(k->hub);
    unix_ms_format((unix_ms){ms}, text);
    return json_string(text);
}

/* An error of the hub's API server, or "" while it may be one of a short absence. That costs no score, which
 * is valid for one and a half intervals or more, and a fleet that reported it would have its reports copied
 * to the hub, twice, just when the hub returns. */
static const char *report_hub_error(struct agent_kube *k, const char *text, int64_t interval_ms)
{
    int64_t grace = interval_ms > KUBE_GRACE_MS ? interval_ms : KUBE_GRACE_MS;
    int64_t left = grace - (k->hub ? kube_absence_ms(k->hub) : grace);

    if (!*cstr(text) || left <= 0)
        return cstr(text);
    k->report.recheck_ms = left < k->report.recheck_ms ? left : k->report.recheck_ms;
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
        (void)json_object_set_new(object, key, kube_line(text, ERROR_BYTES));
}

/* What became of the scorer on the hub. */
static void report_put_placement(struct agent_kube *k, json_t *object, const struct scorer *s)
{
    if (!k->placement)
        return;
    report_put_line(object, "placementError",
                    report_hub_error(k, placement_error(k->placement, &s->summary), s->summary.interval_ms));
    report_put_line(object, "noItems", placement_why_no_items(k->placement, s->summary.score_name));
}

static json_t *report_scorer(struct agent_kube *k, const struct scorer *s, bool times)
{
    const struct scorer_status *st = &s->status;
    const char *stage = report_failed_stage(st);
    char error[ROUND_REASON_BYTES];
    json_t *one = json_object();

    (void)json_object_set_new(one, "scoreName", json_string(s->summary.score_name));
    (void)json_object_set_new(one, "state", json_string(scorer_state_word(scorer_state(s))));
    if (times)
        (void)json_object_set_new(one, "lastSuccess", report_time(k, st->succeeded_ms));
    if (times && s->batch)
        (void)json_object_set_new(one, "validUntil", report_time(k, st->expires_ms));
    if (stage)
        (void)json_object_set_new(one, "failedStage", json_string(stage));
    scorer_error_text(st, error, sizeof(error));
    report_put_line(one, "error", error);
    report_put_placement(k, one, s);
    return one;
}

/* Scorers beyond SCORERS_BYTES are counted in `notShown`. */
static json_t *report_scorers(struct agent_kube *k, bool times, size_t *ret_left_out)
{
    const struct agent_state *a = agent_state(k->agent);
    json_t *list = json_array();
    size_t bytes = 0, i = 0;

    for (; i < a->n_scorers; i++) {
        json_t *one = report_scorer(k, a->scorers[i], times);
        bytes += json_dumpb(one, NULL, 0, JSON_COMPACT) + 2;
        if (bytes > SCORERS_BYTES) {
            json_decref(one);
            break;
        }
        (void)json_array_append_new(list, one);
    }
    *ret_left_out = a->n_scorers - i;
    return list;
}

static char *report_text(struct agent_kube *k, bool times)
{
    const struct reload_status *reload = &agent_state(k->agent)->reload;
    const char *hub = k->placement ? placement_hub_error(k->placement) : NULL;
    json_auto_t *value = NULL;
    size_t left_out;
    json_t *scorers;

    k->report.recheck_ms = INT64_MAX;
    scorers = report_scorers(k, times, &left_out);
    hub = report_hub_error(k, hub, 0);
    value = json_pack("{s:b, s:[s], s:o*, s:o*, s:o, s:o*}", "configurationInForce", reload->ok, "features",
                      "scoreItems", "configurationProblems",
                      reload->problems ? report_lines(reload->problems) : NULL, "hubError",
                      *hub ? kube_line(hub, ERROR_BYTES) : NULL, "scorers", scorers, "notShown",
                      left_out ? json_integer((json_int_t)left_out) : NULL);
    if (k->hub && kube_clock_is_skewed(k->hub))
        (void)json_object_set_new(value, "clockOffsetSeconds",
                                  json_integer((json_int_t)(kube_clock_offset_ms(k->hub) / 1000)));
    return json_dumps(value, JSON_COMPACT);
}

static uint64_t report_hash(struct agent_kube *k)
{
    CLEANUP(cleanup_free) char *text = report_text(k, false);

    return hash_bytes(str_of(text));
}

/* Often enough that the hub never has to guess whether scores have expired. */
static int64_t report_times_ms(const struct agent_kube *k)
{
    const struct agent_state *a = agent_state(k->agent);
    int64_t ms = TIMES_MS;

    for (size_t i = 0; i < a->n_scorers; i++) {
        int64_t life = a->scorers[i]->status.life_ms;

        if (a->scorers[i]->batch && life / 2 < ms)
            ms = life / 2;
    }
    return ms < TIMES_MIN_MS ? TIMES_MIN_MS : ms;
}

/* Something may have changed. A new state or error is written soon, mere times later: a work agent copies
 * each write into its ManifestWork on the hub, which is then sent as a whole to all who watch it. */
static void report_touch(struct agent_kube *k)
{
    if (k->report.writer.queue)
        kube_queue_add_after(k->report.writer.queue, REPORT_KEY, GATHER_MS);
}

static void report_write(struct agent_kube *k, enum kube_method method);

static void report_on_written(struct kube_object *o, struct kube_answer *a)
{
    struct agent_kube *k = CONTAINER_OF(o, struct agent_kube, report.object);

    if (a->verdict == KUBE_NOT_FOUND && o->operation == KUBE_WRITE_PATCH) {
        report_write(k, KUBE_CREATE);
    } else if (a->verdict != KUBE_OK) {
        k->report.written_states = 0; /* it may have been written all the same */
        kube_object_fail(o, a);
    } else {
        k->report.written_at = loop_now(kube_agent_loop(k));
        kube_object_clear_error(o);
        kube_object_end(o, true, -1);
        if (k->report.recheck_ms < INT64_MAX)
            kube_queue_add_after(k->report.writer.queue, REPORT_KEY, k->report.recheck_ms);
    }
}

static void report_write(struct agent_kube *k, enum kube_method method)
{
    CLEANUP(cleanup_free) char *text = report_text(k, true);
    bool creates = method == KUBE_CREATE;
    json_auto_t *body =
        json_pack("{s:s, s:s, s:{s:s, s:s, s:{s:s}}, s:{s:s}}", "apiVersion", "v1", "kind", "ConfigMap",
                  "metadata", "name", REPORT_CONFIGMAP, "namespace", k->namespace, "labels",
                  "app.kubernetes.io/managed-by", "dynamic-scoring", "data", REPORT_KEY, text);
    const struct kube_request rq = {
        .method = method,
        .resource = &kube_configmaps,
        .namespace = k->namespace,
        .name = creates ? NULL : REPORT_CONFIGMAP,
        .body = body,
    };

    k->report.written_states = report_hash(k);
    k->report.written_era = kube_era(k->cluster);
    kube_object_call(&k->report.object, creates ? KUBE_WRITE_CREATE : KUBE_WRITE_PATCH, &rq, KUBE_NO_GOAL,
                     report_on_written);
}

/* The queue's work: writes the report if more than its times has changed, or if those are due. */
static void report_work(void *arg, const char *key)
{
    struct agent_kube *k = arg;
    struct agent_report *r = &k->report;
    int64_t left = report_times_ms(k) - mono_diff(r->written_at, loop_now(kube_agent_loop(k)));

    bool is_known = r->written_era == kube_era(k->cluster);

    if (!is_known || r->written_states != report_hash(k) || left <= 0) {
        report_write(k, KUBE_MERGE_PATCH);
        return;
    }
    kube_queue_done(r->writer.queue, key, true, -1);
    kube_queue_add_after(r->writer.queue, REPORT_KEY, r->recheck_ms < left ? r->recheck_ms : left);
}

static void report_start(struct agent_kube *k)
{
    const struct kube_queue_options q = {
        .work = report_work, .arg = k, .kube = k->cluster, .min_retry_ms = 5000};
    struct agent_report *r = &k->report;

    *r = (struct agent_report){
        .writer = {
            .kube = k->cluster, .manager = "dynamic-scoring-agent", .kind = "report", .detail = "key"}};
    r->writer.queue = kube_queue_new(kube_agent_loop(k), &q);
    kube_object_init(&r->object, &r->writer, REPORT_KEY);
}

static void report_stop(struct agent_kube *k)
{
    if (!k->report.writer.queue)
        return;
    kube_object_done(&k->report.object);
    k->report.writer.queue = kube_queue_free(k->report.writer.queue);
}

/* ---- What only the leader does ---- */

static void leader_on_placement(void *arg)
{
    struct agent_kube *k = arg;

    agent_touch(k->agent);
    report_touch(k);
}

static void leader_begin(struct agent_kube *k)
{
    const struct placement_options placement = {.hub = k->hub,
                                                .metrics = agent_state(k->agent)->metrics,
                                                .on_change = leader_on_placement,
                                                .arg = k,
                                                .cluster_name = k->o.cluster_name,
                                                .owner = k->owner,
                                                .adopt_unowned = k->o.adopt_unowned};

    if (k->hub)
        k->placement = placement_new(&placement);
    if (k->cluster && !k->o.once)
        report_start(k);
}

static void leader_end(struct agent_kube *k)
{
    report_stop(k);
    k->placement = placement_free(k->placement);
}

static void leader_on_change(void *arg, bool leading)
{
    struct agent_kube *k = arg;

    leader_end(k);
    if (leading)
        leader_begin(k);
    agent_set_leading(k->agent, leading);
}

/* Without an election this agent leads. */
static void leader_start(struct agent_kube *k)
{
    CLEANUP(cleanup_free) char *name = xasprintf("%s-agent", k->o.addon_name);
    const struct kube_lease_options o = {.namespace = k->namespace,
                                         .name = k->lease_name,
                                         .identity = k->identity,
                                         .on_change = leader_on_change,
                                         .arg = k};

    if (!k->o.leader_elect || k->o.once) {
        leader_begin(k);
        return;
    }
    (void)object_name(str_of(name), k->lease_name);
    kube_lease_make_identity(k->identity);
    agent_set_leading(k->agent, false);
    k->lease = kube_lease_new(k->cluster, &o);
}

void agent_kube_render(const struct agent_kube *k)
{
    struct metrics *m;

    if (!k)
        return;
    m = agent_state(k->agent)->metrics;
    if (k->lease)
        metric_set(m, METRIC_KUBE_UP, LV("leases", "cluster"), !kube_lease_error(k->lease));
    if (k->hub)
        metric_set(m, METRIC_KUBE_CLOCK_OFFSET, LV("hub"), (double)kube_clock_offset_ms(k->hub) / 1000);
}

bool agent_kube_election(const struct agent_kube *k, struct agent_election *ret)
{
    if (k->lease)
        *ret = (struct agent_election){.leading = kube_lease_leading(k->lease),
                                       .identity = k->identity,
                                       .holder = kube_lease_holder(k->lease),
                                       .error = kube_lease_error(k->lease)};
    return k->lease;
}

void agent_kube_stop(struct agent_kube *k, void (*done)(void *arg), void *arg)
{
    if (k && k->lease)
        kube_lease_release(k->lease, done, arg);
    else
        done(arg);
}

/* ---- The cluster's ConfigMap and Secrets ---- */

bool agent_kube_has_cluster(const struct agent_kube_options *o)
{
    return o->managed_kubeconfig || *cstr(getenv("KUBERNETES_SERVICE_HOST"));
}

static struct str configmap_text(const struct agent_kube *k, const json_t *object)
{
    struct str text = kube_text(object, "data", "summaries", NULL);

    if (!text.p)
        log_error("ConfigMap has no key `summaries`", L_STR("configmap", k->shown));
    return text.p ? text : STR("");
}

/* object: the ConfigMap; NULL: there is none. */
static void configmap_apply(struct agent_kube *k, const json_t *object)
{
    bool known = k->scorers_known;

    k->scorers_known = true; /* applying passes the scorers on to the placement */
    k->is_missing = !object;
    if (agent_apply_configmap(k->agent, k->shown, object ? configmap_text(k, object) : STR("[]"),
                              kube_text(object, "data", "suspended", NULL)) < 0)
        k->scorers_known = known;
    report_touch(k);
}

/* ---- With `once`: the ConfigMap, then its Secrets, then the scorers ---- */

static void once_apply(struct timer *t)
{
    struct agent_kube *k = CONTAINER_OF(t, struct agent_kube, once);
    int r = agent_apply_configmap(k->agent, k->shown, configmap_text(k, k->first), STR(""));

    if (kube_text(k->first, "data", "suspended", NULL).n)
        log_warn("scorers that the hub has suspended are left out", L_STR("configmap", k->shown));
    if (r < 0 || agent_state(k->agent)->n_scorers == 0)
        loop_stop(kube_agent_loop(k));
}

/* An invalid text names no Secrets; its problems are reported when it is applied. */
static void once_prepare(struct agent_kube *k, json_t *object)
{
    CLEANUP(cleanup_config_free) struct config *c = NULL;
    CLEANUP(problems_done) struct problems p = {0};

    problems_init_configmap(&p, k->shown);
    k->first = json_incref(object);
    if (config_parse(&c, kube_text(object, "data", "summaries", NULL), &rw_config_section, &p) == 0)
        secrets_sync(k, &c->summaries);
    secrets_check_ready(k);
}

/* ---- What the watch of the ConfigMap reports ---- */

static void configmap_on_set(void *arg, json_t *object)
{
    struct agent_kube *k = arg;

    if (k->o.once && !k->first)
        once_prepare(k, object);
    else if (!k->o.once)
        configmap_apply(k, object);
}

static void configmap_missing(struct agent_kube *k)
{
    if (k->o.once && k->first)
        return;
    if (k->o.once) {
        log_error("ConfigMap not found", L_STR("configmap", k->shown));
        loop_stop(kube_agent_loop(k));
        return;
    }
    log_warn("ConfigMap not found: no scorers", L_STR("configmap", k->shown));
    configmap_apply(k, NULL);
}

static void configmap_on_delete(void *arg, const char *namespace, const char *name)
{
    (void)namespace, (void)name;
    configmap_missing(arg);
}

static void configmap_on_synced(void *arg)
{
    struct agent_kube *k = arg;

    metric_set(agent_state(k->agent)->metrics, METRIC_KUBE_UP, LV("configmaps", "cluster"), 1);
    if (!kube_watch_has(k->configmap, k->configmap_namespace, k->configmap_name))
        configmap_missing(k);
}

/* The report has gone back in time, too. */
static void configmap_on_restored(void *arg)
{
    report_touch(arg);
}

static void configmap_show_watch(const struct agent_kube *k, bool is_up)
{
    metric_set(agent_state(k->agent)->metrics, METRIC_KUBE_UP, LV("configmaps", "cluster"), is_up);
    agent_touch(k->agent);
}

static void configmap_on_error(void *arg, const char *error)
{
    struct agent_kube *k = arg;

    if (k->o.once && k->first)
        return;
    if (k->o.once) {
        log_error("ConfigMap not read", L_STR("configmap", k->shown), L_STR("err", error));
        loop_stop(kube_agent_loop(k));
        return;
    }
    log_warn("watch of ConfigMap failed, its last state stays active", L_STR("configmap", k->shown),
             L_STR("err", error));
    configmap_show_watch(k, false);
}

static void configmap_on_recovered(void *arg)
{
    struct agent_kube *k = arg;

    if (k->o.once && k->first)
        return;
    log_info("watch of ConfigMap works again", L_STR("configmap", k->shown));
    configmap_show_watch(k, true);
}

/* ---- The sink ---- */

static void sink_round_ended(struct sink *s, const char *score_name, const struct round_outcome *o)
{
    struct agent_kube *k = CONTAINER_OF(s, struct agent_kube, sink);

    if (k->placement)
        placement_round_ended(k->placement, score_name, o);
    report_touch(k);
}

static void sink_withdrawn(struct sink *s, const char *score_name, unix_ms at)
{
    struct agent_kube *k = CONTAINER_OF(s, struct agent_kube, sink);

    (void)at; /* an object's scores end by their validity */
    if (k->placement)
        placement_withdrawn(k->placement, score_name);
    report_touch(k);
}

static void sink_applied(struct sink *s, const struct summaries *list, int64_t stale_intervals)
{
    struct agent_kube *k = CONTAINER_OF(s, struct agent_kube, sink);

    secrets_sync(k, &agent_state(k->agent)->config->summaries);
    if (k->placement && k->is_missing)
        placement_sync_none(k->placement);
    else if (k->placement && (k->scorers_known || !k->cluster))
        placement_sync(k->placement, list, stale_intervals);
}

static const struct sink_ops sink_ops = {
    .applied = sink_applied, .round_ended = sink_round_ended, .withdrawn = sink_withdrawn};

/* "namespace/name" or "name", in the agent's own namespace. */
static void set_names(struct agent_kube *k)
{
    const struct agent_kube_options *o = &k->o;
    const char *configmap = o->configmap ?: "dynamic-scoring-config", *slash = strchr(configmap, '/');
    const char *own = k->cluster ? kube_default_namespace(k->cluster) : NULL;

    k->namespace = xstrdup(o->addon_namespace ?: own ?: "dynamic-scoring");
    k->configmap_namespace =
        slash ? str_dup((struct str){configmap, (size_t)(slash - configmap)}) : xstrdup(k->namespace);
    k->configmap_name = xstrdup(slash ? slash + 1 : configmap);
    k->owner = xasprintf("%s/%s", k->namespace, k->o.addon_name);
    k->shown = xasprintf("%s/%s", k->configmap_namespace, k->configmap_name);
}

struct agent_kube *agent_kube_new(struct agent *a, const struct agent_kube_options *o, bool secrets)
{
    struct agent_kube *k = xcalloc(1, sizeof(*k));
    const struct agent_state *state = agent_state(a);
    struct kube_watch_options watch = {.resource = &kube_configmaps,
                                       .on_set = configmap_on_set,
                                       .on_delete = configmap_on_delete,
                                       .on_synced = configmap_on_synced,
                                       .on_restored = configmap_on_restored,
                                       .on_error = configmap_on_error,
                                       .on_recovered = configmap_on_recovered,
                                       .arg = k};

    k->sink.ops = &sink_ops;
    k->once.fn = once_apply;
    k->agent = a;
    k->o = *o;
    k->o.addon_name = o->addon_name ?: "dynamic-scoring";
    if (agent_kube_has_cluster(o))
        k->cluster = kube_new(state->loop, state->http, "cluster", o->managed_kubeconfig);
    set_names(k);
    if (o->hub_kubeconfig && !o->once)
        k->hub = kube_new(state->loop, state->http, "hub", o->hub_kubeconfig);
    if (k->cluster && secrets)
        k->secrets = (struct secrets){.namespace = k->namespace, .look = secrets_look, .read = secrets_read};
    watch.namespace = k->configmap_namespace;
    watch.name = k->configmap_name;
    if (k->cluster)
        k->configmap = kube_watch_new(k->cluster, &watch);
    leader_start(k);
    agent_add_sink(a, &k->sink);
    return k;
}

struct agent_kube *agent_kube_free(struct agent_kube *k)
{
    if (!k)
        return NULL;
    k->lease = kube_lease_free(k->lease);
    leader_end(k);
    k->configmap = kube_watch_free(k->configmap);
    json_decref(k->first);
    loop_timer_clear(kube_agent_loop(k), &k->once);
    secrets_sync(k, &(struct summaries){0});
    map_done(&k->watched);
    k->hub = kube_free(k->hub);
    k->cluster = kube_free(k->cluster);
    free(k->namespace);
    free(k->configmap_namespace);
    free(k->configmap_name);
    free(k->owner);
    free(k->shown);
    free(k);
    return NULL;
}

struct kube *agent_kube_cluster(struct agent_kube *k)
{
    return k ? k->cluster : NULL;
}

struct secrets *agent_kube_secrets(struct agent_kube *k)
{
    return k->secrets.read ? &k->secrets : NULL;
}

int agent_kube_start(struct agent_kube *k)
{
    if (k->o.once && k->cluster)
        return 0;
    /* Not yet in the ConfigMap's name: nobody should take its absence for an empty list. */
    return k->cluster ? agent_apply_no_summaries(k->agent) : agent_reload(k->agent, NULL);
}

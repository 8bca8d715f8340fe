/* Writes each answer from its view into the caller's buffer. Owns nothing, and changes nothing of the hub but
 * that it may ask it to count. On the loop. */
#include "controller/hub/pages/hub_json.h"

#include "controller/hub/follows/adjusted.h"
#include "controller/hub/follows/condition.h"
#include "controller/hub/follows/config_status.h"
#include "controller/hub/follows/counts.h"
#include "controller/hub/follows/health.h"
#include "controller/hub/follows/masks.h"
#include "controller/hub/follows/pairs.h"
#include "controller/hub/follows/scorer_status.h"
#include "controller/hub/follows/target.h"
#include "controller/hub/observed/cluster.h"
#include "controller/hub/observed/config.h"
#include "controller/hub/observed/object.h"
#include "controller/hub/observed/observed.h"
#include "controller/hub/observed/scorer.h"
#include "controller/hub/probe/probe.h"
#include "controller/hub/probe/probe_reason.h"
#include "controller/hub/probe/probe_status.h"
#include "controller/hub/rules/effective.h"
#include "controller/hub/rules/pair.h"
#include "controller/hub/rules/plan.h"
#include "controller/hub/rules/report.h"
#include "controller/hub/rules/spec.h"
#include "controller/hub/rules/work.h"
#include "controller/hub/written/statuses.h"
#include "controller/kube/condition.h"
#include "controller/kube/json.h"
#include "controller/kube/time.h"
#include "controller/placement/adjust.h"
#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/escape.h"
#include "exporter/base/loop.h"
#include "exporter/base/map.h"
#include "exporter/http/http.h"
#include "exporter/metric/metrics.h"
#include "exporter/ui/list.h"
#include "exporter/ui/member.h"

#include <errno.h>
#include <stdio.h>

/* A state as programs and people read it. severity: "error", "warning", "pending", "none" or "ok". */
struct words {
    const char *word, *label, *severity;
};

static void item_begin(struct buf *o)
{
    member_item(o);
    buf_puts(o, "{");
}

/* v: NULL for `otherwise`, which is JSON. */
static void member_json(struct buf *o, const char *key, const json_t *v, const char *otherwise)
{
    member(o, key);
    if (!v)
        buf_puts(o, otherwise);
    else
        kube_json_print(v, o);
}

static void member_words_of(struct buf *o, const struct words *w)
{
    member_text(o, "state", w->word);
    member_text(o, "label", w->label);
    member_text(o, "severity", w->severity);
}

/* ---- What every answer of the hub's API begins with ---- */

static void json_begin(struct buf *o, const struct answer_view *v)
{
    const struct hub_options *options = v->f.o;

    hub_ask_for_counts(v->hub);
    buf_puts(o, "{");
    member_text(o, "role", "controller");
    member_time(o, "now", loop_wall(options->loop).ms);
    member_text(o, "version", ds_version);
    member_text(o, "revision", ds_revision);
    member_text(o, "namespace", options->namespace);
    member_text(o, "agentNamespace", options->agent_namespace);
    member_text(o, "identity", options->identity);
    member_bool(o, "leading", v->self.is_leading);
    member_words(o, "holder", v->self.holder);
    member_bool(o, "synced", observed_has_listed_all(v->f.seen));
    member_time(o, "startedAt", v->self.started_ms);
    member_object(o, "troubles");
    for (enum hub_kind kind = 0; kind < HUB_KINDS; kind++)
        member_text(o, hub_kind_word(kind), observed_error(v->f.seen, kind));
    member_text(o, "Lease", v->self.lease_error);
    buf_puts(o, "}");
}

static int json_end(struct buf *o, const struct list *l)
{
    list_metadata(o, "metadata", l);
    buf_puts(o, "}\n");
    return buf_failed(o);
}

/* ---- One scorer on one cluster ---- */

/* PAIR_BEHIND where that explains it. */
static enum pair_state pair_shown(const struct fleet *f, const struct hub_scorer *s,
                                  const struct hub_cluster *c)
{
    struct pair_facts facts;

    return pair_state_shown(fleet_pair_state(f, s, c, &facts), c->write.is_late);
}

static void pair_state_members(struct buf *o, enum pair_state p)
{
    member_words_of(o, &(struct words){pair_info[p].word, pair_info[p].label, pair_info[p].severity});
}

/* With the number of pairs in each, those without any left out; without counts, all of them. */
static void pair_state_list(struct buf *o, const char *key, const size_t *counts)
{
    member_list(o, key);
    for (enum pair_state p = 0; p < PAIR_STATES; p++) {
        if (counts && counts[p] == 0)
            continue;
        item_begin(o);
        pair_state_members(o, p);
        if (counts)
            member_count(o, "count", counts[p]);
        buf_puts(o, "}");
    }
    buf_puts(o, "]");
}

/* key: "cluster" or "scorer", of which `name` is. */
static void pair_item(struct buf *o, const struct fleet *f, const char *key, const char *name,
                      const struct hub_scorer *s, const struct hub_cluster *c)
{
    struct pair_facts facts;
    enum pair_state state = fleet_pair_state(f, s, c, &facts);
    enum pair_state shown = pair_state_shown(state, c->write.is_late);
    char reason[PAIR_REASON_BYTES];

    pair_reason(reason, shown, &facts);
    item_begin(o);
    member_text(o, key, name);
    pair_state_members(o, shown);
    member_bool(o, "scores", pair_info[state].class == PAIR_CLASS_SCORING);
    member_words(o, "error", reason);
    buf_puts(o, "}");
}

static bool pair_matches(const struct list_query *q, enum pair_state p)
{
    return list_has_state(q, pair_info[p].word) || list_has_state(q, pair_info[p].label);
}

/* ---- Scorers ---- */

enum { URL_BYTES = 64 << 10 };

enum scorer_view_state { SCORER_NOT_READY, SCORER_UNKNOWN, SCORER_DEGRADED, SCORER_READY };

static const struct words scorer_words[] = {
    [SCORER_NOT_READY] = {"notReady", "not ready", "error"},
    [SCORER_UNKNOWN] = {"unknown", "unknown", "pending"},
    [SCORER_DEGRADED] = {"degraded", "degraded", "warning"},
    [SCORER_READY] = {"ready", "ready", "ok"},
};

/* A scorer as it is shown. */
struct view {
    json_t *status;               /* a reference; on a standby, as the leader wrote it */
    const char *ready;            /* of its condition Ready: "True", "False" or "Unknown" */
    enum scorer_view_state state; /* by Ready; SCORER_DEGRADED when ready, but something about it fails */
};

/* Ready, but something about it fails. */
static bool scorer_is_degraded(const struct fleet *f, const struct hub_scorer *s)
{
    const struct probe_status *p = probe_status(s->probe);
    const struct tally *t = counts_of(f->counts, s);

    if (*s->spec_error || s->last_status.status.last_error || s->share.older || s->share.younger)
        return true;
    if ((p->probe.asked && !p->probe.ok) || (p->config.asked && !p->config.ok))
        return true;
    return t->no_room || tally_refusing(t) || (t->named.n && t->named.ranks[0] != RANK_PENDING);
}

/* Only the leader probes and counts: on a standby, what the leader wrote is all there is. */
static json_t *view_status(const struct answer_view *v, const struct hub_scorer *s)
{
    CLEANUP(contest_done) struct contest contest = scorer_contest(s);

    return v->self.is_leading ? status_of_scorer(&v->f, s, &contest)
                              : json_incref(kube_map(s->object, "status", NULL));
}

static struct view view_of(const struct answer_view *v, const struct hub_scorer *s)
{
    struct view view = {.status = view_status(v, s)};

    view.ready = kube_str(kube_condition(view.status, "Ready"), "status", NULL) ?: "Unknown";
    if (strcmp(view.ready, "False") == 0)
        view.state = SCORER_NOT_READY;
    else if (strcmp(view.ready, "True") != 0)
        view.state = SCORER_UNKNOWN;
    else if (scorer_is_degraded(&v->f, s))
        view.state = SCORER_DEGRADED;
    else
        view.state = SCORER_READY;
    return view;
}

static void view_done(struct view *v)
{
    json_decref(v->status);
}

static void scorers_make(struct list *ret, const struct answer_view *v)
{
    const struct scorers *all = &v->f.seen->scorers;
    const struct list_query *q = ret->query;
    bool by_state = *q->state || q->worst_first; /* else only listed scorers need theirs, which costs time */

    for (size_t i = 0; i < all->n; i++) {
        const struct hub_scorer *s = all->by_age[i];
        CLEANUP(view_done) struct view view = {0};

        if (!list_matches(q, s->name, s->effective.score_name))
            continue;
        if (by_state)
            view = view_of(v, s);
        if (list_has_state(q, scorer_words[view.state].word))
            list_add(ret, s->name, view.state, s);
    }
    list_sort(ret);
}

static void scorer_probe_part(struct buf *o, const char *key, const struct probe_part *p,
                              const struct history *h, bool with_history)
{
    static const char *const names[] = {"seconds", NULL};

    if (!member_object_if(o, key, p->asked))
        return;
    member_bool(o, "ok", p->ok);
    member_text(o, "reason", probe_reason_word(p->reason));
    member_words(o, "message", p->message);
    member_count(o, "failures", p->failures);
    member_number(o, "seconds", p->seconds);
    member_time(o, "at", p->at_ms);
    if (with_history)
        member_history(o, h, names);
    buf_puts(o, "}");
}

static const char *scorer_sync_mode(const struct hub_scorer *s)
{
    if (!s->has_spec)
        return NULL;
    return s->spec.mode == SYNC_FULL ? "Full" : "None";
}

static const char *scorer_source_word(const struct hub_scorer *s)
{
    if (!s->has_spec)
        return NULL;
    return s->spec.mode == SYNC_FULL && s->effective.source == CONFIG_FROM_API ? "api" : "spec";
}

/* Where it is, and where it does not score. */
static void scorer_clusters(struct buf *o, const struct fleet *f, const struct hub_scorer *s)
{
    const struct tally *t = counts_of(f->counts, s);

    member_object(o, "clusters");
    for (size_t i = 0; i < TALLY_FIELDS; i++)
        member_count(o, tally_fields[i].key, tally_count(t, i));
    buf_puts(o, "}");
    member_list(o, "failingClusters");
    for (size_t i = 0; i < t->named.n; i++)
        pair_item(o, f, "name", t->named.list[i]->name, s, t->named.list[i]);
    buf_puts(o, "]");
}

static void json_scorer_members(struct buf *o, const struct answer_view *v, const void *scorer,
                                bool with_history)
{
    const struct hub_scorer *s = scorer;
    CLEANUP(view_done) struct view view = view_of(v, s);
    /* Of the same score or AddOnPlacementScore. */
    const struct hub_scorer *same = s->share.older ?: s->share.younger;
    const struct effective *e = &s->effective;
    const struct probe_status *p = probe_status(s->probe);
    const char *health = kube_str(view.status, "healthStatus", NULL);

    member_text(o, "name", s->name);
    member_text(o, "scoreName", e->score_name);
    member_words_of(o, &scorer_words[view.state]);
    member_text(o, "ready", view.ready);
    member_text(o, "healthCheck", s->has_spec ? health_check_word(s->spec.health_check) : NULL);
    member_text(o, "health", health ?: probe_health_word(HEALTH_UNKNOWN));
    member_text(o, "configSyncMode", scorer_sync_mode(s));
    member_text(o, "source", scorer_source_word(s));
    member_number(o, "intervalSeconds", (double)e->interval_ms / 1000);
    member_words(o, "specError", s->spec_error);
    member_words(o, "summaryError", e->error);
    member_bool(o, "summaryInUse", effective_usable(e));
    member_bool(o, "summaryPending", e->reason == EFFECTIVE_WAITING);
    member_words(o, "statusError", s->last_status.status.last_error);
    member_text(o, "sameScoreAs", same ? same->name : NULL);
    member_bool(o, "sameScoreIsOlder", s->share.older);
    member_bool(o, "sameObject", scorer_shares_object(s));
    scorer_probe_part(o, "probe", &p->probe, p->history[PROBE_HEALTH], with_history);
    scorer_probe_part(o, "configProbe", &p->config, p->history[PROBE_CONFIG], with_history);
    member_time(o, "nextProbeAt", p->next_ms);
    scorer_clusters(o, &v->f, s);
    member_json(o, "conditions", kube_list(view.status, "conditions", NULL), "[]");
}

/* "scorers":[...] or "clusters":[...], with the members of each. */
static void json_list(struct buf *o, const struct answer_view *v, const char *key, const struct list *l,
                      void (*members)(struct buf *o, const struct answer_view *v, const void *what,
                                      bool with_history))
{
    member_list(o, key);
    for (size_t i = 0; i < l->n; i++) {
        item_begin(o);
        members(o, v, l->items[i].what, l->query->with_history);
        buf_puts(o, "}");
    }
    buf_puts(o, "]");
}

int hub_json_scorers(const struct answer_view *v, const struct list_query *q, struct buf *into)
{
    CLEANUP(list_done) struct list l = {.query = q};

    scorers_make(&l, v);
    json_begin(into, v);
    json_list(into, v, "scorers", &l, json_scorer_members);
    return json_end(into, &l);
}

/* ---- One scorer ---- */

/* Leaves user and password out of the URLs of a summary and of its sources. */
static void summary_clean(json_t *summary)
{
    const char *key;
    json_t *value;
    size_t i;
    void *next;

    json_object_foreach_safe(summary, next, key, value)
    {
        BUF_AUTO(url, URL_BYTES);

        if (strcmp(key, "sourceEndpoint") != 0 && strcmp(key, "scoringEndpoint") != 0)
            continue;
        http_url_for_people(kube_text(value, NULL), &url);
        json_object_set_new(summary, key, json_stringn(cstr(url.p), url.n));
    }
    json_array_foreach(kube_list(summary, "sources", NULL), i, value)
    {
        summary_clean(value);
    }
}

int hub_json_scorer(const struct answer_view *v, const char *name, const struct list_query *q,
                    struct buf *into)
{
    CLEANUP(list_done) struct list l = {.query = q};
    const struct hub_scorer *s = scorers_find(&v->f.seen->scorers, name);
    size_t by_state[PAIR_STATES] = {0};
    const struct hub_cluster *c;
    json_auto_t *summary = NULL;

    if (!s)
        return -ENOENT;
    for (size_t at = 0; v->self.is_leading && (c = map_next(&v->f.seen->clusters.by_name, &at));) {
        enum pair_state state = pair_shown(&v->f, s, c);

        if (!c->managed)
            continue;
        by_state[state]++;
        if (list_matches(q, c->name, NULL) && pair_matches(q, state))
            list_add(&l, c->name, state, c);
    }
    list_sort(&l);
    json_begin(into, v);
    json_scorer_members(into, v, s, true);
    summary = kube_json_load(buf_str(&s->effective.text));
    summary_clean(summary);
    member_json(into, "summary", summary, "null");
    pair_state_list(into, "states", by_state);
    member_list(into, "pairs");
    for (size_t i = 0; i < l.n; i++)
        pair_item(into, &v->f, "cluster", l.items[i].name, s, l.items[i].what);
    buf_puts(into, "]");
    return json_end(into, &l);
}

/* ---- Clusters ---- */

enum cluster_state {
    CLUSTER_NOT_WRITTEN,
    CLUSTER_NOT_APPLIED,
    CLUSTER_UNAVAILABLE,
    CLUSTER_FAILING, /* at least one scorer fails */
    CLUSTER_AGENT_TROUBLE,
    CLUSTER_BEHIND,
    CLUSTER_OK
};

static const struct words cluster_words[] = {
    [CLUSTER_NOT_WRITTEN] = {"notWritten", "not written", "error"},
    [CLUSTER_NOT_APPLIED] = {"notApplied", "not applied", "error"},
    [CLUSTER_UNAVAILABLE] = {"unavailable", "not available", "warning"},
    [CLUSTER_FAILING] = {"failing", "failing", "error"},
    [CLUSTER_AGENT_TROUBLE] = {"agentTrouble", "agent in trouble", "warning"},
    [CLUSTER_BEHIND] = {"behind", "behind", "warning"},
    [CLUSTER_OK] = {"ok", "ok", "ok"},
};

/* The number of scorers that fail there, by its agent's report. */
static size_t cluster_failing(const struct hub_cluster *c)
{
    size_t n = 0;

    for (uint32_t i = 0; i < c->report.n; i++)
        n += report_cell_fails(&c->report.cells[i]);
    return n;
}

/* The worst that is wrong with a cluster. */
static enum cluster_state cluster_state(const struct hub_cluster *c)
{
    if (cluster_write_error(c))
        return CLUSTER_NOT_WRITTEN;
    if (c->unapplied)
        return CLUSTER_NOT_APPLIED;
    if (c->managed && (c->unavailable || c->addon_unavailable))
        return CLUSTER_UNAVAILABLE;
    if (c->managed && cluster_failing(c))
        return CLUSTER_FAILING;
    if (c->managed && c->report.exists && (c->report.problem || !c->report.config_ok))
        return CLUSTER_AGENT_TROUBLE;
    if (c->managed && c->addon_namespace)
        return CLUSTER_AGENT_TROUBLE;
    return c->write.is_late ? CLUSTER_BEHIND : CLUSTER_OK;
}

/* managed_only: those that get a ManifestWork. */
static void clusters_make(struct list *ret, const struct answer_view *v, bool managed_only)
{
    const struct list_query *q = ret->query;
    const struct hub_cluster *c;

    for (size_t at = 0; (c = map_next(&v->f.seen->clusters.by_name, &at));) {
        enum cluster_state state = cluster_state(c);

        if ((c->managed || !managed_only) && list_matches(q, c->name, NULL) &&
            list_has_state(q, cluster_words[state].word))
            list_add(ret, c->name, state, c);
    }
    list_sort(ret);
}

/* Of a large fleet in trouble, the reasons of all pairs would be many megabytes. */
enum { FAILING_NAMED = 3, REASONS_MAX = 1000 };

/* The first few scorers that fail, by its agent's report. */
static void cluster_failing_scorers(struct buf *o, const struct fleet *f, const struct hub_cluster *c,
                                    size_t failing)
{
    const struct scorers *all = &f->seen->scorers;
    size_t named = 0;

    member_list(o, "failingScorers");
    for (size_t i = 0; i < all->n && named < size_min(failing, FAILING_NAMED); i++) {
        const struct report_cell *cell = fleet_pair_cell(f, all->by_age[i], c);

        if (!cell || !report_cell_fails(cell))
            continue;
        pair_item(o, f, "scorer", all->by_age[i]->name, all->by_age[i], c);
        named++;
    }
    buf_puts(o, "]");
}

static void json_cluster_members(struct buf *o, const struct answer_view *v, const void *cluster,
                                 bool with_history)
{
    const struct hub_cluster *c = cluster;
    int64_t behind_ms = c->write.is_late ? mono_diff(c->write.late_since, v->f.now) : 0;
    size_t failing = cluster_failing(c);

    (void)with_history;
    member_text(o, "name", c->name);
    member_words_of(o, &cluster_words[cluster_state(c)]);
    member_bool(o, "managed", c->managed);
    member_bool(o, "leaving", c->leaving);
    member_bool(o, "behind", c->write.is_late);
    member_number(o, "behindSeconds", (double)behind_ms / 1000);
    member_count(o, "failures", c->write.object.failures);
    member_words(o, "error", cluster_write_error(c) ?: c->unapplied);
    member_object(o, "work");
    member_bool(o, "exists", c->work.exists);
    member_bool(o, "deleting", c->work.deleting);
    member_bool(o, "ours", c->work.ours);
    member_bool(o, "applied", c->work.applied);
    member_words(o, "writeError", cluster_write_error(c));
    member_words(o, "applyError", c->unapplied);
    buf_puts(o, "}");
    member_count(o, "scorers", c->group ? c->group->scorers : 0);
    member_count(o, "summariesBytes", c->group ? c->group->bytes : 0);
    member_count(o, "leftOut", c->group ? c->group->left_out : 0);
    member_bool(o, "applied", c->work.applied);
    member_bool(o, "reported", c->report.exists);
    member_count(o, "reportedScorers", c->report.n + c->report.not_shown);
    member_count(o, "failing", failing);
    cluster_failing_scorers(o, &v->f, c, failing);
    member_bool(o, "configurationAccepted", c->report.config_ok);
    member_text(o, "agentTrouble", c->report.problem);
    member_text(o, "unavailable", c->unavailable);
    member_text(o, "addonUnavailable", c->addon_unavailable);
    member_text(o, "addonNamespace", c->addon_namespace);
}

int hub_json_clusters(const struct answer_view *v, const struct list_query *q, struct buf *into)
{
    CLEANUP(list_done) struct list l = {.query = q};

    clusters_make(&l, v, false);
    json_begin(into, v);
    json_list(into, v, "clusters", &l, json_cluster_members);
    return json_end(into, &l);
}

/* ---- One cluster ---- */

int hub_json_cluster(const struct answer_view *v, const char *name, const struct list_query *q,
                     struct buf *into)
{
    CLEANUP(list_done) struct list l = {.query = q};
    const struct hub_cluster *c = clusters_find(&v->f.seen->clusters, name);
    const struct scorers *all = &v->f.seen->scorers;

    if (!c)
        return -ENOENT;
    for (size_t i = 0; v->self.is_leading && c->managed && i < all->n; i++) {
        const struct hub_scorer *s = all->by_age[i];
        enum pair_state state = pair_shown(&v->f, s, c);

        if (list_matches(q, s->name, s->effective.score_name) && pair_matches(q, state))
            list_add(&l, s->name, state, s);
    }
    list_sort(&l);
    json_begin(into, v);
    json_cluster_members(into, v, c, false);
    member_list(into, "pairs");
    for (size_t i = 0; i < l.n; i++)
        pair_item(into, &v->f, "scorer", l.items[i].name, l.items[i].what, c);
    buf_puts(into, "]");
    return json_end(into, &l);
}

/* ---- Clusters × scorers ---- */

/* A row has, for each scorer, the index of its state in the legend. */
static void pairs_row(struct buf *o, const struct fleet *f, const struct list *scorers,
                      const struct hub_cluster *c, size_t *reasons_left)
{
    item_begin(o);
    member_text(o, "name", c->name);
    member_list(o, "states");
    for (size_t i = 0; i < scorers->n; i++) {
        member_item(o);
        value_number(o, (double)pair_shown(f, scorers->items[i].what, c));
    }
    buf_puts(o, "]");
    member_object(o, "errors");
    for (size_t i = 0; i < scorers->n && *reasons_left; i++) {
        struct pair_facts facts;
        enum pair_state state = fleet_pair_state(f, scorers->items[i].what, c, &facts);
        enum pair_state shown = pair_state_shown(state, c->write.is_late);
        char reason[PAIR_REASON_BYTES];

        if (!pair_info[shown].has_reason)
            continue;
        pair_reason(reason, shown, &facts);
        member_text(o, scorers->items[i].name, reason);
        (*reasons_left)--;
    }
    buf_puts(o, "}}");
}

int hub_json_pairs(const struct answer_view *v, const struct list_query *q, struct buf *into)
{
    const struct list_query all = list_query_all();
    CLEANUP(list_done) struct list clusters = {.query = q}, scorers = {.query = &all};
    const struct scorers *all_scorers = &v->f.seen->scorers;
    size_t reasons_left = REASONS_MAX;

    for (size_t i = 0; i < all_scorers->n; i++)
        list_add(&scorers, all_scorers->by_age[i]->name, 0, all_scorers->by_age[i]);
    list_sort(&scorers);
    if (v->self.is_leading)
        clusters_make(&clusters, v, true);
    json_begin(into, v);
    pair_state_list(into, "legend", NULL);
    member_list(into, "scorers");
    for (size_t i = 0; i < scorers.n; i++) {
        member_item(into);
        buf_put_json(into, str_of(scorers.items[i].name));
    }
    buf_puts(into, "]");
    member_list(into, "clusters");
    for (size_t i = 0; i < clusters.n; i++)
        pairs_row(into, &v->f, &scorers, clusters.items[i].what, &reasons_left);
    buf_puts(into, "]");
    return json_end(into, &clusters);
}

/* ---- The overview: the controller, its configuration, totals, and the first scorers and clusters ---- */

enum { MASKS_LISTED = 50, WARNING_BYTES = 800 };

static void status_mask(struct buf *o, const struct fleet *f, size_t i)
{
    const struct mask *m = &f->seen->configs.used.masks.list[i];

    item_begin(o);
    member_text(o, "clusterName", m->cluster);
    member_text(o, "scoreName", m->score);
    if (masks_are_counted(f)) {
        BUF_AUTO(warning, WARNING_BYTES);

        mask_warning(&warning, f->plan, i);
        buf_putc(&warning, '\0');
        member_count(o, "clusters", f->plan->of_masks[i].clusters);
        member_count(o, "scores", f->plan->of_masks[i].scores);
        member_words(o, "warning", warning.p);
    }
    buf_puts(o, "}");
}

static void status_masks(struct buf *o, const struct fleet *f)
{
    size_t n = f->seen->configs.used.masks.n;

    member_count(o, "masks", n);
    member_list(o, "firstMasks");
    for (size_t i = 0; i < size_min(n, MASKS_LISTED); i++)
        status_mask(o, f, i);
    buf_puts(o, "]");
}

static void status_adjustment(struct buf *o, const struct fleet *f, size_t i)
{
    const struct adjustment *a = &f->seen->configs.used.adjustments.list[i].what;
    char until[KUBE_TIME_BYTES] = "", since[KUBE_TIME_BYTES] = "";

    if (adjustments_are_counted(f) && !adjustment_is_idle(f, i))
        kube_time_format(adjustment_since(f, &f->seen->configs.used, i), since);
    if (a->until.ms)
        kube_time_format(a->until, until);
    item_begin(o);
    member_text(o, "name", a->name);
    member_text(o, "clusterName", f->seen->configs.used.adjustments.list[i].cluster);
    member_text(o, "scoreName", a->score);
    member_number(o, a->how == ADJUST_SET ? "set" : "add", a->value);
    member_words(o, "until", until);
    member_words(o, "reason", a->reason);
    if (adjustments_are_counted(f)) {
        BUF_AUTO(warning, WARNING_BYTES);

        adjustment_warning(&warning, f, i);
        buf_putc(&warning, '\0');
        member_count(o, "clusters", f->plan->of_adjustments[i].clusters);
        member_count(o, "scores", adjustment_scores(f->plan, i));
        member_count(o, "withoutItems", counts_without_items(f->counts, f->plan, i));
        member_words(o, "since", since);
        member_words(o, "warning", warning.p);
    }
    buf_puts(o, "}");
}

static void status_config(struct buf *o, const struct fleet *f)
{
    const struct configs *configs = &f->seen->configs;
    const struct hub_config *other;
    size_t at = 0;

    member_object(o, "config");
    member_text(o, "name", HUB_CONFIG);
    member_bool(o, "present", configs->used.object);
    member_bool(o, "wanted", configs_distribute(configs));
    status_masks(o, f);
    member_list(o, "adjustments");
    for (size_t i = 0; i < configs->used.adjustments.n; i++)
        status_adjustment(o, f, i);
    buf_puts(o, "]");
    member_words(o, "error", config_error(&configs->used));
    member_words(o, "statusError", configs->used.last_status.status.last_error);
    member_list(o, "ignored");
    while ((other = map_next(&configs->others, &at))) {
        member_item(o);
        buf_put_json(o, str_of(kube_name(other->object)));
    }
    buf_puts(o, "]}");
}

static void status_totals(struct buf *o, const struct fleet *f)
{
    const struct hub_totals *t = &f->counts->totals;
    const struct scorers *scorers = &f->seen->scorers;
    size_t by_health[HEALTH_STATES] = {0};

    for (size_t i = 0; i < scorers->n; i++)
        by_health[scorer_health(f, scorers->by_age[i])]++;
    member_object(o, "totals");
    member_count(o, "scorers", scorers->n);
    member_count(o, "healthy", by_health[HEALTH_ACTIVE]);
    member_count(o, "degraded", by_health[HEALTH_DEGRADED]);
    member_count(o, "unhealthy", by_health[HEALTH_INACTIVE]);
    member_count(o, "clusters", t->managed);
    member_count(o, "upToDate", t->up_to_date);
    member_count(o, "behind", t->behind);
    member_count(o, "failing", t->failing);
    member_number(o, "lagSeconds", t->lag_s);
    member_count(o, "works", t->works.total);
    member_count(o, "leaving", t->leaving);
    member_count(o, "reporting", t->reporting);
    member_count(o, "scoringAll", t->scoring_all);
    member_count(o, "withFailures", t->with_failures);
    member_count(o, "largestSummariesBytes", t->largest);
    member_count(o, "maxSummariesBytes", WORK_MAX_BYTES);
    member_count(o, "leftOut", t->left_out);
    buf_puts(o, "}");
}

int hub_json_status(const struct answer_view *v, const struct list_query *q, struct buf *into)
{
    CLEANUP(list_done) struct list scorers = {.query = q}, clusters = {.query = q};

    scorers_make(&scorers, v);
    clusters_make(&clusters, v, false);
    json_begin(into, v);
    status_config(into, &v->f);
    member_web_config(into, v->self.access);
    status_totals(into, &v->f);
    json_list(into, v, "scorers", &scorers, json_scorer_members);
    json_list(into, v, "clusters", &clusters, json_cluster_members);
    member_object(into, "metadata");
    list_metadata(into, "scorers", &scorers);
    list_metadata(into, "clusters", &clusters);
    buf_puts(into, "}}\n");
    return buf_failed(into);
}

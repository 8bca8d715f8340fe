#include "controller/hub/pages/view.h"

#include "controller/hub/probe/probe.h"
#include "controller/hub/rules/pair.h"
#include "controller/hub/rules/report.h"
#include "controller/hub/state/state.h"
#include "controller/hub/state/status.h"
#include "controller/kube/json.h"
#include "exporter/base/loop.h"
#include "exporter/base/map.h"
#include "exporter/ui/out.h"

#include <errno.h>

static const struct probe_status not_probed;

void view_refresh_counts(struct hub *h)
{
    if (!h->tallied)
        hub_schedule_tally(h);
}

/* ---- Scorers ---- */

const struct view_words view_scorer_words[] = {
    [VIEW_NOT_READY] = {"notReady", "not ready", "error"},
    [VIEW_UNKNOWN] = {"unknown", "unknown", "pending"},
    [VIEW_DEGRADED] = {"degraded", "degraded", "warning"},
    [VIEW_READY] = {"ready", "ready", "ok"},
};

static const char *scorer_ready(const json_t *status)
{
    const char *ready = kube_str(kube_condition(status, "Ready"), "status", NULL);

    return ready ? ready : "Unknown";
}

static const char *scorer_health(const json_t *status)
{
    return kube_str(status, "healthStatus", NULL) ?: health_word(HEALTH_UNKNOWN);
}

static bool scorer_is_degraded(const struct view_scorer *v)
{
    const struct hub_scorer *s = v->s;
    const struct probe_status *p = v->probe;

    return *s->spec_error || *s->last_status.status.trouble || s->older || s->younger || s->tally.failing ||
           (s->tally.n_named && !pair_is_pending(s->tally.named[0].pair)) || s->tally.no_room ||
           (p->probe.asked && !p->probe.ok) || (p->config.asked && !p->config.ok);
}

int view_scorer_make(struct view_scorer *ret, const struct hub_scorer *s)
{
    struct view_scorer v = {.s = s, .probe = s->probe ? probe_status(s->probe) : &not_probed};

    /* Only the leader probes and counts: on a standby, what the leader wrote is all there is. */
    if (s->hub->leading)
        v.status = status_of_scorer(s, loop_wall(s->hub->o.loop));
    else
        v.status = json_incref(kube_map(s->object, "status", NULL));
    if (s->hub->leading && !v.status)
        return -ENOMEM;
    v.ready = scorer_ready(v.status);
    v.health = scorer_health(v.status);
    v.state = strcmp(v.ready, "False") == 0  ? VIEW_NOT_READY
              : strcmp(v.ready, "True") != 0 ? VIEW_UNKNOWN
              : scorer_is_degraded(&v)       ? VIEW_DEGRADED
                                             : VIEW_READY;
    *ret = v;
    return 0;
}

void view_scorer_done(struct view_scorer *s)
{
    json_decref(s->status);
    s->status = NULL;
}

int view_scorers_make(struct view_scorers *ret, struct hub *h, const struct list_query *q)
{
    bool by_state = *q->state || q->worst_first; /* else only listed scorers need theirs, which costs time */
    int r = 0;

    ret->list.query = q;
    ret->all = xcalloc(h->n_scorers + 1, sizeof(*ret->all));
    for (size_t i = 0; r == 0 && i < h->n_scorers; i++) {
        struct view_scorer *v = &ret->all[ret->n];

        if (!list_matches(q, h->by_age[i]->name, h->by_age[i]->effective.score_name))
            continue;
        v->s = h->by_age[i];
        r = by_state ? view_scorer_make(v, v->s) : 0;
        ret->n++;
        if (r == 0 && list_has_state(q, view_scorer_words[v->state].word))
            list_add(&ret->list, v->s->name, v->state, v);
    }
    list_sort(&ret->list);
    for (size_t i = 0; r == 0 && !by_state && i < ret->list.n; i++) {
        struct view_scorer *v = &ret->all[(const struct view_scorer *)ret->list.items[i].what - ret->all];

        r = view_scorer_make(v, v->s);
    }
    return r;
}

void view_scorers_done(struct view_scorers *v)
{
    for (size_t i = 0; i < v->n; i++)
        view_scorer_done(&v->all[i]);
    free(v->all);
    list_done(&v->list);
}

/* ---- Clusters ---- */

const struct view_words view_cluster_words[] = {
    [CLUSTER_NOT_WRITTEN] = {"notWritten", "not written", "error"},
    [CLUSTER_NOT_APPLIED] = {"notApplied", "not applied", "error"},
    [CLUSTER_UNAVAILABLE] = {"unavailable", "not available", "warning"},
    [CLUSTER_FAILING] = {"failing", "failing", "error"},
    [CLUSTER_AGENT_TROUBLE] = {"agentTrouble", "agent in trouble", "warning"},
    [CLUSTER_BEHIND] = {"behind", "behind", "warning"},
    [CLUSTER_OK] = {"ok", "ok", "ok"},
};

size_t view_cluster_failing(const struct hub_cluster *c)
{
    size_t n = 0;

    for (uint32_t i = 0; i < c->report.n; i++)
        n += report_cell_fails(&c->report.cells[i]);
    return n;
}

enum view_cluster_state view_cluster_state(const struct hub_cluster *c)
{
    if (*c->write.trouble)
        return CLUSTER_NOT_WRITTEN;
    if (*c->work.why)
        return CLUSTER_NOT_APPLIED;
    if (c->managed && (c->unavailable || c->addon_unavailable))
        return CLUSTER_UNAVAILABLE;
    if (c->managed && view_cluster_failing(c))
        return CLUSTER_FAILING;
    if (c->managed && c->report.exists && (c->report.problem || !c->report.config_ok))
        return CLUSTER_AGENT_TROUBLE;
    return c->behind ? CLUSTER_BEHIND : CLUSTER_OK;
}

/* To count what fails on each cluster costs more than the rest: only queries by state need it. */
static int clusters_add(struct list *l, const struct hub_cluster *c)
{
    const struct list_query *q = l->query;
    enum view_cluster_state state = CLUSTER_OK;

    if (!list_matches(q, c->name, NULL))
        return 0;
    if (*q->state || q->worst_first)
        state = view_cluster_state(c);
    if (list_has_state(q, view_cluster_words[state].word))
        list_add(l, c->name, state, c);
    return 0;
}

int view_clusters(struct list *ret, struct hub *h, bool managed_only)
{
    const struct hub_cluster *c;
    size_t at = 0;
    int r = 0;

    while (r == 0 && (c = map_next(&h->clusters, &at)))
        r = c->managed || !managed_only ? clusters_add(ret, c) : 0;
    list_sort(ret);
    return r;
}

/* ---- Pairs ---- */

const struct report_cell *view_report(const struct hub_scorer *s, const struct hub_cluster *c)
{
    return hub_pair_is_selected(s, c) ? report_find(&c->report, s->hub->entry_scores[s->entry]) : NULL;
}

enum pair_state view_pair(const struct hub_scorer *s, const struct hub_cluster *c)
{
    return pair_state_shown(hub_pair_state(s, c, view_report(s, c), !c->behind), c->behind);
}

void view_state_members(struct out *o, enum pair_state p)
{
    member_text(o, "state", pair_info[p].word);
    member_text(o, "label", pair_info[p].label);
    member_text(o, "severity", pair_info[p].severity);
}

void view_pair_members(struct out *o, const struct hub_scorer *s, const struct hub_cluster *c)
{
    const struct report_cell *cell = view_report(s, c);
    enum pair_state state = hub_pair_state(s, c, cell, !c->behind);
    enum pair_state shown = pair_state_shown(state, c->behind);
    char reason[PAIR_REASON_BYTES];

    hub_pair_reason(reason, shown, c, cell);
    view_state_members(o, shown);
    member_bool(o, "scores", pair_info[state].class == PAIR_CLASS_SCORING);
    member_words(o, "error", reason);
}

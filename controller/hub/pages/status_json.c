/* /api/v1/status of the controller. Names are camelCase and stay; times are RFC 3339 in UTC, null for never; lengths of time are in
 * seconds. Scorers and clusters come by their names, and all of them come. */
#include "controller/hub/pages/status_page.h"

#include "controller/hub/pages/status_view.h"
#include "exporter/agent/status_members.h"
#include "exporter/metric/version.h"

#include <errno.h>

/* null for an empty one. */
static void words(struct out *o, const char *key, const char *text)
{
    member_text(o, key, *text ? text : NULL);
}

static void troubles(struct out *o, const struct hub *h)
{
    const char *kind, *lease = h->lease ? kube_lease_trouble(h->lease) : NULL;
    const struct kube_watch *w;

    member_object(o, "troubles");
    for (size_t i = 0; view_watch(h, i, &kind, &w); i++)
        member_text(o, kind, kube_watch_trouble(w));
    member_text(o, "Lease", lease);
    out_puts(o, "}");
}

static void config(struct out *o, struct hub *h)
{
    const struct hub_config *other;
    size_t at = 0;

    member_object(o, "config");
    member_truth(o, "present", h->config.object);
    member_truth(o, "wanted", hub_is_distributing(h));
    member_count(o, "masks", h->config.masks.n);
    words(o, "error", h->config.masks_error);
    words(o, "statusError", h->config.write_error);
    member(o, "ignored");
    out_puts(o, "[");
    while ((other = map_next(&h->other_configs, &at))) {
        member_item(o);
        value_text(o, str_of(kube_name(other->object)));
    }
    out_puts(o, "]}");
}

static void totals(struct out *o, const struct view *v)
{
    const struct hub_totals *t = &v->h->totals;
    size_t by_health[HEALTH_INACTIVE + 1] = {0};

    for (size_t i = 0; i < v->n_scorers; i++)
        by_health[v->scorers[i].probe->health]++;
    member_object(o, "totals");
    member_count(o, "scorers", v->n_scorers);
    member_count(o, "healthy", by_health[HEALTH_ACTIVE]);
    member_count(o, "unhealthy", by_health[HEALTH_INACTIVE]);
    member_count(o, "clusters", t->managed);
    member_count(o, "upToDate", t->up_to_date);
    member_count(o, "behind", t->behind);
    member_count(o, "failing", t->failing);
    member_number(o, "lagSeconds", t->lag_s);
    member_count(o, "works", t->works);
    member_count(o, "leaving", t->leaving);
    member_count(o, "reporting", t->reporting);
    member_count(o, "scoringAll", t->scoring_all);
    member_count(o, "withFailures", t->with_failures);
    member_count(o, "largestSummariesBytes", t->largest);
    member_count(o, "leftOut", t->left_out);
    out_puts(o, "}");
}

static void probe(struct out *o, const char *key, const struct probe_part *p)
{
    if (!p->asked) {
        member_text(o, key, NULL);
        return;
    }
    member_object(o, key);
    member_truth(o, "ok", p->ok);
    member_text(o, "reason", p->reason);
    words(o, "message", p->message);
    member_count(o, "failures", p->failures);
    member_number(o, "seconds", p->seconds);
    member_moment(o, "at", p->at_ms);
    out_puts(o, "}");
}

static void pair(struct out *o, const char *key, const char *name, const struct hub_scorer *s,
                 const struct hub_cluster *c)
{
    struct view_pair p;

    view_pair_of(&p, s, c);
    member_item(o);
    out_puts(o, "{");
    member_text(o, key, name);
    member_text(o, "state", pair_info[p.cell].word);
    member_truth(o, "scores", p.scores);
    words(o, "error", p.why);
    out_puts(o, "}");
}

static void scorer_clusters(struct out *o, const struct hub_scorer *s)
{
    const struct tally *t = &s->tally;

    member_object(o, "clusters");
    member_count(o, "selected", t->selected);
    member_count(o, "upToDate", t->up_to_date);
    member_count(o, "applied", t->applied);
    member_count(o, "scoring", t->scoring);
    member_count(o, "failing", t->failing);
    member_count(o, "waiting", t->waiting);
    member_count(o, "silent", t->silent);
    member_count(o, "noRoom", t->no_room);
    out_puts(o, "}");
    member(o, "failingClusters");
    out_puts(o, "[");
    for (size_t i = 0; i < t->n_named; i++)
        pair(o, "name", t->named[i].cluster->name, s, t->named[i].cluster);
    out_puts(o, "]");
}

/* As they are in the object's status. */
static void conditions(struct out *o, const struct view_scorer *s)
{
    const json_t *list = kube_list(s->status, "conditions", NULL);

    member(o, "conditions");
    if (list && o->error == 0)
        o->error = kube_json_print(list, o->b);
    if (!list)
        out_puts(o, "[]");
}

static void scorer_members(struct out *o, const struct view_scorer *s)
{
    static const char *const ready[] = {"False", "Unknown", "True"};
    static const char *const health[] = {"Unknown", "Active", "Inactive"};
    const struct hub_scorer *h = s->s;

    member_text(o, "name", h->name);
    member_text(o, "scoreName", h->effective.score_name);
    member_text(o, "ready", ready[s->ready]);
    member_text(o, "health", health[s->probe->health]);
    member_text(o, "source",
                !h->has_spec                                                          ? NULL
                : h->spec.mode == SYNC_FULL && h->effective.source == CONFIG_FROM_API ? "api"
                                                                                      : "spec");
    member_number(o, "intervalSeconds", (double)h->effective.interval_ms / 1000);
    words(o, "specError", h->spec_error);
    words(o, "summaryError", h->effective.why);
    words(o, "statusError", h->write_error);
    member_text(o, "sameScoreAs", h->older ? h->older->name : h->younger ? h->younger->name : NULL);
    probe(o, "probe", &s->probe->probe);
    probe(o, "configProbe", &s->probe->config);
    member_moment(o, "nextProbeAt", s->probe->next_ms);
    scorer_clusters(o, h);
    conditions(o, s);
}

static void cluster_members(struct out *o, const struct view *v, const struct hub_cluster *c)
{
    member_text(o, "name", c->name);
    member_truth(o, "managed", c->managed);
    member_truth(o, "behind", c->behind);
    member_number(o, "behindSeconds", (double)view_behind_ms(v, c) / 1000);
    member_count(o, "failures", c->failures);
    words(o, "error", c->failures ? c->write_error : c->work.why);
    member_count(o, "scorers", c->group ? c->group->scorers : 0);
    member_count(o, "summariesBytes", c->group ? c->group->bytes : 0);
    member_count(o, "leftOut", c->group ? c->group->left_out : 0);
    member_truth(o, "applied", c->work.applied);
    member_truth(o, "reported", c->report.there);
    member_count(o, "failing", view_cluster_failing(c));
    member_text(o, "agentTrouble", c->report.trouble);
    member_text(o, "unavailable", c->unavailable);
}

static void controller(struct out *o, const struct hub *h)
{
    member_text(o, "version", ds_version);
    member_text(o, "revision", ds_revision);
    member_text(o, "namespace", h->o.namespace);
    member_text(o, "identity", h->o.identity);
    member_truth(o, "leading", h->leading);
    words(o, "holder", h->lease ? kube_lease_holder(h->lease) : cstr(h->o.identity));
    member_truth(o, "synced", hub_synced(h));
    member_moment(o, "startedAt", h->started_ms);
    troubles(o, h);
}

int hub_json(struct hub *h, struct buf *into)
{
    CLEANUP(view_done) struct view v = {0};
    struct out o = out_begin(into);

    o.error = view_make(&v, h, false);
    if (o.error)
        return o.error;
    out_puts(&o, "{");
    controller(&o, h);
    config(&o, h);
    totals(&o, &v);
    member(&o, "scorers");
    out_puts(&o, "[");
    for (size_t i = 0; i < v.n_scorers; i++) {
        member_item(&o);
        out_puts(&o, "{");
        scorer_members(&o, &v.scorers[i]);
        out_puts(&o, "}");
    }
    out_puts(&o, "]");
    member(&o, "clusters");
    out_puts(&o, "[");
    for (size_t i = 0; i < v.n_clusters; i++) {
        member_item(&o);
        out_puts(&o, "{");
        cluster_members(&o, &v, v.clusters[i]);
        out_puts(&o, "}");
    }
    out_puts(&o, "]}\n");
    return out_end(&o);
}

/* What it has of the list of all, and then its pairs. A standby knows of none. */
static void begin_one(struct out *o, const struct hub *h)
{
    out_puts(o, "{");
    member_truth(o, "leading", h->leading);
}

int hub_json_scorer(struct hub *h, const char *name, struct buf *into)
{
    CLEANUP(view_done) struct view v = {0};
    struct out o = out_begin(into);
    const struct view_scorer *s;
    int r = view_make(&v, h, false);

    if (r < 0)
        return r;
    s = view_scorer_find(&v, name);
    if (!s)
        return -ENOENT;
    begin_one(&o, h);
    scorer_members(&o, s);
    member(&o, "pairs");
    out_puts(&o, "[");
    for (size_t i = 0; h->leading && i < v.n_clusters; i++)
        if (v.clusters[i]->managed)
            pair(&o, "cluster", v.clusters[i]->name, s->s, v.clusters[i]);
    out_puts(&o, "]}\n");
    return out_end(&o);
}

int hub_json_cluster(struct hub *h, const char *name, struct buf *into)
{
    CLEANUP(view_done) struct view v = {0};
    const struct hub_cluster *c = map_get(&h->clusters, name);
    struct out o = out_begin(into);
    int r = c ? view_make(&v, h, false) : -ENOENT;

    if (r < 0)
        return r;
    begin_one(&o, h);
    cluster_members(&o, &v, c);
    member(&o, "pairs");
    out_puts(&o, "[");
    for (size_t i = 0; h->leading && c->managed && i < v.n_scorers; i++)
        pair(&o, "scorer", v.scorers[i].s->name, v.scorers[i].s, c);
    out_puts(&o, "]}\n");
    return out_end(&o);
}

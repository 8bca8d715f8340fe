/* Clusters in the hub's JSON, and clusters × scorers. */
#include "controller/hub/pages/json.h"
#include "controller/hub/pages/json_members.h"
#include "controller/hub/pages/view.h"
#include "controller/hub/rules/pair.h"
#include "controller/hub/rules/report.h"
#include "controller/hub/rules/work.h"
#include "controller/hub/state/hub_pair.h"
#include "controller/hub/state/state.h"
#include "exporter/base/clock.h"
#include "exporter/base/loop.h"
#include "exporter/base/map.h"
#include "exporter/ui/members.h"
#include "exporter/ui/out.h"

#include <errno.h>

/* Of a large fleet in trouble, the reasons of all pairs would be many megabytes. */
enum { FAILING_NAMED = 3, REASONS_MAX = 1000 };

/* The first few scorers that fail, by its agent's report. */
static void cluster_failing_scorers(struct out *o, const struct hub_cluster *c, size_t failing)
{
    const struct hub *h = c->hub;
    size_t named = 0;

    member_list(o, "failingScorers");
    for (size_t i = 0; i < h->n_scorers && named < size_min(failing, FAILING_NAMED); i++) {
        const struct report_cell *cell = view_report(h->by_age[i], c);

        if (!cell || !report_cell_fails(cell))
            continue;
        member_item(o);
        out_puts(o, "{");
        member_text(o, "scorer", h->by_age[i]->name);
        view_pair_members(o, h->by_age[i], c);
        out_puts(o, "}");
        named++;
    }
    out_puts(o, "]");
}

static void cluster_work(struct out *o, const struct hub_cluster *c)
{
    const struct work_found *w = &c->work;

    member_object(o, "work");
    member_bool(o, "exists", w->exists);
    member_bool(o, "deleting", w->deleting);
    member_bool(o, "ours", w->ours);
    member_bool(o, "applied", w->applied);
    member_words(o, "writeError", c->write_error);
    member_words(o, "applyError", w->why);
    out_puts(o, "}");
}

void json_cluster_members(struct out *o, const struct hub_cluster *c)
{
    const struct view_words *words = &view_cluster_words[view_cluster_state(c)];
    int64_t behind_ms = c->behind ? mono_diff(c->behind_since, loop_now(c->hub->o.loop)) : 0;
    size_t failing = view_cluster_failing(c);

    member_text(o, "name", c->name);
    member_text(o, "state", words->word);
    member_text(o, "label", words->label);
    member_text(o, "severity", words->severity);
    member_bool(o, "managed", c->managed);
    member_bool(o, "leaving", c->leaving);
    member_bool(o, "behind", c->behind);
    member_number(o, "behindSeconds", (double)behind_ms / 1000);
    member_count(o, "failures", c->failures);
    member_words(o, "error", *c->write_error ? c->write_error : c->work.why);
    cluster_work(o, c);
    member_count(o, "scorers", c->group ? c->group->scorers : 0);
    member_count(o, "summariesBytes", c->group ? c->group->bytes : 0);
    member_count(o, "leftOut", c->group ? c->group->left_out : 0);
    member_bool(o, "applied", c->work.applied);
    member_bool(o, "reported", c->report.exists);
    member_count(o, "reportedScorers", c->report.n + c->report.not_shown);
    member_count(o, "failing", failing);
    cluster_failing_scorers(o, c, failing);
    member_bool(o, "configurationAccepted", c->report.config_ok);
    member_text(o, "agentTrouble", c->report.problem);
    member_text(o, "unavailable", c->unavailable);
    member_text(o, "addonUnavailable", c->addon_unavailable);
}

void json_cluster_list(struct out *o, const struct list *l)
{
    member_list(o, "clusters");
    for (size_t i = 0; i < l->n; i++) {
        member_item(o);
        out_puts(o, "{");
        json_cluster_members(o, l->items[i].what);
        out_puts(o, "}");
    }
    out_puts(o, "]");
}

int hub_json_clusters(struct hub *h, const struct list_query *q, struct buf *into)
{
    CLEANUP(list_done) struct list l = {.query = q};
    struct out o = out_begin(into);

    view_refresh_counts(h);
    o.error = view_clusters(&l, h, false);
    out_puts(&o, "{");
    json_begin(&o, h);
    json_cluster_list(&o, &l);
    list_metadata(&o, "metadata", &l);
    out_puts(&o, "}\n");
    return out_end(&o);
}

/* ---- One cluster ---- */

static int cluster_choose(struct list *l, const struct hub_cluster *c)
{
    const struct hub *h = c->hub;
    int r = 0;

    for (size_t i = 0; r == 0 && i < h->n_scorers; i++) {
        const struct hub_scorer *s = h->by_age[i];
        enum pair_state state = view_pair(s, c);

        if (list_matches(l->query, s->name, s->effective.score_name) &&
            (list_has_state(l->query, pair_info[state].word) ||
             list_has_state(l->query, pair_info[state].label)))
            r = list_add(l, s->name, state, s);
    }
    list_sort(l);
    return r;
}

int hub_json_cluster(struct hub *h, const char *name, const struct list_query *q, struct buf *into)
{
    CLEANUP(list_done) struct list l = {.query = q};
    const struct hub_cluster *c = map_get(&h->clusters, name);
    struct out o = out_begin(into);

    if (!c)
        return -ENOENT;
    view_refresh_counts(h);
    if (h->leading && c->managed)
        o.error = cluster_choose(&l, c);
    out_puts(&o, "{");
    json_begin(&o, h);
    json_cluster_members(&o, c);
    member_list(&o, "pairs");
    for (size_t i = 0; i < l.n; i++) {
        member_item(&o);
        out_puts(&o, "{");
        member_text(&o, "scorer", l.items[i].name);
        view_pair_members(&o, l.items[i].what, c);
        out_puts(&o, "}");
    }
    out_puts(&o, "]");
    list_metadata(&o, "metadata", &l);
    out_puts(&o, "}\n");
    return out_end(&o);
}

/* ---- Clusters × scorers ---- */

static void pairs_legend(struct out *o)
{
    member_list(o, "legend");
    for (size_t i = 0; i < PAIR_STATES; i++) {
        member_item(o);
        out_puts(o, "{");
        view_state_members(o, (enum pair_state)i);
        out_puts(o, "}");
    }
    out_puts(o, "]");
}

static void pairs_reasons(struct out *o, const struct list *scorers, const struct hub_cluster *c,
                          const enum pair_state *states, size_t *left)
{
    char reason[PAIR_REASON_BYTES];

    member_object(o, "errors");
    for (size_t i = 0; i < scorers->n; i++) {
        if (!pair_info[states[i]].has_reason || *left == 0)
            continue;
        hub_pair_reason(reason, states[i], c, view_report(scorers->items[i].what, c));
        member_text(o, scorers->items[i].name, reason);
        (*left)--;
    }
    out_puts(o, "}");
}

/* A row has, for each scorer, the index of its state in the legend. */
static void pairs_row(struct out *o, const struct list *scorers, const struct hub_cluster *c,
                      enum pair_state *states, size_t *reasons_left)
{
    member_item(o);
    out_puts(o, "{");
    member_text(o, "name", c->name);
    member_list(o, "states");
    for (size_t i = 0; i < scorers->n; i++) {
        states[i] = view_pair(scorers->items[i].what, c);
        member_item(o);
        value_number(o, (double)states[i]);
    }
    out_puts(o, "]");
    pairs_reasons(o, scorers, c, states, reasons_left);
    out_puts(o, "}");
}

int hub_json_pairs(struct hub *h, const struct list_query *q, struct buf *into)
{
    const struct list_query all = list_query_all();
    CLEANUP(list_done) struct list clusters = {.query = q}, scorers = {.query = &all};
    CLEANUP(cleanup_free) enum pair_state *states = calloc(h->n_scorers + 1, sizeof(*states));
    struct out o = out_begin(into);
    size_t reasons_left = REASONS_MAX;

    view_refresh_counts(h);
    o.error = states ? 0 : -ENOMEM;
    for (size_t i = 0; o.error == 0 && i < h->n_scorers; i++)
        o.error = list_add(&scorers, h->by_age[i]->name, 0, h->by_age[i]);
    list_sort(&scorers);
    if (o.error == 0 && h->leading)
        o.error = view_clusters(&clusters, h, true);
    if (o.error)
        return o.error;
    out_puts(&o, "{");
    json_begin(&o, h);
    pairs_legend(&o);
    member_list(&o, "scorers");
    for (size_t i = 0; i < scorers.n; i++) {
        member_item(&o);
        value_text(&o, str_of(scorers.items[i].name));
    }
    out_puts(&o, "]");
    member_list(&o, "clusters");
    for (size_t i = 0; i < clusters.n; i++)
        pairs_row(&o, &scorers, clusters.items[i].what, states, &reasons_left);
    out_puts(&o, "]");
    list_metadata(&o, "metadata", &clusters);
    out_puts(&o, "}\n");
    return out_end(&o);
}

/* Scorers in the hub's JSON. */
#include "controller/hub/pages/json.h"
#include "controller/hub/pages/json_members.h"
#include "controller/hub/pages/view.h"
#include "controller/hub/probe/probe.h"
#include "controller/hub/rules/effective.h"
#include "controller/hub/rules/pair.h"
#include "controller/hub/rules/spec.h"
#include "controller/hub/state/state.h"
#include "controller/kube/json.h"
#include "exporter/base/buf.h"
#include "exporter/base/json.h"
#include "exporter/base/map.h"
#include "exporter/ui/history.h"
#include "exporter/ui/members.h"
#include "exporter/ui/out.h"

#include <errno.h>

enum { URL_BYTES = 64 << 10 };

static void scorer_probe_part(struct out *o, const char *key, const struct probe_part *p,
                              const struct history *h, bool with_history)
{
    static const char *const names[] = {"seconds", NULL};

    if (!p->asked) {
        member_text(o, key, NULL);
        return;
    }
    member_object(o, key);
    member_bool(o, "ok", p->ok);
    member_text(o, "reason", p->reason);
    member_words(o, "message", p->message);
    member_count(o, "failures", p->failures);
    member_number(o, "seconds", p->seconds);
    member_time(o, "at", p->at_ms);
    if (with_history)
        member_history(o, h, names);
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
    member_list(o, "failingClusters");
    for (size_t i = 0; i < t->n_named; i++) {
        member_item(o);
        out_puts(o, "{");
        member_text(o, "name", t->named[i].cluster->name);
        view_pair_members(o, s, t->named[i].cluster);
        out_puts(o, "}");
    }
    out_puts(o, "]");
}

/* As they are in the object's status. */
static void scorer_conditions(struct out *o, const json_t *status)
{
    const json_t *list = kube_list(status, "conditions", NULL);

    member(o, "conditions");
    if (list && o->error == 0)
        o->error = kube_json_print(list, o->b);
    if (!list)
        out_puts(o, "[]");
}

/* The other scorer of the same score name or AddOnPlacementScore. */
static void scorer_same_score(struct out *o, const struct hub_scorer *s)
{
    const struct hub_scorer *other = s->older ? s->older : s->younger;

    member_text(o, "sameScoreAs", other ? other->name : NULL);
    member_bool(o, "sameScoreIsOlder", s->older);
    member_bool(o, "sameObject", other && hub_scorer_shares_object(s));
}

void json_scorer_members(struct out *o, const struct view_scorer *v, bool with_history)
{
    const struct hub_scorer *s = v->s;
    const struct effective *e = &s->effective;
    const struct probe_status *p = v->probe;

    member_text(o, "name", s->name);
    member_text(o, "scoreName", e->score_name);
    member_text(o, "state", view_scorer_words[v->state].word);
    member_text(o, "label", view_scorer_words[v->state].label);
    member_text(o, "severity", view_scorer_words[v->state].severity);
    member_text(o, "ready", v->ready);
    member_text(o, "healthCheck", s->has_spec ? health_check_word(s->spec.health_check) : NULL);
    member_text(o, "health", v->health);
    member_text(o, "configSyncMode", !s->has_spec ? NULL : s->spec.mode == SYNC_FULL ? "Full" : "None");
    member_text(o, "source",
                !s->has_spec                                                ? NULL
                : s->spec.mode == SYNC_FULL && e->source == CONFIG_FROM_API ? "api"
                                                                            : "spec");
    member_number(o, "intervalSeconds", (double)e->interval_ms / 1000);
    member_words(o, "specError", s->spec_error);
    member_words(o, "summaryError", e->error);
    member_bool(o, "summaryInUse", effective_usable(e));
    member_bool(o, "summaryPending", e->reason == EFFECTIVE_WAITING);
    member_words(o, "statusError", s->write_error);
    scorer_same_score(o, s);
    scorer_probe_part(o, "probe", &p->probe, p->history[PROBE_HEALTH], with_history);
    scorer_probe_part(o, "configProbe", &p->config, p->history[PROBE_CONFIG], with_history);
    member_time(o, "nextProbeAt", p->next_ms);
    scorer_clusters(o, s);
    scorer_conditions(o, v->status);
}

void json_scorer_list(struct out *o, const struct view_scorers *v)
{
    member_list(o, "scorers");
    for (size_t i = 0; i < v->list.n; i++) {
        member_item(o);
        out_puts(o, "{");
        json_scorer_members(o, v->list.items[i].what, v->list.query->with_history);
        out_puts(o, "}");
    }
    out_puts(o, "]");
}

int hub_json_scorers(struct hub *h, const struct list_query *q, struct buf *into)
{
    CLEANUP(view_scorers_done) struct view_scorers v = {0};
    struct out o = out_begin(into);

    view_refresh_counts(h);
    o.error = view_scorers_make(&v, h, q);
    out_puts(&o, "{");
    json_begin(&o, h);
    json_scorer_list(&o, &v);
    list_metadata(&o, "metadata", &v.list);
    out_puts(&o, "}\n");
    return out_end(&o);
}

/* ---- One scorer ---- */

/* The summary that agents get, as it is but for user and password in its URLs. */
static void scorer_summary_text(struct out *o, const struct buf *text)
{
    struct jr j;
    struct str key, value;

    if (text->n == 0) {
        member_text(o, "summary", NULL);
        return;
    }
    member_object(o, "summary");
    jr_init(&j, buf_str(text), JR_STRICT);
    jr_object(&j);
    while (jr_member(&j, &key)) {
        BUF_AUTO(url, URL_BYTES);
        char name[64];
        char *to;

        if (jr_peek(&j) != JR_STRING || key.n >= sizeof(name) || key.n < 8 ||
            memcmp(key.p + key.n - 8, "Endpoint", 8) != 0) {
            jr_skip(&j, &value);
            out_puts(o, o->b->n && o->b->p[o->b->n - 1] == '{' ? "\"" : ",\"");
            out_str(o, key);
            out_puts(o, "\":");
            out_str(o, value);
            continue;
        }
        memcpy(name, key.p, key.n);
        name[key.n] = '\0';
        jr_string(&j, &value);
        if (o->error == 0)
            o->error = buf_room(&url, 3 * value.n + 1, &to);
        if (o->error == 0) {
            to[jr_unescape(value, to)] = '\0';
            member_url(o, name, to);
        }
    }
    out_puts(o, "}");
}

static int scorer_choose(struct list *l, size_t by_state[PAIR_STATES], const struct hub_scorer *s)
{
    const struct hub_cluster *c;
    size_t at = 0;
    int r = 0;

    while (r == 0 && (c = map_next(&s->hub->clusters, &at))) {
        enum pair_state state;

        if (!c->managed)
            continue;
        state = view_pair(s, c);
        by_state[state]++;
        if (list_matches(l->query, c->name, NULL) && (list_has_state(l->query, pair_info[state].word) ||
                                                      list_has_state(l->query, pair_info[state].label)))
            r = list_add(l, c->name, state, c);
    }
    list_sort(l);
    return r;
}

static void scorer_states(struct out *o, const size_t by_state[PAIR_STATES])
{
    member_list(o, "states");
    for (size_t i = 0; i < PAIR_STATES; i++) {
        if (by_state[i] == 0)
            continue;
        member_item(o);
        out_puts(o, "{");
        view_state_members(o, (enum pair_state)i);
        member_count(o, "count", by_state[i]);
        out_puts(o, "}");
    }
    out_puts(o, "]");
}

static void scorer_pairs(struct out *o, const struct list *l, const struct hub_scorer *s)
{
    member_list(o, "pairs");
    for (size_t i = 0; i < l->n; i++) {
        const struct hub_cluster *c = l->items[i].what;

        member_item(o);
        out_puts(o, "{");
        member_text(o, "cluster", c->name);
        view_pair_members(o, s, c);
        out_puts(o, "}");
    }
    out_puts(o, "]");
}

int hub_json_scorer(struct hub *h, const char *name, const struct list_query *q, struct buf *into)
{
    CLEANUP(view_scorer_done) struct view_scorer v = {0};
    CLEANUP(list_done) struct list l = {.query = q};
    const struct hub_scorer *s = hub_scorer_find(h, name);
    struct out o = out_begin(into);
    size_t by_state[PAIR_STATES] = {0};

    if (!s)
        return -ENOENT;
    view_refresh_counts(h);
    o.error = view_scorer_make(&v, s);
    if (o.error == 0 && h->leading)
        o.error = scorer_choose(&l, by_state, s);
    if (o.error)
        return o.error;
    out_puts(&o, "{");
    json_begin(&o, h);
    json_scorer_members(&o, &v, true);
    scorer_summary_text(&o, &s->effective.text);
    scorer_states(&o, by_state);
    scorer_pairs(&o, &l, s);
    list_metadata(&o, "metadata", &l);
    out_puts(&o, "}\n");
    return out_end(&o);
}

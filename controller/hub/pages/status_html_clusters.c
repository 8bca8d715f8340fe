/* Clusters on the hub's page: all of a small fleet, and of any those that need someone's attention. */
#include "controller/hub/pages/status_view.h"

#include "controller/hub/state/hub_pair.h"

#include <errno.h>

enum { SHOWN_MOST = 100, SCORERS_MOST = 3 };

static const struct look {
    const char *class, *word;
} looks[] = {
    [TROUBLE_WRITE] = {"failing", "not written"},
    [TROUBLE_APPLY] = {"failing", "not applied"},
    [TROUBLE_AWAY] = {"empty", "not available"},
    [TROUBLE_SCORING] = {"failing", "failing"},
    [TROUBLE_REPORT] = {"empty", "agent in trouble"},
    [TROUBLE_BEHIND] = {"empty", "behind"},
    [TROUBLE_NONE] = {"ok", "no trouble"},
};

void view_html_trouble(struct out *o, enum view_trouble t)
{
    html_badge(o, looks[t].class, looks[t].word);
}

/* The clusters in trouble of one kind after the other, each kind by name. */
struct pick {
    const struct hub_cluster *shown[SHOWN_MOST];
    enum view_trouble trouble[SHOWN_MOST];
    size_t n, in_all;
};

static int choose(struct pick *p, const struct view *v)
{
    CLEANUP(cleanup_free) unsigned char *troubles = malloc(v->n_clusters + 1);

    if (!troubles)
        return -ENOMEM;
    for (size_t i = 0; i < v->n_clusters; i++) {
        troubles[i] = (unsigned char)view_cluster_trouble(v->clusters[i]);
        p->in_all += troubles[i] != TROUBLE_NONE;
    }
    for (enum view_trouble t = TROUBLE_WRITE; t < TROUBLE_NONE; t++)
        for (size_t i = 0; i < v->n_clusters && p->n < SHOWN_MOST; i++)
            if (troubles[i] == t) {
                p->trouble[p->n] = t;
                p->shown[p->n++] = v->clusters[i];
            }
    return 0;
}

static void line(struct out *o, const char *what, const char *text)
{
    html(o, "<p>%s", what);
    if (*text)
        html(o, ": <bdi>%s</bdi>", text);
    html(o, "</p>");
}

static void failing_scorers(struct out *o, const struct view *v, const struct hub_cluster *c)
{
    size_t failing = 0;

    for (size_t i = 0; i < v->n_scorers; i++) {
        const struct hub_scorer *s = v->scorers[i].s;
        const struct report_cell *report = view_report(s, c);
        char why[PAIR_REASON_BYTES];

        if (!report || !report_cell_fails(report) || failing++ >= SCORERS_MOST)
            continue;
        hub_pair_reason(why, report->placement ? PAIR_NOT_PLACED : PAIR_FAILING, c, report);
        html(o, "<p>");
        view_html_link(o, VIEW_SCORER, s->name);
        html(o, " %s: <bdi>%s</bdi></p>",
             report->placement ? "has no placement score" : scorer_state_word(report->state), why);
    }
    if (failing <= SCORERS_MOST)
        return;
    html(o, "<p class=\"soft\">and <a href=\"");
    view_put_url(o, VIEW_CLUSTER, c->name);
    html(o, "\">%zu more</a></p>", failing - SCORERS_MOST);
}

static void lines(struct out *o, const struct view *v, const struct hub_cluster *c)
{
    char behind[STATUS_WORD];

    if (c->failures)
        line(o,
             c->leaving || !c->managed ? "Its ManifestWork cannot be deleted"
                                       : "Its ManifestWork cannot be written",
             c->write_error);
    if (*c->work.why)
        line(o, "The work agent cannot apply it", c->work.why);
    if (c->unavailable)
        line(o, "The cluster is not available", c->unavailable);
    failing_scorers(o, v, c);
    if (c->report.there && !c->report.config_ok)
        line(o, "The agent refuses its configuration", cstr(c->report.trouble));
    else if (c->report.there && c->report.trouble)
        line(o, "The agent says", c->report.trouble);
    if (c->behind) {
        status_duration(view_behind_ms(v, c), behind);
        html(o, "<p class=\"soft\">behind for %s%s", behind, c->leaving ? ", being deleted" : "");
        if (c->failures > 1)
            html(o, ", %zu writes failed in a row", (size_t)c->failures);
        html(o, "</p>");
    }
}

static void row(struct out *o, const struct view *v, const struct hub_cluster *c, enum view_trouble t)
{
    html(o, "<tr><td class=\"is\">");
    view_html_trouble(o, t);
    html(o, "</td><th scope=\"row\">");
    view_html_link(o, VIEW_CLUSTER, c->name);
    html(o, "</th><td class=\"wide\">");
    lines(o, v, c);
    html(o, "</td></tr>\n");
}

static void attention(struct out *o, const struct view *v, const struct pick *p)
{
    html(o, "<div class=\"card scorers troubles\"><table><caption class=\"unseen\">Clusters that need "
            "attention</caption><thead><tr><th scope=\"col\">State</th><th scope=\"col\">Cluster</th><th "
            "scope=\"col\">What is wrong</th></tr></thead><tbody>\n");
    for (size_t i = 0; i < p->n; i++)
        row(o, v, p->shown[i], p->trouble[i]);
    html(o, "</tbody></table>\n");
    if (p->in_all > p->n) {
        html(o, "<p class=\"soft more\">and ");
        html_count(o, p->in_all - p->n);
        html(o, " more, not shown here: <a href=\"/api/v1/status\">/api/v1/status</a> has all</p>\n");
    }
    html(o, "</div>\n");
}

void view_html_clusters(struct out *o, const struct view *v)
{
    struct pick p = {.n = 0};

    if (!v->h->leading)
        return;
    if (o->error == 0)
        o->error = choose(&p, v);
    html(o, "<h2 id=\"clusters\">Clusters</h2>\n");
    if (view_matrix_fits(v))
        view_html_matrix(o, v);
    if (v->h->totals.managed == 0)
        html(o, "<div class=\"card\"><p>No ManagedCluster is accepted by this hub yet.</p></div>\n");
    if (p.in_all) {
        attention(o, v, &p);
    } else if (v->h->totals.managed) {
        html(o, "<div class=\"card\"><p>All clusters are up to date, and no agent reports a failing "
                "scorer.</p></div>\n");
    }
}

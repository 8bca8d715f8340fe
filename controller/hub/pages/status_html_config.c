/* The DynamicScoringConfig on the hub's page, and what comes of it. */
#include "controller/hub/pages/status_view.h"

enum { MASKS_MOST = 50 };

static void config_notes(struct out *o, const struct hub *h)
{
    const struct hub_config *c, *own = &h->config;
    size_t at = 0;

    if (*own->masks_error)
        view_html_note(o, true, "Its masks cannot be used; the ones before stay in force", own->masks_error);
    if (*own->write_error)
        view_html_note(o, true, "Its status cannot be written", own->write_error);
    while ((c = map_next(&h->other_configs, &at)))
        html(
            o,
            "<div class=\"note\"><p><b><bdi>%s</bdi> does not count</b>: only the DynamicScoringConfig named "
            "<code>" HUB_CONFIG "</code> does.</p></div>\n",
            kube_name(c->object));
}

static void count_fact(struct out *o, const char *what, size_t n)
{
    html_fact(o, what);
    html_count(o, n);
    html_fact_end(o);
}

static void size_fact(struct out *o, const struct hub_totals *t)
{
    char largest[STATUS_WORD], most[STATUS_WORD];

    status_bytes(t->largest, largest);
    status_bytes(WORK_MAX_BYTES, most);
    html_fact(o, "Largest summaries");
    html(o, "%s<span class=\"soft\">of %s</span>", largest, most);
    html_fact_end(o);
}

static void left_out_fact(struct out *o, size_t n)
{
    html_fact(o, "Left out for lack of room");
    if (n)
        html(o, "<b class=\"state failing\">%zu %s</b>", n, n == 1 ? "scorer" : "scorers");
    else
        html(o, "none");
    html_fact_end(o);
}

static void facts(struct out *o, const struct hub *h)
{
    html(o, "<dl class=\"facts\">\n");
    html_fact(o, "DynamicScoringConfig");
    if (h->config.object)
        html(o, "<code>" HUB_CONFIG "</code><span class=\"soft\">%s</span>",
             hub_is_distributing(h) ? "in force" : "being deleted");
    else
        html(o, "none");
    html_fact_end(o);
    count_fact(o, "Masks", h->config.masks.n);
    size_fact(o, &h->totals);
    left_out_fact(o, h->totals.left_out);
    count_fact(o, "ManifestWorks", h->totals.works);
    if (h->totals.leaving)
        count_fact(o, "Still to be removed", h->totals.leaving);
    count_fact(o, "Clusters that report", h->totals.reporting);
    html_fact(o, "Agents' namespace");
    html(o, "<code><bdi>%s</bdi></code>", cstr(h->o.agent_namespace));
    html_fact_end(o);
    html(o, "</dl>\n");
}

static void masks(struct out *o, const struct masks *m)
{
    if (m->n == 0)
        return;
    html(o, "<table class=\"limits\"><caption>Masks: these clusters do not compute these "
            "scores</caption><thead><tr><th scope=\"col\">Cluster</th><th "
            "scope=\"col\">Score</th></tr></thead><tbody>\n");
    for (size_t i = 0; i < size_min(m->n, MASKS_MOST); i++)
        html(o, "<tr><td><code><bdi>%s</bdi></code></td><td><code><bdi>%s</bdi></code></td></tr>\n",
             cstr(m->list[i].cluster), cstr(m->list[i].score));
    html(o, "</tbody></table>\n");
    if (m->n > MASKS_MOST)
        html(o, "<p class=\"soft\">and %zu more</p>\n", m->n - MASKS_MOST);
}

void view_html_config(struct out *o, const struct view *v)
{
    html(o, "<h2 id=\"config\">Configuration</h2>\n<section class=\"card\" aria-labelledby=\"config\">\n");
    config_notes(o, v->h);
    facts(o, v->h);
    masks(o, &v->h->config.masks);
    html(o, "</section>\n");
}

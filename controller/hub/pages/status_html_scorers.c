/* All scorers on the hub's page, those in trouble first. */
#include "controller/hub/pages/status_view.h"

enum { UNFOLDED_MOST = 8 };

const char *view_source_words(const struct view_scorer *s)
{
    if (!s->s->has_spec)
        return "–";
    if (s->s->spec.mode == SYNC_NONE)
        return "spec";
    return s->s->effective.source == CONFIG_FROM_API ? "/config" : "spec, no /config yet";
}

void view_html_ready(struct out *o, enum view_ready ready)
{
    static const char *const classes[] = {"failing", "waiting", "ok"};
    static const char *const words[] = {"not ready", "unknown", "ready"};

    html_badge(o, classes[ready], words[ready]);
}

static void name_cell(struct out *o, const struct view_scorer *s)
{
    const char *score_name = s->s->effective.score_name;

    html(o, "<th scope=\"row\">");
    view_html_link(o, VIEW_SCORER, s->s->name);
    if (score_name && strcmp(score_name, s->s->name) != 0)
        html(o, "<span class=\"under\"><bdi>%s</bdi></span>", score_name);
    html(o, "</th>");
}

static void health_cell(struct out *o, const struct view_scorer *s)
{
    const struct probe_part *p = &s->probe->probe;

    html(o, "<td data-what=\"Health\">%s", view_health_word(s->probe->health));
    if (p->asked && !p->ok)
        html(o, "<span class=\"under\">%s</span>", p->reason);
    html(o, "</td>");
}

/* Only the leader counts. */
static void count_cell(struct out *o, const struct view *v, const char *what, bool bad, uint64_t n)
{
    html(o, "<td class=\"n%s\" data-what=\"%s\">", bad && n ? " bad" : "", what);
    if (v->h->leading)
        html_count(o, n);
    else
        html(o, "–");
    html(o, "</td>");
}

static void probe_cell(struct out *o, const struct view *v, const struct view_scorer *s)
{
    const struct probe_part *p = &s->probe->probe;
    char when[STATUS_WORD], took[STATUS_WORD];

    status_when(v->now_ms, p->at_ms, when);
    status_seconds(p->seconds, took);
    html(o, "<td class=\"n\" data-what=\"Last asked\">%s", p->asked ? when : "–");
    if (p->asked)
        html(o, "<span class=\"under\">%s</span>", took);
    html(o, "</td>");
}

static void row(struct out *o, const struct view *v, const struct view_scorer *s)
{
    const struct tally *t = &s->s->tally;

    html(o, "<tr><td class=\"is\">");
    view_html_ready(o, s->ready);
    html(o, "</td>");
    name_cell(o, s);
    health_cell(o, s);
    html(o, "<td data-what=\"Configuration\">%s</td>", view_source_words(s));
    count_cell(o, v, "Clusters", false, t->selected);
    count_cell(o, v, "Up to date", false, t->up_to_date);
    count_cell(o, v, "Scoring", false, t->scoring);
    count_cell(o, v, "Failing", true, t->failing);
    probe_cell(o, v, s);
    html(o, "</tr>\n");
}

static void overview(struct out *o, const struct view *v)
{
    html(o, "<div class=\"card scorers\"><table><caption class=\"unseen\">All scorers, those in trouble "
            "first</caption><thead><tr><th scope=\"col\">State</th><th scope=\"col\">Scorer</th>"
            "<th scope=\"col\">Health</th><th scope=\"col\">Configuration</th>"
            "<th scope=\"col\" class=\"n\">Clusters</th><th scope=\"col\" class=\"n\">Up to date</th>"
            "<th scope=\"col\" class=\"n\">Scoring</th><th scope=\"col\" class=\"n\">Failing</th>"
            "<th scope=\"col\" class=\"n\">Last asked</th></tr></thead><tbody>\n");
    for (size_t i = 0; i < v->n_scorers; i++)
        row(o, v, &v->scorers[i]);
    html(o, "</tbody></table></div>\n");
}

void view_html_scorers(struct out *o, const struct view *v)
{
    html(o, "<h2>Scorers</h2>\n");
    if (v->n_scorers)
        overview(o, v);
    else
        html(o,
             "<div class=\"card\"><p>No scorers yet: create a DynamicScorer in namespace "
             "<bdi>%s</bdi>.</p></div>\n",
             v->h->o.namespace);
}

void view_html_details(struct out *o, const struct view *v)
{
    if (v->n_scorers)
        html(o, "<h2>In detail</h2>\n");
    for (size_t i = 0; i < v->n_scorers; i++)
        view_html_scorer(o, v, &v->scorers[i], v->n_scorers <= UNFOLDED_MOST);
}

/* The status page: made anew each time someone opens it, by one pass over the scorers for each state, so that
 * those which need someone's attention come first. */
#include "exporter/agent/status.h"

#include "exporter/agent/status_page.h"

enum { UNFOLDED_MOST = 8 };

static const enum scorer_state by_urgency[] = {SCORER_STALE, SCORER_FAILING, SCORER_EMPTY, SCORER_WAITING,
                                               SCORER_OK};

void html_state(struct out *o, enum scorer_state state)
{
    html_badge(o, scorer_state_word(state), scorer_state_word(state));
}

static const char *title_cluster(const struct agent *a)
{
    const struct config *c = agent_config(a);

    return c && *cstr(c->cluster_name) ? c->cluster_name : "no cluster";
}

static void header(struct out *o, const struct agent *a, const struct totals *t, int64_t now_ms)
{
    static const char *const links[] = {"/metrics", "/api/v1/status", "/-/healthy", "/-/ready"};
    size_t bad = t->by_state[SCORER_FAILING] + t->by_state[SCORER_STALE];

    html_head(o, title_cluster(a), bad, bad || !agent_reload_status(a)->ok);
    html(o, "<header>\n<p class=\"over-title\">dynamic-scoring agent</p>\n<h1><bdi>%s</bdi></h1>\n",
         title_cluster(a));
    html_links(o, links, ARRAY_SIZE(links), now_ms);
    html(o, "</header>\n<main>\n");
    if (!agent_reload_status(a)->ok)
        html(o,
             "<div class=\"note bad\"><p><b>%s</b> <a href=\"#config\">What is wrong with it</a></p></div>\n",
             agent_config(a)
                 ? "The configuration file was refused; the configuration before it stays in force."
                 : "No configuration is in force.");
}

static void tiles(struct out *o, const struct agent *a, const struct totals *t)
{
    char held[STATUS_WORD];

    html(o, "<dl class=\"tiles\">\n");
    html_tile(o, "scorers", "all", agent_scorers(a));
    for (size_t i = ARRAY_SIZE(by_urgency); i-- > 0;)
        html_tile(o, scorer_state_word(by_urgency[i]), scorer_state_word(by_urgency[i]),
                  t->by_state[by_urgency[i]]);
    html_tile(o, "series exposed", "all", t->series);
    status_bytes(status_page_memory(a), held);
    html(o, "<div><dt>/metrics page</dt><dd>%s</dd></div>\n</dl>\n", held);
}

static void overview_row(struct out *o, const struct scorer *s, size_t i, int64_t now_ms)
{
    const struct scorer_status *st = scorer_status(s);
    const struct batch *b = scorer_batch(s);
    char last[STATUS_WORD], next[STATUS_WORD], age[STATUS_WORD], fetch[STATUS_WORD], perform[STATUS_WORD];

    status_when(now_ms, st->ended_ms, last);
    status_when(now_ms, st->next_ms, next);
    status_duration(b ? now_ms - b->at.ms : 0, age);
    status_seconds(st->fetch_s, fetch);
    status_seconds(st->perform_s, perform);
    html(o, "<tr><td class=\"is\">");
    html_state(o, scorer_state(s));
    html(o, "</td><th scope=\"row\"><a href=\"#s%zu\"><bdi>%s</bdi></a></th>", i,
         scorer_summary(s)->score_name);
    html(o, "<td class=\"n\" data-what=\"Series\">");
    html_count(o, status_series(s));
    html(o,
         "</td><td class=\"n\" data-what=\"Age of scores\">%s</td><td class=\"n\" data-what=\"Last "
         "round\">%s</td>",
         b ? age : "–", last);
    html(
        o,
        "<td class=\"n\" data-what=\"Source took\">%s</td><td class=\"n\" data-what=\"Scoring took\">%s</td>",
        st->rounds && scorer_summary(s)->source_type != SOURCE_NONE ? fetch : "–",
        status_scorer_asked(st) ? perform : "–");
    html(o, "<td class=\"n\" data-what=\"Next round\">%s</td></tr>\n",
         st->running            ? "under way"
         : st->next_ms == 0     ? "–"
         : st->next_ms > now_ms ? next
                                : "now");
}

static void overview(struct out *o, const struct agent *a, int64_t now_ms)
{
    html(o,
         "<div class=\"card scorers\"><table><caption class=\"unseen\">All scorers, those that fail "
         "first</caption><thead><tr>"
         "<th scope=\"col\">State</th><th scope=\"col\">Score</th><th scope=\"col\" class=\"n\">Series</th>"
         "<th scope=\"col\" class=\"n\">Age of scores</th><th scope=\"col\" class=\"n\">Last round</th>"
         "<th scope=\"col\" class=\"n\">Source took</th><th scope=\"col\" class=\"n\">Scoring took</th>"
         "<th scope=\"col\" class=\"n\">Next round</th></tr></thead><tbody>\n");
    for (size_t k = 0; k < ARRAY_SIZE(by_urgency); k++)
        for (size_t i = 0; i < agent_scorers(a); i++)
            if (scorer_state(agent_scorer(a, i)) == by_urgency[k])
                overview_row(o, agent_scorer(a, i), i, now_ms);
    html(o, "</tbody></table></div>\n");
}

static void scorers(struct out *o, const struct agent *a, int64_t now_ms)
{
    size_t n = agent_scorers(a);

    html(o, "<h2>Scorers</h2>\n");
    if (n == 0)
        html(o, "<div class=\"card\"><p>No scorers configured: add some under <code>summaries</code> in the "
                "configuration file, "
                "then send the agent SIGHUP, or POST to <code>/-/reload</code>.</p></div>\n");
    if (n > 1)
        overview(o, a, now_ms);
    if (n > 1)
        html(o, "<h2>In detail</h2>\n");
    for (size_t k = 0; k < ARRAY_SIZE(by_urgency); k++)
        for (size_t i = 0; i < n; i++)
            if (scorer_state(agent_scorer(a, i)) == by_urgency[k])
                html_scorer(o, agent_scorer(a, i), i, now_ms, n <= UNFOLDED_MOST);
}

int status_html(const struct agent *a, struct buf *into)
{
    struct out o = out_begin(into);
    struct totals t = status_totals(a);
    int64_t now_ms = status_now(a);

    header(&o, a, &t, now_ms);
    tiles(&o, a, &t);
    scorers(&o, a, now_ms);
    html_endpoints(&o, a, now_ms);
    html_config(&o, a, now_ms);
    html_build(&o, agent_started_ms(a), now_ms);
    return out_end(&o);
}

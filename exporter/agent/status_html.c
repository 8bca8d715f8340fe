/* The status page: made anew each time someone opens it, by one pass over the scorers for each state, so that
 * those which need someone's attention come first. */
#include "exporter/agent/status.h"

#include "exporter/agent/status_page.h"
#include "exporter/base/utf8.h"
#include "exporter/metric/version.h"

#include <stdarg.h>

enum { REFRESH_SECONDS = 10, UNFOLDED_MOST = 8 };

static const enum scorer_state by_urgency[] = {SCORER_STALE, SCORER_FAILING, SCORER_EMPTY, SCORER_WAITING,
                                               SCORER_OK};

static struct str entity(struct str s, size_t char_len)
{
    unsigned char c = (unsigned char)*s.p;

    switch (c) {
    case '&':
        return STR("&amp;");
    case '<':
        return STR("&lt;");
    case '>':
        return STR("&gt;");
    case '"':
        return STR("&quot;");
    case '\'':
        return STR("&#39;");
    default:
        if (char_len == 0 || (c < 0x20 && c != '\n' && c != '\t') || c == 0x7f)
            return STR("\xef\xbf\xbd");
        return (struct str){NULL, 0};
    }
}

void html_text(struct out *o, struct str s)
{
    size_t plain = 0, at = 0;

    while (at < s.n) {
        struct str here = {s.p + at, s.n - at};
        size_t n = utf8_char(here);
        struct str instead = entity(here, n);

        if (instead.n) {
            out_str(o, (struct str){s.p + plain, at - plain});
            out_str(o, instead);
            plain = at + size_max(n, 1);
        }
        at += size_max(n, 1);
    }
    out_str(o, (struct str){s.p + plain, at - plain});
}

void html(struct out *o, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    for (const char *p = fmt; *p;) {
        size_t n = strcspn(p, "%");

        out_str(o, (struct str){p, n});
        p += n;
        if (p[0] == '%' && p[1] == 's') {
            html_text(o, str_of(va_arg(ap, const char *)));
            p += 2;
        } else if (p[0] == '%') { /* zu */
            out_printf(o, "%zu", va_arg(ap, size_t));
            p += 3;
        }
    }
    va_end(ap);
}

void html_fact(struct out *o, const char *what)
{
    html(o, "<div><dt>%s</dt><dd>", what);
}

void html_fact_end(struct out *o)
{
    html(o, "</dd></div>\n");
}

void html_moment(struct out *o, int64_t now_ms, int64_t at_ms)
{
    char when[STATUS_WORD], utc[32];

    status_when(now_ms, at_ms, when);
    if (at_ms == 0) {
        html(o, "%s", when);
        return;
    }
    unix_ms_format((unix_ms){at_ms}, utc);
    html(o, "<time datetime=\"%s\">%s", utc, when);
    utc[10] = ' ';
    utc[19] = '\0';
    html(o, "<span class=\"soft\">%s UTC</span></time>", utc);
}

void html_count(struct out *o, uint64_t n)
{
    char digits[STATUS_WORD];

    status_count(n, digits);
    html(o, "%s", digits);
}

void html_state(struct out *o, enum scorer_state state)
{
    html(o, "<span class=\"state %s\">%s</span>", scorer_state_word(state), scorer_state_word(state));
}

static const char *title_cluster(const struct agent *a)
{
    const struct config *c = agent_config(a);

    return c && *cstr(c->cluster_name) ? c->cluster_name : "no cluster";
}

/* The icon tells from among a browser's tabs how things are. */
static void head(struct out *o, const struct agent *a, const struct totals *t)
{
    size_t bad = t->by_state[SCORER_FAILING] + t->by_state[SCORER_STALE];

    html(o, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
            "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
            "<meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"referrer\" "
            "content=\"no-referrer\">\n");
    html(o, "<meta http-equiv=\"refresh\" content=\"%zu\">\n<title>", (size_t)REFRESH_SECONDS);
    if (bad)
        html(o, "%zu failing · ", bad);
    html(o, "%s · dynamic-scoring</title>\n", title_cluster(a));
    out_puts(o, "<link rel=\"icon\" href=\"data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' "
                "viewBox='0 0 16 16'%3E%3Ccircle cx='8' cy='8' r='7' fill='%23");
    out_puts(o, bad || !agent_reload_status(a)->ok ? "d1302e" : "2da44e");
    out_puts(o, "'/%3E%3C/svg%3E\">\n");
    html(o, "<style>");
    out_puts(o, status_style);
    html(o, "</style>\n</head>\n<body>\n");
}

static void header(struct out *o, const struct agent *a, int64_t now_ms)
{
    char now[32];

    unix_ms_format((unix_ms){now_ms}, now);
    now[10] = ' ';
    now[19] = '\0';
    html(o, "<header>\n<p class=\"over-title\">dynamic-scoring agent</p>\n<h1><bdi>%s</bdi></h1>\n",
         title_cluster(a));
    html(o,
         "<nav aria-label=\"Links\"><a href=\"/metrics\">/metrics</a><a "
         "href=\"/api/v1/status\">/api/v1/status</a>"
         "<a href=\"/-/healthy\">/-/healthy</a><a href=\"/-/ready\">/-/ready</a>"
         "<span class=\"soft\">%s UTC, renewed every %zu s</span></nav>\n</header>\n<main>\n",
         now, (size_t)REFRESH_SECONDS);
    if (!agent_reload_status(a)->ok)
        html(o,
             "<div class=\"note bad\"><p><b>%s</b> <a href=\"#config\">What is wrong with it</a></p></div>\n",
             agent_config(a)
                 ? "The configuration file was refused; the configuration before it stays in force."
                 : "No configuration is in force.");
}

static void tile(struct out *o, const char *what, const char *class, uint64_t n)
{
    html(o, "<div class=\"%s\"><dt>%s</dt><dd>", n ? class : "none", what);
    html_count(o, n);
    html_fact_end(o);
}

static void tiles(struct out *o, const struct agent *a, const struct totals *t)
{
    char held[STATUS_WORD];

    html(o, "<dl class=\"tiles\">\n");
    tile(o, "scorers", "all", agent_scorers(a));
    for (size_t i = ARRAY_SIZE(by_urgency); i-- > 0;)
        tile(o, scorer_state_word(by_urgency[i]), scorer_state_word(by_urgency[i]),
             t->by_state[by_urgency[i]]);
    tile(o, "series exposed", "all", t->series);
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

static void build(struct out *o, const struct agent *a, int64_t now_ms)
{
    char up[STATUS_WORD];

    status_duration(now_ms - agent_started_ms(a), up);
    html(o, "<h2 id=\"build\">Build</h2>\n<section class=\"card\" aria-labelledby=\"build\"><dl "
            "class=\"facts\">\n");
    html(o, "<div><dt>Version</dt><dd>%s</dd></div><div><dt>Revision</dt><dd><code>%s</code></dd></div>\n",
         ds_version, ds_revision);
    html_fact(o, "Started");
    html_moment(o, now_ms, agent_started_ms(a));
    html_fact_end(o);
    html(o, "<div><dt>Up for</dt><dd>%s</dd></div>\n</dl></section>\n", up);
}

int status_html(const struct agent *a, struct buf *into)
{
    struct out o = out_begin(into);
    struct totals t = status_totals(a);
    int64_t now_ms = status_now(a);

    head(&o, a, &t);
    header(&o, a, now_ms);
    tiles(&o, a, &t);
    scorers(&o, a, now_ms);
    html_endpoints(&o, a, now_ms);
    html_config(&o, a, now_ms);
    build(&o, a, now_ms);
    html(&o, "</main>\n</body>\n</html>\n");
    return out_end(&o);
}

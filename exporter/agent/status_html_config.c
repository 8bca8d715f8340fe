/* The configuration on the status page. */
#include "exporter/agent/status_page.h"

static void reload_fact(struct out *o, const struct agent *a, int64_t now_ms)
{
    const struct reload_status *r = agent_reload_status(a);

    html_fact(o, "Last read");
    if (r->at_ms == 0)
        html(o, "never");
    else if (r->ok)
        html(o, "%s ", r->problems ? "applied, with warnings" : "applied");
    else
        html(o, "<b class=\"state failing\">refused</b> ");
    if (r->at_ms) {
        html(o, "<span class=\"soft\">");
        html_moment(o, now_ms, r->at_ms);
        html(o, "</span>");
    }
    html_fact_end(o);
}

static void text_fact(struct out *o, const char *what, const char *text)
{
    html_fact(o, what);
    if (text)
        html(o, "<code><bdi>%s</bdi></code>", text);
    else
        html(o, "none");
    html_fact_end(o);
}

static void listen_fact(struct out *o, const struct config *c)
{
    html_fact(o, "Listens on");
    for (size_t i = 0; i < c->n_listen; i++)
        html(o, "%s<code>%s</code>", i ? ", " : "", c->listen[i]);
    html_fact_end(o);
}

static void limit(struct out *o, const char *key, const char *value, const char *meaning)
{
    html(o,
         "<tr><th scope=\"row\"><code>%s</code></th><td class=\"n\">%s</td><td class=\"soft\">%s</td></tr>\n",
         key, value, meaning);
}

static void limits(struct out *o, const struct limits *l)
{
    char word[STATUS_WORD];

    html(o, "<table class=\"limits\"><caption>Limits</caption><thead class=\"unseen\"><tr><th "
            "scope=\"col\">Key</th>"
            "<th scope=\"col\">Value</th><th scope=\"col\">Meaning</th></tr></thead><tbody>\n");
    status_bytes(l->response_bytes, word);
    limit(o, "responseBytes", word, "of one answer");
    status_count((uint64_t)l->series_per_scorer, word);
    limit(o, "seriesPerScorer", word, "exposed for one scorer");
    status_count((uint64_t)l->series, word);
    limit(o, "series", word, "exposed in all");
    status_bytes((uint64_t)l->label_value_bytes, word);
    limit(o, "labelValueBytes", word, "of a label's value; longer ones are cut");
    status_seconds((double)l->round_ms / 1000, word);
    limit(o, "roundTime", word, "for one round, at most");
    status_count((uint64_t)l->stale_intervals, word);
    limit(o, "staleAfterIntervals", word, "intervals that a failing scorer's last scores stay");
    html(o, "</tbody></table>\n");
}

void html_config(struct out *o, const struct agent *a, int64_t now_ms)
{
    const struct config *c = agent_config(a);
    const struct reload_status *r = agent_reload_status(a);

    html(o, "<h2 id=\"config\">Configuration</h2>\n<section class=\"card\" aria-labelledby=\"config\">\n");
    if (r->problems)
        html(o, "<div class=\"note%s\"><p><b>%s</b></p><pre>%s</pre></div>\n", r->ok ? "" : " bad",
             r->ok ? "Warnings"
             : c   ? "Refused; the configuration before it stays in force"
                   : "Refused",
             r->problems);
    html(o, "<dl class=\"facts\">\n");
    text_fact(o, "File", agent_config_file(a));
    if (c) {
        html_fact(o, "In force since");
        html_moment(o, now_ms, c->loaded_at_ms);
        html_fact_end(o);
    }
    reload_fact(o, a, now_ms);
    if (c) {
        listen_fact(o, c);
        text_fact(o, "Secrets folder", c->secrets_dir);
        text_fact(o, "Storage folder", c->storage_path);
    }
    html(o, "</dl>\n");
    if (c)
        limits(o, &c->limits);
    html(o, "</section>\n");
}

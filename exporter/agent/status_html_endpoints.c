/* Remote-write endpoints on the status page. */
#include "exporter/agent/status_page.h"

static void fact(struct out *o, const char *what, const char *words)
{
    html_fact(o, what);
    html(o, "%s", words);
    html_fact_end(o);
}

static void count_fact(struct out *o, const char *what, uint64_t n)
{
    html_fact(o, what);
    html_count(o, n);
    html_fact_end(o);
}

static void moment_fact(struct out *o, const char *what, int64_t now_ms, int64_t at_ms)
{
    html_fact(o, what);
    html_moment(o, now_ms, at_ms);
    html_fact_end(o);
}

static void spool_fact(struct out *o, const struct endpoint_status *e)
{
    char bytes[STATUS_WORD];

    status_bytes(e->spool_bytes, bytes);
    html_fact(o, "Spool");
    if (e->spool)
        html(o, "%s", bytes);
    else
        html(o, "none, what waits is lost at a restart");
    html_fact_end(o);
}

static void endpoint(struct out *o, const struct endpoint_status *e, int64_t now_ms)
{
    bool failing = strcmp(e->state, "failing") == 0;
    char behind[STATUS_WORD];

    status_duration((int64_t)(e->behind_s * 1000), behind);
    html(o, "<section class=\"card\"><h3><b class=\"state %s\">%s</b> <bdi>%s</bdi></h3>\n",
         failing ? "failing" : "ok", e->state, e->name);
    if (*e->error)
        html(o, "<div class=\"note bad\"><p><bdi>%s</bdi></p></div>\n", e->error);
    html(o, "<dl class=\"facts\">\n");
    fact(o, "URL", e->url);
    fact(o, "Protocol", e->protocol);
    fact(o, "Behind by", behind);
    count_fact(o, "Samples sent", e->samples_sent);
    count_fact(o, "Samples waiting", e->samples_pending);
    count_fact(o, "Samples dropped", e->samples_dropped);
    spool_fact(o, e);
    moment_fact(o, "Last sent", now_ms, e->sent_at_ms);
    if (e->retry_at_ms)
        moment_fact(o, "Next try", now_ms, e->retry_at_ms);
    html(o, "</dl>\n</section>\n");
}

void html_endpoints(struct out *o, const struct agent *a, int64_t now_ms)
{
    size_t n;
    const struct endpoint_status *list = agent_endpoints(a, &n);

    if (n)
        html(o, "<h2 id=\"remote-write\">Remote write</h2>\n");
    for (size_t i = 0; i < n; i++)
        endpoint(o, &list[i], now_ms);
}

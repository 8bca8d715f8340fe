/* The pages of one scorer and of one cluster, and links to them. */
#include "controller/hub/pages/status_page.h"

#include "controller/hub/pages/status_view.h"
#include "exporter/base/escape.h"

#include <errno.h>

enum { URL_BYTES = 1 << 20 };

void view_put_url(struct out *o, const char *path, const char *name)
{
    BUF_AUTO(escaped, URL_BYTES);
    int r = buf_put_url(&escaped, str_of(name));

    if (r < 0 && o->error == 0)
        o->error = r;
    out_printf(o, "%s?name=", path);
    out_str(o, buf_str(&escaped));
}

void view_html_link(struct out *o, const char *path, const char *name)
{
    html(o, "<a href=\"");
    view_put_url(o, path, name);
    html(o, "\"><bdi>%s</bdi></a>", name);
}

static void begin(struct out *o, const char *what, const char *name, bool bad)
{
    html_head(o, name, 0, bad);
    html(o, "<header>\n<p class=\"over-title\"><a href=\"/\">dynamic-scoring controller</a> · %s</p>\n",
         what);
    html(o, "<div class=\"name\"><h1><bdi>%s</bdi></h1>", name);
}

static void links(struct out *o, const struct view *v, const char *api, const char *name)
{
    BUF_AUTO(url, URL_BYTES);
    struct out to = out_begin(&url);

    html(o, "</div>\n");
    view_put_url(&to, api, name);
    out_str(&to, (struct str){"", 1});
    if (o->error == 0)
        o->error = out_end(&to);
    if (o->error)
        return;
    html_links(o, (const char *const[]){url.p}, 1, v->now_ms);
    html(o, "</header>\n<main>\n");
    view_html_notes(o, v->h);
}

int hub_html_scorer(struct hub *h, const char *name, struct buf *into)
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
    begin(&o, "scorer", name, s->troubled);
    view_html_ready(&o, s->ready);
    links(&o, &v, "/api/v1" VIEW_SCORER, name);
    view_html_scorer_in_full(&o, &v, s);
    html_build(&o, h->started_ms, v.now_ms);
    return out_end(&o);
}

/* ---- A cluster ---- */

static void cluster_notes(struct out *o, const struct hub_cluster *c)
{
    if (*c->write_error)
        view_html_note(o, true,
                       c->leaving || !c->managed ? "Its ManifestWork cannot be deleted"
                                                 : "Its ManifestWork cannot be written",
                       c->write_error);
    if (*c->work.why)
        view_html_note(o, true, "The work agent cannot apply its ManifestWork", c->work.why);
    if (c->unavailable)
        view_html_note(o, true, "The cluster is not available", c->unavailable);
    if (!c->report.there || (c->report.config_ok && !c->report.trouble))
        return;
    view_html_note(o, !c->report.config_ok,
                   c->report.config_ok ? "The agent says" : "The agent refuses its configuration",
                   cstr(c->report.trouble));
}

static void work_fact(struct out *o, const struct view *v, const struct hub_cluster *c)
{
    char behind[STATUS_WORD];

    status_duration(view_behind_ms(v, c), behind);
    html_fact(o, "ManifestWork");
    html(o, "%s%s",
         !c->work.exists    ? "none"
         : c->work.deleting ? "being deleted"
                             : "there",
         c->work.exists && !c->work.ours ? ", but another's" : "");
    html(o, "<span class=\"soft\">%s%s", c->behind ? "behind for " : "up to date", c->behind ? behind : "");
    if (c->failures)
        html(o, ", %zu failed %s", (size_t)c->failures, c->failures == 1 ? "write" : "writes");
    if (c->work.exists)
        html(o, c->work.applied ? ", applied" : *c->work.why ? ", not applied" : ", not applied yet");
    html(o, "</span>");
    html_fact_end(o);
}

static void summaries_fact(struct out *o, const struct plan_group *g)
{
    char bytes[STATUS_WORD], most[STATUS_WORD];

    status_bytes(g ? g->bytes : 0, bytes);
    status_bytes(WORK_MAX_BYTES, most);
    html_fact(o, "Summaries");
    html(o, "%zu", g ? g->scorers : 0);
    html(o, "<span class=\"soft\">%s of %s", bytes, most);
    if (g && g->left_out)
        html(o, ", no room for %zu", g->left_out);
    html(o, "</span>");
    html_fact_end(o);
}

static void report_fact(struct out *o, const struct hub_cluster *c)
{
    html_fact(o, "Agent's report");
    if (c->report.there)
        html(o, "%zu %s<span class=\"soft\">%zu failing</span>", (size_t)c->report.n + c->report.not_shown,
             c->report.n + c->report.not_shown == 1 ? "scorer" : "scorers", view_cluster_failing(c));
    else
        html(o, "none yet");
    html_fact_end(o);
}

int hub_html_cluster(struct hub *h, const char *name, struct buf *into)
{
    CLEANUP(view_done) struct view v = {0};
    const struct hub_cluster *c = map_get(&h->clusters, name);
    struct out o = out_begin(into);
    int r = c ? view_make(&v, h, false) : -ENOENT;
    enum view_trouble trouble;

    if (r < 0)
        return r;
    trouble = view_cluster_trouble(c);
    begin(&o, "cluster", name, trouble != TROUBLE_NONE);
    if (h->leading)
        view_html_trouble(&o, trouble);
    links(&o, &v, "/api/v1" VIEW_CLUSTER, name);
    if (h->leading) {
        html(&o, "<section class=\"card\" aria-label=\"State\">\n");
        cluster_notes(&o, c);
        html(&o, "<dl class=\"facts\">\n");
        work_fact(&o, &v, c);
        summaries_fact(&o, c->group);
        report_fact(&o, c);
        html(&o, "</dl>\n</section>\n");
        view_html_cluster_pairs(&o, &v, c);
    }
    html_build(&o, h->started_ms, v.now_ms);
    return out_end(&o);
}

/* The hub's page: what needs someone's attention first, made anew each time someone opens it. */
#include "controller/hub/pages/status_page.h"

#include "controller/hub/pages/status_view.h"

void view_html_note(struct out *o, bool bad, const char *what, const char *text)
{
    html(o, "<div class=\"note%s\"><p><b>%s</b></p>", bad ? " bad" : "", what);
    if (*text)
        html(o, "<pre>%s</pre>", text);
    html(o, "</div>\n");
}

/* In one note: mostly it is the API server that is away. */
static void watch_notes(struct out *o, const struct hub *h)
{
    const char *kind;
    const struct kube_watch *w;
    bool any = false;

    for (size_t i = 0; view_watch(h, i, &kind, &w); i++) {
        const char *why = kube_watch_trouble(w);

        if (!why)
            continue;
        html(o, "%s", any ? "\n" : "");
        if (!any)
            html(o,
                 "<div class=\"note bad\"><p><b>Not all objects can be followed</b>; what is known of them "
                 "stays.</p><pre>");
        html(o, "%s: %s", kind, why);
        any = true;
    }
    if (any)
        html(o, "</pre></div>\n");
}

static void lease_notes(struct out *o, const struct hub *h)
{
    const char *trouble = h->lease ? kube_lease_trouble(h->lease) : NULL;
    const char *holder = h->lease ? kube_lease_holder(h->lease) : "";

    if (trouble)
        view_html_note(o, true, "The Lease cannot be read or written", trouble);
    if (h->leading)
        return;
    html(o, "<div class=\"note\"><p><b>Standing by.</b> ");
    if (*holder)
        html(o, "<bdi>%s</bdi> leads. ", holder);
    else
        html(o, "No one is known to lead. ");
    html(o, "Only the leader asks scoring APIs, writes ManifestWorks and counts; its own page shows that. "
            "This one shows the scorers as the leader last described them.</p></div>\n");
}

void view_html_notes(struct out *o, const struct hub *h)
{
    lease_notes(o, h);
    watch_notes(o, h);
    if (!hub_synced(h))
        view_html_note(o, false, "Not all objects have been listed yet; until then nothing is written.", "");
    else if (!h->config.object)
        html(o,
             "<div class=\"note\"><p><b>There is no DynamicScoringConfig "
             "<code>" HUB_CONFIG "</code></b> in namespace "
             "<bdi>%s</bdi>: clusters get nothing until there is.</p></div>\n",
             h->o.namespace);
    else if (!hub_is_distributing(h))
        html(o,
             "<div class=\"note\"><p><b>The DynamicScoringConfig is being deleted</b>: %zu ManifestWorks are "
             "still to go.</p></div>\n",
             h->totals.works);
}

static size_t scorers_failing(const struct view *v)
{
    size_t n = 0;

    for (size_t i = 0; i < v->n_scorers; i++)
        n += v->scorers[i].ready == VIEW_NOT_READY;
    return n;
}

static bool any_trouble(const struct hub *h)
{
    const char *kind;
    const struct kube_watch *w;

    for (size_t i = 0; view_watch(h, i, &kind, &w); i++)
        if (kube_watch_trouble(w))
            return true;
    return h->lease && kube_lease_trouble(h->lease);
}

static void header(struct out *o, const struct view *v)
{
    static const char *const links[] = {"/metrics", "/api/v1/status"};
    const struct hub *h = v->h;
    size_t failing = scorers_failing(v) + h->totals.failing;

    html_head(o, "controller", failing, failing || h->totals.with_failures || any_trouble(h));
    html(o,
         "<header>\n<p class=\"over-title\">dynamic-scoring controller</p>\n<div class=\"name\">"
         "<h1><bdi>%s</bdi></h1>",
         h->o.namespace);
    html_badge(o, h->leading ? "ok" : "waiting", h->leading ? "leading" : "standing by");
    html(o, "</div>\n");
    html_links(o, links, ARRAY_SIZE(links), v->now_ms);
    html(o, "</header>\n<main>\n");
    view_html_notes(o, h);
}

static void cluster_tiles(struct out *o, const struct hub_totals *t)
{
    char lag[STATUS_WORD];

    status_duration((int64_t)(t->lag_s * 1000), lag);
    html_tile(o, "clusters", "all", t->managed);
    html_tile(o, "up to date", "ok", t->up_to_date);
    html_tile(o, "behind", "empty", t->behind);
    html_tile(o, "not written", "failing", t->failing);
    html_tile(o, "failing", "failing", t->with_failures);
    html(o, "<div%s><dt>lag</dt><dd>%s</dd></div>\n", t->behind ? "" : " class=\"none\"",
         t->behind ? lag : "none");
}

static void tiles(struct out *o, const struct view *v)
{
    size_t by_health[HEALTH_INACTIVE + 1] = {0};

    for (size_t i = 0; i < v->n_scorers; i++)
        by_health[v->scorers[i].probe->health]++;
    html(o, "<dl class=\"tiles many\">\n");
    html_tile(o, "scorers", "all", v->n_scorers);
    html_tile(o, "healthy", "ok", by_health[HEALTH_ACTIVE]);
    html_tile(o, "unhealthy", "failing", by_health[HEALTH_INACTIVE]);
    if (by_health[HEALTH_UNKNOWN])
        html_tile(o, "not known", "waiting", by_health[HEALTH_UNKNOWN]);
    if (v->h->leading)
        cluster_tiles(o, &v->h->totals);
    html(o, "</dl>\n");
}

int hub_html(struct hub *h, struct buf *into)
{
    CLEANUP(view_done) struct view v = {0};
    struct out o = out_begin(into);

    o.error = view_make(&v, h, true);
    if (o.error)
        return o.error;
    header(&o, &v);
    tiles(&o, &v);
    view_html_scorers(&o, &v);
    view_html_clusters(&o, &v);
    view_html_details(&o, &v);
    view_html_config(&o, &v);
    html_build(&o, h->started_ms, v.now_ms);
    return out_end(&o);
}

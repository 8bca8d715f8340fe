/* All is answered on the loop: /metrics is rendered when it is asked for, so that a controller at rest does nothing, and a probe of /healthz
 * finds a loop that hangs. */
#include "controller/hub/pages/web.h"

#include "controller/hub/pages/status_page.h"
#include "controller/hub/state/state.h"
#include "exporter/agent/status.h"
#include "exporter/base/log.h"

#include <errno.h>

enum { MAX_CONNECTIONS = 1024, IDLE_SECONDS = 120, STATUS_MAX_BYTES = 256 << 20 };
enum { METRICS_ROUTES = 7, HEALTH_ROUTES = 2 };

struct hub_web {
    struct hub_web_options o;
    struct page *page;
    /* Those of the metrics address, then those of health. */
    struct httpd_route routes[METRICS_ROUTES + HEALTH_ROUTES];
    struct httpd *metrics, *health;
};

static void healthz(void *arg, const struct httpd_request *rq, struct httpd_reply *reply)
{
    (void)arg;
    (void)rq;
    httpd_reply_text(reply, 200, STR("ok"));
}

static int missing(const struct hub *h, struct buf *into)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < HUB_KINDS; i++) {
        const char *trouble = kube_watch_trouble(h->watches[i].watch);

        if (!kube_watch_synced(h->watches[i].watch))
            r = buf_printf(into, "%s: not listed yet%s%s\n", hub_kinds[i].plural, trouble ? ": " : "", cstr(trouble));
    }
    return r;
}

static void readyz(void *arg, const struct httpd_request *rq, struct httpd_reply *reply)
{
    BUF_AUTO(why, 1u << 20);

    (void)rq;
    if (hub_synced(arg))
        httpd_reply_text(reply, 200, STR("ok"));
    else if (missing(arg, &why) < 0)
        httpd_reply_text(reply, 503, STR("not ready\n"));
    else
        httpd_reply_text(reply, 503, buf_str(&why));
}

static void rendered(void *arg, struct httpd_reply *reply, const char *content_type,
                     int (*render)(struct hub *, struct buf *))
{
    BUF_AUTO(body, STATUS_MAX_BYTES);

    if (render(arg, &body) < 0) {
        httpd_reply_text(reply, 500, STR("out of memory\n"));
        return;
    }
    httpd_reply_copy(reply, buf_str(&body));
    reply->content_type = content_type;
}

static void page_html(void *arg, const struct httpd_request *rq, struct httpd_reply *reply)
{
    (void)rq;
    rendered(arg, reply, "text/html; charset=utf-8", hub_html);
    reply->csp = status_html_csp;
}

static void api_status(void *arg, const struct httpd_request *rq, struct httpd_reply *reply)
{
    (void)rq;
    rendered(arg, reply, "application/json", hub_json);
}

/* What is about the one thing that the query names. */
static void rendered_one(void *arg, const struct httpd_request *rq, struct httpd_reply *reply,
                         const char *content_type, int (*render)(struct hub *, const char *, struct buf *))
{
    BUF_AUTO(body, STATUS_MAX_BYTES);
    const char *name = httpd_query(rq, "name");
    int r = name && *name ? render(arg, name, &body) : -EINVAL;

    if (r == 0) {
        httpd_reply_copy(reply, buf_str(&body));
        reply->content_type = content_type;
    } else if (r == -EINVAL) {
        httpd_reply_text(reply, 400, STR("Of which one? Its name goes at the end of the URL: ?name=NAME\n"));
    } else if (r == -ENOENT) {
        httpd_reply_text(reply, 404, STR("There is none of that name here.\n"));
    } else {
        httpd_reply_text(reply, 500, STR("out of memory\n"));
    }
}

static void page_scorer(void *arg, const struct httpd_request *rq, struct httpd_reply *reply)
{
    rendered_one(arg, rq, reply, "text/html; charset=utf-8", hub_html_scorer);
    reply->csp = status_html_csp;
}

static void page_cluster(void *arg, const struct httpd_request *rq, struct httpd_reply *reply)
{
    rendered_one(arg, rq, reply, "text/html; charset=utf-8", hub_html_cluster);
    reply->csp = status_html_csp;
}

static void api_scorer(void *arg, const struct httpd_request *rq, struct httpd_reply *reply)
{
    rendered_one(arg, rq, reply, "application/json", hub_json_scorer);
}

static void api_cluster(void *arg, const struct httpd_request *rq, struct httpd_reply *reply)
{
    rendered_one(arg, rq, reply, "application/json", hub_json_cluster);
}

static void metrics(void *arg, const struct httpd_request *rq, struct httpd_reply *reply)
{
    struct hub_web *w = arg;

    hub_set_metrics(w->o.hub);
    if (page_set_own(w->page, w->o.metrics) < 0)
        log_error("own metrics not renewed: out of memory");
    page_serve(w->page, rq, reply);
}

static bool wanted(const char *address)
{
    return address && strcmp(address, "0") != 0;
}

static int serve(struct httpd **ret, struct hub_web *w, const char *address, size_t first, size_t n,
                 char **ret_why)
{
    const struct httpd_options o = {
        .listen = &address,
        .n_listen = 1,
        .max_connections = MAX_CONNECTIONS,
        .idle_seconds = IDLE_SECONDS,
        .routes = w->routes + first,
        .n_routes = n,
        .served = page_count_request,
        .served_arg = w->page,
    };

    return httpd_new(ret, w->o.loop, &o, ret_why);
}

static int serve_all(struct hub_web *w, char **ret_why)
{
    const char *own = w->o.metrics_address, *health = w->o.health_address;
    bool both = wanted(own) && wanted(health) && strcmp(own, health) == 0;
    int r = 0;

    if (wanted(own))
        r = serve(&w->metrics, w, own, 0, METRICS_ROUTES + (both ? HEALTH_ROUTES : 0), ret_why);
    if (r == 0 && wanted(health) && !both)
        r = serve(&w->health, w, health, METRICS_ROUTES, HEALTH_ROUTES, ret_why);
    return r;
}

int hub_web_start(struct hub_web **ret, const struct hub_web_options *o, char **ret_why)
{
    struct hub_web *w = calloc(1, sizeof(*w));
    int r = w ? page_new_without_scores(&w->page) : -ENOMEM;

    if (r < 0) {
        free(w);
        return r;
    }
    w->o = *o;
    memcpy(w->routes,
           (const struct httpd_route[]){
               {"GET", "/metrics", metrics, w, false},
               {"GET", "/", page_html, o->hub, false},
               {"GET", "/scorer", page_scorer, o->hub, false},
               {"GET", "/cluster", page_cluster, o->hub, false},
               {"GET", "/api/v1/status", api_status, o->hub, false},
               {"GET", "/api/v1/scorer", api_scorer, o->hub, false},
               {"GET", "/api/v1/cluster", api_cluster, o->hub, false},
               {"GET", "/healthz", healthz, NULL, false},
               {"GET", "/readyz", readyz, o->hub, false},
           },
           sizeof(w->routes));
    r = serve_all(w, ret_why);
    if (r < 0) {
        (void)hub_web_stop(w, 0);
        return r;
    }
    *ret = w;
    return 0;
}

struct hub_web *hub_web_stop(struct hub_web *w, int grace_ms)
{
    if (!w)
        return NULL;
    (void)httpd_stop(w->metrics, grace_ms);
    (void)httpd_stop(w->health, grace_ms);
    (void)page_free(w->page);
    free(w);
    return NULL;
}

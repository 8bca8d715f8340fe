/* All is answered on the loop: /metrics is rendered when it is asked for, so that a controller at rest does
 * nothing, and a probe of /healthz finds a loop that hangs. */
#include "controller/hub/pages/web.h"

#include "controller/hub/pages/json.h"
#include "controller/hub/state/state.h"
#include "exporter/base/buf.h"
#include "exporter/base/httpd.h"
#include "exporter/base/log.h"
#include "exporter/ui/api.h"
#include "exporter/ui/assets.h"
#include "exporter/ui/list.h"
#include "exporter/web/access.h"

#include <errno.h>
#include <stdio.h>

enum { MAX_CONNECTIONS = 1024, PROBE_CONNECTIONS = 128, IDLE_SECONDS = 120, STATUS_MAX_BYTES = 256 << 20 };
enum { HEALTH_ROUTES = 2, API_ROUTES = 7, ROUTES = HEALTH_ROUTES + API_ROUTES + ASSETS_MAX_ROUTES };

struct hub_web {
    struct hub_web_options o;
    struct page *page;
    struct assets *assets;
    struct httpd_route routes[ROUTES]; /* those of the health address come first */
    size_t n_routes;
    struct httpd *metrics, *health;
    struct access *access;
};

static void web_healthz(void *arg, const struct httpd_request *rq, struct httpd_reply *reply)
{
    (void)arg;
    (void)rq;
    httpd_reply_text(reply, 200, STR("ok"));
}

static int web_unlisted(const struct hub *h, struct buf *into)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < HUB_KINDS; i++) {
        const char *trouble = hub_watch_trouble(h, i);

        if (!hub_watch_listed(h, i))
            r = buf_printf(into, "%s: not listed yet%s%s\n", hub_kinds[i].plural, trouble ? ": " : "",
                           cstr(trouble));
    }
    return r;
}

static void web_readyz(void *arg, const struct httpd_request *rq, struct httpd_reply *reply)
{
    BUF_AUTO(why, 1u << 20);

    (void)rq;
    if (hub_synced(arg))
        httpd_reply_text(reply, 200, STR("ok"));
    else if (web_unlisted(arg, &why) < 0)
        httpd_reply_text(reply, 503, STR("not ready\n"));
    else
        httpd_reply_text(reply, 503, buf_str(&why));
}

/* Answers with what `render` writes for the request's list parameters. */
static void web_list(void *arg, const struct httpd_request *rq, struct httpd_reply *reply,
                     int (*render)(struct hub *, const struct list_query *, struct buf *))
{
    CLEANUP(list_query_done) struct list_query q = {0};
    BUF_AUTO(body, STATUS_MAX_BYTES);
    const char *why = "";
    int r = list_query_read(&q, rq, &why);

    if (r == 0)
        r = render(arg, &q, &body);
    api_reply(reply, r, why, &body);
}

/* The overview has two lists, so that it is filtered and continued in theirs. */
static void web_status(void *arg, const struct httpd_request *rq, struct httpd_reply *reply)
{
    static const char *const of_lists[] = {"continue", "state", "sort"};

    for (size_t i = 0; i < ARRAY_SIZE(of_lists); i++)
        if (httpd_query(rq, of_lists[i])) {
            api_reply(reply, -EINVAL,
                      "unsupported parameter: continue, state and sort belong to /api/v1/scorers and "
                      "/api/v1/clusters",
                      NULL);
            return;
        }
    web_list(arg, rq, reply, hub_json_status);
}

static void web_scorers(void *arg, const struct httpd_request *rq, struct httpd_reply *reply)
{
    web_list(arg, rq, reply, hub_json_scorers);
}

static void web_clusters(void *arg, const struct httpd_request *rq, struct httpd_reply *reply)
{
    web_list(arg, rq, reply, hub_json_clusters);
}

static void web_pairs(void *arg, const struct httpd_request *rq, struct httpd_reply *reply)
{
    web_list(arg, rq, reply, hub_json_pairs);
}

/* Answers about the one object that the parameter `name` names. */
static void web_one(void *arg, const struct httpd_request *rq, struct httpd_reply *reply, const char *kind,
                    int (*render)(struct hub *, const char *, const struct list_query *, struct buf *))
{
    CLEANUP(list_query_done) struct list_query q = {0};
    BUF_AUTO(body, STATUS_MAX_BYTES);
    const char *name = httpd_query(rq, "name"), *why = "missing parameter: name";
    char none[300];
    int r = name && *name ? list_query_read(&q, rq, &why) : -EINVAL;

    if (r == 0)
        r = render(arg, name, &q, &body);
    if (r == -ENOENT) {
        (void)snprintf(none, sizeof(none), "no %s named \"%.250s\"", kind, name);
        why = none;
    }
    api_reply(reply, r, why, &body);
}

static void web_scorer(void *arg, const struct httpd_request *rq, struct httpd_reply *reply)
{
    web_one(arg, rq, reply, "scorer", hub_json_scorer);
}

static void web_cluster(void *arg, const struct httpd_request *rq, struct httpd_reply *reply)
{
    web_one(arg, rq, reply, "cluster", hub_json_cluster);
}

static void web_metrics(void *arg, const struct httpd_request *rq, struct httpd_reply *reply)
{
    struct hub_web *w = arg;

    hub_set_metrics(w->o.hub);
    if (page_set_own(w->page, w->o.metrics) < 0)
        log_error("own metrics not renewed: out of memory");
    page_serve(w->page, rq, reply);
}

static bool web_is_wanted(const char *address)
{
    return address && strcmp(address, "0") != 0;
}

static int web_serve(struct httpd **ret, struct hub_web *w, const char *address, unsigned connections,
                     size_t first, size_t n, char **ret_why)
{
    struct httpd_options o = {
        .listen = &address,
        .n_listen = 1,
        .max_connections = connections,
        .idle_seconds = IDLE_SECONDS,
        .routes = w->routes + first,
        .n_routes = n,
        .served = page_count_request,
        .cut = page_count_cut,
        .held = page_held,
        .served_arg = w->page,
    };

    if (ret == &w->metrics)
        access_configure(w->access, &o);
    return httpd_new(ret, w->o.loop, &o, ret_why);
}

static int web_serve_all(struct hub_web *w, char **ret_why)
{
    const char *own = w->o.metrics_address, *health = w->o.health_address;
    bool both = web_is_wanted(own) && web_is_wanted(health) && strcmp(own, health) == 0;
    size_t first = both ? 0 : HEALTH_ROUTES;
    int r = 0;

    if (both && (w->o.config_file || w->o.guard)) {
        *ret_why = strdup("the addresses of metrics and probes must differ: probes are not authenticated");
        return -EINVAL;
    }
    if (web_is_wanted(own))
        r = web_serve(&w->metrics, w, own, MAX_CONNECTIONS, first, w->n_routes - first, ret_why);
    if (r == 0 && web_is_wanted(health) && !both)
        r = web_serve(&w->health, w, health, PROBE_CONNECTIONS, 0, HEALTH_ROUTES, ret_why);
    if (r == 0 && w->metrics)
        r = access_serve(w->access, w->metrics);
    return r;
}

static int web_open_access(struct hub_web *w, char **ret_why)
{
    const struct access_options o = {
        .loop = w->o.loop, .metrics = w->o.metrics, .file = w->o.config_file, .guard = w->o.guard};
    int r = access_new(&w->access, &o, ret_why);

    w->o.hub->access = w->access;
    return r;
}

static void web_set_routes(struct hub_web *w)
{
    static const char *const pages[] = {"/", "/scorer", "/cluster", NULL};
    struct hub *h = w->o.hub;
    const struct httpd_route routes[HEALTH_ROUTES + API_ROUTES] = {
        {"GET", "/healthz", web_healthz, NULL, false, 0, 0},
        {"GET", "/readyz", web_readyz, h, false, 0, 0},
        {"GET", "/metrics", web_metrics, w, false, 0, 0},
        {"GET", "/api/v1/status", web_status, h, false, 0, 0},
        {"GET", "/api/v1/scorers", web_scorers, h, false, 0, 0},
        {"GET", "/api/v1/clusters", web_clusters, h, false, 0, 0},
        {"GET", "/api/v1/pairs", web_pairs, h, false, 0, 0},
        {"GET", "/api/v1/scorer", web_scorer, h, false, 0, 0},
        {"GET", "/api/v1/cluster", web_cluster, h, false, 0, 0},
    };

    memcpy(w->routes, routes, sizeof(routes));
    w->n_routes = ARRAY_SIZE(routes);
    w->n_routes += assets_routes(w->assets, pages, w->routes + w->n_routes);
}

int hub_web_start(struct hub_web **ret, const struct hub_web_options *o, char **ret_why)
{
    struct hub_web *w = calloc(1, sizeof(*w));
    int r = w ? page_new_without_scores(&w->page) : -ENOMEM;

    if (r == 0)
        r = assets_new(&w->assets);
    if (r == 0) {
        w->o = *o;
        web_set_routes(w);
        r = web_open_access(w, ret_why) ?: web_serve_all(w, ret_why);
    }
    if (r < 0) {
        (void)hub_web_stop(w, 0);
        return r;
    }
    *ret = w;
    return 0;
}

void hub_web_reload(struct hub_web *w)
{
    if (access_reload(w->access, NULL) < 0)
        log_debug("reload on SIGHUP failed");
}

struct hub_web *hub_web_stop(struct hub_web *w, int grace_ms)
{
    if (!w)
        return NULL;
    if (w->o.hub)
        w->o.hub->access = NULL;
    access_close(w->access);
    w->metrics = httpd_stop(w->metrics, grace_ms);
    w->health = httpd_stop(w->health, grace_ms);
    w->access = access_free(w->access);
    w->page = page_free(w->page);
    w->assets = assets_free(w->assets);
    free(w);
    return NULL;
}

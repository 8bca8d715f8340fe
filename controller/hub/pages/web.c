/* All is answered on the loop: /metrics is rendered when it is asked for, so that a controller at rest does
 * nothing, and a probe of /healthz finds a loop that hangs. */
#include "controller/hub/pages/web.h"

#include "controller/hub/pages/json.h"
#include "controller/hub/state/state.h"
#include "exporter/base/buf.h"
#include "exporter/base/httpd.h"
#include "exporter/base/log.h"
#include "exporter/ui/list.h"
#include "exporter/ui/site.h"

#include <errno.h>
#include <stdio.h>

enum { STATUS_MAX_BYTES = 256 << 20 };

struct hub_web {
    struct hub *hub;
    struct site *site;
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

static void web_set_metrics(void *arg)
{
    hub_set_metrics(arg);
}

/* The address, NULL if there is to be none. */
static const char *web_wanted(const char *address)
{
    return address && strcmp(address, "0") != 0 ? address : NULL;
}

static int web_serve(struct site **ret, const struct hub_web_options *o, char **ret_why)
{
    static const char *const pages[] = {"/", "/scorer", "/cluster", NULL};
    struct hub *h = o->hub;
    const char *own = web_wanted(o->metrics_address), *health = web_wanted(o->health_address);
    bool both = own && health && strcmp(own, health) == 0;
    const struct httpd_route probes[] = {
        {.method = "GET", .path = "/healthz", .fn = web_healthz},
        {.method = "GET", .path = "/readyz", .fn = web_readyz, .arg = h},
    };
    const struct httpd_route routes[] = {
        {.method = "GET", .path = "/api/v1/status", .fn = web_status, .arg = h},
        {.method = "GET", .path = "/api/v1/scorers", .fn = web_scorers, .arg = h},
        {.method = "GET", .path = "/api/v1/clusters", .fn = web_clusters, .arg = h},
        {.method = "GET", .path = "/api/v1/pairs", .fn = web_pairs, .arg = h},
        {.method = "GET", .path = "/api/v1/scorer", .fn = web_scorer, .arg = h},
        {.method = "GET", .path = "/api/v1/cluster", .fn = web_cluster, .arg = h},
    };
    const struct site_options site = {
        .loop = o->loop,
        .metrics = o->metrics,
        .listen = &own,
        .n_listen = own ? 1 : 0,
        .probe_address = both ? NULL : health,
        .config_file = o->config_file,
        .guard = o->guard,
        .probes = probes,
        .n_probes = ARRAY_SIZE(probes),
        .probes_everywhere = both,
        .routes = routes,
        .n_routes = ARRAY_SIZE(routes),
        .pages = pages,
        .before_metrics = web_set_metrics,
        .arg = h,
    };

    if (both && (o->config_file || o->guard)) {
        *ret_why = xstrdup("the addresses of metrics and probes must differ: probes are not authenticated");
        return -EINVAL;
    }
    return site_start(ret, &site, ret_why);
}

int hub_web_start(struct hub_web **ret, const struct hub_web_options *o, char **ret_why)
{
    CLEANUP(cleanup_free) struct hub_web *w = xcalloc(1, sizeof(*w));
    int r = web_serve(&w->site, o, ret_why);

    if (r < 0)
        return r;
    w->hub = o->hub;
    w->hub->access = site_access(w->site);
    *ret = TAKE_PTR(w);
    return 0;
}

void hub_web_reload(struct hub_web *w)
{
    if (site_reload(w->site, NULL) < 0)
        log_debug("reload on SIGHUP failed");
}

struct hub_web *hub_web_stop(struct hub_web *w, int grace_ms)
{
    if (!w)
        return NULL;
    w->hub->access = NULL;
    w->site = site_stop(w->site, grace_ms);
    free(w);
    return NULL;
}

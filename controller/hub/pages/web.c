/* All is answered on the loop: /metrics is rendered when it is asked for, so that a controller at rest does
 * nothing, and a probe of /healthz finds a loop that hangs. */
#include "controller/hub/pages/web.h"

#include "controller/hub/pages/json.h"
#include "controller/hub/state/state.h"
#include "exporter/base/buf.h"
#include "exporter/base/httpd.h"
#include "exporter/ui/list.h"

#include <errno.h>
#include <stdio.h>

enum { STATUS_MAX_BYTES = 256 << 20 };

static bool hub_web_is_ready(void *arg, struct buf *ret_why)
{
    const struct hub *h = arg;

    if (hub_synced(arg))
        return true;
    for (size_t i = 0; i < HUB_KINDS; i++) {
        const char *trouble = hub_watch_trouble(h, i);

        if (!hub_watch_listed(h, i) && buf_printf(ret_why, "%s: not listed yet%s%s\n", hub_kinds[i].plural,
                                                  trouble ? ": " : "", cstr(trouble)) < 0)
            break;
    }
    return false;
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

int hub_web_start(struct site **ret, struct hub *h, struct site_options *o, char **ret_why)
{
    static const char *const pages[] = {"/", "/scorer", "/cluster", NULL};
    const struct httpd_route routes[] = {
        {.method = "GET", .path = "/api/v1/status", .fn = web_status, .arg = h},
        {.method = "GET", .path = "/api/v1/scorers", .fn = web_scorers, .arg = h},
        {.method = "GET", .path = "/api/v1/clusters", .fn = web_clusters, .arg = h},
        {.method = "GET", .path = "/api/v1/pairs", .fn = web_pairs, .arg = h},
        {.method = "GET", .path = "/api/v1/scorer", .fn = web_scorer, .arg = h},
        {.method = "GET", .path = "/api/v1/cluster", .fn = web_cluster, .arg = h},
    };
    int r;

    o->routes = routes;
    o->n_routes = ARRAY_SIZE(routes);
    o->pages = pages;
    o->before_metrics = web_set_metrics;
    o->is_ready = hub_web_is_ready;
    o->probes_apart = true;
    o->arg = h;
    r = site_start(ret, o, ret_why);
    if (r == 0)
        h->access = site_access(*ret);
    return r;
}

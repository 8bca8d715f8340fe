/* All is answered on the loop: /metrics is rendered when it is asked for, so that a controller at rest does
 * nothing, and a probe of /healthz finds a loop that hangs. */
#include "controller/hub/pages/web.h"

#include "exporter/base/httpd.h"

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

/* A path of the API: a list, or one object. */
static const struct web_page {
    const char *path;
    int (*list)(struct hub *h, const struct list_query *q, struct buf *into);
    int (*one)(struct hub *h, const char *name, const struct list_query *q, struct buf *into);
    const char *kind; /* of the object that the parameter `name` names */
} web_pages[] = {
    {"/api/v1/status", .list = hub_json_status},
    {"/api/v1/scorers", .list = hub_json_scorers},
    {"/api/v1/clusters", .list = hub_json_clusters},
    {"/api/v1/pairs", .list = hub_json_pairs},
    {"/api/v1/scorer", NULL, hub_json_scorer, "scorer"},
    {"/api/v1/cluster", NULL, hub_json_cluster, "cluster"},
};

/* Of the parameters for lists. The overview has two lists, so that it is filtered and continued in theirs. */
static int web_read_query(const struct web_page *page, const struct httpd_request *rq, struct list_query *q,
                          const char **ret_why)
{
    static const char *const of_lists[] = {"continue", "state", "sort"};

    for (size_t i = 0; page->list == hub_json_status && i < ARRAY_SIZE(of_lists); i++)
        if (httpd_query(rq, of_lists[i])) {
            *ret_why = "unsupported parameter: continue, state and sort belong to /api/v1/scorers and "
                       "/api/v1/clusters";
            return -EINVAL;
        }
    return list_query_read(q, rq, ret_why);
}

static void web_answer(void *arg, const struct httpd_request *rq, struct httpd_reply *reply)
{
    CLEANUP(list_query_done) struct list_query q = {0};
    BUF_AUTO(body, STATUS_MAX_BYTES);
    const struct web_page *page = web_pages;
    const char *name = httpd_query(rq, "name"), *why = "missing parameter: name";
    char none[300];
    int r;

    while (strcmp(page->path, rq->path) != 0)
        page++;
    r = page->list || (name && *name) ? web_read_query(page, rq, &q, &why) : -EINVAL;
    if (r == 0)
        r = page->list ? page->list(arg, &q, &body) : page->one(arg, name, &q, &body);
    if (r == -ENOENT) {
        (void)snprintf(none, sizeof(none), "no %s named \"%.250s\"", page->kind, name);
        why = none;
    }
    api_reply(reply, r, why, &body);
}

int hub_web_start(struct site **ret, struct hub *h, struct site_options *o, char **ret_why)
{
    static const char *const pages[] = {"/", "/scorer", "/cluster", NULL};
    struct httpd_route routes[ARRAY_SIZE(web_pages)];
    int r;

    for (size_t i = 0; i < ARRAY_SIZE(web_pages); i++)
        routes[i] =
            (struct httpd_route){.method = "GET", .path = web_pages[i].path, .fn = web_answer, .arg = h};
    o->routes = routes;
    o->n_routes = ARRAY_SIZE(routes);
    o->pages = pages;
    o->before_metrics = hub_set_metrics;
    o->is_ready = hub_web_is_ready;
    o->probes_apart = true;
    o->access.arg = h;
    r = site_start(ret, o, ret_why);
    if (r == 0)
        h->access = site_access(*ret);
    return r;
}

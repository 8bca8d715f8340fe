/* Answers requests for the hub's pages and their JSON, which hub_json.c writes. All is answered on the loop,
 * each request from one view of the fleet: at rest it does nothing, and a probe of /healthz finds a loop that
 * hangs. Changes nothing of the hub. */
#include "controller/hub/pages/web.h"

#include "controller/hub/observed/observed.h"
#include "controller/hub/pages/hub_json.h"
#include "exporter/base/alloc.h"
#include "exporter/base/buf.h"
#include "exporter/http/httpd.h"
#include "exporter/ui/list.h"

#include <errno.h>
#include <stdio.h>

enum { STATUS_MAX_BYTES = 256 << 20 };

/* A line for each kind that has not been listed yet. */
static bool hub_web_is_ready(void *arg, struct buf *ret_why)
{
    const struct observed *seen = hub_fleet(arg).seen;

    if (observed_has_listed_all(seen))
        return true;
    for (enum hub_kind kind = 0; kind < HUB_KINDS; kind++) {
        const char *error = observed_error(seen, kind);

        if (observed_has_listed(seen, kind))
            continue;
        buf_printf(ret_why, "%s: not listed yet", hub_kind_word(kind));
        if (error)
            buf_printf(ret_why, ": %s", error);
        buf_putc(ret_why, '\n');
    }
    return false;
}

/* A path of the API: a list, or one object. */
static const struct web_page {
    const char *path;
    int (*list)(const struct answer_view *v, const struct list_query *q, struct buf *into);
    int (*one)(const struct answer_view *v, const char *name, const struct list_query *q, struct buf *into);
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

static const struct web_page *web_page_of(const char *path)
{
    const struct web_page *page = web_pages;

    while (strcmp(page->path, path) != 0) /* the server has no other routes */
        page++;
    return page;
}

static void web_answer(void *arg, const struct httpd_request *rq, struct httpd_reply *reply)
{
    const struct answer_view v = {.hub = arg, .f = hub_fleet(arg), .self = hub_self(arg)};
    const struct web_page *page = web_page_of(rq->path);
    CLEANUP(list_query_done) struct list_query q = {0};
    CLEANUP(cleanup_free) char *none = NULL;
    BUF_AUTO(body, STATUS_MAX_BYTES);
    const char *name = httpd_query(rq, "name"), *why = "missing parameter: name";
    int r = -EINVAL;

    if (page->list || (name && *name))
        r = web_read_query(page, rq, &q, &why);
    if (r == 0)
        r = page->list ? page->list(&v, &q, &body) : page->one(&v, name, &q, &body);
    if (r == -ENOENT)
        why = none = xasprintf("no %s named \"%.250s\"", page->kind, name);
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
        hub_set_access(h, site_access(*ret));
    return r;
}

/* /metrics is answered on the server's thread, all else on the loop: a probe of /-/healthy finds a loop that
 * hangs. Probes may have an address of their own. */
#include "exporter/agent/web.h"

#include "exporter/agent/agent.h"
#include "exporter/agent/config.h"
#include "exporter/agent/status.h"
#include "exporter/base/buf.h"
#include "exporter/base/httpd.h"
#include "exporter/metric/page.h"
#include "exporter/ui/api.h"
#include "exporter/ui/assets.h"
#include "exporter/ui/list.h"
#include "exporter/web/access.h"

#include <errno.h>

enum { MAX_CONNECTIONS = 1024, IDLE_SECONDS = 120, STATUS_MAX_BYTES = 256 << 20 };

enum { PROBE_CONNECTIONS = 128, RELOAD_SPACING_MS = 1000 };

enum { PROBE_ROUTES = 2, API_ROUTES = 5 };

struct web {
    struct agent *agent;
    struct access *access;
    struct httpd *httpd, *probes;
    struct assets *assets;
    struct httpd_route routes[API_ROUTES + ASSETS_MAX_ROUTES]; /* those for probes come first */
};

static struct web *web_free(struct web *w)
{
    if (!w)
        return NULL;
    if (w->agent)
        agent_set_access(w->agent, NULL);
    access_close(w->access);
    w->httpd = httpd_stop(w->httpd, 0);
    w->probes = httpd_stop(w->probes, 0);
    w->access = access_free(w->access);
    w->assets = assets_free(w->assets);
    free(w);
    return NULL;
}
DEFINE_CLEANUP(struct web, web_free)

static void web_healthy(void *arg, const struct httpd_request *rq, struct httpd_reply *reply)
{
    (void)arg;
    (void)rq;
    httpd_reply_text(reply, 200, STR("healthy\n"));
}

static void web_ready(void *arg, const struct httpd_request *rq, struct httpd_reply *reply)
{
    (void)rq;
    if (agent_state(arg)->config)
        httpd_reply_text(reply, 200, STR("ready\n"));
    else
        httpd_reply_text(reply, 503, STR("no configuration has been applied yet\n"));
}

static void web_reload(void *arg, const struct httpd_request *rq, struct httpd_reply *reply)
{
    BUF_AUTO(why, 4u << 20);
    struct web *w = arg;
    int r = agent_reload(w->agent, &why), web = web_reload_config(w, &why);

    (void)rq;
    r = r ?: web;
    if (buf_puts(&why, r == 0 ? "configuration applied\n"
                              : "configuration rejected; the last valid configuration stays active\n") < 0)
        buf_truncate(&why, 0); /* the status code says enough */
    httpd_reply_text(reply, r == 0 ? 200 : r == -EINVAL ? 400 : 500, buf_str(&why));
}

static void web_no_reload(void *arg, const struct httpd_request *rq, struct httpd_reply *reply)
{
    (void)arg;
    (void)rq;
    httpd_reply_text(reply, 403,
                     STR("Lifecycle API is not enabled: start the agent with --web.enable-lifecycle, or "
                         "send it SIGHUP.\n"));
}

static void web_api_status(void *arg, const struct httpd_request *rq, struct httpd_reply *reply)
{
    CLEANUP(list_query_done) struct list_query q = {0};
    BUF_AUTO(body, STATUS_MAX_BYTES);
    const char *why = "";
    int r = list_query_read(&q, rq, &why) ?: status_json(agent_state(arg), &q, &body);

    api_reply(reply, r, why, &body);
}

int web_reload_config(struct web *w, struct buf *ret_why)
{
    return access_reload(w->access, ret_why);
}

static void web_on_access_changed(void *arg)
{
    agent_touch(arg);
}

static int web_listen(struct httpd **ret, struct web *w, const struct agent_state *a,
                      const struct httpd_options *o, char **ret_why)
{
    struct httpd_options all = *o;

    all.idle_seconds = IDLE_SECONDS;
    all.routes = w->routes;
    all.served = page_count_request;
    all.cut = page_count_cut;
    all.held = page_held;
    all.served_arg = a->page;
    return httpd_new(ret, a->loop, &all, ret_why);
}

/* Returns the number of routes. */
static size_t web_routes(struct web *w, struct agent *a, bool lifecycle)
{
    static const char *const pages[] = {"/", NULL};
    const struct httpd_route api[API_ROUTES] = {
        {"GET", "/-/healthy", web_healthy, a, false, 0, 0},
        {"GET", "/-/ready", web_ready, a, false, 0, 0},
        {"GET", "/metrics", page_serve, agent_state(a)->page, true, 0, 0},
        {"POST", "/-/reload", lifecycle ? web_reload : web_no_reload, w, false, RELOAD_SPACING_MS, 0},
        {"GET", "/api/v1/status", web_api_status, a, false, 0, 0},
    };

    memcpy(w->routes, api, sizeof(api));
    return API_ROUTES + assets_routes(w->assets, pages, w->routes + API_ROUTES);
}

static int web_control_access(struct web *w, const struct web_options *o, struct httpd_options *options,
                              char **ret_why)
{
    const struct access_options access = {.loop = agent_state(w->agent)->loop,
                                          .metrics = agent_state(w->agent)->metrics,
                                          .file = o->config_file,
                                          .guard = o->guard,
                                          .changed = web_on_access_changed,
                                          .arg = w->agent};
    int r = access_new(&w->access, &access, ret_why);

    if (r < 0)
        return r;
    access_configure(w->access, options);
    agent_set_access(w->agent, w->access);
    return 0;
}

int web_start(struct web **ret, struct agent *a, const struct web_options *o, char **ret_why)
{
    const struct config *c = agent_state(a)->config;
    CLEANUP(cleanup_web_free) struct web *w = calloc(1, sizeof(*w));
    int r = w ? assets_new(&w->assets) : -ENOMEM;
    struct httpd_options main;

    if (r < 0)
        return r;
    w->agent = a;
    main = (struct httpd_options){.listen = (const char *const *)c->listen,
                                  .n_listen = c->n_listen,
                                  .max_connections = MAX_CONNECTIONS,
                                  .n_routes = web_routes(w, a, o->lifecycle)};
    r = web_control_access(w, o, &main, ret_why) ?: web_listen(&w->httpd, w, agent_state(a), &main, ret_why);
    if (r == 0)
        r = access_serve(w->access, w->httpd);
    if (r == 0 && o->probe_address)
        r = web_listen(&w->probes, w, agent_state(a),
                       &(struct httpd_options){.listen = &o->probe_address,
                                               .n_listen = 1,
                                               .max_connections = PROBE_CONNECTIONS,
                                               .n_routes = PROBE_ROUTES},
                       ret_why);
    if (r == 0)
        *ret = TAKE_PTR(w);
    return r;
}

struct web *web_stop(struct web *w, int grace_ms)
{
    if (!w)
        return NULL;
    access_close(w->access);
    w->httpd = httpd_stop(w->httpd, grace_ms);
    w->probes = httpd_stop(w->probes, grace_ms);
    return web_free(w);
}

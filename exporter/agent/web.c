/* The agent's routes: reload, status and readiness, over those that all roles have (exporter/ui/site.h). The
 * handlers run on the loop. */
#include "exporter/agent/web.h"

#include "exporter/agent/status_json.h"
#include "exporter/base/buf.h"
#include "exporter/http/httpd.h"
#include "exporter/ui/list.h"

#include <errno.h>

enum { STATUS_MAX_BYTES = 256 << 20, RELOAD_SPACING_MS = 1000 };

static bool web_is_ready(void *arg, struct buf *ret_why)
{
    bool ready = agent_state(arg)->config;

    if (!ready)
        buf_puts(ret_why, "no configuration has been applied yet\n");
    return ready;
}

static unsigned web_reload_status(int r)
{
    if (r == 0)
        return 200;
    return r == -EINVAL ? 400 : 500;
}

/* Each of the two files is applied or rejected by itself. */
static void web_reload(void *arg, const struct httpd_request *rq, struct httpd_reply *reply)
{
    BUF_AUTO(why, 4u << 20);
    int r = agent_reload(arg, &why), web = access_reload(agent_state(arg)->access, &why);

    (void)rq;
    if (r == 0)
        buf_puts(&why, "configuration applied\n");
    else
        buf_puts(&why, "configuration rejected; the last valid configuration stays active\n");
    if (web < 0)
        buf_puts(&why, "web configuration rejected; the last valid one stays active\n");
    if (buf_failed(&why) < 0)
        buf_clear(&why); /* the status code says enough */
    httpd_reply_text(reply, web_reload_status(r ?: web), buf_str(&why));
}

static void web_no_reload(void *arg, const struct httpd_request *rq, struct httpd_reply *reply)
{
    (void)arg, (void)rq;
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

static void web_on_access_changed(void *arg)
{
    agent_touch(arg);
}

int web_start(struct site **ret, struct agent *a, struct site_options *o, bool lifecycle, char **ret_why)
{
    static const char *const pages[] = {"/", NULL};
    const struct agent_state *state = agent_state(a);
    const struct httpd_route routes[] = {
        {.method = "POST",
         .path = "/-/reload",
         .fn = lifecycle ? web_reload : web_no_reload,
         .arg = a,
         .spacing_ms = RELOAD_SPACING_MS},
        {.method = "GET", .path = "/api/v1/status", .fn = web_api_status, .arg = a},
    };
    int r;

    o->access.loop = state->loop;
    o->access.metrics = state->metrics;
    o->listen = state->config->listen;
    o->n_listen = state->config->n_listen;
    o->routes = routes;
    o->n_routes = ARRAY_SIZE(routes);
    o->pages = pages;
    o->page = state->page;
    o->is_ready = web_is_ready;
    o->agent_probes = true;
    o->access.changed = web_on_access_changed;
    o->access.arg = a;
    r = site_start(ret, o, ret_why);
    if (r == 0)
        agent_set_access(a, site_access(*ret));
    return r;
}

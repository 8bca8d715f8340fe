/* /metrics is answered on the server's thread, all else on the loop: a probe of /-/healthy finds a loop that
 * hangs. Probes may have an address of their own. */
#include "exporter/agent/web.h"

#include "exporter/agent/agent.h"
#include "exporter/agent/status.h"
#include "exporter/base/buf.h"
#include "exporter/base/httpd.h"
#include "exporter/ui/list.h"
#include "exporter/ui/site.h"

#include <errno.h>

enum { STATUS_MAX_BYTES = 256 << 20, RELOAD_SPACING_MS = 1000 };

struct web {
    struct agent *agent;
    struct site *site;
};

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
    return site_reload(w->site, ret_why);
}

static void web_on_access_changed(void *arg)
{
    agent_touch(arg);
}

int web_start(struct web **ret, struct agent *a, const struct web_options *o, char **ret_why)
{
    static const char *const pages[] = {"/", NULL};
    const struct agent_state *state = agent_state(a);
    CLEANUP(cleanup_free) struct web *w = xcalloc(1, sizeof(*w));
    const struct httpd_route probes[] = {
        {.method = "GET", .path = "/-/healthy", .fn = web_healthy, .arg = a},
        {.method = "GET", .path = "/-/ready", .fn = web_ready, .arg = a},
    };
    const struct httpd_route routes[] = {
        {.method = "POST",
         .path = "/-/reload",
         .fn = o->lifecycle ? web_reload : web_no_reload,
         .arg = w,
         .spacing_ms = RELOAD_SPACING_MS},
        {.method = "GET", .path = "/api/v1/status", .fn = web_api_status, .arg = a},
    };
    const struct site_options site = {
        .loop = state->loop,
        .metrics = state->metrics,
        .listen = (const char *const *)state->config->listen,
        .n_listen = state->config->n_listen,
        .probe_address = o->probe_address,
        .config_file = o->config_file,
        .guard = o->guard,
        .probes = probes,
        .n_probes = ARRAY_SIZE(probes),
        .probes_everywhere = true,
        .routes = routes,
        .n_routes = ARRAY_SIZE(routes),
        .pages = pages,
        .page = state->page,
        .changed = web_on_access_changed,
        .arg = a,
    };
    int r = site_start(&w->site, &site, ret_why);

    if (r < 0)
        return r;
    w->agent = a;
    agent_set_access(a, site_access(w->site));
    *ret = TAKE_PTR(w);
    return 0;
}

struct web *web_stop(struct web *w, int grace_ms)
{
    if (!w)
        return NULL;
    agent_set_access(w->agent, NULL);
    w->site = site_stop(w->site, grace_ms);
    free(w);
    return NULL;
}

/* /metrics is answered on the server's thread, all else on the loop: a probe of /-/healthy finds a loop that hangs. */
#include "exporter/agent/web.h"

#include "exporter/agent/status.h"

#include <errno.h>

enum { MAX_CONNECTIONS = 1024, IDLE_SECONDS = 120, STATUS_MAX_BYTES = 256 << 20 };

struct web {
    struct httpd *httpd;
    struct httpd_route routes[6];
};

static void healthy(void *arg, const struct httpd_request *rq, struct httpd_reply *reply)
{
    (void)arg;
    (void)rq;
    httpd_reply_text(reply, 200, STR("healthy\n"));
}

static void ready(void *arg, const struct httpd_request *rq, struct httpd_reply *reply)
{
    (void)rq;
    if (agent_config(arg))
        httpd_reply_text(reply, 200, STR("ready\n"));
    else
        httpd_reply_text(reply, 503, STR("no configuration has been applied yet\n"));
}

static void reload(void *arg, const struct httpd_request *rq, struct httpd_reply *reply)
{
    BUF_AUTO(why, 4u << 20);
    int r = agent_reload(arg, &why);

    (void)rq;
    if (buf_puts(&why, r == 0 ? "configuration applied\n"
                              : "configuration refused, the one before stays in force\n") < 0)
        buf_truncate(&why, 0); /* the status alone must tell */
    httpd_reply_text(reply, r == 0 ? 200 : r == -EINVAL ? 400 : 500, buf_str(&why));
}

static void rendered(void *arg, struct httpd_reply *reply, const char *content_type,
                     int (*render)(const struct agent *, struct buf *))
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
    rendered(arg, reply, "text/html; charset=utf-8", status_html);
    reply->csp = status_html_csp;
}

static void api_status(void *arg, const struct httpd_request *rq, struct httpd_reply *reply)
{
    (void)rq;
    rendered(arg, reply, "application/json", status_json);
}

int web_start(struct web **ret, struct agent *a, char **ret_why)
{
    const struct config *c = agent_config(a);
    struct web *w = calloc(1, sizeof(*w));
    int r;

    if (!w)
        return -ENOMEM;
    *w = (struct web){.routes = {
                          {"GET", "/", page_html, a, false},
                          {"GET", "/metrics", page_serve, agent_page(a), true},
                          {"GET", "/-/healthy", healthy, a, false},
                          {"GET", "/-/ready", ready, a, false},
                          {"POST", "/-/reload", reload, a, false},
                          {"GET", "/api/v1/status", api_status, a, false},
                      }};
    r = httpd_new(&w->httpd, agent_loop(a),
                  &(struct httpd_options){
                      .listen = (const char *const *)c->listen,
                      .n_listen = c->n_listen,
                      .max_connections = MAX_CONNECTIONS,
                      .idle_seconds = IDLE_SECONDS,
                      .routes = w->routes,
                      .n_routes = ARRAY_SIZE(w->routes),
                      .served = page_count_request,
                      .served_arg = agent_page(a),
                  },
                  ret_why);
    if (r < 0) {
        free(w);
        return r;
    }
    *ret = w;
    return 0;
}

struct web *web_stop(struct web *w, int grace_ms)
{
    if (!w)
        return NULL;
    (void)httpd_stop(w->httpd, grace_ms);
    free(w);
    return NULL;
}

#include "exporter/ui/site.h"

#include "exporter/base/buf.h"
#include "exporter/base/log.h"
#include "exporter/ui/assets.h"

#include <errno.h>
#include <stdio.h>

enum { MAX_CONNECTIONS = 1024, PROBE_CONNECTIONS = 128, IDLE_SECONDS = 120 };

struct site {
    struct loop *loop;
    struct metrics *metrics;
    void (*before_metrics)(void *arg);
    void *arg;
    struct page *page, *own_page;
    struct assets *assets;
    struct access *access;
    struct httpd *main, *probes;
    size_t n_listen; /* of main */
    size_t n_routes;
    struct httpd_route routes[]; /* those for probes come first */
};

static void site_serve_metrics(void *arg, const struct httpd_request *rq, struct httpd_reply *reply)
{
    struct site *s = arg;

    if (s->before_metrics)
        s->before_metrics(s->arg);
    if (page_set_own(s->page, s->metrics) < 0)
        log_error("own metrics not renewed: out of memory");
    page_serve(s->page, rq, reply);
}

static void site_set_routes(struct site *s, const struct site_options *o)
{
    struct httpd_route *to = s->routes;

    for (size_t i = 0; i < o->n_probes; i++)
        *to++ = o->probes[i];
    *to++ = (struct httpd_route){.method = "GET",
                                 .path = "/metrics",
                                 .fn = o->page ? page_serve : site_serve_metrics,
                                 .arg = o->page ? (void *)o->page : s,
                                 .direct = o->page != NULL};
    for (size_t i = 0; i < o->n_routes; i++)
        *to++ = o->routes[i];
    if (o->pages)
        to += assets_routes(s->assets, o->pages, to);
    s->n_routes = (size_t)(to - s->routes);
}

static int site_new(struct site **ret, const struct site_options *o)
{
    size_t most = o->n_probes + 1 + o->n_routes + ASSETS_MAX_ROUTES;
    struct site *s = xcalloc(1, sizeof(*s) + most * sizeof(s->routes[0]));
    int r = 0;

    if (r == 0 && !o->page)
        r = page_new_without_scores(&s->own_page);
    if (r == 0 && o->pages)
        r = assets_new(&s->assets);
    if (r < 0) {
        (void)site_stop(s, 0);
        return r;
    }
    s->loop = o->loop;
    s->metrics = o->metrics;
    s->n_listen = o->n_listen;
    s->before_metrics = o->before_metrics;
    s->arg = o->arg;
    s->page = o->page ? o->page : s->own_page;
    site_set_routes(s, o);
    *ret = s;
    return 0;
}

/* Serves the routes on the addresses of `set`. */
static int site_listen(struct httpd **ret, const struct site *s, const struct httpd_options *set,
                       char **ret_why)
{
    struct httpd_options o = *set;

    o.idle_seconds = IDLE_SECONDS;
    o.served = page_count_request;
    o.cut = page_count_cut;
    o.held = page_held;
    o.served_arg = s->page;
    return httpd_new(ret, s->loop, &o, ret_why);
}

static int site_listen_main(struct site *s, const struct site_options *o, char **ret_why)
{
    size_t first = o->probes_everywhere ? 0 : o->n_probes;
    struct httpd_options main = {.listen = o->listen,
                                 .n_listen = o->n_listen,
                                 .max_connections = MAX_CONNECTIONS,
                                 .max_body_bytes = o->max_body_bytes,
                                 .routes = s->routes + first,
                                 .n_routes = s->n_routes - first};
    int r;

    access_configure(s->access, &main);
    r = site_listen(&s->main, s, &main, ret_why);
    if (r == 0)
        access_serve(s->access, s->main);
    return r;
}

static int site_listen_probes(struct site *s, const struct site_options *o, char **ret_why)
{
    const struct httpd_options probes = {.listen = &o->probe_address,
                                         .n_listen = 1,
                                         .max_connections = PROBE_CONNECTIONS,
                                         .routes = s->routes,
                                         .n_routes = o->n_probes};

    return site_listen(&s->probes, s, &probes, ret_why);
}

int site_start(struct site **ret, const struct site_options *o, char **ret_why)
{
    const struct access_options access = {.loop = o->loop,
                                          .metrics = o->metrics,
                                          .file = o->config_file,
                                          .guard = o->guard,
                                          .changed = o->changed,
                                          .arg = o->arg};
    struct site *s = NULL;
    int r = site_new(&s, o);

    if (r == 0)
        r = access_new(&s->access, &access, ret_why);
    if (r == 0 && o->n_listen)
        r = site_listen_main(s, o, ret_why);
    if (r == 0 && o->probe_address)
        r = site_listen_probes(s, o, ret_why);
    if (r < 0) {
        (void)site_stop(s, 0);
        return r;
    }
    *ret = s;
    return 0;
}

const struct access *site_access(const struct site *s)
{
    return s->access;
}

int site_reload(struct site *s, struct buf *ret_why)
{
    return access_reload(s->access, ret_why);
}

unsigned site_port(const struct site *s, size_t i)
{
    return httpd_port(s->main, i);
}

bool site_is_open(const struct site *s)
{
    for (size_t i = 0; i < s->n_listen; i++)
        if (!httpd_is_loopback(s->main, i))
            return !access_authenticates(s->access);
    return false;
}

struct site *site_stop(struct site *s, int grace_ms)
{
    if (!s)
        return NULL;
    access_close(s->access);
    s->main = httpd_stop(s->main, grace_ms);
    s->probes = httpd_stop(s->probes, grace_ms);
    s->access = access_free(s->access);
    s->own_page = page_free(s->own_page);
    s->assets = assets_free(s->assets);
    free(s);
    return NULL;
}

/* ---- What the API of every role answers ---- */

void api_reply(struct httpd_reply *reply, int r, const char *why, const struct buf *body)
{
    char text[512];

    if (r == 0) {
        httpd_reply_copy(reply, buf_str(body));
        reply->content_type = "application/json";
        return;
    }
    if (r != -EINVAL && r != -ENOENT)
        why = r == -EFBIG ? "the answer is too large; set limit" : "out of memory";
    (void)snprintf(text, sizeof(text), "%s\n", why);
    httpd_reply_text(reply, r == -EINVAL ? 400 : r == -ENOENT ? 404 : 500, str_of(text));
}

/* Owns the HTTP servers of a role, the access control before one of them, and the page of a role that has
 * none of its own. On the loop, but for asset_serve(). */
#include "exporter/ui/site.h"

#include "exporter/base/alloc.h"
#include "exporter/base/buf.h"
#include "exporter/base/log.h"
#include "exporter/metric/negotiate.h"
#include "exporter/metric/page.h"

#include <errno.h>
#include <stdio.h>

enum {
    MAX_CONNECTIONS = 1024,
    PROBE_CONNECTIONS = 128,
    IDLE_SECONDS = 120,
    PROBE_ROUTES = 2,
    WHY_MAX_BYTES = 1 << 20,
    PAGES_MAX = 8,
};

struct site {
    struct site_options o;
    struct page *page, *own_page;
    struct access *access;
    struct httpd *main, *probes;
    size_t n_probes, n_routes;
    struct httpd_route routes[]; /* those for probes come first */
};

/* ---- The pages' files ---- */

static const char asset_policy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/* Serves a file: revalidated by ETag, compressed where the client takes gzip, and with a policy that lets a
 * browser load nothing from elsewhere. Any server's thread. */
static void asset_serve(void *arg, const struct httpd_request *rq, struct httpd_reply *reply)
{
    const struct asset_file *a = arg;
    bool gzip = negotiate_gzip(rq->accept_encoding);

    reply->content_type = a->content_type;
    reply->vary = "Accept-Encoding";
    reply->cache_control = "no-cache";
    reply->csp = asset_policy;
    reply->etag = gzip ? a->gzip_etag : a->etag;
    /* A list of tags, each perhaps weak, or "*" (RFC 9110, 13.1.2). The quotes belong to the tag. */
    if (strstr(rq->if_none_match, reply->etag) || strcmp(rq->if_none_match, "*") == 0) {
        reply->status = 304;
        return;
    }
    reply->content_encoding = gzip ? "gzip" : NULL;
    reply->parts = gzip ? &a->gzip : &a->plain;
    reply->n_parts = 1;
}

/* Makes the routes of all files, and of the page at each of `pages`. Returns their end. */
static struct httpd_route *assets_open(const char *const *pages, struct httpd_route *to)
{
    for (size_t i = 0; i < asset_files_n; i++) {
        struct httpd_route route = {.method = "GET",
                                    .path = asset_files[i].path,
                                    .fn = asset_serve,
                                    .arg = (void *)(uintptr_t)&asset_files[i],
                                    .direct = true};

        if (strcmp(route.path, "/ui/index.html") != 0)
            *to++ = route;
        else
            for (size_t k = 0; k < PAGES_MAX && (route.path = pages[k]); k++)
                *to++ = route;
    }
    return to;
}

/* ---- Routes ---- */

static void site_serve_metrics(void *arg, const struct httpd_request *rq, struct httpd_reply *reply)
{
    struct site *s = arg;

    if (s->o.before_metrics)
        s->o.before_metrics(s->o.access.arg);
    if (page_set_own(s->page, s->o.access.metrics) < 0)
        log_error("own metrics not renewed: out of memory");
    page_serve(s->page, rq, reply);
}

static void site_healthy(void *arg, const struct httpd_request *rq, struct httpd_reply *reply)
{
    const struct site *s = arg;

    (void)rq;
    httpd_reply_text(reply, 200, s->o.agent_probes ? STR("healthy\n") : STR("ok"));
}

static void site_ready(void *arg, const struct httpd_request *rq, struct httpd_reply *reply)
{
    const struct site *s = arg;
    BUF_AUTO(why, WHY_MAX_BYTES);

    (void)rq;
    if (s->o.is_ready(s->o.access.arg, &why))
        httpd_reply_text(reply, 200, s->o.agent_probes ? STR("ready\n") : STR("ok"));
    else
        httpd_reply_text(reply, 503, why.n ? buf_str(&why) : STR("not ready\n"));
}

static void site_set_routes(struct site *s)
{
    const struct site_options *o = &s->o;
    struct httpd_route *to = s->routes;

    if (o->is_ready) {
        *to++ = (struct httpd_route){.method = "GET",
                                     .path = o->agent_probes ? "/-/healthy" : "/healthz",
                                     .fn = site_healthy,
                                     .arg = s};
        *to++ = (struct httpd_route){
            .method = "GET", .path = o->agent_probes ? "/-/ready" : "/readyz", .fn = site_ready, .arg = s};
        s->n_probes = 2;
    }
    *to++ = (struct httpd_route){.method = "GET",
                                 .path = "/metrics",
                                 .fn = o->page ? page_serve : site_serve_metrics,
                                 .arg = o->page ? (void *)o->page : s,
                                 .direct = o->page != NULL};
    for (size_t i = 0; i < o->n_routes; i++)
        *to++ = o->routes[i];
    if (o->pages)
        to = assets_open(o->pages, to);
    s->n_routes = (size_t)(to - s->routes);
}

/* ---- The servers ---- */

static int site_listen_all(struct site *s, char **ret_why)
{
    const struct site_options *o = &s->o;
    bool has_main = o->n_listen, has_probes = o->probe_address && strcmp(o->probe_address, "0") != 0;
    bool same = o->probes_apart && has_main && has_probes && strcmp(o->listen[0], o->probe_address) == 0;
    size_t first = o->probes_apart && !same ? s->n_probes : 0;
    struct httpd_options set = {.listen = o->listen,
                                .n_listen = o->n_listen,
                                .max_connections = MAX_CONNECTIONS,
                                .max_body_bytes = o->max_body_bytes,
                                .idle_seconds = IDLE_SECONDS,
                                .routes = s->routes + first,
                                .n_routes = s->n_routes - first,
                                .served = page_count_request,
                                .cut = page_count_cut,
                                .old_bytes = page_old_bytes,
                                .served_arg = s->page};
    int r = 0;

    if (same && (o->access.file || o->access.guard)) {
        *ret_why = xstrdup("the addresses of metrics and probes must differ: probes are not authenticated");
        return -EINVAL;
    }
    if (has_main)
        r = access_serve(s->access, &s->main, set, ret_why);
    set.listen = &o->probe_address;
    set.n_listen = 1;
    set.max_connections = PROBE_CONNECTIONS;
    set.max_body_bytes = 0;
    set.routes = s->routes;
    set.n_routes = s->n_probes;
    if (r == 0 && has_probes && !same)
        r = httpd_new(&s->probes, o->access.loop, &set, ret_why);
    return r;
}

int site_start(struct site **ret, const struct site_options *o, char **ret_why)
{
    struct site *s = xcalloc(1, sizeof(*s) + (PROBE_ROUTES + 1 + o->n_routes + asset_files_n + PAGES_MAX) *
                                                 sizeof(s->routes[0]));
    int r;

    s->o = *o;
    s->page = o->page ?: (s->own_page = page_new(false));
    site_set_routes(s);
    r = access_new(&s->access, &o->access, ret_why);
    if (r == 0)
        r = site_listen_all(s, ret_why);
    if (r < 0) {
        (void)site_stop(s, 0);
        return r;
    }
    *ret = s;
    return 0;
}

struct access *site_access(const struct site *s)
{
    return s->access;
}

int site_reload(struct site *s, struct buf *ret_why)
{
    return s ? access_reload(s->access, ret_why) : 0;
}

unsigned site_port(const struct site *s, size_t i)
{
    return httpd_port(s->main, i);
}

bool site_is_open(const struct site *s)
{
    for (size_t i = 0; i < s->o.n_listen; i++)
        if (!httpd_is_loopback(s->main, i))
            return !access_authenticates(s->access);
    return false;
}

struct site *site_stop(struct site *s, int grace_ms)
{
    if (!s)
        return NULL;
    s->access = access_stop(s->access, grace_ms);
    s->probes = httpd_stop(s->probes, grace_ms);
    s->own_page = page_free(s->own_page);
    free(s);
    return NULL;
}

/* ---- What the API of every role answers ---- */

void api_reply(struct httpd_reply *reply, int r, const char *why, const struct buf *body)
{
    BUF_AUTO(text, WHY_MAX_BYTES);
    unsigned status = 500;

    switch (r) {
    case 0:
        httpd_reply_copy(reply, buf_str(body));
        reply->content_type = "application/json";
        return;
    case -EINVAL:
        status = 400;
        break;
    case -ENOENT:
        status = 404;
        break;
    case -EFBIG:
        why = "the answer is too large; set limit";
        break;
    default:
        why = "out of memory";
        break;
    }
    buf_puts(&text, why);
    buf_puts(&text, "\n");
    if (buf_failed(&text) < 0)
        buf_clear(&text); /* the status says enough */
    httpd_reply_text(reply, status, buf_str(&text));
}

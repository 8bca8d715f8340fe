/* Replaces the HTTP server (the linker takes these definitions first): a simulated client calls the
 * program's own routes on its loop. */
#include "exporter/http/httpd.h"
#include "exporter/base/alloc.h"

#include "exporter/base/buf.h"
#include "test/universe/sim.h"

struct httpd {
    struct httpd_options o;
    const struct process *process;
    struct httpd *next;
};

static struct httpd *servers;

int httpd_new(struct httpd **ret, struct loop *loop, const struct httpd_options *o, char **ret_why)
{
    struct httpd *h = xcalloc(1, sizeof(*h));

    (void)loop, (void)ret_why;
    *h = (struct httpd){.o = *o, .process = sim_process, .next = servers};
    *ret = servers = h;
    return 0;
}

struct httpd *httpd_stop(struct httpd *h, int grace_ms)
{
    struct httpd **at = &servers;

    (void)grace_ms;
    while (*at && *at != h)
        at = &(*at)->next;
    if (*at)
        *at = h->next;
    free(h);
    return NULL;
}

unsigned httpd_port(const struct httpd *h, size_t i)
{
    (void)h, (void)i;
    return 1;
}

bool httpd_is_loopback(const struct httpd *h, size_t i)
{
    (void)h, (void)i;
    return true;
}

unsigned sim_ask(const char *method, const char *path, struct buf *ret)
{
    struct httpd_request rq = {.method = method,
                               .path = path,
                               .accept = "",
                               .accept_encoding = "",
                               .if_none_match = "",
                               .content_type = "",
                               .content_encoding = "",
                               .authorization = ""};
    struct httpd_reply reply = {0};
    const struct httpd *h = servers;
    size_t i = 0;

    while (h && h->process != sim_process)
        h = h->next;
    while (h && i < h->o.n_routes &&
           (strcmp(h->o.routes[i].path, path) != 0 || strcmp(h->o.routes[i].method, method) != 0))
        i++;
    if (!h || i == h->o.n_routes)
        violated(ORACLE_PAGES, "nobody answers %s %s", method, path);
    h->o.routes[i].fn(h->o.routes[i].arg, &rq, &reply);
    reply.status = reply.status ?: 200;
    for (i = 0; i < reply.n_parts; i++)
        buf_put(ret, reply.parts[i].iov_base, reply.parts[i].iov_len);
    if (buf_failed(ret) < 0)
        violated(ORACLE_MODEL, "the answer to %s %s is too long", method, path);
    if (reply.release)
        reply.release(reply.arg);
    h->o.served(h->o.served_arg, path, reply.status, ret->n);
    return reply.status;
}

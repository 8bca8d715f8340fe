/* The HTTP servers of a role: one with access control, /metrics and the pages, and one for probes, plain and
 * open. Probes are answered on the loop: they find one that hangs. And what the APIs of all roles share. */
#pragma once

#include "exporter/base/buf.h"
#include "exporter/http/httpd.h"
#include "exporter/metric/page.h"
#include "exporter/web/access.h"

/* One of the pages' files, as embed.cmake writes it into the program. */
struct asset_file {
    const char *path, *content_type, *etag, *gzip_etag;
    struct iovec plain, gzip;
};
extern const struct asset_file asset_files[];
extern const size_t asset_files_n;

struct site;

/* The program that serves sets the first part, the role that is served the second one. */
struct site_options {
    struct access_options access; /* its guard must outlive the server */
    const char *const *listen;    /* addresses of the server with access control */
    size_t n_listen;              /* 0: no such server */
    const char *probe_address;    /* of an open server for probes alone; NULL or "0": none */

    uint64_t max_body_bytes;          /* of all request bodies held at once; 0: httpd's own */
    const struct httpd_route *routes; /* copied */
    size_t n_routes;
    const char *const *pages; /* the paths of the pages, ended by NULL; NULL: none */
    /* What /metrics serves; must outlive the servers. NULL: `metrics` alone, rendered for each request after
     * before_metrics(access.arg), which may be NULL. */
    struct page *page;
    void (*before_metrics)(void *arg);
    /* Whether the program is ready, for /readyz; if not, *ret_why may get the reasons. NULL: the role has no
     * probes, or routes of its own for them. */
    bool (*is_ready)(void *arg, struct buf *ret_why);
    bool agent_probes; /* named /-/healthy and /-/ready instead of /healthz and /readyz */
    bool probes_apart; /* the server with access control has them only if it has the same address */
};

/* On failure *ret_why (from malloc) says what is wrong, and the log has the problems of the file. */
MUST_USE int site_start(struct site **ret, const struct site_options *o, char **ret_why);
/* For the status page; valid until site_stop(). */
struct access *site_access(const struct site *s);
/* As access_reload(). Takes NULL. */
int site_reload(struct site *s, struct buf *ret_why);
/* The bound port of listen address i. */
unsigned site_port(const struct site *s, size_t i);
/* Whether anyone who reaches a listen address from another machine is served without authentication. */
bool site_is_open(const struct site *s);
/* Lets answers under way leave for at most grace_ms. Takes NULL, returns NULL. */
struct site *site_stop(struct site *s, int grace_ms);

/* The reply of a path of /api/v1. r is the result of writing the body. 0: the body, as JSON; -EINVAL: 400 and
 * -ENOENT: 404, both with `why` as text; else 500. */
void api_reply(struct httpd_reply *reply, int r, const char *why, const struct buf *body);

#include "exporter/ui/assets.h"

#include "exporter/metric/negotiate.h"

#include <errno.h>
#include <stdio.h>
#include <zlib.h>

enum { ETAG_BYTES = 80, GZIP_WINDOW = 15 + 16 };

static const char assets_policy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

struct form {
    struct iovec body;
    char etag[ETAG_BYTES];
};

struct asset {
    const struct asset_file *file;
    struct form plain, gzip;
};

struct assets {
    size_t n;
    struct asset list[];
};

/* RFC 9110, 13.1.2: a list of tags, each perhaps weak, or "*". */
static bool etag_matches(const char *header, const char *etag)
{
    size_t n = strlen(etag);

    for (const char *p = header; *p; p += strcspn(p, ","), p += *p == ',') {
        p += strspn(p, " \t");
        if (*p == '*')
            return true;
        p += strncmp(p, "W/", 2) == 0 ? 2 : 0;
        if (strncmp(p, etag, n) == 0 && strchr(", \t", p[n]))
            return true;
    }
    return false;
}

/* Server's thread; nothing of it changes while the server runs. */
static void asset_serve(void *arg, const struct httpd_request *rq, struct httpd_reply *reply)
{
    struct asset *a = arg;
    bool gzip = negotiate_gzip(rq->accept_encoding);
    struct form *form = gzip ? &a->gzip : &a->plain;

    reply->content_type = a->file->content_type;
    reply->vary = "Accept-Encoding";
    reply->cache_control = "no-cache";
    reply->csp = assets_policy;
    reply->etag = form->etag;
    if (etag_matches(rq->if_none_match, form->etag)) {
        reply->status = 304;
        return;
    }
    reply->content_encoding = gzip ? "gzip" : NULL;
    reply->parts = &form->body;
    reply->n_parts = 1;
}

static int asset_compress(struct asset *a)
{
    z_stream z = {0};
    uLong most;

    if (deflateInit2(&z, Z_BEST_COMPRESSION, Z_DEFLATED, GZIP_WINDOW, 9, Z_DEFAULT_STRATEGY) != Z_OK)
        return -ENOMEM;
    most = deflateBound(&z, a->file->content.n);
    a->gzip.body.iov_base = xmalloc(most);
    {
        z.next_in = (Bytef *)(uintptr_t)a->file->content.p;
        z.avail_in = (uInt)a->file->content.n;
        z.next_out = a->gzip.body.iov_base;
        z.avail_out = (uInt)most;
        (void)deflate(&z, Z_FINISH); /* cannot fail: deflateBound() made room for all */
        a->gzip.body.iov_len = z.total_out;
    }
    (void)deflateEnd(&z);
    return 0;
}

int assets_new(struct assets **ret)
{
    CLEANUP(cleanup_assets_free)
    struct assets *a = xcalloc(1, sizeof(*a) + asset_files_n * sizeof(a->list[0]));
    int r = 0;

    for (size_t i = 0; r == 0 && i < asset_files_n; i++) {
        struct asset *to = &a->list[a->n++];

        to->file = &asset_files[i];
        to->plain.body = (struct iovec){(void *)(uintptr_t)to->file->content.p, to->file->content.n};
        (void)snprintf(to->plain.etag, ETAG_BYTES, "\"%s\"", to->file->hash);
        (void)snprintf(to->gzip.etag, ETAG_BYTES, "\"%s-gzip\"", to->file->hash);
        r = asset_compress(to);
    }
    if (r == 0)
        *ret = TAKE_PTR(a);
    return r;
}

struct assets *assets_free(struct assets *a)
{
    if (!a)
        return NULL;
    for (size_t i = 0; i < a->n; i++)
        free(a->list[i].gzip.body.iov_base);
    free(a);
    return NULL;
}

size_t assets_routes(const struct assets *a, const char *const *pages,
                     struct httpd_route ret[ASSETS_MAX_ROUTES])
{
    size_t n = 0;

    for (size_t i = 0; i < a->n; i++) {
        void *asset = (void *)(uintptr_t)&a->list[i];
        bool page = strcmp(a->list[i].file->path, "/ui/index.html") == 0;

        for (size_t k = 0; page && pages[k] && n < ASSETS_MAX_ROUTES; k++)
            ret[n++] = (struct httpd_route){"GET", pages[k], asset_serve, asset, true, 0, 0, false};
        if (!page && n < ASSETS_MAX_ROUTES)
            ret[n++] =
                (struct httpd_route){"GET", a->list[i].file->path, asset_serve, asset, true, 0, 0, false};
    }
    return n;
}

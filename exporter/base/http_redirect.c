/* Which redirects are followed: those within one origin (RFC 6454: scheme, host, port). Elsewhere the series
 * would reach a server that nobody configured, and its answer the status page. */
#include "exporter/base/http_internal.h"

#include <strings.h>

struct origin {
    char *scheme, *host, *port;
};

static void origin_done(struct origin *o)
{
    curl_free(o->scheme);
    curl_free(o->host);
    curl_free(o->port);
}

static void free_url(CURLU **u)
{
    curl_url_cleanup(*u);
}

static bool origin_read(CURLU *u, struct origin *ret)
{
    return curl_url_get(u, CURLUPART_SCHEME, &ret->scheme, 0) == CURLUE_OK &&
           curl_url_get(u, CURLUPART_HOST, &ret->host, 0) == CURLUE_OK &&
           curl_url_get(u, CURLUPART_PORT, &ret->port, CURLU_DEFAULT_PORT) == CURLUE_OK;
}

static bool origin_is_same(const struct origin *a, const struct origin *b)
{
    return strcasecmp(a->scheme, b->scheme) == 0 && strcasecmp(a->host, b->host) == 0 &&
           strcmp(a->port, b->port) == 0;
}

static void redirect_refuse(struct http_call *c, const struct origin *from, const struct origin *to)
{
    bool is_upgrade = strcasecmp(from->host, to->host) == 0 && strcasecmp(from->scheme, "http") == 0 &&
                      strcasecmp(to->scheme, "https") == 0;

    http_fail(c, HTTP_REDIRECT, "redirect from %s://%s:%s to %s://%s:%s is not followed: %s", from->scheme,
              from->host, from->port, to->scheme, to->host, to->port,
              is_upgrade ? "configure the https:// URL"
                         : "it is another origin; configure its URL if it is the right one");
}

/* Resolves the location as libcurl does. What it cannot read, libcurl refuses. */
bool http_same_origin(struct http_call *c, struct str location)
{
    CLEANUP(origin_done) struct origin from = {0}, to = {0};
    CLEANUP(free_url) CURLU *u = curl_url();
    CLEANUP(cleanup_free) char *text = str_dup(location);
    char *url = NULL;
    bool same;

    if (!u || !text || curl_easy_getinfo(c->easy, CURLINFO_EFFECTIVE_URL, &url) != CURLE_OK || !url) {
        http_fail(c, HTTP_MEMORY, "out of memory for the response");
        return false;
    }
    if (curl_url_set(u, CURLUPART_URL, url, 0) != CURLUE_OK || !origin_read(u, &from) ||
        curl_url_set(u, CURLUPART_URL, text, CURLU_URLENCODE) != CURLUE_OK || !origin_read(u, &to))
        return true;
    same = origin_is_same(&from, &to);
    if (!same)
        redirect_refuse(c, &from, &to);
    return same;
}

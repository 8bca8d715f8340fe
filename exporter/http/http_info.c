/* What libcurl knows of a call's transfer, and what the whole call took: the hops before this one, and this
 * one. Owns nothing. On the loop, also inside of curl's callbacks. */
#include "exporter/http/http_internal.h"

long http_info_long(const struct http_call *c, CURLINFO what)
{
    long v = 0;

    return curl_easy_getinfo(c->easy, what, &v) == CURLE_OK ? v : 0;
}

curl_off_t http_info_off(const struct http_call *c, CURLINFO what)
{
    curl_off_t v = 0;

    return curl_easy_getinfo(c->easy, what, &v) == CURLE_OK ? v : 0;
}

long http_call_status(const struct http_call *c)
{
    return http_info_long(c, CURLINFO_RESPONSE_CODE);
}

/* The URL of the hop in progress. NULL if libcurl's parser refuses the request's. */
CURLU *http_last_url(const struct http_call *c)
{
    CLEANUP(cleanup_curl_url_cleanup) CURLU *u = NULL;
    char *url = NULL;

    if (c->url)
        return curl_url_dup(c->url);
    u = curl_url();
    if (curl_easy_getinfo(c->easy, CURLINFO_EFFECTIVE_URL, &url) != CURLE_OK || !url ||
        curl_url_set(u, CURLUPART_URL, url, 0) != CURLUE_OK)
        return NULL;
    return TAKE_PTR(u);
}

/* What the whole call took: the hops before this one, and this one. */

double http_call_seconds(const struct http_call *c)
{
    return c->hops.seconds + (double)http_info_off(c, CURLINFO_TOTAL_TIME_T) / 1e6;
}

uint64_t http_call_sent(const struct http_call *c)
{
    return c->hops.sent + (uint64_t)http_info_off(c, CURLINFO_SIZE_UPLOAD_T);
}

uint64_t http_call_received(const struct http_call *c)
{
    return c->hops.received + (uint64_t)http_info_off(c, CURLINFO_SIZE_DOWNLOAD_T);
}

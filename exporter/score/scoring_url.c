/* ${cluster} in the URL of a scoring API. Owns nothing. Called by a round on the loop, by the reader of
 * summaries, and by check-scorer.
 *
 * The URL is parsed first and the name put into its path and query afterwards, encoded, so that no name
 * can become another host, another path or another parameter:
 *
 *     http://scorer/${cluster}/scoring?for=${cluster}   and the name   a/b&c
 *     http://scorer/a%2Fb%26c/scoring?for=a%2Fb%26c */
#include "exporter/score/scoring_url.h"

#include "exporter/base/alloc.h"
#include "exporter/base/escape.h"
#include "exporter/http/http.h"

#include <curl/curl.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

DEFINE_CLEANUP(char, curl_free)

/* The parts in which ${cluster} is replaced. */
static const CURLUPart replaced[] = {CURLUPART_PATH, CURLUPART_QUERY};

static bool part_uses_cluster(const char *part)
{
    return part && memmem(part, strlen(part), CLUSTER_PLACEHOLDER.p, CLUSTER_PLACEHOLDER.n);
}

bool scoring_url_uses_cluster(const char *url)
{
    CLEANUP(cleanup_curl_url_cleanup) CURLU *u = curl_url();
    bool uses = false;

    if (!part_uses_cluster(url) || curl_url_set(u, CURLUPART_URL, url, 0) != CURLUE_OK)
        return false;
    for (size_t i = 0; i < ARRAY_SIZE(replaced); i++) {
        CLEANUP(cleanup_curl_free) char *part = NULL;

        if (curl_url_get(u, replaced[i], &part, 0) == CURLUE_OK)
            uses |= part_uses_cluster(part);
    }
    return uses;
}

/* The first `${...}` of a decoded part that is not ${cluster}; empty if there is none. */
static struct str part_unknown(const char *part)
{
    for (const char *at = part; (at = strstr(at, "${")); at += strlen("${")) {
        const char *end = strchr(at, '}');

        if (!end)
            return STR("");
        if (!str_starts(str_of(at), CLUSTER_PLACEHOLDER))
            return (struct str){at, (size_t)(end + 1 - at)};
    }
    return STR("");
}

void scoring_url_unknown(const char *url, struct buf *ret)
{
    CLEANUP(cleanup_curl_url_cleanup) CURLU *u = curl_url();

    if (curl_url_set(u, CURLUPART_URL, url, 0) != CURLUE_OK)
        return;
    for (size_t i = 0; i < ARRAY_SIZE(replaced); i++) {
        CLEANUP(cleanup_curl_free) char *part = NULL;
        struct str unknown;

        if (curl_url_get(u, replaced[i], &part, CURLU_URLDECODE) != CURLUE_OK)
            continue;
        unknown = part_unknown(part);
        if (unknown.n) {
            buf_put_str(ret, unknown);
            return;
        }
    }
}

/* ---- Putting the name in ----
 *
 * In the text itself, so that all else of the URL goes out as it is written: libcurl would spell it anew. */

/* From the end of the authority to the fragment: path and query. */
static struct str url_replaceable(const char *url)
{
    const char *authority = strstr(url, "//") + 2, *from = authority + strcspn(authority, "/?#");

    return (struct str){from, strcspn(from, "#")};
}

static void text_put(struct buf *into, struct str text, struct str cluster)
{
    const char *found;

    while (text.n && (found = memmem(text.p, text.n, CLUSTER_PLACEHOLDER.p, CLUSTER_PLACEHOLDER.n))) {
        size_t taken = (size_t)(found - text.p) + CLUSTER_PLACEHOLDER.n;

        buf_put(into, text.p, (size_t)(found - text.p));
        buf_put_url(into, cluster);
        text = (struct str){text.p + taken, text.n - taken};
    }
    buf_put_str(into, text);
}

/* `.` or `..`, also encoded: what RFC 3986, section 5.2.4, removes. */
static bool segment_is_dots(struct str s)
{
    size_t dots = 0;

    while (s.n) {
        size_t n;

        if (s.p[0] == '.')
            n = 1;
        else if (s.n >= 3 && strncasecmp(s.p, "%2e", 3) == 0)
            n = 3;
        else
            return false;
        s = (struct str){s.p + n, s.n - n};
        dots++;
    }
    return dots == 1 || dots == 2;
}

/* Whether the name makes a segment of the path one that is removed. */
static bool path_gets_dots(struct str path, struct str cluster)
{
    while (path.n) {
        struct str segment = str_take(&path, '/');
        BUF_AUTO(made, SIZE_MAX);

        if (!segment.n || !memmem(segment.p, segment.n, CLUSTER_PLACEHOLDER.p, CLUSTER_PLACEHOLDER.n))
            continue;
        text_put(&made, segment, cluster);
        if (segment_is_dots(buf_str(&made)))
            return true;
    }
    return false;
}

/* Whether both URLs lead to one server. */
static bool url_origins_agree(const char *a, const char *b)
{
    CLEANUP(cleanup_curl_url_cleanup) CURLU *ua = curl_url(), *ub = curl_url();
    CLEANUP(cleanup_free) char *oa = NULL, *ob = NULL;

    if (curl_url_set(ua, CURLUPART_URL, a, 0) != CURLUE_OK ||
        curl_url_set(ub, CURLUPART_URL, b, 0) != CURLUE_OK)
        return false;
    oa = url_origin_of(ua);
    ob = url_origin_of(ub);
    return oa && ob && strcmp(oa, ob) == 0;
}

int scoring_url_make(char **ret, const char *url, struct str cluster)
{
    struct str all = str_of(url), part, path;
    BUF_AUTO(made, SIZE_MAX);

    if (!http_is_url(all))
        return -EINVAL;
    if (!scoring_url_uses_cluster(url)) { /* most */
        *ret = xstrdup(url);
        return 0;
    }
    part = url_replaceable(url);
    path = (struct str){part.p, strcspn(part.p, "?#")};
    if (path_gets_dots(path, cluster))
        return -EINVAL;
    buf_put(&made, url, (size_t)(part.p - url));
    text_put(&made, part, cluster);
    buf_puts(&made, part.p + part.n);
    buf_putc(&made, '\0');
    if (buf_failed(&made) < 0) /* it has no ceiling */
        memory_exhausted(made.n);
    if (!url_origins_agree(url, made.p))
        return -EINVAL;
    *ret = xstrdup(made.p);
    return 0;
}

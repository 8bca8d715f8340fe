/* URLs: their origin, and how they are built. */
#include "controller/hub/rules/url.h"
#include "exporter/base/escape.h"
#include "exporter/base/http.h"
#include "exporter/base/utf8.h"
#include "exporter/num/num.h"

#include <curl/curl.h>
#include <errno.h>

enum { ORIGIN_MAX_BYTES = 4096 };

/* User information is refused, as what precedes the `@` makes one host look like another. */
static bool is_plain_url(struct str url)
{
    const char *host = url.n ? memchr(url.p, ':', url.n) : NULL;

    if (!http_is_url(url))
        return false;
    for (size_t n = (size_t)(host - url.p) + sizeof("://") - 1; n < url.n && !strchr("/?#", url.p[n]); n++)
        if (url.p[n] == '@' || url.p[n] == '\\')
            return false;
    return true;
}

static CURLUcode url_parts(CURLU *u, const char *url, char *parts[3])
{
    static const CURLUPart which[] = {CURLUPART_SCHEME, CURLUPART_HOST, CURLUPART_PORT};
    CURLUcode c = curl_url_set(u, CURLUPART_URL, url, 0);

    for (size_t i = 0; i < ARRAY_SIZE(which) && c == CURLUE_OK; i++)
        c = curl_url_get(u, which[i], &parts[i], CURLU_DEFAULT_PORT);
    return c;
}

/* libcurl keeps the zone of an IPv6 address apart from the host; it is meaningful on one machine only. */
static bool has_zone(CURLU *u)
{
    char *zone = NULL;
    bool has = curl_url_get(u, CURLUPART_ZONEID, &zone, 0) == CURLUE_OK;

    curl_free(zone);
    return has;
}

static int url_put_origin(struct buf *into, char *const parts[3])
{
    int r = buf_printf(into, "%s://%s:%s", parts[0], parts[1], parts[2]);

    for (size_t i = 0; i < into->n && r == 0; i++)
        if (into->p[i] >= 'A' && into->p[i] <= 'Z')
            into->p[i] = (char)(into->p[i] | 0x20);
    /* libcurl decodes %ff in a host; no name that can be written as JSON has such bytes. */
    return r ?: (utf8_valid_prefix(buf_str(into)) < into->n ? -EINVAL : 0);
}

int url_origin(const char *url, char **ret)
{
    struct str trimmed = str_trim(str_of(url));
    CLEANUP(cleanup_free) char *copy = str_dup(trimmed);
    BUF_AUTO(origin, ORIGIN_MAX_BYTES);
    char *parts[3] = {NULL, NULL, NULL}, *whole;
    CURLU *u = curl_url();
    CURLUcode c = CURLUE_OUT_OF_MEMORY;
    int r = 0;

    if (copy && u)
        c = is_plain_url(trimmed) ? url_parts(u, copy, parts) : CURLUE_MALFORMED_INPUT;
    if (c == CURLUE_OK && !has_zone(u))
        r = url_put_origin(&origin, parts);
    for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
        curl_free(parts[i]);
    curl_url_cleanup(u);
    if (c == CURLUE_OUT_OF_MEMORY || r == -ENOMEM)
        return -ENOMEM;
    whole = str_dup(r == 0 ? buf_str(&origin) : STR(""));
    *ret = whole;
    return 0;
}

int url_join(struct buf *into, const char *host, const char *path)
{
    struct str h = str_trim(str_of(host)), p = str_trim(str_of(path));

    while (h.n && h.p[h.n - 1] == '/')
        h.n--;
    while (p.n && *p.p == '/')
        p = (struct str){p.p + 1, p.n - 1};
    return buf_put_str(into, h) ?: buf_putc(into, '/') ?: buf_put_str(into, p);
}

static int url_put_value(struct buf *into, const json_t *v)
{
    char number[NUM_MAX];

    if (json_is_string(v))
        return buf_put_url(into, (struct str){json_string_value(v), json_string_length(v)});
    if (json_is_integer(v))
        return buf_printf(into, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
    if (json_is_real(v))
        return buf_put_url(into, (struct str){number, num_put_double(number, json_real_value(v))});
    return buf_puts(into, json_is_true(v) ? "true" : "false");
}

static int url_compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

int url_add_params(struct buf *into, const json_t *params)
{
    size_t n = json_object_size(params), i = 0;
    CLEANUP(cleanup_free) const char **names = xcalloc(n + 1, sizeof(char *));
    const char *fragment = into->n ? memchr(into->p, '#', into->n) : NULL, *key;
    bool has_query;
    json_t *v;
    int r = 0;
    /* A fragment is never sent, and would hide what follows. */
    if (n && fragment)
        buf_truncate(into, (size_t)(fragment - into->p));
    has_query = into->n && memchr(into->p, '?', into->n);
    json_object_foreach((json_t *)(uintptr_t)params, key, v) names[i++] = key;
    qsort(names, n, sizeof(char *), url_compare_names);
    for (i = 0; i < n && r == 0; i++) {
        r = buf_putc(into, i || has_query ? '&' : '?') ?: buf_put_url(into, str_of(names[i]));
        r = r ?: buf_putc(into, '=') ?: url_put_value(into, json_object_get(params, names[i]));
    }
    return r;
}

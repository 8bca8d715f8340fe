/* Judges the Location of a redirect: what two programs might read differently is refused. Pure; on the
 * loop, also inside of curl's callbacks. */
#include "exporter/http/redirect.h"

#include "exporter/base/buf.h"
#include "exporter/http/http.h"

DEFINE_CLEANUP(char, curl_free)

bool redirect_is_followed(long status, bool is_get)
{
    switch (status) {
    case 301:
    case 302:
    case 307:
    case 308:
        return true;
    case 303:
        return is_get;
    default:
        return false;
    }
}

static enum redirect_verdict redirect_invalid(struct buf *why, const char *fault)
{
    buf_puts(why, "redirect with an invalid Location: ");
    buf_puts(why, fault);
    return REDIRECT_INVALID;
}

/* Of the kinds that str_trim() removes, those that RFC 9110 allows around a value. */
static struct str trim_blanks(struct str s)
{
    while (s.n && (s.p[0] == ' ' || s.p[0] == '\t')) {
        s.p++;
        s.n--;
    }
    while (s.n && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t'))
        s.n--;
    return s;
}

/* The first byte that no URI contains and that parsers treat differently, or -1. Some trim or drop control
 * characters and spaces, some stop there; browsers read a backslash as a slash. Other bytes that RFC 3986
 * excludes, such as unescaped UTF-8, are read alike by all. */
static int bad_byte(struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];

        if (c <= 0x20 || c == 0x7f || c == '\\')
            return c;
    }
    return -1;
}

/* Whether it begins with a scheme, as that of an absolute URL does (RFC 3986, section 3.1). */
static bool has_scheme(struct str s)
{
    size_t n = 0;

    while (n < s.n && s.p[n] != ':')
        n++;
    return n > 0 && n < s.n && str_has_only((struct str){s.p, n}, "+-.");
}

/* Whether there is a colon before any slash, question mark or hash. */
static bool has_early_colon(struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] == ':')
            return true;
        if (s.p[i] == '/' || s.p[i] == '?' || s.p[i] == '#')
            return false;
    }
    return false;
}

/* "user@host:port" of an absolute URL or of "//user@host:port"; empty without one. Not of empty text. */
static struct str authority_of(struct str s)
{
    const char *slashes = memmem(s.p, s.n, "//", 2);
    struct str rest;
    size_t n = 0;

    if (!slashes || (slashes != s.p && !has_scheme(s)))
        return STR("");
    rest = (struct str){slashes + 2, s.n - (size_t)(slashes + 2 - s.p)};
    while (n < rest.n && !strchr("/?#", rest.p[n]))
        n++;
    return (struct str){rest.p, n};
}

/* What is wrong with the text, or NULL. libcurl repairs some mistakes that others read differently: it takes
 * "http:/x" and "http:///x" for "http://x". */
static const char *text_fault(struct str s)
{
    struct str authority;
    const char *first_at;

    if (s.n == 0)
        return "it is empty";
    if (has_scheme(s) && !http_is_url(s))
        return "it is no http or https URL";
    if (!has_scheme(s) && has_early_colon(s)) /* to RFC 3986, a scheme; to libcurl, a relative path */
        return "the text before the colon is not a valid scheme";
    authority = authority_of(s);
    if (str_starts(s, STR("//")) && authority.n == 0)
        return "it has no host";
    first_at = authority.n ? memchr(authority.p, '@', authority.n) : NULL;
    if (first_at && first_at != memrchr(authority.p, '@', authority.n)) /* the host may follow either */
        return "it has more than one @ before its host";
    return NULL;
}

/* Of a link-local address. No part of an origin's text, and lost where libcurl copies a URL. */
static bool has_zone(CURLU *u)
{
    CLEANUP(cleanup_curl_free) char *zone = NULL;

    return curl_url_get(u, CURLUPART_ZONEID, &zone, 0) != CURLUE_NO_ZONEID;
}

/* Gives `to` a part of `from`, or removes it. */
static bool copy_part(CURLU *to, CURLU *from, CURLUPart part, CURLUcode absent)
{
    CLEANUP(cleanup_curl_free) char *value = NULL;
    CURLUcode r = curl_url_get(from, part, &value, 0);

    return (r == CURLUE_OK || r == absent) && curl_url_set(to, part, value, 0) == CURLUE_OK;
}

/* "http://h:P" and "https://h:Q" */
static bool is_upgrade(const char *from, const char *to)
{
    const struct str http = STR("http://"), https = STR("https://");
    struct str f = str_of(from), t = str_of(to);
    size_t host;

    if (!str_starts(f, http) || !str_starts(t, https))
        return false;
    host = (size_t)(strrchr(from, ':') - from) - http.n;
    return (size_t)(strrchr(to, ':') - to) - https.n == host &&
           memcmp(from + http.n, to + https.n, host) == 0;
}

static enum redirect_verdict redirect_elsewhere(struct buf *why, const char *from, const char *to)
{
    buf_printf(why, "redirect from %s to %s is not followed: ", from, to);
    if (is_upgrade(from, to))
        buf_puts(why, "configure the https:// URL");
    else
        buf_puts(why, "it is another origin; configure its URL if it is the right one");
    return REDIRECT_ELSEWHERE;
}

enum redirect_verdict redirect_judge(CURLU **ret_url, struct str location, CURLU *from, struct buf *why)
{
    struct str value = trim_blanks(location);
    CLEANUP(cleanup_curl_url_cleanup) CURLU *to = curl_url_dup(from);
    CLEANUP(cleanup_free) char *text = NULL, *from_origin = NULL, *to_origin = NULL;
    const char *fault;
    int byte = bad_byte(value);
    CURLUcode r;

    if (byte >= 0) {
        buf_printf(why, "redirect with an invalid Location: it contains the byte 0x%02x", (unsigned)byte);
        return REDIRECT_INVALID;
    }
    fault = text_fault(value);
    if (fault)
        return redirect_invalid(why, fault);

    text = str_dup(value);
    r = curl_url_set(to, CURLUPART_URL, text, CURLU_URLENCODE);
    if (r != CURLUE_OK)
        return redirect_invalid(why, curl_url_strerror(r));
    if (has_zone(from) || has_zone(to))
        return redirect_invalid(why, "no redirect is followed from or to an address with a zone");
    from_origin = url_origin_of(from);
    to_origin = url_origin_of(to);
    if (!from_origin || !to_origin)
        return redirect_invalid(why, "it has no origin");

    if (strcmp(from_origin, to_origin) != 0)
        return redirect_elsewhere(why, from_origin, to_origin);
    if (!copy_part(to, from, CURLUPART_USER, CURLUE_NO_USER) ||
        !copy_part(to, from, CURLUPART_PASSWORD, CURLUE_NO_PASSWORD))
        return redirect_invalid(why, "its parts cannot be used");
    *ret_url = TAKE_PTR(to);
    return REDIRECT_FOLLOW;
}

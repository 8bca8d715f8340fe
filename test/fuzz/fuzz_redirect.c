/* Where a redirect leads: within the origin that was asked, with its user, or nowhere. What is followed is
 * also read by a reader of its own, which knows RFC 3986 alone and repairs nothing: what it cannot read may
 * not be followed, however libcurl reads it. */
#include "exporter/base/buf.h"
#include "exporter/base/def.h"
#include "exporter/base/str.h"
#include "exporter/http/http.h"
#include "exporter/http/redirect.h"

#include <arpa/inet.h>
#include <assert.h>
#include <ctype.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct {
    const char *url, *scheme, *host;
    unsigned long port, default_port;
} asked[] = {{"http://u:p@h.test/a/b?c", "http", "h.test", 80, 80},
             {"https://127.0.0.1:8443/", "https", "127.0.0.1", 8443, 443},
             {"http://[::1]/", "http", "[::1]", 80, 80}};

/* Up to one of these characters. */
static struct str take_until(struct str s, const char *ends)
{
    size_t n = 0;

    while (n < s.n && s.p[n] && !strchr(ends, s.p[n]))
        n++;
    return (struct str){s.p, n};
}

static bool is_same(struct str a, const char *b)
{
    return a.n == strlen(b) && strncasecmp(a.p, b, a.n) == 0;
}

static struct str skip(struct str s, size_t n)
{
    return (struct str){s.p + n, s.n - n};
}

/* Without its escapes; "" if it is longer than any host that is asked could be. */
static void unescape(struct str s, char ret[64])
{
    size_t n = 0;

    for (size_t i = 0; i < s.n && n < 63; i++) {
        char hex[3] = "";

        if (s.p[i] == '%' && i + 2 < s.n && isxdigit((unsigned char)s.p[i + 1]) &&
            isxdigit((unsigned char)s.p[i + 2])) {
            memcpy(hex, s.p + i + 1, 2);
            i += 2;
        }
        ret[n++] = *hex ? (char)strtol(hex, NULL, 16) : s.p[i];
    }
    ret[s.n < 3 * 63 ? n : 0] = '\0';
}

/* Names by their letters, addresses by what the C library makes of them. */
static bool is_host(struct str host, const char *wanted)
{
    struct in6_addr six[2];
    struct in_addr four[2];
    char text[64];

    unescape(host, text);
    if (strcasecmp(text, wanted) == 0)
        return true;
    if (inet_aton(text, &four[0]) && inet_aton(wanted, &four[1]))
        return four[0].s_addr == four[1].s_addr;
    if (*text != '[' || *wanted != '[')
        return false;
    text[strcspn(text, "]")] = '\0';
    return inet_pton(AF_INET6, text + 1, &six[0]) == 1 && inet_pton(AF_INET6, "::1", &six[1]) == 1 &&
           memcmp(&six[0], &six[1], sizeof(six[0])) == 0;
}

/* Whether this is the host and port that was asked, whoever the user is. */
static bool leads_to(struct str authority, size_t i)
{
    struct str user = take_until(authority, "@");
    struct str place = user.n < authority.n ? skip(authority, user.n + 1) : authority;
    struct str host = take_until(place, place.n && *place.p == '[' ? "]" : ":");
    struct str port;
    uint64_t number = asked[i].default_port;

    if (host.n < place.n && place.p[host.n] == ']')
        host.n++;
    port = skip(place, host.n);
    if (port.n && *port.p != ':')
        return false;
    if (port.n > 1 && !str_to_u64(skip(port, 1), &number))
        return false;
    return number == asked[i].port && is_host(host, asked[i].host);
}

/* RFC 3986, section 4.2, without any repair: whether the reference stays at the host that was asked. */
static bool stays(struct str s, size_t i)
{
    struct str first = take_until(s, ":/?#");
    bool has_scheme = first.n > 0 && first.n < s.n && first.p[first.n] == ':';

    for (size_t n = 0; n < s.n; n++)
        if ((unsigned char)s.p[n] <= 0x20 || s.p[n] == 0x7f || s.p[n] == '\\')
            return false;
    if (has_scheme) {
        if (!is_same(first, asked[i].scheme))
            return false;
        s = skip(s, first.n + 1);
        if (!str_starts(s, STR("//")))
            return false;
    }
    if (str_starts(s, STR("//")))
        return leads_to(take_until(skip(s, 2), "/?#"), i);
    return s.n > 0;
}

static struct str trim(struct str s)
{
    while (s.n && (*s.p == ' ' || *s.p == '\t'))
        s = skip(s, 1);
    while (s.n && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t'))
        s.n--;
    return s;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str location = {(const char *)data, size};

    for (size_t i = 0; i < ARRAY_SIZE(asked); i++) {
        CLEANUP(cleanup_curl_url_cleanup) CURLU *from = curl_url(), *to = NULL;
        CLEANUP(cleanup_free) char *here = NULL, *there = NULL;
        BUF_AUTO(why, SIZE_MAX / 2);
        char *user = NULL;

        assert(curl_url_set(from, CURLUPART_URL, asked[i].url, 0) == CURLUE_OK);
        if (redirect_judge(&to, location, from, &why) != REDIRECT_FOLLOW) {
            assert(!to && why.n && buf_failed(&why) == 0);
            continue;
        }
        assert(stays(trim(location), i));
        here = url_origin_of(from);
        there = url_origin_of(to);
        assert(here && there && strcmp(here, there) == 0);
        assert((curl_url_get(to, CURLUPART_USER, &user, 0) == CURLUE_OK) == (i == 0));
        assert(!user || strcmp(user, "u") == 0);
        curl_free(user);
    }
    return 0;
}

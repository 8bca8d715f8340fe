/* URLs and addresses, as libcurl reads them: whether it is one, its origin, and the text that people may
 * see of it. Owns nothing but the pattern, which is compiled once; any thread. */
#include "exporter/http/http.h"

#include "exporter/base/alloc.h"
#include "exporter/base/buf.h"
#include "exporter/base/secret.h"
#include "exporter/base/utf8.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <strings.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

enum { ORIGIN_MAX = 4096 };

DEFINE_CLEANUP(char, curl_free)

/* 0 if the URL does not begin with it. */
static size_t scheme_length(struct str url, struct str scheme)
{
    return url.n >= scheme.n && strncasecmp(url.p, scheme.p, scheme.n) == 0 ? scheme.n : 0;
}

bool http_is_url(struct str url)
{
    size_t n = scheme_length(url, STR("http://")) ?: scheme_length(url, STR("https://"));

    return n && n < url.n && url.p[n] != '/';
}

/* User information ends at the last @ of the authority. A password with an unescaped `/`, `?` or `#` makes
 * the URL invalid, but must not be shown either: after what is no port, the last @ of all counts. */
#define USER "\\A([^/?#]*?://)?(?:[^/?#]*@|[^/?#]*:(?=[^/?#:\\]]*[^/?#:\\]0-9])[^/?#:\\]]*+(?s:.*)@)"
/* Values of parameters may be tokens, except those of the query API. */
#define VALUE "([?#&;](?!(?:query|start|end|step)=)[^=?#&;\\s\"'<>]*+=)[^&;#\\s\"'<>]++"

static pcre2_code *user_code, *value_code;

static void compile_codes(void)
{
    PCRE2_SIZE at;
    int error;

    user_code = pcre2_compile((PCRE2_SPTR)USER, PCRE2_ZERO_TERMINATED, 0, &error, &at, NULL);
    value_code = pcre2_compile((PCRE2_SPTR)VALUE, PCRE2_ZERO_TERMINATED, 0, &error, &at, NULL);
    if (!user_code || !value_code)
        abort();
}

/* The first match is replaced, or all of them. */
static char *replace(const pcre2_code *code, uint32_t options, struct str text, const char *by, size_t *ret_n)
{
    *ret_n = 3 * text.n + 1; /* one byte becomes three at most */
    char *out = xmalloc(*ret_n);
    int r = pcre2_substitute(code, (PCRE2_SPTR)text.p, text.n, 0, options, NULL, NULL, (PCRE2_SPTR)by,
                             strlen(by), (PCRE2_UCHAR *)out, ret_n);

    if (r < 0) /* over a limit of PCRE2 */
        *ret_n = 0;
    return out;
}

void http_url_for_people(struct str url, struct buf *into)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    CLEANUP(cleanup_free) char *plain = NULL, *shown = NULL;
    size_t n;

    (void)pthread_once(&once, compile_codes);
    plain = replace(user_code, PCRE2_SUBSTITUTE_UNSET_EMPTY, url.n ? url : STR(""), "$1", &n);
    shown = replace(value_code, PCRE2_SUBSTITUTE_GLOBAL, (struct str){plain, n}, "$1***", &n);
    buf_put(into, shown, n);
}

static bool is_secret_name(const char *name)
{
    static const char *const words[] = {"token", "key", "secret", "pass",    "pwd",
                                        "auth",  "sig", "cred",   "session", "jwt"};

    for (size_t i = 0; i < ARRAY_SIZE(words); i++)
        if (strcasestr(name, words[i]))
            return true;
    return false;
}

static void parameters_used(char *query)
{
    for (char *rest = query, *value; (value = strsep(&rest, "&;"));) {
        const char *name = strsep(&value, "=");
        CLEANUP(cleanup_curl_free) char *plain = NULL;
        int n = 0;

        if (!value || !is_secret_name(name))
            continue;
        plain = curl_easy_unescape(NULL, value, 0, &n);
        if (plain) {
            secret_used((struct str){plain, (size_t)n});
            explicit_bzero(plain, (size_t)n);
        }
    }
}

void url_secrets_used(const char *url)
{
    CLEANUP(cleanup_curl_url_cleanup) CURLU *u = strchr(url, '@') || is_secret_name(url) ? curl_url() : NULL;
    CLEANUP(cleanup_curl_free) char *user = NULL, *password = NULL, *query = NULL;

    if (!u || curl_url_set(u, CURLUPART_URL, url, 0) != CURLUE_OK)
        return;
    if (curl_url_get(u, CURLUPART_PASSWORD, &password, CURLU_URLDECODE) == CURLUE_OK) {
        (void)curl_url_get(u, CURLUPART_USER, &user, CURLU_URLDECODE);
        secret_used_basic(str_of(user), str_of(password));
    }
    if (curl_url_get(u, CURLUPART_QUERY, &query, 0) == CURLUE_OK)
        parameters_used(query);
}

char *url_origin_of(CURLU *u)
{
    CLEANUP(cleanup_curl_free) char *scheme = NULL, *host = NULL, *port = NULL;
    char *origin = NULL;

    if (curl_url_get(u, CURLUPART_SCHEME, &scheme, 0) == CURLUE_OK &&
        curl_url_get(u, CURLUPART_HOST, &host, 0) == CURLUE_OK &&
        curl_url_get(u, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) == CURLUE_OK)
        origin = xasprintf("%s://%s:%s", scheme, host, port);
    for (char *p = origin; p && *p; p++)
        *p = (char)(*p >= 'A' && *p <= 'Z' ? *p | 0x20 : *p);
    return origin;
}

static bool has_user(const char *url)
{
    const char *host = strchr(url, '/') + 2;

    return strcspn(host, "@\\") < strcspn(host, "/?#");
}

char *url_origin(const char *url)
{
    CLEANUP(cleanup_free) char *text = str_dup(str_trim(str_of(url)));
    CLEANUP(cleanup_curl_url_cleanup) CURLU *u = curl_url();
    CLEANUP(cleanup_curl_free) char *zone = NULL;
    char *origin = NULL;

    /* libcurl keeps the zone of an IPv6 address apart from the host; it is meaningful on one machine only. */
    if (http_is_url(str_of(text)) && !has_user(text) &&
        curl_url_set(u, CURLUPART_URL, text, 0) == CURLUE_OK &&
        curl_url_get(u, CURLUPART_ZONEID, &zone, 0) != CURLUE_OK)
        origin = url_origin_of(u);
    /* libcurl decodes %ff in a host; no name that can be written as JSON has such bytes. */
    if (origin && strlen(origin) <= ORIGIN_MAX && utf8_valid_prefix(str_of(origin)) == strlen(origin))
        return origin;
    free(origin);
    return xstrdup("");
}

/* ---- Public addresses: IANA's special-purpose registries (RFC 6890) ---- */

static const struct {
    const char *network; /* an IPv4 one as that of mapped IPv6 addresses */
    unsigned bits;
} not_public[] = {
    {"::ffff:0.0.0.0", 96 + 8},       /* this network */
    {"::ffff:10.0.0.0", 96 + 8},      /* private */
    {"::ffff:100.64.0.0", 96 + 10},   /* shared: carriers, pods of some clouds */
    {"::ffff:127.0.0.0", 96 + 8},     /* loopback */
    {"::ffff:169.254.0.0", 96 + 16},  /* link-local: the clouds' metadata services */
    {"::ffff:172.16.0.0", 96 + 12},   /* private */
    {"::ffff:192.0.0.0", 96 + 24},    /* protocol assignments */
    {"::ffff:192.0.2.0", 96 + 24},    /* documentation */
    {"::ffff:192.88.99.0", 96 + 24},  /* 6to4 relays, deprecated */
    {"::ffff:192.168.0.0", 96 + 16},  /* private */
    {"::ffff:198.18.0.0", 96 + 15},   /* benchmarks */
    {"::ffff:198.51.100.0", 96 + 24}, /* documentation */
    {"::ffff:203.0.113.0", 96 + 24},  /* documentation */
    {"::ffff:224.0.0.0", 96 + 3},     /* multicast, reserved, broadcast */
    {"2001::", 23},                   /* protocol assignments, Teredo */
    {"2001:db8::", 32},               /* documentation */
    {"3fff::", 20},                   /* documentation */
};

static bool has_prefix(const uint8_t address[16], const char *network, unsigned bits)
{
    unsigned whole = bits / 8, rest = bits % 8;
    uint8_t bytes[16];

    return inet_pton(AF_INET6, network, bytes) == 1 && memcmp(address, bytes, whole) == 0 &&
           (rest == 0 || (address[whole] ^ bytes[whole]) >> (8 - rest) == 0);
}

/* Where an IPv6 address of NAT64 or 6to4 has an IPv4 address; 0: nowhere. */
static size_t embedded_ipv4_at(const void *address)
{
    if (has_prefix(address, "64:ff9b::", 96))
        return 12;
    return has_prefix(address, "2002::", 16) ? 2 : 0;
}

bool address_is_public(int family, const void *address)
{
    size_t at = family == AF_INET6 ? embedded_ipv4_at(address) : 0; /* it is the one that counts */
    uint8_t bytes[16] = {[10] = 0xff, 0xff};

    if (family == AF_INET || at)
        memcpy(bytes + 12, (const uint8_t *)address + at, 4);
    else if (family == AF_INET6)
        memcpy(bytes, address, sizeof(bytes));
    else
        return false;
    for (size_t i = 0; i < ARRAY_SIZE(not_public); i++)
        if (has_prefix(bytes, not_public[i].network, not_public[i].bits))
            return false;
    /* All others are special or unassigned. */
    return has_prefix(bytes, "::ffff:0.0.0.0", 96) || has_prefix(bytes, "2000::", 3);
}

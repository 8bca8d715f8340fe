/* Reads `remoteWrite`, and owns what was read until its last reference is gone. Agent's loop; endpoints'
 * threads hold references, and change nothing. A message never quotes a secret. */
#include "remotewrite/config.h"

#include "exporter/base/alloc.h"
#include "exporter/base/arena.h"
#include "exporter/base/buf.h"
#include "exporter/base/doc.h"
#include "exporter/base/escape.h"
#include "exporter/base/hash.h"
#include "exporter/base/header.h"
#include "exporter/base/invariant.h"
#include "exporter/base/str.h"
#include "exporter/base/text.h"
#include "exporter/http/http.h"
#include "remotewrite/relabel.h"

#include <curl/curl.h>
#include <stdio.h>
#include <strings.h>

enum { NAME_MAX_BYTES = 64, SHOWN_URL_MAX = 4096, FORM_MAX = 8 << 10, CHUNK_BYTES = 1024 };

const char *const rw_protocol_words[RW_PROTOCOLS] = {"1.0", "vm", "2.0", "auto"};

/* Whether libcurl can read it, whatever the scheme. */
static bool url_is_readable(const char *url)
{
    CURLU *u = curl_url();
    CURLUcode c = u ? curl_url_set(u, CURLUPART_URL, url, CURLU_NON_SUPPORT_SCHEME) : CURLUE_OUT_OF_MEMORY;

    curl_url_cleanup(u);
    return c == CURLUE_OK;
}

static bool is_url(const char *url)
{
    return http_is_url(str_of(url)) && url_is_readable(url);
}

static bool is_socks_url(const char *url)
{
    static const char *const schemes[] = {"socks4://", "socks4a://", "socks5://", "socks5h://"};

    for (size_t i = 0; i < ARRAY_SIZE(schemes); i++) {
        size_t n = strlen(schemes[i]);

        if (strncasecmp(url, schemes[i], n) == 0 && url[n] && url[n] != '/')
            return url_is_readable(url);
    }
    return false;
}

static bool has_at_most(const struct node *map, size_t most, struct problems *p)
{
    if (map->n > most)
        node_problem(map, p, PROBLEM_ERROR, "expected at most %zu entries, got %zu", most, map->n);
    return map->n <= most;
}

static char *header_line(struct arena *a, const struct node *n)
{
    size_t size = n->key.n + n->text.n + sizeof(": ");
    char *line = arena_alloc(a, size);

    (void)snprintf(line, size, "%.*s: %.*s", STR_ARG(n->key), STR_ARG(n->text));
    return line;
}

static void read_headers(struct rw_endpoint_config *c, const struct node *map, struct problems *p)
{
    const struct node *headers = node_object(map, "headers", NULL, p);

    if (!headers || !has_at_most(headers, RW_MAX_HEADERS, p))
        return;
    for (size_t i = 0; i < headers->n; i++) {
        const struct node *n = headers->items[i];

        if (str_eq_nocase(n->key, STR("Authorization")))
            node_key_problem(n, p, PROBLEM_ERROR,
                             "this header cannot be set here: use authorization or basic_auth");
        else if (header_is_reserved(n->key))
            node_key_problem(n, p, PROBLEM_ERROR, "this header cannot be set here");
        else if (!header_is_name(n->key))
            node_key_problem(n, p, PROBLEM_ERROR, "expected a header name");
        else if (n->kind != NODE_STRING || !header_is_value(n->text))
            node_problem(n, p, PROBLEM_ERROR, "expected a header value: one line of at most 4096 bytes");
        else
            c->headers[c->n_headers++] = header_line(&c->memory, n);
    }
}

/* Secrets are never quoted in a message. */
static char *read_secret(struct rw_endpoint_config *c, const struct node *map, const char *key,
                         struct problems *p)
{
    char *secret = node_text(map, key, p, &c->memory);
    const char *s = cstr(secret);

    while ((unsigned char)*s >= 0x20 && *s != 0x7f)
        s++;
    if (*s)
        node_problem(node_get(map, key), p, PROBLEM_ERROR, "contains control characters");
    return secret;
}

static void check_exclusive(const struct node *map, const char *a, const char *b, struct problems *p)
{
    if (node_given(map, a) && node_given(map, b))
        node_key_problem(node_get(map, b), p, PROBLEM_ERROR, "only one of %s and %s may be set", a, b);
}

static void read_basic(struct rw_endpoint_config *c, const struct node *map, struct problems *p)
{
    static const char *const known[] = {"username", "password", "password_file", NULL};
    const struct node *n = node_object(map, "basic_auth", known, p);

    if (!n)
        return;
    check_exclusive(n, "password", "password_file", p);
    c->user = read_secret(c, n, "username", p);
    c->password = read_secret(c, n, "password", p);
    c->password_file = node_text(n, "password_file", p, &c->memory);
    if (!node_given(n, "username"))
        node_missing(n, "username", p, "a user name");
}

static void read_authorization(struct rw_endpoint_config *c, const struct node *map, struct problems *p)
{
    static const char *const known[] = {"type", "credentials", "credentials_file", NULL};
    const struct node *n = node_object(map, "authorization", known, p);

    if (!n)
        return;
    check_exclusive(n, "credentials", "credentials_file", p);
    c->auth_type = node_text(n, "type", p, &c->memory);
    if (!c->auth_type)
        c->auth_type = arena_text(&c->memory, STR("Bearer"));
    if (!header_is_name(str_of(c->auth_type)))
        node_expected(node_get(n, "type"), p, "a word like Bearer");
    else if (str_eq_nocase(str_of(c->auth_type), STR("Basic")))
        node_problem(node_get(n, "type"), p, PROBLEM_ERROR, "expected basic_auth instead");
    c->credentials = read_secret(c, n, "credentials", p);
    c->credentials_file = node_text(n, "credentials_file", p, &c->memory);
    if (!node_given(n, "credentials") && !node_given(n, "credentials_file"))
        node_missing(n, "credentials_file", p, "a path");
    check_exclusive(map, "basic_auth", "authorization", p);
}

static void read_tls(struct rw_endpoint_config *c, struct http_tls *ret, const struct node *map,
                     struct problems *p)
{
    static const char *const known[] = {
        "ca_file", "cert_file", "key_file", "server_name", "insecure_skip_verify", NULL};
    const struct node *n = node_object(map, "tls_config", known, p);

    ret->ca_file = node_text(n, "ca_file", p, &c->memory);
    ret->cert_file = node_text(n, "cert_file", p, &c->memory);
    ret->key_file = node_text(n, "key_file", p, &c->memory);
    ret->server_name = node_text(n, "server_name", p, &c->memory);
    (void)node_bool(n, "insecure_skip_verify", p, &ret->insecure);
    if (!ret->cert_file != !ret->key_file)
        node_problem(n, p, PROBLEM_ERROR, "cert_file and key_file must be set together");
    if (ret->server_name && ret->server_name[strcspn(ret->server_name, ":/@?# ")])
        node_expected(node_get(n, "server_name"), p, "a host name");
}

static char *read_proxy(struct rw_endpoint_config *c, const struct node *map, struct problems *p)
{
    char *url = node_text(map, "proxy_url", p, &c->memory);

    if (url && !is_url(url) && !is_socks_url(url))
        node_expected(node_get(map, "proxy_url"), p, "a URL: http://host:port, https://... or socks5://...");
    return url;
}

/* Keys of Prometheus' remote_write that mean nothing here, or without which something else would be sent. */
static const struct {
    const char *in, *key; /* in: "" for the endpoint itself */
    enum problem_kind kind;
    const char *why;
} foreign_keys[] = {
    {"", "send_exemplars", PROBLEM_WARNING, "ignored: scores have no exemplars"},
    {"", "send_native_histograms", PROBLEM_WARNING, "ignored: there are no native histograms"},
    {"", "follow_redirects", PROBLEM_WARNING, "ignored: redirects are not followed"},
    {"", "enable_http2", PROBLEM_WARNING, "ignored: requests use HTTP/1.1"},
    {"", "round_robin_dns", PROBLEM_WARNING, "ignored: requests share one connection"},
    {"", "proxy_from_environment", PROBLEM_WARNING,
     "ignored: without proxy_url, the proxy is that of the environment"},
    {"", "sigv4", PROBLEM_ERROR, "not supported: use basic_auth, authorization or oauth2"},
    {"", "azuread", PROBLEM_ERROR, "not supported: use basic_auth, authorization or oauth2"},
    {"", "google_iam", PROBLEM_ERROR, "not supported: use basic_auth, authorization or oauth2"},
    {"", "bearer_token", PROBLEM_ERROR, "not supported: use authorization.credentials"},
    {"", "bearer_token_file", PROBLEM_ERROR, "not supported: use authorization.credentials_file"},
    {"", "http_headers", PROBLEM_ERROR, "not supported: use headers"},
    {"", "no_proxy", PROBLEM_ERROR, "not supported: set NO_PROXY in the environment"},
    {"", "proxy_connect_header", PROBLEM_ERROR, "not supported"},
    {"oauth2", "proxy_from_environment", PROBLEM_WARNING,
     "ignored: without proxy_url, the proxy is that of the environment"},
    {"queue_config", "capacity", PROBLEM_WARNING, "ignored: max_spool_bytes limits what is pending"},
    {"queue_config", "min_shards", PROBLEM_WARNING, "ignored: an endpoint has one sender"},
    {"queue_config", "max_shards", PROBLEM_WARNING, "ignored: an endpoint has one sender"},
    {"queue_config", "batch_send_deadline", PROBLEM_WARNING,
     "ignored: samples never wait for a batch to fill"},
    {"queue_config", "retry_on_http_429", PROBLEM_WARNING, "ignored: 429 is always retried"},
    {"metadata_config", "max_samples_per_send", PROBLEM_WARNING, "ignored: metadata is one request"},
};

/* Reports the keys of the map that are neither known nor in the table. */
static void check_keys(const struct node *map, const char *in, const char *const *known, struct problems *p)
{
    const char *all[64];
    size_t n = 0;

    for (; known[n]; n++)
        all[n] = known[n];
    for (size_t i = 0; i < ARRAY_SIZE(foreign_keys); i++) {
        const struct node *at = strcmp(foreign_keys[i].in, in) ? NULL : node_get(map, foreign_keys[i].key);

        if (!at)
            continue;
        all[n++] = foreign_keys[i].key;
        node_key_problem(at, p, foreign_keys[i].kind, "%s", foreign_keys[i].why);
    }
    all[n] = NULL;
    node_only_keys(map, all, PROBLEM_ERROR, p);
}

/* The scopes as one parameter, and the further ones: some servers want another grant_type. */
static void oauth2_read_form(const struct node *map, struct buf *form, struct problems *p)
{
    static const char what[] = "a list of scopes: strings";
    const struct node *scopes = node_given(map, "scopes");
    const struct node *more = node_object(map, "endpoint_params", NULL, p);
    BUF_AUTO(joined, FORM_MAX);

    if (!more || !node_get(more, "grant_type"))
        buf_put_form(form, STR("grant_type"), STR("client_credentials"));
    if (scopes && scopes->kind != NODE_LIST)
        node_expected(scopes, p, what);
    for (size_t i = 0; scopes && scopes->kind == NODE_LIST && i < scopes->n; i++) {
        if (scopes->items[i]->kind != NODE_STRING) {
            node_expected(scopes->items[i], p, what);
            continue;
        }
        text_join(&joined, " ");
        buf_put_str(&joined, scopes->items[i]->text);
    }
    if (joined.n)
        buf_put_form(form, STR("scope"), buf_str(&joined));
    for (size_t i = 0; more && i < more->n; i++) {
        const struct node *n = more->items[i];

        if (n->kind != NODE_STRING)
            node_expected(n, p, "a parameter: a string (use quotes)");
        else
            buf_put_form(form, n->key, n->text);
    }
    if (buf_failed(&joined) < 0 || buf_failed(form) < 0)
        node_problem(map, p, PROBLEM_ERROR, "scopes and endpoint_params are longer than %zu bytes",
                     form->max);
}

static void read_oauth2(struct rw_endpoint_config *c, const struct node *map, struct problems *p)
{
    static const char *const known[] = {"client_id",  "client_secret", "client_secret_file",
                                        "token_url",  "scopes",        "endpoint_params",
                                        "tls_config", "proxy_url",     NULL};
    const struct node *n = node_object(map, "oauth2", NULL, p);
    struct http_oauth2 *o = &c->oauth2;
    BUF_AUTO(form, FORM_MAX);

    if (!n)
        return;
    check_keys(n, "oauth2", known, p);
    check_exclusive(map, "basic_auth", "oauth2", p);
    check_exclusive(map, "authorization", "oauth2", p);
    check_exclusive(n, "client_secret", "client_secret_file", p);
    o->client_id = str_of(read_secret(c, n, "client_id", p));
    c->client_secret = read_secret(c, n, "client_secret", p);
    c->client_secret_file = node_text(n, "client_secret_file", p, &c->memory);
    o->token_url = node_text(n, "token_url", p, &c->memory);
    o->proxy = read_proxy(c, n, p);
    o->tls = &c->oauth2_tls;
    read_tls(c, &c->oauth2_tls, n, p);
    oauth2_read_form(n, &form, p);
    o->form = str_of(arena_text(&c->memory, buf_str(&form)));
    if (!node_given(n, "client_id"))
        node_missing(n, "client_id", p, "the client's id");
    if (!node_given(n, "client_secret") && !node_given(n, "client_secret_file"))
        node_missing(n, "client_secret_file", p, "a path");
    if (!node_given(n, "token_url"))
        node_missing(n, "token_url", p, "the URL of the token endpoint");
    else if (!o->token_url || !is_url(o->token_url))
        node_expected(node_get(n, "token_url"), p, "an absolute http or https URL with a host");
}

static void read_queue(struct rw_endpoint_config *c, const struct node *map, struct problems *p)
{
    static const char *const known[] = {
        "max_samples_per_send", "min_backoff", "max_backoff", "sample_age_limit",
        "max_spool_bytes",      "full_policy", NULL};
    static const char *const policies[] = {
        [RW_DROP_OLDEST] = "drop_oldest", [RW_DROP_NEWEST] = "drop_newest", NULL};
    const struct node *n = node_object(map, "queue_config", NULL, p);

    check_keys(n, "queue_config", known, p);
    (void)node_int(n, "max_samples_per_send", p, 1, 1000000, &c->max_samples_per_send);
    (void)node_duration(n, "min_backoff", p, 1, 60 * 1000, &c->min_backoff_ms);
    (void)node_duration(n, "max_backoff", p, 1, 60 * 1000, &c->max_backoff_ms);
    (void)node_duration(n, "sample_age_limit", p, 0, 10ll * 365 * 86400 * 1000, &c->sample_age_limit_ms);
    (void)node_bytes(n, "max_spool_bytes", p, 64 << 10, 1ull << 44, &c->max_spool_bytes);
    c->max_spool_given = node_given(n, "max_spool_bytes") != NULL;
    c->full_policy = (enum rw_full_policy)node_choice(n, "full_policy", p, policies);
    if (c->min_backoff_ms > c->max_backoff_ms)
        node_problem(node_get(n, node_given(n, "max_backoff") ? "max_backoff" : "min_backoff"), p,
                     PROBLEM_ERROR, "min_backoff is longer than max_backoff");
}

static void read_metadata(struct rw_endpoint_config *c, const struct node *map, struct problems *p)
{
    static const char *const known[] = {"send", "send_interval", NULL};
    const struct node *n = node_object(map, "metadata_config", NULL, p);

    check_keys(n, "metadata_config", known, p);
    (void)node_bool(n, "send", p, &c->metadata_send);
    (void)node_duration(n, "send_interval", p, 1000, 86400 * 1000, &c->metadata_interval_ms);
}

static void read_external_labels(struct rw_endpoint_config *c, const struct node *map, struct problems *p)
{
    const struct node *labels = node_object(map, "external_labels", NULL, p);

    if (!labels || !has_at_most(labels, RW_MAX_EXTERNAL_LABELS, p))
        return;
    for (size_t i = 0; i < labels->n; i++) {
        const struct node *n = labels->items[i];

        if (n->key.n > 256 || !label_is_name(n->key) || str_eq(n->key, STR("__name__")))
            node_key_problem(n, p, PROBLEM_ERROR, "expected a label name: letters, digits and '_'");
        else if (n->kind != NODE_STRING || memchr(n->text.p, '\0', n->text.n) || n->text.n > 65536)
            node_expected(n, p, "a label value: a string (use quotes)");
        else
            c->external_labels[c->n_external_labels++] = (struct label){
                str_of(arena_text(&c->memory, n->key)), str_of(arena_text(&c->memory, n->text))};
    }
}

bool rw_endpoint_config_same_place(const struct rw_endpoint_config *a, const struct rw_endpoint_config *b)
{
    if (strcmp(a->name, b->name) != 0 || strcmp(a->url, b->url) != 0 || a->n_headers != b->n_headers ||
        strcmp(cstr(a->user), cstr(b->user)) != 0)
        return false;
    for (size_t i = 0; i < a->n_headers; i++)
        if (strcmp(a->headers[i], b->headers[i]) != 0)
            return false;
    return true;
}

struct rw_endpoint_config *rw_endpoint_config_ref(struct rw_endpoint_config *c)
{
    unsigned before = __atomic_fetch_add(&c->refs, 1, __ATOMIC_RELAXED);

    invariant(before > 0);
    return c;
}

struct rw_endpoint_config *rw_endpoint_config_unref(struct rw_endpoint_config *c)
{
    unsigned before;

    if (!c)
        return NULL;
    before = __atomic_fetch_sub(&c->refs, 1, __ATOMIC_ACQ_REL);
    invariant(before > 0);
    if (before > 1)
        return NULL;
    relabel_done(&c->relabel);
    arena_done(&c->memory);
    free(c);
    return NULL;
}

static void endpoint_read_url(struct rw_endpoint_config *c, const struct node *map, struct problems *p)
{
    static const char what[] = "an absolute http or https URL with a host";
    const struct node *n = node_given(map, "url");
    BUF_AUTO(shown, SHOWN_URL_MAX);

    c->url = node_text(map, "url", p, &c->memory);
    if (!n)
        node_missing(map, "url", p, what);
    else if (n->kind == NODE_STRING && (!c->url || !is_url(c->url)))
        node_expected(n, p, what);
    if (!c->url)
        return;
    http_url_for_people(str_of(c->url), &shown);
    buf_putc(&shown, '\0');
    if (buf_failed(&shown) < 0)
        node_problem(n, p, PROBLEM_ERROR, "longer than 4 KiB");
    else
        c->url_shown = arena_text(&c->memory, (struct str){shown.p, strcspn(shown.p, "?#")});
}

/* The default name is derived from the URL, so that the spool keeps its folder as long as the URL is the
 * same. */
static void endpoint_read_name(struct rw_endpoint_config *c, const struct node *map, struct problems *p)
{
    uint64_t h = hash_lasting(str_of(c->url));
    char name[16];
    struct str s = {0};

    if (!node_str(map, "name", p, &s))
        return;
    if (s.n == 0) {
        (void)snprintf(name, sizeof(name), "%06x", (unsigned)(h ^ h >> 32) & 0xffffff);
        s = str_of(name);
    }
    if (s.n <= NAME_MAX_BYTES && s.p[0] != '.' && str_has_only(s, "-_."))
        c->name = arena_text(&c->memory, s);
    else
        node_expected(node_get(map, "name"), p,
                      "at most 64 letters, digits, '-', '_' and '.', not starting with '.'");
}

static void endpoint_read_protocol(struct rw_endpoint_config *c, const struct node *map, struct problems *p)
{
    static const char *const messages[] = {"prometheus.WriteRequest", "io.prometheus.write.v2.Request", NULL};
    const struct node *n = node_given(map, "protocol");

    check_exclusive(map, "protocol", "protobuf_message", p);
    if (node_choice(map, "protobuf_message", p, messages))
        c->protocol = RW_PROTOCOL_V2;
    /* YAML reads an unquoted 1.0 as a number. */
    for (unsigned i = 0; n && i < RW_PROTOCOLS; i++)
        if ((n->kind == NODE_STRING || n->kind == NODE_DOUBLE) &&
            str_eq(n->text, str_of(rw_protocol_words[i]))) {
            c->protocol = (enum rw_protocol)i;
            return;
        }
    if (n)
        node_expected(n, p, "auto, 1.0, 2.0 or vm");
}

/* The wire format determines the compression: snappy for 1.0 and 2.0, zstd for vm. */
static void endpoint_read_compression(struct rw_endpoint_config *c, const struct node *map,
                                      struct problems *p)
{
    const struct node *n = node_given(map, "compression");
    struct str word = STR("");

    if (!n || !node_str(map, "compression", p, &word))
        return;
    if (str_eq(word, STR("snappy")) && c->protocol != RW_PROTOCOL_VM)
        c->protocol = c->protocol == RW_PROTOCOL_AUTO ? RW_PROTOCOL_V2 : c->protocol;
    else if (str_eq(word, STR("zstd")) && (c->protocol == RW_PROTOCOL_VM || c->protocol == RW_PROTOCOL_AUTO))
        c->protocol = RW_PROTOCOL_VM;
    else
        node_expected(n, p, "snappy (for protocol 1.0, 2.0 or auto) or zstd (for vm or auto)");
}

/* A hash of all that the node holds. */
static uint64_t node_fingerprint(uint64_t h, const struct node *n)
{
    h = hash_chain(hash_chain_u64(hash_chain_u64(h, (uint64_t)n->kind), n->n), n->text);
    for (size_t i = 0; i < n->n; i++)
        h = node_fingerprint(n->kind == NODE_MAP ? hash_chain(h, n->items[i]->key) : h, n->items[i]);
    return h;
}

static struct rw_endpoint_config *endpoint_read(const struct node *map, struct problems *p)
{
    /* clang-format off */
    static const char *const known[] = {
        "url", "name", "remote_timeout", "headers", "basic_auth", "authorization", "oauth2", "tls_config",
        "proxy_url", "protocol", "protobuf_message", "compression", "queue_config", "external_labels",
        "metadata_config", "send_health_metrics", "write_relabel_configs", NULL};
    /* clang-format on */
    struct rw_endpoint_config *c = xcalloc(1, sizeof(*c));

    c->refs = 1;
    c->memory.chunk_bytes = CHUNK_BYTES;
    c->timeout_ms = 30 * 1000;
    c->protocol = RW_PROTOCOL_V1;
    c->max_samples_per_send = 10000;
    c->min_backoff_ms = 1000;
    c->max_backoff_ms = 60 * 1000;
    c->max_spool_bytes = 1ull << 30;
    c->metadata_send = true;
    c->metadata_interval_ms = 60 * 1000;
    check_keys(map, "", known, p);
    endpoint_read_url(c, map, p);
    endpoint_read_name(c, map, p);
    endpoint_read_protocol(c, map, p);
    endpoint_read_compression(c, map, p);
    (void)node_duration(map, "remote_timeout", p, 10, 3600 * 1000, &c->timeout_ms);
    (void)node_bool(map, "send_health_metrics", p, &c->send_health_metrics);
    if (node_given(map, "write_relabel_configs"))
        relabel_read(&c->relabel, node_given(map, "write_relabel_configs"), p, &c->memory);
    read_headers(c, map, p);
    read_basic(c, map, p);
    read_authorization(c, map, p);
    read_tls(c, &c->tls, map, p);
    c->proxy_url = read_proxy(c, map, p);
    read_oauth2(c, map, p);
    read_queue(c, map, p);
    read_metadata(c, map, p);
    read_external_labels(c, map, p);
    c->fingerprint = node_fingerprint(0, map);
    return c;
}

static void check_endpoint_names(const struct rw_config *c, const struct node *list, struct problems *p)
{
    for (size_t i = 0; i < c->n; i++)
        for (size_t k = 0; k < i; k++)
            if (c->list[i]->name && c->list[k]->name && strcmp(c->list[i]->name, c->list[k]->name) == 0) {
                node_problem(list->items[i], p, PROBLEM_ERROR,
                             "same name as entry %zu, \"%s\"; names must be unique", k, c->list[i]->name);
                break;
            }
}

static void rw_config_done(void *config)
{
    struct rw_config *c = config;

    for (size_t i = 0; i < c->n; i++)
        (void)rw_endpoint_config_unref(c->list[i]);
    free(c);
}

static int rw_config_parse(const struct node *list, struct problems *p, void **ret)
{
    struct rw_config *c;

    if (list->kind != NODE_LIST || list->n > RW_MAX_ENDPOINTS) {
        node_expected(list, p, "a list of at most %d endpoints", RW_MAX_ENDPOINTS);
        return 0;
    }
    *ret = c = xcalloc(1, sizeof(*c));
    for (size_t i = 0; i < list->n; i++)
        if (list->items[i]->kind != NODE_MAP)
            node_expected(list->items[i], p, "an endpoint: an object with url, name, ...");
        else
            c->list[c->n++] = endpoint_read(list->items[i], p);
    if (p->errors == 0)
        check_endpoint_names(c, list, p);
    return 0;
}

const struct config_section rw_config_section = {
    .key = "remoteWrite", .parse = rw_config_parse, .done = rw_config_done};

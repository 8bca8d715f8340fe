/* Reading the parts of an endpoint: credentials and TLS, queue, external labels. */
#include "remotewrite/config.h"

#include "exporter/base/doc.h"
#include "exporter/base/header.h"
#include "exporter/base/problems.h"
#include "remotewrite/config_read.h"

#include <curl/curl.h>
#include <errno.h>
#include <strings.h>

char *rw_keep(struct rw_reader *r, struct str text)
{
    char *copy = arena_alloc(r->memory, text.n + 1);

    r->no_memory = r->no_memory || !copy;
    if (copy)
        *(char *)mempcpy(copy, cstr(text.p), text.n) = '\0';
    return copy;
}

char *rw_read_text(struct rw_reader *r, const struct node *map, const char *key)
{
    struct str s = {0};

    return node_str(map, key, r->p, &s) && s.n ? rw_keep(r, s) : NULL;
}

bool rw_is_url(const char *url, bool proxy)
{
    static const char *const schemes[] = {"http://",    "https://",  "socks4://",
                                          "socks4a://", "socks5://", "socks5h://"};
    size_t begin = 0;
    CURLUcode c;
    CURLU *u;

    for (size_t i = 0; i < (proxy ? ARRAY_SIZE(schemes) : 2) && !begin; i++)
        if (strncasecmp(url, schemes[i], strlen(schemes[i])) == 0)
            begin = strlen(schemes[i]);
    if (!begin || !url[begin] || url[begin] == '/')
        return false;
    u = curl_url();
    c = u ? curl_url_set(u, CURLUPART_URL, url, CURLU_NON_SUPPORT_SCHEME) : CURLUE_OUT_OF_MEMORY;
    curl_url_cleanup(u);
    return c == CURLUE_OK;
}

/* A member that is an object; NULL if it is absent or of another type (a problem). */
static const struct node *read_object(struct rw_reader *r, const struct node *map, const char *key,
                                      const char *const *known)
{
    const struct node *n = node_given(map, key);

    if (n && n->kind != NODE_MAP) {
        node_expected(n, r->p, "an object");
        return NULL;
    }
    if (n && known)
        node_only_keys(n, known, PROBLEM_ERROR, r->p);
    return n;
}

static void pairs_add(struct rw_reader *r, struct rw_pairs *pairs, const struct node *n)
{
    struct rw_pair *pair = &pairs->list[pairs->n++];

    pair->name = rw_keep(r, n->key);
    pair->value = rw_keep(r, n->text);
}

static bool pairs_reserve(struct rw_reader *r, struct rw_pairs *pairs, const struct node *map, size_t most)
{
    if (map->n > most) {
        node_problem(map, r->p, PROBLEM_ERROR, "expected at most %zu entries, got %zu", most, map->n);
        return false;
    }
    pairs->list = arena_alloc(r->memory, map->n * sizeof(*pairs->list));
    r->no_memory = r->no_memory || !pairs->list;
    return pairs->list != NULL;
}

static void read_headers(struct rw_reader *r, struct rw_endpoint_config *c, const struct node *map)
{
    const struct node *headers = read_object(r, map, "headers", NULL);

    if (!headers || !pairs_reserve(r, &c->headers, headers, RW_MAX_HEADERS))
        return;
    for (size_t i = 0; i < headers->n; i++) {
        const struct node *n = headers->items[i];

        if (header_is_reserved(n->key))
            node_key_problem(n, r->p, PROBLEM_ERROR, "this header cannot be set here%s",
                             str_eq_nocase(n->key, STR("Authorization")) ? ": use authorization or basic_auth"
                                                                         : "");
        else if (!header_is_name(n->key))
            node_key_problem(n, r->p, PROBLEM_ERROR, "expected a header name");
        else if (n->kind != NODE_STRING || !header_is_value(n->text))
            node_problem(n, r->p, PROBLEM_ERROR, "expected a header value: one line of at most 4096 bytes");
        else
            pairs_add(r, &c->headers, n);
    }
}

static bool is_secret(const char *s)
{
    for (; s && *s; s++)
        if ((unsigned char)*s < 0x20 || *s == 0x7f)
            return false;
    return true;
}

/* Secrets are never quoted in a message. */
static void check_secret(struct rw_reader *r, const char *secret, const struct node *map, const char *key)
{
    if (!is_secret(secret))
        node_problem(node_get(map, key), r->p, PROBLEM_ERROR, "contains control characters");
}

static void check_exclusive(struct rw_reader *r, const struct node *map, const char *a, const char *b)
{
    if (node_given(map, a) && node_given(map, b))
        node_key_problem(node_get(map, b), r->p, PROBLEM_ERROR, "only one of %s and %s may be set", a, b);
}

static void read_basic(struct rw_reader *r, struct rw_endpoint_config *c, const struct node *map)
{
    static const char *const known[] = {"username", "password", "password_file", NULL};
    const struct node *n = read_object(r, map, "basic_auth", known);

    if (!n)
        return;
    check_exclusive(r, n, "password", "password_file");
    c->user = rw_read_text(r, n, "username");
    c->password = rw_read_text(r, n, "password");
    c->password_file = rw_read_text(r, n, "password_file");
    if (!node_given(n, "username"))
        node_missing(n, "username", r->p, "a user name");
    check_secret(r, c->user, n, "username");
    check_secret(r, c->password, n, "password");
}

static void read_authorization(struct rw_reader *r, struct rw_endpoint_config *c, const struct node *map)
{
    static const char *const known[] = {"type", "credentials", "credentials_file", NULL};
    const struct node *n = read_object(r, map, "authorization", known);

    if (!n)
        return;
    check_exclusive(r, n, "credentials", "credentials_file");
    c->auth_type = rw_read_text(r, n, "type");
    if (!c->auth_type)
        c->auth_type = rw_keep(r, STR("Bearer"));
    if (c->auth_type && !header_is_name(str_of(c->auth_type)))
        node_expected(node_get(n, "type"), r->p, "a word like Bearer");
    else if (c->auth_type && str_eq_nocase(str_of(c->auth_type), STR("Basic")))
        node_problem(node_get(n, "type"), r->p, PROBLEM_ERROR, "expected basic_auth instead");
    c->credentials = rw_read_text(r, n, "credentials");
    c->credentials_file = rw_read_text(r, n, "credentials_file");
    if (!node_given(n, "credentials") && !node_given(n, "credentials_file"))
        node_missing(n, "credentials_file", r->p, "a path");
    check_secret(r, c->credentials, n, "credentials");
    if (node_given(map, "basic_auth"))
        node_key_problem(node_get(map, "authorization"), r->p, PROBLEM_ERROR,
                         "only one of basic_auth and authorization may be set");
}

static void read_tls(struct rw_reader *r, struct rw_endpoint_config *c, const struct node *map)
{
    static const char *const known[] = {
        "ca_file", "cert_file", "key_file", "server_name", "insecure_skip_verify", NULL};
    const struct node *n = read_object(r, map, "tls_config", known);

    if (!n)
        return;
    c->ca_file = rw_read_text(r, n, "ca_file");
    c->cert_file = rw_read_text(r, n, "cert_file");
    c->key_file = rw_read_text(r, n, "key_file");
    c->server_name = rw_read_text(r, n, "server_name");
    (void)node_bool(n, "insecure_skip_verify", r->p, &c->insecure_skip_verify);
    if (!c->cert_file != !c->key_file && !r->no_memory)
        node_problem(n, r->p, PROBLEM_ERROR, "cert_file and key_file must be set together");
    if (c->server_name && c->server_name[strcspn(c->server_name, ":/@?# ")])
        node_expected(node_get(n, "server_name"), r->p, "a host name");
}

void rw_read_credentials(struct rw_reader *r, struct rw_endpoint_config *c, const struct node *map)
{
    read_headers(r, c, map);
    read_basic(r, c, map);
    read_authorization(r, c, map);
    read_tls(r, c, map);
    c->proxy_url = rw_read_text(r, map, "proxy_url");
    if (c->proxy_url && !rw_is_url(c->proxy_url, true))
        node_expected(node_get(map, "proxy_url"), r->p,
                      "a URL: http://host:port, https://... or socks5://...");
}

static void read_policy(struct rw_reader *r, struct rw_endpoint_config *c, const struct node *n)
{
    struct str word = STR("drop_oldest");

    if (!node_str(n, "full_policy", r->p, &word))
        return;
    if (str_eq(word, STR("drop_newest")))
        c->full_policy = RW_DROP_NEWEST;
    else if (!str_eq(word, STR("drop_oldest")))
        node_expected(node_get(n, "full_policy"), r->p, "drop_oldest or drop_newest");
}

void rw_read_queue(struct rw_reader *r, struct rw_endpoint_config *c, const struct node *map)
{
    static const char *const known[] = {
        "max_samples_per_send", "batch_send_deadline", "min_backoff", "max_backoff",
        "sample_age_limit",     "max_spool_bytes",     "full_policy", NULL};
    static const char *const known_metadata[] = {"send", "send_interval", NULL};
    const struct node *n = read_object(r, map, "queue_config", known),
                      *metadata = read_object(r, map, "metadata_config", known_metadata);

    if (n) {
        (void)node_int(n, "max_samples_per_send", r->p, 1, 1000000, &c->max_samples_per_send);
        (void)node_duration(n, "batch_send_deadline", r->p, 0, 3600 * 1000, &c->batch_send_deadline_ms);
        (void)node_duration(n, "min_backoff", r->p, 1, 60 * 1000, &c->min_backoff_ms);
        (void)node_duration(n, "max_backoff", r->p, 1, 60 * 1000, &c->max_backoff_ms);
        (void)node_duration(n, "sample_age_limit", r->p, 0, 10ll * 365 * 86400 * 1000,
                            &c->sample_age_limit_ms);
        (void)node_bytes(n, "max_spool_bytes", r->p, 64 << 10, 1ull << 44, &c->max_spool_bytes);
        c->max_spool_given = node_given(n, "max_spool_bytes") != NULL;
        read_policy(r, c, n);
        if (c->min_backoff_ms > c->max_backoff_ms)
            node_problem(node_get(n, node_given(n, "max_backoff") ? "max_backoff" : "min_backoff"), r->p,
                         PROBLEM_ERROR, "min_backoff is longer than max_backoff");
    }
    if (metadata) {
        (void)node_bool(metadata, "send", r->p, &c->metadata_send);
        (void)node_duration(metadata, "send_interval", r->p, 1000, 86400 * 1000, &c->metadata_interval_ms);
    }
}

static bool is_label_name(struct str s)
{
    return s.n > 0 && s.n <= 256 && str_has_only(s, "_") && !(s.p[0] >= '0' && s.p[0] <= '9');
}

static int compare_pairs(const void *a, const void *b)
{
    return strcmp(((const struct rw_pair *)a)->name, ((const struct rw_pair *)b)->name);
}

void rw_read_labels(struct rw_reader *r, struct rw_endpoint_config *c, const struct node *map)
{
    const struct node *labels = read_object(r, map, "external_labels", NULL);

    if (!labels || !pairs_reserve(r, &c->external_labels, labels, RW_MAX_EXTERNAL_LABELS))
        return;
    for (size_t i = 0; i < labels->n; i++) {
        const struct node *n = labels->items[i];

        if (!is_label_name(n->key) || str_eq(n->key, STR("__name__")))
            node_key_problem(n, r->p, PROBLEM_ERROR, "expected a label name: letters, digits and '_'");
        else if (n->kind != NODE_STRING || memchr(n->text.p, '\0', n->text.n) || n->text.n > 65536)
            node_expected(n, r->p, "a label value: a string (use quotes)");
        else
            pairs_add(r, &c->external_labels, n);
    }
    if (c->external_labels.n && !r->no_memory)
        qsort(c->external_labels.list, c->external_labels.n, sizeof(c->external_labels.list[0]),
              compare_pairs);
}

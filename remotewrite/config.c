/* Reading `remoteWrite`. */
#include "remotewrite/config.h"

#include "exporter/base/buf.h"
#include "exporter/base/doc.h"
#include "exporter/base/hash.h"
#include "exporter/base/http.h"
#include "exporter/base/problems.h"
#include "remotewrite/config_read.h"

#include <errno.h>
#include <stdio.h>

const char *const rw_form_words[RW_FORMS] = {[RW_FORM_V1] = "1.0", [RW_FORM_VM] = "vm", [RW_FORM_V2] = "2.0"};

enum { NAME_MAX_BYTES = 64, SHOWN_URL_MAX = 4096, CHUNK_BYTES = 1024 };

static const char *const endpoint_keys[] = {
    "url",
    "name",
    "remote_timeout",
    "headers",
    "basic_auth",
    "authorization",
    "tls_config",
    "proxy_url",
    "protocol",
    "compression",
    "queue_config",
    "external_labels",
    "send_health_metrics",
    "metadata_config",
    "write_relabel_configs",
    NULL,
};

struct rw_endpoint_config *rw_endpoint_config_ref(struct rw_endpoint_config *c)
{
    (void)__atomic_add_fetch(&c->refs, 1, __ATOMIC_RELAXED);
    return c;
}

struct rw_endpoint_config *rw_endpoint_config_unref(struct rw_endpoint_config *c)
{
    if (!c || __atomic_sub_fetch(&c->refs, 1, __ATOMIC_ACQ_REL) > 0)
        return NULL;
    arena_done(&c->memory);
    relabel_done(&c->relabel);
    free(c);
    return NULL;
}

static void endpoint_defaults(struct rw_endpoint_config *c)
{
    c->refs = 1;
    c->memory.chunk_bytes = CHUNK_BYTES;
    c->timeout_ms = 30 * 1000;
    c->protocol = RW_PROTOCOL_V1;
    c->max_samples_per_send = 10000;
    c->batch_send_deadline_ms = 5000;
    c->min_backoff_ms = 1000;
    c->max_backoff_ms = 60 * 1000;
    c->max_spool_bytes = 1ull << 30;
    c->full_policy = RW_DROP_OLDEST;
    c->metadata_send = true;
    c->metadata_interval_ms = 60 * 1000;
}

static const char *cut_query(char *url)
{
    url[strcspn(url, "?#")] = '\0';
    return url;
}

static void endpoint_read_url(struct rw_reader *r, struct rw_endpoint_config *c, const struct node *map)
{
    static const char what[] = "an absolute http or https URL with a host";
    BUF_AUTO(shown, SHOWN_URL_MAX);

    if (!node_given(map, "url")) {
        node_missing(map, "url", r->p, what);
        return;
    }
    c->url = rw_read_text(r, map, "url");
    if (!c->url) {
        if (!r->no_memory && node_get(map, "url")->kind == NODE_STRING)
            node_expected(node_get(map, "url"), r->p, what);
        return;
    }
    if (!rw_is_url(c->url, false)) {
        node_expected(node_get(map, "url"), r->p, what);
        return;
    }
    if (http_url_for_people(str_of(c->url), &shown) < 0 || buf_putc(&shown, '\0') < 0) {
        node_problem(node_get(map, "url"), r->p, PROBLEM_ERROR, "longer than 4 KiB");
        return;
    }
    c->url_shown = rw_keep(r, str_of(cut_query(shown.p)));
}

static bool is_endpoint_name(struct str s)
{
    return s.n > 0 && s.n <= NAME_MAX_BYTES && s.p[0] != '.' && str_has_only(s, "-_.");
}

/* The default name is derived from the URL, so that the spool keeps its folder as long as the URL is the
 * same. */
static char *name_from_url(struct rw_reader *r, const char *url)
{
    uint64_t h = hash_lasting(str_of(url));
    char name[16];

    (void)snprintf(name, sizeof(name), "%06x", (unsigned)(h ^ h >> 32) & 0xffffff);
    return rw_keep(r, str_of(name));
}

static void endpoint_read_name(struct rw_reader *r, struct rw_endpoint_config *c, const struct node *map)
{
    struct str s = {0};

    if (!node_str(map, "name", r->p, &s))
        return;
    if (s.n == 0) {
        c->name = c->url ? name_from_url(r, c->url) : NULL;
        return;
    }
    if (is_endpoint_name(s))
        c->name = rw_keep(r, s);
    else
        node_expected(node_get(map, "name"), r->p,
                      "at most 64 letters, digits, '-', '_' and '.', not starting with '.'");
}

static void endpoint_read_protocol(struct rw_reader *r, struct rw_endpoint_config *c, const struct node *map)
{
    static const char *const words[] = {[RW_PROTOCOL_V1] = "1.0",
                                        [RW_PROTOCOL_VM] = "vm",
                                        [RW_PROTOCOL_V2] = "2.0",
                                        [RW_PROTOCOL_AUTO] = "auto"};
    const struct node *n = node_given(map, "protocol");

    /* YAML reads an unquoted 1.0 as a number. */
    for (unsigned i = 0; n && i < ARRAY_SIZE(words); i++)
        if ((n->kind == NODE_STRING || n->kind == NODE_DOUBLE) && str_eq(n->text, str_of(words[i]))) {
            c->protocol = (enum rw_protocol)i;
            return;
        }
    if (n)
        node_expected(n, r->p, "auto, 1.0, 2.0 or vm");
}

/* The wire format determines the compression: snappy for 1.0 and 2.0, zstd for vm. */
static void endpoint_read_compression(struct rw_reader *r, struct rw_endpoint_config *c,
                                      const struct node *map)
{
    const struct node *n = node_given(map, "compression");
    struct str word = STR("");

    if (!n || !node_str(map, "compression", r->p, &word))
        return;
    if (str_eq(word, STR("snappy")) && c->protocol != RW_PROTOCOL_VM)
        c->protocol = c->protocol == RW_PROTOCOL_AUTO ? RW_PROTOCOL_V2 : c->protocol;
    else if (str_eq(word, STR("zstd")) && (c->protocol == RW_PROTOCOL_VM || c->protocol == RW_PROTOCOL_AUTO))
        c->protocol = RW_PROTOCOL_VM;
    else
        node_expected(n, r->p, "snappy (for protocol 1.0, 2.0 or auto) or zstd (for vm or auto)");
}

static void endpoint_read_rest(struct rw_reader *r, struct rw_endpoint_config *c, const struct node *map)
{
    const struct node *rules = node_given(map, "write_relabel_configs");

    (void)node_duration(map, "remote_timeout", r->p, 10, 3600 * 1000, &c->timeout_ms);
    (void)node_bool(map, "send_health_metrics", r->p, &c->send_health_metrics);
    if (rules && relabel_read(&c->relabel, rules, r->p) < 0)
        r->no_memory = true;
}

/* The next node of the subtree in preorder; NULL at its end. */
static const struct node *node_next(const struct node *top, const struct node *n)
{
    if (n->n)
        return n->items[0];
    while (n != top && n->index + 1 >= n->parent->n)
        n = n->parent;
    return n == top ? NULL : n->parent->items[n->index + 1];
}

static uint64_t endpoint_fingerprint(const struct node *top)
{
    uint64_t h = 0;

    for (const struct node *n = top; n; n = node_next(top, n)) {
        h = hash_chain(hash_chain_u64(h, (uint64_t)n->kind), n->key);
        h = hash_chain(hash_chain_u64(h, n->n), n->text);
    }
    return h;
}

static struct rw_endpoint_config *endpoint_read(struct rw_reader *r, const struct node *map)
{
    struct rw_endpoint_config *c = calloc(1, sizeof(*c));

    if (!c) {
        r->no_memory = true;
        return NULL;
    }
    r->memory = &c->memory;
    endpoint_defaults(c);
    node_only_keys(map, endpoint_keys, PROBLEM_ERROR, r->p);
    endpoint_read_url(r, c, map);
    endpoint_read_name(r, c, map);
    endpoint_read_protocol(r, c, map);
    endpoint_read_compression(r, c, map);
    endpoint_read_rest(r, c, map);
    rw_read_credentials(r, c, map);
    rw_read_queue(r, c, map);
    rw_read_labels(r, c, map);
    c->fingerprint = endpoint_fingerprint(map);
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
    free(c->list);
    free(c);
}

static int rw_config_parse(const struct node *list, struct problems *p, void **ret)
{
    struct rw_reader r = {.p = p};
    struct rw_config *c;

    if (list->kind != NODE_LIST || list->n > RW_MAX_ENDPOINTS) {
        node_expected(list, p, "a list of at most %d endpoints", RW_MAX_ENDPOINTS);
        return 0;
    }
    c = calloc(1, sizeof(*c));
    if (!c)
        return -ENOMEM;
    *ret = c;
    c->list = calloc(list->n + 1, sizeof(*c->list));
    for (size_t i = 0; c->list && i < list->n; i++) {
        const struct node *n = list->items[i];

        if (n->kind != NODE_MAP)
            node_expected(n, p, "an endpoint: an object with url, name, ...");
        else if ((c->list[c->n] = endpoint_read(&r, n)))
            c->n++;
    }
    if (r.no_memory || !c->list)
        return -ENOMEM;
    if (p->errors == 0)
        check_endpoint_names(c, list, p);
    return 0;
}

const struct config_section rw_config_section = {
    .key = "remoteWrite", .parse = rw_config_parse, .done = rw_config_done};

/* What the file may say is read from its tree; then the files that it names. */
#include "exporter/web/web_file.h"

#include "exporter/base/alloc.h"
#include "exporter/base/arena.h"
#include "exporter/base/buf.h"
#include "exporter/base/doc.h"
#include "exporter/base/file.h"
#include "exporter/base/str.h"
#include "exporter/http/tls.h"

#include <errno.h>

enum { MAX_INTERVAL_MS = 3600 * 1000, MAX_BURST = 1000000, MAX_VALUE_BYTES = 8192, FILE_MAX = 1 << 20 };
enum { BCRYPT_SALT_AT = 7 /* in a hash, after "$2b$10$" */, BCRYPT_SLOW_COST = 14 /* a second */ };

/* What the functions of one file share. */
struct web_reader {
    struct web_file *file;
    const char *dir;
    struct problems *p;
};

/* ---- tls_server_config ---- */

/* clang-format off */
static const char *const tls_keys[] = {
    "cert", "key", "client_ca", "cert_file", "key_file", "client_ca_file", "client_auth_type",
    "client_allowed_sans", "min_version", "max_version", "cipher_suites", "prefer_server_cipher_suites",
    "curve_preferences", NULL};
/* clang-format on */

static const char *web_path(struct web_reader *w, const struct node *map, const char *key)
{
    const char *name = node_text(map, key, w->p, &w->file->arena);
    CLEANUP(cleanup_free) char *path = NULL;

    if (!name || name[0] == '/')
        return name;
    path = xasprintf("%s/%s", w->dir, name);
    return arena_text(&w->file->arena, str_of(path));
}

static struct httpd_tls_pem web_pem(struct web_reader *w, const struct node *map, const char *text,
                                    const char *file)
{
    struct str s = {0};
    struct httpd_tls_pem pem = {.file = web_path(w, map, file)};

    /* Not copied: it may be a private key. */
    if (node_str(map, text, w->p, &s) && s.n)
        pem.text = s.p;

    if (pem.file && pem.text)
        node_problem(node_get(map, text), w->p, PROBLEM_ERROR,
                     "%s is given as well; only one of them is allowed", file);
    return pem;
}

static struct httpd_tls_list web_words(struct web_reader *w, const struct node *map, const char *key)
{
    const struct node *n = node_given(map, key);
    const char **items;

    if (n && n->kind != NODE_LIST)
        node_expected(n, w->p, "a list of strings");
    if (!n || n->kind != NODE_LIST || !n->n)
        return (struct httpd_tls_list){0};
    items = arena_alloc(&w->file->arena, n->n * sizeof(*items));
    for (size_t i = 0; i < n->n; i++) {
        if (n->items[i]->kind != NODE_STRING || !n->items[i]->text.n)
            node_expected(n->items[i], w->p, "a string");
        items[i] = n->items[i]->text.p;
    }
    return (struct httpd_tls_list){.items = items, .n = n->n};
}

static void web_read_tls(struct web_reader *w, const struct node *root)
{
    const struct node *n = node_object(root, "tls_server_config", tls_keys, w->p);
    struct web_file *f = w->file;
    bool prefer = true;

    if (!n || !n->n)
        return;
    f->has_tls = true;
    f->tls = (struct httpd_tls_settings){
        .cert = web_pem(w, n, "cert", "cert_file"),
        .key = web_pem(w, n, "key", "key_file"),
        .client_ca = web_pem(w, n, "client_ca", "client_ca_file"),
        .client_auth_type = node_text(n, "client_auth_type", w->p, &f->arena),
        .min_version = node_text(n, "min_version", w->p, &f->arena),
        .max_version = node_text(n, "max_version", w->p, &f->arena),
        .client_allowed_sans = web_words(w, n, "client_allowed_sans"),
        .cipher_suites = web_words(w, n, "cipher_suites"),
        .curve_preferences = web_words(w, n, "curve_preferences"),
    };
    (void)node_bool(n, "prefer_server_cipher_suites", w->p, &prefer);
    if (!f->tls.cert.file && !f->tls.cert.text)
        node_missing(n, "cert_file", w->p, "a file with the certificate in PEM, or cert with its text");
    if (!f->tls.key.file && !f->tls.key.text)
        node_missing(n, "key_file", w->p, "a file with the key in PEM, or key with its text");
}

/* ---- http_server_config ---- */

/* The fields that may be set, and the values that are allowed for each; NULL for any. */
static const char *const header_names[] = {"Strict-Transport-Security", "X-Content-Type-Options",
                                           "X-Frame-Options",           "X-XSS-Protection",
                                           "Content-Security-Policy",   NULL};
static const char *const *const header_values[WEB_FILE_HEADERS] = {
    [1] = (const char *const[]){"nosniff", NULL}, [2] = (const char *const[]){"deny", "sameorigin", NULL}};

/* A number is taken as its text, for X-XSS-Protection: 1. */
static void web_read_header(struct web_reader *w, const struct node *n, size_t header)
{
    const char *const *values = header_values[header], *const *value = values;
    bool printable = true;
    BUF_AUTO(choices, 256);

    if (n->kind == NODE_NULL || (n->kind == NODE_STRING && !n->text.n))
        return;
    if (n->kind == NODE_LIST || n->kind == NODE_MAP || n->kind == NODE_BROKEN ||
        n->text.n > MAX_VALUE_BYTES) {
        node_expected(n, w->p, "a string of at most %d bytes", MAX_VALUE_BYTES);
        return;
    }
    for (size_t i = 0; i < n->text.n; i++)
        printable = printable && n->text.p[i] >= ' ' && n->text.p[i] <= '~';
    while (value && *value && !str_eq(n->text, str_of(*value)))
        value++;
    if (!printable) {
        node_problem(n, w->p, PROBLEM_ERROR, "expected printable ASCII characters");
    } else if (value && !*value) {
        problem_choices(values, &choices);
        node_problem(n, w->p, PROBLEM_ERROR, "expected %.*s", STR_ARG(buf_str(&choices)));
    } else {
        w->file->headers[w->file->n_headers++] =
            (struct httpd_header){.name = header_names[header], .value = n->text.p};
    }
}

static void web_read_http(struct web_reader *w, const struct node *root)
{
    static const char *const keys[] = {"http2", "headers", NULL};
    const struct node *n = node_object(root, "http_server_config", keys, w->p);
    const struct node *headers = node_object(n, "headers", header_names, w->p);
    bool http2 = true;

    (void)node_bool(n, "http2", w->p, &http2);
    for (size_t i = 0; headers && i < WEB_FILE_HEADERS; i++) {
        const struct node *field = node_get(headers, header_names[i]);
        if (field)
            web_read_header(w, field, i);
    }
}

/* ---- basic_auth_users, rate_limit ---- */

unsigned bcrypt_cost(struct str hash)
{
    uint64_t cost;

    return hash.n == BCRYPT_BYTES && str_starts(hash, STR("$2")) && memchr("aby", hash.p[2], 3) &&
                   hash.p[3] == '$' && str_to_u64((struct str){hash.p + 4, 2}, &cost) && cost >= 4 &&
                   cost <= 31 && hash.p[6] == '$' &&
                   str_has_only((struct str){hash.p + BCRYPT_SALT_AT, hash.n - BCRYPT_SALT_AT}, "./")
               ? (unsigned)cost
               : 0;
}

static void web_read_user(struct web_reader *w, const struct node *n)
{
    unsigned cost = n->kind == NODE_STRING ? bcrypt_cost(n->text) : 0;

    if (memchr(n->key.n ? n->key.p : "", ':', n->key.n))
        node_key_problem(n, w->p, PROBLEM_ERROR, "a user name cannot contain a colon");
    else if (!cost)
        node_problem(n, w->p, PROBLEM_ERROR, "expected a bcrypt hash, which begins with $2a$, $2b$ or $2y$");
    else if (cost > BCRYPT_MAX_COST)
        node_problem(n, w->p, PROBLEM_ERROR, "cost %u is too high: at most %d is allowed", cost,
                     BCRYPT_MAX_COST);
    else if (cost > BCRYPT_SLOW_COST)
        node_problem(n, w->p, PROBLEM_WARNING,
                     "cost %u: checking a password takes several seconds, longer than some clients wait",
                     cost);
}

static void web_read_users(struct web_reader *w, const struct node *root)
{
    const struct node *n = node_object(root, "basic_auth_users", NULL, w->p);

    if (!n)
        return;
    if (n->n > WEB_FILE_MAX_USERS) {
        node_problem(n, w->p, PROBLEM_ERROR, "expected at most %d users", WEB_FILE_MAX_USERS);
        return;
    }
    w->file->users = (const struct node *const *)n->items;
    w->file->n_users = n->n;
    for (size_t i = 0; i < n->n; i++)
        web_read_user(w, n->items[i]);
}

/* A number without a unit is nanoseconds elsewhere and seconds here, so it is refused. */
static void web_read_limit(struct web_reader *w, const struct node *root)
{
    static const char *const keys[] = {"interval", "burst", NULL};
    const struct node *n = node_object(root, "rate_limit", keys, w->p), *interval = node_given(n, "interval");
    struct web_file *f = w->file;

    if (interval && interval->kind != NODE_STRING && !str_eq(interval->text, STR("0")))
        node_expected(interval, w->p, "a duration with a unit, like 100ms or 1s");
    else
        (void)node_duration(n, "interval", w->p, 0, MAX_INTERVAL_MS, &f->interval_ms);
    (void)node_int(n, "burst", w->p, 0, MAX_BURST, &f->burst);
    if (f->interval_ms && !f->burst)
        node_problem(n, w->p, PROBLEM_WARNING, "burst is 0: every request is refused");
}

/* ---- The file ---- */

struct web_file *web_file_free(struct web_file *f)
{
    if (!f)
        return NULL;
    arena_done(&f->arena);
    (void)doc_free(f->doc);
    free(f);
    return NULL;
}

int web_file_parse(struct web_file **ret, struct str text, const char *dir, struct problems *p)
{
    CLEANUP(cleanup_web_file_free) struct web_file *f = xcalloc(1, sizeof(*f));
    static const char *const keys[] = {"tls_server_config", "http_server_config", "basic_auth_users",
                                       "rate_limit", NULL};
    struct web_reader w = {.file = f, .dir = dir, .p = p};
    const struct node *root;
    int r = doc_parse(&f->doc, text, p);

    if (r < 0)
        return r;
    f->arena.chunk_bytes = 4096;
    root = f->doc->root;
    if (root->kind == NODE_MAP) {
        node_only_keys(root, keys, PROBLEM_ERROR, p);
        web_read_tls(&w, root);
        web_read_http(&w, root);
        web_read_users(&w, root);
        web_read_limit(&w, root);
    } else if (root->kind != NODE_NULL) {
        node_expected(root, p, "an object with tls_server_config, basic_auth_users and so on");
    }
    problems_sort(p);
    if (p->errors)
        return -EINVAL;
    *ret = TAKE_PTR(f);
    return 0;
}

int web_file_read(struct web_file **ret, const char *path, struct problems *p)
{
    CLEANUP(cleanup_free) char *dir = NULL;
    const char *slash = strrchr(path, '/');
    BUF_AUTO(text, FILE_MAX);
    int r = file_read(path, &text);

    if (r < 0) {
        problems_add(p, PROBLEM_ERROR, 0, 0, "%s", r == -EFBIG ? "larger than 1 MiB" : strerror(-r));
        return -EINVAL;
    }
    dir = slash ? str_dup((struct str){path, (size_t)(slash - path)}) : xstrdup(".");
    r = web_file_parse(ret, buf_str(&text), dir, p);
    if (text.n)
        explicit_bzero(text.p, text.n);
    return r;
}

int web_file_tls(const struct web_file *f, struct httpd_tls **ret, struct problems *p)
{
    const struct node *map = node_get(f->doc->root, "tls_server_config"), *at;
    CLEANUP(cleanup_free) char *key = NULL;
    struct httpd_tls_fault fault = {0};

    if (!f->has_tls || httpd_tls_new(ret, &f->tls, &fault) == 0)
        return 0;
    key = httpd_tls_fault_key(&fault);
    at = node_get(map, key);
    problems_add(p, PROBLEM_ERROR, at ? at->line : 0, at ? at->column : 0, "tls_server_config.%s",
                 cstr(fault.text));
    free(fault.text);
    return -EINVAL;
}

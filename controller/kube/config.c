#include "controller/kube/config.h"

#include "exporter/base/base64.h"
#include "exporter/base/buf.h"
#include "exporter/base/doc.h"
#include "exporter/base/file.h"
#include "exporter/base/hash.h"
#include "exporter/base/problems.h"
#include "exporter/base/secret.h"
#include "exporter/base/text.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

enum { KUBECONFIG_MAX_BYTES = 1 << 20, BLOB_MAX_BYTES = 1 << 20 };

/* ---- What both kinds are made of ---- */

static struct kube_config *config_new(void)
{
    struct kube_config *c = xcalloc(1, sizeof(*c));

    c->refs = 1;
    return c;
}

struct kube_config *kube_config_ref(struct kube_config *c)
{
    c->refs++;
    return c;
}

struct kube_config *kube_config_unref(struct kube_config *c)
{
    if (!c || --c->refs > 0)
        return NULL;
    secret_done(&c->ca);
    secret_done(&c->cert);
    secret_done(&c->key);
    secret_done(&c->token);
    (void)secret_free(c->password);
    free(c->user);
    free(c->server);
    free(c->namespace);
    free(c->tls_server_name);
    free(c->proxy);
    free(c);
    return NULL;
}

/* Moves PEM, or a token (trimmed, printable), from b into *ret. -EINVAL with a sentence in why. */
static int config_take_pem(struct buf *ret, const char *what, struct buf *b, char why[512])
{
    if (!b->n || !memmem(b->p, b->n, "-----BEGIN ", 11)) {
        (void)snprintf(why, 512, "%s: expected PEM", what);
        return -EINVAL;
    }
    *ret = buf_take(b);
    return 0;
}

static int config_take_token(struct buf *ret, const char *what, struct buf *b, char why[512])
{
    struct str s;

    if (secret_token(buf_str(b), &s)) {
        (void)snprintf(why, 512, "%s: expected a token of printable ASCII without spaces", what);
        return -EINVAL;
    }
    memmove(b->p, s.p, s.n);
    b->n = s.n;
    *ret = buf_take(b);
    return 0;
}

static int config_read_file(const char *what, const char *path, struct buf *into, char why[512])
{
    int r = file_read(path, into);

    if (r < 0)
        (void)snprintf(why, 512, "%s: cannot read file %.200s: %s", what, path, strerror(-r));
    return r;
}

static bool url_has_part(CURLU *u, CURLUPart part)
{
    char *text = NULL;
    bool there = curl_url_get(u, part, &text, 0) == CURLUE_OK;

    curl_free(text);
    return there;
}

static const char *config_server_fault(const char *url)
{
    CURLU *u = curl_url();
    const char *fault = NULL;

    if (!u)
        return "out of memory";
    if ((strncasecmp(url, "http://", 7) != 0 && strncasecmp(url, "https://", 8) != 0) ||
        curl_url_set(u, CURLUPART_URL, url, 0) != CURLUE_OK)
        fault = "expected a URL like https://host:port";
    else if (url_has_part(u, CURLUPART_USER) || url_has_part(u, CURLUPART_PASSWORD))
        fault = "the URL must not contain a user or password";
    else if (url_has_part(u, CURLUPART_QUERY) || url_has_part(u, CURLUPART_FRAGMENT))
        fault = "the URL must not have a query or fragment";
    curl_url_cleanup(u);
    return fault;
}

/* Sets the server after checking it: http or https, a host, and nothing after the path. */
static int config_set_server(struct kube_config *c, const char *what, struct str s, char why[512])
{
    CLEANUP(cleanup_free) char *url = str_dup(s);
    const char *fault = url ? config_server_fault(url) : NULL;

    if (fault) {
        (void)snprintf(why, 512, "%s: %s", what, fault);
        return -EINVAL;
    }
    while (s.n && s.p[s.n - 1] == '/')
        s.n--;
    free(c->server);
    c->server = str_dup(s);
    return 0;
}

/* ---- A kubeconfig, in YAML or JSON. Messages never quote values: any of them may be a secret ---- */

struct reading {
    struct kube_config *c;
    const char *dir; /* NULL: no files */
    char *why;       /* 512 bytes */
};

static int PRINTF_LIKE(3, 4)
    kubeconfig_refuse(const struct reading *rd, const char *where, const char *fmt, ...)
{
    char text[400];
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    (void)snprintf(rd->why, 512, "%s%s%s", where, *where ? ": " : "", text);
    return -EINVAL;
}

/* A string; an absent one reads as empty. */
static int kubeconfig_get_str(const struct reading *rd, const struct node *map, const char *key,
                              struct str *ret)
{
    const struct node *n = node_given(map, key);

    *ret = STR("");
    if (!n)
        return 0;
    if (n->kind != NODE_STRING || (n->text.n && memchr(n->text.p, '\0', n->text.n)))
        return kubeconfig_refuse(rd, key, "line %u: expected a string", n->line);
    *ret = n->text;
    return 0;
}

static int kubeconfig_copy_str(const struct reading *rd, const struct node *map, const char *key, char **ret)
{
    struct str s;
    int r = kubeconfig_get_str(rd, map, key, &s);

    if (r < 0 || !s.n)
        return r;
    *ret = str_dup(s);
    return 0;
}

/* Reads the file at a path, which may be relative to rd->dir. */
static int kubeconfig_read_named(const struct reading *rd, const char *key, struct str path, struct buf *into)
{
    CLEANUP(cleanup_free) char *full = NULL;
    bool absolute = path.n && *path.p == '/';

    if (!rd->dir)
        return kubeconfig_refuse(rd, key, "files are not allowed here");
    if (asprintf(&full, "%s%s%.*s", absolute ? "" : rd->dir, absolute ? "" : "/", STR_ARG(path)) < 0) {
        full = NULL;
        return -ENOMEM;
    }
    return config_read_file(key, full, into, rd->why);
}

/* PEM from <key>-data, which takes precedence as in client-go, or from the file at <key>. */
static int kubeconfig_get_pem(const struct reading *rd, const struct node *map, const char *key,
                              struct buf *ret)
{
    BUF_AUTO(pem, BLOB_MAX_BYTES);
    struct str data, path;
    char data_key[64];
    int r;

    (void)snprintf(data_key, sizeof(data_key), "%s-data", key);
    r = kubeconfig_get_str(rd, map, data_key, &data) ?: kubeconfig_get_str(rd, map, key, &path);
    if (r < 0 || (!data.n && !path.n))
        return r;
    if (!data.n)
        r = kubeconfig_read_named(rd, key, path, &pem);
    else if ((r = base64_decode(data, &pem)) == -EINVAL || r == -EFBIG)
        return kubeconfig_refuse(rd, data_key, "expected at most 1 MiB of base64");
    return r < 0 ? r : config_take_pem(ret, data.n ? data_key : key, &pem, rd->why);
}

/* tokenFile takes precedence while it can be read. */
static int kubeconfig_get_token(const struct reading *rd, const struct node *user)
{
    BUF_AUTO(text, BLOB_MAX_BYTES);
    struct str token, path;
    int r = kubeconfig_get_str(rd, user, "token", &token) ?: kubeconfig_get_str(rd, user, "tokenFile", &path);

    if (r < 0)
        return r;
    if (path.n) {
        r = kubeconfig_read_named(rd, "tokenFile", path, &text);
        if (r == 0)
            return config_take_token(&rd->c->token, "tokenFile", &text, rd->why);
        if (r == -ENOMEM || !token.n)
            return r;
        rd->why[0] = '\0';
    }
    if (!token.n)
        return 0;
    r = buf_put_str(&text, token);
    return r < 0 ? r : config_take_token(&rd->c->token, "token", &text, rd->why);
}

static const struct {
    const char *key, *why;
} unsupported[] = {
    {"exec", "exec plugins are not supported; use a token, a tokenFile or a client certificate"},
    {"auth-provider", "auth providers are not supported; use a token, a tokenFile or a client certificate"},
    {"as", "impersonation is not supported"},
    {"as-uid", "impersonation is not supported"},
    {"as-groups", "impersonation is not supported"},
    {"as-user-extra", "impersonation is not supported"},
};

static int kubeconfig_read_user(const struct reading *rd, const struct node *user)
{
    struct kube_config *c = rd->c;
    int r;

    for (size_t i = 0; i < ARRAY_SIZE(unsupported); i++)
        if (node_given(user, unsupported[i].key))
            return kubeconfig_refuse(rd, unsupported[i].key, "%s", unsupported[i].why);
    r = kubeconfig_get_pem(rd, user, "client-certificate", &c->cert)
            ?: kubeconfig_get_pem(rd, user, "client-key", &c->key)
            ?: kubeconfig_get_token(rd, user)
            ?: kubeconfig_copy_str(rd, user, "username", &c->user)
            ?: kubeconfig_copy_str(rd, user, "password", &c->password);
    if (r == 0 && !c->cert.p != !c->key.p)
        return kubeconfig_refuse(rd, c->cert.p ? "client-key" : "client-certificate",
                                 "missing: client-certificate and client-key go together");
    if (r == 0 && c->user && c->token.p)
        return kubeconfig_refuse(rd, "username", "not allowed together with a token");
    return r;
}

/* "socks5://" as in Go: the proxy resolves the host name. */
static int kubeconfig_read_proxy(const struct reading *rd, const struct node *cluster)
{
    static const char *const schemes[] = {"http://", "https://", "socks5://"};
    struct str proxy;
    int r = kubeconfig_get_str(rd, cluster, "proxy-url", &proxy);

    if (r < 0 || !proxy.n)
        return r;
    for (size_t i = 0; i < ARRAY_SIZE(schemes); i++) {
        struct str scheme = str_of(schemes[i]);
        if (!str_eq_nocase((struct str){proxy.p, size_min(proxy.n, scheme.n)}, scheme))
            continue;
        if (asprintf(&rd->c->proxy, "%s%.*s", i == 2 ? "socks5h://" : schemes[i], (int)(proxy.n - scheme.n),
                     proxy.p + scheme.n) < 0) {
            rd->c->proxy = NULL;
            return -ENOMEM;
        }
        return 0;
    }
    return kubeconfig_refuse(rd, "proxy-url", "expected http://, https:// or socks5://");
}

static int kubeconfig_read_cluster(const struct reading *rd, const struct node *cluster)
{
    const struct node *insecure = node_given(cluster, "insecure-skip-tls-verify");
    struct str server;
    int r = kubeconfig_get_str(rd, cluster, "server", &server);

    if (r == 0 && !server.n)
        return kubeconfig_refuse(rd, "server", "missing, expected https://host:port");
    r = r ?: config_set_server(rd->c, "server", server, rd->why)
                 ?: kubeconfig_get_pem(rd, cluster, "certificate-authority", &rd->c->ca)
                 ?: kubeconfig_copy_str(rd, cluster, "tls-server-name", &rd->c->tls_server_name)
                 ?: kubeconfig_read_proxy(rd, cluster);
    if (r < 0 || !insecure)
        return r;
    if (insecure->kind != NODE_BOOL)
        return kubeconfig_refuse(rd, "insecure-skip-tls-verify", "expected true or false");
    rd->c->insecure = insecure->text.p[0] == 't' || insecure->text.p[0] == 'T';
    if (rd->c->insecure && rd->c->ca.p)
        return kubeconfig_refuse(rd, "insecure-skip-tls-verify",
                                 "not allowed together with a certificate-authority");
    return 0;
}

/* The map <what> in the entry of that name of the list <what>s. */
static int kubeconfig_find_entry(const struct reading *rd, const struct node *root, const char *what,
                                 struct str name, const struct node **ret)
{
    const struct node *list, *found;
    char plural[32];

    (void)snprintf(plural, sizeof(plural), "%ss", what);
    list = node_given(root, plural);
    for (size_t i = 0; list && list->kind == NODE_LIST && i < list->n; i++) {
        const struct node *entry = list->items[i];
        struct str its;

        if (entry->kind != NODE_MAP)
            continue;
        if (kubeconfig_get_str(rd, entry, "name", &its) < 0)
            return -EINVAL;
        if (!str_eq(its, name))
            continue;
        found = node_given(entry, what);
        if (found && found->kind != NODE_MAP)
            return kubeconfig_refuse(rd, plural, "line %u: expected a map", found->line);
        *ret = found;
        return found ? 0 : kubeconfig_refuse(rd, plural, "entry `%.*s` has no `%s`", STR_ARG(name), what);
    }
    return kubeconfig_refuse(rd, plural, "no entry `%.*s`", STR_ARG(name));
}

static int kubeconfig_read_context(const struct reading *rd, const struct node *root, const char *context)
{
    const struct node *ctx, *cluster, *user = NULL;
    struct str name = str_of(context), cluster_name, user_name;
    int r = context ? 0 : kubeconfig_get_str(rd, root, "current-context", &name);

    if (r == 0 && !name.n)
        return kubeconfig_refuse(rd, "current-context", "missing, and no context was given");
    r = r ?: kubeconfig_find_entry(rd, root, "context", name, &ctx)
                 ?: kubeconfig_get_str(rd, ctx, "cluster", &cluster_name)
                 ?: kubeconfig_get_str(rd, ctx, "user", &user_name)
                 ?: kubeconfig_copy_str(rd, ctx, "namespace", &rd->c->namespace);
    if (r < 0)
        return r;
    if (!cluster_name.n)
        return kubeconfig_refuse(rd, "contexts", "`%.*s` names no cluster", STR_ARG(name));
    r = kubeconfig_find_entry(rd, root, "cluster", cluster_name, &cluster)
            ?: kubeconfig_read_cluster(rd, cluster);
    if (r == 0 && user_name.n)
        r = kubeconfig_find_entry(rd, root, "user", user_name, &user);
    return r == 0 && user ? kubeconfig_read_user(rd, user) : r;
}

static int kubeconfig_parse(struct doc **ret, struct str text, struct problems *p, char why[512])
{
    int r = doc_parse(ret, text, p);

    if (r < 0 || p->errors || doc_root(*ret)->kind != NODE_MAP) {
        if (p->n)
            (void)snprintf(why, 512, "line %u: %.400s", p->list[0].line, p->list[0].text);
        else
            (void)snprintf(why, 512, "expected a map");
        return -EINVAL;
    }
    return 0;
}

/* Names in it may contain any bytes. */
static void kubeconfig_make_one_line(char why[512])
{
    char raw[512];

    (void)snprintf(raw, sizeof(raw), "%s", why);
    text_line(why, 512, str_of(raw));
}

int kube_config_parse(struct kube_config **ret, struct str text, const char *dir, const char *context,
                      char why[512])
{
    CLEANUP(cleanup_kube_config_unref) struct kube_config *c = NULL;
    CLEANUP(cleanup_doc_free) struct doc *doc = NULL;
    struct problems p;
    int r;

    why[0] = '\0';
    problems_init(&p, "kubeconfig");
    r = kubeconfig_parse(&doc, text, &p, why);
    problems_done(&p);
    if (r == 0)
        c = config_new();
    r = r ?: kubeconfig_read_context(&(struct reading){c, dir, why}, doc_root(doc), context);
    if (r < 0) {
        kubeconfig_make_one_line(why);
        return r;
    }
    *ret = TAKE_PTR(c);
    return 0;
}

/* The directory of a path. */
static char *kubeconfig_dir(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? str_dup((struct str){path, slash == path ? 1 : (size_t)(slash - path)})
                 : str_dup(STR("."));
}

/* kube_config_parse() of the file at path, with its directory. */
static int kubeconfig_from_file(struct kube_config **ret, const char *path, const char *context,
                                char why[512])
{
    SECRET_AUTO(text, KUBECONFIG_MAX_BYTES);
    CLEANUP(cleanup_free) char *dir = kubeconfig_dir(path);
    char inner[512] = "";
    int r = dir ? config_read_file("kubeconfig", path, &text, why) : -ENOMEM;

    if (r < 0)
        return r;
    r = kube_config_parse(ret, buf_str(&text), dir, context, inner);
    if (inner[0])
        (void)snprintf(why, 512, "kubeconfig %.200s: %.280s", path, inner);
    return r;
}

/* ---- In a pod ---- */

static const char in_cluster_dir[] = "/var/run/secrets/kubernetes.io/serviceaccount";

static uint64_t config_fingerprint(const struct kube_config *c)
{
    const char *const texts[] = {c->server, c->namespace, c->tls_server_name, c->proxy, c->user, c->password};
    const struct buf *const secrets[] = {&c->ca, &c->cert, &c->key, &c->token};
    uint64_t h = hash_chain_u64(0, c->insecure);

    for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
        h = hash_chain(hash_chain_u64(h, texts[i] != NULL), str_of(texts[i]));
    for (size_t i = 0; i < ARRAY_SIZE(secrets); i++)
        h = hash_chain(h, buf_str(secrets[i]));
    return h;
}

static int in_cluster_read(const char *dir, const char *name, struct buf *into, char why[512])
{
    CLEANUP(cleanup_free) char *path = NULL;

    if (asprintf(&path, "%s/%s", dir, name) < 0) {
        path = NULL;
        return -ENOMEM;
    }
    return config_read_file("in the cluster", path, into, why);
}

static int in_cluster_server(struct kube_config *c, char why[512])
{
    const char *host = getenv("KUBERNETES_SERVICE_HOST"), *port = getenv("KUBERNETES_SERVICE_PORT");
    CLEANUP(cleanup_free) char *url = NULL;
    bool v6 = host && strchr(host, ':');

    if (!host || !*host) {
        (void)snprintf(why, 512, "no kubeconfig, and not in a pod: KUBERNETES_SERVICE_HOST is not set");
        return -EINVAL;
    }
    if (asprintf(&url, "https://%s%s%s:%s", v6 ? "[" : "", host, v6 ? "]" : "",
                 port && *port ? port : "443") < 0) {
        url = NULL;
        return -ENOMEM;
    }
    return config_set_server(c, "KUBERNETES_SERVICE_HOST", str_of(url), why);
}

static int config_in_cluster(struct kube_config **ret, const char *dir, char why[512])
{
    CLEANUP(cleanup_kube_config_unref) struct kube_config *c = config_new();
    BUF_AUTO(token, BLOB_MAX_BYTES);
    BUF_AUTO(ca, BLOB_MAX_BYTES);
    BUF_AUTO(namespace, 256);
    char ignored[512];
    int r = in_cluster_server(c, why)
                ?: in_cluster_read(dir, "token", &token, why)
                ?: config_take_token(&c->token, "in the cluster: token", &token, why)
                ?: in_cluster_read(dir, "ca.crt", &ca, why)
                ?: config_take_pem(&c->ca, "in the cluster: ca.crt", &ca, why);

    if (r < 0)
        return r;
    r = in_cluster_read(dir, "namespace", &namespace, ignored);
    if (r == 0 && !(c->namespace = str_dup(str_trim(buf_str(&namespace)))))
        r = -ENOMEM;
    if (r == -ENOMEM)
        return r;
    *ret = TAKE_PTR(c);
    return 0;
}

int kube_config_read(struct kube_config **ret, const struct kube_config_options *o, char why[512])
{
    struct kube_config *c;
    int r;

    why[0] = '\0';
    r = o->kubeconfig ? kubeconfig_from_file(&c, o->kubeconfig, o->context, why)
                      : config_in_cluster(&c, o->in_cluster_dir ? o->in_cluster_dir : in_cluster_dir, why);
    if (r < 0) {
        if (!why[0])
            (void)snprintf(why, 512, "%s", strerror(-r));
        return r;
    }
    c->fingerprint = config_fingerprint(c);
    *ret = c;
    return 0;
}

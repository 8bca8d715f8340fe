/* Reads a kubeconfig, or a pod's service account, with all files that it names. Owns nothing: who holds a
 * config has one of its references. On the loop, called by the client each minute; blocks on local files.
 * Messages never quote values: any of them may be a secret. */
#include "controller/kube/config.h"

#include "exporter/base/alloc.h"
#include "exporter/base/base64.h"
#include "exporter/base/doc.h"
#include "exporter/base/file.h"
#include "exporter/base/hash.h"
#include "exporter/base/secret.h"
#include "exporter/base/text.h"
#include "exporter/http/http.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>

enum { KUBECONFIG_MAX_BYTES = 1 << 20, BLOB_MAX_BYTES = 1 << 20, KUBECONFIG_WHY_BYTES = 512 };

struct kube_config *kube_config_unref(struct kube_config *c)
{
    if (!c || --c->refs > 0)
        return NULL;
    secret_done(&c->ca);
    secret_done(&c->cert);
    secret_done(&c->key);
    secret_done(&c->token);
    free(c->server);
    free(c->namespace);
    free(c->tls_server_name);
    free(c->proxy);
    free(c);
    return NULL;
}

/* ---- What both kinds are made of ---- */

/* A config being read. After the first problem, which is the one that is told, it is only read on. */
struct kubeconfig_reading {
    struct kube_config *c;
    const char *dir; /* of the files; NULL: none are allowed */
    struct problems problems;
};

static struct kubeconfig_reading config_begin(const char *dir)
{
    struct kubeconfig_reading rd = {xcalloc(1, sizeof(*rd.c)), .dir = dir};

    rd.c->refs = 1;
    problems_init(&rd.problems, "kubeconfig");
    return rd;
}

#define config_refuse(rd, ...) problems_add(&(rd)->problems, PROBLEM_ERROR, 0, 0, __VA_ARGS__)

/* Reads a file in rd->dir, or at an absolute path. A failure: a negative errno, and refused unless `what` is
 * NULL. */
static int config_read_file(struct kubeconfig_reading *rd, const char *what, struct str path,
                            struct buf *into)
{
    bool is_absolute = path.n && *path.p == '/';
    CLEANUP(cleanup_free)
    char *full = is_absolute ? str_dup(path) : xasprintf("%s/%.*s", rd->dir, STR_ARG(path));
    int r = file_read(full, into);

    if (r < 0 && what)
        config_refuse(rd, "%s: cannot read file %s: %s", what, full, strerror(-r));
    return r;
}

static void config_take_pem(struct kubeconfig_reading *rd, const char *what, struct buf *pem, struct buf *ret)
{
    if (!pem->n || !memmem(pem->p, pem->n, "-----BEGIN ", 11))
        config_refuse(rd, "%s: expected PEM", what);
    else
        *ret = buf_take(pem);
}

static void config_take_token(struct kubeconfig_reading *rd, const char *what, struct str text)
{
    struct str token;
    const char *wrong = secret_token(text, &token);

    buf_init(&rd->c->token, BLOB_MAX_BYTES);
    if (!wrong)
        buf_put_str(&rd->c->token, token);
    if (wrong || buf_failed(&rd->c->token) < 0)
        config_refuse(rd, "%s: expected a token of printable ASCII without spaces", what);
}

static void config_set_server(struct kubeconfig_reading *rd, const char *what, struct str s)
{
    CLEANUP(cleanup_curl_url_cleanup) CURLU *u = curl_url();
    CLEANUP(cleanup_free) char *url = str_dup(s);

    if (!http_is_url(s) || curl_url_set(u, CURLUPART_URL, url, 0) != CURLUE_OK)
        config_refuse(rd, "%s: expected a URL like https://host:port", what);
    else if (strpbrk(url, "@?#"))
        config_refuse(rd, "%s: the URL must not have a user, a query or a fragment", what);
    while (s.n && s.p[s.n - 1] == '/')
        s.n--;
    rd->c->server = str_dup(s);
}

/* Ends the reading: NULL, and `why`, after a problem. */
static struct kube_config *config_finish(struct kubeconfig_reading *rd, char why[KUBECONFIG_WHY_BYTES])
{
    CLEANUP(problems_done) struct problems problems = rd->problems;
    CLEANUP(cleanup_free) char *text = NULL;
    struct kube_config *c = rd->c;
    const char *const texts[] = {c->server, c->namespace, c->tls_server_name, c->proxy};
    const struct buf *const secrets[] = {&c->ca, &c->cert, &c->key, &c->token};

    why[0] = '\0';
    if (problems.errors) {
        const struct doc_problem *first = problems.list;

        text = first->line ? xasprintf("line %u: %s", first->line, first->text) : xstrdup(first->text);
        text_line(why, KUBECONFIG_WHY_BYTES, str_of(text)); /* names in it may contain any bytes */
        return kube_config_unref(c);
    }
    c->fingerprint = hash_chain_u64(0, c->insecure);
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
        c->fingerprint = hash_chain(hash_chain_u64(c->fingerprint, texts[i] != NULL), str_of(texts[i]));
    for (size_t i = 0; i < ARRAY_SIZE(secrets); i++)
        c->fingerprint = hash_chain(c->fingerprint, buf_str(secrets[i]));
    return c;
}

/* ---- A kubeconfig, in YAML or JSON ---- */

/* A string; an absent one reads as empty. */
static struct str kubeconfig_str(struct kubeconfig_reading *rd, const struct node *map, const char *key)
{
    const struct node *n = node_given(map, key);

    if (n && n->kind == NODE_STRING && n->text.n && !memchr(n->text.p, '\0', n->text.n))
        return n->text;
    if (n && (n->kind != NODE_STRING || n->text.n))
        config_refuse(rd, "%s: line %u: expected a string", key, n->line);
    return STR("");
}

static char *kubeconfig_copy(struct kubeconfig_reading *rd, const struct node *map, const char *key)
{
    struct str s = kubeconfig_str(rd, map, key);

    return s.n ? str_dup(s) : NULL;
}

/* PEM from <key>-data, which takes precedence as in client-go, or from the file at <key>. */
static void kubeconfig_read_pem(struct kubeconfig_reading *rd, const struct node *map, const char *key,
                                struct buf *ret)
{
    CLEANUP(cleanup_free) char *data_key = xasprintf("%s-data", key);
    struct str data = kubeconfig_str(rd, map, data_key), path = kubeconfig_str(rd, map, key);
    BUF_AUTO(pem, BLOB_MAX_BYTES);

    if (data.n && base64_decode(data, &pem) < 0) {
        config_refuse(rd, "%s: expected at most 1 MiB of base64", data_key);
    } else if (data.n) {
        config_take_pem(rd, data_key, &pem, ret);
    } else if (path.n && !rd->dir) {
        config_refuse(rd, "%s: files are not allowed here", key);
    } else if (path.n) {
        (void)config_read_file(rd, key, path, &pem);
        config_take_pem(rd, key, &pem, ret);
    }
}

/* tokenFile takes precedence while it can be read. */
static void kubeconfig_read_token(struct kubeconfig_reading *rd, const struct node *user)
{
    struct str token = kubeconfig_str(rd, user, "token"), path = kubeconfig_str(rd, user, "tokenFile");
    SECRET_AUTO(text, BLOB_MAX_BYTES);
    int r = -ENOENT;

    if (path.n && !rd->dir)
        config_refuse(rd, "tokenFile: files are not allowed here");
    else if (path.n)
        r = config_read_file(rd, token.n ? NULL : "tokenFile", path, &text);
    if (r == 0)
        config_take_token(rd, "tokenFile", buf_str(&text));
    else if (token.n)
        config_take_token(rd, "token", token);
}

static const struct {
    const char *key, *why;
} unsupported[] = {
    {"exec", "exec plugins are not supported; use a token, a tokenFile or a client certificate"},
    {"auth-provider", "auth providers are not supported; use a token, a tokenFile or a client certificate"},
    {"username", "basic authentication is not supported; use a token, a tokenFile or a client certificate"},
    {"as", "impersonation is not supported"},
    {"as-uid", "impersonation is not supported"},
    {"as-groups", "impersonation is not supported"},
    {"as-user-extra", "impersonation is not supported"},
};

static void kubeconfig_read_user(struct kubeconfig_reading *rd, const struct node *user)
{
    struct kube_config *c = rd->c;

    for (size_t i = 0; i < ARRAY_SIZE(unsupported); i++) {
        const struct node *n = node_given(user, unsupported[i].key);

        if (n && !(n->kind == NODE_STRING && n->text.n == 0))
            config_refuse(rd, "%s: %s", unsupported[i].key, unsupported[i].why);
    }
    kubeconfig_read_pem(rd, user, "client-certificate", &c->cert);
    kubeconfig_read_pem(rd, user, "client-key", &c->key);
    kubeconfig_read_token(rd, user);
    if (!c->cert.p != !c->key.p)
        config_refuse(rd, "%s: missing: client-certificate and client-key go together",
                      c->cert.p ? "client-key" : "client-certificate");
}

/* "socks5://" as in Go: the proxy resolves the host name. */
static void kubeconfig_read_proxy(struct kubeconfig_reading *rd, const struct node *cluster)
{
    CLEANUP(cleanup_free) char *proxy = kubeconfig_copy(rd, cluster, "proxy-url");

    if (!proxy)
        return;
    if (strncasecmp(proxy, "socks5://", 9) == 0)
        rd->c->proxy = xasprintf("socks5h%s", proxy + 6);
    else if (strncasecmp(proxy, "http://", 7) == 0 || strncasecmp(proxy, "https://", 8) == 0)
        rd->c->proxy = TAKE_PTR(proxy);
    else
        config_refuse(rd, "proxy-url: expected http://, https:// or socks5://");
}

static void kubeconfig_read_cluster(struct kubeconfig_reading *rd, const struct node *cluster)
{
    const struct node *insecure = node_given(cluster, "insecure-skip-tls-verify");
    struct str server = kubeconfig_str(rd, cluster, "server");

    if (!server.n)
        config_refuse(rd, "server: missing, expected https://host:port");
    config_set_server(rd, "server", server);
    kubeconfig_read_pem(rd, cluster, "certificate-authority", &rd->c->ca);
    rd->c->tls_server_name = kubeconfig_copy(rd, cluster, "tls-server-name");
    kubeconfig_read_proxy(rd, cluster);
    if (insecure && insecure->kind != NODE_BOOL)
        config_refuse(rd, "insecure-skip-tls-verify: expected true or false");
    else
        (void)node_bool(cluster, "insecure-skip-tls-verify", &rd->problems, &rd->c->insecure);
    if (rd->c->insecure && rd->c->ca.p)
        config_refuse(rd, "insecure-skip-tls-verify: not allowed together with a certificate-authority");
}

/* The map <what> in the entry of that name of the list <what>s. NULL after an error. */
static const struct node *kubeconfig_entry(struct kubeconfig_reading *rd, const struct node *root,
                                           const char *what, struct str name)
{
    CLEANUP(cleanup_free) char *plural = xasprintf("%ss", what);
    const struct node *list = node_given(root, plural), *found;

    for (size_t i = 0; list && list->kind == NODE_LIST && i < list->n; i++) {
        const struct node *entry = list->items[i];
        if (entry->kind != NODE_MAP || !str_eq(kubeconfig_str(rd, entry, "name"), name))
            continue;
        found = node_given(entry, what);
        if (found && found->kind == NODE_MAP)
            return found;
        if (found)
            config_refuse(rd, "%s: line %u: expected a map", plural, found->line);
        config_refuse(rd, "%s: entry `%.*s` has no `%s`", plural, STR_ARG(name), what);
    }
    config_refuse(rd, "%s: no entry `%.*s`", plural, STR_ARG(name));
    return NULL;
}

static void kubeconfig_read_context(struct kubeconfig_reading *rd, const struct node *root)
{
    const struct node *context, *cluster, *user;
    struct str name = kubeconfig_str(rd, root, "current-context"), cluster_name, user_name;

    if (!name.n)
        config_refuse(rd, "current-context: missing");
    context = kubeconfig_entry(rd, root, "context", name);
    if (!context)
        return;
    rd->c->namespace = kubeconfig_copy(rd, context, "namespace");
    cluster_name = kubeconfig_str(rd, context, "cluster");
    user_name = kubeconfig_str(rd, context, "user");
    if (!cluster_name.n)
        config_refuse(rd, "contexts: `%.*s` names no cluster", STR_ARG(name));
    cluster = kubeconfig_entry(rd, root, "cluster", cluster_name);
    user = user_name.n ? kubeconfig_entry(rd, root, "user", user_name) : NULL;
    if (cluster)
        kubeconfig_read_cluster(rd, cluster);
    if (user)
        kubeconfig_read_user(rd, user);
}

struct kube_config *kube_config_parse(struct str text, const char *dir, char why[512])
{
    struct kubeconfig_reading rd = config_begin(dir);
    CLEANUP(cleanup_doc_free) struct doc *doc = NULL;
    int r = doc_parse(&doc, text, &rd.problems);

    if (!rd.problems.errors && (r < 0 || doc->root->kind != NODE_MAP))
        config_refuse(&rd, "expected a map");
    else if (!rd.problems.errors)
        kubeconfig_read_context(&rd, doc->root);
    return config_finish(&rd, why);
}

/* ---- In a pod ---- */

/* "https://10.0.0.1:443"; an IPv6 address has brackets. */
static char *pod_server(const char *host, const char *port)
{
    const char *number = port && *port ? port : "443";

    if (strchr(host, ':'))
        return xasprintf("https://[%s]:%s", host, number);
    return xasprintf("https://%s:%s", host, number);
}

static struct kube_config *pod_config_read(const char *dir, char why[512])
{
    struct kubeconfig_reading rd = config_begin(dir);
    const char *host = cstr(getenv("KUBERNETES_SERVICE_HOST"));
    CLEANUP(cleanup_free) char *url = pod_server(host, getenv("KUBERNETES_SERVICE_PORT"));
    SECRET_AUTO(token, BLOB_MAX_BYTES);
    BUF_AUTO(ca, BLOB_MAX_BYTES);
    BUF_AUTO(namespace, 256);

    if (!*host)
        config_refuse(&rd, "no kubeconfig, and not in a pod: KUBERNETES_SERVICE_HOST is not set");
    config_set_server(&rd, "KUBERNETES_SERVICE_HOST", str_of(url));
    (void)config_read_file(&rd, "in the cluster", STR("token"), &token);
    config_take_token(&rd, "in the cluster: token", buf_str(&token));
    (void)config_read_file(&rd, "in the cluster", STR("ca.crt"), &ca);
    config_take_pem(&rd, "in the cluster: ca.crt", &ca, &rd.c->ca);
    if (config_read_file(&rd, NULL, STR("namespace"), &namespace) == 0)
        rd.c->namespace = str_dup(str_trim(buf_str(&namespace)));
    return config_finish(&rd, why);
}

struct kube_config *kube_config_read(const char *kubeconfig, const char *pod_dir, char why[512])
{
    const char *path = cstr(kubeconfig), *slash = strrchr(path, '/');
    struct str parent = slash ? (struct str){path, slash == path ? 1 : (size_t)(slash - path)} : STR(".");
    CLEANUP(cleanup_free) char *dir = str_dup(parent);
    SECRET_AUTO(text, KUBECONFIG_MAX_BYTES);
    struct kube_config *c = NULL;
    char inner[KUBECONFIG_WHY_BYTES];
    int r;

    why[0] = '\0';
    if (!kubeconfig)
        return pod_config_read(pod_dir ? pod_dir : "/var/run/secrets/kubernetes.io/serviceaccount", why);
    r = file_read(path, &text);
    if (r < 0)
        (void)snprintf(why, KUBECONFIG_WHY_BYTES, "kubeconfig: cannot read file %.200s: %s", path,
                       strerror(-r));
    else if (!(c = kube_config_parse(buf_str(&text), dir, inner)))
        (void)snprintf(why, KUBECONFIG_WHY_BYTES, "kubeconfig %.200s: %.280s", path, inner);
    return c;
}

#include "controller/kube/config_internal.h"

#include "exporter/base/file.h"
#include "exporter/base/hash.h"
#include "exporter/base/rand.h"
#include "exporter/base/secret.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>

static const char in_cluster_dir[] = "/var/run/secrets/kubernetes.io/serviceaccount";

int kube_config_new(struct kube_config **ret)
{
    struct kube_config *c = calloc(1, sizeof(*c));

    if (!c)
        return -ENOMEM;
    c->refs = 1;
    *ret = c;
    return 0;
}

struct kube_config *kube_config_ref(struct kube_config *c)
{
    c->refs++;
    return c;
}

static void wipe(struct kube_blob *b)
{
    if (b->p)
        explicit_bzero(b->p, b->n);
    free(b->p);
}

struct kube_config *kube_config_unref(struct kube_config *c)
{
    if (!c || --c->refs > 0)
        return NULL;
    wipe(&c->ca);
    wipe(&c->cert);
    wipe(&c->key);
    wipe(&c->token);
    (void)secret_free(c->password);
    free(c->user);
    free(c->server);
    free(c->namespace);
    free(c->tls_server_name);
    free(c->proxy);
    free(c);
    return NULL;
}

int kube_blob_take(struct kube_blob *blob, struct buf *b)
{
    int r;

    b->max = size_max(b->max, b->n + 1);
    r = buf_putc(b, '\0');
    if (r < 0)
        return r;
    wipe(blob);
    *blob = (struct kube_blob){b->p, b->n - 1};
    (void)buf_take(b);
    return 0;
}

int kube_blob_pem(struct kube_blob *blob, const char *what, struct buf *b, char why[512])
{
    if (!b->n || !memmem(b->p, b->n, "-----BEGIN ", 11)) {
        (void)snprintf(why, 512, "%s: not PEM", what);
        return -EINVAL;
    }
    return kube_blob_take(blob, b);
}

int kube_blob_token(struct kube_blob *blob, const char *what, struct buf *b, char why[512])
{
    struct str s = str_trim(buf_str(b));
    bool good = s.n > 0;

    for (size_t i = 0; i < s.n; i++)
        good = good && s.p[i] > 0x20 && s.p[i] < 0x7f;
    if (!good) {
        (void)snprintf(why, 512, "%s: expected a token, one word of printable ASCII", what);
        return -EINVAL;
    }
    memmove(b->p, s.p, s.n);
    b->n = s.n;
    return kube_blob_take(blob, b);
}

int kube_read_file(const char *what, const char *path, struct buf *into, char why[512])
{
    int r = file_read(path, into);

    if (r < 0)
        (void)snprintf(why, 512, "%s: file %.200s cannot be read: %s", what, path, strerror(-r));
    return r;
}

static bool has_part(CURLU *u, CURLUPart part)
{
    char *text = NULL;
    bool there = curl_url_get(u, part, &text, 0) == CURLUE_OK;

    curl_free(text);
    return there;
}

static const char *server_fault(const char *url)
{
    CURLU *u = curl_url();
    const char *fault = NULL;

    if (!u)
        return "out of memory";
    if ((strncasecmp(url, "http://", 7) != 0 && strncasecmp(url, "https://", 8) != 0) ||
        curl_url_set(u, CURLUPART_URL, url, 0) != CURLUE_OK)
        fault = "expected a URL, https://host:port";
    else if (has_part(u, CURLUPART_USER) || has_part(u, CURLUPART_PASSWORD))
        fault = "a user or password in the URL is not taken";
    else if (has_part(u, CURLUPART_QUERY) || has_part(u, CURLUPART_FRAGMENT))
        fault = "expected nothing behind the URL's path";
    curl_url_cleanup(u);
    return fault;
}

int kube_config_set_server(struct kube_config *c, const char *what, struct str s, char why[512])
{
    CLEANUP(cleanup_free) char *url = str_dup(s);
    const char *fault = url ? server_fault(url) : NULL;

    if (!url)
        return -ENOMEM;
    if (fault) {
        (void)snprintf(why, 512, "%s: %s", what, fault);
        return -EINVAL;
    }
    while (s.n && s.p[s.n - 1] == '/')
        s.n--;
    free(c->server);
    c->server = str_dup(s);
    return c->server ? 0 : -ENOMEM;
}

static uint64_t mix(uint64_t h, const char *p, size_t n)
{
    return hash_bytes((struct str){cstr(p), n}, h * 31 + n + (p != NULL));
}

static uint64_t mix_blob(uint64_t h, struct kube_blob b)
{
    return mix(h, b.p, b.n);
}

static uint64_t mix_str(uint64_t h, const char *s)
{
    return mix(h, s, s ? strlen(s) : 0);
}

static uint64_t fingerprint(const struct kube_config *c)
{
    static uint64_t seed;
    uint64_t h = seed ? seed : (seed = rand_u64() | 1);

    h = mix_str(mix_str(mix_str(mix_str(h, c->server), c->namespace), c->tls_server_name), c->proxy);
    h = mix_blob(mix_blob(mix_blob(mix_blob(h, c->ca), c->cert), c->key), c->token);
    return mix_str(mix_str(h + c->insecure, c->user), c->password);
}

static int read_in_dir(const char *dir, const char *name, struct buf *into, char why[512])
{
    CLEANUP(cleanup_free) char *path = NULL;

    if (asprintf(&path, "%s/%s", dir, name) < 0) {
        path = NULL;
        return -ENOMEM;
    }
    return kube_read_file("in the cluster", path, into, why);
}

static int in_cluster_server(struct kube_config *c, char why[512])
{
    const char *host = getenv("KUBERNETES_SERVICE_HOST"), *port = getenv("KUBERNETES_SERVICE_PORT");
    CLEANUP(cleanup_free) char *url = NULL;
    bool v6 = host && strchr(host, ':');

    if (!host || !*host) {
        (void)snprintf(why, 512,
                       "no kubeconfig is given and this is no pod: KUBERNETES_SERVICE_HOST is not set");
        return -EINVAL;
    }
    if (asprintf(&url, "https://%s%s%s:%s", v6 ? "[" : "", host, v6 ? "]" : "",
                 port && *port ? port : "443") < 0) {
        url = NULL;
        return -ENOMEM;
    }
    return kube_config_set_server(c, "KUBERNETES_SERVICE_HOST", str_of(url), why);
}

static int in_cluster(struct kube_config **ret, const char *dir, char why[512])
{
    CLEANUP(cleanup_kube_config_unref) struct kube_config *c = NULL;
    BUF_AUTO(token, BLOB_MAX_BYTES);
    BUF_AUTO(ca, BLOB_MAX_BYTES);
    BUF_AUTO(namespace, 256);
    char ignored[512];
    int r = kube_config_new(&c);

    if (r == 0)
        r = in_cluster_server(c, why);
    if (r == 0)
        r = read_in_dir(dir, "token", &token, why);
    if (r == 0)
        r = kube_blob_token(&c->token, "in the cluster: token", &token, why);
    if (r == 0)
        r = read_in_dir(dir, "ca.crt", &ca, why);
    if (r == 0)
        r = kube_blob_pem(&c->ca, "in the cluster: ca.crt", &ca, why);
    if (r < 0)
        return r;
    r = read_in_dir(dir, "namespace", &namespace, ignored);
    if (r == 0 && !(c->namespace = str_dup(str_trim(buf_str(&namespace)))))
        r = -ENOMEM;
    if (r == -ENOMEM)
        return r;
    *ret = TAKE_PTR(c);
    return 0;
}

/* The folder of a file's path. */
static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? str_dup((struct str){path, slash == path ? 1 : (size_t)(slash - path)})
                 : str_dup(STR("."));
}

static int from_file(struct kube_config **ret, const char *path, const char *context, char why[512])
{
    SECRET_AUTO(text, KUBECONFIG_MAX_BYTES);
    CLEANUP(cleanup_free) char *dir = folder_of(path);
    char inner[512] = "";
    int r = dir ? kube_read_file("kubeconfig", path, &text, why) : -ENOMEM;

    if (r < 0)
        return r;
    r = kube_config_parse(ret, buf_str(&text), dir, context, inner);
    if (inner[0])
        (void)snprintf(why, 512, "kubeconfig %.200s: %.280s", path, inner);
    return r;
}

int kube_config_read(struct kube_config **ret, const struct kube_config_options *o, char why[512])
{
    struct kube_config *c;
    int r;

    why[0] = '\0';
    r = o->kubeconfig ? from_file(&c, o->kubeconfig, o->context, why)
                      : in_cluster(&c, o->in_cluster_dir ? o->in_cluster_dir : in_cluster_dir, why);
    if (r < 0) {
        if (!why[0])
            (void)snprintf(why, 512, "%s", strerror(-r));
        return r;
    }
    c->fingerprint = fingerprint(c);
    *ret = c;
    return 0;
}

#include "controller/kube/config_internal.h"

#include "exporter/base/hash.h"

#include <errno.h>
#include <stdio.h>

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
    return kube_read_file("in the cluster", path, into, why);
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
    return kube_config_set_server(c, "KUBERNETES_SERVICE_HOST", str_of(url), why);
}

static int config_in_cluster(struct kube_config **ret, const char *dir, char why[512])
{
    CLEANUP(cleanup_kube_config_unref) struct kube_config *c = NULL;
    BUF_AUTO(token, BLOB_MAX_BYTES);
    BUF_AUTO(ca, BLOB_MAX_BYTES);
    BUF_AUTO(namespace, 256);
    char ignored[512];
    int r = kube_config_new(&c)
                ?: in_cluster_server(c, why)
                ?: in_cluster_read(dir, "token", &token, why)
                ?: kube_config_take_token(&c->token, "in the cluster: token", &token, why)
                ?: in_cluster_read(dir, "ca.crt", &ca, why)
                ?: kube_config_take_pem(&c->ca, "in the cluster: ca.crt", &ca, why);

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
    r = o->kubeconfig ? kube_config_from_file(&c, o->kubeconfig, o->context, why)
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

#include "controller/kube/client_internal.h"

#include <errno.h>

int kube_new(struct kube **ret, struct loop *loop, struct http *http, const struct kube_options *o)
{
    CLEANUP(cleanup_kube_free) struct kube *k = calloc(1, sizeof(*k));

    if (!k || kube_copy(&k->label, o->label ? o->label : "kube") < 0 ||
        kube_copy(&k->kubeconfig, o->config.kubeconfig) < 0 ||
        kube_copy(&k->context, o->config.context) < 0 ||
        kube_copy(&k->in_cluster_dir, o->config.in_cluster_dir) < 0)
        return -ENOMEM;
    k->loop = loop;
    k->http = http;
    kube_reload(k);
    *ret = TAKE_PTR(k);
    return 0;
}

struct kube *kube_free(struct kube *k)
{
    if (!k)
        return NULL;
    while (k->calls)
        (void)kube_cancel(k->calls);
    (void)kube_config_unref(k->config);
    free(k->label);
    free(k->kubeconfig);
    free(k->context);
    free(k->in_cluster_dir);
    free(k);
    return NULL;
}

const char *kube_label_of(const struct kube *k)
{
    return k->label;
}

struct loop *kube_loop(const struct kube *k)
{
    return k->loop;
}

/* The credentials in use. */
#include "controller/kube/client_internal.h"

#include "exporter/base/clock.h"
#include "exporter/base/log.h"
#include "exporter/base/loop.h"
#include "exporter/base/text.h"

enum { REREAD_MS = 60 * 1000 };

static void credentials_adopt(struct kube *k, struct kube_config *c)
{
    if (c->insecure && (!k->config || !k->config->insecure))
        log_warn("the API server's certificate is not verified: insecure-skip-tls-verify is set",
                 L_STR("server", c->server), L_STR("kube", k->label));
    if (k->config && k->config->fingerprint != c->fingerprint)
        log_debug("new credentials for the API server", L_STR("kube", k->label));
    (void)kube_config_unref(k->config);
    k->config = c;
    k->stale = false;
    k->trouble[0] = '\0';
}

void kube_reload(struct kube *k)
{
    const struct kube_config_options o = {k->kubeconfig, k->context, k->in_cluster_dir};
    struct kube_config *c = NULL;
    char why[512];

    k->read_at = loop_now(k->loop);
    if (kube_config_read(&c, &o, why) == 0) {
        credentials_adopt(k, c);
        return;
    }
    k->stale = true;
    text_line(k->trouble, sizeof(k->trouble), str_of(why));
    log_debug("cannot read the API server's credentials", L_STR("kube", k->label), L_STR("err", k->trouble));
}

void kube_freshen(struct kube *k)
{
    if (k->stale || mono_diff(k->read_at, loop_now(k->loop)) >= REREAD_MS)
        kube_reload(k);
}

const char *kube_trouble(const struct kube *k)
{
    return k->trouble[0] ? k->trouble : NULL;
}

const char *kube_default_namespace(const struct kube *k)
{
    return k->config ? k->config->namespace : NULL;
}

#include "controller/kube/client_internal.h"

#include "exporter/base/loop.h"

#include <errno.h>

enum { ASK_TIMEOUT_MS = 5 * 1000, PATIENT_TIMEOUT_MS = 15 * 1000, PATIENT_EVERY = 6 };

static void client_on_asked(void *arg, struct kube_answer *a)
{
    struct kube *k = arg;

    k->reach.call = NULL;
    kube_reach_asked(k, a->retry_after_ms);
}

/* Now and then patiently and for something simpler, in case that only the question is not answered: by a
 * slow network, a proxy, or a server that works but never becomes ready. */
static void client_ask(struct timer *t)
{
    struct kube *k = CONTAINER_OF(t, struct kube, reach.timer);
    bool patient = ++k->reach.asked % PATIENT_EVERY == 0;
    const struct kube_request rq = {.method = KUBE_GET,
                                    .path = patient ? "/version" : "/readyz",
                                    .timeout_ms = patient ? PATIENT_TIMEOUT_MS : ASK_TIMEOUT_MS};

    kube_timer_move(k->loop, t, KUBE_FAR_MS);
    if (k->reach.state == REACH_UP || k->reach.call)
        return;
    k->reach.asked_at = loop_now(k->loop);
    if (kube_start(&k->reach.call, k, &rq, client_on_asked, k) < 0)
        kube_reach_asked(k, -1);
}

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
    if (kube_reach_init(k, client_ask) < 0)
        return -ENOMEM;
    kube_reload(k);
    *ret = TAKE_PTR(k);
    return 0;
}

struct kube *kube_free(struct kube *k)
{
    if (!k)
        return NULL;
    kube_cancel_all(k);
    if (k->loop)
        loop_timer_clear(k->loop, &k->reach.timer);
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

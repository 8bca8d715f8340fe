/* The token for configURL: a key of a Secret, read anew for each probe, so that a changed one counts at once; none is kept. */
#include "controller/hub/probe/probe_internal.h"
#include "exporter/base/secret.h"

#include "controller/kube/json.h"
#include "controller/kube/verdict.h"
#include "exporter/base/buf.h"

#include <errno.h>
#include <stdio.h>

enum { MAX_SECRET_BYTES = 3 << 20, MAX_TOKEN_BYTES = 64 << 10 };

static void PRINTF_LIKE(2, 3) missing(struct probe *p, const char *fmt, ...)
{
    const struct token_ref *ref = &p->spec.config_token;
    char said[512], all[1024];
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(said, sizeof(said), fmt, args);
    va_end(args);
    (void)snprintf(all, sizeof(all), "spec.configAuth: Secret \"%.80s\", key \"%.80s\": %s", ref->name,
                   cstr(ref->key), said);
    probe_config_fails(p, "TokenMissing", all);
}

/* A Secret of a type was made for another use: that of a registry, a service account, a Helm release. Whoever writes DynamicScorers must not
 * be able to have it sent to wherever he likes. */
static bool is_refused(struct probe *p, const json_t *secret)
{
    const char *type = cstr(kube_str(secret, "type", NULL));

    if (*type && strcmp(type, "Opaque") != 0)
        missing(p, "refused: its type is %.80s, only Opaque ones are sent", type);
    else if (kube_get(secret, "data", "kubeconfig", NULL))
        missing(p, "refused: it holds credentials of a cluster");
    else
        return false;
    return true;
}

static void use_token(struct probe *p, struct str value)
{
    struct str token;
    const char *problem = secret_token(value, &token);

    if (problem)
        missing(p, "%s", problem);
    else
        probe_get_config(p, token);
}

static void use_secret(struct probe *p, const json_t *secret)
{
    struct str value = kube_text(secret, "data", cstr(p->spec.config_token.key), NULL);
    SECRET_AUTO(token, MAX_TOKEN_BYTES);
    int r;

    if (is_refused(p, secret))
        return;
    if (!value.p) {
        missing(p, "the Secret has no such key");
        return;
    }
    r = kube_base64_decode(value, &token);
    if (r == -ENOMEM)
        probe_config_fails(p, "OutOfMemory", "out of memory");
    else if (r < 0)
        missing(p, r == -EFBIG ? "over the limit of 65536 bytes" : "not base64");
    else
        use_token(p, buf_str(&token));
}

static void on_secret(void *arg, struct kube_answer *a)
{
    struct probe *p = arg;

    p->secret_call = NULL;
    if (a->verdict == KUBE_OK)
        use_secret(p, a->object);
    else if (a->http_status == 404)
        missing(p, "there is no such Secret in namespace %.80s", p->env.namespace);
    else
        missing(p, "%s", a->why);
    kube_wipe_strings(kube_map(a->object, "data", NULL));
    probe_settle(p);
}

void probe_ask_token(struct probe *p)
{
    const struct kube_request rq = {.method = KUBE_GET,
                                    .resource = &kube_secrets,
                                    .namespace = p->env.namespace,
                                    .name = p->spec.config_token.name,
                                    .max_answer = MAX_SECRET_BYTES,
                                    .timeout_ms = p->env.settings->timeout_ms};
    int r = kube_start(&p->secret_call, p->env.hub, &rq, on_secret, p);

    if (r == -EINVAL)
        missing(p, "not a name that a Secret can have");
    else if (r < 0)
        probe_config_fails(p, "OutOfMemory", "out of memory");
}

/* The credentials for configURL, from a Secret. It is read for each request, so that a changed one takes
 * effect at once; none is kept. */
#include "controller/hub/probe/probe_internal.h"

#include "controller/kube/json.h"
#include "controller/kube/verdict.h"
#include "exporter/base/base64.h"
#include "exporter/score/credentials.h"
#include "exporter/score/secrets.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

void probe_token_fail(struct probe_result *r, const struct token_ref *ref, const char *fmt, ...)
{
    char why[512], key[128] = "", message[1024];
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(why, sizeof(why), fmt, args);
    va_end(args);
    if (ref->key)
        (void)snprintf(key, sizeof(key), ", key \"%.80s\"", ref->key);
    (void)snprintf(message, sizeof(message), "spec.configAuth: Secret \"%.80s\"%s: %s", ref->name, key, why);
    probe_result_fail(r, "TokenMissing", message);
}

/* Secrets of other types have another purpose: a registry, a service account, a Helm release. Whoever may
 * write DynamicScorers must not be able to send them to a server of their choice. */
static bool is_allowed(const json_t *secret, const struct token_ref *ref, struct probe_result *ret_error)
{
    const char *type = cstr(kube_str(secret, "type", NULL));

    if (*type && strcmp(type, "Opaque") != 0)
        probe_token_fail(ret_error, ref, "the Secret's type is %.80s, only Opaque is allowed", type);
    else if (kube_get(secret, "data", "kubeconfig", NULL))
        probe_token_fail(ret_error, ref, "the Secret contains a kubeconfig, which is never sent");
    else
        return true;
    return false;
}

/* The Secret in an answer of the API server. */
struct probe_secret {
    struct secrets secrets;
    const json_t *object;
};

static int probe_secret_read(struct secrets *s, const char *name, const char *key, struct buf *into,
                             const char **ret_why)
{
    const struct probe_secret *secret = CONTAINER_OF(s, const struct probe_secret, secrets);
    struct str value = kube_text(secret->object, "data", key, NULL);
    int r = value.p ? base64_decode(value, into) : -ENOENT;

    (void)name;
    if (r == -EINVAL)
        *ret_why = "not valid base64";
    return r;
}

static bool token_decode(struct credentials **ret, const json_t *secret, const struct token_ref *ref,
                         struct probe_result *ret_error)
{
    struct probe_secret from = {.secrets.read = probe_secret_read, .object = secret};
    char why[256], message[512];
    int r = credentials_new(ret, &from.secrets, ref->name, ref->key, true, why);

    if (r == -ENOMEM) {
        probe_result_fail(ret_error, "OutOfMemory", "out of memory");
    } else if (r < 0) { /* why: secret "name", ... */
        (void)snprintf(message, sizeof(message), "spec.configAuth: S%s", why + 1);
        probe_result_fail(ret_error, "TokenMissing", message);
    }
    return r == 0;
}

bool probe_token_read(struct credentials **ret, const struct probe_env *env, const struct kube_answer *a,
                      const struct token_ref *ref, struct probe_result *ret_error)
{
    bool ok = false;

    if (a->verdict == KUBE_OK)
        ok = is_allowed(a->object, ref, ret_error) && token_decode(ret, a->object, ref, ret_error);
    else if (a->http_status == 404)
        probe_token_fail(ret_error, ref, "the Secret does not exist in namespace %.80s", env->namespace);
    else
        probe_token_fail(ret_error, ref, "%s", a->why);
    /* Also one that has just returned, and refuses while it starts. */
    ret_error->unasked = a->verdict != KUBE_OK && kube_absence_ms(env->hub) < KUBE_GRACE_MS;
    kube_wipe_strings(kube_map(a->object, "data", NULL));
    return ok;
}

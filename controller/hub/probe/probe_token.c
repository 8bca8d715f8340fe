/* The token for configURL: a key of a Secret. It is read for each probe, so that a changed one takes
 * effect at once; none is kept. */
#include "controller/hub/probe/probe_internal.h"

#include "controller/kube/json.h"
#include "controller/kube/verdict.h"
#include "exporter/base/base64.h"
#include "exporter/base/secret.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

void probe_token_fail(struct probe_result *r, const struct token_ref *ref, const char *fmt, ...)
{
    char why[512], message[1024];
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(why, sizeof(why), fmt, args);
    va_end(args);
    (void)snprintf(message, sizeof(message), "spec.configAuth: Secret \"%.80s\", key \"%.80s\": %s",
                   ref->name, cstr(ref->key), why);
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

static bool token_decode(struct buf *into, const json_t *secret, const struct token_ref *ref,
                         struct probe_result *ret_error)
{
    struct str value = kube_text(secret, "data", cstr(ref->key), NULL), token;
    const char *why;
    int r;

    if (!value.p) {
        probe_token_fail(ret_error, ref, "the Secret has no such key");
        return false;
    }
    r = base64_decode(value, into);
    if (r == -ENOMEM) {
        probe_result_fail(ret_error, "OutOfMemory", "out of memory");
        return false;
    }
    why = r == -EFBIG ? "longer than 65536 bytes"
          : r < 0     ? "not valid base64"
                      : secret_token(buf_str(into), &token);
    if (why) {
        probe_token_fail(ret_error, ref, "%s", why);
        return false;
    }
    memmove(into->p, token.p, token.n);
    buf_truncate(into, token.n);
    return true;
}

bool probe_token_read(struct buf *into, const struct probe_env *env, const struct kube_answer *a,
                      const struct token_ref *ref, struct probe_result *ret_error)
{
    bool ok = false;

    if (a->verdict == KUBE_OK)
        ok = is_allowed(a->object, ref, ret_error) && token_decode(into, a->object, ref, ret_error);
    else if (a->http_status == 404)
        probe_token_fail(ret_error, ref, "the Secret does not exist in namespace %.80s", env->namespace);
    else
        probe_token_fail(ret_error, ref, "%s", a->why);
    /* Also one that has just returned, and refuses while it starts. */
    ret_error->unasked = a->verdict != KUBE_OK && kube_absence_ms(env->hub) < KUBE_GRACE_MS;
    kube_wipe_strings(kube_map(a->object, "data", NULL));
    return ok;
}

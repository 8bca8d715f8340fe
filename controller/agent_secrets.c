#include "controller/agent_secrets.h"

#include "controller/kube/json.h"
#include "controller/kube/watch.h"
#include "exporter/agent/scorer.h"
#include "exporter/base/base64.h"
#include "exporter/base/log.h"
#include "exporter/base/loop.h"
#include "exporter/score/secrets.h"
#include "exporter/score/summary.h"

#include <errno.h>

struct watched {
    struct agent_secrets *all;
    struct watched *next;
    char *name;
    struct kube_watch *watch;
    json_t *data;   /* base64; NULL while the Secret does not exist */
    uint64_t stamp; /* of the last change */
    bool trusts_ca;
    bool wanted;
};

struct agent_secrets {
    struct secrets secrets;
    const struct agent_state *agent;
    struct kube *kube;
    const char *namespace;
    struct watched *list;
    struct timer prepared; /* calls `ready` */
    void (*ready)(void *arg);
    void *arg;
};

static void secrets_drop_data(struct watched *w)
{
    kube_wipe_strings(w->data);
    json_decref(w->data);
    w->data = NULL;
}

static struct watched *secrets_watched_free(struct watched *w)
{
    if (!w)
        return NULL;
    w->watch = kube_watch_free(w->watch);
    secrets_drop_data(w);
    free(w->name);
    free(w);
    return NULL;
}

/* Otherwise a summary could send the hub's credentials, a Secret of the same namespace, anywhere. */
static bool secrets_is_forbidden(const char *name, const json_t *data)
{
    struct str s = str_of(name), end = STR("-hub-kubeconfig");

    return (s.n >= end.n && memcmp(s.p + s.n - end.n, end.p, end.n) == 0) ||
           json_object_get(data, "kubeconfig");
}

/* That of a service account's Secret is the API server's. */
static bool secrets_type_trusts_ca(const char *type)
{
    return !*type || strcmp(type, "Opaque") == 0 || strcmp(type, "kubernetes.io/tls") == 0;
}

static const struct watched *secrets_find(const struct secrets *base, const char *name)
{
    const struct watched *w = CONTAINER_OF(base, const struct agent_secrets, secrets)->list;

    while (w && strcmp(w->name, name) != 0)
        w = w->next;
    return w;
}

static int secrets_look(struct secrets *base, const char *name, const char *token_key,
                        struct secret_state *ret, const char **ret_why)
{
    const struct watched *w = secrets_find(base, name);

    (void)token_key;
    if (!w || !w->data) {
        *ret_why = w ? kube_watch_trouble(w->watch) : NULL;
        return *ret_why ? -EACCES : -ENOENT;
    }
    if (secrets_is_forbidden(name, w->data)) {
        *ret_why = "refused: it contains credentials for an API server";
        return -EPERM;
    }
    *ret = (struct secret_state){.stamp = w->stamp, .trusts_ca = w->trusts_ca};
    return 0;
}

static int secrets_read(struct secrets *base, const char *name, const char *key, struct buf *into,
                        const char **ret_why)
{
    struct str value = kube_text(secrets_find(base, name)->data, key, NULL);
    int r = value.p ? base64_decode(value, into) : -ENOENT;

    if (r == -EINVAL)
        *ret_why = "not valid base64";
    return r;
}

static bool secrets_is_named(const struct summary *sum, const char *secret)
{
    for (size_t i = 0; i < summary_sources(sum); i++)
        if (strcmp(cstr(summary_source(sum, i).auth.name), secret) == 0)
            return true;
    return strcmp(cstr(sum->scoring_auth.name), secret) == 0;
}

static void secrets_wake(const struct watched *w)
{
    const struct agent_state *a = w->all->agent;

    for (size_t i = 0; i < a->n_scorers; i++)
        if (secrets_is_named(scorer_summary(a->scorers[i]), w->name))
            scorer_wake(a->scorers[i]);
}

static void secrets_on_set(void *arg, json_t *object)
{
    static uint64_t stamps; /* of all Secrets: one that is watched anew is another one */
    struct watched *w = arg;
    json_t *data = kube_map(object, "data", NULL);
    bool trusts_ca = secrets_type_trusts_ca(cstr(kube_str(object, "type", NULL)));

    if (w->data && w->trusts_ca == trusts_ca && json_equal(w->data, data))
        return;
    if (w->data)
        log_info("secret changed", L_STR("secret", w->name));
    secrets_drop_data(w);
    w->data = json_incref(data);
    w->trusts_ca = trusts_ca;
    w->stamp = ++stamps;
    if (secrets_is_forbidden(w->name, data))
        log_error("secret refused: it contains credentials for an API server", L_STR("secret", w->name));
    secrets_wake(w);
}

static void secrets_on_delete(void *arg, const char *namespace, const char *name)
{
    struct watched *w = arg;

    (void)namespace;
    log_warn("secret deleted", L_STR("secret", name));
    secrets_drop_data(w);
}

static void secrets_on_prepared(struct timer *t)
{
    struct agent_secrets *s = CONTAINER_OF(t, struct agent_secrets, prepared);
    void (*ready)(void *arg) = s->ready;

    s->ready = NULL;
    if (ready)
        ready(s->arg);
}

/* In the loop's next turn `ready` starts the scorers, which may free this very watch. */
static void secrets_check_ready(struct agent_secrets *s)
{
    if (!s->ready)
        return;
    for (const struct watched *w = s->list; w; w = w->next)
        if (!kube_watch_synced(w->watch) && !kube_watch_trouble(w->watch))
            return;
    loop_timer_set(s->agent->loop, &s->prepared, loop_now(s->agent->loop));
}

static void secrets_on_synced(void *arg)
{
    const struct watched *w = arg;

    secrets_check_ready(w->all);
}

static void secrets_on_trouble(void *arg, const char *text)
{
    const struct watched *w = arg;

    if (text)
        log_warn("watch of secret failed", L_STR("secret", w->name), L_STR("err", text));
    secrets_check_ready(w->all);
}

static int secrets_watch(struct agent_secrets *s, const char *name)
{
    struct watched *w = xcalloc(1, sizeof(*w));
    struct kube_watch_options o = {
        .resource = &kube_secrets,
        .namespace = s->namespace,
        .name = name,
        .on_set = secrets_on_set,
        .on_delete = secrets_on_delete,
        .on_synced = secrets_on_synced,
        .on_trouble = secrets_on_trouble,
        .arg = w,
    };

    w->all = s;
    w->wanted = true;
    w->name = xstrdup(name);
    if (!w->name || kube_watch_new(&w->watch, s->kube, &o) < 0) {
        (void)secrets_watched_free(w);
        return -ENOMEM;
    }
    w->next = s->list;
    s->list = w;
    return 0;
}

static void secrets_want(struct agent_secrets *s, const char *name)
{
    struct watched *w = s->list;

    if (!name)
        return;
    while (w && strcmp(w->name, name) != 0)
        w = w->next;
    if (w)
        w->wanted = true;
    else if (secrets_watch(s, name) < 0)
        log_error("secret not watched: out of memory", L_STR("secret", name));
}

static void secrets_want_all_of(struct agent_secrets *s, const struct summary *sum)
{
    for (size_t k = 0; k < summary_sources(sum); k++)
        secrets_want(s, summary_source(sum, k).auth.name);
    secrets_want(s, sum->scoring_auth.name);
}

void agent_secrets_prepare(struct agent_secrets *s, const struct summaries *wanted, void (*ready)(void *arg),
                           void *arg)
{
    for (size_t i = 0; i < wanted->n; i++)
        secrets_want_all_of(s, &wanted->list[i]);
    s->ready = ready;
    s->arg = arg;
    secrets_check_ready(s);
}

void agent_secrets_sync(struct agent_secrets *s)
{
    const struct summaries *wanted = &s->agent->config->summaries;

    for (struct watched *w = s->list; w; w = w->next)
        w->wanted = false;
    for (size_t i = 0; i < wanted->n; i++)
        secrets_want_all_of(s, &wanted->list[i]);
    for (struct watched **at = &s->list; *at;) {
        struct watched *w = *at;
        if (w->wanted) {
            at = &w->next;
        } else {
            *at = w->next;
            (void)secrets_watched_free(w);
        }
    }
}

struct agent_secrets *agent_secrets_new(const struct agent_state *a, struct kube *k, const char *namespace)
{
    struct agent_secrets *s = xcalloc(1, sizeof(*s));

    *s = (struct agent_secrets){.secrets = {.look = secrets_look, .read = secrets_read},
                                .agent = a,
                                .kube = k,
                                .namespace = namespace,
                                .prepared.fn = secrets_on_prepared};
    return s;
}

struct agent_secrets *agent_secrets_free(struct agent_secrets *s)
{
    if (!s)
        return NULL;
    loop_timer_clear(s->agent->loop, &s->prepared);
    secrets_forget(&s->secrets);
    while (s->list) {
        struct watched *w = s->list;
        s->list = w->next;
        (void)secrets_watched_free(w);
    }
    free(s);
    return NULL;
}

struct secrets *agent_secrets_reader(struct agent_secrets *s)
{
    return &s->secrets;
}

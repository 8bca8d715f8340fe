/* Owns a watch for each Secret and its data as last seen. On the loop: called by the agent when a
 * configuration is applied, by rounds that need a credential, and by the watches. The data is wiped before
 * its memory is given back, and a Secret that has credentials for an API server is never used. */
#include "controller/agent_secrets.h"

#include "controller/kube/json.h"
#include "controller/kube/resource.h"
#include "controller/kube/watch.h"
#include "exporter/agent/scorer.h"
#include "exporter/base/alloc.h"
#include "exporter/base/base64.h"
#include "exporter/base/glob.h"
#include "exporter/base/log.h"
#include "exporter/base/map.h"
#include "exporter/score/summary.h"

#include <errno.h>

/* A Secret that the configuration names. */
struct watched_secret {
    struct agent_secrets *secrets;
    char *name; /* the key */
    struct kube_watch *watch;
    json_t *data; /* base64; NULL while the Secret does not exist */
    bool trusts_ca;
    bool wanted;
};

struct agent_secrets {
    struct agent_secrets_options o;
    struct secrets reader; /* reads `watched` */
    struct map watched;    /* by name */
};

static void secrets_drop_data(struct watched_secret *w)
{
    kube_wipe_strings(w->data);
    json_decref(w->data);
    w->data = NULL;
}

/* Otherwise a summary could send the hub's credentials, a Secret of the same namespace, anywhere. */
static bool secrets_is_forbidden(const char *name, const json_t *data)
{
    return glob_match("*-hub-kubeconfig", name) || json_object_get(data, "kubeconfig");
}

static int secrets_look(struct secrets *base, const char *name, bool *ret_trusts_ca, const char **ret_why)
{
    const struct watched_secret *w =
        map_get(&CONTAINER_OF(base, struct agent_secrets, reader)->watched, name);

    if (!w || !w->data) {
        *ret_why = w ? kube_watch_error(w->watch) : NULL;
        return *ret_why ? -EACCES : -ENOENT;
    }
    if (secrets_is_forbidden(name, w->data)) {
        *ret_why = "refused: it contains credentials for an API server";
        return -EPERM;
    }
    *ret_trusts_ca = w->trusts_ca;
    return 0;
}

static int secrets_read(struct secrets *base, const char *name, const char *key, struct buf *into,
                        const char **ret_why)
{
    const struct watched_secret *w =
        map_get(&CONTAINER_OF(base, struct agent_secrets, reader)->watched, name);
    struct str value = kube_text(w->data, key, NULL);
    int r = value.p ? base64_decode(value, into) : -ENOENT;

    if (r == -EINVAL)
        *ret_why = "not valid base64";
    return r;
}

/* Wakes the scorers that use the Secret. */
static void secrets_wake(const struct watched_secret *w)
{
    const struct agent_state *a = agent_state(w->secrets->o.agent);

    for (size_t i = 0; i < a->n_scorers; i++) {
        const struct summary *sum = &a->scorers[i]->summary;
        bool named = strcmp(cstr(sum->scoring_auth.name), w->name) == 0;

        for (size_t n = 0; n < sum->n_sources; n++)
            named = named || strcmp(cstr(sum->sources[n].auth.name), w->name) == 0;
        if (named)
            scorer_wake(a->scorers[i]);
    }
}

/* A new reference: the object's own, or an empty one for a Secret without any key, which is there all the
 * same. */
static json_t *secrets_take_data(const json_t *object)
{
    json_t *data = kube_map(object, "data", NULL);

    return data ? json_incref(data) : json_object();
}

static void secrets_on_set(void *arg, json_t *object)
{
    struct watched_secret *w = arg;
    json_auto_t *data = secrets_take_data(object);
    const char *type = cstr(kube_str(object, "type", NULL));
    /* The authority in a service account's Secret is the API server's. */
    bool trusts_ca = !*type || strcmp(type, "Opaque") == 0 || strcmp(type, "kubernetes.io/tls") == 0;

    if (w->data && w->trusts_ca == trusts_ca && json_equal(w->data, data))
        return;
    if (w->data)
        log_info("secret changed", L_STR("secret", w->name));
    secrets_drop_data(w);
    w->data = json_incref(data);
    w->trusts_ca = trusts_ca;
    if (secrets_is_forbidden(w->name, data))
        log_error("secret refused: it contains credentials for an API server", L_STR("secret", w->name));
    secrets_wake(w);
}

static void secrets_on_delete(void *arg, const char *namespace, const char *name)
{
    struct watched_secret *w = arg;

    (void)namespace;
    log_warn("secret deleted", L_STR("secret", name));
    secrets_drop_data(w);
}

static void secrets_on_read(void *arg)
{
    const struct watched_secret *w = arg;

    w->secrets->o.on_read(w->secrets->o.arg);
}

static void secrets_on_error(void *arg, const char *error)
{
    const struct watched_secret *w = arg;

    log_warn("watch of secret failed", L_STR("secret", w->name), L_STR("err", error));
    secrets_on_read(arg);
}

static struct watched_secret *secrets_watch(struct agent_secrets *s, const char *name)
{
    struct watched_secret *w = xcalloc(1, sizeof(*w));
    const struct kube_watch_options o = {.resource = &kube_secrets,
                                         .namespace = s->o.namespace,
                                         .name = name,
                                         .on_set = secrets_on_set,
                                         .on_delete = secrets_on_delete,
                                         .on_synced = secrets_on_read,
                                         .on_error = secrets_on_error,
                                         .on_recovered = secrets_on_read,
                                         .arg = w};

    w->secrets = s;
    w->name = xstrdup(name);
    map_set(&s->watched, w->name, w);
    w->watch = kube_watch_new(s->o.cluster, &o);
    return w;
}

static void secrets_unwatch(struct watched_secret *w)
{
    (void)map_take(&w->secrets->watched, w->name);
    w->watch = kube_watch_free(w->watch);
    secrets_drop_data(w);
    free(w->name);
    free(w);
}

/* name: NULL for none. */
static void secrets_want(struct agent_secrets *s, const char *name)
{
    struct watched_secret *w;

    if (!name)
        return;
    w = map_get(&s->watched, name) ?: secrets_watch(s, name);
    w->wanted = true;
}

void agent_secrets_sync(struct agent_secrets *s, const struct summaries *wanted)
{
    struct watched_secret *w;

    if (!s)
        return;
    for (size_t at = 0; (w = map_next(&s->watched, &at));)
        w->wanted = false;
    for (size_t i = 0; i < wanted->n; i++) {
        const struct summary *sum = &wanted->list[i];

        for (size_t n = 0; n < sum->n_sources; n++)
            secrets_want(s, sum->sources[n].auth.name);
        secrets_want(s, sum->scoring_auth.name);
    }
    for (size_t at = 0; (w = map_next(&s->watched, &at));) {
        if (w->wanted)
            continue;
        secrets_unwatch(w);
        at = 0; /* the map has changed */
    }
}

bool agent_secrets_are_read(const struct agent_secrets *s)
{
    const struct watched_secret *w;

    for (size_t at = 0; s && (w = map_next(&s->watched, &at));)
        if (!kube_watch_synced(w->watch) && !kube_watch_error(w->watch))
            return false;
    return true;
}

struct secrets *agent_secrets_reader(struct agent_secrets *s)
{
    return s ? &s->reader : NULL;
}

struct agent_secrets *agent_secrets_new(const struct agent_secrets_options *o)
{
    struct agent_secrets *s = xcalloc(1, sizeof(*s));

    s->o = *o;
    s->reader = (struct secrets){.namespace = o->namespace, .look = secrets_look, .read = secrets_read};
    return s;
}

struct agent_secrets *agent_secrets_free(struct agent_secrets *s)
{
    if (!s)
        return NULL;
    agent_secrets_sync(s, &(struct summaries){0});
    map_done(&s->watched);
    free(s);
    return NULL;
}

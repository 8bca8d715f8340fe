/* Owns the Lease, and while this agent leads the AddOnPlacementScores and the report. */
#include "controller/agent_kube.h"

#include "controller/agent_report.h"
#include "controller/kube/client.h"
#include "controller/kube/json.h"
#include "controller/kube/lease.h"
#include "controller/kube/watch.h"
#include "controller/placement/items.h"
#include "controller/placement/placement.h"
#include "exporter/agent/agent.h"
#include "exporter/agent/config.h"
#include "exporter/agent/scorer.h"
#include "exporter/base/base64.h"
#include "exporter/base/log.h"
#include "exporter/base/loop.h"
#include "exporter/base/problems.h"
#include "exporter/metric/metrics.h"
#include "exporter/metric/sink.h"
#include "exporter/score/credentials.h"
#include "exporter/score/summary.h"
#include "remotewrite/config.h"

#include <errno.h>
#include <stdio.h>

/* ---- Agent secrets ---- */

/* Credentials from Secrets in the agent's namespace, each watched by its name, so that a new or changed
 * Secret takes effect at once. */

struct agent_secrets;

struct watched {
    struct agent_secrets *all;
    struct watched *next;
    char *name;
    struct kube_watch *watch;
    json_t *data; /* base64; NULL while the Secret does not exist */
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

static int secrets_look(struct secrets *base, const char *name, bool *ret_trusts_ca, const char **ret_why)
{
    const struct watched *w = secrets_find(base, name);

    if (!w || !w->data) {
        *ret_why = w ? kube_watch_trouble(w->watch) : NULL;
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
    w->watch = kube_watch_new(s->kube, &o);
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

/* The same for a configuration yet to be applied; `ready` runs once, in a later turn, when each of the
 * Secrets was read or cannot be read. */
static void agent_secrets_prepare(struct agent_secrets *s, const struct summaries *wanted,
                                  void (*ready)(void *arg), void *arg)
{
    for (size_t i = 0; i < wanted->n; i++)
        secrets_want_all_of(s, &wanted->list[i]);
    s->ready = ready;
    s->arg = arg;
    secrets_check_ready(s);
}

/* Watches the Secrets that the agent's configuration refers to, and no others. */
static void agent_secrets_sync(struct agent_secrets *s)
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

/* -ENOMEM. The namespace is not owned. */
static struct agent_secrets *agent_secrets_new(const struct agent_state *a, struct kube *k,
                                               const char *namespace)
{
    struct agent_secrets *s = xcalloc(1, sizeof(*s));

    *s = (struct agent_secrets){.secrets = {.look = secrets_look, .read = secrets_read},
                                .agent = a,
                                .kube = k,
                                .namespace = namespace,
                                .prepared.fn = secrets_on_prepared};
    return s;
}

static struct agent_secrets *agent_secrets_free(struct agent_secrets *s)
{
    if (!s)
        return NULL;
    loop_timer_clear(s->agent->loop, &s->prepared);
    while (s->list) {
        struct watched *w = s->list;
        s->list = w->next;
        (void)secrets_watched_free(w);
    }
    free(s);
    return NULL;
}

static struct secrets *agent_secrets_reader(struct agent_secrets *s)
{
    return &s->secrets;
}

/* ---- Agent kube ---- */

#define DEFAULT_NAMESPACE "dynamic-scoring"
#define DEFAULT_ADDON     "dynamic-scoring"
#define DEFAULT_CONFIGMAP "dynamic-scoring-config"

struct agent_kube {
    struct sink sink; /* AddOnPlacementScores */
    struct agent *agent;
    struct agent_kube_options o;
    struct kube *hub, *cluster;
    struct agent_secrets *secrets;
    struct kube_watch *configmap;
    struct placement *placement; /* NULL without a hub, as on a standby */
    struct agent_report *report; /* NULL without a cluster, as on a standby */
    struct kube_lease *lease;    /* NULL without an election */
    char identity[KUBE_IDENTITY_BYTES], lease_name[OBJECT_NAME_MAX + 1];
    char *namespace, *configmap_namespace, *configmap_name;
    char *owner;
    char *what;         /* "configmap namespace/name" */
    const char *shown;  /* "namespace/name", a part of it */
    bool scorers_known; /* the ConfigMap was read, or does not exist */
    json_t *first;      /* with `once`: the ConfigMap, while its Secrets are read */
};

/* ---- What only the leader does ---- */

static const char *leader_addon(const struct agent_kube *k)
{
    return k->o.addon_name ? k->o.addon_name : DEFAULT_ADDON;
}

static int leader_begin(struct agent_kube *k)
{
    const struct agent_state *a = agent_state(k->agent);
    const struct placement_options placement = {.hub = k->hub,
                                                .agent = k->agent,
                                                .metrics = a->metrics,
                                                .cluster_name = k->o.cluster_name,
                                                .owner = k->owner,
                                                .adopt_unowned = k->o.adopt_unowned};
    struct agent_report_options report = {
        .agent = a, .cluster = k->cluster, .hub = k->hub, .namespace = k->namespace};
    int r = k->hub ? placement_new(&k->placement, &placement) : 0;

    report.placement = k->placement;
    if (r == 0 && k->cluster && !k->o.once)
        k->report = agent_report_new(&report);
    return r;
}

static void leader_end(struct agent_kube *k)
{
    k->report = agent_report_free(k->report);
    k->placement = placement_free(k->placement);
}

static void leader_on_change(void *arg, bool leading)
{
    struct agent_kube *k = arg;

    leader_end(k);
    if (leading && leader_begin(k) < 0)
        log_error("scores and report not written: out of memory");
    agent_set_leading(k->agent, leading);
}

/* Without an election this agent leads. */
static int leader_start(struct agent_kube *k)
{
    CLEANUP(cleanup_free) char *name = NULL;
    const struct kube_lease_options o = {.namespace = k->namespace,
                                         .name = k->lease_name,
                                         .identity = k->identity,
                                         .on_change = leader_on_change,
                                         .arg = k};

    if (!k->o.leader_elect || k->o.once)
        return leader_begin(k);
    if (asprintf(&name, "%s-agent", leader_addon(k)) < 0)
        return name = NULL, -ENOMEM;
    (void)object_name(str_of(name), k->lease_name);
    kube_lease_make_identity(k->identity);
    agent_set_leading(k->agent, false);
    k->lease = kube_lease_new(k->cluster, &o);
    return 0;
}

/* Something that the report shows may have changed. */
static void leader_touch(struct agent_kube *k)
{
    if (k->report)
        agent_report_touch(k->report);
}

void agent_kube_render(const struct agent_kube *k)
{
    if (k->lease)
        metric_set(agent_state(k->agent)->metrics, METRIC_KUBE_UP, LV("leases", "cluster"),
                   !kube_lease_trouble(k->lease));
}

bool agent_kube_election(const struct agent_kube *k, struct agent_election *ret)
{
    if (k->lease)
        *ret = (struct agent_election){.leading = kube_lease_leading(k->lease),
                                       .identity = k->identity,
                                       .holder = kube_lease_holder(k->lease),
                                       .error = kube_lease_trouble(k->lease)};
    return k->lease;
}

void agent_kube_stop(struct agent_kube *k, void (*done)(void *arg), void *arg)
{
    if (k->lease)
        kube_lease_release(k->lease, done, arg);
    else
        done(arg);
}

/* ---- The cluster's ConfigMap and Secrets ---- */

static const char *kube_env(const char *flag, const char *variable)
{
    const char *v = flag ? flag : getenv(variable);

    return v && *v ? v : NULL;
}

bool agent_kube_is_asked_for(const struct agent_kube_options *o)
{
    return o->managed_kubeconfig || o->addon_namespace || o->configmap;
}

bool agent_kube_options_complete(struct agent_kube_options *o)
{
    bool on;

    o->hub_kubeconfig = kube_env(o->hub_kubeconfig, "HUB_KUBECONFIG");
    on = o->hub_kubeconfig || agent_kube_is_asked_for(o);
    if (on) {
        o->cluster_name = kube_env(o->cluster_name, "CLUSTER_NAME");
        o->addon_namespace = kube_env(o->addon_namespace, "INSTALL_NAMESPACE");
    }
    return on;
}

bool agent_kube_has_cluster(const struct agent_kube_options *o)
{
    return o->managed_kubeconfig || kube_env(NULL, "KUBERNETES_SERVICE_HOST");
}

static void configmap_apply(struct agent_kube *k, struct str text)
{
    bool known = k->scorers_known;

    k->scorers_known = true; /* applying passes the scorers on to the placement */
    if (agent_apply_text(k->agent, k->what, text, NULL) < 0)
        k->scorers_known = known;
    leader_touch(k);
}

static struct str configmap_text(const struct agent_kube *k, const json_t *object)
{
    struct str text = kube_text(object, "data", "summaries", NULL);

    if (!text.p)
        log_error("ConfigMap has no key `summaries`", L_STR("configmap", k->shown));
    return text.p ? text : STR("");
}

/* ---- With `once`: the ConfigMap, then its Secrets, then the scorers ---- */

static void once_stop(struct agent_kube *k)
{
    k->configmap = kube_watch_free(k->configmap);
    loop_stop(agent_state(k->agent)->loop);
}

static void once_apply(void *arg)
{
    struct agent_kube *k = arg;
    int r = agent_apply_text(k->agent, k->what, configmap_text(k, k->first), NULL);

    if (r < 0 || agent_state(k->agent)->n_scorers == 0)
        once_stop(k);
}

/* An invalid text names no Secrets; its problems are reported when it is applied. */
static void once_prepare(struct agent_kube *k, json_t *object)
{
    CLEANUP(cleanup_config_free) struct config *c = NULL;
    CLEANUP(problems_done) struct problems p = {0};
    const struct summaries none = {0};
    int r;

    problems_init(&p, k->what);
    k->configmap = kube_watch_free(k->configmap);
    k->first = json_incref(object);
    r = config_parse(&c, kube_text(object, "data", "summaries", NULL), &rw_config_section, &p);
    if (k->secrets)
        agent_secrets_prepare(k->secrets, r == 0 ? &c->summaries : &none, once_apply, k);
    else
        once_apply(k);
}

/* ---- What the watch of the ConfigMap reports ---- */

static void configmap_on_set(void *arg, json_t *object)
{
    struct agent_kube *k = arg;

    if (k->o.once)
        once_prepare(k, object);
    else
        configmap_apply(k, configmap_text(k, object));
}

static void configmap_missing(struct agent_kube *k)
{
    if (k->o.once) {
        log_error("ConfigMap not found", L_STR("configmap", k->shown));
        once_stop(k);
        return;
    }
    log_warn("ConfigMap not found: no scorers", L_STR("configmap", k->shown));
    configmap_apply(k, STR("[]"));
}

static void configmap_on_delete(void *arg, const char *namespace, const char *name)
{
    (void)namespace;
    (void)name;
    configmap_missing(arg);
}

static void configmap_on_synced(void *arg)
{
    struct agent_kube *k = arg;

    metric_set(agent_state(k->agent)->metrics, METRIC_KUBE_UP, LV("configmaps", "cluster"), 1);
    if (kube_watch_objects(k->configmap) == 0)
        configmap_missing(k);
}

static void configmap_on_trouble(void *arg, const char *text)
{
    struct agent_kube *k = arg;

    if (text && k->o.once) {
        log_error("ConfigMap not read", L_STR("configmap", k->shown), L_STR("err", text));
        once_stop(k);
        return;
    }
    metric_set(agent_state(k->agent)->metrics, METRIC_KUBE_UP, LV("configmaps", "cluster"), text == NULL);
    if (text)
        log_warn("watch of ConfigMap failed, its last state stays active", L_STR("configmap", k->shown),
                 L_STR("err", text));
    else
        log_info("watch of ConfigMap works again", L_STR("configmap", k->shown));
    agent_touch(k->agent);
}

/* ---- The sink ---- */

static void sink_round(struct sink *s, const struct scorer *scorer)
{
    struct agent_kube *k = CONTAINER_OF(s, struct agent_kube, sink);

    if (k->placement)
        placement_round(k->placement, scorer);
    leader_touch(k);
}

static void sink_applied(struct sink *s, struct scorer *const *scorers, size_t n)
{
    struct agent_kube *k = CONTAINER_OF(s, struct agent_kube, sink);

    if (k->secrets)
        agent_secrets_sync(k->secrets);
    if (k->placement && (k->scorers_known || !k->cluster))
        placement_sync(k->placement, scorers, n);
}

static const struct sink_ops sink_ops = {
    .name = "AddOnPlacementScore", .round = sink_round, .applied = sink_applied};

static int join_name(char **ret, const char *before, const char *namespace, const char *name)
{
    return asprintf(ret, "%s%s/%s", before, namespace, name) < 0 ? (*ret = NULL, -ENOMEM) : 0;
}

/* "namespace/name" or "name", in the agent's own namespace. */
static int set_names(struct agent_kube *k)
{
    const struct agent_kube_options *o = &k->o;
    const char *configmap = o->configmap ? o->configmap : DEFAULT_CONFIGMAP, *slash = strchr(configmap, '/');
    const char *own = k->cluster ? kube_default_namespace(k->cluster) : NULL;

    k->namespace = xstrdup(o->addon_namespace ? o->addon_namespace : own ? own : DEFAULT_NAMESPACE);
    k->configmap_namespace = slash ? xstrndup(configmap, (size_t)(slash - configmap)) : xstrdup(k->namespace);
    k->configmap_name = xstrdup(slash ? slash + 1 : configmap);
    if (!k->configmap_namespace || !k->configmap_name ||
        join_name(&k->owner, "", k->namespace, leader_addon(k)) < 0 ||
        join_name(&k->what, "configmap ", k->configmap_namespace, k->configmap_name) < 0)
        return -ENOMEM;
    k->shown = strchr(k->what, ' ') + 1;
    return 0;
}

static int start_cluster(struct agent_kube *k, bool secrets)
{
    const struct kube_watch_options watch = {
        .resource = &kube_configmaps,
        .namespace = k->configmap_namespace,
        .name = k->configmap_name,
        .on_set = configmap_on_set,
        .on_delete = configmap_on_delete,
        .on_synced = configmap_on_synced,
        .on_trouble = configmap_on_trouble,
        .arg = k,
    };

    if (secrets)
        k->secrets = agent_secrets_new(agent_state(k->agent), k->cluster, k->namespace);
    k->configmap = kube_watch_new(k->cluster, &watch);
    return 0;
}

int agent_kube_new(struct agent_kube **ret, struct agent *a, const struct agent_kube_options *o, bool secrets)
{
    CLEANUP(cleanup_agent_kube_free) struct agent_kube *k = xcalloc(1, sizeof(*k));
    int r = 0;

    k->sink.ops = &sink_ops;
    k->agent = a;
    k->o = *o;
    if (agent_kube_has_cluster(o))
        k->cluster = kube_new(agent_state(a)->loop, agent_state(a)->http, "cluster", o->managed_kubeconfig);
    if (r == 0)
        r = set_names(k);
    if (r == 0 && o->hub_kubeconfig && !o->once)
        k->hub = kube_new(agent_state(a)->loop, agent_state(a)->http, "hub", o->hub_kubeconfig);
    if (r == 0 && k->cluster)
        r = start_cluster(k, secrets);
    if (r == 0)
        r = leader_start(k);
    if (r == 0)
        r = agent_add_sink(a, &k->sink);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(k);
    return 0;
}

struct agent_kube *agent_kube_free(struct agent_kube *k)
{
    if (!k)
        return NULL;
    k->lease = kube_lease_free(k->lease);
    leader_end(k);
    k->configmap = kube_watch_free(k->configmap);
    json_decref(k->first);
    k->secrets = agent_secrets_free(k->secrets);
    k->hub = kube_free(k->hub);
    k->cluster = kube_free(k->cluster);
    free(k->namespace);
    free(k->configmap_namespace);
    free(k->configmap_name);
    free(k->owner);
    free(k->what);
    free(k);
    return NULL;
}

struct kube *agent_kube_cluster(struct agent_kube *k)
{
    return k ? k->cluster : NULL;
}

struct secrets *agent_kube_secrets(struct agent_kube *k)
{
    return k->secrets ? agent_secrets_reader(k->secrets) : NULL;
}

int agent_kube_start(struct agent_kube *k)
{
    if (k->o.once && k->cluster)
        return 0;
    /* Not yet in the ConfigMap's name: nobody should take its absence for an empty list. */
    return k->cluster ? agent_apply_text(k->agent, "flags", STR("[]"), NULL) : agent_reload(k->agent, NULL);
}

/* `dynamic-scoring agent`: the exporter. */
#include "controller/agent_kube.h"
#include "controller/flags.h"
#include "controller/kube/guard.h"
#include "controller/role.h"
#include "controller/terminal.h"
#include "exporter/agent/agent.h"
#include "exporter/agent/status_json.h"
#include "exporter/agent/status_table.h"
#include "exporter/agent/web.h"
#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/log.h"
#include "exporter/base/loop.h"
#include "exporter/http/http.h"
#include "exporter/metric/page.h"
#include "exporter/otlp/receiver.h"
#include "exporter/otlp/series.h"
#include "exporter/score/round_error.h"
#include "exporter/ui/list.h"
#include "exporter/ui/site.h"
#include "remotewrite/config.h"
#include "remotewrite/sink.h"

enum { OUTPUT_TABLE, OUTPUT_JSON, OUTPUT_PROM };
enum { FLUSH_MS = 10000, OUTPUT_MAX_BYTES = 1 << 30, OTLP_TURN_MS = 1000, OTLP_WARN_MS = 60 * 1000 };

struct agent_flags {
    struct agent_options options;
    struct agent_kube_options kube;
    bool lifecycle;            /* serve POST /-/reload */
    const char *probe_address; /* NULL: none */
    struct server_flags server;
    struct {
        const char *listen;    /* NULL: no receiver */
        bool k8s_labels;       /* resource attributes of Kubernetes become labels */
        const char *promoted;  /* further resource attributes, separated by commas; NULL: none */
        const char *query_url; /* of sources of type OpenTelemetry without an endpoint; NULL: the agent */
    } otlp;
    struct flag_list listen;
    enum log_level log_level;
    enum log_format log_format;
    bool on_kubernetes;
    int output; /* of `outputs` */
};

/* ---- Flags ---- */

static bool agent_is_configmap(const char *v)
{
    const char *slash = strchr(v, '/');

    return *v && slash != v && !(slash && (slash[1] == '\0' || strchr(slash + 1, '/')));
}

static bool agent_is_promotion(const char *v)
{
    unsigned names = 1;

    for (; *v; v++)
        names += *v == ',';
    return names <= 60;
}

static bool agent_is_url(const char *v)
{
    return http_is_url(str_of(v));
}

static const char *const outputs[] = {
    [OUTPUT_TABLE] = "table", [OUTPUT_JSON] = "json", [OUTPUT_PROM] = "prom", NULL};

#define FIELD(name) .field = offsetof(struct agent_flags, name)

static const struct flag agent_flags[] = {
    {"config.file", FLAG_PATH, FIELD(options.config_file),
     "Configuration in YAML or JSON: an object, or a bare list of summaries."},
    {"cluster-name", FLAG_NAME, FIELD(options.cluster_name),
     "Name of the cluster: the ds_cluster label and the namespace on the hub. Overrides the file. Default on "
     "Kubernetes: $CLUSTER_NAME."},
    {"hub-kubeconfig", FLAG_PATH, FIELD(kube.hub_kubeconfig),
     "Kubeconfig of the hub to write AddOnPlacementScores to. Default: $HUB_KUBECONFIG."},
    {"managed-kubeconfig", FLAG_PATH, FIELD(kube.managed_kubeconfig),
     "Kubeconfig of the agent's own cluster. Default: the pod's service account."},
    {"addon-namespace", FLAG_NAME, FIELD(kube.addon_namespace),
     "Namespace of the agent, its ConfigMaps and Secrets. Default: $INSTALL_NAMESPACE, then the namespace of "
     "the credentials.",
     "NAMESPACE"},
    {"addon-name", FLAG_NAME, FIELD(kube.addon_name),
     "Name of the add-on; agents with different names do not touch each other's scores. Default "
     "dynamic-scoring."},
    {"adopt-unowned-scores", FLAG_SWITCH, FIELD(kube.adopt_unowned),
     "Take over AddOnPlacementScores of configured scorers that name no owner, such as those of the "
     "reference implementation. Default false: they are left alone."},
    {"leader-elect", FLAG_SWITCH, FIELD(kube.leader_elect),
     "Elect a leader among replicas, by the Lease <add-on>-agent in their namespace; the others stand by. "
     "Default false."},
    {"config.configmap", FLAG_TEXT, FIELD(kube.configmap),
     "ConfigMap with the summaries, which replace those of the file. Default dynamic-scoring-config.",
     "[NAMESPACE/]NAME", "[NAMESPACE/]NAME", .is_valid = agent_is_configmap},
    {"web.listen-address", FLAG_LISTEN, FIELD(listen),
     "Address to listen on; may be repeated. Default :8080. Overrides the file."},
    {"web.enable-lifecycle", FLAG_SWITCH, FIELD(lifecycle),
     "Serve POST /-/reload, which reloads the configuration file. Default false."},
    {"health-probe-bind-address", FLAG_ADDRESS, FIELD(probe_address),
     "Address that /-/healthy and /-/ready are served on, besides the others; 0 disables it. Default 0."},
    {"otlp.listen-address", FLAG_ADDRESS, FIELD(otlp.listen),
     "Address to receive OpenTelemetry metrics on, by OTLP/HTTP, for scorers with the source OpenTelemetry. "
     "The usual port is 4318. Default none."},
    {"otlp.k8s-labels", FLAG_SWITCH, FIELD(otlp.k8s_labels),
     "Give received series the labels node, namespace, pod and container, from their resource attributes "
     "k8s.node.name and so on. Default true."},
    {"otlp.promote-resource-attributes", FLAG_TEXT, FIELD(otlp.promoted),
     "Further resource attributes that become labels of received series, separated by commas. Default none.",
     "NAMES", "at most 60 names, separated by commas", .is_valid = agent_is_promotion},
    {"otlp.query-url", FLAG_TEXT, FIELD(otlp.query_url),
     "Query API of a Prometheus that receives OpenTelemetry metrics instead of the agent, for scorers with "
     "the source OpenTelemetry and no host, such as http://prometheus:9090/api/v1/query_range. Default none.",
     "URL", "an absolute http or https URL", .is_valid = agent_is_url},
    {"secrets.dir", FLAG_PATH, FIELD(options.secrets_dir),
     "Directory of Secrets, as files DIR/NAME/KEY; read for each round.", "DIR"},
    {"storage.path", FLAG_PATH, FIELD(options.storage_path),
     "Directory for files that outlive a restart, such as the remote-write spool.", "DIR"},
    {"once", FLAG_SWITCH, FIELD(options.once),
     "Run each scorer of the file, or of the cluster's ConfigMap, once, print the results and exit; with "
     "status 1 if any scorer failed."},
    {"output", FLAG_WORD, FIELD(output), "Output of --once: table, json or prom. Default table.",
     .words = outputs},
    {.name = NULL},
};

#define NEEDS_CLUSTER " requires a cluster: --managed-kubeconfig=FILE or, in a pod, --addon-namespace=NAME"

/* NULL, too, for an empty text. */
static const char *agent_env(const char *flag, const char *variable)
{
    const char *v = flag ? flag : getenv(variable);

    return v && *v ? v : NULL;
}

/* Fills in what the environment says. NULL, or what is wrong with the flags together. With --once, in a pod
 * too, a file is enough, and only flags ask for the cluster beside it. */
static const char *agent_complete_flags(struct agent_flags *f)
{
    struct agent_kube_options *k = &f->kube;
    bool asked = k->managed_kubeconfig || k->addon_namespace || k->configmap, has_cluster;

    f->log_level = (enum log_level)f->server.log_level;
    f->log_format = (enum log_format)f->server.log_format;
    f->options.log_level = f->server.log_level >= 0 ? &f->log_level : NULL;
    f->options.log_format = f->server.log_format >= 0 ? &f->log_format : NULL;
    memcpy(f->options.listen, f->listen.items, sizeof(f->options.listen));
    f->options.n_listen = f->listen.n;
    k->once = f->options.once;
    k->hub_kubeconfig = agent_env(k->hub_kubeconfig, "HUB_KUBECONFIG");
    f->on_kubernetes = k->hub_kubeconfig || asked;
    has_cluster = f->on_kubernetes && agent_kube_has_cluster(k);
    if (f->options.once && !(has_cluster && (asked || !f->options.config_file)))
        f->on_kubernetes = false;
    if (f->on_kubernetes) {
        f->options.cluster_name = agent_env(f->options.cluster_name, "CLUSTER_NAME");
        k->addon_namespace = agent_env(k->addon_namespace, "INSTALL_NAMESPACE");
    }
    k->cluster_name = f->options.cluster_name;
    if (!f->options.config_file && !has_cluster)
        return "missing flag: --config.file=FILE or, outside a pod, --managed-kubeconfig=FILE";
    if (f->on_kubernetes && k->hub_kubeconfig && !k->cluster_name)
        return "--hub-kubeconfig requires --cluster-name";
    if (k->leader_elect && !f->options.once && !has_cluster)
        return "--leader-elect" NEEDS_CLUSTER;
    if (f->server.kubernetes_auth && !f->options.once && !has_cluster)
        return "--web.kubernetes-auth" NEEDS_CLUSTER;
    if (!f->options.config_file && !f->options.cluster_name)
        return "missing flag: --cluster-name=NAME";
    return NULL;
}

/* ---- One round of each scorer, and its results on stdout: --once ---- */

/* The text format has no escapes for control characters: a terminal gets others, a program the bytes. */
static bool once_print(int output, struct str text, int r)
{
    if (output == OUTPUT_JSON)
        return terminal_print_json(text, r);
    if (output == OUTPUT_PROM && r == 0 && isatty(STDOUT_FILENO))
        return terminal_print_lines(stdout, text);
    return terminal_print(text, r);
}

/* Without a configuration the loop waits for that of a cluster; it ends without one after an error. */
static int agent_run_once(const struct agent_state *a, int output)
{
    const struct list_query all = list_query_all();
    BUF_AUTO(text, OUTPUT_MAX_BYTES);
    int r;

    if ((agent_has_rounds_left(a) || !a->config) && loop_run(a->loop) < 0)
        return 1;
    if (!a->config)
        return 1;
    r = output == OUTPUT_JSON   ? status_json(a, &all, &text)
        : output == OUTPUT_PROM ? page_print(a->page, &text)
                                : status_table(a, isatty(STDOUT_FILENO), &text);
    if (!once_print(output, buf_str(&text), r))
        return 1;
    for (size_t i = 0; i < a->n_scorers; i++)
        if (a->scorers[i]->status.last.error != ROUND_OK)
            return 1;
    return agent_has_rounds_left(a);
}

/* ---- Running ---- */

/* What signals and the agent's hooks serve; all but the agent may be NULL. */
struct running {
    struct role role;
    struct agent *agent;
    struct rw_sink *remote_write;
    struct agent_kube *kube;
    struct store *store; /* with --otlp.listen-address, as the next ones */
    struct otlp *receiver;
    struct timer otlp_timer;
    mono_ms otlp_warn_at;                /* not before */
    uint64_t otlp_refused, otlp_evicted; /* at the last warning */
    int64_t otlp_shown_ms;               /* the time of the last request that the metrics show */
};

/* ---- Receiving OTLP ---- */

/* What a limit has cost since the last warning. */
static void otlp_warn(struct running *x)
{
    struct store_stats s;

    store_stats(x->store, &s);
    if (mono_before(loop_now(x->role.loop), x->otlp_warn_at) ||
        (s.series_refused == x->otlp_refused && s.samples_evicted == x->otlp_evicted))
        return;
    if (s.series_refused > x->otlp_refused)
        log_warn(
            "new OTLP series refused",
            L_STR("limit", s.series_limit_ms >= s.bytes_limit_ms ? "limits.otlpSeries" : "limits.otlpMemory"),
            L_INT("attempts", s.series_refused - x->otlp_refused), L_INT("series", s.series),
            L_INT("bytes", s.bytes));
    if (s.samples_evicted > x->otlp_evicted)
        log_warn("OTLP samples evicted before their time; queries that reach back to them fail",
                 L_STR("limit", "limits.otlpMemory"), L_INT("samples", s.samples_evicted - x->otlp_evicted),
                 L_INT("bytes", s.bytes));
    x->otlp_refused = s.series_refused;
    x->otlp_evicted = s.samples_evicted;
    x->otlp_warn_at = mono_add(loop_now(x->role.loop), OTLP_WARN_MS);
}

static void otlp_on_timer(struct timer *t)
{
    struct running *x = CONTAINER_OF(t, struct running, otlp_timer);
    struct otlp_status status = {.last_ms = x->otlp_shown_ms};

    store_prune(x->store);
    otlp_warn(x);
    if (x->receiver)
        otlp_status(x->receiver, &status);
    if (status.last_ms != x->otlp_shown_ms)
        agent_touch(x->agent);
    x->otlp_shown_ms = status.last_ms;
    loop_timer_set(x->role.loop, t, mono_add(loop_now(x->role.loop), OTLP_TURN_MS));
}

static int otlp_open(struct running *x, const struct agent_flags *f, char **ret_why)
{
    const struct agent_state *a = agent_state(x->agent);
    struct otlp_options o = {.loop = x->role.loop,
                             .metrics = a->metrics,
                             .page = a->page,
                             .store = x->store,
                             .listen = f->otlp.listen,
                             .config_file = f->server.web_config_file,
                             .promotion = {f->otlp.k8s_labels, str_of(f->otlp.promoted)}};
    int r;

    if (!x->store)
        return 0;
    r = otlp_start(&x->receiver, &o, ret_why);
    if (r == 0)
        log_info("receiving OTLP metrics", L_STR("address", f->otlp.listen));
    return r;
}

/* ---- What signals and hooks do ---- */

static void agent_on_reload(struct role *r)
{
    if (agent_reload(CONTAINER_OF(r, struct running, role)->agent, NULL) < 0)
        log_debug("reload on SIGHUP failed");
}

static void agent_on_stop(struct role *r, void (*done)(void *arg), void *done_arg)
{
    agent_kube_stop(CONTAINER_OF(r, struct running, role)->kube, done, done_arg);
}

static void hook_config(void *arg, const struct config *c)
{
    const struct running *running = arg;

    if (running->remote_write)
        rw_sink_apply(running->remote_write, c->section, c->storage_path);
    if (running->store)
        store_set_limits(running->store, c->limits.otlp_bytes, (uint64_t)c->limits.otlp_series);
}

static void hook_render(void *arg)
{
    const struct running *running = arg;

    if (running->remote_write)
        rw_sink_refresh(running->remote_write);
    agent_kube_render(running->kube);
    if (running->receiver)
        otlp_render(running->receiver);
}

static void hook_endpoints(void *arg, struct buf *o)
{
    const struct running *running = arg;

    if (running->remote_write)
        rw_sink_json(running->remote_write, o);
}

static bool hook_election(void *arg, struct agent_election *ret)
{
    const struct running *running = arg;

    return running->kube && agent_kube_election(running->kube, ret);
}

static bool hook_otlp(void *arg, struct otlp_status *ret)
{
    const struct running *running = arg;

    if (running->receiver)
        otlp_status(running->receiver, ret);
    return running->receiver;
}

static void agent_on_end(struct role *r)
{
    struct running *running = CONTAINER_OF(r, struct running, role);

    running->receiver = otlp_stop(running->receiver, STOP_GRACE_MS);
    agent_set_access(running->agent, NULL);
    r->site = site_stop(r->site, STOP_GRACE_MS);
    r->guard = kube_guard_free(r->guard); /* whose client ends with running->kube */
}

static int agent_serve(struct running *running, const struct agent_flags *f)
{
    struct agent *a = running->agent;
    struct role *role = &running->role;
    struct site_options o;
    char *why = NULL;
    int r;

    if (f->server.kubernetes_auth)
        role->guard = kube_guard_new(agent_kube_cluster(running->kube), f->server.auth_cache_ttl_ms,
                                     f->server.auth_timeout_ms, NULL);
    o = role_site(role, NULL, 0, f->probe_address);
    r = web_start(&role->site, a, &o, f->lifecycle, &why) ?: otlp_open(running, f, &why);
    for (size_t i = 0; r == 0 && i < agent_state(a)->config->n_listen; i++)
        log_info("serving", L_STR("address", agent_state(a)->config->listen[i]));
    if (r == 0 && o.probe_address)
        log_info("serving probes", L_STR("address", o.probe_address));
    if (r < 0)
        agent_on_end(role);
    return role_run(role, r, why);
}

static int agent_open(struct running *running, struct agent_flags *f)
{
    struct loop *loop = running->role.loop;
    int r;

    if (f->otlp.listen && !f->options.once) {
        running->store = store_new(&clock_system);
        running->otlp_timer.fn = otlp_on_timer;
        loop_timer_set(loop, &running->otlp_timer, mono_add(loop_now(loop), OTLP_TURN_MS));
    }
    f->options.section = &rw_config_section;
    r = agent_new(&running->agent, loop, &f->options);
    if (r < 0)
        return r;
    /* --once sends nothing: the series of its one round would end with stale markers at once. */
    if (!f->options.once)
        running->remote_write = rw_sink_new(running->agent);
    if (f->on_kubernetes)
        running->kube = agent_kube_new(running->agent, &f->kube, !f->options.secrets_dir);
    agent_set_hooks(running->agent, &(struct agent_hooks){
                                        .config = hook_config,
                                        .render = hook_render,
                                        .endpoints = hook_endpoints,
                                        .election = hook_election,
                                        .otlp = hook_otlp,
                                        .arg = running,
                                        .secrets = running->kube ? agent_kube_secrets(running->kube) : NULL,
                                        .store = running->store,
                                        .otlp_url = f->otlp.query_url,
                                    });
    return 0;
}

static void agent_close(struct running *running)
{
    if (running->agent)
        agent_set_hooks(running->agent, NULL);
    running->kube = agent_kube_free(running->kube);
    running->remote_write = rw_sink_stop(running->remote_write, FLUSH_MS);
    running->agent = agent_free(running->agent);
    loop_timer_clear(running->role.loop, &running->otlp_timer);
    running->store = store_free(running->store);
    role_close(&running->role);
}

static int agent_main(char **argv)
{
    struct agent_flags f = {.server = server_flags_default, .otlp.k8s_labels = true};
    struct running running = {
        .role = {.on_stop = agent_on_stop, .on_reload = agent_on_reload, .on_end = agent_on_end}};
    const char *error;
    int status, r;

    if (!flags_parse(&command_agent, argv, &f, &status))
        return status;
    error = agent_complete_flags(&f);
    if (error)
        return flags_error(&command_agent, error, "");
    status = 1;
    r = role_open(&running.role, &f.server);
    if (r == 0 && (r = agent_open(&running, &f)) < 0)
        (void)role_failed("cannot start", r, NULL);
    if (r == 0 && (running.kube ? agent_kube_start(running.kube) : agent_reload(running.agent, NULL)) == 0)
        status =
            f.options.once ? agent_run_once(agent_state(running.agent), f.output) : agent_serve(&running, &f);
    agent_close(&running);
    return status;
}

const struct command command_agent = {
    .name = "agent",
    .arguments = "--config.file=FILE [flags]",
    .help = "Query sources, let scoring APIs score the series, and serve the scores on /metrics.",
    .flags = agent_flags,
    .shared = server_flags,
    .shared_at = offsetof(struct agent_flags, server),
    .run = agent_main,
};

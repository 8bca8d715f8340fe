#include "controller/agent_kube.h"
#include "controller/agent_otlp.h"
#include "controller/commands.h"
#include "controller/flags.h"
#include "controller/kube/guard.h"
#include "controller/server_flags.h"
#include "controller/signals.h"
#include "exporter/agent/agent.h"
#include "exporter/agent/config.h"
#include "exporter/agent/scorer.h"
#include "exporter/agent/status.h"
#include "exporter/agent/web.h"
#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/log.h"
#include "exporter/base/loop.h"
#include "exporter/metric/page.h"
#include "exporter/score/error.h"
#include "exporter/ui/list.h"
#include "exporter/ui/site.h"
#include "remotewrite/config.h"
#include "remotewrite/sink.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>

enum output { OUTPUT_TABLE, OUTPUT_JSON, OUTPUT_PROM };

/* ---- One round of each scorer, and its results on stdout: --once ---- */

enum { OUTPUT_MAX_BYTES = 1 << 30 };

static int agent_print(const struct agent_state *a, enum output output)
{
    const struct list_query all = list_query_all();
    BUF_AUTO(text, OUTPUT_MAX_BYTES);
    int r = output == OUTPUT_JSON   ? status_json(a, &all, &text)
            : output == OUTPUT_PROM ? page_print(a->page, &text)
                                    : status_table(a, isatty(STDOUT_FILENO), &text);

    if (r < 0) {
        (void)fprintf(stderr, "cannot print: %s\n", strerror(-r));
        return 1;
    }
    if (fwrite(text.p, 1, text.n, stdout) != text.n || fflush(stdout) != 0) {
        (void)fprintf(stderr, "cannot print: %s\n", strerror(errno));
        return 1;
    }
    for (size_t i = 0; i < a->n_scorers; i++)
        if (scorer_status(a->scorers[i])->rounds == 0 || scorer_status(a->scorers[i])->last.error != ROUND_OK)
            return 1;
    return 0;
}

/* Without a configuration the loop waits for that of a cluster; it ends without one after an error. */
static int agent_run_once(const struct agent_state *a, enum output output)
{
    if ((a->n_scorers || !a->config) && loop_run(a->loop) < 0)
        return 1;
    return a->config ? agent_print(a, output) : 1;
}

/* `dynamic-scoring agent`: the exporter. */

enum { STOP_GRACE_MS = 5000, FLUSH_MS = 10000 };

struct agent_flags {
    struct agent_options options;
    struct agent_kube_options kube;
    bool lifecycle;            /* serve POST /-/reload */
    const char *probe_address; /* NULL: none */
    struct server_flags server;
    struct agent_otlp_flags otlp;
    bool on_kubernetes;
    enum output output;
};

/* ---- Flags ---- */

static bool agent_parse_listen(void *field, const char *v, const struct flag *f)
{
    struct agent_options *o = &((struct agent_flags *)field)->options;

    (void)f;
    if (o->n_listen == CONFIG_MAX_LISTEN || !strrchr(v, ':'))
        return false;
    o->listen[o->n_listen++] = v;
    return true;
}

static bool agent_parse_output(void *field, const char *v, const struct flag *f)
{
    static const char *const words[] = {
        [OUTPUT_TABLE] = "table", [OUTPUT_JSON] = "json", [OUTPUT_PROM] = "prom"};

    (void)f;
    for (size_t i = 0; i < ARRAY_SIZE(words); i++)
        if (strcmp(v, words[i]) == 0) {
            *(enum output *)field = (enum output)i;
            return true;
        }
    return false;
}

static bool agent_parse_configmap(void *field, const char *v, const struct flag *f)
{
    const char *slash = strchr(v, '/');

    (void)f;
    *(const char **)field = v;
    return *v && slash != v && !(slash && (slash[1] == '\0' || strchr(slash + 1, '/')));
}

#define FIELD(name) .field = offsetof(struct agent_flags, name)

static const struct flag agent_flags[] = {
    {"config.file", "FILE", "Configuration in YAML or JSON: an object, or a bare list of summaries.",
     flag_text, FIELD(options.config_file), .expected = "a path"},
    {"cluster-name", "NAME",
     "Name of the cluster: the ds_cluster label and the namespace on the hub. Overrides the file. Default on "
     "Kubernetes: $CLUSTER_NAME.",
     flag_text, FIELD(options.cluster_name), .expected = "a name"},
    {"hub-kubeconfig", "FILE",
     "Kubeconfig of the hub to write AddOnPlacementScores to. Default: $HUB_KUBECONFIG.", flag_text,
     FIELD(kube.hub_kubeconfig), .expected = "a path"},
    {"managed-kubeconfig", "FILE",
     "Kubeconfig of the agent's own cluster. Default: the pod's service account.", flag_text,
     FIELD(kube.managed_kubeconfig), .expected = "a path"},
    {"addon-namespace", "NAMESPACE",
     "Namespace of the agent, its ConfigMaps and Secrets. Default: $INSTALL_NAMESPACE, then the namespace of "
     "the credentials.",
     flag_text, FIELD(kube.addon_namespace), .expected = "a name"},
    {"addon-name", "NAME",
     "Name of the add-on; agents with different names do not touch each other's scores. Default "
     "dynamic-scoring.",
     flag_text, FIELD(kube.addon_name), .expected = "a name"},
    {"adopt-unowned-scores", NULL,
     "Take over AddOnPlacementScores of configured scorers that name no owner, such as those of the "
     "reference implementation. Default false: they are left alone.",
     flag_switch, FIELD(kube.adopt_unowned)},
    {"leader-elect", NULL,
     "Elect a leader among replicas, by the Lease <add-on>-agent in their namespace; the others stand by. "
     "Default false.",
     flag_switch, FIELD(kube.leader_elect)},
    {"config.configmap", "[NAMESPACE/]NAME",
     "ConfigMap with the summaries, which replace those of the file. Default dynamic-scoring-config.",
     agent_parse_configmap, FIELD(kube.configmap), .expected = "[NAMESPACE/]NAME"},
    {"web.listen-address", "ADDRESS",
     "Address to listen on; may be repeated. Default :8080. Overrides the file.", agent_parse_listen,
     .expected = "host:port or :port, at most 16 times"},
    {"web.enable-lifecycle", NULL,
     "Serve POST /-/reload, which reloads the configuration file. Default false.", flag_switch,
     FIELD(lifecycle)},
    {"health-probe-bind-address", "ADDRESS",
     "Address that /-/healthy and /-/ready are served on, besides the others; 0 disables it. Default 0.",
     flag_address, FIELD(probe_address), .expected = FLAG_ADDRESS_EXPECTED},
    {"otlp.listen-address", "ADDRESS",
     "Address to receive OpenTelemetry metrics on, by OTLP/HTTP, for scorers with the source OpenTelemetry. "
     "The usual port is 4318. Default none.",
     flag_address, FIELD(otlp.listen), .expected = FLAG_ADDRESS_EXPECTED},
    {"otlp.k8s-labels", NULL,
     "Give received series the labels node, namespace, pod and container, from their resource attributes "
     "k8s.node.name and so on. Default true.",
     agent_otlp_parse_k8s, FIELD(otlp.without_k8s)},
    {"otlp.promote-resource-attributes", "NAMES",
     "Further resource attributes that become labels of received series, separated by commas. Default none.",
     agent_otlp_parse_promoted, FIELD(otlp.promoted), .expected = "at most 60 names, separated by commas"},
    {"otlp.query-url", "URL",
     "Query API of a Prometheus that receives OpenTelemetry metrics instead of the agent, for scorers with "
     "the source OpenTelemetry and no host, such as http://prometheus:9090/api/v1/query_range. Default none.",
     agent_otlp_parse_url, FIELD(otlp.query_url), .expected = "an absolute http or https URL"},
    {"secrets.dir", "DIR", "Directory of Secrets, as files DIR/NAME/KEY; read for each round.", flag_text,
     FIELD(options.secrets_dir), .expected = "a path"},
    {"storage.path", "DIR", "Directory for files that outlive a restart, such as the remote-write spool.",
     flag_text, FIELD(options.storage_path), .expected = "a path"},
    {"once", NULL,
     "Run each scorer of the file, or of the cluster's ConfigMap, once, print the results and exit; with "
     "status 1 if any scorer failed.",
     flag_switch, FIELD(options.once)},
    {"output", "FORMAT", "Output of --once: table, json or prom. Default table.", agent_parse_output,
     FIELD(output), .expected = "table, json or prom"},
    {.name = NULL},
};

#undef FIELD

/* ---- Running ---- */

/* What signals and the agent's hooks serve; all but the agent may be NULL. */
struct running {
    struct agent *agent;
    struct site *site; /* while it serves */
    struct rw_sink *remote_write;
    struct agent_kube *kube;
    struct agent_otlp *otlp;
    const char *otlp_url;
};

static void agent_on_reload(void *arg)
{
    const struct running *running = arg;

    if (agent_reload(running->agent, NULL) < 0)
        log_debug("reload on SIGHUP failed");
    (void)site_reload(running->site, NULL);
}

static void agent_on_stop(void *arg, void (*done)(void *arg), void *done_arg)
{
    const struct running *running = arg;

    if (running->kube)
        agent_kube_stop(running->kube, done, done_arg);
    else
        done(done_arg);
}

static int agent_serve(struct running *running, const struct agent_flags *f, struct kube *cluster)
{
    CLEANUP(cleanup_kube_guard_free) struct kube_guard *guard = NULL;
    struct agent *a = running->agent;
    CLEANUP(cleanup_free) char *why = NULL;
    struct site_options o = {.probe_address = f->probe_address, .config_file = f->server.web_config_file};
    int r = server_flags_guard(&guard, &f->server, cluster, kube_rights_default);

    o.guard = kube_guard_httpd(guard);
    if (r == 0)
        r = web_start(&running->site, a, &o, f->lifecycle, &why);
    if (r == 0)
        r = agent_otlp_start(running->otlp, a, o.config_file, &why);
    if (r < 0) {
        log_error("cannot serve", L_STR("err", why ? why : strerror(-r)));
        return 1;
    }
    for (size_t i = 0; i < agent_state(a)->config->n_listen; i++)
        log_info("serving", L_STR("address", agent_state(a)->config->listen[i]));
    if (o.probe_address)
        log_info("serving probes", L_STR("address", o.probe_address));
    r = loop_run(agent_state(a)->loop);
    agent_otlp_stop(running->otlp, STOP_GRACE_MS);
    agent_set_access(a, NULL);
    running->site = site_stop(running->site, STOP_GRACE_MS);
    if (r < 0)
        log_error("the event loop failed", L_ERR(r));
    else
        log_info("stopped");
    return r < 0;
}

static void hook_config(void *arg, const struct config *c)
{
    const struct running *running = arg;

    if (running->remote_write)
        rw_sink_apply(running->remote_write, c->section, c->storage_path);
    agent_otlp_apply(running->otlp, c);
}

static void hook_render(void *arg)
{
    const struct running *running = arg;

    if (running->remote_write)
        rw_sink_refresh(running->remote_write);
    if (running->kube)
        agent_kube_render(running->kube);
    agent_otlp_render(running->otlp);
}

static const struct endpoint_status *hook_endpoints(void *arg, size_t *ret_n)
{
    const struct running *running = arg;

    return running->remote_write ? rw_sink_endpoints(running->remote_write, ret_n) : NULL;
}

static bool hook_election(void *arg, struct agent_election *ret)
{
    const struct running *running = arg;

    return running->kube && agent_kube_election(running->kube, ret);
}

static bool hook_otlp(void *arg, struct otlp_status *ret)
{
    const struct running *running = arg;

    return agent_otlp_status(running->otlp, ret);
}

static void agent_install_hooks(struct agent *a, struct running *running)
{
    const struct agent_hooks hooks = {
        .config = hook_config,
        .render = hook_render,
        .endpoints = hook_endpoints,
        .election = hook_election,
        .otlp = hook_otlp,
        .arg = running,
        .secrets = running->kube ? agent_kube_secrets(running->kube) : NULL,
        .store = agent_otlp_store(running->otlp),
        .otlp_url = running->otlp_url,
    };

    agent_set_hooks(a, &hooks);
}

static void agent_stop(struct agent *a, struct running *running)
{
    if (a)
        agent_set_hooks(a, NULL);
    running->kube = agent_kube_free(running->kube);
    running->remote_write = rw_sink_stop(running->remote_write, FLUSH_MS);
}

static int agent_run(struct agent_flags *f)
{
    CLEANUP(cleanup_loop_free) struct loop *loop = NULL;
    CLEANUP(cleanup_agent_otlp_free) struct agent_otlp *otlp = NULL;
    CLEANUP(cleanup_agent_free) struct agent *a = NULL;
    struct running running = {0};
    const struct signals_handlers handlers = {
        .stop = agent_on_stop, .reload = agent_on_reload, .arg = &running};
    struct signals signals;
    int status = 1, r = loop_new(&loop, &clock_system);

    f->options.section = &rw_config_section;
    if (r == 0 && !f->options.once)
        r = agent_otlp_new(&otlp, loop, &f->otlp);
    if (r == 0)
        r = agent_new(&a, loop, &f->options);
    running.agent = a;
    running.otlp = otlp;
    running.otlp_url = f->otlp.query_url;
    if (r == 0)
        r = signals_start(&signals, loop, &handlers);
    /* --once sends nothing: the series of its one round would end with stale markers at once. */
    if (r == 0 && !f->options.once)
        r = rw_sink_new(&running.remote_write, a);
    if (r == 0 && f->on_kubernetes)
        r = agent_kube_new(&running.kube, a, &f->kube, !f->options.secrets_dir);
    if (r < 0) {
        log_error("cannot start", L_ERR(r));
        agent_stop(a, &running);
        return 1;
    }
    agent_install_hooks(a, &running);
    if ((running.kube ? agent_kube_start(running.kube) : agent_reload(a, NULL)) == 0)
        status = f->options.once ? agent_run_once(agent_state(a), f->output)
                                 : agent_serve(&running, f, agent_kube_cluster(running.kube));
    agent_stop(a, &running);
    signals_stop(&signals);
    return status;
}

#define NEEDS_CLUSTER " requires a cluster: --managed-kubeconfig=FILE or, in a pod, --addon-namespace=NAME"

/* Fills in what the environment says. NULL, or what is wrong with the flags together. With --once, in a pod
 * too, a file is enough, and only flags ask for the cluster beside it. */
static const char *agent_complete_flags(struct agent_flags *f)
{
    bool asked = agent_kube_is_asked_for(&f->kube), has_cluster;

    f->options.log_level = f->server.has_log_level ? &f->server.log_level : NULL;
    f->options.log_format = f->server.has_log_format ? &f->server.log_format : NULL;
    if (f->probe_address && strcmp(f->probe_address, "0") == 0)
        f->probe_address = NULL;
    if (f->otlp.listen && strcmp(f->otlp.listen, "0") == 0)
        f->otlp.listen = NULL;
    f->kube.once = f->options.once;
    f->kube.cluster_name = f->options.cluster_name;
    f->on_kubernetes = agent_kube_options_complete(&f->kube);
    has_cluster = f->on_kubernetes && agent_kube_has_cluster(&f->kube);
    if (f->options.once && !(has_cluster && (asked || !f->options.config_file)))
        f->on_kubernetes = false;
    if (f->on_kubernetes)
        f->options.cluster_name = f->kube.cluster_name;
    if (!f->options.config_file && !has_cluster)
        return "missing flag: --config.file=FILE or, outside a pod, --managed-kubeconfig=FILE";
    if (f->on_kubernetes && f->kube.hub_kubeconfig && !f->kube.cluster_name)
        return "--hub-kubeconfig requires --cluster-name";
    if (f->kube.leader_elect && !f->options.once && !has_cluster)
        return "--leader-elect" NEEDS_CLUSTER;
    if (f->server.kubernetes_auth && !f->options.once && !has_cluster)
        return "--web.kubernetes-auth" NEEDS_CLUSTER;
    if (!f->options.config_file && !f->options.cluster_name)
        return "missing flag: --cluster-name=NAME";
    return NULL;
}

static int agent_main(int argc, char **argv)
{
    struct agent_flags f = {.server = server_flags_default};
    int status = flags_parse_all(&command_agent, argc, argv, &f);
    const char *error = status < 0 ? agent_complete_flags(&f) : NULL;

    if (error)
        return flags_error(&command_agent, error, "");
    if (status >= 0)
        return status;
    /* With --once the results go to stdout, and the log to stderr. */
    log_setup(f.server.log_level, f.server.log_format);
    return agent_run(&f);
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

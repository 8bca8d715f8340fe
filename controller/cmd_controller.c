/* `dynamic-scoring controller`: the hub's part. */
#include "controller/commands.h"
#include "controller/flags.h"
#include "controller/hub/pages/web.h"
#include "controller/hub/state/hub.h"
#include "controller/kube/client.h"
#include "controller/kube/config.h"
#include "controller/kube/guard.h"
#include "controller/kube/lease.h"
#include "controller/server_flags.h"
#include "controller/signals.h"
#include "exporter/base/clock.h"
#include "exporter/base/http.h"
#include "exporter/base/log.h"
#include "exporter/base/loop.h"
#include "exporter/base/trimmer.h"
#include "exporter/metric/metrics.h"
#include "exporter/metric/version.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

enum {
    STOP_GRACE_MS = 5000,
    MAX_INTERVAL_MS = 24 * 3600 * 1000,
    MAX_TIMEOUT_MS = 300 * 1000,
};

struct controller_flags {
    struct hub_options hub;
    struct kube_config_options kubeconfig;
    const char *metrics_address, *health_address;
    struct server_flags server;
};

/* ---- Flags ---- */

#define FIELD(name) .field = offsetof(struct controller_flags, name)

static const struct flag controller_flags[] = {
    {"kubeconfig", "FILE", "Kubeconfig of the hub. Default: the pod's service account.", flag_text,
     FIELD(kubeconfig.kubeconfig), .expected = "a path"},
    {"namespace", "NAMESPACE",
     "Namespace of DynamicScorers, the DynamicScoringConfig, their Secrets and the Lease. Default "
     "open-cluster-management.",
     flag_namespace, FIELD(hub.namespace), .expected = FLAG_NAMESPACE_EXPECTED},
    {"agent-namespace", "NAMESPACE",
     "Namespace of the agent and its ConfigMap on managed clusters. Default dynamic-scoring.", flag_namespace,
     FIELD(hub.agent_namespace), .expected = FLAG_NAMESPACE_EXPECTED},
    {"addon-name", "NAME",
     "Add-on that installs the agents: a cluster whose ManagedClusterAddOn of that name is not available "
     "counts as silent. Default dynamic-scoring-framework.",
     flag_text, FIELD(hub.addon_name), .expected = "a name"},
    {"leader-elect", NULL, "Elect a leader among replicas; the others stand by. Default false.", flag_switch,
     FIELD(hub.leader_elect)},
    {"metrics-bind-address", "ADDRESS",
     "Address that /metrics and the status pages are served on; 0 disables them. Default :8080.",
     flag_address, FIELD(metrics_address), .expected = FLAG_ADDRESS_EXPECTED},
    {"health-probe-bind-address", "ADDRESS",
     "Address that /healthz and /readyz are served on; 0 disables them. Default :8081.", flag_address,
     FIELD(health_address), .expected = FLAG_ADDRESS_EXPECTED},
    {"health-check-interval", "DURATION",
     "Interval between health checks of a scoring API, from 1s to 24h. Default 30s.", flag_duration,
     FIELD(hub.probe.interval_ms), .expected = "a duration from 1s to 24h", .min = 1000,
     .max = MAX_INTERVAL_MS},
    {"health-check-timeout", "DURATION",
     "Timeout of each request to a scoring API, from 100ms to 5m. Default 10s.", flag_duration,
     FIELD(hub.probe.timeout_ms), .expected = "a duration from 100ms to 5m", .min = 100,
     .max = MAX_TIMEOUT_MS},
    {"unhealthy-threshold", "N",
     "Consecutive failures after which a scoring API is unhealthy, 1 to 100. Default 3.", flag_number,
     FIELD(hub.probe.unhealthy_after), .expected = "1 to 100", .max = 100},
    {"healthy-threshold", "N",
     "Consecutive successes after which a scoring API is healthy again, 1 to 100. Default 2.", flag_number,
     FIELD(hub.probe.healthy_after), .expected = "1 to 100", .max = 100},
    {"keep-unhealthy", NULL, "Keep unhealthy scorers in the clusters' summaries. Default false.", flag_switch,
     FIELD(hub.keep_unhealthy)},
    {"refuse-private-addresses", NULL,
     "Refuse to connect to scoring APIs at private, loopback and link-local addresses. Default false.",
     flag_switch, FIELD(hub.probe.public_only)},
    {"kube-api-qps", "N",
     "ManifestWorks written per second, 1 to 100000, and a quarter more for clusters that join. Default 200.",
     flag_number, FIELD(hub.api_qps), .expected = "1 to 100000", .max = 100000},
    {"kube-api-burst", "N", "ManifestWorks written at once, 1 to 100000. Default 400.", flag_number,
     FIELD(hub.api_burst), .expected = "1 to 100000", .max = 100000},
    {.name = NULL},
};

#undef FIELD

/* ---- Running ---- */

struct program {
    struct loop *loop;
    struct hub *hub;
    struct hub_web *web; /* while it serves */
};

static void controller_on_stop(void *arg, void (*done)(void *arg), void *done_arg)
{
    hub_stop(((struct program *)arg)->hub, done, done_arg);
}

static void controller_on_reload(void *arg)
{
    struct program *p = arg;

    if (p->web)
        hub_web_reload(p->web);
}

static int controller_serve(struct program *p, const struct controller_flags *f)
{
    CLEANUP(cleanup_kube_guard_free) struct kube_guard *guard = NULL;
    CLEANUP(cleanup_free) char *why = NULL;
    struct hub_web_options o = {.loop = p->loop,
                                .hub = p->hub,
                                .metrics = f->hub.metrics,
                                .metrics_address = f->metrics_address,
                                .health_address = f->health_address,
                                .config_file = f->server.web_config_file};
    struct trimmer trimmer;
    int r = server_flags_guard(&guard, &f->server, f->hub.kube, kube_rights_default);

    o.guard = kube_guard_httpd(guard);
    if (r == 0)
        r = hub_web_start(&p->web, &o, &why);
    if (r < 0) {
        log_error("cannot serve", L_STR("err", why ? why : strerror(-r)));
        return 1;
    }
    log_info("serving", L_STR("metrics", f->metrics_address), L_STR("health", f->health_address));
    r = trimmer_start(&trimmer, p->loop);
    if (r == 0)
        r = loop_run(p->loop);
    trimmer_stop(&trimmer);
    p->web = hub_web_stop(p->web, STOP_GRACE_MS);
    if (r < 0)
        log_error("the event loop failed", L_ERR(r));
    else
        log_info("stopped");
    return r < 0;
}

static void controller_on_turn(void *arg, double seconds)
{
    metric_observe(arg, METRIC_LOOP_STALL, LV_NONE, seconds);
}

static int controller_run(struct controller_flags *f)
{
    CLEANUP(cleanup_loop_free) struct loop *loop = NULL;
    CLEANUP(cleanup_http_free) struct http *http = NULL;
    CLEANUP(cleanup_kube_free) struct kube *kube = NULL;
    CLEANUP(cleanup_metrics_free) struct metrics *metrics = NULL;
    CLEANUP(cleanup_hub_free) struct hub *hub = NULL;
    const struct kube_options options = {.label = "hub", .config = f->kubeconfig};
    struct program p = {0};
    const struct signals_handlers handlers = {
        .stop = controller_on_stop, .reload = controller_on_reload, .arg = &p};
    struct signals signals;
    char agent[64], identity[KUBE_IDENTITY_BYTES];
    int status = 1, r = loop_new(&loop, &clock_system);

    (void)snprintf(agent, sizeof(agent), "dynamic-scoring/%s", ds_version);
    kube_lease_make_identity(identity);
    p.loop = loop;
    if (r == 0)
        r = signals_start(&signals, loop, &handlers);
    if (r == 0)
        r = http_new(&http, loop, agent);
    if (r == 0)
        r = kube_new(&kube, loop, http, &options);
    /* Later the last good credentials stay in use; at the start a bad kubeconfig is a mistake. */
    if (r == 0 && kube_trouble(kube)) {
        log_error("cannot start", L_STR("err", kube_trouble(kube)));
        return 1;
    }
    if (r == 0)
        r = metrics_new(&metrics, METRIC_OWNER_LOOP);
    if (r == 0)
        loop_on_turn(loop, controller_on_turn, metrics);
    f->hub.loop = loop;
    f->hub.http = http;
    f->hub.kube = kube;
    f->hub.metrics = metrics;
    f->hub.identity = identity;
    if (r == 0)
        r = hub_new(&hub, &f->hub);
    if (r < 0) {
        log_error("cannot start", L_ERR(r));
        return 1;
    }
    p.hub = hub;
    status = controller_serve(&p, f);
    signals_stop(&signals);
    return status;
}

static int controller_main(int argc, char **argv)
{
    struct controller_flags f = {
        .hub =
            {.namespace = "open-cluster-management",
             .agent_namespace = "dynamic-scoring",
             .addon_name = "dynamic-scoring-framework",
             .probe = {.interval_ms = 30000, .timeout_ms = 10000, .unhealthy_after = 3, .healthy_after = 2},
             .api_qps = 200,
             .api_burst = 400},
        .metrics_address = ":8080",
        .health_address = ":8081",
        .server = server_flags_default,
    };
    int status = flags_parse_all(&command_controller, argc, argv, &f);

    if (status >= 0)
        return status;
    log_setup(f.server.log_level, f.server.log_format);
    return controller_run(&f);
}

const struct command command_controller = {
    .name = "controller",
    .arguments = "[flags]",
    .help = "Check scoring APIs and distribute scorers to managed clusters. Runs on the hub.",
    .flags = controller_flags,
    .shared = server_flags,
    .shared_at = offsetof(struct controller_flags, server),
    .run = controller_main,
};

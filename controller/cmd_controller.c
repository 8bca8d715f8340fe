/* `dynamic-scoring controller`: the hub's part. */
#include "controller/flags.h"
#include "controller/hub/hub.h"
#include "controller/hub/pages/web.h"
#include "controller/kube/lease.h"
#include "controller/role.h"
#include "exporter/base/log.h"

struct controller_flags {
    struct hub_options hub;
    const char *kubeconfig, *metrics_address, *health_address;
    struct server_flags server;
};

#define FIELD(name) .field = offsetof(struct controller_flags, name)

static const struct flag controller_flags[] = {
    {"kubeconfig", FLAG_PATH, FIELD(kubeconfig),
     "Kubeconfig of the hub. Default: the pod's service account."},
    {"namespace", FLAG_NAMESPACE, FIELD(hub.namespace),
     "Namespace of DynamicScorers, the DynamicScoringConfig, their Secrets and the Lease. Default "
     "open-cluster-management."},
    {"agent-namespace", FLAG_NAMESPACE, FIELD(hub.agent_namespace),
     "Namespace of the agent and its ConfigMap on managed clusters. Default dynamic-scoring."},
    {"addon-name", FLAG_NAME, FIELD(hub.addon_name),
     "Add-on that installs the agents: a cluster whose ManagedClusterAddOn of that name is not available "
     "counts as silent. Default dynamic-scoring-framework."},
    {"leader-elect", FLAG_SWITCH, FIELD(hub.leader_elect),
     "Elect a leader among replicas; the others stand by. Default false."},
    {"metrics-bind-address", FLAG_ADDRESS, FIELD(metrics_address),
     "Address that /metrics and the status pages are served on; 0 disables them. Default :8080."},
    {"health-probe-bind-address", FLAG_ADDRESS, FIELD(health_address),
     "Address that /healthz and /readyz are served on; 0 disables them. Default :8081."},
    {"health-check-interval", FLAG_DURATION, FIELD(hub.probe.interval_ms),
     "Interval between health checks of a scoring API, from 1s to 24h. Default 30s.", .min = 1000,
     .max = 24 * 3600 * 1000},
    {"health-check-timeout", FLAG_DURATION, FIELD(hub.probe.timeout_ms),
     "Timeout of each request to a scoring API, from 100ms to 5m. Default 10s.", .min = 100,
     .max = 300 * 1000},
    {"unhealthy-threshold", FLAG_NUMBER, FIELD(hub.probe.unhealthy_after),
     "Consecutive failures after which a scoring API is unhealthy, 1 to 100. Default 3.", .max = 100},
    {"healthy-threshold", FLAG_NUMBER, FIELD(hub.probe.healthy_after),
     "Consecutive successes after which a scoring API is healthy again, 1 to 100. Default 2.", .max = 100},
    {"keep-unhealthy", FLAG_SWITCH, FIELD(hub.keep_unhealthy),
     "Keep unhealthy scorers in the clusters' summaries. Default false."},
    {"refuse-private-addresses", FLAG_SWITCH, FIELD(hub.probe.public_only),
     "Refuse to connect to scoring APIs at private, loopback and link-local addresses. Default false."},
    {"kube-api-qps", FLAG_NUMBER, FIELD(hub.api_qps),
     "ManifestWorks written per second, 1 to 100000, and a quarter more for clusters that join. Default 200.",
     .max = 100000},
    {"kube-api-burst", FLAG_NUMBER, FIELD(hub.api_burst),
     "ManifestWorks written at once, 1 to 100000. Default 400.", .max = 100000},
    {.name = NULL},
};

struct controller {
    struct role role;
    struct hub *hub;
};

static void controller_on_stop(struct role *r, void (*done)(void *arg), void *done_arg)
{
    hub_stop(CONTAINER_OF(r, struct controller, role)->hub, done, done_arg);
}

static int controller_run(struct controller *c, struct controller_flags *f)
{
    struct site_options o =
        role_site(&c->role, &f->metrics_address, f->metrics_address != NULL, f->health_address);
    char identity[KUBE_IDENTITY_BYTES], *why = NULL;
    int r;

    kube_lease_make_identity(identity);
    f->hub.loop = c->role.loop;
    f->hub.trim = &c->role.trim;
    f->hub.http = c->role.http;
    f->hub.kube = c->role.kube;
    f->hub.metrics = c->role.metrics;
    f->hub.identity = identity;
    c->hub = hub_new(&f->hub);
    r = hub_web_start(&c->role.site, c->hub, &o, &why);
    if (r == 0)
        log_info("serving", L_STR("metrics", f->metrics_address), L_STR("health", f->health_address));
    r = role_run(&c->role, r, why);
    c->hub = hub_free(c->hub);
    return r;
}

static int controller_main(char **argv)
{
    struct controller c = {.role.on_stop = controller_on_stop};
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
    int status;

    if (!flags_parse(&command_controller, argv, &f, &status))
        return status;
    status = role_open_kube(&c.role, "hub", f.kubeconfig, &f.server, NULL) == 0 ? controller_run(&c, &f) : 1;
    role_close(&c.role);
    return status;
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

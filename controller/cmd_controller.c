/* `dynamic-scoring controller`: the hub's part. */
#include "controller/commands.h"
#include "controller/flags.h"
#include "controller/hub/pages/web.h"
#include "controller/hub/state/hub.h"
#include "controller/kube/guard.h"
#include "controller/kube/lease.h"
#include "controller/kube_program.h"
#include "controller/server_flags.h"
#include "controller/signals.h"
#include "exporter/base/log.h"
#include "exporter/ui/site.h"

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
    const char *kubeconfig;
    const char *metrics_address, *health_address;
    struct server_flags server;
};

/* ---- Flags ---- */

#define FIELD(name) .field = offsetof(struct controller_flags, name)

static const struct flag controller_flags[] = {
    {"kubeconfig", "FILE", "Kubeconfig of the hub. Default: the pod's service account.", flag_text,
     FIELD(kubeconfig), .expected = "a path"},
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
    struct kube_program *base;
    struct hub *hub;
    struct site *site; /* while it serves */
};

static void controller_on_stop(void *arg, void (*done)(void *arg), void *done_arg)
{
    hub_stop(((struct program *)arg)->hub, done, done_arg);
}

static void controller_on_reload(void *arg)
{
    (void)site_reload(((struct program *)arg)->site, NULL);
}

static int controller_serve(struct program *p, const struct controller_flags *f)
{
    CLEANUP(cleanup_kube_guard_free) struct kube_guard *guard = NULL;
    CLEANUP(cleanup_free) char *why = NULL;
    struct site_options o = {.loop = p->base->loop,
                             .metrics = f->hub.metrics,
                             .listen = &f->metrics_address,
                             .n_listen = strcmp(f->metrics_address, "0") != 0,
                             .probe_address = f->health_address,
                             .config_file = f->server.web_config_file};
    int r = server_flags_guard(&guard, &f->server, f->hub.kube, kube_rights_default);

    o.guard = kube_guard_httpd(guard);
    if (r == 0)
        r = hub_web_start(&p->site, p->hub, &o, &why);
    if (r < 0) {
        log_error("cannot serve", L_STR("err", why ? why : strerror(-r)));
        return 1;
    }
    log_info("serving", L_STR("metrics", f->metrics_address), L_STR("health", f->health_address));
    r = kube_program_run(p->base);
    p->site = site_stop(p->site, STOP_GRACE_MS);
    return kube_program_status(r);
}

static int controller_run(struct controller_flags *f)
{
    CLEANUP(kube_program_done) struct kube_program base = {0};
    CLEANUP(cleanup_hub_free) struct hub *hub = NULL;
    struct program p = {.base = &base};
    const struct signals_handlers handlers = {
        .stop = controller_on_stop, .reload = controller_on_reload, .arg = &p};
    char identity[KUBE_IDENTITY_BYTES];

    if (kube_program_start(&base, "hub", f->kubeconfig, &handlers) < 0)
        return 1;
    kube_lease_make_identity(identity);
    f->hub.loop = base.loop;
    f->hub.http = base.http;
    f->hub.kube = base.kube;
    f->hub.metrics = base.metrics;
    f->hub.identity = identity;
    hub = hub_new(&f->hub);
    p.hub = hub;
    return controller_serve(&p, f);
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

/* `dynamic-scoring controller`: the hub's part. */
#include "controller/commands.h"
#include "controller/hub/pages/web.h"
#include "exporter/base/httpd.h"
#include "exporter/base/log.h"
#include "exporter/base/rand.h"
#include "exporter/metric/version.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>

enum {
    STOP_GRACE_MS = 5000,
    MAX_INTERVAL_MS = 24 * 3600 * 1000,
    MAX_TIMEOUT_MS = 300 * 1000,
    MAX_THRESHOLD = 100,
    MAX_QPS = 100000,
    MAX_NAMESPACE = 63,
};

struct flagged {
    struct hub_options hub;
    struct kube_config_options kubeconfig;
    const char *metrics_address, *health_address;
    enum log_level log_level;
    enum log_format log_format;
};

/* ---- Flags ---- */

static const char *take_kubeconfig(void *arg, const char *v)
{
    ((struct flagged *)arg)->kubeconfig.kubeconfig = v;
    return *v ? NULL : "a path";
}

/* An RFC 1123 label, as the API server wants it. */
static const char *wrong_namespace(const char *v)
{
    size_t n = strspn(v, "abcdefghijklmnopqrstuvwxyz0123456789-");

    return n > 0 && n <= MAX_NAMESPACE && !v[n] && v[0] != '-' && v[n - 1] != '-'
               ? NULL
               : "a namespace: at most 63 of a-z, 0-9 and -, the first and the last no -";
}

static const char *take_namespace(void *arg, const char *v)
{
    ((struct flagged *)arg)->hub.namespace = v;
    return wrong_namespace(v);
}

static const char *take_agent_namespace(void *arg, const char *v)
{
    ((struct flagged *)arg)->hub.agent_namespace = v;
    return wrong_namespace(v);
}

static const char *wrong_address(const char *v)
{
    return strcmp(v, "0") == 0 || httpd_is_address(v)
               ? NULL
               : "host:port, :port, or 0 for none; ports are 0 to 65535";
}

static const char *take_metrics_address(void *arg, const char *v)
{
    ((struct flagged *)arg)->metrics_address = v;
    return wrong_address(v);
}

static const char *take_health_address(void *arg, const char *v)
{
    ((struct flagged *)arg)->health_address = v;
    return wrong_address(v);
}

static const char *take_interval(void *arg, const char *v)
{
    return flag_duration(v, 1000, MAX_INTERVAL_MS, &((struct flagged *)arg)->hub.probe.interval_ms)
               ? NULL
               : "a duration from 1s to 24h";
}

static const char *take_timeout(void *arg, const char *v)
{
    return flag_duration(v, 100, MAX_TIMEOUT_MS, &((struct flagged *)arg)->hub.probe.timeout_ms)
               ? NULL
               : "a duration from 100ms to 5m";
}

static const char *take_unhealthy(void *arg, const char *v)
{
    return flag_number(v, MAX_THRESHOLD, &((struct flagged *)arg)->hub.probe.unhealthy_after) ? NULL
                                                                                              : "1 to 100";
}

static const char *take_healthy(void *arg, const char *v)
{
    return flag_number(v, MAX_THRESHOLD, &((struct flagged *)arg)->hub.probe.healthy_after) ? NULL
                                                                                            : "1 to 100";
}

static const char *take_qps(void *arg, const char *v)
{
    return flag_number(v, MAX_QPS, &((struct flagged *)arg)->hub.api_qps) ? NULL : "1 to 100000";
}

static const char *take_burst(void *arg, const char *v)
{
    return flag_number(v, MAX_QPS, &((struct flagged *)arg)->hub.api_burst) ? NULL : "1 to 100000";
}

static const char *take_leader_elect(void *arg, const char *v)
{
    ((struct flagged *)arg)->hub.leader_elect = flag_on(v);
    return NULL;
}

static const char *take_keep(void *arg, const char *v)
{
    ((struct flagged *)arg)->hub.keep_unhealthy = flag_on(v);
    return NULL;
}

static const char *take_refuse(void *arg, const char *v)
{
    ((struct flagged *)arg)->hub.probe.public_only = flag_on(v);
    return NULL;
}

static const char *take_level(void *arg, const char *v)
{
    return log_level_parse(str_of(v), &((struct flagged *)arg)->log_level) ? NULL
                                                                           : "debug, info, warn or error";
}

static const char *take_format(void *arg, const char *v)
{
    return log_format_parse(str_of(v), &((struct flagged *)arg)->log_format) ? NULL : "logfmt or json";
}

static const struct flag flags[] = {
    {"kubeconfig", "FILE", "The hub. By default the cluster that this pod runs in.", take_kubeconfig},
    {"namespace", "NAMESPACE",
     "Where DynamicScorers, the DynamicScoringConfig, their Secrets and the Lease are. Default "
     "open-cluster-management.",
     take_namespace},
    {"agent-namespace", "NAMESPACE", "Where the ConfigMap goes on managed clusters. Default dynamic-scoring.",
     take_agent_namespace},
    {"leader-elect", NULL, "Of several replicas one works and the others stand by. Default false.",
     take_leader_elect},
    {"metrics-bind-address", "ADDRESS", "/metrics and the status page. Default :8080; 0 for none.",
     take_metrics_address},
    {"health-probe-bind-address", "ADDRESS", "/healthz and /readyz. Default :8081; 0 for none.",
     take_health_address},
    {"health-check-interval", "DURATION",
     "Time between two looks at a scoring API, from 1s to 24h. Default 30s.", take_interval},
    {"health-check-timeout", "DURATION",
     "Deadline of each request to a scoring API, from 100ms to 5m. Default 10s.", take_timeout},
    {"unhealthy-threshold", "N", "Failures in a row that make a scoring API unhealthy, 1 to 100. Default 3.",
     take_unhealthy},
    {"healthy-threshold", "N", "Successes in a row that make it healthy again, 1 to 100. Default 2.",
     take_healthy},
    {"keep-unhealthy", NULL, "Leave unhealthy scorers in the clusters' summaries. Default false.", take_keep},
    {"refuse-private-addresses", NULL,
     "Do not connect to scoring APIs in private, loopback and link-local address ranges. Default false.",
     take_refuse},
    {"kube-api-qps", "N",
     "ManifestWorks written in each second, and a quarter of that for clusters that join, 1 to 100000. "
     "Default 200.",
     take_qps},
    {"kube-api-burst", "N", "The same at once, 1 to 100000. Default 400.", take_burst},
    {"log.level", "LEVEL", "debug, info, warn or error. Default info.", take_level},
    {"log.format", "FORMAT", "logfmt or json. Default logfmt.", take_format},
    {NULL, NULL, NULL, NULL},
};

/* ---- Running ---- */

struct program {
    struct loop *loop;
    struct hub *hub;
    struct watch signals;
    struct timer late; /* ends the wait for the Lease to be given back */
    bool stopping;
};

static void on_stopped(void *arg)
{
    loop_stop(((struct program *)arg)->loop);
}

static void on_late(struct timer *t)
{
    loop_stop(CONTAINER_OF(t, struct program, late)->loop);
}

/* A second signal does not wait. */
static void got_signal(struct watch *w)
{
    struct program *p = CONTAINER_OF(w, struct program, signals);
    struct signalfd_siginfo info;

    while (read(w->fd, &info, sizeof(info)) == sizeof(info)) {
        log_info("stopping", L_STR("signal", strsignal((int)info.ssi_signo)));
        if (p->stopping ||
            loop_timer_set(p->loop, &p->late, mono_add(loop_now(p->loop), STOP_GRACE_MS)) < 0) {
            loop_stop(p->loop);
            return;
        }
        p->stopping = true;
        hub_stop(p->hub, on_stopped, p);
    }
}

static int watch_signals(struct program *p)
{
    sigset_t set;

    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGTERM);
    if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
        return -errno;
    p->signals.fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    if (p->signals.fd < 0)
        return -errno;
    loop_watch_add(p->loop, &p->signals);
    return 0;
}

/* The pod's name, or the host's, and a part that no other process has. */
static void make_identity(char out[300])
{
    char host[256] = "unknown";

    (void)gethostname(host, sizeof(host) - 1);
    (void)snprintf(out, 300, "%s_%016llx", host, (unsigned long long)rand_u64());
}

static int serve(struct program *p, const struct flagged *f, struct metrics *metrics)
{
    const struct hub_web_options o = {.loop = p->loop,
                                      .hub = p->hub,
                                      .metrics = metrics,
                                      .metrics_address = f->metrics_address,
                                      .health_address = f->health_address};
    CLEANUP(cleanup_free) char *why = NULL;
    struct hub_web *web;
    int r = hub_web_start(&web, &o, &why);

    if (r < 0) {
        log_error("cannot serve", L_STR("err", why ? why : strerror(-r)));
        return 1;
    }
    log_info("serving", L_STR("metrics", f->metrics_address), L_STR("health", f->health_address));
    r = loop_run(p->loop);
    (void)hub_web_stop(web, STOP_GRACE_MS);
    if (r < 0)
        log_error("the event loop failed", L_ERR(r));
    else
        log_info("stopped");
    return r < 0;
}

static int run_controller(struct flagged *f)
{
    CLEANUP(cleanup_loop_free) struct loop *loop = NULL;
    CLEANUP(cleanup_http_free) struct http *http = NULL;
    CLEANUP(cleanup_kube_free) struct kube *kube = NULL;
    CLEANUP(cleanup_metrics_free) struct metrics *metrics = NULL;
    CLEANUP(cleanup_hub_free) struct hub *hub = NULL;
    const struct kube_options options = {.label = "hub", .config = f->kubeconfig};
    struct program p = {.signals = {.fn = got_signal}, .late = {.fn = on_late}};
    char agent[64], identity[300];
    int status = 1, r = loop_new(&loop, &clock_system);

    (void)snprintf(agent, sizeof(agent), "dynamic-scoring/%s", ds_version);
    make_identity(identity);
    p.loop = loop;
    if (r == 0)
        r = watch_signals(&p);
    if (r == 0)
        r = http_new(&http, loop, agent);
    if (r == 0)
        r = kube_new(&kube, loop, http, &options);
    /* Later it may be broken for a while: the last good credentials stay in use. At first it is a mistake. */
    if (r == 0 && kube_trouble(kube)) {
        log_error("cannot start", L_STR("err", kube_trouble(kube)));
        return 1;
    }
    if (r == 0)
        r = metrics_new(&metrics, METRIC_OWNER_LOOP);
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
    status = serve(&p, f, metrics);
    loop_timer_clear(loop, &p.late);
    loop_watch_remove(loop, &p.signals);
    (void)close(p.signals.fd);
    return status;
}

static int run(int argc, char **argv)
{
    CLEANUP(cleanup_free) const char **rest = calloc((size_t)argc, sizeof(*rest));
    struct flagged f = {
        .hub =
            {.namespace = "open-cluster-management",
             .agent_namespace = "dynamic-scoring",
             .probe = {.interval_ms = 30000, .timeout_ms = 10000, .unhealthy_after = 3, .healthy_after = 2},
             .api_qps = 200,
             .api_burst = 400},
        .metrics_address = ":8080",
        .health_address = ":8081",
        .log_level = LOG_LEVEL_INFO,
        .log_format = LOG_FORMAT_LOGFMT,
    };
    int n = rest ? flags_parse(&command_controller, argc, argv, &f, rest) : -1;

    if (n == -2)
        return 0;
    if (n > 0)
        (void)fprintf(stderr,
                      "dynamic-scoring controller: unexpected argument: %s\nTry 'dynamic-scoring controller "
                      "--help'.\n",
                      rest[0]);
    if (n != 0)
        return EXIT_USAGE;
    log_setup(f.log_level, f.log_format);
    return run_controller(&f);
}

const struct command command_controller = {
    .name = "controller",
    .arguments = "[flags]",
    .help = "Check scoring APIs and send each cluster its scorers (on the hub).",
    .flags = flags,
    .run = run,
};

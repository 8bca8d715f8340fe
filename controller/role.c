/* What the roles of the program share: flags of servers, signals, an API server's client, the end. A
 * struct role owns the loop and all that it opens. On the main thread, which becomes the loop's. */
#include "controller/role.h"

#include "controller/flags.h"
#include "controller/kube/client.h"
#include "controller/kube/guard.h"
#include "exporter/base/alloc.h"
#include "exporter/base/clock.h"
#include "exporter/base/log.h"
#include "exporter/base/trim.h"

#include <errno.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

/* ---- Flags ---- */

const struct server_flags server_flags_default = {
    .log_level = -1, .log_format = -1, .auth_cache_ttl_ms = 60 * 1000, .auth_timeout_ms = 10 * 1000};

#define FIELD(name) .field = offsetof(struct server_flags, name)

const struct flag server_flags[] = {
    {"web.kubernetes-auth", FLAG_SWITCH, FIELD(kubernetes_auth),
     "Answer a request only if the user of its bearer token or client certificate may, by the RBAC of the "
     "cluster, get /metrics, post /-/reload, post /optimize (in the optimizer: requests that plan or write), "
     "or get /status for all other paths; probes on an address of their own stay open. Default false."},
    {"web.kubernetes-auth.cache-ttl", FLAG_DURATION, FIELD(auth_cache_ttl_ms),
     "How long an allowed token is not reviewed again, from 0s to 1h; a refused one, for at most 10s of it. "
     "Default 1m.",
     .max = 3600 * 1000},
    {"web.kubernetes-auth.timeout", FLAG_DURATION, FIELD(auth_timeout_ms),
     "Timeout of the API server's review of a token, from 100ms to 1m. Default 10s.", .min = 100,
     .max = 60 * 1000},
    {"web.config.file", FLAG_PATH, FIELD(web_config_file),
     "Web configuration file, as Prometheus' exporters have it: TLS, basic authentication, headers and a "
     "rate limit. Not for the address of the probes. Read again when it changes. Default none."},
    {"log.level", FLAG_WORD, FIELD(log_level), "Log level: debug, info, warn or error. Default info.",
     "LEVEL", .words = log_levels},
    {"log.format", FLAG_WORD, FIELD(log_format), "Log format: logfmt or json. Default logfmt.",
     .words = log_formats},
    {.name = NULL},
};

/* ---- The role ---- */

static void role_on_stopped(void *arg)
{
    loop_stop(((struct role *)arg)->loop);
}

static void role_on_signal(struct watch *w)
{
    struct role *r = CONTAINER_OF(w, struct role, signals);
    struct signalfd_siginfo info;

    while (read(w->fd, &info, sizeof(info)) == sizeof(info)) {
        if (info.ssi_signo == SIGHUP) {
            if (r->on_reload)
                r->on_reload(r);
            (void)site_reload(r->site, NULL);
            continue;
        }
        log_info("stopping", L_STR("signal", strsignal((int)info.ssi_signo)));
        if (r->on_stop && !r->stopping)
            r->on_stop(r, role_on_stopped, r);
        else
            loop_stop(r->loop);
        r->stopping = true;
    }
}

static int role_watch_signals(struct role *r)
{
    sigset_t set;

    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGHUP);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    r->signals = (struct watch){.fn = role_on_signal, .fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC)};
    if (r->signals.fd < 0)
        return -errno;
    return loop_watch(r->loop, &r->signals);
}

int role_open(struct role *r, const struct server_flags *f)
{
    int error;

    r->flags = f;
    log_setup(f->log_level < 0 ? LOG_LEVEL_INFO : (enum log_level)f->log_level,
              f->log_format < 0 ? LOG_FORMAT_LOGFMT : (enum log_format)f->log_format);
    error = loop_new(&r->loop, &clock_system) ?: role_watch_signals(r);
    if (error < 0)
        (void)role_failed("cannot start", error, NULL);
    return error;
}

static void role_on_turn(void *arg, double seconds)
{
    metric_observe(arg, METRIC_LOOP_STALL, LV_NONE, seconds);
}

int role_open_kube(struct role *r, const char *label, const char *kubeconfig, const struct server_flags *f,
                   const struct kube_path_right *rights)
{
    CLEANUP(cleanup_free) char *agent = xasprintf("dynamic-scoring/%s", ds_version);
    int error = role_open(r, f);

    if (error < 0)
        return error;
    r->http = http_new(r->loop, agent);
    r->kube = kube_new(r->loop, r->http, label, kubeconfig);
    r->metrics = metrics_new(METRIC_OWNER_LOOP);
    metric_set(r->metrics, METRIC_BUILD_INFO, LV(ds_revision, ds_version), 1);
    loop_on_turn(r->loop, role_on_turn, r->metrics);
    if (f->kubernetes_auth)
        r->guard = kube_guard_new(r->kube, f->auth_cache_ttl_ms, f->auth_timeout_ms, rights);
    /* Later the last good credentials stay in use; at the start a bad kubeconfig is a mistake. */
    if (!kube_credentials_error(r->kube))
        return 0;
    (void)role_failed("cannot start", 0, xstrdup(kube_credentials_error(r->kube)));
    return -EINVAL;
}

struct site_options role_site(const struct role *r, const char *const *listen, size_t n_listen,
                              const char *probe_address)
{
    return (struct site_options){.access = {.loop = r->loop,
                                            .metrics = r->metrics,
                                            .file = r->flags->web_config_file,
                                            .guard = kube_guard_httpd(r->guard)},
                                 .listen = listen,
                                 .n_listen = n_listen,
                                 .probe_address = probe_address};
}

int role_failed(const char *what, int r, char *why)
{
    log_error(what, L_STR("err", why ? why : strerror(-r)));
    free(why);
    return 1;
}

int role_run(struct role *role, int r, char *why)
{
    if (r < 0)
        return role_failed("cannot serve", r, why);
    trim_in(&role->trim, role->loop, FIRST_TRIM_MS);
    r = loop_run(role->loop);
    trim_stop(&role->trim);
    if (role->on_end)
        role->on_end(role);
    else
        role->site = site_stop(role->site, STOP_GRACE_MS);
    if (r < 0)
        log_error("the event loop failed", L_ERR(r));
    else
        log_info("stopped");
    return r < 0;
}

void role_close(struct role *r)
{
    if (r->signals.fn) {
        loop_unwatch(r->loop);
        (void)close(r->signals.fd);
    }
    r->guard = kube_guard_free(r->guard);
    r->metrics = metrics_free(r->metrics);
    r->kube = kube_free(r->kube);
    r->http = http_free(r->http);
    r->loop = loop_free(r->loop);
}

#include "controller/kube_program.h"

#include "controller/signals.h"
#include "exporter/base/clock.h"
#include "exporter/base/def.h"
#include "exporter/base/log.h"
#include "exporter/metric/version.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

static void program_on_stop(void *arg, void (*done)(void *arg), void *done_arg)
{
    (void)arg;
    done(done_arg);
}

static void program_on_turn(void *arg, double seconds)
{
    metric_observe(arg, METRIC_LOOP_STALL, LV_NONE, seconds);
}

static int program_open(struct kube_program *p, const char *label, const char *kubeconfig,
                        const struct signals_handlers *handlers)
{
    struct signals_handlers own = *handlers;
    char agent[64];
    int r = loop_new(&p->loop, &clock_system);

    if (r < 0)
        return r;
    own.stop = own.stop ? own.stop : program_on_stop;
    r = signals_start(&p->signals, p->loop, &own);
    p->has_signals = r == 0;
    (void)snprintf(agent, sizeof(agent), "dynamic-scoring/%s", ds_version);
    r = r ?: http_new(&p->http, p->loop, agent);
    if (r < 0)
        return r;
    p->kube = kube_new(p->loop, p->http, label, kubeconfig);
    p->metrics = metrics_new(METRIC_OWNER_LOOP);
    metric_set(p->metrics, METRIC_BUILD_INFO, LV(ds_revision, ds_version), 1);
    loop_on_turn(p->loop, program_on_turn, p->metrics);
    return 0;
}

int kube_program_start(struct kube_program *p, const char *label, const char *kubeconfig,
                       const struct signals_handlers *handlers)
{
    int r;

    *p = (struct kube_program){0};
    r = program_open(p, label, kubeconfig, handlers);
    if (r < 0) {
        log_error("cannot start", L_ERR(r));
        return r;
    }
    /* Later the last good credentials stay in use; at the start a bad kubeconfig is a mistake. */
    if (kube_trouble(p->kube)) {
        log_error("cannot start", L_STR("err", kube_trouble(p->kube)));
        return -EINVAL;
    }
    return 0;
}

int kube_program_run(struct kube_program *p)
{
    int r;

    r = loop_run(p->loop);
    return r;
}

int kube_program_status(int r)
{
    if (r < 0)
        log_error("the event loop failed", L_ERR(r));
    else
        log_info("stopped");
    return r < 0;
}

void kube_program_done(struct kube_program *p)
{
    if (p->has_signals)
        signals_stop(&p->signals);
    p->metrics = metrics_free(p->metrics);
    p->kube = kube_free(p->kube);
    p->http = http_free(p->http);
    p->loop = loop_free(p->loop);
}

static void signals_on_stopped(void *arg)
{
    loop_stop(arg);
}

static void signals_on_readable(struct watch *w)
{
    struct signals *s = CONTAINER_OF(w, struct signals, watch);
    struct signalfd_siginfo info;

    while (read(w->fd, &info, sizeof(info)) == sizeof(info)) {
        if (info.ssi_signo == SIGHUP) {
            s->handlers.reload(s->handlers.arg);
            continue;
        }
        log_info("stopping", L_STR("signal", strsignal((int)info.ssi_signo)));
        if (s->stopping)
            loop_stop(s->loop);
        else
            s->handlers.stop(s->handlers.arg, signals_on_stopped, s->loop);
        s->stopping = true;
    }
}

int signals_start(struct signals *s, struct loop *loop, const struct signals_handlers *handlers)
{
    sigset_t set;

    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGTERM);
    if (handlers->reload)
        (void)sigaddset(&set, SIGHUP);
    if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
        return -errno;
    *s = (struct signals){.watch = {.fn = signals_on_readable}, .loop = loop, .handlers = *handlers};
    s->watch.fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    if (s->watch.fd < 0)
        return -errno;
    loop_watch_add(loop, &s->watch);
    return 0;
}

void signals_stop(struct signals *s)
{
    loop_watch_remove(s->loop, &s->watch);
    (void)close(s->watch.fd);
}

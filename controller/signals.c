#include "controller/signals.h"

#include "exporter/base/def.h"
#include "exporter/base/log.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

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
    int r;

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
    r = loop_watch_add(loop, &s->watch);
    if (r < 0)
        (void)close(s->watch.fd);
    return r;
}

void signals_stop(struct signals *s)
{
    loop_watch_remove(s->loop, &s->watch);
    (void)close(s->watch.fd);
}

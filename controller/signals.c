#include "controller/signals.h"

#include "exporter/base/def.h"

#include <errno.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

static void signals_on_readable(struct watch *w)
{
    struct signals *s = CONTAINER_OF(w, struct signals, watch);
    struct signalfd_siginfo info;

    while (read(w->fd, &info, sizeof(info)) == sizeof(info))
        s->on_signal(s->arg, (int)info.ssi_signo);
}

int signals_start(struct signals *s, struct loop *loop, const int *numbers,
                  void (*on_signal)(void *arg, int number), void *arg)
{
    sigset_t set;
    int r;

    (void)sigemptyset(&set);
    for (; *numbers; numbers++)
        (void)sigaddset(&set, *numbers);
    if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
        return -errno;
    *s = (struct signals){
        .watch = {.fn = signals_on_readable}, .loop = loop, .on_signal = on_signal, .arg = arg};
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

/* Signals as events of the loop. */
#ifndef DS_CONTROLLER_SIGNALS_H
#define DS_CONTROLLER_SIGNALS_H

#include "exporter/base/loop.h"

struct signals_handlers {
    /* SIGINT or SIGTERM: ends what must end before the loop stops, then calls done(done_arg). */
    void (*stop)(void *arg, void (*done)(void *arg), void *done_arg);
    void (*reload)(void *arg); /* SIGHUP; NULL: as the system has it */
    void *arg;
};

struct signals {
    struct watch watch;
    struct loop *loop;
    struct signals_handlers handlers;
    bool stopping;
};

/* Hands signals to the handlers; a second one to stop stops the loop at once. Call it before any thread
 * starts, so that all threads leave them to the loop. Negative errno. */
MUST_USE int signals_start(struct signals *s, struct loop *loop, const struct signals_handlers *handlers);
void signals_stop(struct signals *s);

#endif

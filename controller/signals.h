/* Signals as events of the loop. */
#ifndef DS_CONTROLLER_SIGNALS_H
#define DS_CONTROLLER_SIGNALS_H

#include "exporter/base/loop.h"

struct signals {
    struct watch watch;
    struct loop *loop;
    void (*on_signal)(void *arg, int number);
    void *arg;
};

/* Blocks the signals (a list that ends with 0) and reports them to on_signal. Call it before any thread
 * starts, so that all threads leave them to the loop. Negative errno. */
MUST_USE int signals_start(struct signals *s, struct loop *loop, const int *numbers,
                           void (*on_signal)(void *arg, int number), void *arg);
void signals_stop(struct signals *s);

#endif

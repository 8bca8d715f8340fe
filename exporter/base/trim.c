/* Owns the timer of a process's trims. */
#include "exporter/base/trim.h"

#include "exporter/base/clock.h"
#include "exporter/base/def.h"
#include "exporter/base/spare.h"

#include <malloc.h>

enum { TRIM_MS = 60000 };

static void trim_memory(struct timer *timer)
{
    struct trim *t = CONTAINER_OF(timer, struct trim, timer);

    spare_trim();
    (void)malloc_trim(0);
    loop_timer_set(t->loop, timer, mono_add(loop_now(t->loop), TRIM_MS));
}

void trim_in(struct trim *t, struct loop *loop, int ms)
{
    t->loop = loop;
    t->timer.fn = trim_memory;
    loop_timer_set(loop, &t->timer, mono_add(loop_now(loop), ms));
}

void trim_stop(struct trim *t)
{
    if (t->loop)
        loop_timer_clear(t->loop, &t->timer);
}

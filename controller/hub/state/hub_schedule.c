#include "controller/hub/state/hub_schedule.h"

#include "controller/kube/client_internal.h"
#include "controller/kube/queue.h"
#include "exporter/base/clock.h"
#include "exporter/base/log.h"
#include "exporter/base/loop.h"

#include <stdio.h>

enum { PLAN_MS = 20, TALLY_MS = 1000, KEY_BYTES = 300 };

/* Never moves the timer to a later time: changes that keep coming do not put it off. */
static void schedule_within(struct hub *h, struct timer *t, int64_t ms)
{
    mono_ms at = mono_add(loop_now(h->o.loop), ms);

    if (mono_before(at, t->at))
        kube_timer_move(h->o.loop, t, ms);
}

void hub_schedule_plan(struct hub *h)
{
    schedule_within(h, &h->replan, PLAN_MS);
}

void hub_schedule_tally(struct hub *h)
{
    h->tallied = false;
    schedule_within(h, &h->retally, TALLY_MS);
}

static void schedule_status(struct hub *h, const char *kind, const char *name, bool hurry)
{
    char key[KEY_BYTES];

    if (!h->active || !h->planned)
        return;
    (void)snprintf(key, sizeof(key), "%s/%s", kind, name);
    if (hurry)
        kube_queue_forget(h->status, key);
    if (kube_queue_add(h->status, key) < 0)
        log_debug("status not scheduled: out of memory");
}

void hub_schedule_status(struct hub *h, const char *kind, const char *name)
{
    schedule_status(h, kind, name, false);
}

void hub_hurry_status(struct hub *h, const char *kind, const char *name)
{
    schedule_status(h, kind, name, true);
}

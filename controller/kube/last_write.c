#include "controller/kube/last_write.h"

#include "controller/kube/verdict.h"
#include "exporter/base/log.h"

enum { MIN_WAIT_MS = 500, MAX_WAIT_MS = 60 * 1000, SAME_MS = 10 * 60 * 1000, UNDONE_LOGGED = 3 };

int64_t last_write_note(struct last_write *w, bool same, mono_ms now, const char *kind, const char *name)
{
    bool undone = same && w->at.ms && mono_diff(w->at, now) < SAME_MS;

    w->at = now;
    w->undone = undone ? w->undone + 1 : 0;
    if (w->undone == UNDONE_LOGGED)
        log_warn("another writer keeps undoing our writes, backing off", L_STR("kind", kind),
                 L_STR("name", name));
    return undone ? kube_backoff_ms(w->undone, MIN_WAIT_MS, MAX_WAIT_MS, -1) : -1;
}

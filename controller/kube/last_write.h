/* The one rule about other writers: a write that another writer undid counts as a failure, so that its queue
 * backs off. */
#ifndef DS_KUBE_LAST_WRITE_H
#define DS_KUBE_LAST_WRITE_H

#include "exporter/base/clock.h"

#include <stdbool.h>

struct last_write {
    mono_ms at;      /* 0: nothing was written yet */
    unsigned undone; /* how often in a row another writer undid it */
};

/* Notes a successful write. When the same was written less than ten minutes ago, another writer has undone
 * that: returns how long to wait before the next write, in milliseconds, growing up to a minute. Otherwise
 * -1. The object is named in a log message. */
int64_t last_write_note(struct last_write *w, bool same, mono_ms now, const char *kind, const char *name);

#endif

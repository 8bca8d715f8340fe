/* What was last written to an object, and the one rule about other writers: a write that another writer
 * undid counts as a failure, so that its queue backs off. */
#ifndef DS_HUB_WRITES_H
#define DS_HUB_WRITES_H

#include "controller/kube/json.h"
#include "exporter/base/clock.h"

struct last_write {
    mono_ms at;      /* 0: nothing was written yet */
    unsigned undone; /* how often in a row another writer undid it */
};

/* The last status written, kept so that nothing is written twice. */
struct last_status {
    json_t *sent;
    json_t *result;    /* what the server stored: a CRD of another make may prune members */
    char version[128]; /* resourceVersion after the last write, of the status or of the finalizers */
    struct last_write status, finalizer;
};

/* Notes a successful write. When the same was written less than ten minutes ago, another writer has undone
 * that: returns how long to wait before the next write, in milliseconds, growing up to a minute. Otherwise
 * -1. The object is named in a log message. */
int64_t last_write_note(struct last_write *w, bool same, mono_ms now, const char *kind, const char *name);

void last_status_done(struct last_status *s);

/* Whether the merge patch would change anything in the status. */
bool status_would_change(const json_t *status, const json_t *patch);
/* Whether two statuses are equal but for the times of conditions; but for counts and the messages that
 * contain them. False when out of memory. */
bool status_equal_but_times(const json_t *a, const json_t *b);
bool status_equal_but_counts(const json_t *a, const json_t *b);

#endif

/* The last status written to an object, and comparing statuses. */
#ifndef DS_HUB_WRITES_H
#define DS_HUB_WRITES_H

#include "controller/kube/json.h"
#include "controller/kube/last_write.h"

/* The last status written, kept so that nothing is written twice. */
struct last_status {
    json_t *sent;
    json_t *result;    /* what the server stored: a CRD of another make may prune members */
    char version[128]; /* resourceVersion after the last write, of the status or of the finalizers */
    struct last_write status, finalizer;
};

void last_status_done(struct last_status *s);

/* Whether the merge patch would change anything in the status. */
bool status_would_change(const json_t *status, const json_t *patch);
/* Whether two statuses are equal but for the times of conditions; but for counts and the messages that
 * contain them. False when out of memory. */
bool status_equal_but_times(const json_t *a, const json_t *b);
bool status_equal_but_counts(const json_t *a, const json_t *b);

#endif

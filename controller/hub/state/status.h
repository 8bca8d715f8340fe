/* Statuses of DynamicScorers and DynamicScoringConfigs, computed from the state. Pure. */
#ifndef DS_HUB_STATUS_H
#define DS_HUB_STATUS_H

#include "controller/hub/probe/probe.h"
#include "controller/hub/state/state.h"
#include "exporter/base/clock.h"
#include "exporter/ui/out.h"

/* The complete status as a merge patch: null for members to remove. now: for conditions that change. A new
 * reference; NULL when out of memory. */
json_t *status_of_scorer(const struct hub_scorer *s, unix_ms now);
json_t *status_of_config(const struct hub *h, const struct hub_config *c, unix_ms now);
/* Sends Events for conditions that differ between two statuses. before may be NULL: then only for what is
 * wrong. */
void status_events(struct kube_events *e, const json_t *object, const char *kind, const json_t *before,
                   const json_t *after);
/* Whether condition Ready is true. */
bool status_scorer_ready(const struct hub_scorer *s);

/* ---- Comparing statuses ---- */

/* Whether the merge patch would change anything in the status. */
bool status_would_change(const json_t *status, const json_t *patch);
/* Whether two statuses are equal but for the times of conditions; but for counts and the messages that
 * contain them. False when out of memory. */
bool status_equal_but_times(const json_t *a, const json_t *b);
bool status_equal_but_counts(const json_t *a, const json_t *b);

/* ---- Parts of the statuses of both kinds: conditions, and members of a merge patch ---- */

enum truth { TRUTH_UNKNOWN, TRUTH_TRUE, TRUTH_FALSE };

/* A metav1.Condition without its times. A message contains nothing that changes all the time, such as
 * latencies: each change is a write. */
struct status_condition {
    const char *type;
    enum truth status;
    char reason[64], message[1024];
};

/* Makes the message one line of well-formed UTF-8. */
void condition_set(struct status_condition *c, enum truth status, const char *reason, const char *fmt, ...)
    PRINTF_LIKE(4, 5);
/* Takes the condition from the object's status; false when that is of another generation. */
bool condition_resume(struct status_condition *c, const json_t *object);
/* The list as JSON. lastTransitionTime comes from the object's status while the condition's status stays
 * the same, or from the last status sent where a CRD has pruned it. A new reference; NULL when out of
 * memory. */
json_t *conditions_value(const struct status_condition *list, size_t n, const json_t *object,
                         const struct last_status *written, unix_ms now);

/* One line as a JSON string; NULL when out of memory. */
json_t *status_line(const char *text);
/* metadata.generation. */
json_int_t status_generation(const json_t *object);
/* Adds a member to a merge patch: members that the object's status has and `value` lacks become null, at
 * any depth. Takes ownership of value. -ENOMEM, also for a value of NULL. */
MUST_USE int status_put(json_t *status, const char *member, json_t *value, const json_t *object);
/* Removes the member: null when the object has it, absent otherwise. */
MUST_USE int status_drop(json_t *status, const char *member, const json_t *object);

/* "" for one and "s" for any other number. */
const char *plural_s(size_t n);
/* "distributed to 1 cluster", "distributed to all 3 clusters". */
void condition_distributed(struct status_condition *c, size_t n);
/* "<what> 2 of 300 clusters: c1: no such namespace". Without a name (NULL) there is no reason either. */
void condition_clusters(struct status_condition *c, const char *reason, const char *what, size_t n, size_t of,
                        const char *name, const char *why);
/* The work agents of n clusters, one of which may be named, have yet to apply the newest ManifestWork. */
void condition_unconfirmed(struct status_condition *c, size_t n, size_t of, const struct hub_cluster *named);
/* Why the cluster has not applied its up-to-date ManifestWork. */
const char *cluster_unconfirmed_reason(const struct hub_cluster *c);

/* ---- Of scorers ---- */

static inline const struct probe_status *scorer_probe(const struct hub_scorer *s)
{
    static const struct probe_status none;

    return s->probe ? probe_status(s->probe) : &none;
}

#endif

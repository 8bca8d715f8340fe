/* What the statuses of both kinds are made of: conditions, and members that go as others come. */
#ifndef DS_HUB_STATUS_CONDITIONS_H
#define DS_HUB_STATUS_CONDITIONS_H

#include "controller/hub/state/state.h"

enum truth { TRUTH_UNKNOWN, TRUTH_TRUE, TRUTH_FALSE };

/* A metav1.Condition but for its times. What ticks (counts of probes, latencies) may not be in a message: each change is a write. */
struct status_condition {
    const char *type;
    enum truth status;
    char reason[64], message[1024];
};

/* The message becomes one line of well-formed UTF-8. */
void condition_set(struct status_condition *c, enum truth status, const char *reason, const char *fmt, ...)
    PRINTF_LIKE(4, 5);
/* Sets the condition as the object's status has it, when that was said of the same generation; else false. */
bool condition_resume(struct status_condition *c, const json_t *object);
/* The list as JSON. lastTransitionTime stays what the object's status says while the condition's status stays; where a CRD of another
 * make has pruned that, what was sent last counts. A new reference, NULL when memory is out. */
json_t *conditions_value(const struct status_condition *list, size_t n, const json_t *object,
                         const struct last_status *written, unix_ms now);

/* One line as a JSON string; NULL when memory is out. */
json_t *status_line(const char *text);
/* metadata.generation. */
json_int_t status_generation(const json_t *object);
/* Puts the member into a status that is to be merged. Members that the object's one has beyond `value` become null, at any depth.
 * Takes value over. -ENOMEM, also for a value of NULL. */
MUST_USE int status_put(json_t *status, const char *member, json_t *value, const json_t *object);
/* Has the member go: null when the object has it, not mentioned otherwise. */
MUST_USE int status_drop(json_t *status, const char *member, const json_t *object);

/* "" for one and "s" for any other number. */
const char *plural(size_t n);
/* "on 1 cluster", "on all 3 clusters". */
void condition_distributed(struct status_condition *c, size_t n);
/* <head>"2 of 300 clusters"<tail>": c1: no such namespace"; without a name (NULL) no cause either. */
void condition_failing(struct status_condition *c, const char *head, size_t n, size_t of, const char *tail,
                       const char *name, const char *why);

/* ---- Of scorers ---- */

static inline const struct probe_status *scorer_probe(const struct hub_scorer *s)
{
    static const struct probe_status none;

    return s->probe ? probe_status(s->probe) : &none;
}

/* Conditions Distributed and Scoring. */
void scorer_set_distributed(const struct hub_scorer *s, struct status_condition *c);
void scorer_set_scoring(const struct hub_scorer *s, struct status_condition *c);
/* The members about clusters. -ENOMEM. */
MUST_USE int scorer_put_clusters(const struct hub_scorer *s, json_t *status);

#endif

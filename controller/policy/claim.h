/* What the Policies of a cluster say together: the value of its ClusterClaim. Pure.
 *
 * Times in objects are those of the cluster's own clocks, in whole seconds. */
#ifndef DS_POLICY_CLAIM_H
#define DS_POLICY_CLAIM_H

#include "exporter/base/clock.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum policy_state {
    POLICY_COMPLIANT,
    POLICY_NONCOMPLIANT,
    POLICY_PENDING,
    POLICY_UNKNOWN,  /* no status yet */
    POLICY_DISABLED, /* does not count */
    POLICY_STATES
};

/* For labels: "compliant", "noncompliant", "pending", "unknown", "disabled". */
const char *policy_state_word(enum policy_state s);

/* What counts of a Policy (policy.open-cluster-management.io/v1) in the namespace of its cluster. */
struct policy {
    enum policy_state state;
    uint64_t identity; /* of the object and its spec: another one is another demand on the cluster */
    unix_ms broken_at; /* when a template was last not compliant, as its history tells; 0: never */
    unix_ms edited_at; /* when more than the status last changed */
    unix_ms since;     /* compliant, with this spec, since this time or earlier; 0: unknown */
};

void policy_read(struct policy *ret, const json_t *object);
/* Whether the policy was compliant at two looks and, as far as its history tells, between them. */
bool policy_stayed_compliant(const struct policy *was, const struct policy *is);

struct policy_tally {
    size_t n[POLICY_STATES];
    unix_ms since;     /* the latest of the compliant ones */
    bool lacks_a_time; /* of one it is unknown */
    unix_ms broken_at; /* the latest broken_at or edited_at of these */
};

void policy_tally_add(struct policy_tally *t, const struct policy *p);
size_t policy_tally_enabled(const struct policy_tally *t);
/* Whether there are enabled policies, and all are compliant. */
bool policy_tally_is_compliant(const struct policy_tally *t);
/* For how long all have been compliant without a break, in milliseconds; 0 if unknown. Policies that are gone
 * by now are not known. */
int64_t policy_tally_stable_ms(const struct policy_tally *t, unix_ms now);

enum claim_value { CLAIM_EMPTY, CLAIM_NONCOMPLIANT, CLAIM_COMPLIANT, CLAIM_VALUES };

/* The ClusterClaim's spec.value: "empty", "noncompliant", "compliant". */
const char *claim_value_word(enum claim_value v);
/* When this field manager wrote the value of the ClusterClaim; 0 if the value is another's. */
unix_ms claim_written_at(const json_t *claim, const char *manager);

#endif

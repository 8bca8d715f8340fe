/* Makes solutions of the best sets of all sites, which take some workloads twice and others not at all: what
 * is too much is dropped where it gains least, then each site in turn takes the best setting and set of what
 * others leave, until no site gains by that. */
#ifndef DS_OPTIMIZE_CBC_REPAIR_H
#define DS_OPTIMIZE_CBC_REPAIR_H

#include "controller/optimize/cbc/price.h"
#include "controller/optimize/wire.h"

/* Whether it can: one resource, neither limits nor a move budget. */
bool repair_is_for(const struct price *x);
/* The choices (room for n_sites * n_workloads) and their number. Overwrites the items' profits. -ENOMEM. */
MUST_USE int repair(struct price *x, struct wire_choice *choices, uint32_t *ret_n);

#endif

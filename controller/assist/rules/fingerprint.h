/* What a plan was made from, in a form that can be compared later. */
#ifndef DS_ASSIST_RULES_FINGERPRINT_H
#define DS_ASSIST_RULES_FINGERPRINT_H

#include "controller/assist/rules/model.h"

enum { PLAN_HASH_BYTES = 17 };

/* An object: "<Kind>/<name>" → an object of what was read of it. */
json_t *fingerprint_make(const struct model *m);
/* [{"kind", "name", "what"}]: what differs, `what` naming the parts. What an earlier attempt to apply the
 * plan with this hash has changed does not count. */
json_t *fingerprint_changes(const json_t *before, const json_t *now, const char *plan);
/* Hexadecimal digits over the request, the fingerprint and the placements. -ENOMEM. */
MUST_USE int fingerprint_hash(char ret[PLAN_HASH_BYTES], const json_t *request, const json_t *fingerprint,
                              const json_t *placements);

#endif

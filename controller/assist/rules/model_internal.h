/* Private to model*.c. All steps: 0; -EINVAL with the objection; -ENOMEM. */
#ifndef DS_ASSIST_RULES_MODEL_INTERNAL_H
#define DS_ASSIST_RULES_MODEL_INTERNAL_H

#include "controller/assist/rules/model.h"
#include "controller/assist/rules/objection.h"
#include "controller/assist/rules/request.h"

/* n elements of the arena, zeroed. NULL when out of memory; not for n = 0. */
void *model_alloc(struct model *m, size_t n, size_t size);
/* The number of a name, a new one if need be. */
MUST_USE int model_id(struct map *ids, const char ***names, size_t *n, struct model *m, const char *name,
                      uint32_t *ret);
/* The label's amount, in thousandths. */
MUST_USE int model_amount(const json_t *object, const char *kind, const char *label, const char *field,
                          int64_t *ret, struct objection *ob);
/* The label, which must be there. */
MUST_USE int model_label(const json_t *object, const char *kind, const char *label, const char *field,
                         const char **ret, struct objection *ob);

MUST_USE int model_read_workloads(struct model *m, struct objection *ob);
/* Sites and settings. */
MUST_USE int model_read_sites(struct model *m, struct objection *ob);
MUST_USE int model_read_running(struct model *m);
MUST_USE int model_read_scores(struct model *m, struct objection *ob);
/* Pins and forbidden places. */
MUST_USE int model_apply_rules(struct model *m, struct objection *ob);
MUST_USE int model_read_limits(struct model *m, struct objection *ob);

#endif

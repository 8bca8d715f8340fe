/* Labels that say what workloads ask for and policies supply. */
#ifndef DS_ASSIST_OPERATIONS_RESOURCES_H
#define DS_ASSIST_OPERATIONS_RESOURCES_H

#include <jansson.h>

/* {"gpu": "2", "memory": "16"}: the labels <prefix>-kind with <prefix>-amount, and <prefix>-amount.<kind>. A
 * new reference; NULL when out of memory. */
json_t *resources_of_labels(const json_t *object, const char *prefix);
/* The first kind, that of <prefix>-kind. NULL without. */
const char *resources_kind(const json_t *object, const char *prefix);

#endif

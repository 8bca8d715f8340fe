/* Shared by review*.c and included nowhere else. */
#ifndef DS_KUBE_REVIEW_INTERNAL_H
#define DS_KUBE_REVIEW_INTERNAL_H

#include "exporter/base/str.h"

#include <jansson.h>

/* The user that a client certificate (DER) names, as the API server reads one: the common name, and the
 * organizations as groups. NULL if it has no common name, or when out of memory. */
json_t *review_certificate_user(struct str der);

#endif

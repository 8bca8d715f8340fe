/* Kubernetes' quantities: "2", "500m", "1.5", "2Ki", "1e3". */
#ifndef DS_ASSIST_RULES_QUANTITY_H
#define DS_ASSIST_RULES_QUANTITY_H

#include "exporter/base/str.h"

/* Larger amounts are refused, so that sums of many do not overflow. */
#define QUANTITY_MAX INT64_C(1000000000000000)

/* Thousandths, rounded up. False for what is no quantity, is negative, or exceeds QUANTITY_MAX. */
bool quantity_parse(struct str text, int64_t *ret);

#endif

/* Quantities of Kubernetes, such as 2, 500m and 2Gi, in thousandths. Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Larger amounts are refused, so that sums of many do not overflow. */
#define QUANTITY_MAX INT64_C(1000000000000000)

/* A quantity of Kubernetes in thousandths, rounded up. False for what is no quantity, is negative, or
 * exceeds QUANTITY_MAX. */
bool quantity_parse(const char *text, int64_t *ret);

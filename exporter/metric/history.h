/* The last values of something that is measured again and again, such as a scorer's rounds and a probe:
 * rows of a time and one value for each column. A full history of five columns takes 1,456 bytes, one of
 * two 736. Loop thread. */
#pragma once

#include "exporter/base/clock.h"

#include <stddef.h>
#include <stdint.h>

enum { HISTORY_LENGTH = 60 };

struct history;

/* Adds a row of one value for each column (the same number each time), and drops the oldest of more than
 * HISTORY_LENGTH. NAN: not measured. *h is allocated by the first call. */
void history_add(struct history **h, size_t columns, unix_ms at, const double *values);
/* Takes NULL, returns NULL. */
struct history *history_free(struct history *h);

/* How many rows there are; 0 for NULL. */
size_t history_rows(const struct history *h);
/* The time of a row in Unix seconds; row 0 is the oldest. */
uint32_t history_seconds(const struct history *h, size_t row);
double history_value(const struct history *h, size_t row, size_t column);

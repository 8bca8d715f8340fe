/* Literals of queries: durations and strings. */
#ifndef DS_PROMQL_LITERAL_H
#define DS_PROMQL_LITERAL_H

#include "exporter/base/str.h"

/* "1h30m", "500ms", or a number of seconds; at least a millisecond and at most 100 years. */
bool literal_duration(struct str s, int64_t *ret_ms);
/* Writes the content of a string, given with its quotes, to `to`, which has room for s.n bytes. Escapes are
 * those of Go; between backticks there are none. Returns the length, or SIZE_MAX for an invalid escape or a
 * text that is not UTF-8. */
size_t literal_string(struct str s, char *to);

#endif

/* What a scrape wants: which exposition format, and whether compressed, by the q-values of its Accept and
 * Accept-Encoding headers (RFC 9110, 12.4 and 12.5). */
#pragma once

#include <stdbool.h>

enum expo_format { EXPO_TEXT, EXPO_OPENMETRICS_001, EXPO_OPENMETRICS_1, EXPO_FORMATS };

/* The Content-Type of each format. */
extern const char *const expo_content_types[EXPO_FORMATS];

/* The format for an Accept header; "" is no header. Text 0.0.4 where nothing that is offered is asked for. */
enum expo_format negotiate_format(const char *accept);
/* Whether an Accept-Encoding header takes gzip, and no less than what is not compressed. */
bool negotiate_gzip(const char *accept_encoding);

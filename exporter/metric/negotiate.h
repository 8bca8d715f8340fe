/* Which exposition format, and whether compressed: by the q-values of RFC 9110, 12.4. */
#ifndef DS_METRIC_NEGOTIATE_H
#define DS_METRIC_NEGOTIATE_H

#include <stdbool.h>

enum expo_format { EXPO_TEXT, EXPO_OPENMETRICS_001, EXPO_OPENMETRICS_1, EXPO_FORMATS };

/* The format for an Accept header; "" is no header. Text 0.0.4 where nothing that is offered is asked for. */
enum expo_format negotiate_format(const char *accept);
/* Whether an Accept-Encoding header takes gzip, and no less than what is not compressed. */
bool negotiate_gzip(const char *accept_encoding);
/* The Content-Type of a format. */
const char *expo_content_type(enum expo_format f);

#endif

/* Escaping for URLs and for label values. JSON strings are in json.h. */
#ifndef DS_BASE_ESCAPE_H
#define DS_BASE_ESCAPE_H

#include "exporter/base/buf.h"

/* Appends s percent-encoded for a URL's path segment or query (RFC 3986): all bytes but unreserved
 * characters. */
MUST_USE int buf_put_url(struct buf *b, struct str s);
/* Appends s as a label value of the Prometheus text format, without the quotes. */
MUST_USE int buf_put_label_value(struct buf *b, struct str s);
/* Writes s as buf_put_label_value() does to `to`, which has room for 2 * s.n bytes; returns the end. */
char *escape_label_value(char *to, struct str s);

#endif

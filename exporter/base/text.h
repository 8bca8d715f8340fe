/* Text on its way in or out: one line of a log or a message, URLs, label values, base64. JSON strings are in
 * json.h. */
#ifndef DS_BASE_TEXT_H
#define DS_BASE_TEXT_H

#include "exporter/base/buf.h"

/* Copies s as one line of well-formed UTF-8, at most size - 1 bytes (size >= 4) and a NUL. Longer text has
 * "..." in place of its middle, since an error often ends with what matters; a line of less than 64 bytes
 * has it at the end. Control characters become spaces. */
void text_line(char *out, size_t size, struct str s);
/* Like text_line(), for the raw bytes between the quotes of a JSON string. */
void text_line_json(char *out, size_t size, struct str raw);
/* "HTTP 502 Bad Gateway: <first line of the body>" into why. */
void text_http_status(char *out, size_t size, long status, struct str body);

/* Appends s percent-encoded for a URL's path segment or query (RFC 3986): all bytes but unreserved
 * characters. */
MUST_USE int buf_put_url(struct buf *b, struct str s);
/* Appends s as a label value of the Prometheus text format, without the quotes. */
MUST_USE int buf_put_label_value(struct buf *b, struct str s);
/* Writes s as buf_put_label_value() does to `to`, which has room for 2 * s.n bytes; returns the end. */
char *escape_label_value(char *to, struct str s);

/* Decodes base64 (RFC 4648) and appends it; line ends are allowed. -EINVAL, -ENOMEM, -EFBIG. */
MUST_USE int base64_decode(struct str text, struct buf *into);
/* Writes the base64 of the bytes, padded, and returns its length: 4 for each 3 bytes or part of them. */
size_t base64_encode(struct str bytes, char *out);

#endif

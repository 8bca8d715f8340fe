/* Text for people: one line of what others have written, and sentences of our own. */
#pragma once

#include "exporter/base/buf.h"

#include <stdint.h>

/* Copies s as one line of well-formed UTF-8 without characters of utf8_is_control(), cut to size - 1 bytes,
 * of which there are 4 or more: "…" replaces the middle, as errors often end with what matters, or the end of
 * less than 64 bytes. */
void text_line(char *out, size_t size, struct str s);
/* Like text_line(), for the raw bytes between the quotes of a JSON string. */
void text_line_json(char *out, size_t size, struct str raw);
/* ---- Sentences, part by part ---- */

/* Appends the separator, unless nothing is before it. */
void text_join(struct buf *b, const char *separator);
/* Appends "1 cluster", "3 clusters": the noun's plural is with an s. */
void text_count(struct buf *b, uint64_t n, const char *noun);

/* "HTTP 502 Bad Gateway: <the body>". with: said of 401 and 403, such as " with secret \"api\""; or "". */
void text_http_status(char *out, size_t size, long status, const char *with, struct str body);
/* Appends to the text in `out` what a body is that should be JSON, mostly the page of a proxy or of a login:
 * "; Content-Type: text/html, it begins with: <html>...", at most 80 bytes of it. */
void text_show_body(char *out, size_t size, const char *content_type, struct str body);

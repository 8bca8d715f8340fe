/* Escapes: of URLs, forms, label values and JSON strings. An append that fails is remembered (buf.h). */
#pragma once

#include "exporter/base/buf.h"

#include <stdint.h>

/* Appends s percent-encoded for a path segment or query (RFC 3986): all bytes but unreserved characters. */
void buf_put_url(struct buf *b, struct str s);
/* Appends name=value of a form (application/x-www-form-urlencoded), after a '&' if b has something. */
void buf_put_form(struct buf *b, struct str name, struct str value);
/* Appends s as a label value of the Prometheus text format, without the quotes. */
void buf_put_label_value(struct buf *b, struct str s);
/* Writes s as buf_put_label_value() does to `to`, which has room for 2 * s.n bytes; returns the end. */
char *escape_label_value(char *to, struct str s);

/* Appends s as a JSON string with its quotes; ill-formed UTF-8 becomes U+FFFD. */
void buf_put_json(struct buf *b, struct str s);
/* Likewise for a line on a terminal: control characters that JSON allows (DEL, C1, of direction: see
 * utf8_is_control()) become \uXXXX, too, which means the same. */
void buf_put_json_visible(struct buf *b, struct str s);
/* Appends JSON text so that its strings are as buf_put_json_visible() writes them. */
void buf_put_visible(struct buf *b, struct str json);

/* Writes a raw string without its escapes to out, which has room for raw.n * 3 bytes; returns the length.
 * Lone surrogates and each maximal ill-formed part of UTF-8 become U+FFFD. */
size_t jr_unescape(struct str raw, char *out);
/* Reads the escape at s.p into *ret and returns its length: 12 for a pair of surrogates. An invalid one is
 * one byte, as U+FFFD; half of a pair remains a surrogate. */
size_t jr_escape(struct str s, uint32_t *ret);

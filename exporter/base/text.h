/* Text on its way in or out: one line of a message, URLs, label values, base64, UTF-8, gzip. */
#pragma once

#include "exporter/base/buf.h"

/* Copies s as one line of well-formed UTF-8 without control characters, cut to size - 1 bytes (size >= 5):
 * "…" replaces the middle, since errors often end with what matters, or the end of less than 64 bytes. */
void text_line(char *out, size_t size, struct str s);
/* Like text_line(), for the raw bytes between the quotes of a JSON string. */
void text_line_json(char *out, size_t size, struct str raw);
/* "HTTP 502 Bad Gateway: <the body>". with: said of 401 and 403, such as " with secret \"api\""; or "". */
void text_http_status(char *out, size_t size, long status, const char *with, struct str body);

/* Appends s percent-encoded for a path segment or query (RFC 3986): all bytes but unreserved characters. */
MUST_USE int buf_put_url(struct buf *b, struct str s);
/* Appends name=value of a form (application/x-www-form-urlencoded), after a '&' if b has something. */
MUST_USE int buf_put_form(struct buf *b, struct str name, struct str value);
/* Appends s as a label value of the Prometheus text format, without the quotes. */
MUST_USE int buf_put_label_value(struct buf *b, struct str s);
/* Writes s as buf_put_label_value() does to `to`, which has room for 2 * s.n bytes; returns the end. */
char *escape_label_value(char *to, struct str s);

/* Decodes base64 (RFC 4648) and appends it; line ends are allowed. -EINVAL, -ENOMEM, -EFBIG. */
MUST_USE int base64_decode(struct str text, struct buf *into);
/* Writes the base64 of the bytes, padded, and returns its length: 4 for each 3 bytes or part of them. */
size_t base64_encode(struct str bytes, char *out);

/* ---- UTF-8 (RFC 3629; Unicode, chapter 3): no overlong forms, no surrogates, nothing over U+10FFFF ---- */

/* The length (1..4) of the well-formed character at s.p, or 0 if there is none (s empty or ill-formed). */
size_t utf8_char(struct str s);
/* The length of the ill-formed part at s.p, where utf8_char() returned 0, which one U+FFFD replaces (Unicode
 * 3.9): the longest prefix of a character, or a single byte. 0 only if s is empty. */
size_t utf8_bad_part(struct str s);
/* The offset of the first ill-formed byte; s.n if s is well formed. */
size_t utf8_valid_prefix(struct str s);
/* The longest prefix of at most `max` bytes that ends between characters. s must be well formed. */
struct str utf8_cut(struct str s, size_t max);
/* Writes the character to out and returns its length; surrogates and values over U+10FFFF become U+FFFD. */
size_t utf8_write(uint32_t code_point, char out[4]);

/* ---- Content-Encoding gzip (of one or several members) and deflate (zlib's format). A body that was cut
 * short, or is followed by other data, is an error ---- */

struct inflate;

struct inflate *inflate_new(void);
struct inflate *inflate_free(struct inflate *d);
DEFINE_CLEANUP(struct inflate, inflate_free)

/* Decodes a step: removes what it reads from the front of *rest, and *ret is what came out, at most
 * INFLATE_BYTES and valid until the next call. So the caller decides when a small body that becomes a large
 * one goes on. 1; 0 if all of *rest is decoded; -EBADMSG, and inflate_error() says why. */
enum { INFLATE_BYTES = 64 << 10 };
MUST_USE int inflate_next(struct inflate *d, struct str *rest, struct str *ret);
/* Nothing follows. -EBADMSG if the body is incomplete. */
MUST_USE int inflate_end(struct inflate *d);
/* After -EBADMSG: "is not gzip", "ends early, after 12 bytes", ... Valid as long as d. */
const char *inflate_error(const struct inflate *d);

/* Appends the decoded body to `into`. On failure its content is as before: -EFBIG beyond its ceiling,
 * -EBADMSG with inflate_error()'s text in *ret_why (from malloc). */
MUST_USE int inflate_body(struct str body, struct buf *into, char **ret_why);

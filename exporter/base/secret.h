/* Secrets in memory: wiped when freed, checked before they go into a header, and hidden in text. */
#pragma once

#include "exporter/base/buf.h"

/* A buffer on the stack that is wiped and freed at the end of the scope. */
#define SECRET_AUTO(name, m) CLEANUP(secret_done) struct buf name = {.max = (m)}

enum { DIGEST_TEXT_BYTES = 65 };

/* Wipes and frees. A buffer that grows leaves old bytes behind: reserve its size with buf_reserve(). */
void secret_done(struct buf *b);
/* Wipes and frees a terminated string. Takes NULL, returns NULL. */
char *secret_free(char *s);

/* Finds the bearer token in a file's or a Secret's value: white space around it does not count, and the
 * rest must be printable ASCII without spaces, since it goes into a header. On success *ret is a part of
 * `value`, and the result is NULL; else the result says what is wrong, without any part of the value. */
MUST_USE const char *secret_token(struct str value, struct str *ret);

/* A digest of several parts, as terminated hexadecimal text, to recognize secrets without keeping them:
 * HMAC-SHA-256 with a random key per process. The borders between parts count. Any thread. */
void digest_parts(char ret[DIGEST_TEXT_BYTES], const struct str *parts, size_t n);

/* Hides the value in all text that secret_hide() sees from now on, until a day after the last call for the
 * same value. Values of fewer than 8 bytes are ignored: they would match everywhere. Only hashes are kept.
 * Any thread. */
void secret_used(struct str value);
/* The same for the password, and for what basic authentication makes of both. */
void secret_used_basic(struct str user, struct str password);
/* Replaces each secret in text by "***", in place: as it is, in base64 (also as a part of something
 * longer), and with escapes of URLs, JSON and HTML. Returns the new length. Any thread. */
MUST_USE size_t secret_hide(char *text, size_t n);
/* The same for terminated text. */
void secret_hide_text(char *text);

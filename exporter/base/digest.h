/* Digests of secrets, to recognize them without keeping them: HMAC-SHA-256 (RFC 2104) with a random key per
 * process. Never store such a digest or send it anywhere. Any thread. */
#ifndef DS_BASE_DIGEST_H
#define DS_BASE_DIGEST_H

#include "exporter/base/def.h"
#include "exporter/base/str.h"

enum { DIGEST_TEXT_BYTES = 65 };

/* The digest of several parts, as hexadecimal text, terminated. The borders between parts count. -ENOMEM. */
MUST_USE int digest_parts(char ret[DIGEST_TEXT_BYTES], const struct str *parts, size_t n);

#endif

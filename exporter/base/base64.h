/* Base64 (RFC 4648). */
#pragma once

#include "exporter/base/buf.h"

/* Decodes base64 and appends it; line ends are allowed. -EINVAL, -ENOMEM, -EFBIG. */
MUST_USE int base64_decode(struct str text, struct buf *into);
/* Writes the base64 of the bytes, padded, and returns its length: 4 for each 3 bytes or part of them. */
size_t base64_encode(struct str bytes, char *out);

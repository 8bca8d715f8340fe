/* Base64 (RFC 4648): a Secret's data, a kubeconfig's *-data, the credentials of basic authentication. */
#ifndef DS_BASE_BASE64_H
#define DS_BASE_BASE64_H

#include "exporter/base/buf.h"

/* Decodes and appends; line ends are allowed. -EINVAL, -ENOMEM, -EFBIG. */
MUST_USE int base64_decode(struct str text, struct buf *into);

/* Writes the text of the bytes, padded, and returns its length: 4 for each 3 bytes or part of them. */
size_t base64_encode(struct str bytes, char *out);

#endif

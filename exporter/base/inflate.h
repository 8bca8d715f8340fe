/* Content-Encoding gzip (of one or several members) and deflate (zlib's format). A body that was cut
 * short, or is followed by other data, is an error. */
#pragma once

#include "exporter/base/buf.h"

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

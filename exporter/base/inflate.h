/* Decoding of Content-Encoding gzip (of one or several members) and deflate (zlib's format), in pieces or
 * whole. A body that was cut short, or is followed by other data, is an error. */
#ifndef DS_BASE_INFLATE_H
#define DS_BASE_INFLATE_H

#include "exporter/base/buf.h"
#include "exporter/base/str.h"

struct inflate;

struct inflate *inflate_new(void);
/* Takes NULL, returns NULL. */
struct inflate *inflate_free(struct inflate *d);
DEFINE_CLEANUP(struct inflate, inflate_free)

/* Decodes the next piece; put() gets what comes out, and stops the decoding by returning other than 0, which
 * is then the result. -EBADMSG, and inflate_error() says why. */
MUST_USE int inflate_put(struct inflate *d, struct str piece, int (*put)(void *arg, struct str out),
                         void *arg);
/* Nothing follows. -EBADMSG if the body is incomplete. */
MUST_USE int inflate_end(struct inflate *d);
/* After -EBADMSG: "is not gzip", "ends early, after 12 bytes", ... Valid as long as d. */
const char *inflate_error(const struct inflate *d);

/* Appends the decoded body to `into`. On failure its content is as before: -EFBIG beyond its ceiling,
 * -EBADMSG with inflate_error()'s text in *ret_why (from malloc). */
MUST_USE int inflate_body(struct str body, struct buf *into, char **ret_why);

#endif

/* Where tokens come from: files as a Kubernetes volume mounts them, or watched objects (in controller/). They
 * are read for each round, so that a changed token takes effect at the next one. */
#ifndef DS_SCORE_SECRETS_H
#define DS_SCORE_SECRETS_H

#include "exporter/base/buf.h"

struct secrets {
    /* Appends the value of a Secret's key. -ENOENT, or another negative errno; *ret_why, if set, says more
     * and is valid until the loop's next turn. */
    int (*read)(struct secrets *s, const char *name, const char *key, struct buf *into, const char **ret_why);
};

/* Files <dir>/<name>/<key>. */
struct secret_files {
    struct secrets secrets;
    const char *dir; /* not owned; NULL: every read is -ENOENT */
};

void secret_files_init(struct secret_files *f, const char *dir);

/* Appends the bearer token in a Secret's key, see secret_token(). On failure `why` names the Secret and the
 * problem, without any part of the value. */
MUST_USE int secrets_token(struct secrets *s, const char *name, const char *key, struct buf *into,
                           char why[256]);

#endif

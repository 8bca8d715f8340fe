/* Where tokens come from: files as a Kubernetes volume mounts them, or (in controller/) watched objects. Read anew for each
 * round, so that a changed token takes effect at the next one. */
#ifndef DS_SCORE_SECRETS_H
#define DS_SCORE_SECRETS_H

#include "exporter/base/buf.h"

struct secrets {
    /* Appends the value of a Secret's key. -ENOENT, or another negative errno. */
    int (*read)(struct secrets *s, const char *name, const char *key, struct buf *into);
};

/* Files <dir>/<name>/<key>. */
struct secret_files {
    struct secrets secrets;
    const char *dir; /* NULL: there are none, every read is -ENOENT; not owned */
};

void secret_files_init(struct secret_files *f, const char *dir);

/* Appends the bearer token in a Secret's key, by the rule of secret_token(). Negative errno on failure; `why` then names the Secret and says
 * what is wrong, without any part of the value. */
MUST_USE int secrets_token(struct secrets *s, const char *name, const char *key, struct buf *into,
                           char why[256]);

#endif

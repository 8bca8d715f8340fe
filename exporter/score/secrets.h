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

/* Reads a token: the value without white space at its ends. It must be one line of printable ASCII, since it becomes a header. On failure a
 * sentence for people, without any part of the value, is in `why`. */
MUST_USE int secrets_token(struct secrets *s, const char *name, const char *key, struct buf *into,
                           char why[256]);

#endif

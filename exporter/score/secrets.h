/* Where credentials come from: files as a Kubernetes volume mounts them, or watched objects (in
 * controller/). A Secret is looked at before each request and read when it has changed, so that a change
 * takes effect at the next one. */
#ifndef DS_SCORE_SECRETS_H
#define DS_SCORE_SECRETS_H

#include "exporter/base/buf.h"
#include "exporter/score/credentials.h"

#include <stdbool.h>

/* A Secret as it is now. */
struct secret_state {
    uint64_t stamp;    /* differs after a change */
    bool is_unsettled; /* a change could keep the stamp: read it each time */
    bool trusts_ca;    /* its ca.crt counts: it is for this server, not for an API server's */
};

struct secrets {
    /* -ENOENT if there is no such Secret, or another negative errno; *ret_why, if set, says more and is
     * valid until the loop's next turn. token_key: NULL for none. */
    int (*look)(struct secrets *s, const char *name, const char *token_key, struct secret_state *ret,
                const char **ret_why);
    /* Appends the value of a Secret's key. -ENOENT if it has none; else as look(). */
    int (*read)(struct secrets *s, const char *name, const char *key, struct buf *into, const char **ret_why);
    LIST_HEAD(, credentials) cache; /* zeroed at first */
};

/* Files <dir>/<name>/<key>. The ca.crt of a folder with a file `namespace` does not count: a service
 * account's is that of its API server. */
struct secret_files {
    struct secrets secrets;
    const char *dir; /* not owned; NULL: every read is -ENOENT */
};

void secret_files_init(struct secret_files *f, const char *dir);

/* The credentials of a Secret; *ret is a reference, NULL if `name` is NULL. On failure `why` names the
 * Secret, the key and the problem, without any part of a value. */
MUST_USE int secrets_get(struct secrets *s, const char *name, const char *token_key, struct credentials **ret,
                         char why[256]);
/* Empties the cache; at the end, and when other Secrets are named. */
void secrets_forget(struct secrets *s);

#endif

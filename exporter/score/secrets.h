/* Where Secrets are read: files as a Kubernetes volume mounts them (secret_files.h), or watched objects (in
 * controller/). Loop thread. */
#pragma once

#include "exporter/base/buf.h"

struct secrets {
    const char *namespace; /* of the Secrets, shown before their names; NULL for files */
    /* -ENOENT if there is no such Secret, or another negative errno; *ret_why, if set, says more and is valid
     * until the loop's next turn. *ret_trusts_ca, which is true: whether its ca.crt counts, as that of this
     * server and not of an API server. NULL: there is one, which is trusted. */
    int (*look)(struct secrets *s, const char *name, bool *ret_trusts_ca, const char **ret_why);
    /* Appends the value of a Secret's key. -ENOENT if it has none; else as look(). */
    int (*read)(struct secrets *s, const char *name, const char *key, struct buf *into, const char **ret_why);
};

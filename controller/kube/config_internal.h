/* What the two ways to a config share; nothing else includes it. */
#ifndef DS_KUBE_CONFIG_INTERNAL_H
#define DS_KUBE_CONFIG_INTERNAL_H

#include "controller/kube/config.h"

enum { KUBECONFIG_MAX_BYTES = 1 << 20, BLOB_MAX_BYTES = 1 << 20 };

MUST_USE int kube_config_new(struct kube_config **ret);
/* Takes the bytes out of b. */
MUST_USE int kube_blob_take(struct kube_blob *blob, struct buf *b);
/* Reads a file of PEM, or a token (trimmed, printable). -EINVAL and errors of reading with a sentence. */
MUST_USE int kube_blob_pem(struct kube_blob *blob, const char *what, struct buf *b, char why[512]);
MUST_USE int kube_blob_token(struct kube_blob *blob, const char *what, struct buf *b, char why[512]);
MUST_USE int kube_read_file(const char *what, const char *path, struct buf *into, char why[512]);
/* Sets server after a look at it: http or https, a host, and nothing behind the path. */
MUST_USE int kube_config_set_server(struct kube_config *c, const char *what, struct str url, char why[512]);

#endif

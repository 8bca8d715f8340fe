/* Shared by config_parts.c, config_kubeconfig.c and config.c, each of which uses those before it; included
 * nowhere else. */
#ifndef DS_KUBE_CONFIG_INTERNAL_H
#define DS_KUBE_CONFIG_INTERNAL_H

#include "controller/kube/config.h"
#include "exporter/base/buf.h"

enum { KUBECONFIG_MAX_BYTES = 1 << 20, BLOB_MAX_BYTES = 1 << 20 };

MUST_USE int kube_config_new(struct kube_config **ret);
/* Moves PEM, or a token (trimmed, printable), from b into *ret. -EINVAL with a sentence in why. */
MUST_USE int kube_config_take_pem(struct buf *ret, const char *what, struct buf *b, char why[512]);
MUST_USE int kube_config_take_token(struct buf *ret, const char *what, struct buf *b, char why[512]);
MUST_USE int kube_read_file(const char *what, const char *path, struct buf *into, char why[512]);
/* Sets the server after checking it: http or https, a host, and nothing after the path. */
MUST_USE int kube_config_set_server(struct kube_config *c, const char *what, struct str url, char why[512]);

/* kube_config_parse() of the file at path, with its directory. */
MUST_USE int kube_config_from_file(struct kube_config **ret, const char *path, const char *context,
                                   char why[512]);

#endif

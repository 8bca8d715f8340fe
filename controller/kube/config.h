/* How to reach an API server and as whom: a kubeconfig, or what Kubernetes mounts into a pod.
 *
 * A config is one snapshot of everything that was read, files included, so that a certificate and its key
 * always belong to one reading. Rotation means reading a new one; see client.h. Specification: kubeconfig
 * v1 (k8s.io/client-go/tools/clientcmd/api/v1). Exec plugins, auth providers and impersonation are
 * refused. */
#ifndef DS_KUBE_CONFIG_H
#define DS_KUBE_CONFIG_H

#include "exporter/base/buf.h"

/* Bytes with their terminating NUL beyond n; p is NULL when there are none. */
struct kube_blob {
    char *p;
    size_t n;
};

struct kube_config {
    char *server;          /* "https://host:port/prefix", without a slash at the end */
    char *namespace;       /* of the context; NULL without */
    char *tls_server_name; /* the name that the certificate must have; NULL: the URL's */
    char *proxy;           /* NULL: the environment's */
    bool insecure;         /* the server's certificate is not verified */
    struct kube_blob ca;   /* PEM; none: the system's store */
    struct kube_blob cert, key;
    struct kube_blob token; /* none: another way, or anonymous */
    char *user, *password;
    uint64_t fingerprint; /* equal when all of the above is, within one process */
    unsigned refs;
};

struct kube_config_options {
    const char *kubeconfig;     /* a file; NULL: in the cluster */
    const char *context;        /* NULL: current-context */
    const char *in_cluster_dir; /* NULL: /var/run/secrets/kubernetes.io/serviceaccount */
};

/* Reads it all. -EINVAL or another negative errno with a sentence that holds no secret in why; -ENOMEM. */
MUST_USE int kube_config_read(struct kube_config **ret, const struct kube_config_options *o, char why[512]);
/* The same from a kubeconfig's text; relative paths are taken from `dir`, and with NULL no file may be
 * named. */
MUST_USE int kube_config_parse(struct kube_config **ret, struct str text, const char *dir,
                               const char *context, char why[512]);
struct kube_config *kube_config_ref(struct kube_config *c);
/* Secrets are wiped with the last reference. Takes NULL, returns NULL. */
struct kube_config *kube_config_unref(struct kube_config *c);
DEFINE_CLEANUP(struct kube_config, kube_config_unref)

#endif

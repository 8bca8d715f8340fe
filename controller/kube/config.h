/* The address of an API server and the credentials for it. For the client.
 *
 * From a kubeconfig (v1, without exec plugins, auth providers and impersonation) or a pod's service account,
 * as a snapshot of all files, so that a certificate matches its key; rotation means reading a new one. */
#pragma once

#include "exporter/base/buf.h"

#include <stdbool.h>
#include <stdint.h>

struct kube_config {
    char *server;                /* "https://host:port/prefix", without a trailing slash */
    char *namespace;             /* of the context; NULL without */
    char *tls_server_name;       /* the name in the certificate; NULL: the URL's host */
    char *proxy;                 /* NULL: from the environment */
    bool insecure;               /* the server's certificate is not verified */
    struct buf ca;               /* PEM; empty: the system's CAs */
    struct buf cert, key, token; /* empty without */
    uint64_t fingerprint;        /* a hash of the above, seeded per process */
    unsigned refs;
};

/* Reads the kubeconfig at a path; NULL: the pod's service account in pod_dir, of which NULL is the usual
 * one. NULL with the error, one line without secrets, in `why`, which is empty otherwise. */
struct kube_config *kube_config_read(const char *kubeconfig, const char *pod_dir, char why[512]);
/* The same from the text of a kubeconfig. Relative paths start at dir; NULL: files are not allowed. */
struct kube_config *kube_config_parse(struct str text, const char *dir, char why[512]);
/* Drops one of `refs`; secrets are wiped with the last. Takes NULL, returns NULL. */
struct kube_config *kube_config_unref(struct kube_config *c);

/* A guard of an HTTP server: a request needs a bearer token, or a client certificate, whose user has, by the
 * API server's RBAC, the right for its path. */
#ifndef DS_KUBE_GUARD_H
#define DS_KUBE_GUARD_H

#include "controller/kube/review.h"
#include "exporter/base/httpd.h"

struct kube_guard;

struct kube_path_right {
    const char *path; /* NULL: all other paths, the last of a table */
    struct kube_right right;
};

/* Get /metrics, post /-/reload, and get /status for all other paths. */
extern const struct kube_path_right kube_rights_default[];

/* On the loop's thread. The rights must outlive the guard. -ENOMEM. */
struct kube_guard *kube_guard_new(const struct kube_review_options *o, const struct kube_path_right *rights);
/* On the loop's thread, after the server was stopped. Takes NULL, returns NULL. */
struct kube_guard *kube_guard_free(struct kube_guard *g);
DEFINE_CLEANUP(struct kube_guard, kube_guard_free)
/* For httpd_options. NULL for NULL. */
const struct httpd_guard *kube_guard_httpd(const struct kube_guard *g);

#endif

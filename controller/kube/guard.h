/* A guard of an HTTP server: a request needs a bearer token, or a client certificate, whose user may, by the
 * API server's RBAC, get /metrics, post /-/reload, or get /status, which stands for all other paths. */
#ifndef DS_KUBE_GUARD_H
#define DS_KUBE_GUARD_H

#include "controller/kube/review.h"
#include "exporter/base/httpd.h"

struct kube_guard;

/* On the loop's thread. -ENOMEM. */
MUST_USE int kube_guard_new(struct kube_guard **ret, const struct kube_review_options *o);
/* On the loop's thread, after the server was stopped. Takes NULL, returns NULL. */
struct kube_guard *kube_guard_free(struct kube_guard *g);
DEFINE_CLEANUP(struct kube_guard, kube_guard_free)
/* For httpd_options. NULL for NULL. */
const struct httpd_guard *kube_guard_httpd(const struct kube_guard *g);

#endif

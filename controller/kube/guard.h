/* A guard of an HTTP server: a request needs a bearer token (TokenReview) or a client certificate whose user
 * may, by the API server's RBAC, use the nonResourceURL of its path (SubjectAccessReview).
 *
 * An answer is cached under a keyed digest; the token is wiped when its review has ended. Requests of one
 * token and right share a review. */
#ifndef DS_KUBE_GUARD_H
#define DS_KUBE_GUARD_H

#include "controller/kube/client.h"
#include "exporter/http/httpd.h"

struct kube_guard;

struct kube_guard_options {
    int64_t cache_ttl_ms; /* of "allowed"; "refused" is cached for as long, but at most ten seconds */
    int64_t timeout_ms;   /* of both questions together */
};

/* What the user must be allowed for a path. String literals. */
struct kube_path_right {
    const char *path; /* NULL: all other paths, the last of a table */
    const char *verb, *url;
};

/* On the loop's thread. The client and the rights must outlive the guard. rights: NULL: get /metrics, post
 * /-/reload, and get /status for all other paths. */
struct kube_guard *kube_guard_new(struct kube *k, const struct kube_guard_options *o,
                                  const struct kube_path_right *rights);
/* On the loop's thread, after the server was stopped. Takes NULL, returns NULL. */
struct kube_guard *kube_guard_free(struct kube_guard *g);
/* For httpd_options. NULL for NULL. */
const struct httpd_guard *kube_guard_httpd(const struct kube_guard *g);

#endif

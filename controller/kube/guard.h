/* A guard of HTTP servers. On the loop, but for what httpd calls.
 *
 * A request needs a bearer token (TokenReview) or a client certificate whose user may, by the API server's
 * RBAC, use the nonResourceURL of its path (SubjectAccessReview). Answers are cached. */
#pragma once

#include <stdint.h>

struct httpd_guard;
struct kube;
struct kube_guard;

/* What the user must be allowed for a path. String literals. */
struct kube_path_right {
    const char *path; /* NULL: all other paths, the last of a table */
    const char *verb, *url;
};

/* cache_ttl_ms: of "allowed"; "refused" is cached for as long, but at most ten seconds. timeout_ms: of both
 * questions together. rights: NULL: get /metrics, post /-/reload, and get /status for all other paths. They
 * and the client must outlive the guard. */
struct kube_guard *kube_guard_new(struct kube *k, int64_t cache_ttl_ms, int64_t timeout_ms,
                                  const struct kube_path_right *rights);
/* After the server was stopped. Takes NULL, returns NULL. */
struct kube_guard *kube_guard_free(struct kube_guard *g);
/* For httpd_options. NULL for NULL. */
const struct httpd_guard *kube_guard_httpd(const struct kube_guard *g);

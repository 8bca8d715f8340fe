/* Asks the API server whether someone may do something: a TokenReview (authentication.k8s.io/v1) says whose a
 * token is, while a client certificate says that itself, and a SubjectAccessReview (authorization.k8s.io/v1)
 * whether that user may use a nonResourceURL.
 *
 * An answer is cached under a keyed digest; the token itself is wiped when its review has ended. Requests of
 * one token and right share a review. Loop's thread. */
#ifndef DS_KUBE_REVIEW_H
#define DS_KUBE_REVIEW_H

#include "controller/kube/client.h"
#include "exporter/base/httpd.h"
#include "exporter/base/str.h"

#include <sys/queue.h>

struct kube_reviews;

struct kube_review_options {
    struct kube *kube;    /* must outlive the reviews */
    int64_t cache_ttl_ms; /* of "allowed"; "refused" is cached for as long, but at most ten seconds */
    int64_t timeout_ms;   /* of both questions together */
};

/* What someone proves to be who they are with. Of both the token counts. */
struct kube_credential {
    struct str token;
    struct str certificate; /* DER, verified */
};

/* What the user must be allowed. String literals. */
struct kube_right {
    const char *verb, *path;
};

/* Who waits for an answer; embedded in its owner. */
struct kube_review {
    /* Called once. refusal: NULL if allowed, valid during the call. Must not start a review. */
    void (*done)(struct kube_review *r, const struct httpd_refusal *refusal);
    LIST_ENTRY(kube_review) entry;
};

/* -ENOMEM. */
struct kube_reviews *kube_reviews_new(const struct kube_review_options *o);
/* Cancels reviews under way: those who wait are not called. Takes NULL, returns NULL. */
struct kube_reviews *kube_reviews_free(struct kube_reviews *all);
/* Answers at once if the answer is cached, or if it cannot be had. The credential
 * is copied. */
void kube_review_start(struct kube_reviews *all, struct kube_review *r, const struct kube_credential *c,
                       const struct kube_right *right);

#endif

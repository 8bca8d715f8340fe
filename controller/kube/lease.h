/* Leader election by a coordination.k8s.io/v1 Lease, with client-go's rules: whoever finds the lease free, or
 * unchanged for its whole duration, takes it; the holder renews it and stops by itself when it could not for
 * renew_deadline_ms, which is sooner than others may take it.
 *
 * Expiry is judged by the local monotonic time at which a change was seen, never by the times written in
 * the lease: clocks of two machines need not agree. */
#ifndef DS_KUBE_LEASE_H
#define DS_KUBE_LEASE_H

#include "controller/kube/client.h"

struct kube_lease;

struct kube_lease_options {
    const char *namespace, *name;               /* copied, as is identity */
    const char *identity;                       /* unique per process: pod name and a random part */
    int64_t duration_ms;                        /* 0: 15 s; whole seconds */
    int64_t renew_deadline_ms;                  /* 0: two thirds of it */
    int64_t retry_ms;                           /* 0: 2 s */
    void (*on_change)(void *arg, bool leading); /* may free the lease */
    void *arg;
};

/* Starts in the loop's next turn. -ENOMEM, -EINVAL for times that do not fit. */
MUST_USE int kube_lease_new(struct kube_lease **ret, struct kube *k, const struct kube_lease_options *o);
/* The lease is not given back: see kube_lease_release(). */
struct kube_lease *kube_lease_free(struct kube_lease *l);
DEFINE_CLEANUP(struct kube_lease, kube_lease_free)

/* Whether this process may act as the leader at this very moment, by the loop's time. */
bool kube_lease_leading(const struct kube_lease *l);
/* Who holds it, as last seen; "" when no one, or not known. */
const char *kube_lease_holder(const struct kube_lease *l);
/* Why it could not be read or written the last time; NULL when it could. */
const char *kube_lease_trouble(const struct kube_lease *l);
/* Stops leading at once (on_change is called) and gives the lease back, so that another need not wait for
 * it to expire; `done`, which may be NULL, is called when that has ended, well or not. The lease is not
 * taken again. */
void kube_lease_release(struct kube_lease *l, void (*done)(void *arg));

#endif

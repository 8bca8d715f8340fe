/* Leader election by a Lease, with client-go's rules. On the loop.
 *
 * A candidate takes it if it is free, or has not changed for its duration of 15 s by the candidate's own
 * clock: clocks need not agree. The holder renews it every 2 s, and stops leading if it cannot do so for
 * 10 s. A standby looks every second. */
#pragma once

#include <stdbool.h>

struct kube;
struct kube_lease;

enum { KUBE_IDENTITY_BYTES = 300 };

struct kube_lease_options {
    const char *namespace, *name; /* not owned, nor is identity */
    const char *identity;         /* unique per process: pod name and a random part */
    /* Also once when another leads at the start. Must not free the lease. */
    void (*on_change)(void *arg, bool leading);
    /* What kube_lease_error() says has begun or ended; may be NULL. Must not free the lease. */
    void (*on_error_changed)(void *arg);
    void *arg;
};

/* The pod's or the host's name, and a random part that tells processes apart. */
void kube_lease_make_identity(char out[KUBE_IDENTITY_BYTES]);
/* Logs each change. Starts in the loop's next turn. */
struct kube_lease *kube_lease_new(struct kube *k, const struct kube_lease_options *o);
/* Does not release the Lease. */
struct kube_lease *kube_lease_free(struct kube_lease *l);

/* Whether this process is the leader now, by the loop's time. */
bool kube_lease_leading(const struct kube_lease *l);
/* The holder as last seen; "" if none or unknown. */
const char *kube_lease_holder(const struct kube_lease *l);
/* Why the last read or write failed; NULL if it did not. */
const char *kube_lease_error(const struct kube_lease *l);
/* Stops leading at once and for good, and releases the Lease. `done` (may be NULL) is called when that has
 * ended, successfully or not, after at most 5 s. */
void kube_lease_release(struct kube_lease *l, void (*done)(void *arg), void *arg);

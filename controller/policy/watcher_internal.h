/* What the watcher's files share. */
#ifndef DS_POLICY_WATCHER_INTERNAL_H
#define DS_POLICY_WATCHER_INTERNAL_H

#include "controller/kube/last_write.h"
#include "controller/kube/queue.h"
#include "controller/kube/watch.h"
#include "controller/policy/claim.h"
#include "controller/policy/watcher.h"
#include "exporter/base/clock.h"
#include "exporter/base/loop.h"
#include "exporter/base/map.h"

enum { CLAIM_BYTES = 64, CLAIM_VERSION_BYTES = 64 };

struct known_policy {
    struct policy policy;
    char name[];
};

/* The ClusterClaim as it was last seen or written. */
struct known_claim {
    bool exists;
    char value[CLAIM_BYTES]; /* cut */
    char version[CLAIM_VERSION_BYTES];
    unix_ms written_at; /* when a policy watcher wrote the value; 0: another did */
};

struct policy_watcher {
    struct policy_watcher_options o;
    struct kube_watch *policy_watch, *claim_watch;
    struct kube_queue *queue;        /* of one key */
    struct kube_call *check, *write; /* at most one of them */
    bool is_check_refused;           /* the last check was, which keeps the queue waiting */
    struct timer timer;              /* when to decide again without an event */
    struct map policies;             /* of struct known_policy */
    struct known_claim claim;
    enum claim_value writing, written; /* by this watcher: now, and last */
    bool is_creating;                  /* the write under way makes the claim */
    struct last_write last_write;

    /* A run: all enabled policies are compliant without a break. */
    bool has_run, is_broken; /* is_broken: there was a break since the last decision */
    mono_ms run_since;
    bool is_resumed;  /* the run was found at the start, and when it began has yet to be read */
    mono_ms blind_at; /* since when there is no news although the API server answers; 0: there is */
    bool is_decided;
    enum claim_value wanted; /* if is_decided */
};

/* Decides what the claim should be, and asks for what that needs. */
void policy_watcher_decide(struct policy_watcher *w);

/* ---- watcher_claim.c ---- */

/* Writes the claim, if it is not as wanted. -ENOMEM. */
MUST_USE int policy_claim_touch(struct policy_watcher *w);
/* The queue's work. */
void policy_claim_work(void *arg, const char *key);
void policy_claim_on_set(void *arg, json_t *object);
void policy_claim_on_delete(void *arg, const char *namespace, const char *name);
bool policy_claim_has(const struct policy_watcher *w, enum claim_value v);

#endif

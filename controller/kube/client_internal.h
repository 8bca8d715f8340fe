/* Shared by the files of this folder and included nowhere else. Of the client's, each uses those before
 * it: client_credentials.c, client_url.c, client_reach.c, client_call.c, client.c. */
#ifndef DS_KUBE_CLIENT_INTERNAL_H
#define DS_KUBE_CLIENT_INTERNAL_H

#include "controller/kube/client.h"
#include "controller/kube/config.h"
#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/loop.h"

#include <errno.h>

enum { KUBE_FAR_MS = 24 * 3600 * 1000 };

/* See client.h, "Whether the API server answers". */
struct kube_reach {
    enum { REACH_UP, REACH_DOUBTED, REACH_AWAY } state;
    mono_ms doubted_at;     /* the first call without an answer */
    mono_ms away_at;        /* that of the last absence; 0: none so far */
    mono_ms cleared_at;     /* when it last answered instead, and only the call had failed; 0: never */
    struct timer timer;     /* always set; to ask */
    struct kube_call *call; /* that asks */
    mono_ms asked_at;
    unsigned asked; /* since doubted_at */
    LIST_HEAD(, kube_waiter) waiters;
};

struct kube {
    struct loop *loop;
    struct http *http;
    char *label, *kubeconfig, *context, *in_cluster_dir;
    struct kube_config *config; /* NULL until it could be read */
    mono_ms read_at;
    bool stale; /* read again before the next call */
    char trouble[512];
    LIST_HEAD(, kube_call) calls;
    struct kube_reach reach;
};

/* Where a request goes. */
struct kube_route {
    struct buf path; /* with the query, terminated */
    struct buf what; /* "get configmaps ns/name", terminated */
};

/* Moves a timer that is set or has just run, which cannot fail. A timer whose next step must not be lost
 * is set from the start, and KUBE_FAR_MS ahead while there is nothing to do. */
static inline void kube_timer_move(struct loop *l, struct timer *t, int64_t in_ms)
{
    int r = loop_timer_set(l, t, mono_add(loop_now(l), in_ms));

    (void)r;
}

/* Copies a string; NULL stays NULL. -ENOMEM. */
MUST_USE static inline int kube_copy(char **ret, const char *s)
{
    *ret = s ? str_dup(str_of(s)) : NULL;
    return s && !*ret ? -ENOMEM : 0;
}

/* Reads the credentials if they are a minute old or could not be read the last time. */
void kube_freshen(struct kube *k);

/* Sets the timer, whose function asks. -ENOMEM. */
MUST_USE int kube_reach_init(struct kube *k, void (*ask)(struct timer *t));
/* What the outcome of a call says about the server. */
void kube_reach_note(struct kube *k, const struct kube_answer *a);
/* The server was asked, and its answer noted. */
void kube_reach_asked(struct kube *k, int64_t retry_after_ms);

/* Cancels all calls. */
void kube_cancel_all(struct kube *k);

void kube_route_done(struct kube_route *r);
/* -EINVAL for a name that is no path segment, or if the method needs more; -ENOMEM, -EFBIG. */
MUST_USE int kube_route_make(struct kube_route *r, const struct kube_request *rq);

#endif

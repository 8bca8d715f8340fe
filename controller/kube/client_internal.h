/* What the files of this folder share; nothing else includes it. */
#ifndef DS_KUBE_CLIENT_INTERNAL_H
#define DS_KUBE_CLIENT_INTERNAL_H

#include "controller/kube/client.h"

enum { KUBE_FAR_MS = 24 * 3600 * 1000 };

/* Where a request goes. */
struct kube_route {
    struct buf url;
    struct buf host;       /* "Host: host:port" and connect_to, terminated; empty without a tls-server-name */
    struct buf connect_to; /* as in http.h */
    struct buf what;       /* "GET configmaps ns/name", for people; terminated */
};

/* Moves a timer that is set, or has just run, which cannot fail: whoever must not lose its next step keeps its timer set
 * from the beginning, KUBE_FAR_MS ahead while there is nothing to do. */
static inline void kube_timer_move(struct loop *l, struct timer *t, int64_t in_ms)
{
    int r = loop_timer_set(l, t, mono_add(loop_now(l), in_ms));

    (void)r;
}

void kube_route_done(struct kube_route *r);
/* -EINVAL for a name that cannot be in a path, or without what the method needs; -ENOMEM, -EFBIG. */
MUST_USE int kube_route_path(struct kube_route *r, const struct kube_request *rq);
/* Sets url, host and connect_to; path is that of kube_route_path(). */
MUST_USE int kube_route_server(struct kube_route *r, const struct kube_config *c, struct str path);

#endif

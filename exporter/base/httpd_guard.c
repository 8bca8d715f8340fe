/* Requests that wait for the guard's decision, their ceiling and their deadline.
 *
 * A request is entered before the guard is asked, so that a decision of another thread finds it whenever it
 * comes. Whoever takes it off the list, under the lock, decides: the guard, the deadline, or the end of the
 * server. */
#include "exporter/base/httpd_internal.h"

enum {
    /* This part of the connections may wait for decisions. */
    GUARD_SHARE = 4,
    RETRY_SECONDS = 5,
};

static void guard_apply(struct exchange *x, const struct httpd_refusal *refusal)
{
    if (!refusal) {
        x->state = ALLOWED;
        return;
    }
    x->state = READY;
    x->allow[0] = '\0';
    httpd_reply_error(x, refusal->status, refusal->text);
    x->reply.challenge = refusal->challenge;
    x->reply.retry_after = refusal->retry_after;
}

/* Takes it off the list and decides. The lock is held. */
static void guard_leave(struct exchange **at, const struct httpd_refusal *refusal)
{
    struct exchange *x = *at;

    *at = x->next;
    x->next = NULL;
    x->server->n_guarded--;
    guard_apply(x, refusal);
    if (x->suspended)
        MHD_resume_connection(x->connection); /* x may be gone after this */
}

/* NULL if it has been decided. The lock is held. */
static struct exchange **guard_find(struct httpd *h, uint64_t ticket)
{
    struct exchange **at = &h->guarded;

    while (*at && (*at)->ticket != ticket)
        at = &(*at)->next;
    return *at ? at : NULL;
}

/* False, with the reply, if it may not wait. */
static bool guard_enter(struct exchange *x)
{
    static const struct httpd_refusal stopping = {.status = MHD_HTTP_SERVICE_UNAVAILABLE,
                                                  .text = "503: shutting down\n"};
    static const struct httpd_refusal full = {.status = MHD_HTTP_SERVICE_UNAVAILABLE,
                                              .text = "503: too many requests wait for authentication\n",
                                              .retry_after = RETRY_SECONDS};
    struct httpd *h = x->server;
    const struct httpd_refusal *refusal = NULL;

    (void)pthread_mutex_lock(&h->lock);
    if (atomic_load(&h->stopping)) {
        refusal = &stopping;
    } else if (h->n_guarded >= h->options.max_connections / GUARD_SHARE + 1) {
        refusal = &full;
    } else {
        x->state = GUARDED;
        x->ticket = ++h->last_ticket;
        x->guarded_since = clock_system.mono(&clock_system);
        x->next = h->guarded;
        h->guarded = x;
        h->n_guarded++;
    }
    (void)pthread_mutex_unlock(&h->lock);
    if (refusal)
        guard_apply(x, refusal);
    return !refusal;
}

/* What the guard said. If it has decided meanwhile, or the server has, that counts. */
static enum httpd_access guard_settle(struct exchange *x, enum httpd_access access,
                                      const struct httpd_refusal *refusal)
{
    struct httpd *h = x->server;
    struct exchange **at;

    (void)pthread_mutex_lock(&h->lock);
    at = guard_find(h, x->ticket);
    if (at && access == HTTPD_LATER) {
        x->suspended = true;
        MHD_suspend_connection(x->connection);
    } else {
        if (at)
            guard_leave(at, access == HTTPD_ALLOW ? NULL : refusal);
        access = x->state == ALLOWED ? HTTPD_ALLOW : HTTPD_REFUSE;
    }
    (void)pthread_mutex_unlock(&h->lock);
    return access;
}

enum httpd_access httpd_guard_check(struct exchange *x)
{
    const struct httpd_guard *g = x->server->options.guard;
    struct httpd_refusal refusal = {.status = MHD_HTTP_FORBIDDEN, .text = "403: forbidden\n"};
    const union MHD_ConnectionInfo *peer;
    struct httpd_ticket ticket;

    if (!g)
        return HTTPD_ALLOW;
    peer = MHD_get_connection_info(x->connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    x->request.peer = peer->client_addr;
    if (x->server->options.tls)
        x->request.client_certificate = httpd_tls_peer(
            MHD_get_connection_info(x->connection, MHD_CONNECTION_INFO_GNUTLS_SESSION)->tls_session);
    x->request.authorization = httpd_get_header(x, "Authorization", &x->joined[3]);
    httpd_conn_set(x->server, x->fd, CONN_HANDLING);
    if (!guard_enter(x))
        return HTTPD_REFUSE;
    ticket = (struct httpd_ticket){.server = x->server, .id = x->ticket};
    return guard_settle(x, g->check(g->arg, &x->request, &ticket, &refusal), &refusal);
}

void httpd_decide(const struct httpd_ticket *ticket, const struct httpd_refusal *refusal)
{
    struct httpd *h = ticket->server;
    struct exchange **at;

    (void)pthread_mutex_lock(&h->lock);
    at = guard_find(h, ticket->id);
    if (at)
        guard_leave(at, refusal);
    (void)pthread_mutex_unlock(&h->lock);
}

void httpd_guard_expire(struct httpd *h)
{
    static const struct httpd_refusal late = {.status = MHD_HTTP_SERVICE_UNAVAILABLE,
                                              .text = "503: authentication took too long\n",
                                              .retry_after = RETRY_SECONDS};
    bool stopping = atomic_load(&h->stopping);
    mono_ms now = clock_system.mono(&clock_system);

    (void)pthread_mutex_lock(&h->lock);
    for (struct exchange **at = &h->guarded; *at;)
        if (stopping || mono_diff((*at)->guarded_since, now) >= h->options.guard->deadline_ms)
            guard_leave(at, &late);
        else
            at = &(*at)->next;
    (void)pthread_mutex_unlock(&h->lock);
}

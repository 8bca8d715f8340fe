/* The guard: requests whose sender is not yet known to be allowed. The server's lock protects their list; any
 * thread.
 *
 * The connection is suspended before the guard is asked, so that a decision of another thread finds the
 * request whenever it comes. Whoever takes it off the list, under the lock, decides: the guard, the deadline,
 * or the end of the server. */
#include "exporter/http/httpd_internal.h"

#include "exporter/base/invariant.h"
#include "exporter/base/lock.h"

enum {
    /* This part of the connections may wait for the guard. */
    GUARD_SHARE = 4,
    GUARD_RETRY_SECONDS = 5,
};

/* Takes it off the list and decides. */
static void guard_leave(struct exchange *x, const struct httpd_refusal *refusal)
{
    invariant(lock_is_held(&x->server->lock));
    STAILQ_REMOVE(&x->server->guarded, x, exchange, next);
    x->server->n_guarded--;
    x->state = refusal ? EXCHANGE_READY : EXCHANGE_ALLOWED;
    if (refusal) {
        httpd_reply_error(x, refusal->text);
        x->reply.challenge = refusal->challenge;
        x->reply.retry_after = refusal->retry_after;
    }
    MHD_resume_connection(x->connection); /* x may be gone after this */
}

enum MHD_Result httpd_guard_ask(struct exchange *x)
{
    struct httpd *h = x->server;
    const struct httpd_guard *g = h->options.guard;
    struct httpd_ticket ticket = {.server = h};
    bool ok;

    x->request.peer = MHD_get_connection_info(x->connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS)->client_addr;
    if (x->conn->tls)
        x->request.client_certificate = httpd_tls_peer(
            MHD_get_connection_info(x->connection, MHD_CONNECTION_INFO_GNUTLS_SESSION)->tls_session);
    httpd_conn_set(h, x->conn, CONN_HANDLING);
    lock_take(&h->lock);
    ok = !atomic_load(&h->stopping) && h->n_guarded <= h->options.max_connections / GUARD_SHARE;
    if (ok) {
        x->state = EXCHANGE_GUARDED;
        x->ticket = ticket.id = ++h->last_ticket;
        STAILQ_INSERT_TAIL(&h->guarded, x, next);
        h->n_guarded++;
        MHD_suspend_connection(x->connection);
    }
    lock_release(&h->lock);
    if (ok) {
        g->check(g->arg, &x->request, &ticket);
        return MHD_YES;
    }
    httpd_reply_error(x, atomic_load(&h->stopping) ? HTTPD_TEXT_STOPPING
                                                   : "503: too many requests wait for authentication\n");
    x->reply.retry_after = GUARD_RETRY_SECONDS;
    return httpd_respond(x);
}

void httpd_decide(const struct httpd_ticket *ticket, const struct httpd_refusal *refusal)
{
    struct httpd *h = ticket->server;
    struct exchange *x;

    lock_take(&h->lock);
    x = STAILQ_FIRST(&h->guarded);
    while (x && x->ticket != ticket->id)
        x = STAILQ_NEXT(x, next);
    if (x)
        guard_leave(x, refusal);
    lock_release(&h->lock);
}

void httpd_guard_expire(struct httpd *h)
{
    static const struct httpd_refusal late = {.text = "503: authentication took too long\n",
                                              .retry_after = GUARD_RETRY_SECONDS};
    mono_ms now = clock_system.mono(&clock_system);
    struct exchange *x;

    lock_take(&h->lock);
    while ((x = STAILQ_FIRST(&h->guarded)) &&
           (atomic_load(&h->stopping) || mono_diff(x->conn->since, now) >= h->options.guard->deadline_ms))
        guard_leave(x, &late);
    lock_release(&h->lock);
}

#include "exporter/web/auth_queue.h"

#include <errno.h>
#include <netinet/in.h>

struct auth_peer auth_peer_of(const struct sockaddr *address)
{
    struct auth_peer peer = {0};

    if (address->sa_family == AF_INET) {
        memcpy(peer.bytes, &((const struct sockaddr_in *)(const void *)address)->sin_addr, 4);
    } else if (address->sa_family == AF_INET6) {
        const struct in6_addr *a = &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;
        if (IN6_IS_ADDR_V4MAPPED(a)) {
            memcpy(peer.bytes, a->s6_addr + 12, 4);
        } else {
            memcpy(peer.bytes, a->s6_addr, 8);
            peer.bytes[8] = 6;
        }
    }
    return peer;
}

void auth_job_add_ticket(struct auth_job *j, const struct httpd_ticket *ticket)
{
    struct httpd_ticket *more = xrealloc(j->tickets, (j->n_tickets + 1) * sizeof(*more));

    j->tickets = more;
    more[j->n_tickets++] = *ticket;
}

struct auth_job *auth_job_free(struct auth_job *j)
{
    if (!j)
        return NULL;
    free(j->tickets);
    explicit_bzero(j, sizeof(*j));
    free(j);
    return NULL;
}

void auth_queue_init(struct auth_queue *q)
{
    *q = (struct auth_queue){.n = 0};
    TAILQ_INIT(&q->jobs);
}

static struct auth_job *queue_take(struct auth_queue *q, struct auth_job *j)
{
    TAILQ_REMOVE(&q->jobs, j, entry);
    q->n--;
    return j;
}

void auth_queue_done(struct auth_queue *q)
{
    struct auth_job *j;

    while ((j = TAILQ_FIRST(&q->jobs)))
        (void)auth_job_free(queue_take(q, j));
}

struct auth_job *auth_queue_find(struct auth_queue *q, const char *digest)
{
    struct auth_job *j;

    TAILQ_FOREACH (j, &q->jobs, entry)
        if (strcmp(j->digest, digest) == 0)
            return j;
    return NULL;
}

/* A hash identifies its user, by its salt. */
static bool queue_shares(const struct auth_job *a, const struct auth_job *b)
{
    return a->known == b->known && memcmp(&a->peer, &b->peer, sizeof(a->peer)) == 0 &&
           (!a->known || memcmp(a->hash, b->hash, sizeof(a->hash)) == 0);
}

int auth_queue_push(struct auth_queue *q, struct auth_job *j, struct auth_job **ret_displaced)
{
    struct auth_job *other, *last_unknown = NULL;
    unsigned share = 0;

    TAILQ_FOREACH (other, &q->jobs, entry) {
        share += queue_shares(other, j);
        if (!other->known)
            last_unknown = other;
    }
    if (share >= AUTH_QUEUE_SHARE)
        return -EAGAIN;
    if (q->n >= AUTH_QUEUE_MAX) {
        if (!j->known || !last_unknown)
            return -EBUSY;
        *ret_displaced = queue_take(q, last_unknown);
    }
    TAILQ_INSERT_TAIL(&q->jobs, j, entry);
    q->n++;
    return 0;
}

struct auth_job *auth_queue_pop(struct auth_queue *q)
{
    struct auth_job *j, *first = TAILQ_FIRST(&q->jobs);

    TAILQ_FOREACH (j, &q->jobs, entry)
        if (j->known)
            return queue_take(q, j);
    return first ? queue_take(q, first) : NULL;
}

/* ---- Results ---- */

static struct auth_entry *cache_find(struct auth_entry *list, size_t n, const char *digest)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(list[i].digest, digest) == 0)
            return &list[i];
    return NULL;
}

/* Free ones are the oldest. */
static struct auth_entry *cache_oldest(struct auth_entry *list, size_t n)
{
    struct auth_entry *oldest = list;

    for (size_t i = 1; i < n; i++)
        if (mono_before(list[i].at, oldest->at))
            oldest = &list[i];
    return oldest;
}

bool auth_cache_get(struct auth_cache *c, const char *digest, mono_ms now, bool *ret_good)
{
    struct auth_entry *e = cache_find(c->good, AUTH_CACHE_GOOD, digest);

    *ret_good = e;
    if (e) {
        e->at = now;
        return true;
    }
    e = cache_find(c->bad, AUTH_CACHE_BAD, digest);
    return e && mono_diff(e->at, now) < AUTH_CACHE_BAD_MS;
}

void auth_cache_put(struct auth_cache *c, const char *digest, mono_ms now, bool good)
{
    struct auth_entry *list = good ? c->good : c->bad, *e;
    size_t n = good ? AUTH_CACHE_GOOD : AUTH_CACHE_BAD;

    e = cache_find(list, n, digest) ?: cache_oldest(list, n);
    memcpy(e->digest, digest, sizeof(e->digest));
    e->at = now;
}

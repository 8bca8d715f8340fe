/* Owns the thread that compares, the comparisons that wait for it, and the digests of those that
 * succeeded. Server's threads ask, the thread answers; `lock` is between them. After passwords_close() no
 * ticket is touched, as the server may be gone. */
#include "exporter/web/passwords.h"

#include "exporter/base/alloc.h"
#include "exporter/base/base64.h"
#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/invariant.h"
#include "exporter/base/lock.h"
#include "exporter/base/loop.h"
#include "exporter/base/secret.h"

#include <crypt.h>
#include <errno.h>
#include <gnutls/gnutls.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/queue.h>
#include <sys/resource.h>
#include <time.h>

enum {
    QUEUE_MAX = 32, /* of known users, and as many of unknown ones */
    QUEUE_SHARE = 2,
    GOOD_RESULTS = 256,
    NICE = 5,
    STOP_SECONDS = 1,
    BCRYPT_DIGEST_AT = 29,    /* in a hash */
    PASSWORD_MAX_BYTES = 511, /* libxcrypt's limit; bcrypt itself uses the first 72 */
};

/* One comparison, and the requests that wait for its result. */
struct auth_job {
    TAILQ_ENTRY(auth_job) entry;
    char digest[DIGEST_TEXT_BYTES];
    char hash[BCRYPT_BYTES]; /* of an unknown user: another one's */
    bool known;
    uint64_t peer; /* an IPv4 address, or the /64 of an IPv6 address, which one client may have as a whole */
    mono_ms since;
    char password[PASSWORD_MAX_BYTES + 1];
    struct httpd_ticket *tickets;
    size_t n_tickets;
};

TAILQ_HEAD(auth_jobs, auth_job);

struct passwords {
    pthread_t thread;
    struct lock lock; /* for all below; its holder never blocks */
    pthread_cond_t changed;
    bool closed;
    struct auth_jobs queues[2]; /* of unknown and of known users */
    struct auth_job *running;
    char good[GOOD_RESULTS][DIGEST_TEXT_BYTES]; /* of the last comparisons that succeeded */
    size_t n_good;                              /* so far */
};

const struct httpd_refusal password_is_wrong = {.text = "401: user or password is wrong\n",
                                                .challenge = PASSWORD_CHALLENGE};
static const struct httpd_refusal too_many = {.text = "429: too many different passwords at a time\n",
                                              .retry_after = 1};
static const struct httpd_refusal busy = {.text = "503: too many requests wait for authentication\n",
                                          .retry_after = 5};

/* libxcrypt treats some passwords of $2a$ in a way of its own; $2b$ is what all other programs mean by the
 * three. */
static bool bcrypt_matches(const char *password, const char hash[BCRYPT_BYTES])
{
    struct crypt_data data = {0};
    char setting[BCRYPT_BYTES + 1] = "";
    const char *made;
    bool same;

    memcpy(setting, hash, BCRYPT_BYTES);
    setting[2] = 'b';
    made = crypt_r(password, setting, &data);
    same =
        made && strlen(made) == BCRYPT_BYTES &&
        gnutls_memcmp(made + BCRYPT_DIGEST_AT, hash + BCRYPT_DIGEST_AT, BCRYPT_BYTES - BCRYPT_DIGEST_AT) == 0;
    explicit_bzero(&data, sizeof(data));
    return same;
}

static bool result_is_good(const struct passwords *p, const char *digest)
{
    size_t i = 0;

    invariant(lock_is_held(&p->lock));
    while (i < GOOD_RESULTS && strcmp(p->good[i], digest) != 0)
        i++;
    return i < GOOD_RESULTS;
}

static uint64_t peer_of(const struct sockaddr *address)
{
    const struct in6_addr *six = &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;

    if (address->sa_family == AF_INET)
        return ((const struct sockaddr_in *)(const void *)address)->sin_addr.s_addr;
    if (IN6_IS_ADDR_V4MAPPED(six))
        return six->s6_addr32[3];
    return (uint64_t)six->s6_addr32[0] << 32 | six->s6_addr32[1];
}

/* Wipes the password. Takes NULL, returns NULL. */
static struct auth_job *job_free(struct auth_job *j)
{
    if (!j)
        return NULL;
    free(j->tickets);
    explicit_bzero(j, sizeof(*j));
    free(j);
    return NULL;
}
DEFINE_CLEANUP(struct auth_job, job_free)

/* The job to wait for: one for the same password, or *j, which is taken then. NULL: *ret says why *j may not
 * wait. */
static struct auth_job *job_join(struct passwords *p, struct auth_job **j, const struct httpd_refusal **ret)
{
    struct auth_jobs *queue = &p->queues[(*j)->known];
    unsigned share = 0, n = 0;
    struct auth_job *other;

    invariant(lock_is_held(&p->lock));
    if (p->running && strcmp(p->running->digest, (*j)->digest) == 0)
        return p->running;
    TAILQ_FOREACH (other, queue, entry) {
        if (strcmp(other->digest, (*j)->digest) == 0)
            return other;
        share += other->peer == (*j)->peer && /* a hash identifies its user, by its salt */
                 (!other->known || memcmp(other->hash, (*j)->hash, sizeof(other->hash)) == 0);
        n++;
    }
    if (share >= QUEUE_SHARE) {
        *ret = &too_many;
        return NULL;
    }
    if (n >= QUEUE_MAX) {
        *ret = &busy;
        return NULL;
    }
    TAILQ_INSERT_TAIL(queue, *j, entry);
    (void)pthread_cond_signal(&p->changed);
    return TAKE_PTR(*j);
}

/* NULL if there is none. */
static struct auth_job *job_dequeue(struct passwords *p)
{
    struct auth_jobs *queue = &p->queues[TAILQ_EMPTY(&p->queues[true]) ? false : true];
    struct auth_job *j = TAILQ_FIRST(queue);

    invariant(lock_is_held(&p->lock));
    if (j)
        TAILQ_REMOVE(queue, j, entry);
    return j;
}

/* The lock is not held during the comparison. */
static void job_run(struct passwords *p, struct auth_job *j)
{
    bool good;

    invariant(lock_is_held(&p->lock));
    if (mono_diff(j->since, clock_system.mono(&clock_system)) < PASSWORDS_DEADLINE_MS) {
        p->running = j;
        lock_release(&p->lock);
        good = bcrypt_matches(j->password, j->hash) && j->known;
        lock_take(&p->lock);
        p->running = NULL;
        if (good)
            memcpy(p->good[p->n_good++ % GOOD_RESULTS], j->digest, sizeof(j->digest));
        for (size_t i = 0; !p->closed && i < j->n_tickets; i++)
            httpd_decide(&j->tickets[i], good ? NULL : &password_is_wrong);
    } /* else the server has answered */
    (void)job_free(j);
}

static void *auth_main(void *arg)
{
    struct passwords *p = arg;

    (void)pthread_setname_np(pthread_self(), "passwords");
    (void)setpriority(PRIO_PROCESS, (id_t)gettid(), NICE);
    lock_take(&p->lock);
    while (!p->closed) {
        struct auth_job *j = job_dequeue(p);
        if (j)
            job_run(p, j);
        else
            lock_wait(&p->lock, &p->changed);
    }
    lock_release(&p->lock);
    return NULL;
}

bool password_claim_parse(const char *authorization, struct buf *all, struct password_claim *ret)
{
    static const struct str scheme = STR("Basic ");
    struct str value = str_of(authorization);
    const char *colon;

    if (value.n < scheme.n || !str_eq_nocase((struct str){value.p, scheme.n}, scheme) ||
        base64_decode(str_trim((struct str){value.p + scheme.n, value.n - scheme.n}), all) < 0)
        return false;
    colon = all->n ? memchr(all->p, ':', all->n) : NULL;
    if (!colon || memchr(all->p, '\0', all->n))
        return false;
    ret->user = (struct str){all->p, (size_t)(colon - all->p)};
    ret->password = (struct str){colon + 1, all->n - ret->user.n - 1};
    return ret->password.n <= PASSWORD_MAX_BYTES;
}

static struct auth_job *job_new(const struct password_claim *claim)
{
    struct auth_job *j = xcalloc(1, sizeof(*j));
    /* Whether the user is known, too: a name that was taken out of the file is compared with another user's
     * hash, which may be the one that it had. */
    const struct str parts[] = {
        claim->user, {claim->hash, BCRYPT_BYTES}, claim->password, {claim->is_known ? "1" : "0", 1}};

    j->known = claim->is_known;
    j->peer = peer_of(claim->peer);
    j->since = clock_system.mono(&clock_system);
    memcpy(j->hash, claim->hash, sizeof(j->hash));
    memcpy(j->password, claim->password.p, claim->password.n);
    digest_parts(j->digest, parts, ARRAY_SIZE(parts));
    return j;
}

void passwords_check(struct passwords *p, const struct password_claim *claim,
                     const struct httpd_ticket *ticket)
{
    CLEANUP(cleanup_job_free) struct auth_job *j = job_new(claim);
    const struct httpd_refusal *refusal = NULL;
    struct auth_job *waiting = NULL;

    lock_take(&p->lock);
    if (p->closed)
        refusal = &busy;
    else if (!result_is_good(p, j->digest))
        waiting = job_join(p, &j, &refusal);
    if (waiting) {
        waiting->tickets = xreallocarray(waiting->tickets, waiting->n_tickets + 1, sizeof(*waiting->tickets));
        waiting->tickets[waiting->n_tickets++] = *ticket;
    } else {
        httpd_decide(ticket, refusal);
    }
    lock_release(&p->lock);
}

/* ---- Construction ---- */

static void passwords_drop(struct passwords *p)
{
    struct auth_job *j;

    lock_take(&p->lock);
    while ((j = job_dequeue(p)))
        (void)job_free(j);
    lock_release(&p->lock);
    (void)pthread_cond_destroy(&p->changed);
    lock_done(&p->lock);
    free(p);
}

int passwords_new(struct passwords **ret)
{
    struct passwords *p = xcalloc(1, sizeof(*p));

    lock_init(&p->lock);
    (void)pthread_cond_init(&p->changed, NULL);
    TAILQ_INIT(&p->queues[false]);
    TAILQ_INIT(&p->queues[true]);
    if (thread_start(&p->thread, auth_main, p) < 0) {
        passwords_drop(p);
        return -EAGAIN;
    }
    *ret = p;
    return 0;
}

void passwords_close(struct passwords *p)
{
    lock_take(&p->lock);
    p->closed = true;
    (void)pthread_cond_signal(&p->changed);
    lock_release(&p->lock);
}

struct passwords *passwords_free(struct passwords *p)
{
    struct timespec until;

    if (!p)
        return NULL;
    passwords_close(p);
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += STOP_SECONDS;
    if (pthread_clockjoin_np(p->thread, NULL, CLOCK_MONOTONIC, &until) == 0)
        passwords_drop(p);
    return NULL;
}

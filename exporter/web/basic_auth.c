/* Owns the results, the queue of comparisons and the thread that makes them. Two hold it, the owner and the
 * thread, which may be in the middle of a comparison when the program stops. */
#include "exporter/web/basic_auth.h"

#include "exporter/base/base64.h"
#include "exporter/base/clock.h"
#include "exporter/base/secret.h"
#include "exporter/base/worker.h"

#include <crypt.h>
#include <errno.h>
#include <gnutls/gnutls.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/queue.h>
#include <sys/resource.h>

enum {
    QUEUE_MAX = 32, /* of known users, and as many of unknown ones */
    QUEUE_SHARE = 2,
    GOOD_RESULTS = 256,
    NICE = 5,
    MAX_CREDENTIALS = 4096,
    SALT_AT = 7, /* in a hash, after "$2b$10$" */
    DIGEST_AT = 29,
};

/* An IPv4 address, or the /64 of an IPv6 address, which one client may have as a whole. */
struct auth_peer {
    unsigned char bytes[9];
};

/* One comparison, and the requests that wait for its result. */
struct auth_job {
    TAILQ_ENTRY(auth_job) entry;
    char digest[DIGEST_TEXT_BYTES];
    char hash[BCRYPT_BYTES]; /* of an unknown user: another one's */
    bool known;
    struct auth_peer peer;
    mono_ms since;
    char password[PASSWORD_MAX_BYTES + 1];
    struct httpd_ticket *tickets;
    size_t n_tickets;
};

/* A comparison that succeeded and need not be made again. */
struct auth_result {
    char digest[DIGEST_TEXT_BYTES]; /* empty: free */
    mono_ms used_at;
};

TAILQ_HEAD(auth_jobs, auth_job);

struct basic_auth {
    pthread_mutex_t lock; /* for all below; its holder never blocks */
    pthread_cond_t changed;
    unsigned holders;
    bool closed;
    const struct web_user *users; /* not owned */
    size_t n_users;
    struct auth_jobs queues[2]; /* of unknown and of known users */
    struct auth_job *running;
    struct auth_result good[GOOD_RESULTS]; /* each stays until as many newer ones have been used */
};

#define CHALLENGE "Basic realm=\"dynamic-scoring\", charset=\"UTF-8\""

static const struct httpd_refusal unauthorized = {
    .status = 401, .text = "401: user or password is wrong\n", .challenge = CHALLENGE};
static const struct httpd_refusal missing = {
    .status = 401, .text = "401: user and password required\n", .challenge = CHALLENGE};
static const struct httpd_refusal too_many = {
    .status = 429, .text = "429: too many different passwords at a time\n", .retry_after = 1};
static const struct httpd_refusal busy = {
    .status = 503, .text = "503: too many requests wait for authentication\n", .retry_after = 5};

/* ---- bcrypt, by libxcrypt ---- */

unsigned bcrypt_cost(struct str hash)
{
    static const char digits[] = "0123456789";
    unsigned cost;

    if (hash.n != BCRYPT_BYTES || hash.p[0] != '$' || hash.p[1] != '2' || !memchr("aby", hash.p[2], 3) ||
        hash.p[3] != '$' || !memchr(digits, hash.p[4], 10) || !memchr(digits, hash.p[5], 10) ||
        hash.p[6] != '$' || !str_has_only((struct str){hash.p + SALT_AT, hash.n - SALT_AT}, "./"))
        return 0;
    cost = (unsigned)(hash.p[4] - '0') * 10 + (unsigned)(hash.p[5] - '0');
    return cost >= 4 && cost <= 31 ? cost : 0;
}

/* libxcrypt treats some passwords of $2a$ in a way of its own; $2b$ is what all other programs mean by the
 * three. */
static bool bcrypt_matches(const char *password, const char hash[BCRYPT_BYTES])
{
    struct crypt_data *data = xcalloc(1, sizeof(*data));
    char setting[BCRYPT_BYTES + 1] = "";
    const char *made;
    bool same;

    memcpy(setting, hash, BCRYPT_BYTES);
    setting[2] = 'b';
    made = crypt_r(password, setting, data);
    same = made && strlen(made) == BCRYPT_BYTES &&
           gnutls_memcmp(made + DIGEST_AT, hash + DIGEST_AT, BCRYPT_BYTES - DIGEST_AT) == 0;
    explicit_bzero(data, sizeof(*data));
    free(data);
    return same;
}

/* ---- Results. The lock is held, here and below unless stated otherwise ---- */

static bool result_is_good(struct basic_auth *b, const char *digest, mono_ms now)
{
    for (size_t i = 0; i < GOOD_RESULTS; i++)
        if (strcmp(b->good[i].digest, digest) == 0) {
            b->good[i].used_at = now;
            return true;
        }
    return false;
}

/* Takes the place that is free or was not used for the longest time. */
static void result_put(struct basic_auth *b, const char *digest)
{
    struct auth_result *to = b->good;

    for (size_t i = 1; i < GOOD_RESULTS; i++)
        if (mono_before(b->good[i].used_at, to->used_at))
            to = &b->good[i];
    memcpy(to->digest, digest, sizeof(to->digest));
    to->used_at = clock_system.mono(&clock_system);
}

/* ---- Jobs ---- */

static struct auth_peer peer_of(const struct sockaddr *address)
{
    const struct in6_addr *six = &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;
    struct auth_peer peer = {0};

    if (address->sa_family == AF_INET) {
        memcpy(peer.bytes, &((const struct sockaddr_in *)(const void *)address)->sin_addr, 4);
    } else if (address->sa_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(six)) {
        memcpy(peer.bytes, six->s6_addr + 12, 4);
    } else if (address->sa_family == AF_INET6) {
        memcpy(peer.bytes, six->s6_addr, 8);
        peer.bytes[8] = 6;
    }
    return peer;
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

/* A hash identifies its user, by its salt. */
static bool jobs_share(const struct auth_job *a, const struct auth_job *b)
{
    return memcmp(&a->peer, &b->peer, sizeof(a->peer)) == 0 &&
           (!a->known || memcmp(a->hash, b->hash, sizeof(a->hash)) == 0);
}

static struct auth_job *job_find(struct basic_auth *b, const struct auth_job *like)
{
    struct auth_job *j;

    if (b->running && strcmp(b->running->digest, like->digest) == 0)
        return b->running;
    TAILQ_FOREACH (j, &b->queues[like->known], entry)
        if (strcmp(j->digest, like->digest) == 0)
            return j;
    return NULL;
}

/* NULL, or why the job may not wait. */
static const struct httpd_refusal *job_enqueue(struct basic_auth *b, struct auth_job *j)
{
    struct auth_jobs *queue = &b->queues[j->known];
    unsigned share = 0, n = 0;
    struct auth_job *other;

    TAILQ_FOREACH (other, queue, entry) {
        share += jobs_share(other, j);
        n++;
    }
    if (share >= QUEUE_SHARE)
        return &too_many;
    if (n >= QUEUE_MAX)
        return &busy;
    TAILQ_INSERT_TAIL(queue, j, entry);
    (void)pthread_cond_signal(&b->changed);
    return NULL;
}

/* NULL if there is none. */
static struct auth_job *job_dequeue(struct basic_auth *b)
{
    struct auth_jobs *queue = &b->queues[TAILQ_EMPTY(&b->queues[true]) ? false : true];
    struct auth_job *j = TAILQ_FIRST(queue);

    if (j)
        TAILQ_REMOVE(queue, j, entry);
    return j;
}

/* The lock is not held during the comparison. */
static void job_run(struct basic_auth *b, struct auth_job *j)
{
    bool good;

    if (mono_diff(j->since, clock_system.mono(&clock_system)) < BASIC_AUTH_DEADLINE_MS) {
        b->running = j;
        (void)pthread_mutex_unlock(&b->lock);
        good = bcrypt_matches(j->password, j->hash) && j->known;
        (void)pthread_mutex_lock(&b->lock);
        b->running = NULL;
        if (good)
            result_put(b, j->digest);
        for (size_t i = 0; !b->closed && i < j->n_tickets; i++)
            httpd_decide(&j->tickets[i], good ? NULL : &unauthorized);
    } /* else the server has answered */
    (void)job_free(j);
}

/* ---- The thread ---- */

/* The lock is not held. */
static void auth_release(struct basic_auth *b)
{
    struct auth_job *j;
    bool last;

    (void)pthread_mutex_lock(&b->lock);
    last = --b->holders == 0;
    (void)pthread_mutex_unlock(&b->lock);
    if (!last)
        return;
    while ((j = job_dequeue(b)))
        (void)job_free(j);
    (void)pthread_cond_destroy(&b->changed);
    (void)pthread_mutex_destroy(&b->lock);
    free(b);
}

static void *auth_main(void *arg)
{
    struct basic_auth *b = arg;

    (void)setpriority(PRIO_PROCESS, (id_t)gettid(), NICE);
    (void)pthread_mutex_lock(&b->lock);
    while (!b->closed) {
        struct auth_job *j = job_dequeue(b);
        if (j)
            job_run(b, j);
        else
            (void)pthread_cond_wait(&b->changed, &b->lock);
    }
    (void)pthread_mutex_unlock(&b->lock);
    auth_release(b);
    return NULL;
}

int basic_auth_new(struct basic_auth **ret)
{
    struct basic_auth *b = xcalloc(1, sizeof(*b));
    pthread_t thread;

    (void)pthread_mutex_init(&b->lock, NULL);
    (void)pthread_cond_init(&b->changed, NULL);
    TAILQ_INIT(&b->queues[false]);
    TAILQ_INIT(&b->queues[true]);
    b->holders = 2;
    if (thread_start(&thread, auth_main, b) < 0) {
        b->holders = 1;
        auth_release(b);
        return -EAGAIN;
    }
    (void)pthread_detach(thread);
    *ret = b;
    return 0;
}

void basic_auth_close(struct basic_auth *b)
{
    (void)pthread_mutex_lock(&b->lock);
    b->closed = true;
    (void)pthread_cond_signal(&b->changed);
    (void)pthread_mutex_unlock(&b->lock);
}

struct basic_auth *basic_auth_free(struct basic_auth *b)
{
    if (!b)
        return NULL;
    basic_auth_close(b);
    auth_release(b);
    return NULL;
}

void basic_auth_set_users(struct basic_auth *b, const struct web_user *users, size_t n)
{
    (void)pthread_mutex_lock(&b->lock);
    b->users = users;
    b->n_users = n;
    (void)pthread_mutex_unlock(&b->lock);
}

/* ---- Requests. Server's thread ---- */

/* Finds user and password in the field's value, decoded into `all`. */
static bool auth_parse(const char *authorization, struct buf *all, struct str *ret_user,
                       struct str *ret_password)
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
    *ret_user = (struct str){all->p, (size_t)(colon - all->p)};
    *ret_password = (struct str){colon + 1, all->n - ret_user->n - 1};
    return ret_password->n <= PASSWORD_MAX_BYTES;
}

/* Copies the user's hash; for an unknown user another's, so that both take the same time. The lock is not
 * held. */
static void auth_find_hash(struct basic_auth *b, struct str user, char hash[BCRYPT_BYTES], bool *ret_known)
{
    *ret_known = false;
    (void)pthread_mutex_lock(&b->lock);
    for (size_t i = b->n_users; i-- > 0 && !*ret_known;) {
        *ret_known = str_eq(b->users[i].name, user);
        memcpy(hash, b->users[i].hash.p, BCRYPT_BYTES);
    }
    (void)pthread_mutex_unlock(&b->lock);
}

/* Takes *j if it waits. */
static enum httpd_access auth_look_up(struct basic_auth *b, struct auth_job **j,
                                      const struct httpd_ticket *ticket, struct httpd_refusal *ret)
{
    const struct httpd_refusal *refused;
    struct auth_job *waiting;

    *ret = busy;
    if (b->closed)
        return HTTPD_REFUSE;
    if (result_is_good(b, (*j)->digest, (*j)->since))
        return HTTPD_ALLOW;
    waiting = job_find(b, *j);
    if (!waiting) {
        refused = job_enqueue(b, *j);
        if (refused) {
            *ret = *refused;
            return HTTPD_REFUSE;
        }
        waiting = TAKE_PTR(*j);
    }
    waiting->tickets = xreallocarray(waiting->tickets, waiting->n_tickets + 1, sizeof(*waiting->tickets));
    waiting->tickets[waiting->n_tickets++] = *ticket;
    return HTTPD_LATER;
}

enum httpd_access basic_auth_check(struct basic_auth *b, const struct httpd_request *rq,
                                   const struct httpd_ticket *ticket, struct httpd_refusal *ret)
{
    SECRET_AUTO(all, MAX_CREDENTIALS);
    CLEANUP(cleanup_job_free) struct auth_job *j = NULL;
    struct str user = {0}, password = {0};
    enum httpd_access access;

    *ret = rq->authorization[0] ? unauthorized : missing;
    if (!auth_parse(rq->authorization, &all, &user, &password))
        return HTTPD_REFUSE;
    j = xcalloc(1, sizeof(*j));
    auth_find_hash(b, user, j->hash, &j->known);
    j->peer = peer_of(rq->peer);
    j->since = clock_system.mono(&clock_system);
    memcpy(j->password, password.p, password.n);
    *ret = busy;
    if (digest_parts(j->digest, (const struct str[]){user, {j->hash, BCRYPT_BYTES}, password}, 3) < 0)
        return HTTPD_REFUSE;
    (void)pthread_mutex_lock(&b->lock);
    access = auth_look_up(b, &j, ticket, ret);
    (void)pthread_mutex_unlock(&b->lock);
    return access;
}

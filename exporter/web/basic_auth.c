/* Owns the results and the thread that compares. Two hold it, the owner and the thread, which may
 * be in the middle of a comparison when the program stops. */
#include "exporter/web/basic_auth.h"

#include "exporter/base/base64.h"
#include "exporter/base/clock.h"
#include "exporter/base/digest.h"
#include "exporter/base/secret.h"
#include "exporter/base/worker.h"
#include "exporter/web/auth_queue.h"

#include <crypt.h>
#include <errno.h>
#include <gnutls/gnutls.h>
#include <pthread.h>
#include <sys/resource.h>

enum {
    NICE = 5,
    MAX_CREDENTIALS = 4096,
    SALT_AT = 7, /* in a hash, after "$2b$10$" */
    DIGEST_AT = 29,
};

struct basic_auth {
    pthread_mutex_t lock; /* for all below; its holder never blocks */
    pthread_cond_t changed;
    unsigned holders;
    bool closed;
    const struct web_user *users; /* not owned */
    size_t n_users;
    struct auth_cache cache;
    struct auth_queue queue;
    struct auth_job *running;
};

static const struct httpd_refusal unauthorized = {
    .status = 401, .text = "401: user or password is wrong\n", .challenge = BASIC_AUTH_CHALLENGE};
static const struct httpd_refusal missing = {
    .status = 401, .text = "401: user and password required\n", .challenge = BASIC_AUTH_CHALLENGE};
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
static int bcrypt_matches(struct str password, struct str hash)
{
    struct crypt_data *data = xcalloc(1, sizeof(*data));
    char key[PASSWORD_MAX_BYTES + 1] = "", setting[BCRYPT_BYTES + 1] = "";
    const char *made = NULL;
    bool same;

    memcpy(setting, hash.p, BCRYPT_BYTES);
    setting[2] = 'b';
    if (password.n <= PASSWORD_MAX_BYTES) {
        if (password.n)
            memcpy(key, password.p, password.n);
        made = crypt_r(key, setting, data);
    }
    same = made && strlen(made) == BCRYPT_BYTES &&
           gnutls_memcmp(made + DIGEST_AT, hash.p + DIGEST_AT, BCRYPT_BYTES - DIGEST_AT) == 0;
    explicit_bzero(key, sizeof(key));
    explicit_bzero(data, sizeof(*data));
    free(data);
    return same;
}

/* ---- The thread ---- */

static void auth_release(struct basic_auth *b)
{
    bool last;

    (void)pthread_mutex_lock(&b->lock);
    last = --b->holders == 0;
    (void)pthread_mutex_unlock(&b->lock);
    if (!last)
        return;
    auth_queue_done(&b->queue);
    (void)pthread_cond_destroy(&b->changed);
    (void)pthread_mutex_destroy(&b->lock);
    free(b);
}

/* The lock is held. */
static void auth_decide(struct basic_auth *b, struct auth_job *j, const struct httpd_refusal *refusal)
{
    for (size_t i = 0; !b->closed && i < j->n_tickets; i++)
        httpd_decide(&j->tickets[i], refusal);
    (void)auth_job_free(j);
}

/* The lock is held, but not during the comparison. */
static void auth_run(struct basic_auth *b, struct auth_job *j)
{
    mono_ms now = clock_system.mono(&clock_system);
    int r;

    if (mono_diff(j->since, now) >= BASIC_AUTH_DEADLINE_MS) { /* the server has answered */
        (void)auth_job_free(j);
        return;
    }
    b->running = j;
    (void)pthread_mutex_unlock(&b->lock);
    r = bcrypt_matches((struct str){j->password, j->password_bytes}, (struct str){j->hash, BCRYPT_BYTES});
    (void)pthread_mutex_lock(&b->lock);
    b->running = NULL;
    if (r >= 0)
        auth_cache_put(&b->cache, j->digest, clock_system.mono(&clock_system), r && j->known);
    auth_decide(b, j, r < 0 ? &busy : r && j->known ? NULL : &unauthorized);
}

static void *auth_main(void *arg)
{
    struct basic_auth *b = arg;

    (void)setpriority(PRIO_PROCESS, (id_t)gettid(), NICE);
    (void)pthread_mutex_lock(&b->lock);
    while (!b->closed) {
        struct auth_job *j = auth_queue_pop(&b->queue);
        if (j)
            auth_run(b, j);
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
    auth_queue_init(&b->queue);
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
    static const char scheme[] = "Basic ";
    struct str value = str_of(authorization);
    const char *colon;

    if (value.n < strlen(scheme) || !str_eq_nocase((struct str){value.p, strlen(scheme)}, STR("Basic ")) ||
        base64_decode(str_trim((struct str){value.p + strlen(scheme), value.n - strlen(scheme)}), all) < 0)
        return false;
    colon = all->n ? memchr(all->p, ':', all->n) : NULL;
    if (!colon || memchr(all->p, '\0', all->n))
        return false;
    *ret_user = (struct str){all->p, (size_t)(colon - all->p)};
    *ret_password = (struct str){colon + 1, all->n - ret_user->n - 1};
    return ret_password->n <= PASSWORD_MAX_BYTES;
}

/* Copies the user's hash; for an unknown user another's, so that both take the same time. */
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

/* The lock is held. Takes *j if it is queued. */
static enum httpd_access auth_enqueue(struct basic_auth *b, struct auth_job **j,
                                      const struct httpd_ticket *ticket, struct httpd_refusal *ret)
{
    struct auth_job *same, *displaced = NULL;
    int r = 0;

    same = b->running && strcmp(b->running->digest, (*j)->digest) == 0
               ? b->running
               : auth_queue_find(&b->queue, (*j)->digest);
    auth_job_add_ticket(same ?: *j, ticket);
    if (!same) {
        r = auth_queue_push(&b->queue, *j, &displaced);
        if (displaced)
            auth_decide(b, displaced, &busy);
        if (r == 0) {
            *j = NULL;
            (void)pthread_cond_signal(&b->changed);
        }
    }
    *ret = r == -EAGAIN ? too_many : busy;
    return r == 0 ? HTTPD_LATER : HTTPD_REFUSE;
}

static enum httpd_access auth_look_up(struct basic_auth *b, struct auth_job **j,
                                      const struct httpd_ticket *ticket, struct httpd_refusal *ret)
{
    enum httpd_access access;
    bool good;

    (void)pthread_mutex_lock(&b->lock);
    if (b->closed) {
        *ret = busy;
        access = HTTPD_REFUSE;
    } else if (auth_cache_get(&b->cache, (*j)->digest, (*j)->since, &good)) {
        *ret = unauthorized;
        access = good ? HTTPD_ALLOW : HTTPD_REFUSE;
    } else {
        access = auth_enqueue(b, j, ticket, ret);
    }
    (void)pthread_mutex_unlock(&b->lock);
    return access;
}

enum httpd_access basic_auth_check(struct basic_auth *b, const struct httpd_request *rq,
                                   const struct httpd_ticket *ticket, struct httpd_refusal *ret)
{
    SECRET_AUTO(all, MAX_CREDENTIALS);
    CLEANUP(cleanup_auth_job_free) struct auth_job *j = NULL;
    struct str user = {0}, password = {0};

    *ret = rq->authorization[0] ? unauthorized : missing;
    if (!auth_parse(rq->authorization, &all, &user, &password))
        return HTTPD_REFUSE;
    *ret = busy;
    j = xcalloc(1, sizeof(*j));
    auth_find_hash(b, user, j->hash, &j->known);
    j->peer = auth_peer_of(rq->peer);
    j->since = clock_system.mono(&clock_system);
    j->password_bytes = password.n;
    memcpy(j->password, password.p, password.n);
    if (digest_parts(j->digest, (const struct str[]){user, {j->hash, BCRYPT_BYTES}, password}, 3) < 0)
        return HTTPD_REFUSE;
    return auth_look_up(b, &j, ticket, ret);
}

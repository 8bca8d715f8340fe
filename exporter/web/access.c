/* Owns the web configuration file as last read, and what was made of it. Belongs to the loop, except for what
 * the lock protects. */
#include "exporter/web/access.h"

#include "exporter/base/alloc.h"
#include "exporter/base/base64.h"
#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/doc.h"
#include "exporter/base/file.h"
#include "exporter/base/invariant.h"
#include "exporter/base/lock.h"
#include "exporter/base/log.h"
#include "exporter/base/loop.h"
#include "exporter/base/secret.h"
#include "exporter/http/tls.h"
#include "exporter/web/web_file.h"

#include <crypt.h>
#include <errno.h>
#include <gnutls/gnutls.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>
#include <sys/resource.h>

/* ---- Basic authentication (RFC 7617) against bcrypt hashes ----
 *
 * One comparison runs at a time, on a thread of its own with a low priority. A good result is remembered by a
 * digest of user, hash and password, so that a scraper waits once, and a flood of wrong passwords does not
 * delay those who have been let in. Comparisons wait in order of arrival, but known users first, so that
 * made-up names cannot keep scrapers out. While many wait, this tells known names from unknown ones: names
 * are not secrets, and scrapes must go on. Each client address may have a few waiting for each known user,
 * and as many for all unknown ones together. */

enum {
    QUEUE_MAX = 32, /* of known users, and as many of unknown ones */
    QUEUE_SHARE = 2,
    GOOD_RESULTS = 256,
    NICE = 5,
    STOP_SECONDS = 1,
    MAX_CREDENTIALS = 4096,
    BCRYPT_DIGEST_AT = 29,    /* in a hash */
    PASSWORD_MAX_BYTES = 511, /* libxcrypt's limit; bcrypt itself uses the first 72 */
    /* A comparison that has not begun after this is not made any more: of the guard's deadline_ms. */
    BASIC_AUTH_DEADLINE_MS = 10 * 1000,
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

enum { LOOK_MS = 3 * 1000, WATCHED = 4, PROBLEMS_MAX_BYTES = 1 << 20 };

struct access {
    struct access_options o;
    struct httpd_guard guard;
    struct httpd *server;
    struct httpd_tls *tls;  /* until the server has it */
    char *watched[WATCHED]; /* the file, and those that it names; NULL for none */
    uint64_t stamps[WATCHED];
    struct timer timer;
    struct access_status status;
    struct lock lock; /* for all below; its holder never blocks */
    pthread_cond_t changed;
    pthread_t thread;
    bool has_thread, closed;
    struct web_file *file;      /* the last valid one; NULL without one. Set by the loop */
    mono_ms full_at;            /* when the bucket of the rate limit will be full again */
    struct auth_jobs queues[2]; /* of unknown and of known users */
    struct auth_job *running;
    char good[GOOD_RESULTS][DIGEST_TEXT_BYTES]; /* of the last comparisons that succeeded */
    size_t n_good;                              /* so far */
};

#define CHALLENGE "Basic realm=\"dynamic-scoring\", charset=\"UTF-8\""

static const struct httpd_refusal unauthorized = {.text = "401: user or password is wrong\n",
                                                  .challenge = CHALLENGE};
static const struct httpd_refusal missing = {.text = "401: user and password required\n",
                                             .challenge = CHALLENGE};
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

static bool result_is_good(const struct access *a, const char *digest)
{
    size_t i = 0;

    invariant(lock_is_held(&a->lock));
    while (i < GOOD_RESULTS && strcmp(a->good[i], digest) != 0)
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
static struct auth_job *job_join(struct access *a, struct auth_job **j, const struct httpd_refusal **ret)
{
    struct auth_jobs *queue = &a->queues[(*j)->known];
    unsigned share = 0, n = 0;
    struct auth_job *other;

    invariant(lock_is_held(&a->lock));
    if (a->running && strcmp(a->running->digest, (*j)->digest) == 0)
        return a->running;
    TAILQ_FOREACH (other, queue, entry) {
        if (strcmp(other->digest, (*j)->digest) == 0)
            return other;
        share += other->peer == (*j)->peer && /* a hash identifies its user, by its salt */
                 (!other->known || memcmp(other->hash, (*j)->hash, sizeof(other->hash)) == 0);
        n++;
    }
    *ret = share >= QUEUE_SHARE ? &too_many : n >= QUEUE_MAX ? &busy : NULL;
    if (*ret)
        return NULL;
    TAILQ_INSERT_TAIL(queue, *j, entry);
    (void)pthread_cond_signal(&a->changed);
    return TAKE_PTR(*j);
}

/* NULL if there is none. */
static struct auth_job *job_dequeue(struct access *a)
{
    struct auth_jobs *queue = &a->queues[TAILQ_EMPTY(&a->queues[true]) ? false : true];
    struct auth_job *j = TAILQ_FIRST(queue);

    invariant(lock_is_held(&a->lock));
    if (j)
        TAILQ_REMOVE(queue, j, entry);
    return j;
}

/* The lock is not held during the comparison. */
static void job_run(struct access *a, struct auth_job *j)
{
    bool good;

    invariant(lock_is_held(&a->lock));
    if (mono_diff(j->since, clock_system.mono(&clock_system)) < BASIC_AUTH_DEADLINE_MS) {
        a->running = j;
        lock_release(&a->lock);
        good = bcrypt_matches(j->password, j->hash) && j->known;
        lock_take(&a->lock);
        a->running = NULL;
        if (good)
            memcpy(a->good[a->n_good++ % GOOD_RESULTS], j->digest, sizeof(j->digest));
        for (size_t i = 0; !a->closed && i < j->n_tickets; i++)
            httpd_decide(&j->tickets[i], good ? NULL : &unauthorized);
    } /* else the server has answered */
    (void)job_free(j);
}

static void *auth_main(void *arg)
{
    struct access *a = arg;

    (void)pthread_setname_np(pthread_self(), "passwords");
    (void)setpriority(PRIO_PROCESS, (id_t)gettid(), NICE);
    lock_take(&a->lock);
    while (!a->closed) {
        struct auth_job *j = job_dequeue(a);
        if (j)
            job_run(a, j);
        else
            lock_wait(&a->lock, &a->changed);
    }
    lock_release(&a->lock);
    return NULL;
}

/* A token bucket: `burst` requests at once, and one more for each interval. */
static bool access_within_limit(struct access *a)
{
    mono_ms now = clock_system.mono(&clock_system), from = mono_before(a->full_at, now) ? now : a->full_at;
    int64_t interval = a->file->interval_ms;

    invariant(lock_is_held(&a->lock));
    if (interval && mono_diff(now, from) + interval > a->file->burst * interval)
        return false;
    a->full_at = mono_add(from, interval);
    return true;
}

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

/* Copies the user's hash; for an unknown user another's, so that both take the same time. Returns whether the
 * user is known. The lock is not held. */
static bool auth_find_hash(struct access *a, struct str user, char hash[BCRYPT_BYTES])
{
    bool known = false;

    lock_take(&a->lock);
    for (size_t i = a->file->n_users; i-- > 0 && !known;) {
        known = str_eq(a->file->users[i]->key, user);
        memcpy(hash, a->file->users[i]->text.p, BCRYPT_BYTES);
    }
    lock_release(&a->lock);
    return known;
}

static void auth_check(struct access *a, const struct httpd_request *rq, const struct httpd_ticket *ticket)
{
    SECRET_AUTO(all, MAX_CREDENTIALS);
    CLEANUP(cleanup_job_free) struct auth_job *j = NULL;
    struct str user = {0}, password = {0};
    const struct httpd_refusal *refusal;
    struct auth_job *waiting;

    if (!auth_parse(rq->authorization, &all, &user, &password)) {
        httpd_decide(ticket, rq->authorization[0] ? &unauthorized : &missing);
        return;
    }
    j = xcalloc(1, sizeof(*j));
    j->known = auth_find_hash(a, user, j->hash);
    j->peer = peer_of(rq->peer);
    j->since = clock_system.mono(&clock_system);
    memcpy(j->password, password.p, password.n);
    digest_parts(j->digest, (const struct str[]){user, {j->hash, BCRYPT_BYTES}, password}, 3);
    lock_take(&a->lock);
    refusal = a->closed ? &busy : NULL;
    waiting = refusal || result_is_good(a, j->digest) ? NULL : job_join(a, &j, &refusal);
    if (waiting) {
        waiting->tickets = xreallocarray(waiting->tickets, waiting->n_tickets + 1, sizeof(*waiting->tickets));
        waiting->tickets[waiting->n_tickets++] = *ticket;
    } else {
        httpd_decide(ticket, refusal);
    }
    lock_release(&a->lock);
}

/* Server's thread. */
static void access_check(void *arg, const struct httpd_request *rq, const struct httpd_ticket *ticket)
{
    struct access *a = arg;
    bool has_users = false, within = true;
    unsigned seconds = 0;

    lock_take(&a->lock);
    if (a->file) {
        within = access_within_limit(a);
        seconds = (unsigned)((a->file->interval_ms + 999) / 1000);
        has_users = a->file->n_users > 0;
    }
    lock_release(&a->lock);
    if (!within)
        httpd_decide(ticket, &(struct httpd_refusal){.text = "429: over the limit of requests\n",
                                                     .retry_after = seconds});
    else if (has_users)
        auth_check(a, rq, ticket);
    else if (a->o.guard)
        a->o.guard->check(a->o.guard->arg, rq, ticket);
    else
        httpd_decide(ticket, NULL);
}

/* ---- The file ---- */

/* What the file may not ask for in this program. */
static void access_check_file(const struct access *a, const struct web_file *f, struct problems *p)
{
    if (f->n_users && a->o.guard)
        problems_add(p, PROBLEM_ERROR, 0, 0,
                     "basic_auth_users: cannot be combined with --web.kubernetes-auth or a bearer token; "
                     "use one of them");
    if (a->file && f->has_tls != a->file->has_tls)
        problems_add(p, PROBLEM_ERROR, 0, 0,
                     "tls_server_config: cannot be %s while the program runs: restart it",
                     f->has_tls ? "added" : "removed");
}

/* Notes what the file is now; to be called before it is read. */
static void access_watch(struct access *a, size_t i, const char *path)
{
    free(a->watched[i]);
    a->watched[i] = path ? xstrdup(path) : NULL;
    a->stamps[i] = file_stamp(cstr(path));
}

static int access_load(struct access *a, struct problems *p)
{
    CLEANUP(cleanup_web_file_free) struct web_file *f = NULL, *was = NULL;
    struct httpd_tls *tls = NULL;
    int r;

    access_watch(a, 0, a->o.file);
    r = web_file_read(&f, a->o.file, p);
    if (r < 0)
        return r;
    access_watch(a, 1, f->tls.cert.file);
    access_watch(a, 2, f->tls.key.file);
    access_watch(a, 3, f->tls.client_ca.file);
    access_check_file(a, f, p);
    r = p->errors ? -EINVAL : web_file_tls(f, &tls, p);
    if (r < 0)
        return r;
    was = a->file;
    lock_take(&a->lock);
    if (was && (was->interval_ms != f->interval_ms || was->burst != f->burst))
        a->full_at = (mono_ms){0}; /* a changed limit begins with a full bucket */
    a->file = TAKE_PTR(f);
    lock_release(&a->lock);
    if (a->server)
        httpd_set(a->server, a->file->headers, a->file->n_headers, tls);
    else
        a->tls = tls;
    return 0;
}

static void access_record(struct access *a, int r, const struct problems *p, struct buf *why)
{
    BUF_AUTO(text, PROBLEMS_MAX_BYTES);
    struct buf_mark mark = buf_mark(&text);

    problems_print(p, &text);
    if (buf_failed(&text) < 0) { /* the log has them */
        log_debug("problems not kept for the status page", L_ERR(buf_failed(&text)));
        buf_rollback(&text, mark);
    }
    if (why)
        buf_put_str(why, buf_str(&text));
    free(a->status.problems);
    a->status = (struct access_status){.file = a->o.file,
                                       .ok = r == 0,
                                       .at_ms = loop_wall(a->o.loop).ms,
                                       .problems = text.n ? str_dup(buf_str(&text)) : NULL};
    metric_set(a->o.metrics, METRIC_WEB_CONFIG_OK, LV_NONE, r == 0);
    if (a->o.changed)
        a->o.changed(a->o.arg);
}

int access_reload(struct access *a, struct buf *ret_why)
{
    CLEANUP(problems_done) struct problems p = {0};
    int r;

    if (!a || !a->o.file)
        return 0;
    problems_init(&p, a->o.file);
    r = access_load(a, &p);
    problems_log(&p);
    if (r == 0)
        log_info("web configuration applied", L_STR("file", a->o.file),
                 L_STR("tls", a->file->has_tls ? "true" : "false"), L_INT("users", a->file->n_users));
    else
        log_error(a->file ? "web configuration rejected; the last valid one stays active"
                          : "web configuration rejected",
                  L_STR("file", a->o.file), L_STR("err", r == -EINVAL ? "it has errors" : strerror(-r)));
    access_record(a, r, &p, ret_why);
    return r;
}

static void access_on_timer(struct timer *t)
{
    struct access *a = CONTAINER_OF(t, struct access, timer);
    bool changed = false;

    for (size_t i = 0; i < WATCHED; i++)
        changed = changed || file_stamp(cstr(a->watched[i])) != a->stamps[i];
    if (changed && access_reload(a, NULL) < 0)
        log_debug("web configuration not applied");
    loop_timer_set(a->o.loop, t, mono_add(loop_now(a->o.loop), LOOK_MS));
}

/* ---- Construction ---- */

int access_new(struct access **ret, const struct access_options *o, char **ret_why)
{
    struct access *a = xcalloc(1, sizeof(*a));
    int r = 0;

    a->o = *o;
    a->timer = (struct timer){.fn = access_on_timer};
    a->guard = (struct httpd_guard){.check = access_check, .arg = a, .deadline_ms = BASIC_AUTH_DEADLINE_MS};
    if (o->guard && o->guard->deadline_ms > a->guard.deadline_ms)
        a->guard.deadline_ms = o->guard->deadline_ms;
    lock_init(&a->lock);
    (void)pthread_cond_init(&a->changed, NULL);
    TAILQ_INIT(&a->queues[false]);
    TAILQ_INIT(&a->queues[true]);
    if (o->file) {
        a->has_thread = thread_start(&a->thread, auth_main, a) == 0;
        r = a->has_thread ? access_reload(a, NULL) : -EAGAIN;
        loop_timer_set(o->loop, &a->timer, mono_add(loop_now(o->loop), LOOK_MS));
    }
    if (r == -EINVAL)
        *ret_why = xasprintf("invalid web configuration file %s", o->file);
    if (r < 0)
        (void)access_stop(a, 0);
    else
        *ret = a;
    return r;
}

int access_serve(struct access *a, struct httpd **ret, struct httpd_options o, char **ret_why)
{
    int r;

    if (a->o.file || a->o.guard)
        o.guard = &a->guard;
    o.tls = TAKE_PTR(a->tls);
    o.headers = a->file ? a->file->headers : NULL;
    o.n_headers = a->file ? a->file->n_headers : 0;
    r = httpd_new(&a->server, a->o.loop, &o, ret_why);
    *ret = a->server; /* NULL if it failed */
    return r;
}

const struct access_status *access_status(const struct access *a)
{
    return a && a->o.file ? &a->status : NULL;
}

bool access_authenticates(const struct access *a)
{
    const char *clients = a->file && a->file->has_tls ? cstr(a->file->tls.client_auth_type) : "";

    return a->o.guard || (a->file && a->file->n_users) || strcmp(clients, "RequireAndVerifyClientCert") == 0;
}

/* A comparison under way goes on without effect. It may take a quarter of a minute, and samples are still to
 * be sent: after a second it is left alone, to end with the process. */
struct access *access_stop(struct access *a, int grace_ms)
{
    struct timespec until;
    struct auth_job *j;

    if (!a)
        return NULL;
    loop_timer_clear(a->o.loop, &a->timer);
    lock_take(&a->lock);
    a->closed = true;
    (void)pthread_cond_signal(&a->changed);
    lock_release(&a->lock);
    (void)httpd_stop(a->server, grace_ms);
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += STOP_SECONDS;
    if (a->has_thread && pthread_clockjoin_np(a->thread, NULL, CLOCK_MONOTONIC, &until) != 0)
        return NULL;
    lock_take(&a->lock);
    while ((j = job_dequeue(a)))
        (void)job_free(j);
    lock_release(&a->lock);
    (void)pthread_cond_destroy(&a->changed);
    lock_done(&a->lock);
    (void)httpd_tls_unref(a->tls);
    (void)web_file_free(a->file);
    for (size_t i = 0; i < WATCHED; i++)
        free(a->watched[i]);
    free(a->status.problems);
    free(a);
    return NULL;
}

/* ---- The bearer token ---- */

enum { TOKEN_MAX_BYTES = 64 << 10, LOG_MS = 60 * 1000, RETRY_SECONDS = 10 };

static const struct httpd_refusal bearer_missing = {.text = "401: bearer token required\n",
                                                    .challenge = "Bearer realm=\"dynamic-scoring\""};
static const struct httpd_refusal bearer_wrong = {
    .text = "401: wrong bearer token\n",
    .challenge = "Bearer realm=\"dynamic-scoring\", error=\"invalid_token\""};
static const struct httpd_refusal bearer_unreadable = {
    .text = "503: the token of this server cannot be read\n", .retry_after = RETRY_SECONDS};

static void bearer_log(struct bearer *b, const char *problem)
{
    int64_t now = clock_system.mono(&clock_system).ms;

    if (now < atomic_load(&b->log_at_ms))
        return;
    atomic_store(&b->log_at_ms, now + LOG_MS);
    log_error("cannot read the bearer token; refusing calls", L_STR("file", b->file), L_STR("err", problem));
}

/* NULL, or the refusal. */
static const struct httpd_refusal *bearer_judge(struct bearer *b, const struct httpd_request *rq)
{
    static const struct str scheme = STR("Bearer ");
    struct str given = str_of(rq->authorization), token = {0};
    SECRET_AUTO(value, TOKEN_MAX_BYTES);
    char ours[DIGEST_TEXT_BYTES], theirs[DIGEST_TEXT_BYTES];
    const char *problem;
    int r;

    if (b->is_open(rq))
        return NULL;
    if (given.n < scheme.n || !str_eq_nocase((struct str){given.p, scheme.n}, scheme))
        return &bearer_missing;
    if (b->file) {
        r = file_read(b->file, &value);
    } else {
        buf_puts(&value, b->token);
        r = buf_failed(&value);
    }
    problem = r < 0 ? strerror(-r) : secret_token(buf_str(&value), &token);
    if (problem) {
        bearer_log(b, problem);
        return &bearer_unreadable;
    }
    secret_used(token);
    given = str_trim((struct str){given.p + scheme.n, given.n - scheme.n});
    /* Digests under a random key are compared, so that the time says nothing about the token. */
    digest_parts(ours, &token, 1);
    digest_parts(theirs, &given, 1);
    return strcmp(ours, theirs) == 0 ? NULL : &bearer_wrong;
}

static void bearer_check(void *arg, const struct httpd_request *rq, const struct httpd_ticket *ticket)
{
    httpd_decide(ticket, bearer_judge(arg, rq));
}

const struct httpd_guard *bearer_init(struct bearer *b, const char *file, const char *token,
                                      bool (*is_open)(const struct httpd_request *rq))
{
    *b = (struct bearer){
        .file = file, .token = token, .is_open = is_open, .guard = {.check = bearer_check, .arg = b}};
    return b->file || b->token ? &b->guard : NULL;
}

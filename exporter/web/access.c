/* Owns the web configuration file as last read, and what was made of it. Belongs to the loop, except for what
 * the lock protects. */
#include "exporter/web/access.h"

#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/file.h"
#include "exporter/base/httpd_tls.h"
#include "exporter/base/log.h"
#include "exporter/base/problems.h"
#include "exporter/base/secret.h"
#include "exporter/web/basic_auth.h"
#include "exporter/web/web_file.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

enum { LOOK_MS = 3 * 1000, WATCHED = 4, PROBLEMS_MAX_BYTES = 1 << 20 };

/* A token bucket: `burst` requests at once, and one more for each interval. Zeroed: no limit. */
struct rate_limit {
    int64_t interval_ms, burst;
    mono_ms full_at; /* when the bucket will be full again */
};

struct access {
    struct access_options o;
    struct httpd_guard guard;
    struct httpd *server;
    struct basic_auth *auth;
    struct httpd_tls *tls;
    struct web_file *file;  /* the last valid one; NULL without one */
    char *watched[WATCHED]; /* the file, and those that it names; NULL for none */
    uint64_t stamps[WATCHED];
    struct timer timer;
    struct access_status status;
    char *problems;
    pthread_mutex_t lock; /* for the two below; its holder never blocks */
    struct rate_limit limit;
    bool has_users;
};

/* ---- The guard. Server's thread ---- */

static bool rate_limit_take(struct rate_limit *l, mono_ms now)
{
    mono_ms from = mono_before(l->full_at, now) ? now : l->full_at;

    if (!l->interval_ms)
        return true;
    if (mono_diff(now, from) + l->interval_ms > l->burst * l->interval_ms)
        return false;
    l->full_at = mono_add(from, l->interval_ms);
    return true;
}

static enum httpd_access access_check(void *arg, const struct httpd_request *rq,
                                      const struct httpd_ticket *ticket, struct httpd_refusal *ret)
{
    struct access *a = arg;
    bool has_users, within;
    unsigned seconds;

    (void)pthread_mutex_lock(&a->lock);
    within = rate_limit_take(&a->limit, clock_system.mono(&clock_system));
    seconds = (unsigned)((a->limit.interval_ms + 999) / 1000);
    has_users = a->has_users;
    (void)pthread_mutex_unlock(&a->lock);
    if (!within) {
        *ret = (struct httpd_refusal){
            .status = 429, .text = "429: over the limit of requests\n", .retry_after = seconds};
        return HTTPD_REFUSE;
    }
    if (has_users)
        return basic_auth_check(a->auth, rq, ticket, ret);
    return a->o.guard ? a->o.guard->check(a->o.guard->arg, rq, ticket, ret) : HTTPD_ALLOW;
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

static void access_apply(struct access *a, const struct web_file *f)
{
    basic_auth_set_users(a->auth, f->users, f->n_users);
    (void)pthread_mutex_lock(&a->lock);
    a->has_users = f->n_users > 0;
    if (a->limit.interval_ms != f->interval_ms || a->limit.burst != f->burst)
        a->limit = (struct rate_limit){.interval_ms = f->interval_ms, .burst = f->burst};
    (void)pthread_mutex_unlock(&a->lock);
    if (a->server)
        httpd_set_headers(a->server, f->headers, f->n_headers);
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
    int r;

    access_watch(a, 0, a->o.file);
    r = web_file_read(&f, a->o.file, p);
    if (r == 0) {
        access_watch(a, 1, f->tls.cert.file);
        access_watch(a, 2, f->tls.key.file);
        access_watch(a, 3, f->tls.client_ca.file);
        access_check_file(a, f, p);
    }
    if (r == 0 && p->errors)
        r = -EINVAL;
    if (r == 0 && f->has_tls)
        r = web_file_set_tls(f, &a->tls, p);
    if (r < 0)
        return r;
    was = a->file;
    a->file = TAKE_PTR(f);
    access_apply(a, a->file);
    return 0;
}

static void access_record(struct access *a, int r, const struct problems *p, struct buf *why)
{
    BUF_AUTO(text, PROBLEMS_MAX_BYTES);
    int printed = problems_print(p, &text);

    if (printed == 0 && why)
        printed = buf_put_str(why, buf_str(&text));
    if (printed < 0) /* the log has them */
        log_debug("problems not kept for the status page", L_ERR(printed));
    free(a->problems);
    a->problems = text.n ? str_dup(buf_str(&text)) : NULL;
    a->status = (struct access_status){
        .file = a->o.file, .ok = r == 0, .at_ms = loop_wall(a->o.loop).ms, .problems = a->problems};
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
    CLEANUP(cleanup_access_free) struct access *a = xcalloc(1, sizeof(*a));
    int r = 0;

    a->o = *o;
    a->timer = (struct timer){.fn = access_on_timer};
    a->guard = (struct httpd_guard){.check = access_check, .arg = a, .deadline_ms = BASIC_AUTH_DEADLINE_MS};
    (void)pthread_mutex_init(&a->lock, NULL);
    if (o->guard && o->guard->deadline_ms > a->guard.deadline_ms)
        a->guard.deadline_ms = o->guard->deadline_ms;
    if (o->file) {
        r = basic_auth_new(&a->auth) ?: access_reload(a, NULL);
        loop_timer_set(o->loop, &a->timer, mono_add(loop_now(o->loop), LOOK_MS));
    }
    if (r == -EINVAL)
        *ret_why = xasprintf("invalid web configuration file %s", o->file);
    if (r == 0)
        *ret = TAKE_PTR(a);
    return r;
}

void access_configure(struct access *a, struct httpd_options *o)
{
    if (a->o.file || a->o.guard)
        o->guard = &a->guard;
    o->tls = a->tls;
}

void access_serve(struct access *a, struct httpd *h)
{
    a->server = h;
    if (a->file)
        httpd_set_headers(h, a->file->headers, a->file->n_headers);
}

const struct access_status *access_status(const struct access *a)
{
    return a && a->o.file ? &a->status : NULL;
}

void access_close(struct access *a)
{
    if (!a)
        return;
    loop_timer_clear(a->o.loop, &a->timer);
    a->server = NULL;
    if (a->auth)
        basic_auth_close(a->auth);
}

bool access_authenticates(const struct access *a)
{
    const char *clients = a->file && a->file->has_tls ? cstr(a->file->tls.client_auth_type) : "";

    return a->o.guard || (a->file && a->file->n_users) || strcmp(clients, "RequireAndVerifyClientCert") == 0;
}

struct access *access_free(struct access *a)
{
    if (!a)
        return NULL;
    access_close(a);
    a->auth = basic_auth_free(a->auth);
    a->tls = httpd_tls_free(a->tls);
    a->file = web_file_free(a->file);
    (void)pthread_mutex_destroy(&a->lock);
    for (size_t i = 0; i < WATCHED; i++)
        free(a->watched[i]);
    free(a->problems);
    free(a);
    return NULL;
}

/* ---- The bearer token ---- */

enum { TOKEN_MAX_BYTES = 64 << 10, LOG_MS = 60 * 1000, RETRY_SECONDS = 10 };

static const struct httpd_refusal bearer_missing = {
    .status = 401, .text = "401: bearer token required\n", .challenge = "Bearer realm=\"dynamic-scoring\""};
static const struct httpd_refusal bearer_wrong = {
    .status = 401,
    .text = "401: wrong bearer token\n",
    .challenge = "Bearer realm=\"dynamic-scoring\", error=\"invalid_token\""};
static const struct httpd_refusal bearer_unreadable = {
    .status = 503, .text = "503: the token of this server cannot be read\n", .retry_after = RETRY_SECONDS};

static void bearer_log(struct bearer *b, const char *problem)
{
    int64_t now = clock_system.mono(&clock_system).ms;

    if (now < atomic_load(&b->log_at_ms))
        return;
    atomic_store(&b->log_at_ms, now + LOG_MS);
    log_error("cannot read the bearer token; refusing calls", L_STR("file", b->file), L_STR("err", problem));
}

/* NULL, or what is wrong. *ret is a part of `value`. */
static const char *bearer_read(const struct bearer *b, struct buf *value, struct str *ret)
{
    int r = b->file ? file_read(b->file, value) : buf_puts(value, b->token);

    return r < 0 ? strerror(-r) : secret_token(buf_str(value), ret);
}

/* Compares digests under a random key, so that the time says nothing about the token. */
static bool bearer_is_same(struct str given, struct str token)
{
    char a[DIGEST_TEXT_BYTES], b[DIGEST_TEXT_BYTES];

    return digest_parts(a, &given, 1) == 0 && digest_parts(b, &token, 1) == 0 && strcmp(a, b) == 0;
}

static enum httpd_access bearer_check(void *arg, const struct httpd_request *rq,
                                      const struct httpd_ticket *ticket, struct httpd_refusal *ret)
{
    static const struct str scheme = STR("Bearer ");
    struct str given = str_of(rq->authorization), token = {0};
    SECRET_AUTO(value, TOKEN_MAX_BYTES);
    const struct bearer *b = arg;
    const char *problem;

    (void)ticket;
    if (b->is_open(rq))
        return HTTPD_ALLOW;
    if (given.n < scheme.n || !str_eq_nocase((struct str){given.p, scheme.n}, scheme)) {
        *ret = bearer_missing;
        return HTTPD_REFUSE;
    }
    problem = bearer_read(b, &value, &token);
    if (problem) {
        bearer_log(arg, problem);
        *ret = bearer_unreadable;
        return HTTPD_REFUSE;
    }
    secret_used(token);
    if (bearer_is_same(str_trim((struct str){given.p + scheme.n, given.n - scheme.n}), token))
        return HTTPD_ALLOW;
    *ret = bearer_wrong;
    return HTTPD_REFUSE;
}

void bearer_init(struct bearer *b, const char *file, const char *token,
                 bool (*is_open)(const struct httpd_request *rq))
{
    *b = (struct bearer){
        .file = file, .token = token, .is_open = is_open, .guard = {.check = bearer_check, .arg = b}};
}

const struct httpd_guard *bearer_guard(const struct bearer *b)
{
    return b->file || b->token ? &b->guard : NULL;
}

/* Owns the web configuration file as last read, what was made of it, and the server that it guards.
 * Belongs to the loop, except for what the lock protects, which the server's threads read. */
#include "exporter/web/access.h"

#include "exporter/base/alloc.h"
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
#include "exporter/web/passwords.h"
#include "exporter/web/web_file.h"

#include <errno.h>

enum { MAX_CREDENTIALS = 4096, LOOK_MS = 3 * 1000, WATCHED = 4, PROBLEMS_MAX_BYTES = 1 << 20 };

struct access {
    struct access_options o;
    struct httpd_guard guard;
    struct httpd *server;
    struct passwords *passwords; /* NULL without a file */
    struct httpd_tls *tls;       /* until the server has it */
    char *watched[WATCHED];      /* the file, and those that it names; NULL for none */
    uint64_t stamps[WATCHED];
    struct timer timer;
    struct access_status status;
    struct lock lock;      /* for all below; its holder never blocks */
    struct web_file *file; /* the last valid one; NULL without one. Set by the loop */
    mono_ms full_at;       /* when the bucket of the rate limit will be full again */
};

static const struct httpd_refusal missing = {.text = "401: user and password required\n",
                                             .challenge = PASSWORD_CHALLENGE};

/* ---- A request ---- */

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

/* Copies the user's hash; for an unknown user another's, so that both take the same time. Returns whether the
 * user is known. The lock is not held. */
static bool access_find_hash(struct access *a, struct str user, char hash[BCRYPT_BYTES])
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

static void access_check_password(struct access *a, const struct httpd_request *rq,
                                  const struct httpd_ticket *ticket)
{
    SECRET_AUTO(all, MAX_CREDENTIALS);
    struct password_claim claim = {.peer = rq->peer};

    if (!rq->authorization[0]) {
        httpd_decide(ticket, &missing);
        return;
    }
    if (!password_claim_parse(rq->authorization, &all, &claim)) {
        httpd_decide(ticket, &password_is_wrong);
        return;
    }
    claim.is_known = access_find_hash(a, claim.user, claim.hash);
    passwords_check(a->passwords, &claim, ticket);
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
        access_check_password(a, rq, ticket);
    else if (a->o.guard)
        a->o.guard->check(a->o.guard->arg, rq, ticket);
    else
        httpd_decide(ticket, NULL);
}

/* ---- The file ---- */

static bool file_is_empty(const struct web_file *f)
{
    return f->doc->root->kind == NODE_NULL;
}

/* What the file may not ask for in this program. One that has become empty is what a full disk, or a write
 * that is not over, leaves of it: that must not open what it guards. */
static void access_check_file(const struct access *a, const struct web_file *f, struct problems *p)
{
    if (a->file && file_is_empty(f) && !file_is_empty(a->file))
        problems_add(p, PROBLEM_ERROR, 0, 0,
                     "the file is empty, but was not before; write {} to remove all settings");
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
    a->guard = (struct httpd_guard){.check = access_check, .arg = a, .deadline_ms = PASSWORDS_DEADLINE_MS};
    if (o->guard && o->guard->deadline_ms > a->guard.deadline_ms)
        a->guard.deadline_ms = o->guard->deadline_ms;
    lock_init(&a->lock);
    if (o->file) {
        r = passwords_new(&a->passwords);
        if (r == 0)
            r = access_reload(a, NULL);
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

struct access *access_stop(struct access *a, int grace_ms)
{
    if (!a)
        return NULL;
    loop_timer_clear(a->o.loop, &a->timer);
    if (a->passwords)
        passwords_close(a->passwords);
    (void)httpd_stop(a->server, grace_ms);
    a->passwords = passwords_free(a->passwords);
    lock_done(&a->lock);
    (void)httpd_tls_unref(a->tls);
    (void)web_file_free(a->file);
    for (size_t i = 0; i < WATCHED; i++)
        free(a->watched[i]);
    free(a->status.problems);
    free(a);
    return NULL;
}

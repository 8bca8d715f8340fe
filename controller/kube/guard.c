/* The server's thread hands requests over to the loop, which has the API server's answers. */
#include "controller/kube/guard.h"

#include "controller/kube/client.h"
#include "exporter/base/loop.h"
#include "exporter/base/secret.h"

#include <errno.h>
#include <pthread.h>

enum {
    MAX_TOKEN = 16 << 10,
    LATE_MS = 1000, /* after this the server gives up on a loop that hangs */
};

STAILQ_HEAD(bearers, bearer);

struct kube_guard {
    struct httpd_guard httpd;
    struct kube_reviews *reviews;
    const struct kube_path_right *rights;
    struct loop *loop;
    struct post post;         /* posted while `arrived` is not empty */
    pthread_mutex_t lock;     /* for `arrived`; its holder never blocks */
    struct bearers arrived;   /* not seen by the loop yet */
    LIST_HEAD(, bearer) held; /* their reviews are under way */
};

/* A request whose credential is reviewed. */
struct bearer {
    STAILQ_ENTRY(bearer) next;
    LIST_ENTRY(bearer) entry;
    struct kube_review review;
    struct httpd_ticket ticket;
    const struct kube_right *right;
    struct kube_credential credential; /* in `bytes` */
    size_t n;
    char bytes[];
};

static void bearer_free(struct bearer *b)
{
    explicit_bzero(b->bytes, b->n);
    free(b);
}

static void bearer_on_reviewed(struct kube_review *r, const struct httpd_refusal *refusal)
{
    struct bearer *b = CONTAINER_OF(r, struct bearer, review);

    httpd_decide(&b->ticket, refusal);
    LIST_REMOVE(b, entry);
    bearer_free(b);
}

static void guard_on_arrived(struct post *p)
{
    struct kube_guard *g = CONTAINER_OF(p, struct kube_guard, post);
    struct bearers arrived = STAILQ_HEAD_INITIALIZER(arrived);
    struct bearer *b;

    (void)pthread_mutex_lock(&g->lock);
    STAILQ_CONCAT(&arrived, &g->arrived);
    (void)pthread_mutex_unlock(&g->lock);
    while ((b = STAILQ_FIRST(&arrived))) {
        STAILQ_REMOVE_HEAD(&arrived, next);
        LIST_INSERT_HEAD(&g->held, b, entry);
        kube_review_start(g->reviews, &b->review, &b->credential, b->right);
    }
}

/* The token of "Bearer TOKEN" (RFC 6750), or what is wrong. */
static const char *guard_read_token(const char *authorization, struct str *ret)
{
    struct str s = str_of(authorization);
    const char *why;

    if (s.n < 7 || s.p[6] != ' ' || !str_eq_nocase((struct str){s.p, 6}, STR("Bearer")))
        return "401: a bearer token is required\n";
    why = secret_token((struct str){s.p + 7, s.n - 7}, ret);
    if (why)
        return "401: the bearer token is malformed\n";
    return ret->n > MAX_TOKEN ? "401: the bearer token is longer than 16384 bytes\n" : NULL;
}

const struct kube_path_right kube_rights_default[] = {
    {"/metrics", {"get", "/metrics"}}, {"/-/reload", {"post", "/-/reload"}}, {NULL, {"get", "/status"}}};

static const struct kube_right *guard_right(const struct kube_path_right *rights, const char *path)
{
    while (rights->path && strcmp(rights->path, path) != 0)
        rights++;
    return &rights->right;
}

/* NULL when out of memory. */
static struct bearer *bearer_new(const struct httpd_ticket *ticket, struct str token, struct str certificate)
{
    struct bearer *b = xmalloc(sizeof(*b) + token.n + certificate.n);

    *b = (struct bearer){.review.done = bearer_on_reviewed,
                         .ticket = *ticket,
                         .credential = {{b->bytes, token.n}, {b->bytes + token.n, certificate.n}},
                         .n = token.n + certificate.n};
    memcpy(b->bytes, token.p, token.n);
    memcpy(b->bytes + token.n, certificate.p, certificate.n);
    return b;
}

/* Server's thread. */
static void guard_hand_over(struct kube_guard *g, struct bearer *b)
{
    (void)pthread_mutex_lock(&g->lock);
    if (STAILQ_EMPTY(&g->arrived))
        loop_post(g->loop, &g->post);
    STAILQ_INSERT_TAIL(&g->arrived, b, next);
    (void)pthread_mutex_unlock(&g->lock);
}

/* Server's thread. */
static enum httpd_access guard_check(void *arg, const struct httpd_request *rq,
                                     const struct httpd_ticket *ticket, struct httpd_refusal *ret)
{
    struct str token = STR(""), certificate = STR("");
    struct kube_guard *g = arg;
    const char *why = NULL;
    struct bearer *b;

    if (rq->client_certificate.n && !*rq->authorization)
        certificate = rq->client_certificate;
    else
        why = guard_read_token(rq->authorization, &token);
    if (why) {
        *ret = (struct httpd_refusal){.status = 401, .text = why, .challenge = "Bearer"};
        return HTTPD_REFUSE;
    }
    b = bearer_new(ticket, token, certificate);
    if (!b) {
        *ret = (struct httpd_refusal){.status = 503, .text = "503: out of memory\n"};
        return HTTPD_REFUSE;
    }
    b->right = guard_right(g->rights, rq->path);
    guard_hand_over(g, b);
    return HTTPD_LATER;
}

struct kube_guard *kube_guard_new(const struct kube_review_options *o, const struct kube_path_right *rights)
{
    struct kube_guard *g = xcalloc(1, sizeof(*g));

    g->reviews = kube_reviews_new(o);
    g->httpd = (struct httpd_guard){
        .check = guard_check, .arg = g, .deadline_ms = (unsigned)o->timeout_ms + LATE_MS};
    g->rights = rights;
    g->loop = kube_loop(o->kube);
    g->post.fn = guard_on_arrived;
    STAILQ_INIT(&g->arrived);
    (void)pthread_mutex_init(&g->lock, NULL);
    return g;
}

struct kube_guard *kube_guard_free(struct kube_guard *g)
{
    struct bearer *b;

    if (!g)
        return NULL;
    g->reviews = kube_reviews_free(g->reviews);
    loop_unpost(g->loop, &g->post);
    while ((b = STAILQ_FIRST(&g->arrived))) {
        STAILQ_REMOVE_HEAD(&g->arrived, next);
        bearer_free(b);
    }
    while ((b = LIST_FIRST(&g->held))) {
        LIST_REMOVE(b, entry);
        bearer_free(b);
    }
    (void)pthread_mutex_destroy(&g->lock);
    free(g);
    return NULL;
}

const struct httpd_guard *kube_guard_httpd(const struct kube_guard *g)
{
    return g ? &g->httpd : NULL;
}

/* The server's thread hands requests over to the loop, which owns all but `arrived`. Requests of one token
 * and right share a review, after which the token is wiped.
 *
 * Answers are cached under keyed digests, in two groups that share no limits: those of tokens that were
 * allowed the last time, and the others, so that many bad tokens neither displace nor delay the good ones. */
#include "controller/kube/guard.h"

#include "controller/kube/answer.h"
#include "controller/kube/client.h"
#include "controller/kube/json.h"
#include "controller/kube/reach.h"
#include "controller/kube/request.h"
#include "controller/kube/resource.h"
#include "controller/kube/verdict.h"
#include "exporter/base/alloc.h"
#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/escape.h"
#include "exporter/base/invariant.h"
#include "exporter/base/lock.h"
#include "exporter/base/log.h"
#include "exporter/base/loop.h"
#include "exporter/base/map.h"
#include "exporter/base/secret.h"
#include "exporter/base/text.h"
#include "exporter/http/httpd.h"

#include <gnutls/x509.h>
#include <pthread.h>
#include <stdio.h>

enum {
    REFUSED_TTL_MS = 10 * 1000,
    MAX_TOKEN = 16 << 10,
    MAX_ANSWERS = 512,   /* of a group */
    MAX_UNDER_WAY = 16,  /* of a group */
    MAX_WAITING = 128,   /* for tokens that were not allowed before; less than the server lets wait */
    MAX_BODY = 64 << 10, /* of a TokenReview */
    MAX_REPLY = 1 << 20, /* with the user's groups, which come again in the SubjectAccessReview */
    USER_BYTES = 256,
    REFUSAL_BYTES = USER_BYTES + 256,
    RETRY_SECONDS = 5,
    LATE_MS = 1000, /* after this the server gives up on a loop that hangs */
};

TAILQ_HEAD(answers, answer);
STAILQ_HEAD(bearers, guard_bearer);

struct group {
    struct answers answers; /* the oldest first */
    unsigned n, under_way, waiting;
};

struct kube_guard {
    struct httpd_guard httpd;
    struct kube *kube;
    int64_t cache_ttl_ms, timeout_ms;
    const struct kube_path_right *rights;
    struct post post;       /* posted while `arrived` is not empty */
    struct lock lock;       /* for `arrived`; its holder never blocks */
    struct bearers arrived; /* not seen by the loop yet */
    struct map by_digest;
    struct group groups[2]; /* by `allowed` */
    bool failing;           /* the last review got no answer */
};

/* A request whose credential is reviewed: the token or, without one, the certificate (DER, verified). */
struct guard_bearer {
    STAILQ_ENTRY(guard_bearer) next;
    struct httpd_ticket ticket;
    const struct kube_path_right *right;
    bool by_certificate;
    struct str credential; /* in `bytes` */
    char bytes[];
};

/* What is known about one credential and right. */
struct answer {
    char digest[DIGEST_TEXT_BYTES]; /* the key */
    struct kube_guard *guard;
    TAILQ_ENTRY(answer) place;
    const struct kube_path_right *right;
    struct kube_call *call; /* the question under way */
    struct buf question;    /* the TokenReview, which has the token */
    mono_ms deadline;       /* of the review under way */
    mono_ms expires;
    bool allowed;
    struct httpd_refusal refusal; /* unless allowed */
    char text[REFUSAL_BYTES];     /* the refusal's */
    struct bearers waiting;
};

/* ---- Client certificates; see "X.509 client certificates" of the documentation on authentication ---- */

enum { MAX_NAME = 1024, MAX_NAMES = 256 };

/* Reverts RFC 4514's escapes, in place; returns the length. */
static size_t certificate_unescape(char *s, size_t n)
{
    size_t to = 0;

    for (size_t i = 0; i < n; i++) {
        if (s[i] == '\\' && i + 1 < n)
            i++;
        s[to++] = s[i];
    }
    return to;
}

/* All values of an attribute, in their order. NULL if one is no text. */
static json_t *certificate_names(gnutls_x509_crt_t crt, const char *oid)
{
    json_t *names = json_array();
    int r = 0;

    for (unsigned i = 0; r == 0 && i < MAX_NAMES; i++) {
        char name[MAX_NAME];
        size_t n = sizeof(name);

        r = gnutls_x509_crt_get_dn_by_oid(crt, oid, i, 0, name, &n);
        if (r == 0 && json_array_append_new(names, json_stringn(name, certificate_unescape(name, n))) < 0)
            break;
    }
    if (r != GNUTLS_E_REQUESTED_DATA_NOT_AVAILABLE) {
        json_decref(names);
        return NULL;
    }
    return names;
}

/* The user that a client certificate (DER) names, as the API server reads one: the common name, of several
 * the last one as in Go, and the organizations as groups. NULL if it has no common name. */
static json_t *certificate_read_user(struct str der)
{
    const gnutls_datum_t datum = {(unsigned char *)(uintptr_t)der.p, (unsigned)der.n};
    json_auto_t *names = NULL, *groups = NULL;
    gnutls_x509_crt_t crt;
    json_t *name;

    if (gnutls_x509_crt_init(&crt) < 0)
        return NULL;
    if (gnutls_x509_crt_import(crt, &datum, GNUTLS_X509_FMT_DER) == 0) {
        names = certificate_names(crt, GNUTLS_OID_X520_COMMON_NAME);
        groups = certificate_names(crt, GNUTLS_OID_X520_ORGANIZATION_NAME);
    }
    gnutls_x509_crt_deinit(crt);
    name = json_array_get(names, json_array_size(names) - 1);
    if (!name || json_string_length(name) == 0 || !groups)
        return NULL;
    (void)json_array_append_new(groups, json_string("system:authenticated"));
    return json_pack("{s:O, s:O}", "username", name, "groups", groups);
}

/* ---- Requests and cached answers ---- */

static void bearer_free(struct guard_bearer *b)
{
    explicit_bzero(b->bytes, b->credential.n);
    free(b);
}

static void bearers_free(struct bearers *list)
{
    struct guard_bearer *b;

    while ((b = STAILQ_FIRST(list))) {
        STAILQ_REMOVE_HEAD(list, next);
        bearer_free(b);
    }
}

/* refusal: NULL if allowed. */
static void bearer_decide(struct guard_bearer *b, const struct httpd_refusal *refusal)
{
    httpd_decide(&b->ticket, refusal);
    bearer_free(b);
}

static struct group *answer_group(const struct answer *a)
{
    return &a->guard->groups[a->allowed];
}

static void answer_take(struct answer *a)
{
    invariant(answer_group(a)->n > 0);
    TAILQ_REMOVE(&answer_group(a)->answers, a, place);
    answer_group(a)->n--;
}

static void answer_drop(struct answer *a)
{
    answer_take(a);
    (void)map_take(&a->guard->by_digest, a->digest);
    (void)kube_cancel(a->call);
    secret_done(&a->question);
    bearers_free(&a->waiting);
    free(a);
}

/* Puts it into its group, for which the oldest answer is dropped if there is no room. */
static void answer_put(struct answer *a)
{
    struct group *g = answer_group(a);
    struct answer *oldest = TAILQ_FIRST(&g->answers);

    while (oldest && oldest->call)
        oldest = TAILQ_NEXT(oldest, place);
    if (oldest && g->n >= MAX_ANSWERS)
        answer_drop(oldest);
    TAILQ_INSERT_TAIL(&g->answers, a, place);
    g->n++;
}

/* The answer in the table, made if there is none. */
static struct answer *answer_get(struct kube_guard *g, const struct guard_bearer *b)
{
    const struct str parts[] = {str_of(b->right->verb), str_of(b->right->url),
                                str_of(b->by_certificate ? "certificate" : "token"), b->credential};
    char digest[DIGEST_TEXT_BYTES];
    struct answer *a;

    digest_parts(digest, parts, ARRAY_SIZE(parts));
    a = map_get(&g->by_digest, digest);
    if (a)
        return a;
    a = xcalloc(1, sizeof(*a));
    memcpy(a->digest, digest, sizeof(digest));
    map_set(&g->by_digest, a->digest, a);
    a->guard = g;
    a->right = b->right;
    a->expires = kube_now(g->kube);
    buf_init(&a->question, MAX_BODY);
    STAILQ_INIT(&a->waiting);
    answer_put(a);
    return a;
}

/* ---- The end of a review ---- */

static void answer_tell(struct answer *a, const struct httpd_refusal *refusal)
{
    struct guard_bearer *b;

    invariant(answer_group(a)->under_way > 0);
    answer_group(a)->under_way--;
    while ((b = STAILQ_FIRST(&a->waiting))) {
        STAILQ_REMOVE_HEAD(&a->waiting, next);
        invariant(answer_group(a)->waiting > 0);
        answer_group(a)->waiting--;
        bearer_decide(b, refusal);
    }
}

static void guard_note_failure(struct kube_guard *g, const char *error)
{
    if (!g->failing)
        log_warn("HTTP requests cannot be authorized", L_STR("kube", kube_label_of(g->kube)),
                 L_STR("err", error));
    g->failing = true;
}

static void guard_note_success(struct kube_guard *g)
{
    if (g->failing)
        log_info("HTTP requests are authorized again", L_STR("kube", kube_label_of(g->kube)));
    g->failing = false;
}

/* The API server has answered. */
static void answer_settle(struct answer *a, const struct httpd_refusal *refusal)
{
    int64_t ttl = a->guard->cache_ttl_ms;

    guard_note_success(a->guard);
    answer_tell(a, refusal);
    answer_take(a);
    a->allowed = !refusal;
    if (refusal)
        a->refusal = *refusal;
    answer_put(a);
    a->expires = mono_add(kube_now(a->guard->kube), refusal && ttl > REFUSED_TTL_MS ? REFUSED_TTL_MS : ttl);
}

static const char no_answer[] = "503: cannot authorize the request: the API server does not answer\n";

/* The API server has not. Nothing is cached; that the token was allowed once still chooses its group. */
static void answer_fail(struct answer *a, const struct kube_answer *reply)
{
    const struct httpd_refusal refusal = {
        .text = reply->verdict == KUBE_RETRY
                    ? no_answer
                    : "503: cannot authorize the request: the API server refuses reviews, see the log\n",
        .retry_after = RETRY_SECONDS};

    guard_note_failure(a->guard, reply->why);
    answer_tell(a, &refusal);
    if (!a->allowed)
        answer_drop(a);
}

/* ---- The two questions ---- */

static void access_on_reply(void *arg, struct kube_answer *reply)
{
    struct answer *a = arg;

    a->call = NULL;
    if (reply->verdict != KUBE_OK)
        answer_fail(a, reply);
    else if (kube_bool(reply->object, "status", "allowed", NULL))
        answer_settle(a, NULL);
    else
        answer_settle(a, &(struct httpd_refusal){.text = a->text});
}

/* About the user as a TokenReview describes it. */
static json_t *access_question(const json_t *user, const char *name, const struct kube_path_right *right)
{
    json_t *review = json_object(), *spec, *path;

    kube_set_str(review, "apiVersion", "authorization.k8s.io/v1");
    kube_set_str(review, "kind", kube_subjectaccessreviews.kind);
    spec = kube_set_object(review, "spec");
    kube_set_str(spec, "user", name);
    kube_set(spec, "groups", json_incref(kube_list(user, "groups", NULL)));
    kube_set(spec, "uid", json_incref(kube_get(user, "uid", NULL)));
    kube_set(spec, "extra", json_incref(kube_map(user, "extra", NULL)));
    path = kube_set_object(spec, "nonResourceAttributes");
    kube_set_str(path, "path", right->url);
    kube_set_str(path, "verb", right->verb);
    return review;
}

/* The refusal, as the user gets it if access is denied. */
static void access_explain(char text[REFUSAL_BYTES], const char *name, const struct kube_path_right *right)
{
    BUF_AUTO(sentence, REFUSAL_BYTES - 1);
    char shown[USER_BYTES];

    text_line(shown, sizeof(shown), str_of(name));
    buf_printf(&sentence, "403: user \"%s\" cannot %s path \"%s\": ", shown, right->verb, right->url);
    buf_puts(&sentence, "bind it to a ClusterRole that allows this nonResourceURL\n");
    invariant(buf_failed(&sentence) == 0); /* a name of USER_BYTES, and literals */
    memcpy(text, sentence.p, sentence.n);
    text[sentence.n] = '\0';
}

static void access_ask(struct answer *a, const json_t *user, const char *name)
{
    int64_t left = mono_diff(kube_now(a->guard->kube), a->deadline);
    json_auto_t *body = access_question(user, name, a->right);
    const struct kube_request rq = {.method = KUBE_CREATE,
                                    .resource = &kube_subjectaccessreviews,
                                    .body = body,
                                    .max_answer = 2 * MAX_REPLY,
                                    .timeout_ms = left > 1 ? left : 1};

    invariant(!a->call);
    access_explain(a->text, name, a->right);
    a->call = kube_start(a->guard->kube, &rq, access_on_reply, a);
}

static void token_on_reply(void *arg, struct kube_answer *reply)
{
    static const struct httpd_refusal refused = {.text = "401: the API server does not accept the token\n",
                                                 .challenge = "Bearer error=\"invalid_token\""};
    struct answer *a = arg;
    json_t *user = kube_map(reply->object, "status", "user", NULL);
    const char *name = cstr(kube_str(user, "username", NULL));

    a->call = NULL;
    secret_done(&a->question);
    kube_wipe_strings(kube_map(reply->object, "spec", NULL));
    if (reply->verdict != KUBE_OK) {
        answer_fail(a, reply);
    } else if (*name && kube_bool(reply->object, "status", "authenticated", NULL)) {
        access_ask(a, user, name);
    } else {
        log_debug("token not accepted", L_STR("err", cstr(kube_str(reply->object, "status", "error", NULL))));
        answer_settle(a, &refused);
    }
}

/* The token: at most MAX_TOKEN bytes of printable ASCII. */
static void token_ask(struct answer *a, struct str token)
{
    struct kube_request rq = {.method = KUBE_CREATE,
                              .resource = &kube_tokenreviews,
                              .max_answer = MAX_REPLY,
                              .timeout_ms = a->guard->timeout_ms};
    char *room;

    /* It must not move: that would leave a copy. */
    if (buf_reserve(&a->question, 2 * token.n + 256, &room) < 0)
        memory_exhausted(2 * token.n + 256);
    buf_puts(&a->question, "{\"apiVersion\":\"authentication.k8s.io/v1\",\"kind\":\"TokenReview\","
                           "\"spec\":{\"token\":");
    buf_put_json(&a->question, token);
    buf_puts(&a->question, "}}");
    invariant(buf_failed(&a->question) == 0);
    rq.body_text[0] = buf_str(&a->question);
    a->call = kube_start(a->guard->kube, &rq, token_on_reply, a);
}

/* False for a credential without a user. */
static bool answer_ask(struct answer *a, const struct guard_bearer *b)
{
    json_auto_t *user = b->by_certificate ? certificate_read_user(b->credential) : NULL;
    const char *name = kube_str(user, "username", NULL);

    a->deadline = mono_add(kube_now(a->guard->kube), a->guard->timeout_ms);
    if (name)
        access_ask(a, user, name);
    else if (!b->by_certificate)
        token_ask(a, b->credential);
    return a->call;
}

/* Waits for a review, which is started if none is under way. False, and *ret, if it may not. */
static bool answer_wait(struct answer *a, struct guard_bearer *b, struct httpd_refusal *ret)
{
    struct group *g = answer_group(a);

    *ret = (struct httpd_refusal){.text = no_answer, .retry_after = RETRY_SECONDS};
    invariant(a->call || STAILQ_EMPTY(&a->waiting)); /* who waits, waits for a call */
    if (kube_is_unreachable(a->guard->kube)) {
        guard_note_failure(a->guard, "the API server is away");
        return false;
    }
    if ((!a->call && g->under_way >= MAX_UNDER_WAY) || (!a->allowed && g->waiting >= MAX_WAITING)) {
        ret->text = "503: cannot authorize the request: too many others are being authorized\n";
        return false;
    }
    if (!a->call && !answer_ask(a, b)) {
        *ret = (struct httpd_refusal){.text = "401: the certificate names no user\n", .challenge = "Bearer"};
        return false;
    }
    g->under_way += STAILQ_EMPTY(&a->waiting);
    g->waiting++;
    STAILQ_INSERT_TAIL(&a->waiting, b, next);
    return true;
}

/* Answers at once if the answer is cached, or if it cannot be had. */
static void guard_review(struct kube_guard *g, struct guard_bearer *b)
{
    struct answer *a = answer_get(g, b);
    struct httpd_refusal refusal;

    if (mono_before(kube_now(g->kube), a->expires)) {
        bearer_decide(b, a->allowed ? NULL : &a->refusal);
    } else if (!answer_wait(a, b, &refusal)) {
        if (!a->call && !a->allowed)
            answer_drop(a);
        bearer_decide(b, &refusal);
    }
}

/* Server's thread, lock held. The loop is woken by the first one. */
static void arrived_add(struct kube_guard *g, struct guard_bearer *b)
{
    invariant(lock_is_held(&g->lock));
    if (STAILQ_EMPTY(&g->arrived))
        loop_post(kube_loop(g->kube), &g->post);
    STAILQ_INSERT_TAIL(&g->arrived, b, next);
}

/* Loop, lock held. Moves all of them. */
static void arrived_take(struct kube_guard *g, struct bearers *ret)
{
    invariant(lock_is_held(&g->lock));
    STAILQ_CONCAT(ret, &g->arrived);
}

static void guard_on_arrived(struct post *p)
{
    struct kube_guard *g = CONTAINER_OF(p, struct kube_guard, post);
    struct bearers arrived = STAILQ_HEAD_INITIALIZER(arrived);
    struct guard_bearer *b;

    lock_take(&g->lock);
    arrived_take(g, &arrived);
    lock_release(&g->lock);
    while ((b = STAILQ_FIRST(&arrived))) {
        STAILQ_REMOVE_HEAD(&arrived, next);
        guard_review(g, b);
    }
}

/* The token of "Bearer TOKEN" (RFC 6750), or what is wrong. */
static const char *guard_read_token(const char *authorization, struct str *ret)
{
    struct str s = str_of(authorization);

    if (s.n < 7 || s.p[6] != ' ' || !str_eq_nocase((struct str){s.p, 6}, STR("Bearer")))
        return "401: a bearer token is required\n";
    if (secret_token((struct str){s.p + 7, s.n - 7}, ret))
        return "401: the bearer token is malformed\n";
    return ret->n > MAX_TOKEN ? "401: the bearer token is longer than 16384 bytes\n" : NULL;
}

static const struct kube_path_right guard_rights[] = {
    {"/metrics", "get", "/metrics"}, {"/-/reload", "post", "/-/reload"}, {NULL, "get", "/status"}};

/* Hands a request over to the loop. Server's thread. */
static void guard_check(void *arg, const struct httpd_request *rq, const struct httpd_ticket *ticket)
{
    bool by_certificate = rq->client_certificate.n && !*rq->authorization;
    struct str credential = rq->client_certificate;
    struct kube_guard *g = arg;
    const char *why = by_certificate ? NULL : guard_read_token(rq->authorization, &credential);
    const struct kube_path_right *right = g->rights;
    struct guard_bearer *b;

    if (why) {
        httpd_decide(ticket, &(struct httpd_refusal){.text = why, .challenge = "Bearer"});
        return;
    }
    while (right->path && strcmp(right->path, rq->path) != 0)
        right++;
    b = xmalloc(sizeof(*b) + credential.n);
    *b = (struct guard_bearer){.ticket = *ticket,
                               .right = right,
                               .by_certificate = by_certificate,
                               .credential = {b->bytes, credential.n}};
    memcpy(b->bytes, credential.p, credential.n);
    lock_take(&g->lock);
    arrived_add(g, b);
    lock_release(&g->lock);
}

struct kube_guard *kube_guard_new(struct kube *k, int64_t cache_ttl_ms, int64_t timeout_ms,
                                  const struct kube_path_right *rights)
{
    struct kube_guard *g = xcalloc(1, sizeof(*g));

    g->kube = k;
    g->cache_ttl_ms = cache_ttl_ms;
    g->timeout_ms = timeout_ms;
    for (size_t i = 0; i < ARRAY_SIZE(g->groups); i++)
        TAILQ_INIT(&g->groups[i].answers);
    g->httpd =
        (struct httpd_guard){.check = guard_check, .arg = g, .deadline_ms = (unsigned)timeout_ms + LATE_MS};
    g->rights = rights ?: guard_rights;
    g->post.fn = guard_on_arrived;
    STAILQ_INIT(&g->arrived);
    lock_init(&g->lock);
    return g;
}

struct kube_guard *kube_guard_free(struct kube_guard *g)
{
    struct answer *a;

    if (!g)
        return NULL;
    loop_unpost(kube_loop(g->kube), &g->post);
    bearers_free(&g->arrived);
    for (size_t i = 0; i < ARRAY_SIZE(g->groups); i++)
        while ((a = TAILQ_FIRST(&g->groups[i].answers)))
            answer_drop(a);
    map_done(&g->by_digest);
    lock_done(&g->lock);
    free(g);
    return NULL;
}

const struct httpd_guard *kube_guard_httpd(const struct kube_guard *g)
{
    return g ? &g->httpd : NULL;
}

/* Owns the cached answers, in two groups that share no limits: those of tokens that were allowed the last
 * time, and the others, so that many bad tokens neither displace nor delay the good ones. */
#include "controller/kube/review.h"

#include "controller/kube/json.h"
#include "controller/kube/verdict.h"
#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/digest.h"
#include "exporter/base/json.h"
#include "exporter/base/log.h"
#include "exporter/base/loop.h"
#include "exporter/base/map.h"
#include "exporter/base/secret.h"
#include "exporter/base/str.h"
#include "exporter/base/text.h"

#include <errno.h>
#include <gnutls/x509.h>
#include <jansson.h>
#include <stdio.h>

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

/* All values of an attribute, in their order. NULL when out of memory, or if one is no text. */
static json_t *certificate_names(gnutls_x509_crt_t crt, const char *oid)
{
    json_t *names = json_array();
    int r = names ? 0 : GNUTLS_E_MEMORY_ERROR;

    for (unsigned i = 0; r == 0 && i < MAX_NAMES; i++) {
        char name[MAX_NAME];
        size_t n = sizeof(name);

        r = gnutls_x509_crt_get_dn_by_oid(crt, oid, i, 0, name, &n);
        if (r == 0 && json_array_append_new(names, json_stringn(name, certificate_unescape(name, n))) < 0)
            r = GNUTLS_E_MEMORY_ERROR;
    }
    if (r != GNUTLS_E_REQUESTED_DATA_NOT_AVAILABLE) {
        json_decref(names);
        return NULL;
    }
    return names;
}

/* Of several common names the last one counts, as in Go. */
static json_t *certificate_user(gnutls_x509_crt_t crt)
{
    json_auto_t *names = certificate_names(crt, GNUTLS_OID_X520_COMMON_NAME);
    json_auto_t *groups = certificate_names(crt, GNUTLS_OID_X520_ORGANIZATION_NAME);
    json_t *name = json_array_get(names, json_array_size(names) - 1);

    if (!name || json_string_length(name) == 0 || !groups ||
        json_array_append_new(groups, json_string("system:authenticated")) < 0)
        return NULL;
    return json_pack("{s:O, s:O}", "username", name, "groups", groups);
}

/* The user that a client certificate (DER) names, as the API server reads one: the common name, and the
 * organizations as groups. NULL if it has no common name, or when out of memory. */
static json_t *certificate_read_user(struct str der)
{
    const gnutls_datum_t datum = {(unsigned char *)(uintptr_t)der.p, (unsigned)der.n};
    json_t *user = NULL;
    gnutls_x509_crt_t crt;

    if (gnutls_x509_crt_init(&crt) < 0)
        return NULL;
    if (gnutls_x509_crt_import(crt, &datum, GNUTLS_X509_FMT_DER) == 0)
        user = certificate_user(crt);
    gnutls_x509_crt_deinit(crt);
    return user;
}

/* ---- Reviews ---- */

enum {
    REFUSED_TTL_MS = 10 * 1000,
    MAX_ANSWERS = 512,   /* of a group */
    MAX_UNDER_WAY = 16,  /* of a group */
    MAX_WAITING = 128,   /* for tokens that were not allowed before; less than the server lets wait */
    MAX_BODY = 64 << 10, /* of a TokenReview */
    MAX_REPLY = 1 << 20, /* with the user's groups, which come again in the SubjectAccessReview */
    USER_BYTES = 256,
    RETRY_SECONDS = 5,
};

TAILQ_HEAD(answers, answer);

struct group {
    struct answers answers; /* the oldest first */
    unsigned n, under_way, waiting;
};

struct kube_reviews {
    struct kube_review_options o;
    struct map by_digest;
    struct group groups[2]; /* by `allowed` */
    bool failing;           /* the last review got no answer */
};

/* What is known about one credential and right. */
struct answer {
    char digest[DIGEST_TEXT_BYTES]; /* the key */
    struct kube_reviews *all;
    TAILQ_ENTRY(answer) place;
    struct kube_right right;
    struct kube_call *call; /* the question under way */
    struct buf question;    /* the TokenReview, which has the token */
    mono_ms deadline;       /* of the review under way */
    mono_ms expires;
    bool allowed;
    struct httpd_refusal refusal; /* unless allowed */
    char text[USER_BYTES + 256];  /* the refusal's */
    LIST_HEAD(, kube_review) waiting;
};

static struct group *answer_group(const struct answer *a)
{
    return &a->all->groups[a->allowed];
}

static void answer_put(struct answer *a)
{
    TAILQ_INSERT_TAIL(&answer_group(a)->answers, a, place);
    answer_group(a)->n++;
}

static void answer_take(struct answer *a)
{
    TAILQ_REMOVE(&answer_group(a)->answers, a, place);
    answer_group(a)->n--;
}

static void answer_drop(struct answer *a)
{
    answer_take(a);
    (void)map_take(&a->all->by_digest, a->digest);
    (void)kube_cancel(a->call);
    secret_done(&a->question);
    free(a);
}

/* Makes room for one more in a group by dropping the oldest. */
static void group_trim(struct group *g)
{
    struct answer *a = TAILQ_FIRST(&g->answers);

    while (a && a->call)
        a = TAILQ_NEXT(a, place);
    if (a && g->n >= MAX_ANSWERS)
        answer_drop(a);
}

/* The answer in the table, made if there is none. NULL when out of memory. */
static struct answer *answer_get(struct kube_reviews *all, const struct kube_credential *c,
                                 const struct kube_right *right)
{
    const struct str parts[] = {str_of(right->verb), str_of(right->path), c->token, c->certificate};
    CLEANUP(cleanup_free) struct answer *a = NULL;
    char digest[DIGEST_TEXT_BYTES];

    if (digest_parts(digest, parts, ARRAY_SIZE(parts)) < 0)
        return NULL;
    a = map_get(&all->by_digest, digest);
    if (a)
        return TAKE_PTR(a);
    a = xcalloc(1, sizeof(*a));
    memcpy(a->digest, digest, sizeof(digest));
    map_set(&all->by_digest, a->digest, a);
    group_trim(&all->groups[false]);
    a->all = all;
    a->right = *right;
    a->expires = loop_now(kube_loop(all->o.kube));
    buf_init(&a->question, MAX_BODY);
    answer_put(a);
    return TAKE_PTR(a);
}

/* ---- The end of a review ---- */

static void answer_tell(struct answer *a, const struct httpd_refusal *refusal)
{
    struct kube_review *r;

    answer_group(a)->under_way--;
    while ((r = LIST_FIRST(&a->waiting))) {
        LIST_REMOVE(r, entry);
        answer_group(a)->waiting--;
        r->done(r, refusal);
    }
}

static void reviews_note(struct kube_reviews *all, const char *trouble)
{
    if (trouble && !all->failing)
        log_warn("HTTP requests cannot be authorized", L_STR("kube", kube_label_of(all->o.kube)),
                 L_STR("err", trouble));
    else if (!trouble && all->failing)
        log_info("HTTP requests are authorized again", L_STR("kube", kube_label_of(all->o.kube)));
    all->failing = trouble != NULL;
}

/* The API server has answered. */
static void answer_settle(struct answer *a, const struct httpd_refusal *refusal)
{
    int64_t ttl = a->all->o.cache_ttl_ms;

    reviews_note(a->all, NULL);
    answer_tell(a, refusal);
    answer_take(a);
    a->allowed = !refusal;
    if (refusal)
        a->refusal = *refusal;
    group_trim(answer_group(a));
    answer_put(a);
    a->expires =
        mono_add(loop_now(kube_loop(a->all->o.kube)), refusal && ttl > REFUSED_TTL_MS ? REFUSED_TTL_MS : ttl);
}

static const char no_memory[] = "503: cannot authorize the request: out of memory\n";
static const char no_answer[] = "503: cannot authorize the request: the API server does not answer\n";

/* The API server has not. Nothing is cached; that the token was allowed once still chooses its group. */
static void answer_fail(struct answer *a, const struct kube_answer *reply)
{
    struct httpd_refusal refusal = {.status = 503, .text = no_memory, .retry_after = RETRY_SECONDS};

    if (reply) {
        refusal.text =
            reply->verdict == KUBE_RETRY
                ? no_answer
                : "503: cannot authorize the request: the API server refuses reviews, see the log\n";
        reviews_note(a->all, reply->why);
    }
    answer_tell(a, &refusal);
    if (!a->allowed)
        answer_drop(a);
}

static void answer_refuse_token(struct answer *a)
{
    answer_settle(a, &(struct httpd_refusal){.status = 401,
                                             .text = "401: the API server does not accept the token\n",
                                             .challenge = "Bearer error=\"invalid_token\""});
}

/* ---- The two questions ---- */

static void access_on_reply(void *arg, struct kube_answer *reply)
{
    struct answer *a = arg;
    bool allowed = false;

    a->call = NULL;
    if (reply->verdict != KUBE_OK) {
        answer_fail(a, reply);
        return;
    }
    (void)kube_bool(reply->object, &allowed, "status", "allowed", NULL);
    answer_settle(a, allowed ? NULL : &(struct httpd_refusal){.status = 403, .text = a->text});
}

/* About the user as a TokenReview describes it. */
static int access_ask(struct answer *a, const json_t *user, const char *name)
{
    int64_t left = mono_diff(loop_now(kube_loop(a->all->o.kube)), a->deadline);
    json_auto_t *body = json_pack("{s:s, s:s, s:{s:s, s:O*, s:O*, s:O*, s:{s:s, s:s}}}", "apiVersion",
                                  "authorization.k8s.io/v1", "kind", "SubjectAccessReview", "spec", "user",
                                  name, "groups", kube_list(user, "groups", NULL), //
                                  "uid", kube_get(user, "uid", NULL), "extra", kube_map(user, "extra", NULL),
                                  "nonResourceAttributes", "path", a->right.path, "verb", a->right.verb);
    const struct kube_request rq = {.method = KUBE_CREATE,
                                    .resource = &kube_subjectaccessreviews,
                                    .body = body,
                                    .max_answer = 2 * MAX_REPLY,
                                    .timeout_ms = left > 1 ? left : 1};
    char shown[USER_BYTES];

    text_line(shown, sizeof(shown), str_of(name));
    (void)snprintf(a->text, sizeof(a->text),
                   "403: user \"%s\" cannot %s path \"%s\": bind it to a ClusterRole that allows this "
                   "nonResourceURL\n",
                   shown, a->right.verb, a->right.path);
    return body ? kube_start(&a->call, a->all->o.kube, &rq, access_on_reply, a) : -ENOMEM;
}

static void token_on_reply(void *arg, struct kube_answer *reply)
{
    struct answer *a = arg;
    json_t *user = kube_map(reply->object, "status", "user", NULL);
    const char *name = cstr(kube_str(user, "username", NULL));
    bool authenticated = false;

    a->call = NULL;
    secret_done(&a->question);
    kube_wipe_strings(kube_map(reply->object, "spec", NULL));
    if (reply->verdict != KUBE_OK) {
        answer_fail(a, reply);
        return;
    }
    (void)kube_bool(reply->object, &authenticated, "status", "authenticated", NULL);
    if (!authenticated || !*name) {
        log_debug("token not accepted", L_STR("err", cstr(kube_str(reply->object, "status", "error", NULL))));
        answer_refuse_token(a);
    } else if (access_ask(a, user, name) < 0) {
        answer_fail(a, NULL);
    }
}

static int token_ask(struct answer *a, struct str token)
{
    struct kube_request rq = {.method = KUBE_CREATE,
                              .resource = &kube_tokenreviews,
                              .max_answer = MAX_REPLY,
                              .timeout_ms = a->all->o.timeout_ms};
    char *room;
    int r = buf_room(&a->question, 2 * token.n + 256, &room) /* it must not move: that would leave a copy */
                ?: buf_puts(&a->question, "{\"apiVersion\":\"authentication.k8s.io/v1\","
                                          "\"kind\":\"TokenReview\",\"spec\":{\"token\":")
                ?: buf_put_json(&a->question, token) ?: buf_puts(&a->question, "}}");

    rq.body_text = buf_str(&a->question);
    r = r ?: kube_start(&a->call, a->all->o.kube, &rq, token_on_reply, a);
    if (r < 0)
        secret_done(&a->question);
    return r;
}

/* -EINVAL for a certificate without a name, -ENOMEM. */
static int answer_ask(struct answer *a, const struct kube_credential *c)
{
    json_auto_t *user = c->token.n ? NULL : certificate_read_user(c->certificate);
    const char *name = kube_str(user, "username", NULL);

    a->deadline = mono_add(loop_now(kube_loop(a->all->o.kube)), a->all->o.timeout_ms);
    if (c->token.n)
        return token_ask(a, c->token);
    return name ? access_ask(a, user, name) : -EINVAL;
}

/* Waits for a review, which is started if none is under way. False, and *ret, if it may not. */
static bool answer_wait(struct answer *a, struct kube_review *waiting, const struct kube_credential *c,
                        struct httpd_refusal *ret)
{
    struct group *g = answer_group(a);
    int r;

    if (kube_is_away(a->all->o.kube)) {
        reviews_note(a->all, "the API server is away");
        ret->text = no_answer;
        return false;
    }
    if ((!a->call && g->under_way >= MAX_UNDER_WAY) || (!a->allowed && g->waiting >= MAX_WAITING)) {
        ret->text = "503: cannot authorize the request: too many others are being authorized\n";
        return false;
    }
    r = a->call ? 0 : answer_ask(a, c);
    if (r == -EINVAL)
        *ret = (struct httpd_refusal){
            .status = 401, .text = "401: the certificate names no user\n", .challenge = "Bearer"};
    if (r < 0)
        return false;
    g->under_way += LIST_EMPTY(&a->waiting);
    g->waiting++;
    LIST_INSERT_HEAD(&a->waiting, waiting, entry);
    return true;
}

void kube_review_start(struct kube_reviews *all, struct kube_review *r, const struct kube_credential *c,
                       const struct kube_right *right)
{
    struct httpd_refusal refusal = {.status = 503, .text = no_memory, .retry_after = RETRY_SECONDS};
    struct answer *a = answer_get(all, c, right);

    if (a && mono_before(loop_now(kube_loop(all->o.kube)), a->expires)) {
        r->done(r, a->allowed ? NULL : &a->refusal);
        return;
    }
    if (a && answer_wait(a, r, c, &refusal))
        return;
    if (a && !a->call && !a->allowed)
        answer_drop(a);
    r->done(r, &refusal);
}

struct kube_reviews *kube_reviews_new(const struct kube_review_options *o)
{
    struct kube_reviews *all = xcalloc(1, sizeof(*all));

    all->o = *o;
    for (size_t i = 0; i < ARRAY_SIZE(all->groups); i++)
        TAILQ_INIT(&all->groups[i].answers);
    return all;
}

struct kube_reviews *kube_reviews_free(struct kube_reviews *all)
{
    struct answer *a;

    if (!all)
        return NULL;
    for (size_t i = 0; i < ARRAY_SIZE(all->groups); i++)
        while ((a = TAILQ_FIRST(&all->groups[i].answers)))
            answer_drop(a);
    map_done(&all->by_digest);
    free(all);
    return NULL;
}

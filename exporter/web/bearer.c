#include "exporter/web/bearer.h"

#include "exporter/base/buf.h"
#include "exporter/base/digest.h"
#include "exporter/base/file.h"
#include "exporter/base/log.h"
#include "exporter/base/secret.h"

enum { MAX_BYTES = 64 << 10, LOG_MS = 60 * 1000, RETRY_SECONDS = 10 };

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
    mono_ms now = clock_system.mono(&clock_system);

    if (b->has_logged && mono_diff(b->logged_at, now) < LOG_MS)
        return;
    b->has_logged = true;
    b->logged_at = now;
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
    SECRET_AUTO(value, MAX_BYTES);
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

/* Compares the token of each request with the server's, which is read anew if it is in a file. Owns
 * nothing but the time of its next log line. Server's threads, several at once; must not block for long. */
#include "exporter/web/bearer.h"

#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/file.h"
#include "exporter/base/log.h"
#include "exporter/base/secret.h"

#include <stdatomic.h>

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

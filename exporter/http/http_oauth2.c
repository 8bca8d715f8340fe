/* Tokens of OAuth 2.0: client credentials (RFC 6749, section 4.4). Owns the client's tokens, by all that they
 * are requested with. There is one request for all calls that need the token; the others wait for it.
 *
 * The client authenticates in the header, as section 2.3.1 asks of every server; where that is refused, it is
 * tried once with the parameters in the body, which is all that some providers accept. */
#include "exporter/base/backoff.h"
#include "exporter/base/escape.h"
#include "exporter/base/invariant.h"
#include "exporter/base/json.h"
#include "exporter/base/secret.h"
#include "exporter/http/http_internal.h"
#include "exporter/http/rule.h"

#include <errno.h>
#include <stdio.h>

enum {
    MAX_TOKENS = 1024, /* without calls */
    TOKEN_ANSWER_BYTES = 64 << 10,
    FORM_BYTES = 8 << 20, /* more than a configuration or a Secret can ask for */
    REQUEST_MS = 10 * 1000,
    UNKNOWN_MS = 300 * 1000, /* lifetime of a token without a valid expires_in */
    LONGEST_MS = 24 * 3600 * 1000,
    MARGIN_MS = 10 * 1000,       /* not used so shortly before its end, */
    RENEW_MS = 60 * 1000,        /* and renewed this long before that; both at most a tenth of the lifetime */
    SHORTEST_MS = 1000,          /* in use at least, so that a server cannot have us ask without end */
    WHY_MAX_BYTES = 2048,        /* of a sentence from bounded parts */
    REFUSED_AFTER_MS = 5 * 1000, /* a younger token stays, whatever a server says of it */
};

static const struct backoff token_backoff = {1000, 30 * 1000, 600 * 1000};

struct http_token {
    struct http *http;
    TAILQ_ENTRY(http_token) entry;
    char key[DIGEST_TEXT_BYTES];
    size_t users;
    struct buf value; /* empty: none */
    mono_ms received_at, renew_at, ends_at;
    /* The request in flight */
    struct http_call *call;
    mono_ms asked_at;
    struct buf form;
    bool in_body, one_way_refused; /* authenticate in the body; the other way has to be tried */
    /* The last request, if it failed */
    unsigned failures;
    mono_ms not_before;
    char url[200], *why;
};

/* ---- The tokens of a client ---- */

static void token_free(struct http_token *t)
{
    TAILQ_REMOVE(&t->http->tokens, t, entry);
    secret_done(&t->value);
    secret_done(&t->form);
    free(t->why);
    free(t);
}

void http_tokens_free(struct http *h)
{
    while (!TAILQ_EMPTY(&h->tokens))
        token_free(TAILQ_FIRST(&h->tokens));
}

static void token_key(const struct http_request *rq, char ret[DIGEST_TEXT_BYTES])
{
    const struct http_oauth2 *o = rq->oauth2;
    const struct http_tls none = {0}, *tls = o->tls ? o->tls : &none;
    const char flags[] = {tls->insecure, rq->public_only, o->proxy != NULL};
    const struct str parts[] = {
        str_of(o->token_url),
        o->client_id,
        o->client_secret,
        o->form,
        str_of(o->proxy),
        tls->ca,
        tls->cert,
        tls->key,
        str_of(tls->ca_file),
        str_of(tls->cert_file),
        str_of(tls->key_file),
        str_of(tls->server_name),
        {flags, sizeof(flags)},
    };

    digest_parts(ret, parts, ARRAY_SIZE(parts));
}

/* If there are too many, the oldest without calls is removed. */
static void token_join(struct http_call *c)
{
    struct http *h = c->http;
    const char *url = c->rq.oauth2->token_url;
    struct http_token *t, *unused = NULL;
    char key[DIGEST_TEXT_BYTES];
    BUF_AUTO(shown, TOKEN_ANSWER_BYTES);
    size_t n = 0;

    token_key(&c->rq, key);
    TAILQ_FOREACH (t, &h->tokens, entry) {
        if (strcmp(t->key, key) == 0)
            break;
        if (!unused && !t->users && !t->call)
            unused = t;
        n++;
    }
    if (!t) {
        if (unused && n >= MAX_TOKENS)
            token_free(unused);
        t = xmalloc(sizeof(*t));
        *t = (struct http_token){.http = h, .form.max = FORM_BYTES};
        memcpy(t->key, key, sizeof(t->key));
        TAILQ_INSERT_TAIL(&h->tokens, t, entry);
        http_url_for_people((struct str){url, strcspn(url, "?#")}, &shown);
        if (buf_failed(&shown) == 0)
            text_line(t->url, sizeof(t->url), buf_str(&shown));
    }
    t->users++;
    c->token = t;
}

static void token_leave(struct http_call *c)
{
    struct http_token *t = c->token;

    t->users--;
    if (c->answer.status == 401 && c->token_at.ms == t->received_at.ms &&
        mono_diff(t->received_at, loop_now(c->http->loop)) >= REFUSED_AFTER_MS)
        secret_done(&t->value);
}

/* ---- The answer ---- */

/* Raw JSON strings, the last or a number. False if it is no JSON object. Members of other types count as
 * absent. */
static bool token_answer_parse(struct str body, struct str *token, struct str *kind, struct str *expires)
{
    struct jr j;
    struct str key;

    jr_init(&j, body, JR_LENIENT_UTF8);
    jr_object(&j);
    while (jr_member(&j, &key)) {
        enum jr_type type = jr_peek(&j);
        struct str *into = NULL;

        if (jr_key_is(key, "access_token"))
            into = token;
        else if (jr_key_is(key, "token_type"))
            into = kind;
        else if (jr_key_is(key, "expires_in"))
            into = expires;
        if (into && type == JR_STRING)
            jr_string(&j, into);
        else if (into == expires && type == JR_NUMBER)
            jr_number(&j, into);
        else
            jr_skip(&j, NULL);
    }
    return jr_end(&j);
}

static void token_set_times(struct http_token *t, struct str expires)
{
    uint64_t seconds = 0;
    int64_t ms = UNKNOWN_MS, tenth;

    if (str_to_u64(expires, &seconds) && seconds)
        ms = seconds < LONGEST_MS / 1000 ? (int64_t)seconds * 1000 : LONGEST_MS;
    tenth = ms / 10;
    t->received_at = loop_now(t->http->loop);
    t->ends_at = mono_add(t->asked_at, ms - (tenth < MARGIN_MS ? tenth : MARGIN_MS));
    t->renew_at = mono_add(t->ends_at, -(tenth < RENEW_MS ? tenth : RENEW_MS));
    if (mono_before(t->ends_at, mono_add(t->received_at, SHORTEST_MS)))
        t->renew_at = t->ends_at = mono_add(t->received_at, SHORTEST_MS);
}

/* Keeps the token of a 2xx answer. Returns what is wrong with it otherwise, without a part of it. */
static const char *token_keep(struct http_token *t, struct str body)
{
    SECRET_AUTO(plain, 3 * TOKEN_ANSWER_BYTES);
    struct str raw = {0}, kind = {0}, expires = {0}, token;
    const char *why;
    char *room;

    if (!token_answer_parse(body, &raw, &kind, &expires))
        return "the response is not a JSON object";
    if (!raw.n)
        return "the response has no access_token";
    if (kind.n && !str_eq_nocase(kind, STR("Bearer")))
        return "its token_type is not Bearer";
    if (buf_reserve(&plain, 3 * raw.n, &room) < 0)
        memory_exhausted(plain.max);
    plain.n = jr_unescape(raw, room);
    why = secret_token(buf_str(&plain), &token);
    if (why)
        return why;
    secret_done(&t->value);
    buf_init(&t->value, token.n);
    buf_put_str(&t->value, token);
    if (buf_failed(&t->value) < 0)
        memory_exhausted(token.n);
    token_set_times(t, expires);
    return NULL;
}

static void token_back_off(struct http_token *t, int64_t retry_after_ms)
{
    t->one_way_refused = false;
    t->in_body = false;
    t->not_before =
        mono_add(loop_now(t->http->loop), backoff_ms(&token_backoff, ++t->failures, retry_after_ms));
}

/* What explains the failure further. Of a body nothing is shown: it may have a token. */
static void token_put_hint(struct buf *b, const struct http_response *a)
{
    char type[128];

    if (a->status / 100 == 3) {
        buf_puts(b, "; redirects are not followed here");
    } else if (a->error == HTTP_OK && a->status / 100 == 2) {
        text_line(type, sizeof(type), *a->content_type ? str_of(a->content_type) : STR("none"));
        buf_puts(b, "; Content-Type: ");
        buf_puts(b, type);
    }
}

/* a: NULL if the request could not be made. */
static void token_explain(struct http_token *t, const char *why, const struct http_response *a)
{
    BUF_AUTO(text, WHY_MAX_BYTES);

    buf_puts(&text, "token request to ");
    buf_puts(&text, t->url);
    buf_puts(&text, " failed: ");
    buf_puts(&text, why);
    if (a)
        token_put_hint(&text, a);
    invariant(buf_failed(&text) == 0);
    free(t->why);
    t->why = str_dup(buf_str(&text));
}

enum token_verdict {
    TOKEN_TAKE,      /* the answer has a token */
    TOKEN_OTHER_WAY, /* to authenticate is tried at once, and once */
    TOKEN_BACK_OFF   /* and ask again */
};

/* There is no row for 422: no server means the way to authenticate by it. */
static const struct http_rule token_rules[] = {
    {200, 299, HTTP_OK, TOKEN_TAKE},
    {400, 401, HTTP_OK, TOKEN_OTHER_WAY},
    {0, HTTP_STATUS_MAX, HTTP_ANY, TOKEN_BACK_OFF},
};

static void token_on_answer(void *arg, struct http_response *a)
{
    struct http_token *t = arg;
    enum token_verdict verdict = (enum token_verdict)HTTP_VERDICT(token_rules, a->status, a->error);
    bool is_refused = verdict == TOKEN_OTHER_WAY;
    struct http_call *c;
    char text[400];
    const char *why = text;

    t->call = NULL;
    secret_done(&t->form);
    if (verdict == TOKEN_TAKE)
        why = token_keep(t, buf_str(&a->body));
    else if (a->error != HTTP_OK)
        why = a->reason;
    else
        text_http_status(text, sizeof(text), a->status, "", buf_str(&a->body));
    if (why && !(is_refused && t->one_way_refused)) /* else: the first says more */
        token_explain(t, why, a);
    if (!why) {
        t->failures = 0;
        t->one_way_refused = false;
    } else if (is_refused && !t->one_way_refused) {
        t->one_way_refused = true; /* the first call that waits asks again */
        t->in_body = !t->in_body;
    } else {
        token_back_off(t, a->retry_after_ms);
    }
    secret_done(&a->body);
    LIST_FOREACH (c, &t->http->calls, entry)
        if (c->token == t && c->is_held)
            http_call_soon(c);
}

/* ---- The request ---- */

/* Appends the value, encoded and terminated, without leaving bytes behind. */
static int put_encoded(struct buf *b, struct str value)
{
    char *room;
    int r = buf_reserve(b, 3 * value.n + 1, &room);

    if (r < 0)
        return r;
    buf_put_url(b, value);
    buf_putc(b, '\0');
    return buf_failed(b);
}

static int token_make_form(struct http_token *t, const struct http_oauth2 *o)
{
    char *room;
    int r = buf_reserve(&t->form, 100 + 3 * (o->client_id.n + o->client_secret.n) + o->form.n, &room);

    if (r < 0)
        return r;
    buf_put_str(&t->form, o->form);
    if (t->in_body) {
        buf_put_form(&t->form, STR("client_id"), o->client_id);
        buf_put_form(&t->form, STR("client_secret"), o->client_secret);
    }
    return buf_failed(&t->form);
}

/* Starts the request, with what a call asks for. */
static void token_request(struct http_token *t, const struct http_call *c)
{
    const struct http_oauth2 *o = c->rq.oauth2;
    SECRET_AUTO(id, FORM_BYTES);
    SECRET_AUTO(secret, FORM_BYTES);
    int r = token_make_form(t, o) ?: put_encoded(&id, o->client_id) ?: put_encoded(&secret, o->client_secret);
    const struct str form = buf_str(&t->form);
    struct http_request rq = {.url = o->token_url,
                              .content_type = "application/x-www-form-urlencoded",
                              .body = &form,
                              .body_parts = 1,
                              .max_answer = TOKEN_ANSWER_BYTES,
                              .timeout_ms = REQUEST_MS,
                              .tls = o->tls,
                              .proxy = o->proxy,
                              .no_redirects = true,
                              .public_only = c->rq.public_only};

    secret_used(o->client_secret);
    if (!t->in_body) {
        rq.user = id.p;
        rq.password = secret.p;
    }
    t->asked_at = loop_now(t->http->loop);
    r = r ?: http_call_start(&t->call, t->http, &rq, NULL, token_on_answer, t);
    if (r == 0) {
        t->call->rq.tls = NULL; /* curl has a copy, and the call for which it is may end first */
        return;
    }
    token_explain(t, r == -EINVAL ? "the URL cannot be used" : strerror(-r), NULL);
    secret_done(&t->form);
    token_back_off(t, -1);
}

static int token_apply(struct http_call *c)
{
    struct http_token *t = c->token;
    mono_ms now = loop_now(c->http->loop);
    int64_t left = mono_diff(now, c->ends_at);
    bool is_valid = t->value.n && mono_before(now, t->ends_at);

    if (!t->call && !mono_before(now, t->not_before) && !(is_valid && mono_before(now, t->renew_at)))
        token_request(t, c);
    if (is_valid) {
        c->token_at = t->received_at;
        http_set_bearer(c, buf_str(&t->value));
        (void)curl_easy_setopt(c->easy, CURLOPT_TIMEOUT_MS, (long)(left > 0 ? left : 1));
        return 0;
    }
    if (t->call)
        return -EAGAIN;
    http_answer_set_cause(&c->answer, CAUSE_TOKEN);
    (void)snprintf(c->answer.reason, sizeof(c->answer.reason), "%s", cstr(t->why));
    return -EACCES;
}

static void token_is_late(struct http_call *c)
{
    http_call_fail(c, CAUSE_TOKEN_DEADLINE, "OAuth 2.0 token request timed out after %.1f s",
                   (double)c->rq.timeout_ms / 1e3);
}

const struct http_gate http_token_gate = {
    .join = token_join, .apply = token_apply, .late = token_is_late, .leave = token_leave};

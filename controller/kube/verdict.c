#include "controller/kube/verdict.h"

#include "exporter/base/text.h"

#include <limits.h>
#include <stdio.h>

WORD_TABLE(kube_verdict_word, enum kube_verdict, KUBE_VERDICTS,
           {[KUBE_OK] = "ok",
            [KUBE_RETRY] = "retry",
            [KUBE_UNAUTHORIZED] = "unauthorized",
            [KUBE_FORBIDDEN] = "forbidden",
            [KUBE_NOT_FOUND] = "not_found",
            [KUBE_NO_KIND] = "no_kind",
            [KUBE_EXISTS] = "exists",
            [KUBE_CONFLICT] = "conflict",
            [KUBE_GONE] = "gone",
            [KUBE_INVALID] = "invalid",
            [KUBE_TOO_LARGE] = "too_large"});

enum { ANY = 0, USER_BYTES = 64 };

/* The first matching row decides. A NULL reason or message matches any; a message matches by containing
 * the words. */
static const struct rule {
    int from, to; /* HTTP status */
    const char *reason, *message;
    enum kube_verdict verdict;
} rules[] = {
    {200, 299, NULL, NULL, KUBE_OK},
    {401, 401, NULL, NULL, KUBE_UNAUTHORIZED},
    {403, 403, NULL, NULL, KUBE_FORBIDDEN},
    {409, 409, "AlreadyExists", NULL, KUBE_EXISTS},
    {409, 409, NULL, NULL, KUBE_CONFLICT},
    {410, 410, NULL, NULL, KUBE_GONE},
    {ANY, INT_MAX, "Expired", NULL, KUBE_GONE},
    {413, 413, NULL, NULL, KUBE_TOO_LARGE},
    /* A watch from a version that the store, restored from a backup, has not reached yet. */
    {500, 599, NULL, "Too large resource version", KUBE_GONE},
    {500, 599, NULL, "request is too large", KUBE_TOO_LARGE},
    {500, 599, NULL, "message larger than max", KUBE_TOO_LARGE},
    {408, 408, NULL, NULL, KUBE_RETRY},
    {429, 429, NULL, NULL, KUBE_RETRY},
    {400, 499, NULL, NULL, KUBE_INVALID},
};

/* Besides the table: the Status' details tell two kinds of 404 apart, and any other error is transient. */
static enum kube_verdict verdict_judge(long http_status, const char *reason, const char *message,
                                       const json_t *status)
{
    if (http_status == 404)
        return kube_str(status, "details", "name", NULL) ? KUBE_NOT_FOUND : KUBE_NO_KIND;
    for (size_t i = 0; i < ARRAY_SIZE(rules); i++) {
        const struct rule *r = &rules[i];

        if (http_status >= r->from && http_status <= r->to &&
            (!r->reason || strcmp(reason, r->reason) == 0) && (!r->message || strstr(message, r->message)))
            return r->verdict;
    }
    return KUBE_RETRY;
}

/* 'configmaps "x" is forbidden: User "u" cannot get resource ...' becomes 'forbidden: cannot get resource ...
 * (User "u")': the caller names the object, and an add-on's user, a name of 150 bytes, must not hide what it
 * cannot do. */
static void verdict_put_message(char *out, size_t size, struct str message)
{
    static const char user[] = " is forbidden: User \"", cannot[] = "\" cannot ";
    const char *at = message.n ? memmem(message.p, message.n, user, sizeof(user) - 1) : NULL;
    const char *name = at ? at + sizeof(user) - 1 : NULL;
    const char *quote = NULL;
    char shown[USER_BYTES], whole[1024];

    if (name)
        quote = memmem(name, message.n - (size_t)(name - message.p), cannot, sizeof(cannot) - 1);
    if (!quote) {
        text_line(out, size, message);
        return;
    }
    text_line(shown, sizeof(shown), (struct str){name, (size_t)(quote - name)});
    (void)snprintf(whole, sizeof(whole), "forbidden: %.*s (User \"%s\")",
                   (int)size_min((size_t)(message.p + message.n - quote) - 2, 900), quote + 2, shown);
    text_line(out, size, str_of(whole));
}

static void verdict_read_status(const json_t *status, long http_status, struct kube_status *ret)
{
    int64_t seconds;

    text_line(ret->reason, sizeof(ret->reason), str_of(kube_str(status, "reason", NULL)));
    verdict_put_message(ret->message, sizeof(ret->message), kube_text(status, "message", NULL));
    if (kube_int(status, &seconds, "details", "retryAfterSeconds", NULL) && seconds >= 0 &&
        seconds <= 24 * 3600)
        ret->retry_after_ms = seconds * 1000;
    ret->verdict = verdict_judge(http_status, ret->reason, cstr(kube_str(status, "message", NULL)), status);
    if (!ret->message[0])
        text_http_status(ret->message, sizeof(ret->message), http_status, str_of(ret->reason));
}

void kube_status_of_answer(long http_status, struct str body, struct kube_status *ret)
{
    json_auto_t *status = NULL;

    *ret = (struct kube_status){.verdict = KUBE_OK, .retry_after_ms = -1};
    if (http_status / 100 == 2)
        return;
    body = str_trim(body);
    if (body.n && *body.p == '{' && kube_json_parse(&status, body, NULL) == 0 && json_is_object(status)) {
        verdict_read_status(status, http_status, ret);
        return;
    }
    /* 429 and unknown paths come as plain text, a proxy's errors as HTML. */
    text_http_status(ret->message, sizeof(ret->message), http_status,
                     (struct str){body.p, size_min(body.n, 256)});
    ret->verdict = verdict_judge(http_status, "", ret->message, NULL);
}

void kube_status_of_event(const json_t *status, struct kube_status *ret)
{
    int64_t code = 0;

    *ret = (struct kube_status){.retry_after_ms = -1};
    (void)kube_int(status, &code, "code", NULL);
    /* An ERROR event is an error whatever its code. */
    verdict_read_status(status, code < 300 || code > 599 ? 500 : (long)code, ret);
}

enum kube_verdict kube_verdict_of_error(enum http_error e)
{
    switch (e) {
    case HTTP_OK:
        return KUBE_OK;
    case HTTP_URL:
        return KUBE_INVALID;
    case HTTP_TOO_LARGE:
        return KUBE_TOO_LARGE;
    default:
        return KUBE_RETRY;
    }
}

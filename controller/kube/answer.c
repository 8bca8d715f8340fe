/* Reads the Status object of an error, or the text that came instead of one. Owns nothing; called by the
 * client for answers and by watches for ERROR events, on the loop. No credential is in any text. */
#include "controller/kube/answer.h"

#include "controller/kube/json.h"
#include "exporter/base/alloc.h"
#include "exporter/base/text.h"

#include <stdio.h>

enum { USER_BYTES = 64 };

/* 'configmaps "x" is forbidden: User "u" cannot get resource ...' becomes 'forbidden: cannot get resource
 * ... (User "u")': the caller names the object, and an add-on's user, a name of 150 bytes, must not hide
 * what it cannot do. */
static void answer_put_message(char *out, size_t size, const json_t *message)
{
    static const char user[] = " is forbidden: User \"", cannot[] = "\" cannot ";
    const char *name = strstr(cstr(kube_as_str(message)), user);
    const char *quote = name ? strstr(name + sizeof(user) - 1, cannot) : NULL;
    CLEANUP(cleanup_free) char *whole = NULL;
    char shown[USER_BYTES];

    if (!quote) {
        text_line(out, size, kube_as_text(message));
        return;
    }
    name += sizeof(user) - 1;
    text_line(shown, sizeof(shown), (struct str){name, (size_t)(quote - name)});
    whole = xasprintf("forbidden: %s (User \"%s\")", quote + 2, shown);
    text_line(out, size, str_of(whole));
}

static void answer_read_status(const json_t *status, long http_status, struct kube_answer *ret)
{
    int64_t seconds;

    text_line(ret->reason, sizeof(ret->reason), str_of(kube_str(status, "reason", NULL)));
    answer_put_message(ret->why, sizeof(ret->why), kube_get(status, "message", NULL));
    if (kube_int(status, &seconds, "details", "retryAfterSeconds", NULL) && seconds >= 0 &&
        seconds <= 24 * 3600)
        ret->retry_after_ms = seconds * 1000;
    ret->verdict =
        kube_verdict_of_status(http_status, ret->reason, cstr(kube_str(status, "message", NULL)), status);
    if (!ret->why[0])
        text_http_status(ret->why, sizeof(ret->why), http_status, "", str_of(ret->reason));
}

void kube_status_of_answer(long http_status, struct str body, struct kube_answer *ret)
{
    json_auto_t *status = NULL;

    ret->verdict = KUBE_OK;
    ret->retry_after_ms = -1;
    if (http_status / 100 == 2)
        return;
    body = str_trim(body);
    if (body.n && *body.p == '{' && kube_json_parse(&status, body, NULL) == 0 && json_is_object(status)) {
        answer_read_status(status, http_status, ret);
        return;
    }
    /* 429 and unknown paths come as plain text, a proxy's errors as HTML. */
    text_http_status(ret->why, sizeof(ret->why), http_status, "",
                     (struct str){body.p, size_min(body.n, 256)});
    ret->verdict = kube_verdict_of_status(http_status, "", ret->why, NULL);
}

void kube_status_of_event(const json_t *status, struct kube_answer *ret)
{
    int64_t code = 0;

    ret->retry_after_ms = -1;
    (void)kube_int(status, &code, "code", NULL);
    /* An ERROR event is an error whatever its code. */
    answer_read_status(status, code < 300 || code > 599 ? 500 : (long)code, ret);
}

/* An API server's error, as an answer with each kind of HTTP status and as a watch's event: always one
 * line for a person. */
#include "controller/kube/answer.h"
#include "controller/kube/json.h"
#include "controller/kube/verdict.h"
#include "exporter/base/hash.h"
#include "exporter/base/utf8.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct kube_answer *s)
{
    struct str message = str_of(s->why);

    assert(s->verdict > KUBE_OK && s->verdict < KUBE_VERDICTS);
    assert(message.n && utf8_valid_prefix(message) == message.n && !strpbrk(s->why, "\n\r"));
    assert(!strpbrk(s->reason, "\n\r") && s->retry_after_ms >= -1 && s->retry_after_ms <= 24 * 3600 * 1000);
}

/* With the status that the body names, as an API server does, and with one that has nothing to do with it. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const long statuses[] = {302, 400, 401, 403, 404, 409, 410, 413, 422, 429, 500, 503, 504};
    struct str body = {(const char *)data, size};
    json_t *event = NULL;
    struct kube_answer s = {0};
    int64_t code = 0;

    if (kube_json_parse(&event, body, NULL) == 0) {
        kube_status_of_event(event, &s);
        check(&s);
        (void)kube_int(event, &code, "code", NULL);
    }
    kube_status_of_answer(code < 300 || code > 599 ? 500 : (long)code, body, &s);
    check(&s);
    kube_status_of_answer(statuses[hash_lasting(body) % ARRAY_SIZE(statuses)], body, &s);
    check(&s);
    json_decref(event);
    return 0;
}

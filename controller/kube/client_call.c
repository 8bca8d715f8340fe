/* Owns the calls under way. A call keeps a reference to the credentials that it was sent with. */
#include "controller/kube/client_internal.h"

#include "controller/kube/json.h"
#include "exporter/base/buf.h"
#include "exporter/base/http.h"
#include "exporter/base/loop.h"
#include "exporter/base/secret.h"
#include "exporter/base/text.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <time.h>

enum {
    DEFAULT_TIMEOUT_MS = 15 * 1000,
    BODY_BYTES_PER_MS = 32,
    BODY_TIMEOUT_MS = 45 * 1000, /* with the default a minute, when the API server gives up as well */
    DEFAULT_ANSWER = 16 << 20,
    BODY_MAX_BYTES = 8 << 20, /* the API server accepts 3 MiB */
};

struct kube_call {
    struct kube *kube;
    LIST_ENTRY(kube_call) entry;
    kube_done_fn done;
    void *arg;
    struct kube_request rq; /* what it points to may be gone, but for the cut */
    struct kube_route route;
    struct buf body;
    struct str part; /* body, for the HTTP client */
    struct kube_config *config;
    struct http_tls tls;
    struct http_call *http;
    bool retried, finishing;
    struct timer failed; /* ends a call that could not be sent */
    struct kube_answer answer;
};

static const struct {
    const char *method, *content_type;
} methods[] = {
    [KUBE_GET] = {"GET", NULL},
    [KUBE_LIST] = {"GET", NULL},
    [KUBE_CREATE] = {"POST", "application/json"},
    [KUBE_MERGE_PATCH] = {"PATCH", "application/merge-patch+json"},
    [KUBE_UPDATE] = {"PUT", "application/json"},
    [KUBE_DELETE] = {"DELETE", "application/json"},
};

static struct kube_call *kube_call_free(struct kube_call *c)
{
    if (!c)
        return NULL;
    kube_route_done(&c->route);
    buf_done(&c->body);
    json_decref(c->answer.object);
    (void)kube_config_unref(c->config);
    free(c);
    return NULL;
}
DEFINE_CLEANUP(struct kube_call, kube_call_free)

struct kube_call *kube_cancel(struct kube_call *c)
{
    if (!c || c->finishing)
        return NULL;
    (void)http_cancel(c->http);
    loop_timer_clear(c->kube->loop, &c->failed);
    LIST_REMOVE(c, entry);
    return kube_call_free(c);
}

void kube_cancel_all(struct kube *k)
{
    while (!LIST_EMPTY(&k->calls))
        (void)kube_cancel(LIST_FIRST(&k->calls));
}

static void call_finish(struct kube_call *c)
{
    LIST_REMOVE(c, entry);
    c->finishing = true;
    /* The end of a stream says nothing: its answer began long ago. */
    if (!c->rq.on_data || c->answer.verdict != KUBE_OK)
        kube_reach_note(c->kube, &c->answer);
    c->done(c->arg, &c->answer);
    (void)kube_call_free(c);
}

static void PRINTF_LIKE(3, 4)
    call_explain(struct kube_call *c, enum kube_verdict verdict, const char *fmt, ...)
{
    char said[512], all[1024];
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(said, sizeof(said), fmt, args);
    va_end(args);
    c->answer.verdict = verdict;
    (void)snprintf(all, sizeof(all), "%s: %.400s: %s", c->kube->label, c->route.what.p, said);
    text_line(c->answer.why, sizeof(c->answer.why), str_of(all));
}

/* Whether there are newer credentials than the call's. */
static bool call_renew_credentials(struct kube_call *c)
{
    struct kube *k = c->kube;

    if (k->config->fingerprint == c->config->fingerprint)
        kube_reload(k);
    return k->config->fingerprint != c->config->fingerprint;
}

static void call_on_answer(void *arg, struct http_answer *a);

static void call_on_piece(void *arg, struct str piece)
{
    struct kube_call *c = arg;

    c->rq.on_data(c->arg, piece);
}

static void call_on_header(void *arg, struct str name, struct str value)
{
    struct kube_call *c = arg;
    char text[64];
    time_t at;

    if (str_eq_nocase(name, STR("Date"))) {
        text_line(text, sizeof(text), value);
        at = curl_getdate(text, NULL);
        c->answer.date.ms = at > 0 ? (int64_t)at * 1000 : 0;
    }
}

/* Sends the call with the current credentials. */
static int call_send(struct kube_call *c)
{
    static const char *const metadata_only[] = {
        "Accept: application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"};
    struct kube_config *conf = kube_config_ref(c->kube->config);
    CLEANUP(cleanup_free) char *url = NULL;
    struct http_request rq;

    (void)kube_config_unref(c->config);
    c->config = conf;
    if (asprintf(&url, "%s%s", conf->server, c->route.path.p) < 0) {
        url = NULL;
        return -ENOMEM;
    }
    c->tls = (struct http_tls){.ca = buf_str(&conf->ca),
                               .cert = buf_str(&conf->cert),
                               .key = buf_str(&conf->key),
                               .server_name = conf->tls_server_name,
                               .insecure = conf->insecure};
    rq = (struct http_request){
        .url = url,
        .method = methods[c->rq.method].method,
        .content_type = c->part.n ? methods[c->rq.method].content_type : NULL,
        .bearer = buf_str(&conf->token),
        .body = &c->part,
        .body_parts = c->part.n > 0,
        .max_answer = c->rq.max_answer,
        .timeout_ms = c->rq.timeout_ms + (int64_t)size_min(c->part.n / BODY_BYTES_PER_MS, BODY_TIMEOUT_MS),
        .headers = metadata_only,
        .n_headers = c->rq.metadata_only,
        .user = conf->user,
        .password = conf->password,
        .tls = &c->tls,
        .proxy = conf->proxy,
        .no_redirects = true,
        .accept_gzip = !c->rq.on_data,
        .on_data = c->rq.on_data ? call_on_piece : NULL,
        .on_header = call_on_header,
        .idle_timeout_ms = c->rq.idle_timeout_ms,
    };
    return http_start(&c->http, c->kube->http, &rq, call_on_answer, c);
}

/* Sends the call once more if the credentials are new; false if it ends with the answer that it has. */
static bool call_send_again(struct kube_call *c)
{
    if (c->retried || !call_renew_credentials(c))
        return false;
    c->retried = true;
    return call_send(c) == 0;
}

static void call_take_object(struct kube_call *c, struct http_answer *a)
{
    char why[256] = "out of memory";

    if (c->rq.on_data || c->rq.path)
        return;
    if (kube_json_parse_cut(&c->answer.object, buf_str(&a->body), c->rq.cut, why) < 0)
        call_explain(c, KUBE_RETRY, "HTTP %ld with a body that is %s", a->status, why);
}

static void call_take_answer(struct kube_call *c, struct http_answer *a)
{
    struct kube_status s;

    c->answer.http_status = a->status;
    c->answer.seconds = a->seconds;
    c->answer.retry_after_ms = a->retry_after_ms;
    if (a->error != HTTP_OK) {
        call_explain(c, kube_verdict_of_error(a->error), "%s", a->reason);
        return;
    }
    kube_status_of_answer(a->status, buf_str(&a->body), &s);
    if (s.verdict == KUBE_OK) {
        call_take_object(c, a);
        return;
    }
    (void)memcpy(c->answer.reason, s.reason, sizeof(s.reason));
    if (a->retry_after_ms < 0)
        c->answer.retry_after_ms = s.retry_after_ms;
    call_explain(c, s.verdict, "%s%s", s.message,
                 s.verdict == KUBE_NO_KIND
                     ? " (is its CustomResourceDefinition installed, and this version served?)"
                     : "");
}

static void call_on_answer(void *arg, struct http_answer *a)
{
    struct kube_call *c = arg;
    bool refused = a->error == HTTP_TLS || (a->error == HTTP_OK && a->status == 401);

    c->http = NULL;
    if (refused && call_send_again(c))
        return;
    call_take_answer(c, a);
    /* Wiped before its memory is given back. */
    if (c->rq.resource == &kube_secrets || c->rq.resource == &kube_tokenreviews)
        secret_done(&a->body);
    call_finish(c);
}

static void call_on_failed(struct timer *t)
{
    call_finish(CONTAINER_OF(t, struct kube_call, failed));
}

/* Ends the call with an error in the loop's next turn. */
static int call_fail(struct kube_call *c, enum kube_verdict verdict, const char *why)
{
    call_explain(c, verdict, "%s", why);
    c->failed.fn = call_on_failed;
    return loop_timer_set(c->kube->loop, &c->failed, loop_now(c->kube->loop));
}

static int kube_call_new(struct kube_call **ret, struct kube *k, const struct kube_request *rq)
{
    CLEANUP(cleanup_kube_call_free) struct kube_call *c = calloc(1, sizeof(*c));
    int r = c ? kube_route_make(&c->route, rq) : -ENOMEM;

    if (r < 0)
        return r == -EFBIG ? -EINVAL : r;
    c->kube = k;
    c->rq = *rq;
    c->rq.max_answer = rq->max_answer ? rq->max_answer : DEFAULT_ANSWER;
    c->rq.timeout_ms = rq->timeout_ms > 0 ? rq->timeout_ms : DEFAULT_TIMEOUT_MS;
    c->answer.retry_after_ms = -1;
    buf_init(&c->body, BODY_MAX_BYTES);
    *ret = TAKE_PTR(c);
    return 0;
}

static int call_begin(struct kube_call *c, const struct kube_request *rq)
{
    int r = rq->body && !rq->body_text.n ? kube_json_print(rq->body, &c->body) : 0;

    if (r == -EFBIG)
        return call_fail(c, KUBE_TOO_LARGE, "the object exceeds 8 MiB");
    if (r < 0)
        return r;
    c->part = rq->body_text.n ? rq->body_text : buf_str(&c->body);
    kube_freshen(c->kube);
    if (!c->kube->config)
        return call_fail(c, KUBE_UNAUTHORIZED, c->kube->trouble);
    r = call_send(c);
    if (r < 0 && r != -ENOMEM)
        return call_fail(c, KUBE_INVALID, "the kubeconfig's values do not make a request");
    return r;
}

int kube_start(struct kube_call **ret, struct kube *k, const struct kube_request *rq, kube_done_fn done,
               void *arg)
{
    CLEANUP(cleanup_kube_call_free) struct kube_call *c = NULL;
    int r = kube_call_new(&c, k, rq);

    if (r < 0)
        return r;
    c->done = done;
    c->arg = arg;
    r = call_begin(c, rq);
    if (r < 0)
        return r;
    LIST_INSERT_HEAD(&k->calls, c, entry);
    *ret = TAKE_PTR(c);
    return 0;
}

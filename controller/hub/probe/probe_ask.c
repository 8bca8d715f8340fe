/* One GET request of a probe, and what its answer says. */
#include "controller/hub/probe/probe_internal.h"

#include "controller/kube/json.h"
#include "exporter/base/buf.h"
#include "exporter/base/text.h"

#include <errno.h>
#include <stdio.h>

enum { MAX_SECRET_BYTES = 3 << 20 };

static const char *const ask_reasons[HTTP_ERRORS] = {
    [HTTP_URL] = "InvalidURL",      [HTTP_DNS] = "DNS",
    [HTTP_CONNECT] = "Unreachable", [HTTP_TLS] = "TLS",
    [HTTP_TIMEOUT] = "Timeout",     [HTTP_TOO_LARGE] = "TooLarge",
    [HTTP_BROKEN] = "Broken",       [HTTP_REDIRECT] = "Redirected",
    [HTTP_MEMORY] = "OutOfMemory",
};

void probe_result_describe(struct probe_result *r, const char *url, const char *text)
{
    char shown[256], all[1024];
    BUF_AUTO(people, 16 << 10);

    if (http_url_for_people((struct str){url, strcspn(url, "?#")}, &people) < 0)
        buf_done(&people);
    text_line(shown, sizeof(shown), people.n ? buf_str(&people) : STR("the API"));
    (void)snprintf(all, sizeof(all), "%s: %s", shown, text);
    text_line(r->message, sizeof(r->message), str_of(all));
}

void probe_result_fail(struct probe_result *r, const char *reason, const char *message)
{
    *r = (struct probe_result){.reason = reason};
    text_line(r->message, sizeof(r->message), str_of(message));
}

/* The members in which frameworks describe an error. */
static const char *ask_error_of(const json_t *body)
{
    return kube_str(body, "detail", NULL) ?: kube_str(body, "error", NULL) ?: kube_str(body, "message", NULL);
}

/* "HTTP 500 Internal Server Error: model not loaded" */
static void ask_status_text(char *out, size_t size, const struct http_answer *a)
{
    json_auto_t *body = NULL;
    const char *error = NULL;

    if (a->status / 100 != 2 && kube_json_parse(&body, buf_str(&a->body), NULL) == 0)
        error = ask_error_of(body);
    text_http_status(out, size, a->status,
                     a->status / 100 == 2 ? STR("")
                     : error              ? str_of(error)
                                          : buf_str(&a->body));
}

static void ask_on_answer(void *arg, struct http_answer *a)
{
    struct probe_ask *ask = arg;
    struct probe_result r = {.seconds = a->seconds};
    char text[512];

    ask->http_call = NULL;
    ask->credentials = credentials_unref(ask->credentials);
    if (a->error != HTTP_OK) {
        r.reason = a->refused ? "Forbidden" : ask_reasons[a->error];
        probe_result_describe(&r, ask->url, a->reason);
    } else {
        r.ok = a->status / 100 == 2;
        r.reason = r.ok ? "Healthy" : "HTTPStatus";
        ask_status_text(text, sizeof(text), a);
        probe_result_describe(&r, ask->url, text);
    }
    ask->ended(ask, &r, a);
}

static bool ask_send(struct probe_ask *a, struct probe_result *ret_error)
{
    const struct probe_settings *s = a->env->settings;
    struct http_request rq = {.url = a->url,
                              .max_answer = a->max_answer,
                              .cut_answer = a->cut_answer,
                              .timeout_ms = s->timeout_ms,
                              .public_only = s->public_only};
    int r;

    if (a->tls_only)
        credentials_apply_tls(a->credentials, &rq);
    else
        credentials_apply(a->credentials, &rq);
    r = http_start(&a->http_call, a->env->http, &rq, ask_on_answer, a);
    if (r < 0)
        a->credentials = credentials_unref(a->credentials);
    if (r == -ENOMEM)
        probe_result_fail(ret_error, "OutOfMemory", "out of memory");
    else if (r < 0)
        probe_result_fail(ret_error, "InvalidURL", "the URL cannot be used");
    return r == 0;
}

static void ask_on_secret(void *arg, struct kube_answer *answer)
{
    struct probe_ask *a = arg;
    struct probe_result error = {0};
    bool ok;

    a->secret_call = NULL;
    ok = probe_token_read(&a->credentials, a->env, answer, &a->token, &error);
    if (!ok && a->tls_only && !error.unasked)
        ok = true;
    if (!ok || !ask_send(a, &error))
        a->ended(a, &error, NULL);
}

static bool ask_secret(struct probe_ask *a, struct probe_result *ret_error)
{
    const struct kube_request rq = {.method = KUBE_GET,
                                    .resource = &kube_secrets,
                                    .namespace = a->env->namespace,
                                    .name = a->token.name,
                                    .max_answer = MAX_SECRET_BYTES,
                                    .timeout_ms = a->env->settings->timeout_ms};
    int r = kube_start(&a->secret_call, a->env->hub, &rq, ask_on_secret, a);

    if (r == -EINVAL)
        probe_token_fail(ret_error, &a->token, "not a valid name of a Secret");
    else if (r < 0)
        probe_result_fail(ret_error, "OutOfMemory", "out of memory");
    return r == 0;
}

bool probe_ask_start(struct probe_ask *a, struct probe_result *ret_error)
{
    return a->token.name ? ask_secret(a, ret_error) : ask_send(a, ret_error);
}

bool probe_ask_in_flight(const struct probe_ask *a)
{
    return a->secret_call || a->http_call;
}

void probe_ask_cancel(struct probe_ask *a)
{
    a->http_call = http_cancel(a->http_call);
    a->secret_call = kube_cancel(a->secret_call);
    a->credentials = credentials_unref(a->credentials);
}

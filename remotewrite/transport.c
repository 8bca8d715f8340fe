/* Requests over HTTP: headers of each format, credentials, and the response. Owns the request in flight,
 * and the secrets that it needs. Endpoint's thread. It never retries by itself: the verdict is the sender's
 * to act on. */
#include "remotewrite/transport.h"

#include "exporter/base/file.h"
#include "exporter/http/cause.h"
#include "exporter/http/http.h"
#include "exporter/http/rule.h"
#include "remotewrite/config.h"

#include "exporter/base/buf.h"
#include "exporter/base/secret.h"
#include "exporter/base/text.h"

#include <errno.h>
#include <stdio.h>

enum { TRANSPORT_MAX_ANSWER = 8192 };

static const struct http_rule write_rules[] = {
    {200, 299, HTTP_OK, VERDICT_SENT},
    /* A redirect is a mistake in the configured URL: keep the samples until it is fixed. */
    {300, 399, HTTP_OK, VERDICT_RETRY},
    {400, 400, HTTP_OK, VERDICT_BISECT},
    {401, 401, HTTP_AUTH, VERDICT_RETRY}, /* with another token of OAuth 2.0 */
    {413, 413, HTTP_OK, VERDICT_SHRINK},
    {415, 415, HTTP_OK, VERDICT_STEP_DOWN},
    {422, 422, HTTP_OK, VERDICT_BISECT},
    {429, 429, HTTP_OK, VERDICT_RETRY},
    {500, 599, HTTP_OK, VERDICT_RETRY},
    {0, 0, HTTP_ANY, VERDICT_RETRY},
    {0, HTTP_STATUS_MAX, HTTP_ANY, VERDICT_DROP},
};

/* Besides the table, the Written headers say what became of a request in 2.0. */
enum rw_verdict transport_verdict(const struct transport_answer *a, enum rw_form form)
{
    enum rw_verdict v = (enum rw_verdict)HTTP_VERDICT(write_rules, a->status, a->error);

    /* A 1.0 receiver decodes a 2.0 request as empty and answers 2xx. */
    if (form == RW_FORM_V2 && v == VERDICT_SENT && !a->written)
        return VERDICT_STEP_DOWN;
    /* The Written headers prove that the receiver speaks 2.0 and has read the request. */
    if (form == RW_FORM_V2 && v != VERDICT_SENT && v != VERDICT_RETRY && a->written)
        return VERDICT_PARTIAL;
    return v == VERDICT_STEP_DOWN && form == RW_FORM_V1 ? VERDICT_DROP : v;
}

enum { SECRET_MAX = 64 << 10, AUTHORIZATION_MAX = 144 << 10, OWN_HEADERS = 3 };

static const struct {
    const char *content_type, *headers[2];
} forms[RW_FORMS] = {
    [RW_FORM_V1] = {"application/x-protobuf",
                    {"Content-Encoding: snappy", "X-Prometheus-Remote-Write-Version: 0.1.0"}},
    [RW_FORM_VM] = {"application/x-protobuf",
                    {"Content-Encoding: zstd", "X-VictoriaMetrics-Remote-Write-Version: 1"}},
    [RW_FORM_V2] = {"application/x-protobuf;proto=io.prometheus.write.v2.Request",
                    {"Content-Encoding: snappy", "X-Prometheus-Remote-Write-Version: 2.0.0"}},
};

/* Appends a secret from the configuration, or from its file, which is read for each request: it may be
 * rotated. */
static int put_secret(const char *value, const char *file, struct buf *into, char why[256])
{
    size_t mark = into->n;
    struct str secret;
    int r;

    if (!file) {
        buf_puts(into, cstr(value));
        buf_putc(into, '\0');
        return buf_failed(into);
    }
    r = file_read(file, into);
    if (r < 0) {
        (void)snprintf(why, 256, "credentials file %.150s: %s", file, strerror(-r));
        return r;
    }
    secret = str_trim((struct str){into->p + mark, into->n - mark});
    for (size_t i = 0; i < secret.n; i++)
        if ((unsigned char)secret.p[i] < 0x20 || secret.p[i] == 0x7f) {
            (void)snprintf(why, 256, "credentials file %.150s contains control characters", file);
            return -EINVAL;
        }
    memmove(into->p + mark, secret.p, secret.n);
    buf_truncate(into, mark + secret.n);
    buf_putc(into, '\0');
    return buf_failed(into);
}

static int read_secrets(const struct rw_endpoint_config *c, struct buf *authorization, struct buf *password,
                        struct buf *client_secret, char why[256])
{
    int r = 0;

    if (c->credentials || c->credentials_file) {
        buf_printf(authorization, "Authorization: %s ", c->auth_type);
        r = put_secret(c->credentials, c->credentials_file, authorization, why);
    }
    if (r == 0 && c->user)
        r = put_secret(c->password, c->password_file, password, why);
    if (r == 0 && c->oauth2.token_url)
        r = put_secret(c->client_secret, c->client_secret_file, client_secret, why);
    return r;
}

void transport_note_header(void *answer, struct str name, struct str value)
{
    struct transport_answer *a = answer;
    static const char *const written[] = {"X-Prometheus-Remote-Write-Samples-Written",
                                          "X-Prometheus-Remote-Write-Histograms-Written",
                                          "X-Prometheus-Remote-Write-Exemplars-Written"};

    for (size_t i = 0; i < ARRAY_SIZE(written); i++)
        if (str_eq_nocase(name, str_of(written[i]))) {
            a->written = true;
            if (i == 0 && !str_to_u64(value, &a->samples_written))
                a->samples_written = 0;
        }
    /* VictoriaMetrics sends it with every response; nothing else is known to. */
    a->victoria = a->victoria || str_eq_nocase(name, STR("X-Server-Hostname"));
    if (str_eq_nocase(name, STR("Content-Encoding")))
        a->encoded = value.n && !str_eq_nocase(value, STR("identity"));
}

void transport_note_body(struct transport_answer *a, struct str body)
{
    int n;

    if (a->status >= 200 && a->status <= 299)
        return;
    body = a->encoded ? STR("(encoded body)") : str_trim(body);
    n = snprintf(a->text, sizeof(a->text), "status %ld%s%s", a->status,
                 a->status >= 300 && a->status <= 399 ? ", a redirect, which is not followed" : "",
                 body.n ? ": " : "");
    text_line(a->text + n, sizeof(a->text) - (size_t)n, body);
}

static void transport_on_answer(void *arg, struct http_response *a)
{
    struct transport_answer *answer = arg;
    struct transport *t = CONTAINER_OF(answer, struct transport, answer);
    struct rw_endpoint_config *used = TAKE_PTR(t->in_use);

    answer->error = a->error;
    answer->status = a->status;
    answer->retry_after_ms = a->retry_after_ms;
    answer->seconds = a->seconds;
    if (a->error != HTTP_OK)
        (void)snprintf(answer->text, sizeof(answer->text), "%s", a->reason);
    else
        transport_note_body(answer, buf_str(&a->body));
    /* Send again, with another token. */
    if (used->oauth2.token_url && a->status == 401)
        answer->error = HTTP_AUTH;
    t->call = NULL;
    secret_done(&t->client_secret);
    t->done(t->arg, answer);
    (void)rw_endpoint_config_unref(used);
}

/* libcurl copies the secrets, except that of OAuth 2.0. */
static int transport_start(struct transport *t, enum rw_form form, struct str body, transport_done_fn done,
                           void *arg, char why[256])
{
    struct rw_endpoint_config *c = t->config;
    SECRET_AUTO(authorization, AUTHORIZATION_MAX);
    SECRET_AUTO(password, SECRET_MAX);
    const char *headers[RW_MAX_HEADERS + OWN_HEADERS] = {forms[form].headers[0], forms[form].headers[1]};
    struct http_request rq = {
        .url = c->url,
        .content_type = forms[form].content_type,
        .body = &body,
        .body_parts = 1,
        .max_answer = TRANSPORT_MAX_ANSWER,
        .timeout_ms = c->timeout_ms,
        .headers = headers,
        .n_headers = ARRAY_SIZE(forms[form].headers),
        .user = c->user,
        .tls = &c->tls,
        .oauth2 = c->oauth2.token_url ? &t->oauth2 : NULL,
        .proxy = c->proxy_url,
        .no_redirects = true,
        .status_decides = true,
        .on_header = transport_note_header,
    };
    int r = read_secrets(c, &authorization, &password, &t->client_secret, why);

    for (size_t i = 0; i < c->n_headers; i++)
        headers[rq.n_headers++] = c->headers[i];
    if (authorization.n)
        headers[rq.n_headers++] = authorization.p;
    rq.password = password.p;
    t->oauth2 = c->oauth2;
    t->oauth2.client_secret = str_of(t->client_secret.p);
    t->done = done;
    t->arg = arg;
    t->answer = (struct transport_answer){0};
    r = r ?: http_start(&t->call, t->http, &rq, transport_on_answer, &t->answer);
    if (r == 0)
        t->in_use = rw_endpoint_config_ref(c);
    else
        secret_done(&t->client_secret);
    if (r < 0 && !*why)
        (void)snprintf(why, 256, "cannot start the request: %s", strerror(-r));
    return r;
}

static void transport_cancel(struct transport *t)
{
    t->call = http_cancel(t->call);
    t->in_use = rw_endpoint_config_unref(t->in_use);
    secret_done(&t->client_secret);
}

void transport_init(struct transport *t, struct http *http, struct rw_endpoint_config *c)
{
    *t = (struct transport){.http = http,
                            .config = c,
                            .client_secret.max = SECRET_MAX,
                            .start = transport_start,
                            .cancel = transport_cancel};
}

/* Owns the credentials in use and the calls under way. A call keeps a reference to the credentials that it
 * was sent with. On the loop, called by all that talks to an API server. `done` is never called from inside
 * kube_start(), nor after kube_cancel(). */
#include "controller/kube/client.h"

#include "controller/kube/config.h"
#include "controller/kube/json.h"
#include "controller/kube/page.h"
#include "controller/kube/reach.h"
#include "controller/kube/resource.h"
#include "controller/kube/server_clock.h"
#include "controller/kube/verdict.h"
#include "exporter/base/buf.h"
#include "exporter/base/invariant.h"
#include "exporter/http/cause.h"

#include "exporter/base/alloc.h"
#include "exporter/base/log.h"
#include "exporter/base/secret.h"
#include "exporter/base/text.h"
#include "exporter/http/http.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>

struct kube {
    struct loop *loop;
    struct http *http;
    char *label, *kubeconfig;
    struct kube_config *config; /* NULL until it could be read */
    mono_ms read_at;
    char credentials_error[512]; /* why it could not be read the last time; empty if it could */
    LIST_HEAD(, kube_call) calls;
    struct kube_reach *reach;
    struct server_clock clock;
};

const char *kube_label_of(const struct kube *k)
{
    return k->label;
}

struct loop *kube_loop(const struct kube *k)
{
    return k->loop;
}

mono_ms kube_now(const struct kube *k)
{
    return loop_now(k->loop);
}

void kube_timer_move(struct loop *l, struct timer *t, int64_t in_ms)
{
    loop_timer_set(l, t, mono_add(loop_now(l), in_ms));
}

struct kube_reach *kube_reach_of(const struct kube *k)
{
    return k->reach;
}

const struct server_clock *kube_server_clock_of(const struct kube *k)
{
    return &k->clock;
}

/* ---- The credentials in use ---- */

enum { REREAD_MS = 60 * 1000 };

static void credentials_reload(struct kube *k)
{
    const struct kube_config *old = k->config;
    struct kube_config *c = kube_config_read(k->kubeconfig, NULL, k->credentials_error);

    k->read_at = loop_now(k->loop);
    if (!c) {
        log_debug("cannot read the API server's credentials", L_STR("kube", k->label),
                  L_STR("err", k->credentials_error));
        return;
    }
    if (c->insecure && (!old || !old->insecure))
        log_warn("the API server's certificate is not verified: insecure-skip-tls-verify is set",
                 L_STR("server", c->server), L_STR("kube", k->label));
    if (old && old->fingerprint != c->fingerprint)
        log_debug("new credentials for the API server", L_STR("kube", k->label));
    (void)kube_config_unref(k->config);
    k->config = c;
}

const char *kube_credentials_error(const struct kube *k)
{
    return k->credentials_error[0] ? k->credentials_error : NULL;
}

const char *kube_default_namespace(const struct kube *k)
{
    return k->config ? k->config->namespace : NULL;
}

/* ---- Calls ---- */

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
    struct kube_request rq; /* what it points to may be gone, but for the cut and the body_text */
    char *path, *what;
    struct buf body; /* rq.body, which rq.body_text is then */
    struct kube_config *config;
    struct http_tls tls;
    struct http_call *http;
    unix_ms sent_at; /* by our own clock */
    bool retried, finishing;
    struct timer failed; /* ends a call that could not be sent */
    struct kube_answer answer;
    /* The answer's body, while it becomes a tree in shares of turns */
    struct buf text;
    char content_type[128];
    struct kube_page page;
    struct share_wait wait;
    struct http_share share; /* counts `text` */
    bool is_telling;         /* while on_head or on_item runs, which may cancel the call */
    bool is_cancelled;       /* by one of these: goes when it has returned */
};

/* Secrets and tokens are wiped before their memory is given back. */
static void call_drop_text(struct kube_call *c)
{
    if (c->rq.resource == &kube_secrets || c->rq.resource == &kube_tokenreviews)
        secret_done(&c->text);
    else
        buf_done(&c->text);
}

static void call_delete(struct kube_call *c)
{
    free(c->path);
    free(c->what);
    buf_done(&c->body);
    kube_page_done(&c->page);
    call_drop_text(c);
    http_share_done(&c->share);
    json_decref(c->answer.object);
    (void)kube_config_unref(c->config);
    free(c);
}

struct kube_call *kube_cancel(struct kube_call *c)
{
    if (!c || c->finishing)
        return NULL;
    (void)http_cancel(c->http);
    loop_timer_clear(c->kube->loop, &c->failed);
    loop_share_leave(c->kube->loop, &c->wait);
    LIST_REMOVE(c, entry);
    if (c->is_telling)
        c->is_cancelled = true;
    else
        call_delete(c);
    return NULL;
}

static void call_finish(struct kube_call *c)
{
    invariant(!c->http && !c->finishing);
    invariant(!c->is_telling); /* on_head and on_item have returned */
    LIST_REMOVE(c, entry);
    c->finishing = true;
    /* The end of a stream says nothing: its answer began long ago. */
    if (!c->rq.on_data || c->answer.verdict != KUBE_OK)
        kube_reach_note(c->kube->reach, &c->answer);
    c->done(c->arg, &c->answer);
    call_delete(c);
}

static void call_explain(struct kube_call *c, enum kube_verdict verdict, const char *error)
{
    CLEANUP(cleanup_free) char *all = xasprintf("%s: %.400s: %s", c->kube->label, c->what, error);

    c->answer.verdict = verdict;
    text_line(c->answer.why, sizeof(c->answer.why), str_of(all));
}

static void call_on_answer(void *arg, struct http_response *a);

static size_t call_on_piece(void *arg, struct str piece)
{
    struct kube_call *c = arg;

    return c->rq.on_data(c->arg, piece);
}

static void call_on_header(void *arg, struct str name, struct str value)
{
    struct kube_call *c = arg;

    if (str_eq_nocase(name, STR("Date")))
        server_clock_note(&c->kube->clock, value, c->sent_at, loop_wall(c->kube->loop), c->kube->label);
}

/* Sends the call with the current credentials. False if they do not make a request. */
static bool call_send(struct kube_call *c)
{
    static const char *const of_object[] = {
        "Accept: application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"};
    static const char *const of_list[] = {
        "Accept: application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"};
    struct kube_config *conf = c->kube->config;
    CLEANUP(cleanup_free) char *url = xasprintf("%s%s", conf->server, c->path);
    size_t body_n = c->rq.body_text[0].n + c->rq.body_text[1].n;
    struct http_request rq;

    conf->refs++;
    (void)kube_config_unref(c->config);
    c->config = conf;
    c->tls = (struct http_tls){.ca = buf_str(&conf->ca),
                               .cert = buf_str(&conf->cert),
                               .key = buf_str(&conf->key),
                               .server_name = conf->tls_server_name,
                               .insecure = conf->insecure};
    rq = (struct http_request){
        .url = url,
        .method = kube_method_name(c->rq.method),
        .content_type = c->rq.body_text[0].n ? kube_method_content_type(c->rq.method) : NULL,
        .bearer = buf_str(&conf->token),
        .body = c->rq.body_text,
        .body_parts = c->rq.body_text[0].n ? ARRAY_SIZE(c->rq.body_text) : 0,
        .max_answer = c->rq.max_answer ? c->rq.max_answer : DEFAULT_ANSWER,
        .timeout_ms = (c->rq.timeout_ms > 0 ? c->rq.timeout_ms : DEFAULT_TIMEOUT_MS) +
                      (int64_t)size_min(body_n / BODY_BYTES_PER_MS, BODY_TIMEOUT_MS),
        .headers = c->rq.method == KUBE_LIST ? of_list : of_object,
        .n_headers = c->rq.metadata_only,
        .tls = &c->tls,
        .proxy = conf->proxy,
        .no_redirects = true,
        .accept_gzip = !c->rq.on_data,
        .on_header = call_on_header,
        .on_data = c->rq.on_data ? call_on_piece : NULL,
        .idle_timeout_ms = c->rq.idle_timeout_ms,
        .share = &c->share,
    };
    c->sent_at = loop_wall(c->kube->loop);
    return http_start(&c->http, c->kube->http, &rq, call_on_answer, c) == 0;
}

/* Sends the call once more if the credentials are new; false if it ends with the answer that it has. */
static bool call_send_again(struct kube_call *c)
{
    struct kube *k = c->kube;

    if (!c->retried && k->config->fingerprint == c->config->fingerprint)
        credentials_reload(k);
    if (c->retried || k->config->fingerprint == c->config->fingerprint)
        return false;
    c->retried = true;
    return call_send(c);
}

/* ---- The answer's body becomes a tree, in shares of turns ---- */

/* Always KUBE_RETRY, also where an object of the body exceeds KUBE_TREE_MAX_BYTES: a write has been done
 * all the same, which KUBE_TOO_LARGE would deny, and smaller pages, which a watch asks for after that,
 * would have the same object. */
static void call_read_failed(struct kube_call *c)
{
    char why[256], text[640];

    json_decref(TAKE_PTR(c->answer.object));
    kube_page_explain(&c->page, why);
    (void)snprintf(text, sizeof(text), "HTTP %ld with a body that is %s", c->answer.http_status, why);
    /* The page of a proxy or of a login. What begins as an object may be a Secret that was cut short. */
    if (!str_starts(buf_str(&c->text), STR("{")))
        text_show_body(text, sizeof(text), c->content_type, buf_str(&c->text));
    call_explain(c, KUBE_RETRY, text);
}

static void call_take_head(struct kube_call *c, json_t *head)
{
    c->answer.object = head;
    if (c->rq.on_head)
        c->rq.on_head(c->arg, head);
}

/* False if the call has ended: with an error, or cancelled by who got the head or an item. */
static bool call_take_event(struct kube_call *c, enum kube_page_event event, json_t *value)
{
    switch (event) {
    case KUBE_PAGE_GOT_NONE:
        return true;
    case KUBE_PAGE_GOT_HEAD:
        c->is_telling = true;
        call_take_head(c, value);
        break;
    case KUBE_PAGE_GOT_ITEM:
        c->is_telling = true;
        c->rq.on_item(c->arg, value);
        json_decref(value);
        break;
    case KUBE_PAGE_GOT_ERROR:
        call_read_failed(c);
        call_finish(c);
        return false;
    case KUBE_PAGE_GOT_END:
        call_finish(c);
        return false;
    }
    c->is_telling = false;
    if (c->is_cancelled) {
        call_delete(c);
        return false;
    }
    return true;
}

static void call_read(struct kube_call *c)
{
    struct loop *l = c->kube->loop;
    enum kube_page_event event;
    json_t *value = NULL;
    size_t left, cost;

    while ((left = loop_bytes_left(l)) > 0) {
        event = kube_page_step(&c->page, left, &cost, &value);
        loop_spend(l, cost);
        if (!call_take_event(c, event, value))
            return;
    }
    loop_share_wait(l, &c->wait);
}

static void call_on_share(struct share_wait *w)
{
    call_read(CONTAINER_OF(w, struct kube_call, wait));
}

static void call_read_object(struct kube_call *c, struct http_response *a)
{
    c->text = buf_take(&a->body);
    (void)snprintf(c->content_type, sizeof(c->content_type), "%s", a->content_type);
    c->wait.fn = call_on_share;
    if (c->rq.on_item)
        kube_page_begin_list(&c->page, buf_str(&c->text), c->rq.cut);
    else
        kube_page_begin_object(&c->page, buf_str(&c->text), c->rq.cut);
    call_read(c);
}

static void call_take_status(struct kube_call *c, const struct http_response *a)
{
    struct kube_answer *ret = &c->answer;
    CLEANUP(cleanup_free) char *why = NULL;

    kube_status_of_answer(a->status, buf_str(&a->body), ret);
    if (a->retry_after_ms >= 0)
        ret->retry_after_ms = a->retry_after_ms;
    if (ret->verdict == KUBE_NO_KIND)
        why = xasprintf("%.512s (is its CustomResourceDefinition installed, and this version served?)",
                        ret->why);
    else
        why = xstrdup(ret->why);
    call_explain(c, ret->verdict, why);
}

static void call_on_answer(void *arg, struct http_response *a)
{
    struct kube_call *c = arg;
    bool refused = a->error == HTTP_TLS || (a->error == HTTP_OK && a->status == 401);

    c->http = NULL;
    if (refused && call_send_again(c))
        return;
    c->answer.http_status = a->status;
    c->answer.bytes = a->body.n;
    c->answer.seconds = a->seconds;
    c->answer.retry_after_ms = a->retry_after_ms;
    if (a->error != HTTP_OK)
        call_explain(c, kube_verdict_of_failure(a->error), a->reason);
    else if (a->status / 100 != 2)
        call_take_status(c, a);
    else if (!c->rq.on_data && !c->rq.path) {
        call_read_object(c, a);
        return;
    }
    c->text = buf_take(&a->body);
    call_drop_text(c);
    call_finish(c);
}

static void call_on_failed(struct timer *t)
{
    call_finish(CONTAINER_OF(t, struct kube_call, failed));
}

/* Ends the call with an error in the loop's next turn. */
static void kube_call_fail(struct kube_call *c, enum kube_verdict verdict, const char *why)
{
    call_explain(c, verdict, why);
    c->failed.fn = call_on_failed;
    loop_timer_set(c->kube->loop, &c->failed, loop_now(c->kube->loop));
}

struct kube_call *kube_start(struct kube *k, const struct kube_request *rq, kube_done_fn done, void *arg)
{
    struct kube_call *c = xcalloc(1, sizeof(*c));

    c->kube = k;
    c->rq = *rq;
    c->done = done;
    c->arg = arg;
    c->answer.retry_after_ms = -1;
    c->path = kube_request_path(rq);
    c->what = kube_request_describe(rq);
    buf_init(&c->body, BODY_MAX_BYTES);
    if (rq->body) {
        kube_json_print(rq->body, &c->body);
        c->rq.body_text[0] = buf_str(&c->body);
    }
    if (k->credentials_error[0] || mono_diff(k->read_at, loop_now(k->loop)) >= REREAD_MS)
        credentials_reload(k);
    if (!c->path)
        kube_call_fail(c, KUBE_INVALID, "not a valid namespace or name");
    else if (buf_failed(&c->body) < 0)
        kube_call_fail(c, KUBE_TOO_LARGE, "the object exceeds 8 MiB");
    else if (!k->config)
        kube_call_fail(c, KUBE_UNAUTHORIZED, k->credentials_error);
    else if (!call_send(c))
        kube_call_fail(c, KUBE_INVALID, "the kubeconfig's values do not make a request");
    LIST_INSERT_HEAD(&k->calls, c, entry);
    return c;
}

/* ---- The client ---- */

struct kube *kube_new(struct loop *loop, struct http *http, const char *label, const char *kubeconfig)
{
    struct kube *k = xcalloc(1, sizeof(*k));

    k->loop = loop;
    k->http = http;
    k->label = xstrdup(label);
    k->kubeconfig = kubeconfig ? xstrdup(kubeconfig) : NULL;
    k->reach = kube_reach_new(k);
    credentials_reload(k);
    return k;
}

struct kube *kube_free(struct kube *k)
{
    if (!k)
        return NULL;
    while (!LIST_EMPTY(&k->calls))
        (void)kube_cancel(LIST_FIRST(&k->calls));
    k->reach = kube_reach_free(k->reach);
    (void)kube_config_unref(k->config);
    free(k->label);
    free(k->kubeconfig);
    free(k);
    return NULL;
}

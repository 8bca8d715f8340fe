/* Owns the credentials in use and the calls under way. A call keeps a reference to the credentials that it was made with. */
#include "controller/kube/client_internal.h"

#include "exporter/base/log.h"
#include "exporter/base/secret.h"
#include "exporter/base/text.h"

#include <errno.h>
#include <stdio.h>

enum {
    REREAD_MS = 60 * 1000,
    DEFAULT_TIMEOUT_MS = 15 * 1000,
    DEFAULT_ANSWER = 16 << 20,
    BODY_MAX_BYTES = 8 << 20, /* the API server takes 3 MiB */
};

struct kube {
    struct loop *loop;
    struct http *http;
    char *label, *kubeconfig, *context, *in_cluster_dir;
    struct kube_config *config; /* NULL until it could be read */
    mono_ms read_at;
    bool stale; /* to be read again before the next call */
    char trouble[512];
    struct kube_call *calls;
};

struct kube_call {
    struct kube *kube;
    struct kube_call *prev, *next;
    kube_done_fn done;
    void *arg;
    void (*on_data)(void *arg, struct str piece);
    enum kube_method method;
    size_t max_answer;
    int64_t timeout_ms, idle_timeout_ms;
    struct kube_route route;
    struct buf path, body;
    struct str part; /* body, for the HTTP client */
    const struct kube_cut *cut;
    bool metadata_only;
    bool secret; /* the answer must not stay in memory that is given back */
    struct kube_config *config;
    struct http_tls tls;
    struct http_call *http;
    bool retried, finishing;
    struct timer later; /* ends a call that could not be made */
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

static void adopt(struct kube *k, struct kube_config *c)
{
    if (c->insecure && (!k->config || !k->config->insecure))
        log_warn("the API server's certificate is not verified, as its kubeconfig asks for",
                 L_STR("server", c->server), L_STR("kube", k->label));
    if (k->config && k->config->fingerprint != c->fingerprint)
        log_debug("new credentials for the API server", L_STR("kube", k->label));
    (void)kube_config_unref(k->config);
    k->config = c;
    k->stale = false;
    k->trouble[0] = '\0';
}

void kube_reload(struct kube *k)
{
    const struct kube_config_options o = {k->kubeconfig, k->context, k->in_cluster_dir};
    struct kube_config *c = NULL;
    char why[512];

    k->read_at = loop_now(k->loop);
    if (kube_config_read(&c, &o, why) == 0) {
        adopt(k, c);
        return;
    }
    k->stale = true;
    text_line(k->trouble, sizeof(k->trouble), str_of(why));
    log_debug("the API server's credentials cannot be read", L_STR("kube", k->label),
              L_STR("err", k->trouble));
}

static int copy(char **ret, const char *s)
{
    if (!s)
        return 0;
    *ret = str_dup(str_of(s));
    return *ret ? 0 : -ENOMEM;
}

int kube_new(struct kube **ret, struct loop *loop, struct http *http, const struct kube_options *o)
{
    CLEANUP(cleanup_kube_free) struct kube *k = calloc(1, sizeof(*k));

    if (!k || copy(&k->label, o->label ? o->label : "kube") < 0 ||
        copy(&k->kubeconfig, o->config.kubeconfig) < 0 || copy(&k->context, o->config.context) < 0 ||
        copy(&k->in_cluster_dir, o->config.in_cluster_dir) < 0)
        return -ENOMEM;
    k->loop = loop;
    k->http = http;
    kube_reload(k);
    *ret = TAKE_PTR(k);
    return 0;
}

struct kube *kube_free(struct kube *k)
{
    if (!k)
        return NULL;
    while (k->calls)
        (void)kube_cancel(k->calls);
    (void)kube_config_unref(k->config);
    free(k->label);
    free(k->kubeconfig);
    free(k->context);
    free(k->in_cluster_dir);
    free(k);
    return NULL;
}

const char *kube_trouble(const struct kube *k)
{
    return k->trouble[0] ? k->trouble : NULL;
}

const char *kube_default_namespace(const struct kube *k)
{
    return k->config ? k->config->namespace : NULL;
}

const char *kube_label_of(const struct kube *k)
{
    return k->label;
}

struct loop *kube_loop(const struct kube *k)
{
    return k->loop;
}

static void unlink_call(struct kube_call *c)
{
    if (c->prev)
        c->prev->next = c->next;
    else
        c->kube->calls = c->next;
    if (c->next)
        c->next->prev = c->prev;
}

static void link_call(struct kube *k, struct kube_call *c)
{
    c->next = k->calls;
    if (c->next)
        c->next->prev = c;
    k->calls = c;
}

static struct kube_call *call_free(struct kube_call *c)
{
    if (!c)
        return NULL;
    kube_route_done(&c->route);
    buf_done(&c->path);
    buf_done(&c->body);
    json_decref(c->answer.object);
    (void)kube_config_unref(c->config);
    free(c);
    return NULL;
}
DEFINE_CLEANUP(struct kube_call, call_free)

struct kube_call *kube_cancel(struct kube_call *c)
{
    if (!c || c->finishing)
        return NULL;
    (void)http_cancel(c->http);
    loop_timer_clear(c->kube->loop, &c->later);
    unlink_call(c);
    return call_free(c);
}

static void finish(struct kube_call *c)
{
    unlink_call(c);
    c->finishing = true;
    c->done(c->arg, &c->answer);
    (void)call_free(c);
}

static void PRINTF_LIKE(3, 4) explain(struct kube_call *c, enum kube_verdict verdict, const char *fmt, ...)
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

/* Whether other credentials than the call's can be had. */
static bool renewed(struct kube_call *c)
{
    struct kube *k = c->kube;

    if (k->config->fingerprint == c->config->fingerprint)
        kube_reload(k);
    return k->config->fingerprint != c->config->fingerprint;
}

static void on_answer(void *arg, struct http_answer *a);

static void on_piece(void *arg, struct str piece)
{
    struct kube_call *c = arg;

    c->on_data(c->arg, piece);
}

static struct str blob_str(struct kube_blob b)
{
    return (struct str){b.p, b.n};
}

/* Hands the call to the HTTP client, with the credentials of now. */
static int send_call(struct kube_call *c)
{
    const struct kube_config *conf;
    const char *headers[2];
    size_t n_headers = 0;
    struct http_request rq;
    int r;

    (void)kube_config_unref(c->config);
    c->config = kube_config_ref(c->kube->config);
    conf = c->config;
    r = kube_route_server(&c->route, conf, buf_str(&c->path));
    if (r < 0)
        return r;
    if (c->route.host.p)
        headers[n_headers++] = c->route.host.p;
    if (c->metadata_only)
        headers[n_headers++] =
            "Accept: application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";
    c->tls = (struct http_tls){.ca = blob_str(conf->ca),
                               .cert = blob_str(conf->cert),
                               .key = blob_str(conf->key),
                               .insecure = conf->insecure};
    rq = (struct http_request){
        .url = c->route.url.p,
        .method = methods[c->method].method,
        .content_type = c->part.n ? methods[c->method].content_type : NULL,
        .bearer = blob_str(conf->token),
        .body = &c->part,
        .body_parts = c->part.n > 0,
        .max_answer = c->max_answer,
        .timeout_ms = c->timeout_ms,
        .headers = headers,
        .n_headers = n_headers,
        .user = conf->user,
        .password = conf->password,
        .tls = &c->tls,
        .proxy = conf->proxy,
        .connect_to = c->route.connect_to.p,
        .no_redirects = true,
        .accept_gzip = !c->on_data,
        .on_data = c->on_data ? on_piece : NULL,
        .idle_timeout_ms = c->idle_timeout_ms,
    };
    return http_start(&c->http, c->kube->http, &rq, on_answer, c);
}

/* The same once more; false when the call has to end with what it has. */
static bool send_again(struct kube_call *c)
{
    if (c->retried || !renewed(c))
        return false;
    c->retried = true;
    return send_call(c) == 0;
}

static void take_object(struct kube_call *c, struct http_answer *a)
{
    char why[256] = "out of memory";

    if (c->on_data)
        return;
    if (kube_json_parse_cut(&c->answer.object, buf_str(&a->body), c->cut, why) < 0)
        explain(c, KUBE_RETRY, "HTTP %ld, but the answer is %s", a->status, why);
}

static void take_answer(struct kube_call *c, struct http_answer *a)
{
    struct kube_status s;

    c->answer.http_status = a->status;
    c->answer.seconds = a->seconds;
    c->answer.retry_after_ms = a->retry_after_ms;
    if (a->error != HTTP_OK) {
        explain(c, kube_verdict_of_error(a->error), "%s", a->reason);
        return;
    }
    kube_status_of_answer(a->status, buf_str(&a->body), &s);
    if (s.verdict == KUBE_OK) {
        take_object(c, a);
        return;
    }
    (void)memcpy(c->answer.reason, s.reason, sizeof(s.reason));
    if (a->retry_after_ms < 0)
        c->answer.retry_after_ms = s.retry_after_ms;
    explain(c, s.verdict, "%s%s", s.message,
            s.verdict == KUBE_NO_KIND
                ? " (is the CustomResourceDefinition installed, and served in this version?)"
                : "");
}

static void on_answer(void *arg, struct http_answer *a)
{
    struct kube_call *c = arg;
    bool refused = a->error == HTTP_TLS || (a->error == HTTP_OK && a->status == 401);

    c->http = NULL;
    if (refused && send_again(c))
        return;
    take_answer(c, a);
    if (c->secret)
        secret_done(&a->body);
    finish(c);
}

static void on_later(struct timer *t)
{
    finish(CONTAINER_OF(t, struct kube_call, later));
}

/* Ends the call in the loop's next turn. */
static int fail_later(struct kube_call *c, enum kube_verdict verdict, const char *why)
{
    explain(c, verdict, "%s", why);
    c->later.fn = on_later;
    return loop_timer_set(c->kube->loop, &c->later, loop_now(c->kube->loop));
}

static void freshen(struct kube *k)
{
    if (k->stale || mono_diff(k->read_at, loop_now(k->loop)) >= REREAD_MS)
        kube_reload(k);
}

static int call_new(struct kube_call **ret, struct kube *k, const struct kube_request *rq)
{
    CLEANUP(cleanup_call_free) struct kube_call *c = calloc(1, sizeof(*c));
    int r = c ? kube_route_path(&c->route, rq) : -ENOMEM;

    if (r < 0)
        return r == -EFBIG ? -EINVAL : r;
    c->path = buf_take(&c->route.url);
    c->kube = k;
    c->method = rq->method;
    c->on_data = rq->on_data;
    c->cut = rq->cut;
    c->metadata_only = rq->metadata_only;
    c->secret = rq->resource == &kube_secrets;
    c->max_answer = rq->max_answer ? rq->max_answer : DEFAULT_ANSWER;
    c->timeout_ms = rq->timeout_ms > 0 ? rq->timeout_ms : DEFAULT_TIMEOUT_MS;
    c->idle_timeout_ms = rq->idle_timeout_ms;
    c->answer.retry_after_ms = -1;
    buf_init(&c->body, BODY_MAX_BYTES);
    *ret = TAKE_PTR(c);
    return 0;
}

static int begin(struct kube_call *c, const struct kube_request *rq)
{
    int r = rq->body && !rq->body_text.n ? kube_json_print(rq->body, &c->body) : 0;

    if (r == -EFBIG)
        return fail_later(c, KUBE_TOO_LARGE, "the object is over the limit of 8 MiB");
    if (r < 0)
        return r;
    c->part = rq->body_text.n ? rq->body_text : buf_str(&c->body);
    freshen(c->kube);
    if (!c->kube->config)
        return fail_later(c, KUBE_UNAUTHORIZED, c->kube->trouble);
    r = send_call(c);
    if (r < 0 && r != -ENOMEM)
        return fail_later(c, KUBE_INVALID, "no request can be made with what the kubeconfig says");
    return r;
}

int kube_start(struct kube_call **ret, struct kube *k, const struct kube_request *rq, kube_done_fn done,
               void *arg)
{
    CLEANUP(cleanup_call_free) struct kube_call *c = NULL;
    int r = call_new(&c, k, rq);

    if (r < 0)
        return r;
    c->done = done;
    c->arg = arg;
    r = begin(c, rq);
    if (r < 0)
        return r;
    link_call(k, c);
    *ret = TAKE_PTR(c);
    return 0;
}

/* Owns the credentials in use and the calls under way. A call keeps a reference to the credentials that it
 * was sent with. */
#include "controller/kube/kube.h"
#include "controller/kube/page.h"
#include "exporter/http/cause.h"

#include "exporter/base/alloc.h"
#include "exporter/base/backoff.h"
#include "exporter/base/escape.h"
#include "exporter/base/log.h"
#include "exporter/base/random.h"
#include "exporter/base/secret.h"
#include "exporter/base/text.h"
#include "exporter/http/http.h"
#include "exporter/http/rule.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>

/* Whether the API server answers. */
struct reach {
    enum { REACH_UP, REACH_DOUBTED, REACH_AWAY } state;
    mono_ms doubted_at;     /* the first call without an answer */
    mono_ms away_at;        /* that of the last absence; 0: none so far */
    mono_ms cleared_at;     /* when it last answered instead, and only the call had failed; 0: never */
    struct timer timer;     /* to ask */
    struct kube_call *call; /* that asks */
    mono_ms asked_at;
    unsigned asked; /* since doubted_at */
    LIST_HEAD(, kube_waiter) waiters;
};

struct kube {
    struct loop *loop;
    struct http *http;
    char *label, *kubeconfig;
    struct kube_config *config; /* NULL until it could be read */
    mono_ms read_at;
    char trouble[512]; /* why it could not be read the last time; empty if it could */
    LIST_HEAD(, kube_call) calls;
    unsigned era;
    struct reach reach;
    int64_t clock_offset_ms; /* of the API server's clock to ours */
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

/* ---- The API server's clock ---- */

unix_ms kube_wall(const struct kube *k)
{
    return (unix_ms){loop_wall(k->loop).ms + k->clock_offset_ms};
}

int64_t kube_clock_offset_ms(const struct kube *k)
{
    return k->clock_offset_ms;
}

bool kube_clock_is_skewed(const struct kube *k)
{
    return k->clock_offset_ms > KUBE_CLOCK_SKEWED_MS || k->clock_offset_ms < -KUBE_CLOCK_SKEWED_MS;
}

static void clock_note(struct kube *k, struct str date, unix_ms sent)
{
    int64_t was = k->clock_offset_ms;

    k->clock_offset_ms = kube_clock_offset_by(was, date, sent, loop_wall(k->loop));
    if (k->clock_offset_ms == was)
        return;
    if (kube_clock_is_skewed(k))
        log_warn("this clock is not that of the API server, whose time is used there",
                 L_STR("kube", k->label), L_INT("offset_ms", k->clock_offset_ms));
    else
        log_info("offset to the clock of the API server", L_STR("kube", k->label),
                 L_INT("offset_ms", k->clock_offset_ms));
}

/* ---- The credentials in use ---- */

enum { REREAD_MS = 60 * 1000 };

static void credentials_reload(struct kube *k)
{
    const struct kube_config *old = k->config;
    struct kube_config *c = kube_config_read(k->kubeconfig, NULL, k->trouble);

    k->read_at = loop_now(k->loop);
    if (!c) {
        log_debug("cannot read the API server's credentials", L_STR("kube", k->label),
                  L_STR("err", k->trouble));
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

const char *kube_trouble(const struct kube *k)
{
    return k->trouble[0] ? k->trouble : NULL;
}

const char *kube_default_namespace(const struct kube *k)
{
    return k->config ? k->config->namespace : NULL;
}

/* ---- What an API server says of an error ---- */

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

int64_t kube_backoff_ms(unsigned nth, int64_t min_ms, int64_t max_ms, int64_t retry_after_ms)
{
    return backoff_ms(&(struct backoff){min_ms, max_ms, 2 * 60 * 1000}, nth, retry_after_ms);
}

enum { ANY = 0, USER_BYTES = 64 };

/* The first matching row decides; the last one matches everything. A NULL reason or message matches any; a
 * message matches by containing the words. */
static const struct rule {
    int from, to; /* HTTP status */
    const char *reason, *message;
    enum kube_verdict verdict;
} rules[] = {
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
    {ANY, INT_MAX, NULL, NULL, KUBE_RETRY},
};

/* Without an answer. */
static const struct http_rule failures[] = {
    {0, 0, HTTP_URL, KUBE_INVALID},
    {0, 0, HTTP_TOO_LARGE, KUBE_TOO_LARGE},
    {0, HTTP_STATUS_MAX, HTTP_ANY, KUBE_RETRY},
};

static bool verdict_rule_matches(const struct rule *r, long http_status, const char *reason,
                                 const char *message)
{
    if (http_status < r->from || http_status > r->to)
        return false;
    if (r->reason && strcmp(reason, r->reason) != 0)
        return false;
    return !r->message || strstr(message, r->message);
}

/* Besides the table: the Status' details tell two kinds of 404 apart. */
static enum kube_verdict verdict_judge(long http_status, const char *reason, const char *message,
                                       const json_t *status)
{
    size_t i = 0;

    if (http_status == 404)
        return kube_str(status, "details", "name", NULL) ? KUBE_NOT_FOUND : KUBE_NO_KIND;
    while (i < ARRAY_SIZE(rules) - 1 && !verdict_rule_matches(&rules[i], http_status, reason, message))
        i++;
    return rules[i].verdict;
}

/* 'configmaps "x" is forbidden: User "u" cannot get resource ...' becomes 'forbidden: cannot get resource ...
 * (User "u")': the caller names the object, and an add-on's user, a name of 150 bytes, must not hide what it
 * cannot do. */
static void verdict_put_message(char *out, size_t size, const json_t *message)
{
    static const char user[] = " is forbidden: User \"", cannot[] = "\" cannot ";
    const char *name = strstr(cstr(kube_as_str(message)), user);
    const char *quote = name ? strstr(name + sizeof(user) - 1, cannot) : NULL;
    char shown[USER_BYTES], whole[1024];

    if (!quote) {
        text_line(out, size, kube_as_text(message));
        return;
    }
    name += sizeof(user) - 1;
    text_line(shown, sizeof(shown), (struct str){name, (size_t)(quote - name)});
    (void)snprintf(whole, sizeof(whole), "forbidden: %.900s (User \"%s\")", quote + 2, shown);
    text_line(out, size, str_of(whole));
}

static void verdict_read_status(const json_t *status, long http_status, struct kube_answer *ret)
{
    int64_t seconds;

    text_line(ret->reason, sizeof(ret->reason), str_of(kube_str(status, "reason", NULL)));
    verdict_put_message(ret->why, sizeof(ret->why), kube_get(status, "message", NULL));
    if (kube_int(status, &seconds, "details", "retryAfterSeconds", NULL) && seconds >= 0 &&
        seconds <= 24 * 3600)
        ret->retry_after_ms = seconds * 1000;
    ret->verdict = verdict_judge(http_status, ret->reason, cstr(kube_str(status, "message", NULL)), status);
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
        verdict_read_status(status, http_status, ret);
        return;
    }
    /* 429 and unknown paths come as plain text, a proxy's errors as HTML. */
    text_http_status(ret->why, sizeof(ret->why), http_status, "",
                     (struct str){body.p, size_min(body.n, 256)});
    ret->verdict = verdict_judge(http_status, "", ret->why, NULL);
}

void kube_status_of_event(const json_t *status, struct kube_answer *ret)
{
    int64_t code = 0;

    ret->retry_after_ms = -1;
    (void)kube_int(status, &code, "code", NULL);
    /* An ERROR event is an error whatever its code. */
    verdict_read_status(status, code < 300 || code > 599 ? 500 : (long)code, ret);
}

/* ---- Addresses of objects, as in "API URIs" of the Kubernetes documentation ---- */

enum { QUERY_MAX_BYTES = 64 << 10 };

#define RESOURCE(plural, group, version, kind) \
    const struct kube_resource kube_##plural = {group, version, #plural, kind, NULL}

RESOURCE(configmaps, "", "v1", "ConfigMap");
RESOURCE(secrets, "", "v1", "Secret");
RESOURCE(leases, "coordination.k8s.io", "v1", "Lease");
RESOURCE(events, "events.k8s.io", "v1", "Event");
RESOURCE(tokenreviews, "authentication.k8s.io", "v1", "TokenReview");
RESOURCE(subjectaccessreviews, "authorization.k8s.io", "v1", "SubjectAccessReview");
RESOURCE(addonplacementscores, "cluster.open-cluster-management.io", "v1alpha1", "AddOnPlacementScore");
RESOURCE(clusterclaims, "cluster.open-cluster-management.io", "v1alpha1", "ClusterClaim");
RESOURCE(managedclusters, "cluster.open-cluster-management.io", "v1", "ManagedCluster");
RESOURCE(managedclustersetbindings, "cluster.open-cluster-management.io", "v1beta2",
         "ManagedClusterSetBinding");
RESOURCE(placements, "cluster.open-cluster-management.io", "v1beta1", "Placement");
RESOURCE(placementdecisions, "cluster.open-cluster-management.io", "v1beta1", "PlacementDecision");
RESOURCE(manifestworks, "work.open-cluster-management.io", "v1", "ManifestWork");
RESOURCE(manifestworkreplicasets, "work.open-cluster-management.io", "v1alpha1", "ManifestWorkReplicaSet");
RESOURCE(policies, "policy.open-cluster-management.io", "v1", "Policy");
RESOURCE(placementbindings, "policy.open-cluster-management.io", "v1", "PlacementBinding");
RESOURCE(dynamicscorers, "dynamic-scoring.open-cluster-management.io", "v1alpha1", "DynamicScorer");
RESOURCE(dynamicscoringconfigs, "dynamic-scoring.open-cluster-management.io", "v1alpha1",
         "DynamicScoringConfig");

static const struct kube_resource addons_v1beta1 = {"addon.open-cluster-management.io", "v1beta1",
                                                    "managedclusteraddons", "ManagedClusterAddOn",
                                                    &kube_managedclusteraddons};
const struct kube_resource kube_managedclusteraddons = {"addon.open-cluster-management.io", "v1alpha1",
                                                        "managedclusteraddons", "ManagedClusterAddOn",
                                                        &addons_v1beta1};

static const struct {
    const char *verb, *method, *content_type;
} methods[] = {
    [KUBE_GET] = {"get", "GET", NULL},
    [KUBE_LIST] = {"list", "GET", NULL},
    [KUBE_CREATE] = {"create", "POST", "application/json"},
    [KUBE_MERGE_PATCH] = {"patch", "PATCH", "application/merge-patch+json"},
    [KUBE_UPDATE] = {"update", "PUT", "application/json"},
    [KUBE_DELETE] = {"delete", "DELETE", "application/json"},
};

/* The API server rejects other names too; here they would change the path. */
static bool url_is_segment(const char *s)
{
    return !s || (*s && str_has_only(str_of(s), "-._:") && strcmp(s, ".") != 0 && strcmp(s, "..") != 0);
}

static void url_put_parameter(struct buf *b, const char *name, const char *value)
{
    if (!value)
        return;
    buf_printf(b, "%c%s=", b->n ? '&' : '?', name);
    buf_put_url(b, str_of(value));
}

/* The path and the query; NULL for a name that is no path segment. */
static char *url_make(const struct kube_request *rq)
{
    const struct kube_resource *res = rq->resource;
    CLEANUP(cleanup_free) char *path = NULL;
    BUF_AUTO(query, QUERY_MAX_BYTES);

    url_put_parameter(&query, "labelSelector", rq->label_selector);
    url_put_parameter(&query, "fieldSelector", rq->field_selector);
    if (rq->query)
        buf_printf(&query, "%c%s", query.n ? '&' : '?', rq->query);
    if (buf_failed(&query) < 0 || !url_is_segment(rq->namespace) || !url_is_segment(rq->name))
        return NULL;
    path = rq->path ? xstrdup(rq->path)
                    : xasprintf("%s%s%s/%s%s%s%s/%s%s%s%s%s", *res->group ? "/apis" : "/api",
                                *res->group ? "/" : "", res->group, res->version,
                                rq->namespace ? "/namespaces" : "", rq->namespace ? "/" : "",
                                cstr(rq->namespace), res->plural, rq->name ? "/" : "", cstr(rq->name),
                                rq->subresource ? "/" : "", cstr(rq->subresource));
    return xasprintf("%s%.*s", path, (int)query.n, query.n ? query.p : "");
}

/* "patch addonplacementscores/status cluster1/energy" */
static char *url_describe(const struct kube_request *rq)
{
    const char *name = rq->name ? rq->name : rq->body ? kube_name(rq->body) : "";

    if (rq->path)
        return xasprintf("get %s", rq->path);
    return xasprintf("%s %s%s%s%s%s%s%s", rq->on_data ? "watch" : methods[rq->method].verb,
                     rq->resource->plural, rq->subresource ? "/" : "", cstr(rq->subresource),
                     rq->namespace || *name ? " " : "", cstr(rq->namespace),
                     rq->namespace && *name ? "/" : "", name);
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

static void reach_note(struct kube *k, const struct kube_answer *a);

static void call_finish(struct kube_call *c)
{
    LIST_REMOVE(c, entry);
    c->finishing = true;
    /* The end of a stream says nothing: its answer began long ago. */
    if (!c->rq.on_data || c->answer.verdict != KUBE_OK)
        reach_note(c->kube, &c->answer);
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
        clock_note(c->kube, value, c->sent_at);
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
        .method = methods[c->rq.method].method,
        .content_type = c->rq.body_text[0].n ? methods[c->rq.method].content_type : NULL,
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
    const char *hint = "";
    char why[1024];

    kube_status_of_answer(a->status, buf_str(&a->body), ret);
    if (a->retry_after_ms >= 0)
        ret->retry_after_ms = a->retry_after_ms;
    if (ret->verdict == KUBE_NO_KIND)
        hint = " (is its CustomResourceDefinition installed, and this version served?)";
    (void)snprintf(why, sizeof(why), "%.512s%s", ret->why, hint);
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
        call_explain(c, (enum kube_verdict)HTTP_VERDICT(failures, 0, a->error), a->reason);
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
    c->path = url_make(rq);
    c->what = url_describe(rq);
    buf_init(&c->body, BODY_MAX_BYTES);
    if (rq->body) {
        kube_json_print(rq->body, &c->body);
        c->rq.body_text[0] = buf_str(&c->body);
    }
    if (k->trouble[0] || mono_diff(k->read_at, loop_now(k->loop)) >= REREAD_MS)
        credentials_reload(k);
    if (!c->path)
        kube_call_fail(c, KUBE_INVALID, "not a valid namespace or name");
    else if (buf_failed(&c->body) < 0)
        kube_call_fail(c, KUBE_TOO_LARGE, "the object exceeds 8 MiB");
    else if (!k->config)
        kube_call_fail(c, KUBE_UNAUTHORIZED, k->trouble);
    else if (!call_send(c))
        kube_call_fail(c, KUBE_INVALID, "the kubeconfig's values do not make a request");
    LIST_INSERT_HEAD(&k->calls, c, entry);
    return c;
}

/* ---- Whether the API server answers ---- */

enum {
    DOUBT_MS = 1000, /* at most this until the first question: a fleet loses its server at one moment */
    ASK_MS = 5 * 1000,
    ASK_JITTER_MS = ASK_MS / 10,
    RETURN_MS = 10 * 1000,
    RETRY_AFTER_MAX_MS = 2 * 60 * 1000,
    ASK_TIMEOUT_MS = 5 * 1000,
    PATIENT_TIMEOUT_MS = 15 * 1000,
    PATIENT_EVERY = 6,
};

bool kube_is_unreachable(const struct kube *k)
{
    return k->reach.state == REACH_AWAY;
}

int64_t kube_absence_ms(const struct kube *k)
{
    const struct reach *r = &k->reach;
    mono_ms now = loop_now(k->loop);
    /* A call that fails again and again beside a server that is well must not pass for an absence. */
    bool credible =
        r->state == REACH_AWAY || !r->cleared_at.ms || mono_diff(r->cleared_at, now) >= KUBE_GRACE_MS;
    mono_ms since = r->state != REACH_UP && credible ? r->doubted_at : r->away_at;

    return since.ms ? mono_diff(since, now) : INT64_MAX;
}

void kube_waiter_add(struct kube *k, struct kube_waiter *w)
{
    LIST_INSERT_HEAD(&k->reach.waiters, w, entry);
}

int64_t kube_return_ms(void)
{
    return (int64_t)rand_below(RETURN_MS + 1);
}

/* Not before `ms` from now, nor sooner than the usual time after the last question. */
static void reach_ask_in(struct kube *k, int64_t ms)
{
    int64_t pause = ASK_MS - ASK_JITTER_MS + (int64_t)rand_below(2 * ASK_JITTER_MS + 1);
    int64_t rest = pause - mono_diff(k->reach.asked_at, loop_now(k->loop));

    kube_timer_move(k->loop, &k->reach.timer, rest > ms ? rest : ms);
}

/* What the outcome of a call says about the server. */
static void reach_note(struct kube *k, const struct kube_answer *a)
{
    struct reach *r = &k->reach;
    bool no_answer =
        a->verdict == KUBE_RETRY ? a->http_status != 429 : a->verdict == KUBE_UNAUTHORIZED && !a->http_status;
    bool returned = !no_answer && a->http_status && r->state == REACH_AWAY;
    struct kube_waiter *w;

    if (!no_answer && a->http_status) {
        if (r->state == REACH_DOUBTED)
            r->cleared_at = loop_now(k->loop);
        r->state = REACH_UP;
    } else if (no_answer && r->state == REACH_UP) {
        r->state = REACH_DOUBTED;
        r->doubted_at = loop_now(k->loop);
        r->asked = 0;
        reach_ask_in(k, (int64_t)rand_below(DOUBT_MS + 1));
    }
    if (!returned)
        return;
    log_debug("the API server answers again", L_STR("kube", k->label));
    LIST_FOREACH (w, &r->waiters, entry)
        w->on_return(w);
}

/* reach_note() has seen the answer. */
static void reach_on_asked(void *arg, struct kube_answer *a)
{
    struct kube *k = arg;

    k->reach.call = NULL;
    if (k->reach.state == REACH_UP)
        return;
    if (k->reach.state == REACH_DOUBTED)
        log_debug("the API server is away", L_STR("kube", k->label));
    k->reach.state = REACH_AWAY;
    k->reach.away_at = k->reach.doubted_at;
    reach_ask_in(k, a->retry_after_ms < RETRY_AFTER_MAX_MS ? a->retry_after_ms : RETRY_AFTER_MAX_MS);
}

/* Now and then patiently and for something simpler, in case that only the question is not answered: by a
 * slow network, a proxy, or a server that works but never becomes ready. */
static void reach_ask(struct timer *t)
{
    struct kube *k = CONTAINER_OF(t, struct kube, reach.timer);
    struct reach *r = &k->reach;
    bool patient = ++r->asked % PATIENT_EVERY == 0;
    const struct kube_request rq = {.method = KUBE_GET,
                                    .path = patient ? "/version" : "/readyz",
                                    .timeout_ms = patient ? PATIENT_TIMEOUT_MS : ASK_TIMEOUT_MS};

    if (r->state == REACH_UP || r->call)
        return;
    r->asked_at = loop_now(k->loop);
    r->call = kube_start(k, &rq, reach_on_asked, k);
}

/* ---- Whether the store went back in time ---- */

unsigned kube_era(const struct kube *k)
{
    return k->era;
}

void kube_note_restore(struct kube *k, const struct kube_watch *found_by)
{
    struct kube_waiter *w;

    k->era++;
    log_warn("the API server's store went back in time, as after a restore from a backup: listing all "
             "objects anew",
             L_STR("kube", k->label));
    LIST_FOREACH (w, &k->reach.waiters, entry)
        if (w->on_restore)
            w->on_restore(w, found_by);
}

/* ---- The client ---- */

struct kube *kube_new(struct loop *loop, struct http *http, const char *label, const char *kubeconfig)
{
    struct kube *k = xcalloc(1, sizeof(*k));

    k->loop = loop;
    k->http = http;
    k->label = xstrdup(label);
    k->kubeconfig = kubeconfig ? xstrdup(kubeconfig) : NULL;
    k->era = 1;
    k->reach.timer.fn = reach_ask;
    k->reach.asked_at = mono_add(loop_now(loop), -ASK_MS - ASK_JITTER_MS);
    credentials_reload(k);
    return k;
}

struct kube *kube_free(struct kube *k)
{
    if (!k)
        return NULL;
    while (!LIST_EMPTY(&k->calls))
        (void)kube_cancel(LIST_FIRST(&k->calls));
    loop_timer_clear(k->loop, &k->reach.timer);
    (void)kube_config_unref(k->config);
    free(k->label);
    free(k->kubeconfig);
    free(k);
    return NULL;
}

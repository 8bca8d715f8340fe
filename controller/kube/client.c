/* Owns the credentials in use and the calls under way. A call keeps a reference to the credentials that it
 * was sent with. */
#include "controller/kube/client.h"

#include "controller/kube/config.h"
#include "controller/kube/json.h"
#include "controller/kube/reach.h"
#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/escape.h"
#include "exporter/base/http.h"
#include "exporter/base/log.h"
#include "exporter/base/loop.h"
#include "exporter/base/secret.h"
#include "exporter/base/text.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <time.h>

struct kube {
    struct loop *loop;
    struct http *http;
    char *label, *kubeconfig, *context, *in_cluster_dir;
    struct kube_config *config; /* NULL until it could be read */
    mono_ms read_at;
    bool stale; /* read again before the next call */
    char trouble[512];
    LIST_HEAD(, kube_call) calls;
    struct kube_reach reach;
};

/* Where a request goes. */
struct kube_route {
    struct buf path; /* with the query, terminated */
    struct buf what; /* "get configmaps ns/name", terminated */
};

/* ---- The credentials in use ---- */

enum { REREAD_MS = 60 * 1000 };

static void credentials_adopt(struct kube *k, struct kube_config *c)
{
    if (c->insecure && (!k->config || !k->config->insecure))
        log_warn("the API server's certificate is not verified: insecure-skip-tls-verify is set",
                 L_STR("server", c->server), L_STR("kube", k->label));
    if (k->config && k->config->fingerprint != c->fingerprint)
        log_debug("new credentials for the API server", L_STR("kube", k->label));
    (void)kube_config_unref(k->config);
    k->config = c;
    k->stale = false;
    k->trouble[0] = '\0';
}

static void credentials_reload(struct kube *k)
{
    const struct kube_config_options o = {k->kubeconfig, k->context, k->in_cluster_dir};
    struct kube_config *c = NULL;
    char why[512];

    k->read_at = loop_now(k->loop);
    if (kube_config_read(&c, &o, why) == 0) {
        credentials_adopt(k, c);
        return;
    }
    k->stale = true;
    text_line(k->trouble, sizeof(k->trouble), str_of(why));
    log_debug("cannot read the API server's credentials", L_STR("kube", k->label), L_STR("err", k->trouble));
}

/* Reads the credentials if they are a minute old or could not be read the last time. */
static void credentials_freshen(struct kube *k)
{
    if (k->stale || mono_diff(k->read_at, loop_now(k->loop)) >= REREAD_MS)
        credentials_reload(k);
}

const char *kube_trouble(const struct kube *k)
{
    return k->trouble[0] ? k->trouble : NULL;
}

const char *kube_default_namespace(const struct kube *k)
{
    return k->config ? k->config->namespace : NULL;
}

/* ---- Addresses of objects, as in "API URIs" of the Kubernetes documentation ---- */

enum { URL_MAX_BYTES = 16 << 10 };

const struct kube_resource kube_configmaps = {"", "v1", "configmaps", "ConfigMap"};
const struct kube_resource kube_secrets = {"", "v1", "secrets", "Secret"};
const struct kube_resource kube_leases = {"coordination.k8s.io", "v1", "leases", "Lease"};
const struct kube_resource kube_events = {"events.k8s.io", "v1", "events", "Event"};
const struct kube_resource kube_addonplacementscores = {"cluster.open-cluster-management.io", "v1alpha1",
                                                        "addonplacementscores", "AddOnPlacementScore"};
const struct kube_resource kube_managedclustersetbindings = {
    "cluster.open-cluster-management.io", "v1beta2", "managedclustersetbindings", "ManagedClusterSetBinding"};
const struct kube_resource kube_managedclusteraddons = {"addon.open-cluster-management.io", "v1alpha1",
                                                        "managedclusteraddons", "ManagedClusterAddOn"};
const struct kube_resource kube_managedclusters = {"cluster.open-cluster-management.io", "v1",
                                                   "managedclusters", "ManagedCluster"};
const struct kube_resource kube_manifestworks = {"work.open-cluster-management.io", "v1", "manifestworks",
                                                 "ManifestWork"};
const struct kube_resource kube_dynamicscorers = {"dynamic-scoring.open-cluster-management.io", "v1alpha1",
                                                  "dynamicscorers", "DynamicScorer"};
const struct kube_resource kube_dynamicscoringconfigs = {"dynamic-scoring.open-cluster-management.io",
                                                         "v1alpha1", "dynamicscoringconfigs",
                                                         "DynamicScoringConfig"};
const struct kube_resource kube_policies = {"policy.open-cluster-management.io", "v1", "policies", "Policy"};
const struct kube_resource kube_placementbindings = {"policy.open-cluster-management.io", "v1",
                                                     "placementbindings", "PlacementBinding"};
const struct kube_resource kube_placements = {"cluster.open-cluster-management.io", "v1beta1", "placements",
                                              "Placement"};
const struct kube_resource kube_placementdecisions = {"cluster.open-cluster-management.io", "v1beta1",
                                                      "placementdecisions", "PlacementDecision"};
const struct kube_resource kube_manifestworkreplicasets = {
    "work.open-cluster-management.io", "v1alpha1", "manifestworkreplicasets", "ManifestWorkReplicaSet"};
const struct kube_resource kube_clusterclaims = {"cluster.open-cluster-management.io", "v1alpha1",
                                                 "clusterclaims", "ClusterClaim"};
const struct kube_resource kube_tokenreviews = {"authentication.k8s.io", "v1", "tokenreviews", "TokenReview"};
const struct kube_resource kube_subjectaccessreviews = {"authorization.k8s.io", "v1", "subjectaccessreviews",
                                                        "SubjectAccessReview"};

static const char *const verbs[] = {
    [KUBE_GET] = "get",           [KUBE_LIST] = "list",     [KUBE_CREATE] = "create",
    [KUBE_MERGE_PATCH] = "patch", [KUBE_UPDATE] = "update", [KUBE_DELETE] = "delete",
};

/* The API server rejects such names too; here they would change the path. */
static bool url_is_segment(const char *s)
{
    return *s && !strpbrk(s, "/%") && strcmp(s, ".") != 0 && strcmp(s, "..") != 0;
}

static int url_put_segment(struct buf *b, const char *s)
{
    if (!url_is_segment(s))
        return -EINVAL;
    return buf_putc(b, '/') ?: buf_put_url(b, str_of(s));
}

static int url_put_path(struct buf *b, const struct kube_request *rq)
{
    const struct kube_resource *res = rq->resource;
    int r = *res->group ? buf_puts(b, "/apis") ?: url_put_segment(b, res->group) : buf_puts(b, "/api");

    r = r ?: url_put_segment(b, res->version);
    if (rq->namespace)
        r = r ?: buf_puts(b, "/namespaces") ?: url_put_segment(b, rq->namespace);
    r = r ?: url_put_segment(b, res->plural);
    if (rq->name)
        r = r ?: url_put_segment(b, rq->name);
    if (rq->subresource)
        r = r ?: url_put_segment(b, rq->subresource);
    return r;
}

static int url_put_parameter(struct buf *b, char *separator, const char *name, const char *value)
{
    int r;

    if (!value || !*value)
        return 0;
    r = buf_printf(b, "%c%s", *separator, name) ?: buf_put_url(b, str_of(value));
    *separator = '&';
    return r;
}

static int url_put_query(struct buf *b, const struct kube_request *rq)
{
    char separator = '?';
    int r = url_put_parameter(b, &separator, "labelSelector=", rq->label_selector)
                ?: url_put_parameter(b, &separator, "fieldSelector=", rq->field_selector);

    if (r == 0 && rq->query && *rq->query)
        r = buf_printf(b, "%c%s", separator, rq->query);
    return r;
}

/* "patch addonplacementscores/status cluster1/energy" */
static int url_put_what(struct buf *b, const struct kube_request *rq)
{
    const char *name = rq->name ? rq->name : rq->body ? kube_name(rq->body) : "";
    bool both = rq->namespace && *name;

    if (rq->path)
        return buf_printf(b, "get %s", rq->path) ?: buf_putc(b, '\0');
    return buf_printf(b, "%s %s%s%s%s%s%s%s", rq->on_data ? "watch" : verbs[rq->method], rq->resource->plural,
                      rq->subresource ? "/" : "", cstr(rq->subresource), rq->namespace || *name ? " " : "",
                      cstr(rq->namespace), both ? "/" : "", name)
               ?: buf_putc(b, '\0');
}

static bool url_is_complete(const struct kube_request *rq)
{
    bool named = rq->name != NULL, many = rq->method == KUBE_LIST || rq->method == KUBE_CREATE;
    bool writes = rq->method == KUBE_CREATE || rq->method == KUBE_MERGE_PATCH || rq->method == KUBE_UPDATE;

    if (rq->path)
        return rq->method == KUBE_GET;
    return rq->resource && named != many && (!writes || rq->body || rq->body_text.n);
}

static void route_done(struct kube_route *r)
{
    buf_done(&r->path);
    buf_done(&r->what);
}

/* -EINVAL for a name that is no path segment, or if the method needs more; -ENOMEM, -EFBIG. */
static int route_make(struct kube_route *r, const struct kube_request *rq)
{
    int e;

    buf_init(&r->path, URL_MAX_BYTES);
    buf_init(&r->what, URL_MAX_BYTES);
    if (!url_is_complete(rq))
        return -EINVAL;
    e = rq->path ? buf_puts(&r->path, rq->path) : url_put_path(&r->path, rq);
    return e ?: url_put_query(&r->path, rq) ?: buf_putc(&r->path, '\0') ?: url_put_what(&r->what, rq);
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
    route_done(&c->route);
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

/* Cancels all calls. */
static void call_cancel_all(struct kube *k)
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
        credentials_reload(k);
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
    c->answer.bytes = a->body.n;
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
static void call_fail(struct kube_call *c, enum kube_verdict verdict, const char *why)
{
    call_explain(c, verdict, "%s", why);
    c->failed.fn = call_on_failed;
    loop_timer_set(c->kube->loop, &c->failed, loop_now(c->kube->loop));
}

static int kube_call_new(struct kube_call **ret, struct kube *k, const struct kube_request *rq)
{
    CLEANUP(cleanup_kube_call_free) struct kube_call *c = xcalloc(1, sizeof(*c));
    int r = route_make(&c->route, rq);

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

    if (r == -EFBIG) {
        call_fail(c, KUBE_TOO_LARGE, "the object exceeds 8 MiB");
        return 0;
    }
    if (r < 0)
        return r;
    c->part = rq->body_text.n ? rq->body_text : buf_str(&c->body);
    credentials_freshen(c->kube);
    if (!c->kube->config) {
        call_fail(c, KUBE_UNAUTHORIZED, c->kube->trouble);
        return 0;
    }
    r = call_send(c);
    if (r < 0 && r != -ENOMEM) {
        call_fail(c, KUBE_INVALID, "the kubeconfig's values do not make a request");
        return 0;
    }
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

/* ---- The client ---- */

/* Copies a string; NULL stays NULL. -ENOMEM. */
static int client_copy(char **ret, const char *s)
{
    *ret = s ? str_dup(str_of(s)) : NULL;
    return s && !*ret ? -ENOMEM : 0;
}

int kube_new(struct kube **ret, struct loop *loop, struct http *http, const struct kube_options *o)
{
    CLEANUP(cleanup_kube_free) struct kube *k = xcalloc(1, sizeof(*k));

    if (!k || client_copy(&k->label, o->label ? o->label : "kube") < 0 ||
        client_copy(&k->kubeconfig, o->config.kubeconfig) < 0 ||
        client_copy(&k->context, o->config.context) < 0 ||
        client_copy(&k->in_cluster_dir, o->config.in_cluster_dir) < 0)
        return -ENOMEM;
    k->loop = loop;
    k->http = http;
    kube_reach_init(k);
    credentials_reload(k);
    *ret = TAKE_PTR(k);
    return 0;
}

struct kube *kube_free(struct kube *k)
{
    if (!k)
        return NULL;
    call_cancel_all(k);
    if (k->loop)
        loop_timer_clear(k->loop, &k->reach.timer);
    (void)kube_config_unref(k->config);
    free(k->label);
    free(k->kubeconfig);
    free(k->context);
    free(k->in_cluster_dir);
    free(k);
    return NULL;
}

const char *kube_label_of(const struct kube *k)
{
    return k->label;
}

struct loop *kube_loop(const struct kube *k)
{
    return k->loop;
}

struct kube_reach *kube_reach(const struct kube *k)
{
    return (struct kube_reach *)(uintptr_t)&k->reach;
}

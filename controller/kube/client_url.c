/* The addresses of objects, as in "API URIs" of the Kubernetes documentation. */
#include "controller/kube/client_internal.h"
#include "controller/kube/json.h"
#include "exporter/base/buf.h"
#include "exporter/base/escape.h"

#include <errno.h>

enum { URL_MAX_BYTES = 16 << 10 };

const struct kube_resource kube_configmaps = {"", "v1", "configmaps", "ConfigMap"};
const struct kube_resource kube_secrets = {"", "v1", "secrets", "Secret"};
const struct kube_resource kube_leases = {"coordination.k8s.io", "v1", "leases", "Lease"};
const struct kube_resource kube_events = {"events.k8s.io", "v1", "events", "Event"};
const struct kube_resource kube_addonplacementscores = {"cluster.open-cluster-management.io", "v1alpha1",
                                                        "addonplacementscores", "AddOnPlacementScore"};
const struct kube_resource kube_managedclustersets = {"cluster.open-cluster-management.io", "v1beta2",
                                                      "managedclustersets", "ManagedClusterSet"};
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

void kube_route_done(struct kube_route *r)
{
    buf_done(&r->path);
    buf_done(&r->what);
}

int kube_route_make(struct kube_route *r, const struct kube_request *rq)
{
    int e;

    buf_init(&r->path, URL_MAX_BYTES);
    buf_init(&r->what, URL_MAX_BYTES);
    if (!url_is_complete(rq))
        return -EINVAL;
    e = rq->path ? buf_puts(&r->path, rq->path) : url_put_path(&r->path, rq);
    return e ?: url_put_query(&r->path, rq) ?: buf_putc(&r->path, '\0') ?: url_put_what(&r->what, rq);
}

/* Makes the path of a request, and the words for it in errors. Owns nothing; called by the client, on the
 * loop. A name that would change the path is refused. */
#include "controller/kube/request.h"

#include "controller/kube/json.h"
#include "exporter/base/alloc.h"
#include "exporter/base/buf.h"
#include "exporter/base/escape.h"

enum { QUERY_MAX_BYTES = 64 << 10 };

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
static bool path_is_segment(const char *s)
{
    return !s || (*s && str_has_only(str_of(s), "-._:") && strcmp(s, ".") != 0 && strcmp(s, "..") != 0);
}

static void path_put_parameter(struct buf *b, const char *name, const char *value)
{
    if (!value)
        return;
    buf_printf(b, "%c%s=", b->n ? '&' : '?', name);
    buf_put_url(b, str_of(value));
}

/* The path and the query; NULL for a name that is no path segment. */
char *kube_request_path(const struct kube_request *rq)
{
    const struct kube_resource *res = rq->resource;
    CLEANUP(cleanup_free) char *path = NULL;
    BUF_AUTO(query, QUERY_MAX_BYTES);

    path_put_parameter(&query, "labelSelector", rq->label_selector);
    path_put_parameter(&query, "fieldSelector", rq->field_selector);
    if (rq->query)
        buf_printf(&query, "%c%s", query.n ? '&' : '?', rq->query);
    if (buf_failed(&query) < 0 || !path_is_segment(rq->namespace) || !path_is_segment(rq->name))
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
char *kube_request_describe(const struct kube_request *rq)
{
    const char *name = rq->name ? rq->name : rq->body ? kube_name(rq->body) : "";

    if (rq->path)
        return xasprintf("get %s", rq->path);
    return xasprintf("%s %s%s%s%s%s%s%s", rq->on_data ? "watch" : methods[rq->method].verb,
                     rq->resource->plural, rq->subresource ? "/" : "", cstr(rq->subresource),
                     rq->namespace || *name ? " " : "", cstr(rq->namespace),
                     rq->namespace && *name ? "/" : "", name);
}

const char *kube_method_name(enum kube_method method)
{
    return methods[method].method;
}

const char *kube_method_content_type(enum kube_method method)
{
    return methods[method].content_type;
}

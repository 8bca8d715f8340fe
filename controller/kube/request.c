/* Makes the path of a request, and the words for it in errors. Owns nothing; called by the client, on the
 * loop. A name that would change the path is refused. */
#include "controller/kube/request.h"

#include "controller/kube/json.h"
#include "exporter/base/alloc.h"
#include "exporter/base/buf.h"
#include "exporter/base/escape.h"

enum { PATH_MAX_BYTES = 64 << 10 };

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

static void path_put_segment(struct buf *path, const char *segment)
{
    buf_putc(path, '/');
    buf_puts(path, segment);
}

static void path_put_object(struct buf *path, const struct kube_request *rq)
{
    const struct kube_resource *r = rq->resource;

    buf_puts(path, *r->group ? "/apis" : "/api");
    if (*r->group)
        path_put_segment(path, r->group);
    path_put_segment(path, r->version);
    if (rq->namespace) {
        buf_puts(path, "/namespaces");
        path_put_segment(path, rq->namespace);
    }
    path_put_segment(path, r->plural);
    if (rq->name)
        path_put_segment(path, rq->name);
    if (rq->subresource)
        path_put_segment(path, rq->subresource);
}

/* *begins: whether it is the first parameter. */
static void query_begin_parameter(struct buf *path, bool *begins)
{
    buf_putc(path, *begins ? '?' : '&');
    *begins = false;
}

static void query_put_parameter(struct buf *path, bool *begins, const char *name, const char *value)
{
    if (!value)
        return;
    query_begin_parameter(path, begins);
    buf_printf(path, "%s=", name);
    buf_put_url(path, str_of(value));
}

char *kube_request_path(const struct kube_request *rq)
{
    BUF_AUTO(path, PATH_MAX_BYTES);
    bool begins = true;

    if (!path_is_segment(rq->namespace) || !path_is_segment(rq->name))
        return NULL;
    if (rq->path)
        buf_puts(&path, rq->path);
    else
        path_put_object(&path, rq);
    query_put_parameter(&path, &begins, "labelSelector", rq->label_selector);
    query_put_parameter(&path, &begins, "fieldSelector", rq->field_selector);
    if (rq->query) {
        query_begin_parameter(&path, &begins);
        buf_puts(&path, rq->query);
    }
    return buf_failed(&path) < 0 ? NULL : str_dup(buf_str(&path));
}

char *kube_request_describe(const struct kube_request *rq)
{
    const char *name = rq->name ?: kube_name(rq->body);
    BUF_AUTO(words, SIZE_MAX / 2);

    if (rq->path)
        return xasprintf("get %s", rq->path);
    buf_puts(&words, rq->on_data ? "watch" : methods[rq->method].verb);
    buf_printf(&words, " %s", rq->resource->plural);
    if (rq->subresource)
        path_put_segment(&words, rq->subresource);
    if (rq->namespace)
        buf_printf(&words, " %s", rq->namespace);
    if (*name)
        buf_printf(&words, "%c%s", rq->namespace ? '/' : ' ', name);
    if (buf_failed(&words) < 0)
        memory_exhausted(words.n);
    return str_dup(buf_str(&words));
}

const char *kube_method_name(enum kube_method method)
{
    return methods[method].method;
}

const char *kube_method_content_type(enum kube_method method)
{
    return methods[method].content_type;
}

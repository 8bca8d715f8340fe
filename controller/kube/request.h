/* One request to an API server: what a caller asks for, and its path and words. Pure. */
#pragma once

#include "controller/kube/resource.h"
#include "exporter/base/str.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct kube_cut;

enum kube_method {
    KUBE_GET,
    KUBE_LIST,
    KUBE_CREATE,      /* POST */
    KUBE_MERGE_PATCH, /* RFC 7386 */
    KUBE_UPDATE,      /* PUT: body needs metadata.resourceVersion */
    KUBE_DELETE,
};

struct kube_request {
    enum kube_method method;
    const struct kube_resource *resource;
    const char *path;        /* for KUBE_GET, instead of a resource: "/version". Its answer is not parsed */
    const char *namespace;   /* NULL: all namespaces, or a cluster-scoped resource */
    const char *name;        /* NULL for KUBE_LIST and KUBE_CREATE */
    const char *subresource; /* "status"; NULL for none */
    const json_t *body;      /* serialized at once */
    struct str body_text[2]; /* without a body: serialized JSON, in two parts. Must live until `done` */
    const char *label_selector, *field_selector; /* for KUBE_LIST; not escaped; NULL for none */
    const char *query;  /* other parameters, escaped: "fieldManager=x&limit=500"; NULL: none */
    bool metadata_only; /* the answer is a PartialObjectMetadata, or a list of these */
    /* Both for KUBE_LIST, or NULL: get a page's own members, and then its items one by one, in as many turns
     * as it takes. Nothing comes of a page that is not JSON as a whole. Both values are borrowed;
     * json_incref() to keep. May call kube_cancel(). */
    void (*on_head)(void *arg, const json_t *list);
    void (*on_item)(void *arg, json_t *item);
    struct kube_cut *cut; /* applied to a successful answer; NULL: none. Must live until `done` */
    size_t max_answer;    /* 0: 16 MiB */
    /* 0: 15 s. Each 32 kB of the body add a second, up to 45: a loaded API server takes that long to merge
     * 20,000 items. */
    int64_t timeout_ms;
    int64_t idle_timeout_ms; /* 0: none; see http.h */
    /* Gets an answer of 2xx piece by piece, unparsed, once its headers are in: the first may be empty.
     * Counts what it does (loop_spend()), and returns how many bytes it has taken: the others come again
     * in a later turn. May call kube_cancel(). */
    size_t (*on_data)(void *arg, struct str piece);
};

/* The method's name in HTTP, and the type of its body; NULL without one. */
const char *kube_method_name(enum kube_method method);
const char *kube_method_content_type(enum kube_method method);
/* The path with its query, as in "API URIs" of the Kubernetes documentation. NULL for a name that is no path
 * segment. On the heap. */
char *kube_request_path(const struct kube_request *rq);
/* "patch addonplacementscores/status cluster1/energy". On the heap. */
char *kube_request_describe(const struct kube_request *rq);

/* A client of one API server with one identity: REST calls on the loop's HTTP client.
 *
 * Credentials are read again every minute, and after a failed TLS handshake or a 401, when the call is sent
 * once more. While they cannot be read, the last good ones stay in use. Nothing else is retried. */
#ifndef DS_KUBE_CLIENT_H
#define DS_KUBE_CLIENT_H

#include "controller/kube/json.h"
#include "exporter/base/clock.h"
#include "exporter/base/loop.h"
#include "exporter/http/http.h"

#include <sys/queue.h>

struct kube;
struct kube_call;

enum { KUBE_FAR_MS = 24 * 3600 * 1000 };

/* The meaning of an API server's answer, from one table, so that no caller inspects status codes. */
enum kube_verdict {
    KUBE_OK,
    KUBE_RETRY,        /* no connection, 429, 5xx, time-out: transient; retry after kube_backoff_ms() */
    KUBE_UNAUTHORIZED, /* 401, or no readable credentials: passes when they are renewed */
    KUBE_FORBIDDEN,    /* 403: passes when the right is granted */
    KUBE_NOT_FOUND,    /* 404 of an object, or of the namespace to create it in */
    KUBE_NO_KIND,      /* 404 of the whole resource: its CRD is not installed */
    KUBE_EXISTS,       /* 409 to a create */
    KUBE_CONFLICT,     /* 409 to a write: the object changed since it was read */
    KUBE_GONE,         /* 410: the resourceVersion or the continue token is too old; list again */
    KUBE_INVALID,      /* 400, 405, 415, 422 ...: the same request would fail again */
    KUBE_TOO_LARGE,    /* 413, refused by the store for its size, or an answer over its ceiling */
    KUBE_VERDICTS
};

/* For labels: "ok", "not_found", "too_large". */
const char *kube_verdict_word(enum kube_verdict v);

/* backoff_ms() that honors a Retry-After of up to two minutes. */
static inline int64_t kube_backoff_ms(unsigned nth, int64_t min_ms, int64_t max_ms, int64_t retry_after_ms)
{
    return backoff_ms(&(struct backoff){min_ms, max_ms, 2 * 60 * 1000}, nth, retry_after_ms);
}

struct kube_resource {
    const char *group, *version, *plural, *kind; /* group: "" for the core */
    const struct kube_resource *other; /* in another version, for watches where this one is not served */
};

extern const struct kube_resource kube_configmaps, kube_secrets, kube_leases, kube_events,
    kube_addonplacementscores, kube_managedclusters, kube_managedclustersetbindings,
    kube_managedclusteraddons, kube_manifestworks, kube_dynamicscorers, kube_dynamicscoringconfigs,
    kube_policies, kube_placementbindings, kube_placements, kube_placementdecisions,
    kube_manifestworkreplicasets, kube_clusterclaims, kube_tokenreviews, kube_subjectaccessreviews;

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
    struct str body_text;    /* without a body: serialized JSON. Must live until `done` */
    const char *label_selector; /* for KUBE_LIST; not escaped; NULL for none */
    const char *field_selector;
    const char *query;    /* other parameters, escaped: "fieldManager=x&limit=500"; NULL: none */
    bool metadata_only;   /* the answer is a PartialObjectMetadata */
    struct kube_cut *cut; /* applied to a successful answer; NULL: none. Must live until `done` */
    size_t max_answer;    /* 0: 16 MiB */
    /* 0: 15 s. Each 32 kB of the body add a second, up to 45: a loaded API server takes that long to merge
     * 20,000 items. */
    int64_t timeout_ms;
    int64_t idle_timeout_ms; /* 0: none; see http.h */
    /* Gets an answer of 2xx piece by piece, unparsed, once its headers are in: the first may be empty. May
     * call kube_cancel(). */
    void (*on_data)(void *arg, struct str piece);
};

struct kube_answer {
    enum kube_verdict verdict;
    long http_status;       /* 0 without an answer */
    char reason[64];        /* the Status object's: "AlreadyExists"; empty without */
    char why[768];          /* the error for people, one line without credentials; empty on KUBE_OK */
    int64_t retry_after_ms; /* from the header or the Status object; -1 without */
    size_t bytes;           /* of the body */
    json_t *object;         /* the body on KUBE_OK; borrowed, json_incref() to keep. NULL with on_data */
    double seconds;
};

/* Runs on the loop once per call, never from inside kube_start(). May free anything, the client included. */
typedef void (*kube_done_fn)(void *arg, struct kube_answer *a);

/* label: "hub" or "cluster", for logs. kubeconfig: a path; NULL: the pod's service account. Both are copied.
 * Credentials that cannot be read now are read later, since OCM mounts the hub's kubeconfig late. */
struct kube *kube_new(struct loop *loop, struct http *http, const char *label, const char *kubeconfig);
/* Cancels its calls. Its watches, queues, leases and events must be freed before. */
struct kube *kube_free(struct kube *k);

/* Why credentials could not be read the last time; NULL when they could. */
const char *kube_trouble(const struct kube *k);
/* The namespace of the context, or the pod's own; NULL without. Until the next turn of the loop. */
const char *kube_default_namespace(const struct kube *k);
const char *kube_label_of(const struct kube *k);
struct loop *kube_loop(const struct kube *k);

/* Starts a call. A name that is no path segment ends it with KUBE_INVALID. */
struct kube_call *kube_start(struct kube *k, const struct kube_request *rq, kube_done_fn done, void *arg);
/* Cancels a call; `done` is not called. A write may or may not have happened. Takes NULL, returns NULL. */
struct kube_call *kube_cancel(struct kube_call *c);

/* The time of the loop's turn. */
static inline mono_ms kube_now(const struct kube *k)
{
    return loop_now(kube_loop(k));
}

static inline void kube_timer_move(struct loop *l, struct timer *t, int64_t in_ms)
{
    loop_timer_set(l, t, mono_add(loop_now(l), in_ms));
}

/* ---- Whether the API server answers ----
 *
 * When a call gets no answer, or one of 5xx, the client asks the server itself (/readyz), about every five
 * seconds until any answer but 5xx comes. If the first question gets none, the server is away, and queues,
 * watches and events start nothing. */

enum { KUBE_GRACE_MS = 60 * 1000 }; /* after this an absence is worth reporting */

/* Who waits for the server's return; embedded in its owner. */
struct kube_waiter {
    void (*on_return)(struct kube_waiter *w); /* only moves timers, by kube_return_ms() */
    LIST_ENTRY(kube_waiter) entry;
};

/* Whether the server itself was asked and did not answer. */
bool kube_is_away(const struct kube *k);
/* Milliseconds since the server's last absence began, or may have begun; INT64_MAX without one. */
int64_t kube_absence_ms(const struct kube *k);
/* LIST_REMOVE() ends it. */
void kube_waiter_add(struct kube *k, struct kube_waiter *w);
/* When to go on after the return: in up to 10 s, since a whole fleet does. */
int64_t kube_return_ms(void);

/* Sets verdict, reason, why (one line of UTF-8) and retry_after_ms from a Status object, text or nothing. */
void kube_status_of_answer(long http_status, struct str body, struct kube_answer *ret);
/* The same from the Status object in a watch's ERROR event. */
void kube_status_of_event(const json_t *status, struct kube_answer *ret);

#endif

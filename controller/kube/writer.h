/* A work queue of keys, and on top of it the writer of Kubernetes objects, and Events. On the loop.
 *
 * A key is worked on by one at a time, however often it is added, and once more if it was added meanwhile; a
 * failed key is retried after a back-off of its own. While the API server is away no work starts. */
#ifndef DS_KUBE_WRITER_H
#define DS_KUBE_WRITER_H

#include "controller/kube/client.h"
#include "exporter/base/clock.h"

struct kube_queue;

struct kube_queue_options {
    /* Starts the work on a key, which is active, and stays where it is, until kube_queue_done(), which `work`
     * may call itself. */
    void (*work)(void *arg, const char *key);
    void *arg;
    struct kube *kube;          /* whose API server the work needs; NULL: none. Must outlive the queue */
    size_t max_active;          /* active keys; 0: 8 */
    int64_t min_retry_ms;       /* 0: 1 s */
    int64_t max_retry_ms;       /* 0: 5 min */
    unsigned per_second, burst; /* starts of all keys together; 0: 20 and 50 */
};

struct kube_queue *kube_queue_new(struct loop *loop, const struct kube_queue_options *o);
/* Forgets active keys too. Not from `work`. */
struct kube_queue *kube_queue_free(struct kube_queue *q);

/* Adds the key: it is worked on as soon as possible, but not before its back-off after a failure ends. */
void kube_queue_add(struct kube_queue *q, const char *key);
/* Adds the key to be worked on in `ms`, or earlier if an earlier time was asked for. */
void kube_queue_add_after(struct kube_queue *q, const char *key, int64_t ms);
/* Like kube_queue_add(), and starts before those that are not urgent. */
void kube_queue_add_urgent(struct kube_queue *q, const char *key);
/* The work on the key ended: well, or to be retried after its back-off and no sooner than retry_after_ms
 * (-1: none). Ignores an unknown key. */
void kube_queue_done(struct kube_queue *q, const char *key, bool ok, int64_t retry_after_ms);
/* Forgets the key: a waiting key is dropped, an active one is not repeated. */
void kube_queue_forget(struct kube_queue *q, const char *key);
/* Keys that wait or are active. */
size_t kube_queue_length(const struct kube_queue *q);

/* ---- The writer ----
 *
 * When it is an object's turn in the queue, the queue's work starts a write or ends the turn. The writer
 * sends and counts it, knows it again in the watch, and says when others keep undoing it. */

struct kube_writer {
    struct kube *kube;
    struct kube_queue *queue;  /* of objects' keys; owned by whoever made it */
    const char *query;         /* "fieldManager=..."; NULL: none */
    const char *kind, *detail; /* for the log: "ManifestWork", and "cluster" for what a key names */
    /* Counts a call that has ended. NULL: none */
    void (*count)(void *arg, const char *operation, const struct kube_answer *a);
    void *arg;
};

enum { KUBE_TROUBLE_BYTES = 640, KUBE_VERSION_BYTES = 32 };

/* What is known of an object's writes; embedded in its owner. Read-only but for the functions below. */
struct kube_object {
    struct kube_writer *writer;
    const char *key; /* in the queue; not owned */
    struct kube_call *call;
    const char *operation;
    void (*done)(struct kube_object *o, struct kube_answer *a);
    uint64_t sent;    /* the state that the write under way leads to */
    uint64_t written; /* that of the last one; 0: none, or unknown */
    mono_ms written_at;
    char version[KUBE_VERSION_BYTES]; /* resourceVersion after the last write; empty: the answer had none */
    char watched[KUBE_VERSION_BYTES]; /* the newest that the watch has shown */
    bool vanished;                    /* the watch has shown its end during the call */
    unsigned undone;                  /* how often in a row others undid what was written */
    int64_t wait_ms;                  /* because of that; -1: no need */
    unsigned failures;                /* in a row, undone writes among them */
    char trouble[KUBE_TROUBLE_BYTES]; /* why it is not written; empty when it is */
};

void kube_object_init(struct kube_object *o, struct kube_writer *w, const char *key);
/* Cancels the call, and ends the turn. */
void kube_object_done(struct kube_object *o);

/* Starts a call of the object's turn: the first one, or another one from `done`, which otherwise ends the
 * turn. The same `state` as last time means that others have undone that write; 0: no write, or nothing to
 * recognize. operation: for `count`; NULL: not counted. */
void kube_object_call(struct kube_object *o, const char *operation, const struct kube_request *rq,
                      uint64_t state, void (*done)(struct kube_object *o, struct kube_answer *a));
/* Ends the turn. If not ok, or if the write was undone too often, the next one comes after a back-off. */
void kube_object_end(struct kube_object *o, bool ok, int64_t retry_after_ms);
/* Ends the turn with the answer's error as trouble. */
void kube_object_fail(struct kube_object *o, const struct kube_answer *a);
/* Logs when a trouble begins, changes and ends. "": none. */
void kube_object_set_trouble(struct kube_object *o, const char *text);

enum kube_seen {
    KUBE_SEEN_OLD, /* from before the last write. Only for a while: after a restore versions go back */
    KUBE_SEEN_OWN, /* the version that the last write led to */
    KUBE_SEEN_NEW
};

/* What an object that the watch shows is to the last write. */
enum kube_seen kube_object_see(const struct kube_object *o, const json_t *object);
/* Takes note of it; NULL: its end. */
void kube_object_watched(struct kube_object *o, const json_t *object);
/* Whether the watch has shown something newer than the last write. */
bool kube_object_is_overtaken(const struct kube_object *o);

/* ---- Events (events.k8s.io/v1) about objects, as `kubectl describe` shows them ----
 *
 * At most 512 wait, and at most 20 a second are sent. */

struct kube_events;

struct kube_event {
    const json_t *about; /* the object with metadata.namespace, .name and .uid; borrowed during the call */
    const char *api_version; /* the object's, "v1" */
    const char *kind;
    bool warning;       /* else Normal */
    const char *reason; /* UpperCamelCase, at most 128 bytes */
    const char *action; /* what the controller was doing, at most 128 bytes */
    const char *note;   /* a sentence; cut at 1024 bytes */
};

/* controller: "domain/name", not copied; instance: the pod's name, copied. */
struct kube_events *kube_events_new(struct kube *k, const char *controller, const char *instance);
/* Drops events that wait. */
struct kube_events *kube_events_free(struct kube_events *e);

/* Queues an event. Never fails: a dropped event is counted. */
void kube_events_add(struct kube_events *e, const struct kube_event *event);
uint64_t kube_events_dropped(const struct kube_events *e);

#endif

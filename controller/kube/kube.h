/* A client of one API server with one identity: REST calls on the loop's HTTP client; and on top of it
 * watches, a writer of objects, Events, leader election, and a guard of HTTP servers. All on the loop.
 *
 * Credentials are read again every minute, and after a failed TLS handshake or a 401, when the call is sent
 * once more. While they cannot be read, the last good ones stay in use. Nothing else is retried. */
#pragma once

#include "controller/kube/fight.h"
#include "controller/kube/json.h"
#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/loop.h"

#include <sys/queue.h>

struct http;
struct httpd_guard;
struct kube;
struct kube_call;
struct kube_watch;
struct kube_queue;
struct kube_events;
struct kube_lease;
struct kube_guard;
struct kube_object;

enum { KUBE_FAR_MS = 24 * 3600 * 1000 };

/* The meaning of an API server's answer, from the tables in client.c: callers decide by it. */
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
int64_t kube_backoff_ms(unsigned nth, int64_t min_ms, int64_t max_ms, int64_t retry_after_ms);

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
    /* Gets an answer of 2xx piece by piece, unparsed, once its headers are in: the first may be empty. Counts
     * what it does (loop_spend()), and returns how many bytes it has taken: the others come again in a later
     * turn. May call kube_cancel(). */
    size_t (*on_data)(void *arg, struct str piece);
};

struct kube_answer {
    enum kube_verdict verdict;
    long http_status;       /* 0 without an answer */
    char reason[64];        /* the Status object's: "AlreadyExists"; empty without */
    char why[768];          /* the error for people, one line without credentials; empty on KUBE_OK */
    int64_t retry_after_ms; /* from the header or the Status object; -1 without */
    size_t bytes;           /* of the body */
    json_t *object;         /* the body on KUBE_OK; borrowed, json_incref() to keep. NULL with on_data, and
                             * without the items with on_item */
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
/* The time of the loop's turn. */
mono_ms kube_now(const struct kube *k);
/* Sets the timer to fire in `in_ms`. */
void kube_timer_move(struct loop *l, struct timer *t, int64_t in_ms);

/* Starts a call. A name that is no path segment ends it with KUBE_INVALID. */
struct kube_call *kube_start(struct kube *k, const struct kube_request *rq, kube_done_fn done, void *arg);
/* Cancels a call; `done` is not called. A write may or may not have happened. Takes NULL, returns NULL. */
struct kube_call *kube_cancel(struct kube_call *c);

/* Sets verdict, reason, why (one line of UTF-8) and retry_after_ms: from a Status object, text or nothing; or
 * from the Status object in a watch's ERROR event. */
void kube_status_of_answer(long http_status, struct str body, struct kube_answer *ret);
void kube_status_of_event(const json_t *status, struct kube_answer *ret);

/* ---- Whether the API server answers ----
 *
 * When a call gets no answer, or one of 5xx, the client asks the server itself (/readyz), about every five
 * seconds until any answer but 5xx comes. If the first question gets none, the server is away, and queues,
 * watches and events start nothing. */

enum { KUBE_GRACE_MS = 60 * 1000 }; /* after this an absence is worth reporting */

/* Who waits for the server's return; embedded in its owner. */
struct kube_waiter {
    void (*on_return)(struct kube_waiter *w); /* only moves timers, by kube_return_ms() */
    /* The store went back in time, as found_by has seen; NULL: does not care. Starts no call. */
    void (*on_restore)(struct kube_waiter *w, const void *found_by);
    LIST_ENTRY(kube_waiter) entry;
};

/* Whether the server itself was asked and did not answer. */
bool kube_is_unreachable(const struct kube *k);
/* Milliseconds since the server's last absence began, or may have begun; INT64_MAX without one. */
int64_t kube_absence_ms(const struct kube *k);
/* LIST_REMOVE() ends it. */
void kube_waiter_add(struct kube *k, struct kube_waiter *w);
/* When to go on after the return: in up to 10 s, since a whole fleet does. */
int64_t kube_return_ms(void);

/* ---- Whether the store went back in time, as after a restore of etcd from a backup ----
 *
 * Its versions begin again at an older one, and what is remembered of later ones is wrong: also of objects
 * whose version is the same. An era ends with each such restore, and versions of different eras are never
 * compared. */

/* The number of the era: 1 at the start. */
unsigned kube_era(const struct kube *k);
/* A watch has seen it: a new era begins, and all watches list anew. */
void kube_note_restore(struct kube *k, const struct kube_watch *found_by);

/* ---- The API server's clock ----
 *
 * Our own may be minutes away from it, while those who judge validUntil have theirs beside the API server. So
 * what is written there is in its time, by the `Date` of its answers. That has whole seconds: an offset below
 * 5 s counts as none, and it changes by more than 5 s only, so that nothing is written because of it. */

enum { KUBE_CLOCK_STEP_MS = 5 * 1000, KUBE_CLOCK_SKEWED_MS = 30 * 1000 };

/* The time by the API server's clock; by ours until it has answered. */
unix_ms kube_wall(const struct kube *k);
/* How far its clock is ahead of ours; negative if it is behind. */
int64_t kube_clock_offset_ms(const struct kube *k);
/* Whether the offset is worth telling. */
bool kube_clock_is_skewed(const struct kube *k);
/* The offset after an answer with this `Date`, between these two of our own times. An offset that the answer
 * allows stays, and so it does for a Date that is none. Private to the client. */
int64_t kube_clock_offset_by(int64_t offset_ms, struct str date, unix_ms sent, unix_ms received);

/* ---- Watches: a set of objects, listed page by page and then watched ----
 *
 * A watch keeps only the name and resourceVersion of each object, reports an object once per version, and
 * objects that vanished between two lists as deleted. While the API server is away what is known stays known;
 * the watch continues within 10 s of its return. After a restore from a backup it lists anew and reports each
 * object again. */

struct kube_watch_options {
    const struct kube_resource *resource;
    const char *namespace;      /* NULL: all. Must outlive the watch, like label_selector */
    const char *label_selector; /* NULL: none */
    const char *name;           /* a single object, as resourceNames in a Role allow; NULL: all */
    const char *field_selector; /* without a name; NULL: none */
    struct kube_cut *cut;       /* applied to every object; NULL: none. Must outlive the watch */
    size_t page;                /* objects per page of a list; 0: 100. A page of more than 16 MiB is split */
    /* All run on the loop, must not free the watch, and may be NULL. */
    void (*on_set)(void *arg, json_t *object); /* borrowed; of a list: without apiVersion and kind */
    void (*on_delete)(void *arg, const char *namespace, const char *name);
    void (*on_synced)(void *arg);   /* once: the first list has been reported in full */
    void (*on_restored)(void *arg); /* likewise, each time that the store went back in time */
    void (*on_trouble)(void *arg, const char *text); /* on changes: why there is no news; NULL: works again */
    void *arg;
};

/* Starts in the loop's next turn. */
struct kube_watch *kube_watch_new(struct kube *k, const struct kube_watch_options *o);
struct kube_watch *kube_watch_free(struct kube_watch *w);
/* Sends a new request at once: this watch may hang on a dead connection to a server that answers. */
void kube_watch_hurry(struct kube_watch *w);

bool kube_watch_synced(const struct kube_watch *w);
/* The current trouble; NULL if there is none, or while nothing is known yet. */
const char *kube_watch_trouble(const struct kube_watch *w);
/* Why the last list was refused, such as KUBE_NO_KIND or KUBE_FORBIDDEN; KUBE_OK if it was not. */
enum kube_verdict kube_watch_refused(const struct kube_watch *w);
/* When the last page, event or bookmark came, of which there is one a minute; 0: never. */
unix_ms kube_watch_heard(const struct kube_watch *w);
/* Whether the first list since the start, or since the store went back in time, is not complete yet. */
bool kube_watch_is_first_list(const struct kube_watch *w);
/* Whether every change up to the object's last write has been reported. False if its version is no number. */
bool kube_watch_passed(const struct kube_watch *w, const struct kube_object *o);
/* Whether the object exists, e.g. before it is created. */
bool kube_watch_has(const struct kube_watch *w, const char *namespace, const char *name);
/* Whether version a is newer than b, by number (KEP-5504); others are newer if they differ. */
bool kube_version_newer(const char *a, const char *b);

/* ---- A work queue of keys ----
 *
 * A key is worked on by one at a time, however often it is added, and once more if it was added meanwhile; a
 * failed key is retried after a back-off of its own. While the API server is away no work starts. */

struct kube_queue_options {
    /* Starts the work on a key, which stays where it is until kube_queue_done(); `work` may call that. */
    void (*work)(void *arg, const char *key);
    void *arg;
    struct kube *kube;                  /* whose API server the work needs; NULL: none */
    size_t max_active;                  /* active keys; 0: 8 */
    int64_t min_retry_ms, max_retry_ms; /* 0: 1 s and 5 min */
    unsigned per_second, burst;         /* starts of all keys together; 0: 20 and 50 */
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

/* ---- The writer of objects ----
 *
 * When it is an object's turn in the queue, the queue's work starts a write or ends the turn. The writer
 * sends and counts it, knows it again in the watch, and says when others keep undoing it: a fight. It is over
 * when a write has stood long enough. */

/* What a call of a writer is for: the label `operation` of metrics. */
enum kube_operation {
    KUBE_READ, /* not counted */
    KUBE_WRITE_CREATE,
    KUBE_WRITE_PATCH,
    KUBE_WRITE_STATUS,
    KUBE_WRITE_FINALIZER,
    KUBE_WRITE_DELETE,
    /* Of an object that another has written, or that has lost our label */
    KUBE_WRITE_LABEL,
    KUBE_WRITE_ADOPT,
    KUBE_WRITE_TAKE_OVER,
    KUBE_OPERATIONS
};

/* "create", "take_over", ... */
const char *kube_operation_word(enum kube_operation operation);

struct kube_writer {
    struct kube *kube;
    struct kube_queue *queue;  /* of objects' keys; owned by whoever made it */
    const char *manager;       /* the field manager of its writes */
    const char *kind, *detail; /* for the log: "ManifestWork", and "cluster" for what a key names */
    /* A fight over the object has begun or ended, by o->fight.is_on, or the other writer has become known.
     * Must not free the object or start a call. NULL: the log alone tells */
    void (*on_fight)(void *arg, struct kube_object *o);
    /* Counts a call that has ended. NULL: none */
    void (*count)(void *arg, enum kube_operation operation, const struct kube_answer *a);
    void *arg;
};

/* What a write leads to. By it, one is recognized that writes again what others have undone. */
enum kube_goal_kind {
    KUBE_GOAL_NONE,   /* no write, or one that nobody can undo */
    KUBE_GOAL_STATE,  /* the state of that hash: undone, if the last write led to the same */
    KUBE_GOAL_NEW,    /* a state that the last write did not lead to */
    KUBE_GOAL_AGAIN,  /* the state of the last write: undone */
    KUBE_GOAL_REPAIR, /* what others have changed is put back: undone, if the last write did so, too */
};

struct kube_goal {
    enum kube_goal_kind kind;
    uint64_t hash; /* of a KUBE_GOAL_STATE; else 0 */
};
#define KUBE_NO_GOAL ((struct kube_goal){KUBE_GOAL_NONE, 0})

/* What is known of an object's writes; embedded in its owner. Read-only but for the functions below. */
struct kube_object {
    struct kube_writer *writer;
    const char *key; /* in the queue; not owned */
    struct kube_call *call;
    enum kube_operation operation; /* of the call, or of the last one */
    void (*done)(struct kube_object *o, struct kube_answer *a);
    struct kube_goal sent;    /* of the call under way */
    struct kube_goal written; /* of the last write; KUBE_GOAL_NONE: none, or unknown */
    mono_ms written_at;
    char version[32]; /* resourceVersion after the last write; empty: the answer had none */
    char watched[32]; /* the newest that the watch has shown */
    unsigned call_era, version_era, watched_era; /* kube_era() of the call under way and of each of these */
    bool vanished;                               /* the watch has shown its end during the call */
    unsigned undone;                             /* how often in a row others undid what was written */
    int64_t wait_ms;                             /* because of that, after this turn; -1: no need */
    unsigned failures;                           /* in a row, undone writes among them */
    char *trouble;                               /* why it is not written; NULL when it is */
    const char *subresource;                     /* of the last write; "": the object itself */
    struct kube_fight fight;
    struct timer settle; /* runs while the fight is on */
};

void kube_object_init(struct kube_object *o, struct kube_writer *w, const char *key);
/* Cancels the call, and ends the turn. */
void kube_object_done(struct kube_object *o);

/* Starts a call of the object's turn: the first one, or another one from `done`, which otherwise ends the
 * turn. */
void kube_object_call(struct kube_object *o, enum kube_operation operation, const struct kube_request *rq,
                      struct kube_goal goal, void (*done)(struct kube_object *o, struct kube_answer *a));
/* Ends the turn. If not ok, or if the write was undone too often, the next one comes after a back-off. */
void kube_object_end(struct kube_object *o, bool ok, int64_t retry_after_ms);
/* Ends the turn with the answer's error as trouble. */
void kube_object_fail(struct kube_object *o, const struct kube_answer *a);
/* Logs when a trouble begins, changes and ends. "": none. */
void kube_object_set_trouble(struct kube_object *o, const char *text);

/* What an object that the watch shows is to the last write. */
enum kube_seen {
    KUBE_SEEN_OLD, /* from before it. Only for a while: a restore may go unnoticed */
    KUBE_SEEN_OWN, /* the version that it led to */
    KUBE_SEEN_NEW
};

/* The version after the last write; "" if unknown, or of an earlier era. */
const char *kube_object_version(const struct kube_object *o);
enum kube_seen kube_object_see(const struct kube_object *o, const json_t *object);
/* If it was changed after our last write: looks for the writer who undoes ours. */
void kube_object_look_for_rival(struct kube_object *o, const json_t *object);
/* Takes note of it, also of a rival; NULL: its end. */
void kube_object_watched(struct kube_object *o, const json_t *object);
/* Whether the watch has shown something newer than the last write. */
bool kube_object_is_overtaken(const struct kube_object *o);

/* ---- Events (events.k8s.io/v1) about objects, as `kubectl describe` shows them ----
 *
 * At most 512 wait, and at most 20 a second are sent. */

struct kube_event {
    const json_t *about; /* the object with metadata.namespace, .name and .uid; borrowed during the call */
    const char *api_version, *kind; /* the object's: "v1" */
    bool warning;                   /* else Normal */
    const char *reason, *action;    /* UpperCamelCase, and what the controller was doing: 128 bytes each */
    const char *note;               /* a sentence; cut at 1024 bytes */
};

/* controller: "domain/name", not copied; instance: the pod's name, copied. */
struct kube_events *kube_events_new(struct kube *k, const char *controller, const char *instance);
/* Drops events that wait. */
struct kube_events *kube_events_free(struct kube_events *e);
/* Queues an event. Never fails: a dropped event is counted. */
void kube_events_add(struct kube_events *e, const struct kube_event *event);
uint64_t kube_events_dropped(const struct kube_events *e);

/* ---- Leader election by a Lease, with client-go's rules ----
 *
 * A candidate takes it if it is free, or has not changed for its duration of 15 s by the candidate's own
 * clock: clocks need not agree. The holder renews it every 2 s, and stops leading if it cannot do so for
 * 10 s. A standby looks every second. */

enum { KUBE_IDENTITY_BYTES = 300 };

struct kube_lease_options {
    const char *namespace, *name; /* not owned, nor is identity */
    const char *identity;         /* unique per process: pod name and a random part */
    /* Also once when another leads at the start. Must not free the lease. */
    void (*on_change)(void *arg, bool leading);
    void *arg;
};

/* The pod's or the host's name, and a random part that tells processes apart. */
void kube_lease_make_identity(char out[KUBE_IDENTITY_BYTES]);
/* Logs each change. Starts in the loop's next turn. */
struct kube_lease *kube_lease_new(struct kube *k, const struct kube_lease_options *o);
/* Does not release the Lease. */
struct kube_lease *kube_lease_free(struct kube_lease *l);

/* Whether this process is the leader now, by the loop's time. */
bool kube_lease_leading(const struct kube_lease *l);
/* The holder as last seen; "" if none or unknown. */
const char *kube_lease_holder(const struct kube_lease *l);
/* Why the last read or write failed; NULL if it did not. */
const char *kube_lease_trouble(const struct kube_lease *l);
/* Stops leading at once and for good, and releases the Lease. `done` (may be NULL) is called when that has
 * ended, successfully or not, after at most 5 s. */
void kube_lease_release(struct kube_lease *l, void (*done)(void *arg), void *arg);

/* ---- A guard of HTTP servers ----
 *
 * A request needs a bearer token (TokenReview) or a client certificate whose user may, by the API server's
 * RBAC, use the nonResourceURL of its path (SubjectAccessReview). Answers are cached. */

/* What the user must be allowed for a path. String literals. */
struct kube_path_right {
    const char *path; /* NULL: all other paths, the last of a table */
    const char *verb, *url;
};

/* cache_ttl_ms: of "allowed"; "refused" is cached for as long, but at most ten seconds. timeout_ms: of both
 * questions together. rights: NULL: get /metrics, post /-/reload, and get /status for all other paths. They
 * and the client must outlive the guard. */
struct kube_guard *kube_guard_new(struct kube *k, int64_t cache_ttl_ms, int64_t timeout_ms,
                                  const struct kube_path_right *rights);
/* After the server was stopped. Takes NULL, returns NULL. */
struct kube_guard *kube_guard_free(struct kube_guard *g);
/* For httpd_options. NULL for NULL. */
const struct httpd_guard *kube_guard_httpd(const struct kube_guard *g);

/* ---- The address of an API server and the credentials for it. Private to the client ----
 *
 * From a kubeconfig (v1, without exec plugins, auth providers and impersonation) or a pod's service account,
 * as a snapshot of all files, so that a certificate matches its key; rotation means reading a new one. */

struct kube_config {
    char *server;                /* "https://host:port/prefix", without a trailing slash */
    char *namespace;             /* of the context; NULL without */
    char *tls_server_name;       /* the name in the certificate; NULL: the URL's host */
    char *proxy;                 /* NULL: from the environment */
    bool insecure;               /* the server's certificate is not verified */
    struct buf ca;               /* PEM; empty: the system's CAs */
    struct buf cert, key, token; /* empty without */
    uint64_t fingerprint;        /* a hash of the above, seeded per process */
    unsigned refs;
};

/* Reads the kubeconfig at a path; NULL: the pod's service account in pod_dir, of which NULL is the usual one.
 * NULL with the error, one line without secrets, in `why`, which is empty otherwise. */
struct kube_config *kube_config_read(const char *kubeconfig, const char *pod_dir, char why[512]);
/* The same from the text of a kubeconfig. Relative paths start at dir; NULL: files are not allowed. */
struct kube_config *kube_config_parse(struct str text, const char *dir, char why[512]);
/* Drops one of `refs`; secrets are wiped with the last. Takes NULL, returns NULL. */
struct kube_config *kube_config_unref(struct kube_config *c);

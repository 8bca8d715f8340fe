/* Owns a queue whose keys are the events themselves, as JSON, its one call under way, and how many Events
 * objects have had. On the loop, called by whoever computes conditions. Nobody waits for an Event, and none
 * is sent twice on purpose: one that the API server refuses is counted and dropped, and so is one too many
 * about an object. */
#include "controller/kube/events.h"

#include "controller/kube/answer.h"
#include "controller/kube/client.h"
#include "controller/kube/json.h"
#include "controller/kube/queue.h"
#include "controller/kube/request.h"
#include "controller/kube/resource.h"
#include "controller/kube/server_clock.h"
#include "controller/kube/time.h"
#include "controller/kube/verdict.h"
#include "exporter/base/alloc.h"
#include "exporter/base/clock.h"
#include "exporter/base/hash.h"
#include "exporter/base/invariant.h"
#include "exporter/base/random.h"
#include "exporter/base/utf8.h"

#include <stdio.h>

enum {
    MAX_WAITING = 512,
    MAX_RETRY_MS = 30 * 1000,
    NOTE_BYTES = 1024,
    WORD_BYTES = 128,
    OBJECTS = 128,       /* whose Events are counted */
    BURST = 25,          /* Events about one of them at once, */
    EACH_MS = 10 * 1000, /* then one in this time */
};

/* How many more Events an object may have: a bucket of BURST tokens. */
struct event_bucket {
    uint64_t object; /* event_object(); 0: none */
    mono_ms full_at; /* when all its tokens are back */
};

struct kube_events {
    struct kube *kube;
    const char *controller;
    char *instance;
    struct kube_queue *queue;
    const char *sending; /* the active key */
    struct kube_call *call;
    struct event_bucket buckets[OBJECTS];
    uint64_t dropped;
};

uint64_t kube_events_dropped(const struct kube_events *e)
{
    return e->dropped;
}

static void event_on_sent(void *arg, struct kube_answer *a)
{
    struct kube_events *e = arg;
    bool transient = a->verdict == KUBE_RETRY || a->verdict == KUBE_UNAUTHORIZED;

    e->call = NULL;
    /* KUBE_EXISTS: an earlier answer was lost. */
    e->dropped += !transient && a->verdict != KUBE_OK && a->verdict != KUBE_EXISTS;
    kube_queue_done(e->queue, e->sending, !transient, a->retry_after_ms);
}

static void event_post(void *arg, const char *text)
{
    struct kube_events *e = arg;
    json_auto_t *event = json_loads(text, 0, NULL);
    const struct kube_request rq = {
        .method = KUBE_CREATE, .resource = &kube_events, .namespace = kube_namespace(event), .body = event};

    invariant(!e->call); /* the queue has one active key */
    e->sending = text;
    e->call = kube_start(e->kube, &rq, event_on_sent, e);
}

struct kube_events *kube_events_new(struct kube *k, const char *controller, const char *instance)
{
    struct kube_events *e = xcalloc(1, sizeof(*e));
    const struct kube_queue_options o = {
        .work = event_post, .arg = e, .kube = k, .max_active = 1, .max_retry_ms = MAX_RETRY_MS};

    e->kube = k;
    e->controller = controller;
    e->instance = str_dup(utf8_cut(str_of(instance), WORD_BYTES));
    e->queue = kube_queue_new(kube_loop(k), &o);
    return e;
}

struct kube_events *kube_events_free(struct kube_events *e)
{
    if (!e)
        return NULL;
    (void)kube_cancel(e->call);
    (void)kube_queue_free(e->queue);
    free(e->instance);
    free(e);
    return NULL;
}

/* Unique, and begins with the object's. */
static char *event_name(const json_t *about)
{
    return xasprintf("%.200s.%016llx", kube_name(about), (unsigned long long)rand_u64());
}

static void event_put_regarding(json_t *event, const struct kube_event *ev, const char *namespace)
{
    json_t *regarding = kube_set_object(event, "regarding");

    kube_set_str(regarding, "apiVersion", ev->api_version);
    kube_set_str(regarding, "kind", ev->kind);
    kube_set_str(regarding, "namespace", namespace);
    kube_set_str(regarding, "name", kube_name(ev->about));
    kube_set_str(regarding, "uid", kube_uid(ev->about));
}

static char *event_text(const struct kube_events *e, const struct kube_event *ev)
{
    /* Events of cluster-scoped objects are in "default". */
    const char *namespace = *kube_namespace(ev->about) ? kube_namespace(ev->about) : "default";
    CLEANUP(cleanup_free) char *name = event_name(ev->about);
    json_auto_t *event = kube_resource_object(&kube_events, namespace, name);
    char now[KUBE_TIME_BYTES];

    event_put_regarding(event, ev, namespace);
    kube_micro_time_format(kube_wall(e->kube), now);
    kube_set_str(event, "eventTime", now);
    kube_set_str(event, "type", ev->warning ? "Warning" : "Normal");
    kube_set(event, "reason", kube_line(ev->reason, WORD_BYTES));
    kube_set(event, "action", kube_line(ev->action, WORD_BYTES));
    kube_set(event, "note", kube_line(ev->note, NOTE_BYTES));
    kube_set_str(event, "reportingController", e->controller);
    kube_set_str(event, "reportingInstance", e->instance);
    return json_dumps(event, JSON_COMPACT);
}

static uint64_t event_object(const struct kube_event *ev)
{
    const char *const parts[] = {ev->kind, kube_namespace(ev->about), kube_name(ev->about),
                                 kube_uid(ev->about)};
    uint64_t h = 0;

    for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
        h = hash_chain(h, str_of(parts[i]));
    return h;
}

/* The object's bucket. Of more objects than there are buckets, the fullest one is taken: it has the least to
 * forget. */
static struct event_bucket *event_bucket(struct kube_events *e, uint64_t object)
{
    struct event_bucket *fullest = &e->buckets[0];

    for (size_t i = 0; i < OBJECTS; i++) {
        if (e->buckets[i].object == object)
            return &e->buckets[i];
        if (mono_before(e->buckets[i].full_at, fullest->full_at))
            fullest = &e->buckets[i];
    }
    *fullest = (struct event_bucket){.object = object};
    return fullest;
}

/* Something that comes and goes all the time would fill the store with Events. */
static bool event_take_token(struct kube_events *e, uint64_t object)
{
    struct event_bucket *b = event_bucket(e, object);
    mono_ms now = kube_now(e->kube), full_at;

    full_at = mono_add(mono_before(now, b->full_at) ? b->full_at : now, EACH_MS);
    if (mono_diff(now, full_at) > (int64_t)BURST * EACH_MS)
        return false;
    b->full_at = full_at;
    return true;
}

void kube_events_add(struct kube_events *e, const struct kube_event *ev)
{
    CLEANUP(cleanup_free) char *text = NULL;

    if (kube_queue_length(e->queue) >= MAX_WAITING || !event_take_token(e, event_object(ev))) {
        e->dropped++;
        return;
    }
    text = event_text(e, ev);
    kube_queue_add(e->queue, text);
}

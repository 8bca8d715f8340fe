/* Owns a ring of events, the first of which is being sent, and a token bucket for each object. */
#include "controller/kube/event.h"

#include "controller/kube/client.h"
#include "controller/kube/json.h"
#include "exporter/base/backoff.h"
#include "exporter/base/clock.h"
#include "exporter/base/hash.h"
#include "exporter/base/loop.h"
#include "exporter/base/utf8.h"

#include <stdio.h>

enum {
    MAX_WAITING = 512,
    MAX_TRIES = 4,
    MIN_RETRY_MS = 1000,
    MAX_RETRY_MS = 30 * 1000,
    OBJECTS = 128,
    BURST = 25,          /* events about one object at once ... */
    EACH_MS = 10 * 1000, /* ... and then one per this time */
    NOTE_BYTES = 1024,
    WORD_BYTES = 128,
};

struct kube_events {
    struct kube *kube;
    char *controller, *instance;
    json_t *waiting[MAX_WAITING];
    size_t first, n;
    unsigned tries; /* of the first */
    struct kube_call *call;
    struct timer timer;
    struct kube_waiter waiter;
    struct {
        uint64_t object;
        mono_ms full_at; /* when its bucket is full again */
    } limits[OBJECTS];
    uint64_t dropped;
    char why[768];
};

static void event_on_timer(struct timer *t);
static void event_on_return(struct kube_waiter *w);

struct kube_events *kube_events_new(struct kube *k, const char *controller, const char *instance)
{
    struct kube_events *e = xcalloc(1, sizeof(*e));

    e->kube = k;
    e->timer.fn = event_on_timer;
    e->controller = str_dup(str_of(controller));
    e->instance = str_dup(utf8_cut(str_of(instance), WORD_BYTES));
    e->waiter.on_return = event_on_return;
    kube_waiter_add(k, &e->waiter);
    return e;
}

struct kube_events *kube_events_free(struct kube_events *e)
{
    if (!e)
        return NULL;
    (void)kube_cancel(e->call);
    kube_waiter_remove(&e->waiter);
    loop_timer_clear(kube_loop(e->kube), &e->timer);
    for (size_t i = 0; i < e->n; i++)
        json_decref(e->waiting[(e->first + i) % MAX_WAITING]);
    free(e->controller);
    free(e->instance);
    free(e);
    return NULL;
}

uint64_t kube_events_dropped(const struct kube_events *e, const char **ret_why)
{
    if (ret_why)
        *ret_why = e->why;
    return e->dropped;
}

static void event_drop(struct kube_events *e, const char *why)
{
    e->dropped++;
    (void)snprintf(e->why, sizeof(e->why), "%s", why);
}

static void event_remove_first(struct kube_events *e)
{
    json_decref(e->waiting[e->first]);
    e->first = (e->first + 1) % MAX_WAITING;
    e->n--;
    e->tries = 0;
}

static void event_next_in(struct kube_events *e, int64_t ms)
{
    kube_timer_move(kube_loop(e->kube), &e->timer, ms);
}

static void event_on_sent(void *arg, struct kube_answer *a)
{
    struct kube_events *e = arg;
    bool transient = a->verdict == KUBE_RETRY || a->verdict == KUBE_UNAUTHORIZED;

    e->call = NULL;
    if (transient && ++e->tries < MAX_TRIES) {
        event_next_in(e, kube_backoff_ms(e->tries, MIN_RETRY_MS, MAX_RETRY_MS, a->retry_after_ms));
        return;
    }
    /* KUBE_EXISTS: an earlier answer was lost. */
    if (a->verdict != KUBE_OK && a->verdict != KUBE_EXISTS)
        event_drop(e, a->why);
    event_remove_first(e);
    event_next_in(e, 0);
}

static void event_send_first(struct kube_events *e)
{
    const json_t *event = e->waiting[e->first];
    const struct kube_request rq = {
        .method = KUBE_CREATE, .resource = &kube_events, .namespace = kube_namespace(event), .body = event};

    e->call = kube_start(e->kube, &rq, event_on_sent, e);
}

static void event_on_timer(struct timer *t)
{
    struct kube_events *e = CONTAINER_OF(t, struct kube_events, timer);

    if (e->n && !e->call && !kube_is_away(e->kube))
        event_send_first(e);
}

static void event_on_return(struct kube_waiter *w)
{
    struct kube_events *e = CONTAINER_OF(w, struct kube_events, waiter);

    e->tries = 0;
    event_next_in(e, kube_return_ms());
}

static uint64_t event_object_hash(const struct kube_event *ev)
{
    const char *const parts[] = {ev->kind, kube_namespace(ev->about), kube_name(ev->about),
                                 kube_uid(ev->about)};
    uint64_t h = 0;

    for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
        h = hash_chain(h, str_of(parts[i]));
    return h;
}

/* A token bucket per object. If there are too many objects, the fullest bucket is reused: it has the least
 * to forget. */
static bool event_take_token(struct kube_events *e, uint64_t object)
{
    mono_ms now = loop_now(kube_loop(e->kube)), full_at = now;
    size_t at = 0;

    for (size_t i = 0; i < OBJECTS && e->limits[at].object != object; i++)
        if (e->limits[i].object == object || mono_before(e->limits[i].full_at, e->limits[at].full_at))
            at = i;
    if (e->limits[at].object == object && mono_before(now, e->limits[at].full_at))
        full_at = e->limits[at].full_at;
    full_at = mono_add(full_at, EACH_MS);
    if (mono_diff(now, full_at) > (int64_t)BURST * EACH_MS)
        return false;
    e->limits[at].object = object;
    e->limits[at].full_at = full_at;
    return true;
}

static json_t *event_cut(const char *s, size_t max)
{
    struct str text = str_of(s);

    text.n = utf8_valid_prefix(text);
    text = utf8_cut(text, max);
    return json_stringn(text.p, text.n);
}

/* Events of cluster-scoped objects are in "default". */
static const char *event_namespace(const struct kube_event *ev)
{
    return *kube_namespace(ev->about) ? kube_namespace(ev->about) : "default";
}

static json_t *event_metadata(const struct kube_event *ev)
{
    return json_pack("{s:o, s:s}", "name",
                     json_sprintf("%.200s.%016llx", kube_name(ev->about), (unsigned long long)rand_u64()),
                     "namespace", event_namespace(ev));
}

static json_t *event_regarding(const struct kube_event *ev)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:s}", "apiVersion", ev->api_version, "kind", ev->kind,
                     "namespace", event_namespace(ev), "name", kube_name(ev->about), "uid",
                     kube_uid(ev->about));
}

static json_t *event_build(const struct kube_events *e, const struct kube_event *ev)
{
    char now[KUBE_TIME_BYTES];

    kube_micro_time_format(loop_wall(kube_loop(e->kube)), now);
    return json_pack("{s:s, s:s, s:o, s:o, s:s, s:s, s:o, s:o, s:o, s:s, s:s}", "apiVersion",
                     "events.k8s.io/v1", "kind", "Event", "metadata", event_metadata(ev), "regarding",
                     event_regarding(ev), "eventTime", now, "type", ev->warning ? "Warning" : "Normal",
                     "reason", event_cut(ev->reason, WORD_BYTES), "action", event_cut(ev->action, WORD_BYTES),
                     "note", event_cut(ev->note, NOTE_BYTES), "reportingController", e->controller,
                     "reportingInstance", e->instance);
}

void kube_events_add(struct kube_events *e, const struct kube_event *ev)
{
    if (e->n == MAX_WAITING) {
        event_drop(e, "too many events waiting");
    } else if (!event_take_token(e, event_object_hash(ev))) {
        event_drop(e, "too many events about one object");
    } else {
        e->waiting[(e->first + e->n++) % MAX_WAITING] = event_build(e, ev);
        if (e->n == 1)
            event_next_in(e, 0);
    }
}

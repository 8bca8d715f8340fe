/* Owns a ring of events that wait, the first of which is under way, and how many were sent lately about
 * which object. */
#include "controller/kube/event.h"

#include "controller/kube/client_internal.h"
#include "controller/kube/time.h"
#include "exporter/base/hash.h"
#include "exporter/base/rand.h"
#include "exporter/base/utf8.h"

#include <errno.h>
#include <stdio.h>

enum {
    MAX_WAITING = 512,
    MAX_TRIES = 4,
    MIN_RETRY_MS = 1000,
    MAX_RETRY_MS = 30 * 1000,
    OBJECTS = 128,
    BURST = 25, /* so many about one object at once, */
    EACH_MS = 10 * 1000 /* and then one in this time */,
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
    struct timer timer; /* always set */
    struct {
        uint64_t object;
        mono_ms full_at; /* when it may have a whole burst again */
    } limits[OBJECTS];
    uint64_t dropped;
    char why[768];
};

static void on_timer(struct timer *t);

int kube_events_new(struct kube_events **ret, struct kube *k, const char *controller, const char *instance)
{
    CLEANUP(cleanup_kube_events_free) struct kube_events *e = calloc(1, sizeof(*e));
    struct loop *l = kube_loop(k);

    if (!e)
        return -ENOMEM;
    e->kube = k;
    e->timer.fn = on_timer;
    e->controller = str_dup(str_of(controller));
    e->instance = str_dup(utf8_cut(str_of(instance), WORD_BYTES));
    if (!e->controller || !e->instance ||
        loop_timer_set(l, &e->timer, mono_add(loop_now(l), KUBE_FAR_MS)) < 0)
        return -ENOMEM;
    *ret = TAKE_PTR(e);
    return 0;
}

struct kube_events *kube_events_free(struct kube_events *e)
{
    if (!e)
        return NULL;
    (void)kube_cancel(e->call);
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

static void drop(struct kube_events *e, const char *why)
{
    e->dropped++;
    (void)snprintf(e->why, sizeof(e->why), "%s", why);
}

static void leave_first(struct kube_events *e)
{
    json_decref(e->waiting[e->first]);
    e->first = (e->first + 1) % MAX_WAITING;
    e->n--;
    e->tries = 0;
}

static void next_in(struct kube_events *e, int64_t ms)
{
    kube_timer_move(kube_loop(e->kube), &e->timer, ms);
}

static void on_sent(void *arg, struct kube_answer *a)
{
    struct kube_events *e = arg;
    bool passes = a->verdict == KUBE_RETRY || a->verdict == KUBE_UNAUTHORIZED;

    e->call = NULL;
    if (passes && ++e->tries < MAX_TRIES) {
        next_in(e, kube_backoff_ms(e->tries, MIN_RETRY_MS, MAX_RETRY_MS, a->retry_after_ms));
        return;
    }
    /* One that exists is ours: its answer was lost. */
    if (a->verdict != KUBE_OK && a->verdict != KUBE_EXISTS)
        drop(e, a->why);
    leave_first(e);
    next_in(e, 0);
}

static void send_first(struct kube_events *e)
{
    const json_t *event = e->waiting[e->first];
    const struct kube_request rq = {
        .method = KUBE_CREATE, .resource = &kube_events, .namespace = kube_namespace(event), .body = event};
    int r = kube_start(&e->call, e->kube, &rq, on_sent, e);

    if (r < 0) {
        drop(e, strerror(-r));
        leave_first(e);
        next_in(e, 0);
    }
}

static void on_timer(struct timer *t)
{
    struct kube_events *e = CONTAINER_OF(t, struct kube_events, timer);

    next_in(e, KUBE_FAR_MS);
    if (e->n && !e->call)
        send_first(e);
}

static uint64_t hash_of(const struct kube_event *ev)
{
    const char *const parts[] = {ev->kind, kube_namespace(ev->about), kube_name(ev->about),
                                 kube_uid(ev->about)};
    uint64_t h = 0;

    for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
        h = hash_chain(h, str_of(parts[i]));
    return h;
}

/* A bucket of tokens for each object. Where there are too many objects, the fullest is given up: it has
 * most to give anyway. */
static bool take_token(struct kube_events *e, uint64_t object)
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

static json_t *cut(const char *s, size_t max)
{
    struct str text = str_of(s);

    text.n = utf8_valid_prefix(text);
    text = utf8_cut(text, max);
    return json_stringn(text.p, text.n);
}

/* An object without a namespace has its events in "default". */
static const char *namespace_of(const struct kube_event *ev)
{
    return *kube_namespace(ev->about) ? kube_namespace(ev->about) : "default";
}

static json_t *metadata(const struct kube_event *ev)
{
    return json_pack("{s:o, s:s}", "name",
                     json_sprintf("%.200s.%016llx", kube_name(ev->about), (unsigned long long)rand_u64()),
                     "namespace", namespace_of(ev));
}

static json_t *regarding(const struct kube_event *ev)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:s}", "apiVersion", ev->api_version, "kind", ev->kind,
                     "namespace", namespace_of(ev), "name", kube_name(ev->about), "uid", kube_uid(ev->about));
}

static json_t *build(const struct kube_events *e, const struct kube_event *ev)
{
    char now[KUBE_TIME_BYTES];

    kube_micro_time_format(loop_wall(kube_loop(e->kube)), now);
    return json_pack("{s:s, s:s, s:o, s:o, s:s, s:s, s:o, s:o, s:o, s:s, s:s}", "apiVersion",
                     "events.k8s.io/v1", "kind", "Event", "metadata", metadata(ev), "regarding",
                     regarding(ev), "eventTime", now, "type", ev->warning ? "Warning" : "Normal", "reason",
                     cut(ev->reason, WORD_BYTES), "action", cut(ev->action, WORD_BYTES), "note",
                     cut(ev->note, NOTE_BYTES), "reportingController", e->controller, "reportingInstance",
                     e->instance);
}

void kube_events_add(struct kube_events *e, const struct kube_event *ev)
{
    json_t *event;

    if (e->n == MAX_WAITING) {
        drop(e, "too many events wait");
        return;
    }
    if (!take_token(e, hash_of(ev))) {
        drop(e, "too many events about one object");
        return;
    }
    event = build(e, ev);
    if (!event) {
        drop(e, "out of memory");
        return;
    }
    e->waiting[(e->first + e->n++) % MAX_WAITING] = event;
    if (e->n == 1)
        next_in(e, 0);
}

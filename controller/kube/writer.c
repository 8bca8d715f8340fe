#include "controller/kube/writer.h"

#include "controller/kube/json.h"
#include "controller/kube/verdict.h"
#include "controller/kube/watch.h"
#include "exporter/base/clock.h"
#include "exporter/base/log.h"
#include "exporter/base/loop.h"

#include <errno.h>
#include <stdio.h>

enum {
    SAME_MS = 10 * 60 * 1000, /* after which the same write again undoes nobody's */
    MIN_WAIT_MS = 500,
    MAX_WAIT_MS = 60 * 1000,
    UNDONE_LOGGED = 3,
    OLD_MS = 60 * 1000,
};

void kube_object_init(struct kube_object *o, struct kube_writer *w, const char *key)
{
    *o = (struct kube_object){.writer = w, .key = key, .wait_ms = -1};
}

void kube_object_done(struct kube_object *o)
{
    if (!o->call)
        return;
    o->call = kube_cancel(o->call);
    kube_queue_done(o->writer->queue, o->key, true, -1);
}

void kube_object_set_trouble(struct kube_object *o, const char *text)
{
    const struct kube_writer *w = o->writer;
    char what[64];

    if (strncmp(o->trouble, text, sizeof(o->trouble) - 1) == 0)
        return;
    (void)snprintf(what, sizeof(what), "%s %s", w->kind, *text ? "not written" : "written again");
    if (*text)
        log_warn(what, L_STR(w->detail, o->key), L_STR("err", text));
    else
        log_info(what, L_STR(w->detail, o->key));
    (void)snprintf(o->trouble, sizeof(o->trouble), "%s", text);
}

void kube_object_end(struct kube_object *o, bool ok, int64_t retry_after_ms)
{
    bool undone = ok && o->wait_ms >= 0;

    o->failures = ok && !undone ? 0 : o->failures + 1;
    kube_queue_done(o->writer->queue, o->key, ok && !undone, undone ? o->wait_ms : retry_after_ms);
}

void kube_object_fail(struct kube_object *o, const struct kube_answer *a)
{
    kube_object_set_trouble(o, a->why);
    kube_object_end(o, false, a->retry_after_ms);
}

static void object_take_write(struct kube_object *o, const json_t *object)
{
    mono_ms now = loop_now(kube_loop(o->writer->kube));
    bool undone;

    (void)snprintf(o->version, sizeof(o->version), "%s", kube_version(object));
    if (!*o->version)
        return;
    undone = o->sent == o->written && mono_diff(o->written_at, now) < SAME_MS;

    o->undone = undone ? o->undone + 1 : 0;
    o->wait_ms = undone ? kube_backoff_ms(o->undone, MIN_WAIT_MS, MAX_WAIT_MS, -1) : -1;
    if (o->undone == UNDONE_LOGGED)
        log_warn("another writer keeps undoing our writes, backing off", L_STR("kind", o->writer->kind),
                 L_STR("name", o->key));
    o->written = o->sent;
    o->written_at = now;
}

static void object_on_answer(void *arg, struct kube_answer *a)
{
    struct kube_object *o = arg;
    const struct kube_writer *w = o->writer;

    o->call = NULL;
    if (w->count && o->operation)
        w->count(w->arg, o->operation, a);
    if (a->verdict == KUBE_OK && o->sent)
        object_take_write(o, a->object);
    o->done(o, a);
}

void kube_object_call(struct kube_object *o, const char *operation, const struct kube_request *rq,
                      uint64_t state, void (*done)(struct kube_object *o, struct kube_answer *a))
{
    bool writes = rq->method == KUBE_CREATE || rq->method == KUBE_MERGE_PATCH;
    struct kube_request request = *rq;
    int r = -ENOMEM;

    request.query = writes ? o->writer->query : rq->query;
    o->operation = operation;
    o->sent = state;
    o->done = done;
    o->wait_ms = -1;
    if (state)
        o->vanished = false;
    if (rq->method == KUBE_CREATE)
        o->watched[0] = '\0'; /* that of an earlier one */
    if (!writes || rq->body || rq->body_text.n)
        r = kube_start(&o->call, o->writer->kube, &request, object_on_answer, o);
    if (r < 0) {
        kube_object_set_trouble(o, strerror(-r));
        kube_object_end(o, false, -1);
    }
}

enum kube_seen kube_object_see(const struct kube_object *o, const json_t *object)
{
    const char *version = kube_version(object);

    if (!*o->version)
        return KUBE_SEEN_NEW;
    if (strcmp(version, o->version) == 0)
        return KUBE_SEEN_OWN;
    return kube_version_newer(o->version, version) &&
                   mono_diff(o->written_at, loop_now(kube_loop(o->writer->kube))) < OLD_MS
               ? KUBE_SEEN_OLD
               : KUBE_SEEN_NEW;
}

void kube_object_watched(struct kube_object *o, const json_t *object)
{
    o->vanished = !object && o->call;
    (void)snprintf(o->watched, sizeof(o->watched), "%s", kube_version(object));
}

bool kube_object_is_overtaken(const struct kube_object *o)
{
    return o->vanished || (*o->watched && *o->version && kube_version_newer(o->watched, o->version));
}

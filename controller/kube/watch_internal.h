/* Shared by the files of a watch, each of which uses those before it: watch_objects.c (what is known),
 * watch_state.c (troubles and timer), watch_list.c and watch_stream.c (the two kinds of requests),
 * watch.c. Included nowhere else. */
#ifndef DS_KUBE_WATCH_INTERNAL_H
#define DS_KUBE_WATCH_INTERNAL_H

#include "controller/kube/client.h"
#include "controller/kube/client_internal.h"
#include "controller/kube/json.h"
#include "controller/kube/lines.h"
#include "controller/kube/verdict.h"
#include "controller/kube/watch.h"
#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/loop.h"

enum { VERSION_BYTES = 128, WATCH_MIN_RETRY_MS = 1000 };

struct kube_watch {
    struct kube *kube;
    struct kube_watch_options o; /* its strings are the copies below */
    char *namespace, *label_selector, *field_selector;
    struct kube_call *call; /* a page of the list, or the stream of events */
    struct timer timer;     /* set while the watch lives, so that moving it cannot fail */
    struct kube_waiter waiter;
    json_t *known;               /* "namespace/name" → resourceVersion */
    json_t *listed;              /* likewise, from the list under way */
    char version[VERSION_BYTES]; /* to resume from */
    /* The list */
    bool need_list;
    bool whole;      /* without pages, after a continue token expired */
    char *next_page; /* continue token; NULL for the first page */
    size_t page;
    unsigned list_failures;
    bool lacks_kind;
    /* The stream */
    struct lines lines;
    mono_ms opened;
    bool open, has_event;
    unsigned stream_failures;

    bool synced;
    unix_ms heard;
    char trouble[768];
    unsigned busy; /* entries from the loop under way */
    bool dead;     /* freed from one of its callbacks */
};

/* ---- watch_objects.c ---- */

/* Reports an object of a list if its version differs from the known one, or of an event if it is newer. A
 * callback may have freed the watch (w->dead). -EINVAL for an object without name or version; -ENOMEM,
 * when nothing was reported. */
MUST_USE int kube_watch_set(struct kube_watch *w, json_t *object, bool listed);
MUST_USE int kube_watch_delete(struct kube_watch *w, const json_t *object);
/* The list is complete: reports known objects that it lacks as deleted. */
void kube_watch_sweep(struct kube_watch *w);
/* Moves the version to resume from forward. False for an invalid version. */
bool kube_watch_advance(struct kube_watch *w, const char *version);

/* ---- watch_state.c ---- */

/* Each entry from the loop is between these two, since callbacks may free the watch. */
void kube_watch_enter(struct kube_watch *w);
void kube_watch_leave(struct kube_watch *w);
/* The API server answered. */
void kube_watch_hear(struct kube_watch *w);
/* NULL: none. */
void kube_watch_set_trouble(struct kube_watch *w, const char *text);
/* Schedules the next request. */
void kube_watch_again(struct kube_watch *w, int64_t ms);
void kube_watch_retry(struct kube_watch *w, unsigned failures, int64_t retry_after_ms);
/* A request for the watched objects; the query is borrowed. */
struct kube_request kube_watch_request(const struct kube_watch *w, const char *query);

/* ---- watch_list.c and watch_stream.c: each ends by scheduling the next request ---- */

void kube_watch_start_list(struct kube_watch *w);
void kube_watch_start_stream(struct kube_watch *w);

#endif

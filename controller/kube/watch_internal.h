/* What the files of a watch share; nothing else includes it. */
#ifndef DS_KUBE_WATCH_INTERNAL_H
#define DS_KUBE_WATCH_INTERNAL_H

#include "controller/kube/client_internal.h"
#include "controller/kube/lines.h"
#include "controller/kube/watch.h"

enum { VERSION_BYTES = 128 };

struct kube_watch {
    struct kube *kube;
    struct kube_watch_options o; /* with strings of its own */
    char *namespace, *label_selector, *field_selector;
    struct kube_call *call;
    struct timer timer; /* always set while the watch lives, so that moving it never fails */
    /* What is known: "namespace/name" → resourceVersion */
    json_t *known;
    json_t *listed;              /* the same of the list under way */
    char version[VERSION_BYTES]; /* to resume from */
    /* The list */
    bool need_list, whole; /* whole: without pages, after a continue token expired */
    char *next_page;       /* continue token; NULL for the first page */
    size_t page;
    unsigned list_failures;
    /* The watch */
    struct lines lines;
    mono_ms opened;
    bool open, told; /* told: an event has come through this stream */
    unsigned watch_failures;

    bool synced;
    unix_ms heard;
    char trouble[768];
    unsigned busy; /* entries from the loop under way */
    bool dead;     /* freed from one of its callbacks */
};

/* Passes on an object of a list (all that differs from what is known) or of an event (all that is newer). What the
 * callbacks did to the watch is for the caller to look at. -EINVAL for an object without name or version; -ENOMEM, when nothing
 * was passed on. */
MUST_USE int kube_watch_take(struct kube_watch *w, json_t *object, bool listed);
MUST_USE int kube_watch_drop(struct kube_watch *w, const json_t *object);
/* The list is complete: what it did not hold is gone. */
void kube_watch_sweep(struct kube_watch *w);
/* Moves the version to resume from forward. False when it cannot be kept. */
bool kube_watch_advance(struct kube_watch *w, const char *version);

#endif

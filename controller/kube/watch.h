/* A watch: a set of objects, listed page by page and then watched. On the loop.
 *
 * A watch keeps only the name and resourceVersion of each object, reports an object once per version, and
 * objects that vanished between two lists as deleted. While the API server is away what is known stays
 * known; the watch continues within 10 s of its return. After a restore from a backup it lists anew and
 * reports each object again. */
#pragma once

#include "controller/kube/resource.h"
#include "controller/kube/verdict.h"
#include "exporter/base/clock.h"

#include <jansson.h>
#include <stdbool.h>

struct kube;
struct kube_cut;
struct kube_watch;

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
    void (*on_listed)(void *arg);   /* each time that a list has */
    void (*on_restored)(void *arg); /* likewise, if the store went back in time, or may have */
    void (*on_error)(void *arg, const char *error); /* why there is no news; again when the reason changes */
    void (*on_recovered)(void *arg);                /* after an error: there is news again */
    void *arg;
};

/* Starts in the loop's next turn. */
struct kube_watch *kube_watch_new(struct kube *k, const struct kube_watch_options *o);
struct kube_watch *kube_watch_free(struct kube_watch *w);
/* Sends a new request at once: this watch may hang on a dead connection to a server that answers. It lists
 * anew where that has gone on for so long that what is known may be old. */
void kube_watch_hurry(struct kube_watch *w);
/* Whether its stream was asked for a second ago or earlier, and has told by now what it had missed, as far
 * as that can be known: the first bookmark may take a minute. */
bool kube_watch_is_current(const struct kube_watch *w);
/* Lists all objects anew, unless a list is under way or waits for its next attempt. Unlike a stream of
 * events, which may lag or be dead without a sign, a list is as new as its request. */
void kube_watch_relist(struct kube_watch *w);
/* When the newest complete list was begun; 0: none was. */
mono_ms kube_watch_listed(const struct kube_watch *w);

bool kube_watch_synced(const struct kube_watch *w);
/* Why there is no news; NULL if there is, or while nothing is known yet. */
const char *kube_watch_error(const struct kube_watch *w);
/* Why the last list was refused, such as KUBE_NO_KIND or KUBE_FORBIDDEN; KUBE_OK if it was not. */
enum kube_verdict kube_watch_refused(const struct kube_watch *w);
/* When the last page, event or bookmark came, of which there is one a minute; 0: never. */
unix_ms kube_watch_heard(const struct kube_watch *w);
/* Whether the first list since the start, or since the store went back in time, is not complete yet; the same
 * after an absence of the API server that is long enough for that. */
bool kube_watch_is_first_list(const struct kube_watch *w);
/* Whether every change up to this version has been reported. False for one that is no number. */
bool kube_watch_has_passed(const struct kube_watch *w, const char *version);
/* Whether the object exists, e.g. before it is created. */
bool kube_watch_has(const struct kube_watch *w, const char *namespace, const char *name);

/* Follows a set of objects: lists it page by page, then watches it, through bookmarks, clean ends, expired versions, cut
 * connections and rotated credentials, until freed.
 *
 * It keeps no objects, only the name and resourceVersion of each: what is told twice is passed on once, an event older
 * than what is known is left out, and what has vanished between two lists is reported as deleted. While the API server is
 * away nothing is reported but trouble: what is known stays known. */
#ifndef DS_KUBE_WATCH_H
#define DS_KUBE_WATCH_H

#include "controller/kube/client.h"

struct kube_watch;

struct kube_watch_options {
    const struct kube_resource *resource;
    const char *namespace; /* NULL: all. All strings are copied */
    const char
        *name; /* only the object of this name, so that rights may be given by resourceNames; NULL: all */
    const char *label_selector, *field_selector; /* NULL for none */
    const struct kube_cut *cut;                  /* of every object; NULL: none. Must outlive the watch */
    size_t page;                                 /* objects asked for at a time; 0: 500 */
    size_t max_page;   /* bytes of one; 0: 16 MiB. Fewer objects are asked for when it is passed */
    size_t max_object; /* bytes of one event; 0: 4 MiB */
    /* All run on the loop and may do anything, kube_watch_free() included. Any may be NULL. */
    void (*on_set)(void *arg,
                   json_t *object); /* new or changed; borrowed. Items of lists lack apiVersion and kind */
    void (*on_delete)(void *arg, const char *namespace, const char *name);
    void (*on_synced)(void *arg); /* once: all of the first list has been passed on */
    void (*on_trouble)(void *arg,
                       const char *text); /* when it changes: why nothing comes; NULL: all is well again */
    void *arg;
};

/* Starts in the loop's next turn. -ENOMEM. */
MUST_USE int kube_watch_new(struct kube_watch **ret, struct kube *k, const struct kube_watch_options *o);
struct kube_watch *kube_watch_free(struct kube_watch *w);
DEFINE_CLEANUP(struct kube_watch, kube_watch_free)

/* Goes on at once from where it is, with a new stream: when the API server is known to answer again, while this still waits for a back-off
 * or for a stream that died without a word. */
void kube_watch_hurry(struct kube_watch *w);

bool kube_watch_synced(const struct kube_watch *w);
/* The last trouble; NULL when all is well, or nothing is known yet. */
const char *kube_watch_trouble(const struct kube_watch *w);
/* When the API server last answered: a page of the list, an event, or a bookmark, which come every minute. 0 when it never did. */
unix_ms kube_watch_heard(const struct kube_watch *w);
/* Whether version a comes after b. Versions are numbers (KEP-5504); of others every change counts. */
bool kube_version_newer(const char *a, const char *b);
/* How many objects there are now. */
size_t kube_watch_objects(const struct kube_watch *w);
/* Whether the object is there, e.g. before it is created. */
bool kube_watch_has(const struct kube_watch *w, const char *namespace, const char *name);

#endif

/* One list of objects from the API server, page by page, with ceilings. */
#ifndef DS_ASSIST_STATE_LISTER_H
#define DS_ASSIST_STATE_LISTER_H

#include "controller/kube/client.h"

struct lister;

/* All that it points to must live until `done`. */
struct lister_options {
    struct kube *kube;
    const struct kube_resource *resource;
    const char *namespace, *label_selector, *field_selector; /* NULL: all */
    bool first_only; /* ends after one object: to see whether the list is allowed */
    /* The object is borrowed. */
    void (*on_object)(void *arg, json_t *object);
    /* Once, never from inside lister_start(). May free the lister. `why` is "" on KUBE_OK. */
    void (*done)(void *arg, enum kube_verdict verdict, const char *why);
    void *arg;
};

/* -EINVAL for a namespace that is no path segment. `done` is not called then. */
MUST_USE int lister_start(struct lister **ret, const struct lister_options *o);
/* Ends the list without `done`. Takes NULL, returns NULL. */
struct lister *lister_free(struct lister *l);
DEFINE_CLEANUP(struct lister, lister_free)

#endif

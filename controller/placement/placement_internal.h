/* Shared by owner.c (whose an object is), placement.c (slots) and placement_write.c (their calls); included
 * nowhere else. */
#ifndef DS_PLACEMENT_PLACEMENT_INTERNAL_H
#define DS_PLACEMENT_PLACEMENT_INTERNAL_H

#include "controller/kube/queue.h"
#include "controller/kube/watch.h"
#include "controller/placement/slot.h"

struct placement {
    struct placement_options o;
    struct kube_queue *queue; /* of object names */
    struct kube_watch *watch;
    struct slot **slots;
    size_t n, cap;
    bool may_write;  /* the first list is complete, or its failure is known */
    bool complete;   /* the first list is complete: an unknown object does not exist */
    bool configured; /* the scorers are known */
};

struct slot *placement_find(const struct placement *p, const char *object);
void placement_remove(struct placement *p, struct slot *s);
/* Whether the object is this agent's: by its annotation, or without one by its label. */
bool placement_is_ours(const struct placement *p, const json_t *object);
bool placement_is_labelled(const json_t *object);
enum { OWNER_BYTES = 300 };
/* Whom an object that is not ours names as its owner: another agent, an owner reference, another add-on or
 * tool. False for nobody, as with objects of the reference implementation. */
bool placement_owner(const json_t *object, char ret[OWNER_BYTES]);
/* Derives the slot's wanted state from its scorer. */
void placement_refresh(struct placement *p, struct slot *s);
/* Queues the object for a write or a delete. */
void placement_enqueue(struct placement *p, const struct slot *s);
/* Updates the metrics about all objects. */
void placement_update_metrics(struct placement *p);
/* The queue's work: takes the object's next step, call by call. */
void placement_work(void *arg, const char *object);

#endif

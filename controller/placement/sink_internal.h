/* Private to the sink: its slots (sink.c) and their calls (sink_write.c). */
#ifndef DS_PLACEMENT_SINK_INTERNAL_H
#define DS_PLACEMENT_SINK_INTERNAL_H

#include "controller/kube/queue.h"
#include "controller/kube/watch.h"
#include "controller/placement/slot.h"

struct placement {
    struct placement_options o;
    struct kube_queue *queue; /* of object names */
    struct kube_watch *watch;
    struct slot **slots;
    size_t n, cap;
    bool may_write;  /* the first list has come, or it is known why it does not */
    bool complete;   /* it has come: what is not known is not there */
    bool configured; /* it is known which scorers there are */
};

struct slot *placement_find(const struct placement *p, const char *object);
void placement_remove(struct placement *p, struct slot *s);
bool placement_is_ours(const struct placement *p, const json_t *object);
/* The object is written, or deleted, when its turn comes. */
void placement_enqueue(struct placement *p, const struct slot *s);
/* Brings the metrics up to date that are about all objects. */
void placement_count(struct placement *p);
/* The queue's work: does what the object needs most, call by call. */
void placement_work(void *arg, const char *object);
/* Says so when it is new. */
void placement_set_trouble(struct slot *s, const char *text);

#endif

/* The writer of objects. On the loop.
 *
 * When it is an object's turn in the queue, the queue's work starts a write or ends the turn. The writer
 * sends and counts it, knows it again in the watch, and says when others keep undoing it: a fight. It is
 * over when a write has stood long enough. */
#pragma once

#include "controller/kube/answer.h"
#include "controller/kube/fight.h"
#include "controller/kube/request.h"
#include "exporter/base/clock.h"
#include "exporter/base/loop.h"

struct kube;
struct kube_call;
struct kube_object;
struct kube_queue;
struct kube_watch;

/* What a call of a writer is for: the label `operation` of metrics. */
enum kube_operation {
    KUBE_READ, /* not counted */
    KUBE_WRITE_CREATE,
    KUBE_WRITE_PATCH,
    KUBE_WRITE_STATUS,
    KUBE_WRITE_FINALIZER,
    KUBE_WRITE_DELETE,
    /* Of an object that another has written, or that has lost our label */
    KUBE_WRITE_LABEL,
    KUBE_WRITE_ADOPT,
    KUBE_WRITE_TAKE_OVER,
    KUBE_OPERATIONS
};

/* "create", "take_over", ... */
const char *kube_operation_word(enum kube_operation operation);

struct kube_writer {
    struct kube *kube;
    struct kube_queue *queue;  /* of objects' keys; owned by whoever made it */
    const char *manager;       /* the field manager of its writes */
    const char *kind, *detail; /* for the log: "ManifestWork", and "cluster" for what a key names */
    /* A fight over the object has begun or ended, by o->fight.is_on, or the other writer has become known.
     * Must not free the object or start a call. NULL: the log alone tells */
    void (*on_fight)(void *arg, struct kube_object *o);
    /* Counts a call that has ended. NULL: none */
    void (*count)(void *arg, enum kube_operation operation, const struct kube_answer *a);
    void *arg;
};

/* What a write leads to. By it, one is recognized that writes again what others have undone. */
enum kube_goal_kind {
    KUBE_GOAL_NONE,   /* no write, or one that nobody can undo */
    KUBE_GOAL_STATE,  /* the state of that hash: undone, if the last write led to the same */
    KUBE_GOAL_NEW,    /* a state that the last write did not lead to */
    KUBE_GOAL_AGAIN,  /* the state of the last write: undone */
    KUBE_GOAL_REPAIR, /* what others have changed is put back: undone, if the last write did so, too */
};

struct kube_goal {
    enum kube_goal_kind kind;
    uint64_t hash; /* of a KUBE_GOAL_STATE; else 0 */
};
#define KUBE_NO_GOAL ((struct kube_goal){KUBE_GOAL_NONE, 0})

/* What is known of an object's writes; embedded in its owner. Read-only but for the functions below. */
struct kube_object {
    struct kube_writer *writer;
    const char *key; /* in the queue; not owned */
    struct kube_call *call;
    enum kube_operation operation; /* of the call, or of the last one */
    void (*done)(struct kube_object *o, struct kube_answer *a);
    struct kube_goal sent;    /* of the call under way */
    struct kube_goal written; /* of the last write; KUBE_GOAL_NONE: none, or unknown */
    mono_ms written_at;
    char version[32]; /* resourceVersion after the last write; empty: the answer had none */
    char watched[32]; /* the newest that the watch has shown */
    unsigned call_era, version_era, watched_era; /* kube_era() of the call under way and of each of these */
    bool vanished;                               /* the watch has shown its end during the call */
    unsigned undone;                             /* how often in a row others undid what was written */
    int64_t wait_ms;                             /* because of that, after this turn; -1: no need */
    unsigned failures;                           /* in a row, undone writes among them */
    char *last_error;                            /* why it is not written; NULL when it is */
    const char *subresource;                     /* of the last write; "": the object itself */
    struct kube_fight fight;
    struct timer settle; /* runs while the fight is on */
};

void kube_object_init(struct kube_object *o, struct kube_writer *w, const char *key);
/* Cancels the call, and ends the turn. */
void kube_object_done(struct kube_object *o);

/* Starts a call of the object's turn: the first one, or another one from `done`, which otherwise ends the
 * turn. */
void kube_object_call(struct kube_object *o, enum kube_operation operation, const struct kube_request *rq,
                      struct kube_goal goal, void (*done)(struct kube_object *o, struct kube_answer *a));
/* Ends the turn. If not ok, or if the write was undone too often, the next one comes after a back-off. */
void kube_object_end(struct kube_object *o, bool ok, int64_t retry_after_ms);
/* Ends the turn with the answer's error. */
void kube_object_fail(struct kube_object *o, const struct kube_answer *a);
/* Why the object is not written; logged when it changes. */
void kube_object_set_error(struct kube_object *o, const char *error);
/* It is written; logged after an error. */
void kube_object_clear_error(struct kube_object *o);

/* What an object that the watch shows is to the last write. */
enum kube_seen {
    KUBE_SEEN_OLD, /* from before it. Only for a while: a restore may go unnoticed */
    KUBE_SEEN_OWN, /* the version that it led to */
    KUBE_SEEN_NEW
};

/* The version after the last write; "" if unknown, or of an earlier era. */
const char *kube_object_version(const struct kube_object *o);
enum kube_seen kube_object_see(const struct kube_object *o, const json_t *object);
/* If it was changed after our last write: looks for the writer who undoes ours. */
void kube_object_look_for_rival(struct kube_object *o, const json_t *object);
/* Takes note of it, also of a rival; NULL: its end. */
void kube_object_watched(struct kube_object *o, const json_t *object);
/* Whether the watch has shown something newer than the last write. */
bool kube_object_is_overtaken(const struct kube_object *o);
/* Whether the watch has reported every change up to the last write. False if its version is no number. */
bool kube_object_is_reported(const struct kube_object *o, const struct kube_watch *w);

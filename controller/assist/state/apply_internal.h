/* Private to apply*.c: the writes of one run, as steps. */
#ifndef DS_ASSIST_STATE_APPLY_INTERNAL_H
#define DS_ASSIST_STATE_APPLY_INTERNAL_H

#include "controller/assist/state/apply.h"
#include "controller/kube/client.h"
#include "exporter/base/loop.h"

enum {
    APPLY_CALLS = 8,      /* at once */
    APPLY_MS = 60 * 1000, /* for all, and */
    APPLY_STEP_MS = 50,   /* for each step; the same again to undo them */
};

enum apply_mode { APPLY_LISTING, APPLY_CHECKING, APPLY_WRITING, APPLY_UNDOING };

enum step_state {
    STEP_PENDING,
    STEP_DONE,
    STEP_MAYBE, /* no answer to the write */
    STEP_STUCK, /* could not be undone */
};

struct step {
    enum kube_method method; /* KUBE_CREATE, KUBE_MERGE_PATCH, KUBE_DELETE */
    const struct kube_resource *resource;
    const char *name;
    json_t *body;    /* to write; NULL for a deletion */
    json_t *before;  /* as it was listed; NULL for a creation */
    json_t *written; /* metadata of the answer */
    unsigned phase;  /* all of a phase are done before the next begins */
    enum step_state state;
};

struct apply_slot {
    struct apply *apply;
    struct kube_call *call; /* NULL: free */
    size_t step;            /* while listing: 0 Placements, 1 PlacementBindings */
};

struct apply {
    struct apply_options o;
    char *namespace;
    enum apply_mode mode;
    json_t *owned; /* {"Placement/x": object}: those that have the label */
    struct step *steps;
    size_t n;
    size_t next; /* step to start; while undoing, one more than it */
    unsigned active, round;
    struct apply_slot slots[APPLY_CALLS];
    struct timer deadline, pause;
    struct outcome end; /* how it will end, once status is set */
    json_t *conflicts;  /* names of objects of others */
    json_t *failed;     /* of a deletion: "Kind/name: why" */
};

extern const struct kube_resource *const apply_resources[2];

/* ---- apply_steps.c ---- */

/* Makes the steps from what is wanted and what is there. -ENOMEM. */
MUST_USE int apply_plan_steps(struct apply *ap);
void apply_free_steps(struct apply *ap);
/* The request of a step; *ret_body is to be released after the start. -ENOMEM. */
MUST_USE int step_request(const struct step *s, const struct apply *ap, struct kube_request *rq,
                          json_t **ret_body);
/* "Placement/x". -ENOMEM. */
MUST_USE int list_add_step(json_t *list, const struct step *s);
/* The body of a good end. NULL when out of memory. */
json_t *apply_summary(const struct apply *ap);

#endif

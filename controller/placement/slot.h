/* Private to the sink: one object, what it should say and what was written. */
#ifndef DS_PLACEMENT_SLOT_H
#define DS_PLACEMENT_SLOT_H

#include "controller/placement/items.h"
#include "controller/placement/name.h"
#include "controller/placement/sink.h"

#define PLACEMENT_DOMAIN      "dynamic-scoring.open-cluster-management.io"
#define PLACEMENT_LABEL       PLACEMENT_DOMAIN "/managed-by"
#define PLACEMENT_LABEL_VALUE "agent"
#define PLACEMENT_OWNER       PLACEMENT_DOMAIN "/owner"
#define PLACEMENT_SCORE_NAME  PLACEMENT_DOMAIN "/score-name"

enum condition_type { CONDITION_SCORED, CONDITION_CLAMPED, CONDITION_TRUNCATED, CONDITIONS };

struct condition {
    bool known, on;
    char reason[64];
    char message[1280];
    int64_t since_ms; /* Unix time of the last change of `on` */
};

struct slot {
    struct placement *placement;
    char object[OBJECT_NAME_MAX + 1];
    const struct scorer *scorer; /* NULL: the object is to go */
    char *score_name;            /* of the scorer that the rest is about */
    /* What the object should say. */
    bool wanted;         /* a round has ended since the start */
    struct batch *batch; /* of the last good round */
    bool expired;        /* its scores are too old to show */
    struct buf found;    /* items of the object as the start found it; until there is a batch */
    int64_t found_until_ms;
    bool keeps_found; /* those are still valid, and stay */
    struct condition conditions[CONDITIONS];
    int64_t life_ms;        /* how long scores are valid */
    int64_t valid_until_ms; /* Unix time, 0 for none */
    uint64_t hash;          /* of all that, but for times */
    /* What was written. */
    bool exists, foreign, written;
    uint64_t written_hash;
    int64_t written_until_ms;
    /* While a call is under way. */
    struct kube_call *call;
    uint64_t sent_hash;
    int64_t sent_until_ms;
    char trouble[768];
};

/* "Scored", ... */
const char *condition_word(enum condition_type t);

/* -ENOMEM. */
MUST_USE int slot_new(struct slot **ret, struct placement *p, const char *object);
struct slot *slot_free(struct slot *s);
/* Puts another scorer's name on it; what was of the one before is forgotten. -ENOMEM. */
MUST_USE int slot_assign(struct slot *s, const struct scorer *scorer);
/* Takes over what became of the scorer's last round, and counts it. -ENOMEM. */
MUST_USE int slot_update(struct slot *s, const struct placement_options *o, unix_ms now);
/* Whether the object must be written: it says something else, or validUntil is half used up. */
bool slot_is_due(const struct slot *s, unix_ms now);
/* The items that it should have. -ENOMEM. */
MUST_USE int slot_items(const struct slot *s, const char *cluster_name, struct items *ret);
/* Learns from an object that is there: since when its conditions are as they are, and its items' names. */
void slot_learn(struct slot *s, const json_t *object);

/* Bodies. NULL when memory is out. */
json_t *slot_create_body(const struct slot *s, const struct placement_options *o);
json_t *slot_status_body(const struct slot *s, const struct placement_options *o);

#endif

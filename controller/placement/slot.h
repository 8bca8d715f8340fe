/* One AddOnPlacementScore: its wanted state and the state last written. Private to placement. */
#pragma once

#include "controller/kube/writer.h"
#include "controller/placement/items.h"
#include "controller/placement/options.h"
#include "controller/placement/placement.h"
#include "controller/placement/scorers.h"
#include "exporter/base/clock.h"

/* All times of an object are by the clock of the hub's API server. */
enum condition_type {
    CONDITION_SCORED,
    CONDITION_CLAMPED,
    CONDITION_ROUNDED,
    CONDITION_TRUNCATED,
    CONDITION_CLOCK,     /* only since the agent's clock was seen to be wrong */
    CONDITION_CONTESTED, /* only while another writer undoes what the agent writes */
    CONDITION_ADJUSTED,  /* only while the hub adjusts the items */
    CONDITIONS
};

/* Where the items come from that the object should have. */
enum slot_items {
    ITEMS_OF_ROUND,    /* the last successful round */
    ITEMS_OF_LAST,     /* the last round that had any, until validUntil: since then results were empty */
    ITEMS_FOUND,       /* those on the hub, until validUntil: no round had any since the start */
    ITEMS_OF_FALLBACK, /* fallbackScore, under the names last known */
    ITEMS_NONE
};

/* Why this agent puts its name on an object that it did not create just now. */
enum slot_claim {
    CLAIM_LABEL,   /* ours has lost its label */
    CLAIM_NAME,    /* ours was another score's, of a name that leads to the same object */
    CLAIM_UNOWNED, /* it is nobody's */
    CLAIM_MOVED,   /* the agent of this add-on in another namespace had it */
};

enum { UID_BYTES = 64, SCORE_VERSION_BYTES = 32 };

struct slot {
    struct placement *placement;
    char object[OBJECT_NAME_MAX + 1];
    struct placement_scorer *scorer;       /* NULL: delete the object */
    const struct adjustments *adjustments; /* the placement's */
    char *score_name;                      /* of the scorer that the state below comes from */
    /* The wanted state. */
    bool wanted;         /* known: a round has ended since the start */
    struct batch *batch; /* of the last successful round; NULL when its scores are too old */
    /* The round whose items the object is to have: `batch`, or one before it whose items are within
     * scoreTolerance of it; what they were, and by which summary, unless the tolerance is 0. */
    struct batch *shown;
    struct items shown_items;
    struct summary shown_summary;
    struct batch *last; /* of the last round that had items */
    int64_t last_until_ms;
    json_t *found; /* items of the object found at the start; until there is one */
    int64_t found_until_ms, found_at_ms;
    char *found_adjusted; /* by what, as the condition found with them says; NULL: they are not */
    enum slot_items items;
    bool lacks_items;               /* the last round succeeded and led to no item: `Scored` says why */
    char *annotated_name;           /* of the score whose object it is on the hub; NULL: not known */
    struct timer late;              /* at slot_look_again_at(); set by placement */
    json_t *conditions[CONDITIONS]; /* metav1.Condition; NULL: not known yet */
    bool has_status;                /* the hub has had a status of ours */
    unix_ms updated_at;
    int64_t life_ms;          /* validity of scores */
    int64_t valid_until_ms;   /* Unix time of the hub, 0 for none */
    int64_t offset_ms;        /* kube_clock_offset_ms() that it was made with */
    uint64_t hash;            /* of the wanted state but its times */
    uint64_t hash_conditions; /* of its conditions */
    /* The state last written. */
    bool exists, foreign, written;
    bool unsure; /* it may have been created by a call without an answer */
    /* The agent of this add-on in another namespace owns it, and this agent takes it over. */
    bool takes_over;
    bool taken_over;       /* from there, and no configuration has been seen since */
    enum slot_claim claim; /* the last one sent */
    char uid[UID_BYTES], version[SCORE_VERSION_BYTES]; /* as last seen in a list, an event or an answer */
    uint64_t written_hash; /* like the next one, while `written`: else what the hub has is not known */
    int64_t written_until_ms;
    bool overwritten; /* since then, by others: to write it again may be a quarrel */
    char *contested;  /* that they keep doing so, and what to do; NULL: they do not */
    /* The call under way. */
    struct kube_object write;
    uint64_t sent_hash;
    int64_t sent_until_ms;
    bool looked_again; /* in this turn, after a write of an older version than the hub has */
};

/* What came from the scorer that the object had, items found included, is nobody's. */
void slot_forget_scorer(struct slot *s);
/* Assigns the object to the scorer, forgetting another scorer's state. */
void slot_assign(struct slot *s, struct placement_scorer *scorer);
/* Derives the wanted state from the scorer's last round, and counts it in the metrics. */
void slot_update(struct slot *s, const struct placement_options *o, unix_ms now);
/* ---- What is known of the object: it is not there, it is this agent's, it is another's ---- */

void slot_note_gone(struct slot *s);
void slot_note_ours(struct slot *s);
void slot_note_foreign(struct slot *s);
/* The invariants of a slot. Where a turn of the queue begins, and where it ends. */
void slot_check(const struct slot *s);

/* Whether the object on the hub is still called another score's. */
bool slot_is_misnamed(const struct slot *s);

/* Frees what `shown` holds. */
void slot_forget_shown(struct slot *s);
/* Before a write: the object is to have the items of the newest round, also if they are near to those that it
 * has. */
void slot_show_newest(struct slot *s);
/* Whether the object must be written: its state differs, or half of validUntil has passed. */
bool slot_is_due(const struct slot *s, unix_ms now);
/* By the hub's clock: when the object may have to be written although no round has ended, as its items end
 * or are to be renewed; 0: never. */
unix_ms slot_look_again_at(const struct slot *s, unix_ms now);
/* Takes over the conditions' transition times and the items of an existing object, which was not this
 * agent's to write until now. now: by the hub's clock. */
void slot_learn(struct slot *s, const json_t *object, unix_ms now);

/* A write has failed, or others have written while another state waits: what the hub has is not known. */
void slot_forget_written(struct slot *s);
/* Whether the object still has the state last written, which is the wanted one. */
bool slot_matches(const struct slot *s, const struct placement_options *o, const json_t *object);
/* Why the last round led to no item although it succeeded, for people; "" if it led to some, if it failed,
 * or if none has ended. */
const char *slot_why_no_items(const struct slot *s);
/* The body of a patch of the status. */
json_t *slot_status_body(const struct slot *s, const struct placement_options *o);

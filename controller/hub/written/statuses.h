/* Writes statuses and finalizers of DynamicScorers and DynamicScoringConfigs by a queue of objects, and
 * nothing that is already so; sends Events about their conditions. Loop thread. */
#pragma once

#include "controller/hub/follows/condition.h"
#include "controller/hub/observed/observed.h"
#include "controller/hub/observed/options.h"
#include "controller/hub/written/census.h"
#include "controller/kube/events.h"
#include "controller/kube/writer.h"

struct statuses {
    const struct hub_options *o;
    struct observed *seen; /* of which it changes each object's last_status */
    struct census *census;
    struct kube_events *events;
    /* Private */
    struct kube_writer writer; /* its keys: "scorer/<name>", "config/<name>" */
    bool is_active;            /* else nothing is written */
};

/* The public members are set. */
void statuses_begin(struct statuses *st);
void statuses_done(struct statuses *st);

/* Of the active controller, after its first plan: a status written before that would lose counts. */
void statuses_start(struct statuses *st);
/* Another controller writes from now on: cancels what is under way, and forgets what was written. */
void statuses_stop(struct statuses *st);

/* The watch shows the object, whose spec is as before. Looks at its status unless it shows our own write: in
 * a roll-out counts change all the time, and each write would lead to the next. */
void statuses_see_scorer(struct statuses *st, const char *name);
void statuses_see_config(struct statuses *st, const char *name);
/* Looks at the status as soon as it is its turn. */
void statuses_look_at_scorer(struct statuses *st, const char *name);
void statuses_look_at_config(struct statuses *st, const char *name);
void statuses_look_at_all(struct statuses *st);
/* Likewise, and without waiting for the end of a back-off: a person has changed the object. */
void statuses_hurry_scorer(struct statuses *st, const char *name);
void statuses_hurry_config(struct statuses *st, const char *name);

/* Who undoes our writes of the scorer's status or finalizers; contest_done() it. */
struct contest scorer_contest(const struct hub_scorer *s);
void contest_done(struct contest *c);

/* The DynamicScoringConfigs: the one in use, and those whose status says that they are not. Loop thread. */
#pragma once

#include "controller/hub/observed/last_status.h"
#include "controller/hub/rules/plan.h"
#include "controller/hub/rules/work.h"
#include "controller/kube/json.h"
#include "exporter/base/map.h"

/* What of it is read, and can be invalid, by itself: whoever adjusts cannot keep masks from taking effect. */
enum config_part { CONFIG_MASKS, CONFIG_ADJUSTMENTS, CONFIG_PARTS };

struct hub_config {
    json_t *object; /* NULL: does not exist */
    /* The last valid ones; their owner is NULL without any. */
    struct masks masks;
    struct fleet_adjustments adjustments;
    char *errors[CONFIG_PARTS]; /* why the newest of a part are invalid; NULL if they are valid */
    struct last_status last_status;
};

struct configs {
    struct hub_config used;
    bool was_deleted;  /* the one in use existed, and was deleted */
    struct map others; /* of other names: name → struct hub_config * */
};

/* What the watch shows; NULL: its end. Returns what has to be looked at again. */
unsigned configs_see(struct configs *all, const char *name, json_t *object);
/* NULL when it does not exist. */
struct hub_config *configs_find(struct configs *all, const char *name);
/* Whether the one in use exists and is not being deleted. */
bool configs_distribute(const struct configs *all);
/* Whether a ManifestWork goes with the one in use: ours, or the reference's that we have not written yet. */
bool configs_own_work(const struct configs *all, const struct work_found *w);
void configs_done(struct configs *all);

/* What a cluster's ManifestWork should be, and whether it has become that. Asked by the plan, the writer of
 * ManifestWorks, counts and pages. Owns nothing, changes nothing; loop thread. */
#include "controller/hub/follows/target.h"

#include "controller/hub/observed/cluster.h"
#include "controller/hub/observed/config.h"
#include "controller/hub/rules/plan.h"
#include "controller/hub/rules/work.h"

enum hub_target cluster_target(const struct observed *seen, const struct plan *plan,
                               const struct hub_cluster *c)
{
    const struct configs *configs = &seen->configs;

    if (c->leaving)
        return TARGET_NO_WORK;
    /* A config that was never seen may be in another namespace: had it been deleted, its finalizer would
     * have kept it until all works were gone. */
    if (!configs_distribute(configs))
        return configs->used.object || configs->was_deleted ? TARGET_NO_WORK : TARGET_UNCHANGED;
    if (!c->managed || !plan)
        return TARGET_UNCHANGED;
    return c->addon == ADDON_PRESENT ? TARGET_WORK : TARGET_NO_WORK;
}

bool cluster_is_in_sync(const struct observed *seen, const struct plan *plan, const struct hub_cluster *c)
{
    const struct work_found *w = &c->work;

    switch (cluster_target(seen, plan, c)) {
    case TARGET_UNCHANGED:
        return true;
    case TARGET_NO_WORK:
        return !w->exists || !configs_own_work(&seen->configs, w) || w->deleting;
    case TARGET_WORK:
        break;
    }
    /* A new cluster has no group until the next plan. */
    return !c->group || (w->exists && !w->deleting && w->frame && w->hash == c->group->hash);
}

const char *cluster_write_error(const struct hub_cluster *c)
{
    return c->write.object.last_error ?: c->write.contested;
}

bool cluster_is_up_to_date(const struct hub_cluster *c)
{
    return !c->write.is_late && !c->write.contested;
}

bool cluster_is_served(const struct hub_cluster *c)
{
    return c->managed && c->addon == ADDON_PRESENT;
}

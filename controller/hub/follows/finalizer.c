/* Which finalizers a DynamicScoringConfig should have. Asked by written/statuses.c. Owns nothing, changes
 * nothing; loop thread. */
#include "controller/hub/follows/finalizer.h"

#include "controller/hub/observed/cluster.h"
#include "controller/hub/observed/config.h"
#include "controller/hub/observed/object.h"
#include "controller/kube/json.h"
#include "exporter/base/map.h"

/* ManifestWorks that go with it. */
static bool works_are_left(const struct observed *seen)
{
    const struct hub_cluster *c;
    size_t at = 0;

    while ((c = map_next(&seen->clusters.by_name, &at)))
        if (c->write.object.call || (c->work.exists && configs_own_work(&seen->configs, &c->work)))
            return true;
    return false;
}

/* The reference's goes when ours is there, or nothing is left to hold; an object that is being deleted
 * accepts no new one. Order and all others stay. */
json_t *config_finalizer_patch(const struct observed *seen, const struct hub_config *c)
{
    json_t *current = kube_list(c->object, "metadata", "finalizers", NULL), *one, *metadata;
    json_auto_t *wanted = json_array();
    bool is_used = c == &seen->configs.used, adds = is_used && configs_distribute(&seen->configs);
    bool has = object_has_finalizer(c->object, HUB_FINALIZER);
    bool keeps = adds || (is_used && works_are_left(seen));
    size_t i;

    json_array_foreach(current, i, one)
    {
        const char *name = cstr(kube_str(one, NULL));
        bool drops_ours = strcmp(name, HUB_FINALIZER) == 0 && !keeps;
        bool drops_reference = strcmp(name, REFERENCE_FINALIZER) == 0 && (!keeps || adds || has);

        if (!drops_ours && !drops_reference)
            json_array_append(wanted, one);
    }
    if (adds && !has)
        json_array_append_new(wanted, json_string(HUB_FINALIZER));
    if (current ? json_equal(current, wanted) : json_array_size(wanted) == 0)
        return NULL;
    metadata = json_object();
    /* With the version that was read, so that a finalizer that another writer adds meanwhile is not lost. */
    json_object_set_new(metadata, "resourceVersion", json_string(kube_version(c->object)));
    json_object_set(metadata, "finalizers", wanted);
    return json_pack("{s:o}", "metadata", metadata);
}

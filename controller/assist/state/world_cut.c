#include "controller/assist/state/world_cut.h"

#include "controller/kube/json.h"

enum { CUT_MEMBERS = 8 };

/* For each kind the members of the object that stay; of spec and status those listed, or all. */
static const struct {
    const char *spec[CUT_MEMBERS], *status[CUT_MEMBERS], *more[CUT_MEMBERS];
    bool whole_spec, whole_status;
} kept[WORLD_KINDS] = {
    [WORLD_CLUSTERS] = {.spec = {"hubAcceptsClient", "taints"},
                        .status = {"allocatable", "capacity", "clusterClaims", "conditions"}},
    [WORLD_POLICIES] = {.spec = {"disabled", "remediationAction"},
                        .status = {"compliant", "placement", "status"}},
    [WORLD_WORKLOADS] = {.spec = {"placementRefs"}, .whole_status = true},
    [WORLD_SCORERS] = {.whole_spec = true,
                       .status = {"clusters", "conditions", "configSource", "failingClusters", "healthStatus",
                                  "interval", "lastSyncedConfig", "scoreName"}},
    [WORLD_PLACEMENTS] = {.whole_spec = true, .whole_status = true},
    [WORLD_DECISIONS] = {.status = {"decisions"}},
    [WORLD_BINDINGS] = {.more = {"placementRef", "subjects"}},
    [WORLD_SETS] = {.whole_spec = true},
    [WORLD_SET_BINDINGS] = {.whole_spec = true, .status = {"conditions"}},
    [WORLD_SCORES] = {.whole_status = true},
};

static bool cut_keeps(const char *const *names, const char *name)
{
    for (size_t i = 0; i < CUT_MEMBERS && names[i]; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

static void cut_members(json_t *object, const char *const *names)
{
    const char *name;
    json_t *value;
    void *next;

    json_object_foreach_safe(object, next, name, value)
    {
        if (!cut_keeps(names, name))
            (void)json_object_del(object, name);
    }
}

void world_cut(enum world_kind kind, json_t *object)
{
    const char *top[CUT_MEMBERS] = {"metadata", "spec", "status"};
    json_t *metadata = kube_map(object, "metadata", NULL);

    memcpy(top + 3, kept[kind].more, sizeof(top) - 3 * sizeof(*top));
    cut_members(object, top);
    if (!kept[kind].whole_spec)
        cut_members(kube_map(object, "spec", NULL), kept[kind].spec);
    if (!kept[kind].whole_status)
        cut_members(kube_map(object, "status", NULL), kept[kind].status);
    (void)json_object_del(metadata, "managedFields");
    (void)json_object_del(kube_map(metadata, "annotations", NULL),
                          "kubectl.kubernetes.io/last-applied-configuration");
}

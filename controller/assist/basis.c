/* Owns nothing: the basis is its model's. On the worker of the request. */
#include "controller/assist/basis.h"

#include "controller/assist/model.h"
#include "exporter/ui/member.h"

#include "controller/assist/kind.h"
#include "controller/assist/snapshot.h"
#include "controller/kube/json.h"
#include "exporter/base/alloc.h"
#include "exporter/base/buf.h"
#include "exporter/base/text.h"

void basis_note(struct fleet_model *m, const char *kind, const char *name, json_t *entry)
{
    CLEANUP(cleanup_free) char *key = xasprintf("%s/%s", kind, name);

    (void)json_object_set_new(m->basis, key, entry);
}

/* `what`: the members that differ, as "labels, placementRef". Objects of a kind have the same members. */
static void changes_add(json_t *list, const char *key, const json_t *before, const json_t *now)
{
    const char *name = strchr(key, '/') + 1, *member;
    BUF_AUTO(what, 4096);
    json_t *v;

    json_object_foreach((json_t *)(uintptr_t)before, member, v)
    {
        if (now && !json_equal(v, json_object_get(now, member))) {
            text_join(&what, ", ");
            buf_puts(&what, member);
        }
    }
    if (!before || !now)
        buf_puts(&what, now ? "is new" : "is gone");
    (void)json_array_append_new(list, json_pack("{s:s%, s:s, s:s%}", "kind", key, (size_t)(name - key - 1),
                                                "name", name, "what", what.p, what.n));
}

/* Whether an earlier attempt to apply the plan causes the difference. */
static bool change_is_of_plan(const struct fleet_model *now, const char *key, const char *plan)
{
    const char *name = strchr(key, '/') + 1;
    const json_t *placement = snapshot_get(now->hub, KIND_PLACEMENTS, now->namespace, name);

    return str_starts(str_of(key), STR("PlacementDecision/")) &&
           strcmp(cstr(kube_annotation(placement, PLAN_ANNOTATION)), plan) == 0;
}

json_t *basis_changes(const json_t *before, const struct fleet_model *now, const char *plan)
{
    json_auto_t *all = json_copy((json_t *)(uintptr_t)before);
    json_t *list = json_array(), *v;
    const char *key;

    (void)json_object_update_missing(all, now->basis);
    json_object_foreach(all, key, v)
    {
        const json_t *was = json_object_get(before, key), *is = json_object_get(now->basis, key);

        if (!json_equal(was, is) && !change_is_of_plan(now, key, plan))
            changes_add(list, key, was, is);
    }
    return list;
}

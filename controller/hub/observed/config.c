/* Owns the DynamicScoringConfigs as the watch shows them: the conductor hands them in, and is told what to
 * look at again. It schedules nothing, and writes nothing. Loop thread. */
#include "controller/hub/observed/config.h"

#include "controller/hub/observed/change.h"
#include "controller/hub/observed/object.h"
#include "controller/hub/rules/adjustments.h"
#include "controller/kube/list_error.h"
#include "exporter/base/alloc.h"
#include "exporter/base/buf.h"
#include "exporter/base/log.h"

static void config_done(struct hub_config *c)
{
    masks_done(&c->masks);
    fleet_adjustments_done(&c->adjustments);
    last_status_done(&c->last_status);
    for (enum config_part part = 0; part < CONFIG_PARTS; part++)
        free(c->errors[part]);
    json_decref(c->object);
    *c = (struct hub_config){0};
}

/* The map's key is the object's own name, so both change together. */
static unsigned config_see_other(struct configs *all, const char *name, json_t *object)
{
    struct hub_config *c = map_take(&all->others, name) ?: xcalloc(1, sizeof(*c));

    json_decref(c->object);
    c->object = json_incref(object);
    if (object) {
        map_set(&all->others, kube_name(object), c);
        return CHANGE_STATUS;
    }
    config_done(c);
    free(c);
    return CHANGE_NONE;
}

/* why: empty if the part is valid. */
static void config_note_error(struct hub_config *c, enum config_part part, const struct buf *why)
{
    static const char *const messages[CONFIG_PARTS] = {
        [CONFIG_MASKS] = "invalid masks, the last valid ones stay active",
        [CONFIG_ADJUSTMENTS] = "invalid adjustments, the last valid ones stay active",
    };

    free(c->errors[part]);
    c->errors[part] = why->n ? str_dup(buf_str(why)) : NULL;
    if (c->errors[part])
        log_warn(messages[part], L_STR("err", c->errors[part]));
}

/* What is invalid leaves the last valid part active. */
static void config_read_parts(struct hub_config *c)
{
    struct masks masks;
    struct fleet_adjustments adjustments;
    BUF_AUTO(why, LIST_ERROR_BYTES);

    if (masks_read(&masks, c->object, &why) == 0) {
        masks_done(&c->masks);
        c->masks = masks;
    }
    config_note_error(c, CONFIG_MASKS, &why);
    buf_clear(&why);
    if (fleet_adjustments_read(&adjustments, c->object, &why) == 0) {
        fleet_adjustments_done(&c->adjustments);
        c->adjustments = adjustments;
    }
    config_note_error(c, CONFIG_ADJUSTMENTS, &why);
}

static unsigned config_see_used(struct configs *all, json_t *object)
{
    struct hub_config *c = &all->used;
    bool had_finalizer = object_has_finalizer(c->object, HUB_FINALIZER);
    unsigned changes = CHANGE_STATUS;
    bool is_edited;

    if (c->object && (!object || strcmp(kube_uid(c->object), kube_uid(object)) != 0))
        config_done(c);
    all->was_deleted = !object;
    if (!object)
        return CHANGE_PLAN;
    is_edited = !c->object || !object_has_same_spec(c->object, object) ||
                object_is_deleting(c->object) != object_is_deleting(object);
    json_decref(c->object);
    c->object = json_incref(object);
    if (is_edited) {
        config_read_parts(c);
        changes |= CHANGE_EDITED | CHANGE_PLAN;
    }
    if (had_finalizer != object_has_finalizer(object, HUB_FINALIZER))
        changes |= CHANGE_PLAN;
    return changes;
}

unsigned configs_see(struct configs *all, const char *name, json_t *object)
{
    if (strcmp(name, HUB_CONFIG) == 0)
        return config_see_used(all, object);
    return config_see_other(all, name, object);
}

struct hub_config *configs_find(struct configs *all, const char *name)
{
    if (strcmp(name, HUB_CONFIG) != 0)
        return map_get(&all->others, name);
    return all->used.object ? &all->used : NULL;
}

bool configs_distribute(const struct configs *all)
{
    return all->used.object && !object_is_deleting(all->used.object);
}

bool configs_own_work(const struct configs *all, const struct work_found *w)
{
    return w->ours || object_has_finalizer(all->used.object, REFERENCE_FINALIZER);
}

void configs_done(struct configs *all)
{
    struct hub_config *other;

    for (size_t at = 0; (other = map_next(&all->others, &at)); free(other))
        config_done(other);
    map_done(&all->others);
    config_done(&all->used);
}

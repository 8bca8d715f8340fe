#include "controller/hub/state/state.h"

#include "controller/hub/rules/masks.h"
#include "controller/kube/json.h"
#include "exporter/base/log.h"
#include "exporter/base/map.h"

#include <errno.h>
#include <stdio.h>

void hub_config_done(struct hub_config *c)
{
    masks_done(&c->masks);
    last_status_done(&c->last_status);
    json_decref(c->object);
    *c = (struct hub_config){0};
}

static void config_read_masks(struct hub_config *c)
{
    struct masks masks;
    int r = masks_read(&masks, c->object, c->masks_error);

    if (r == -ENOMEM)
        (void)snprintf(c->masks_error, sizeof(c->masks_error), "out of memory");
    if (r < 0) {
        log_warn("invalid masks, the last valid ones stay active", L_STR("err", c->masks_error));
        return;
    }
    c->masks_error[0] = '\0';
    masks_done(&c->masks);
    c->masks = masks;
    c->has_masks = true;
}

/* The map's key is the object's own name, so both change together. */
static void config_set_other(struct hub *h, json_t *object)
{
    struct hub_config *c = map_get(&h->other_configs, kube_name(object));

    if (!c)
        c = xcalloc(1, sizeof(*c));
    map_set(&h->other_configs, kube_name(object), c);
    json_decref(c->object);
    c->object = json_incref(object);
}

/* Whether a user has changed or deleted it. */
static bool config_is_changed(const json_t *before, const json_t *object)
{
    int64_t was = 0, is = 0;

    (void)kube_int(before, &was, "metadata", "generation", NULL);
    (void)kube_int(object, &is, "metadata", "generation", NULL);
    return !before || was != is || object_is_deleting(before) != object_is_deleting(object);
}

static void config_set_used(struct hub *h, json_t *object)
{
    struct hub_config *c = &h->config;
    bool changed, had_finalizer = object_has_finalizer(c->object, HUB_FINALIZER);

    if (c->object && strcmp(kube_uid(c->object), kube_uid(object)) != 0)
        hub_config_done(c);
    h->config_gone = false;
    changed = config_is_changed(c->object, object);
    json_decref(c->object);
    c->object = json_incref(object);
    if (changed) {
        config_read_masks(c);
        hub_hurry_status(h, "config", HUB_CONFIG);
    }
    if (changed || had_finalizer != object_has_finalizer(object, HUB_FINALIZER))
        hub_schedule_plan(h);
}

void hub_config_set(struct hub *h, json_t *object)
{
    if (strcmp(kube_name(object), HUB_CONFIG) == 0)
        config_set_used(h, object);
    else
        config_set_other(h, object);
    hub_schedule_status(h, "config", kube_name(object));
}

void hub_config_delete(struct hub *h, const char *namespace, const char *name)
{
    struct hub_config *other;

    (void)namespace;
    if (strcmp(name, HUB_CONFIG) == 0) {
        hub_config_done(&h->config);
        h->config_gone = true;
        hub_schedule_plan(h);
        return;
    }
    other = map_take(&h->other_configs, name);
    if (other)
        hub_config_done(other);
    free(other);
}

/* ---- The finalizer ---- */

static bool config_works_left(const struct hub *h)
{
    const struct hub_cluster *c;
    size_t at = 0;

    while ((c = map_next(&h->clusters, &at)))
        if (c->write.call || (c->work.exists && hub_work_is_ours(h, &c->work)))
            return true;
    return false;
}

/* The reference's goes when ours is there, or nothing is left to hold; an object that is being deleted
 * accepts no new one. Order and all others stay. NULL when out of memory. */
static json_t *config_finalizers(const struct hub *h, const struct hub_config *c)
{
    bool used = c == &h->config, adds = used && hub_is_distributing(h);
    bool has = object_has_finalizer(c->object, HUB_FINALIZER);
    bool keeps = adds || (used && config_works_left(h));
    json_t *wanted = json_array(), *one;
    int r = 0;
    size_t i;

    json_array_foreach(kube_list(c->object, "metadata", "finalizers", NULL), i, one)
    {
        const char *name = cstr(kube_str(one, NULL));
        bool ours = strcmp(name, HUB_FINALIZER) == 0, reference = strcmp(name, REFERENCE_FINALIZER) == 0;

        if ((ours && !keeps) || (reference && (!keeps || adds || has)))
            continue;
        if (r == 0 && json_array_append(wanted, one) < 0)
            r = -ENOMEM;
    }
    if (r == 0 && adds && !has && json_array_append_new(wanted, json_string(HUB_FINALIZER)) < 0)
        r = -ENOMEM;
    if (r == 0)
        return wanted;
    json_decref(wanted);
    return NULL;
}

json_t *hub_config_finalizer_patch(const struct hub *h, const struct hub_config *c, int *ret_error)
{
    json_t *current = kube_list(c->object, "metadata", "finalizers", NULL), *wanted = config_finalizers(h, c),
           *patch = NULL;

    *ret_error = wanted ? 0 : -ENOMEM;
    if (!wanted)
        return NULL;
    if (current ? json_equal(current, wanted) : json_array_size(wanted) == 0) {
        json_decref(wanted);
        return NULL;
    }
    /* With the version that was read, so that a finalizer that another writer adds meanwhile is not lost. */
    patch = json_pack("{s:{s:s, s:o}}", "metadata", "resourceVersion", kube_version(c->object), "finalizers",
                      wanted);
    *ret_error = patch ? 0 : -ENOMEM;
    return patch;
}

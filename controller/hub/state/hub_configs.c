/* Owns the DynamicScoringConfigs: the one that counts, and those of other names, which are only told so. */
#include "controller/hub/state/hub_internal.h"

#include "exporter/base/log.h"

#include <errno.h>
#include <stdio.h>

void hub_config_done(struct hub_config *c)
{
    masks_done(&c->masks);
    written_done(&c->written);
    json_decref(c->object);
    *c = (struct hub_config){0};
}

struct hub_config *hub_config_find(struct hub *h, const char *name)
{
    if (strcmp(name, HUB_CONFIG) == 0)
        return h->config.object ? &h->config : NULL;
    return map_get(&h->other_configs, name);
}

static void read_masks(struct hub_config *c)
{
    struct masks masks;
    int r = masks_read(&masks, c->object, c->why);

    if (r == -ENOMEM)
        (void)snprintf(c->why, sizeof(c->why), "out of memory");
    if (r < 0) {
        log_warn("masks refused, those before stay in force", L_STR("err", c->why));
        return;
    }
    c->why[0] = '\0';
    masks_done(&c->masks);
    c->masks = masks;
    c->has_masks = true;
}

/* The table's key is the object's own name, so both change together. */
static int set_other(struct hub *h, json_t *object)
{
    struct hub_config *c = map_get(&h->other_configs, kube_name(object));
    int r;

    if (!c && !(c = calloc(1, sizeof(*c))))
        return -ENOMEM;
    r = map_set(&h->other_configs, kube_name(object), c);
    if (r < 0) {
        if (!c->object)
            free(c);
        return r;
    }
    json_decref(c->object);
    c->object = json_incref(object);
    return 0;
}

static bool held(const json_t *object)
{
    const json_t *one;
    size_t i;

    json_array_foreach(kube_list(object, "metadata", "finalizers", NULL), i, one)
    {
        if (strcmp(cstr(kube_str(one, NULL)), HUB_FINALIZER) == 0)
            return true;
    }
    return false;
}

/* Whether there is more to it than a status, which is our own. */
static bool differs(const json_t *a, const json_t *b)
{
    int64_t was = 0, is = 0;

    (void)kube_int(a, &was, "metadata", "generation", NULL);
    (void)kube_int(b, &is, "metadata", "generation", NULL);
    return was != is || held(a) != held(b) ||
           !kube_get(a, "metadata", "deletionTimestamp", NULL) !=
               !kube_get(b, "metadata", "deletionTimestamp", NULL);
}

void hub_config_set(void *hub, json_t *object)
{
    struct hub *h = hub;
    struct hub_config *c = &h->config;
    bool changed;

    if (strcmp(kube_name(object), HUB_CONFIG) != 0) {
        if (set_other(h, object) < 0)
            log_error("DynamicScoringConfig not followed: out of memory", L_STR("name", kube_name(object)));
    } else {
        if (c->object && strcmp(kube_uid(c->object), kube_uid(object)) != 0)
            hub_config_done(c);
        h->config_gone = false;
        changed = !c->object || differs(c->object, object);
        json_decref(c->object);
        c->object = json_incref(object);
        if (changed) {
            read_masks(c);
            hub_replan(h);
        }
    }
    hub_status_wanted(h, "config", kube_name(object));
}

void hub_config_delete(void *hub, const char *namespace, const char *name)
{
    struct hub *h = hub;
    struct hub_config *other;

    (void)namespace;
    if (strcmp(name, HUB_CONFIG) == 0) {
        hub_config_done(&h->config);
        h->config_gone = true;
        hub_replan(h);
        return;
    }
    other = map_take(&h->other_configs, name);
    if (other)
        hub_config_done(other);
    free(other);
}

/* ---- The finalizer ---- */

static bool works_left(const struct hub *h)
{
    const struct hub_cluster *c;
    size_t at = 0;

    while ((c = map_next(&h->clusters, &at)))
        if (c->call || (c->found.exists && c->found.ours))
            return true;
    return false;
}

bool hub_config_held(const struct hub *h)
{
    return held(h->config.object);
}

json_t *hub_config_finalizers(const struct hub *h, const struct hub_config *c, int *ret_error)
{
    json_t *have = kube_list(c->object, "metadata", "finalizers", NULL), *wanted = json_array(), *one, *patch;
    bool there = false, keep = hub_wanted(h) || works_left(h);
    size_t i;

    *ret_error = wanted ? 0 : -ENOMEM;
    json_array_foreach(have, i, one)
    {
        bool ours = json_is_string(one) && strcmp(json_string_value(one), HUB_FINALIZER) == 0;

        there |= ours;
        if (!ours && json_array_append(wanted, one) < 0)
            *ret_error = -ENOMEM;
    }
    if (keep && json_array_append_new(wanted, json_string(HUB_FINALIZER)) < 0)
        *ret_error = -ENOMEM;
    /* An object that is being deleted takes no new finalizer. */
    if (*ret_error < 0 || c != &h->config || there == keep || (!there && !hub_wanted(h))) {
        json_decref(wanted);
        return NULL;
    }
    /* With the version that was looked at: another's finalizer, added meanwhile, is not lost. */
    patch = json_pack("{s:{s:s, s:o}}", "metadata", "resourceVersion", kube_version(c->object), "finalizers",
                      wanted);
    *ret_error = patch ? 0 : -ENOMEM;
    return patch;
}

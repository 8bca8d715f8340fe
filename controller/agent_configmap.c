/* Owns the watch of the ConfigMap and, with `once`, the ConfigMap until it is applied. On the loop, called
 * by the watch and, with `once`, by a timer. What cannot be read leaves the last configuration as it is. */
#include "controller/agent_configmap.h"

#include "controller/agent_secrets.h"
#include "controller/kube/client.h"
#include "controller/kube/json.h"
#include "controller/kube/list_error.h"
#include "controller/kube/resource.h"
#include "controller/kube/verdict.h"
#include "controller/kube/watch.h"
#include "exporter/agent/agent.h"
#include "exporter/agent/config.h"
#include "exporter/base/alloc.h"
#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/doc.h"
#include "exporter/base/invariant.h"
#include "exporter/base/log.h"
#include "exporter/base/loop.h"
#include "exporter/metric/metrics.h"
#include "remotewrite/config.h"

struct agent_configmap {
    struct agent_configmap_options o;
    struct kube_watch *watch;
    char *shown; /* "namespace/name" */
    enum configmap_state state;
    bool is_outdated; /* perhaps: this agent has begun to lead, and it has not been listed since */
    mono_ms leads_since;
    struct timer give_up; /* while is_outdated: when what is known counts all the same */
    char *adjustments;    /* the last valid list; NULL: none yet */
    json_t *first;        /* with `once`: the ConfigMap */
    struct timer apply;   /* with `once`: when its Secrets have been read */
};

enum configmap_state agent_configmap_state(const struct agent_configmap *c)
{
    if (!c || c->is_outdated)
        return CONFIGMAP_UNKNOWN;
    /* Its lists may have waited for a valid file, and been applied with that. */
    if (c->state == CONFIGMAP_UNKNOWN && agent_state(c->o.agent)->configmap)
        return CONFIGMAP_READ;
    if (c->state == CONFIGMAP_MISSING && agent_state(c->o.agent)->config->summaries.n > 0)
        return CONFIGMAP_READ;
    return c->state;
}

/* ---- What a standby may have missed ----
 *
 * Its stream may have died without a sign, or be that of an API server that lags. The leader before it may
 * have scored what it does not know of, so the ConfigMap is listed before AddOnPlacementScores are written or
 * deleted. A refusal ends this, or a minute without a list: what is known stays in force then, since scores
 * that nobody writes would expire. */

enum { CATCH_UP_MS = 60 * 1000 };

static bool configmap_is_refused(const struct agent_configmap *c)
{
    enum kube_verdict v = kube_watch_refused(c->watch);

    return v != KUBE_OK && v != KUBE_RETRY && v != KUBE_UNAUTHORIZED;
}

void agent_configmap_catch_up(struct agent_configmap *c)
{
    if (!c)
        return;
    c->is_outdated = kube_watch_synced(c->watch) && !configmap_is_refused(c);
    if (!c->is_outdated)
        return;
    c->leads_since = kube_now(c->o.cluster);
    kube_timer_move(kube_loop(c->o.cluster), &c->give_up, CATCH_UP_MS);
    kube_watch_relist(c->watch);
    kube_watch_hurry(c->watch);
}

static void configmap_is_current(struct agent_configmap *c)
{
    c->is_outdated = false;
    loop_timer_clear(kube_loop(c->o.cluster), &c->give_up);
    c->o.on_current(c->o.arg);
}

static void configmap_on_give_up(struct timer *t)
{
    struct agent_configmap *c = CONTAINER_OF(t, struct agent_configmap, give_up);

    if (!c->is_outdated)
        return;
    log_warn("ConfigMap not listed since this agent leads, its last state counts",
             L_STR("configmap", c->shown));
    configmap_is_current(c);
}

static void configmap_on_listed(void *arg)
{
    struct agent_configmap *c = arg;

    if (!c->is_outdated)
        return;
    if (mono_before(kube_watch_listed(c->watch), c->leads_since))
        kube_watch_relist(c->watch);
    else
        configmap_is_current(c);
}

static struct str configmap_text(const struct agent_configmap *c, const json_t *object)
{
    struct str text = kube_text(object, "data", "summaries", NULL);

    if (!text.p)
        log_error("ConfigMap has no key `summaries`", L_STR("configmap", c->shown));
    return text.p ? text : STR("");
}

/* An invalid list, which no hub of ours sends, leaves the last one in force. */
static void configmap_adjust(struct agent_configmap *c, struct str text)
{
    CLEANUP(adjustments_done) struct adjustments list = {0};
    BUF_AUTO(why, LIST_ERROR_BYTES);

    if (str_eq(text, str_of(c->adjustments)))
        return;
    if (adjustments_parse(&list, text, &why) < 0) {
        log_error("adjustments not read, the last ones stay active", L_STR("configmap", c->shown),
                  L_SL("err", buf_str(&why)));
        return;
    }
    free(c->adjustments);
    c->adjustments = str_dup(text);
    c->o.on_adjustments(c->o.arg, &list);
}

void agent_configmap_adjustments(const struct agent_configmap *c, struct adjustments *ret)
{
    BUF_AUTO(why, LIST_ERROR_BYTES);
    int r;

    *ret = (struct adjustments){0};
    if (!c || !c->adjustments)
        return;
    r = adjustments_parse(ret, str_of(c->adjustments), &why);
    invariant(r == 0); /* an invalid list is not kept */
}

/* Applying passes the scorers on to the placement, which asks for the state. After an error, of which the
 * agent has told, that is as before. */
static void configmap_apply(struct agent_configmap *c, enum configmap_state state, struct str summaries,
                            struct str suspended)
{
    enum configmap_state before = c->state;
    int r;

    c->state = state;
    r = agent_apply_configmap(c->o.agent, c->shown, summaries, suspended);
    if (r < 0)
        c->state = before;
    c->o.on_change(c->o.arg);
}

/* ---- With `once`: the ConfigMap, then its Secrets, then the scorers ---- */

static void once_apply(struct timer *t)
{
    struct agent_configmap *c = CONTAINER_OF(t, struct agent_configmap, apply);
    int r = agent_apply_configmap(c->o.agent, c->shown, configmap_text(c, c->first), STR(""));

    if (kube_text(c->first, "data", "suspended", NULL).n)
        log_warn("scorers that the hub has suspended are left out", L_STR("configmap", c->shown));
    if (r < 0 || !agent_has_rounds_left(agent_state(c->o.agent)))
        loop_stop(kube_loop(c->o.cluster));
}

/* In the loop's next turn: the scorers that this starts may free the very watch that reports here. */
void agent_configmap_check_secrets(struct agent_configmap *c)
{
    struct loop *l;

    if (!c || !c->first || !agent_secrets_are_read(c->o.secrets))
        return;
    l = kube_loop(c->o.cluster);
    loop_timer_set(l, &c->apply, loop_now(l));
}

/* An invalid text names no Secrets; its problems are reported when it is applied. */
static void once_prepare(struct agent_configmap *c, json_t *object)
{
    CLEANUP(cleanup_config_free) struct config *config = NULL;
    CLEANUP(problems_done) struct problems p = {0};

    problems_init_configmap(&p, c->shown);
    c->first = json_incref(object);
    if (config_parse(&config, kube_text(object, "data", "summaries", NULL), &rw_config_section, &p) == 0)
        agent_secrets_sync(c->o.secrets, &config->summaries);
    agent_configmap_check_secrets(c);
}

/* There is nothing to run. error: NULL if it is just not there. */
static void once_give_up(struct agent_configmap *c, const char *error)
{
    if (error)
        log_error("ConfigMap not read", L_STR("configmap", c->shown), L_STR("err", error));
    else
        log_error("ConfigMap not found", L_STR("configmap", c->shown));
    loop_stop(kube_loop(c->o.cluster));
}

/* ---- What the watch reports ---- */

static void configmap_on_set(void *arg, json_t *object)
{
    struct agent_configmap *c = arg;

    if (c->o.once) {
        if (!c->first)
            once_prepare(c, object);
        return;
    }
    configmap_adjust(c, kube_text(object, "data", "adjustments", NULL));
    configmap_apply(c, CONFIGMAP_READ, configmap_text(c, object),
                    kube_text(object, "data", "suspended", NULL));
}

static void configmap_on_missing(struct agent_configmap *c)
{
    if (c->o.once) {
        if (!c->first)
            once_give_up(c, NULL);
        return;
    }
    log_warn("ConfigMap not found: no scorers", L_STR("configmap", c->shown));
    configmap_adjust(c, STR(""));
    configmap_apply(c, CONFIGMAP_MISSING, STR("[]"), STR(""));
}

static void configmap_on_delete(void *arg, const char *namespace, const char *name)
{
    (void)namespace, (void)name;
    configmap_on_missing(arg);
}

static void configmap_show_watch(const struct agent_configmap *c, bool is_up)
{
    metric_set(agent_state(c->o.agent)->metrics, METRIC_KUBE_UP, LV("configmaps", "cluster"), is_up);
}

static void configmap_on_synced(void *arg)
{
    struct agent_configmap *c = arg;

    configmap_show_watch(c, true);
    if (!kube_watch_has(c->watch, c->o.namespace, c->o.name))
        configmap_on_missing(c);
}

static void configmap_on_restored(void *arg)
{
    struct agent_configmap *c = arg;

    c->o.on_change(c->o.arg);
}

static void configmap_on_error(void *arg, const char *error)
{
    struct agent_configmap *c = arg;

    if (c->o.once) {
        if (!c->first)
            once_give_up(c, error);
        return;
    }
    if (c->is_outdated && configmap_is_refused(c))
        configmap_is_current(c);
    configmap_show_watch(c, false);
    log_warn("watch of ConfigMap failed, its last state stays active", L_STR("configmap", c->shown),
             L_STR("err", error));
    agent_touch(c->o.agent);
}

static void configmap_on_recovered(void *arg)
{
    struct agent_configmap *c = arg;

    if (c->o.once && c->first)
        return;
    configmap_show_watch(c, true);
    log_info("watch of ConfigMap works again", L_STR("configmap", c->shown));
    agent_touch(c->o.agent);
}

/* ---- Beginning and end ---- */

struct agent_configmap *agent_configmap_new(const struct agent_configmap_options *o)
{
    struct agent_configmap *c = xcalloc(1, sizeof(*c));
    const struct kube_watch_options watch = {.resource = &kube_configmaps,
                                             .namespace = o->namespace,
                                             .name = o->name,
                                             .on_set = configmap_on_set,
                                             .on_delete = configmap_on_delete,
                                             .on_synced = configmap_on_synced,
                                             .on_listed = configmap_on_listed,
                                             .on_restored = configmap_on_restored,
                                             .on_error = configmap_on_error,
                                             .on_recovered = configmap_on_recovered,
                                             .arg = c};

    c->o = *o;
    c->shown = xasprintf("%s/%s", o->namespace, o->name);
    c->apply.fn = once_apply;
    c->give_up.fn = configmap_on_give_up;
    c->watch = kube_watch_new(o->cluster, &watch);
    return c;
}

struct agent_configmap *agent_configmap_free(struct agent_configmap *c)
{
    if (!c)
        return NULL;
    loop_timer_clear(kube_loop(c->o.cluster), &c->apply);
    loop_timer_clear(kube_loop(c->o.cluster), &c->give_up);
    c->watch = kube_watch_free(c->watch);
    json_decref(c->first);
    free(c->shown);
    free(c->adjustments);
    free(c);
    return NULL;
}

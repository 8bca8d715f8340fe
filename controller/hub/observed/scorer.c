/* Owns the DynamicScorers and their probes: who calls it hands in what the watch shows, and is told what
 * to look at again. It schedules nothing, and writes nothing. Loop thread.
 *
 * The way of a field: scorer_read_spec() reads it from the object (rules/spec.c), scorer_refresh() makes
 * the summary of it and of /config (rules/effective.c); then written/desired.c puts the summary into the
 * lists of clusters (rules/plan.c), and written/works.c writes these (rules/work.c). */
#include "controller/hub/observed/scorer.h"

#include "controller/hub/observed/change.h"
#include "controller/hub/observed/decisions.h"
#include "controller/hub/observed/object.h"
#include "controller/hub/probe/probe_reason.h"
#include "controller/hub/probe/probe_status.h"
#include "controller/kube/condition.h"
#include "controller/kube/server_clock.h"
#include "controller/kube/time.h"
#include "exporter/base/alloc.h"
#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/hash.h"
#include "exporter/base/log.h"
#include "exporter/metric/metrics.h"

/* ---- The summary ---- */

/* Computes the effective configuration. */
static unsigned scorer_refresh(struct hub_scorer *s)
{
    const struct probe_status *p = probe_status(s->probe);
    struct effective now, *last = &s->effective;
    unsigned changes = CHANGE_NONE;

    effective_make(&now, s->name, &s->spec, &p->synced);
    if (effective_keep(&now, last, &s->spec, p->is_synced_elsewhere))
        changes = CHANGE_STATUS;
    else if (now.reason != last->reason || !str_eq(buf_str(&now.text), buf_str(&last->text)) ||
             strcmp(cstr(now.score_name), cstr(last->score_name)) != 0)
        changes = CHANGE_PLAN;
    effective_done(last);
    s->effective = now;
    return changes;
}

/* ---- Probes ---- */

/* Of everything that a status shows of a probe. */
static uint64_t scorer_probe_hash(const struct probe_status *st)
{
    const struct probe_part *parts[] = {&st->probe, &st->config};
    uint64_t h = hash_chain_u64((uint64_t)st->health, (uintptr_t)st->synced.owner);

    for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
        h = hash_chain_u64(h, parts[i]->ok * 2u + parts[i]->asked);
        h = hash_chain(hash_chain_u64(h, parts[i]->reason), str_of(parts[i]->message));
    }
    return h;
}

/* In whole seconds, as in the status, from which the next leader takes it: agents see no change then. */
static void scorer_note_suspension(struct hub_scorer *s)
{
    int64_t now_ms = kube_wall(s->all->o->kube).ms;

    if (probe_status(s->probe)->health != HEALTH_INACTIVE)
        s->suspended_ms = 0;
    else if (!s->suspended_ms)
        s->suspended_ms = now_ms - now_ms % 1000;
}

static void scorer_log_health(struct hub_scorer *s, const struct probe_status *st)
{
    if (st->health != s->health && st->health == HEALTH_ACTIVE)
        log_info("scoring API healthy", L_STR("scorer", s->name));
    else if (st->health != s->health && (s->health == HEALTH_ACTIVE || st->health == HEALTH_INACTIVE))
        log_warn("scoring API unhealthy", L_STR("scorer", s->name),
                 L_STR("reason", probe_reason_word(st->probe.reason)), L_STR("err", st->probe.message));
    s->health = st->health;
}

static void scorer_on_probed(void *arg, enum probe_what what, const struct probe_part *part)
{
    struct hub_scorer *s = arg;
    const struct probe_status *st = probe_status(s->probe);
    const char *word = what == PROBE_HEALTH ? "health" : "config";
    struct metrics *m = s->all->o->metrics;
    unsigned changes = CHANGE_NONE;
    uint64_t hash;

    metric_add(m, METRIC_HUB_PROBES, LV(word, part->ok ? "ok" : probe_reason_word(part->reason), s->name), 1);
    metric_observe(m, METRIC_HUB_PROBE_DURATION, LV(word, s->name), part->seconds);
    scorer_log_health(s, st);
    scorer_note_suspension(s);
    if (what == PROBE_CONFIG)
        changes |= scorer_refresh(s);
    /* Making a status counts the whole fleet, which is too much for every probe. */
    hash = scorer_probe_hash(st);
    if (s->probe_hash != hash)
        changes |= CHANGE_STATUS;
    s->probe_hash = hash;
    s->all->on_probed(s->all->arg, s, changes);
}

/* ---- One scorer ---- */

DEFINE_ORDER(scorer_compare_age, struct hub_scorer *const,
             COMPARE((*a)->created, (*b)->created) ?: strcmp((*a)->name, (*b)->name))

static void hub_scorer_free(struct hub_scorer *s)
{
    (void)probe_free(s->probe);
    scorer_forget_start(s);
    free(s->share.first_without_addon);
    scorer_spec_done(&s->spec);
    effective_done(&s->effective);
    last_status_done(&s->last_status);
    json_decref(s->object);
    free(s->name);
    free(s);
}

/* Since when the object's condition has had the status; 0: it does not have it. */
static int64_t scorer_condition_since(const struct hub_scorer *s, const char *type, const char *status)
{
    const json_t *c = kube_condition(kube_get(s->object, "status", NULL), type);

    return kube_condition_is(c, status) ? kube_time_parse(kube_str(c, "lastTransitionTime", NULL)).ms : 0;
}

static enum probe_health scorer_read_health(const struct hub_scorer *s)
{
    const char *word = kube_str(s->object, "status", "healthStatus", NULL);
    enum probe_health health = HEALTH_INACTIVE;

    while (health > HEALTH_UNKNOWN && strcmp(cstr(word), probe_health_word(health)) != 0)
        health--;
    return health;
}

/* Clusters keep their last summary while the newest spec is invalid, also after a restart. */
static void scorer_resume_summary(struct hub_scorer *s)
{
    const char *source = cstr(kube_str(s->object, "status", "configSource", NULL));
    struct str summary = kube_text(s->object, "status", "summary", NULL);
    struct effective e;

    if (effective_usable(&s->effective) || !summary.n)
        return;
    if (!effective_resume(&e, summary, strcmp(source, "API") == 0 ? CONFIG_FROM_API : CONFIG_FROM_SPEC)) {
        log_debug("status.summary ignored", L_STR("scorer", s->name));
        return;
    }
    effective_done(&s->effective);
    s->effective = e;
}

/* Goes on from the status that an earlier process, or another implementation, wrote. */
static void scorer_resume(struct hub_scorer *s)
{
    json_t *synced = kube_map(s->object, "status", "lastSyncedConfig", NULL);
    CLEANUP(api_config_done) struct api_config config = {0};
    char why[SPEC_WHY_BYTES];

    if (synced && api_config_read(&config, synced, why) < 0)
        log_debug("status.lastSyncedConfig ignored", L_STR("scorer", s->name), L_STR("err", why));
    probe_resume(s->probe, scorer_read_health(s), &config,
                 scorer_condition_since(s, "ConfigSynced", "False") > 0);
    s->health = probe_status(s->probe)->health;
    s->suspended_ms = s->health == HEALTH_INACTIVE ? scorer_condition_since(s, "Healthy", "False") : 0;
    scorer_note_suspension(s);
    s->distributed_ms = scorer_condition_since(s, "Distributed", "True");
    scorer_resume_summary(s);
}

static struct hub_scorer *hub_scorer_new(struct scorers *all, json_t *object)
{
    struct hub_scorer *s = xcalloc(1, sizeof(*s));
    struct probe_env env = {.loop = all->o->loop,
                            .http = all->o->http,
                            .hub = all->o->kube,
                            .namespace = all->o->namespace,
                            .settings = &all->o->probe,
                            .ended = scorer_on_probed,
                            .arg = s};

    env.name = s->name = xstrdup(kube_name(object));
    s->probe = probe_new(&env);
    s->all = all;
    s->share.entry = SIZE_MAX;
    s->created = kube_time_parse(kube_str(object, "metadata", "creationTimestamp", NULL)).ms;
    s->object = json_incref(object);
    all->by_age = xreallocarray(all->by_age, all->n + 1, sizeof(struct hub_scorer *));
    all->by_age[all->n++] = s;
    qsort(all->by_age, all->n, sizeof(struct hub_scorer *), scorer_compare_age);
    scorer_resume(s);
    return s;
}

/* An invalid spec leaves the last valid one active. */
static unsigned scorer_read_spec(struct hub_scorer *s)
{
    struct scorer_spec spec;

    if (scorer_spec_read(&spec, s->object, s->spec_error) < 0) {
        if (!s->has_spec)
            s->spec.health_check = spec.health_check;
        log_warn("invalid DynamicScorer, the last valid spec stays active", L_STR("scorer", s->name),
                 L_STR("err", s->spec_error));
        return CHANGE_NONE;
    }
    s->spec_error[0] = '\0';
    if (!json_equal(s->spec.placements, spec.placements)) /* what people edit takes effect at once */
        scorer_forget_start(s);
    scorer_spec_done(&s->spec);
    s->spec = spec;
    s->has_spec = true;
    probe_set(s->probe, &s->spec);
    scorer_note_suspension(s);
    s->health = probe_status(s->probe)->health;
    if (s->all->is_probing)
        probe_start(s->probe);
    return scorer_refresh(s);
}

/* A standby does not probe: it takes over from what the leader wrote. */
static unsigned scorer_follow(struct hub_scorer *s)
{
    scorer_resume(s);
    return s->has_spec ? scorer_refresh(s) : CHANGE_NONE;
}

void scorer_note_distribution(struct hub_scorer *s, bool is_up_to_date_somewhere, unix_ms now)
{
    if (s->share.place != PLACE_SUMMARIES)
        s->distributed_ms = 0;
    else if (!s->distributed_ms && is_up_to_date_somewhere)
        s->distributed_ms = now.ms;
}

/* ---- All scorers ---- */

struct hub_scorer *scorers_find(const struct scorers *all, const char *name)
{
    for (size_t i = 0; i < all->n; i++)
        if (strcmp(all->by_age[i]->name, name) == 0)
            return all->by_age[i];
    return NULL;
}

bool scorers_use_placements(const struct scorers *all)
{
    for (size_t i = 0; i < all->n; i++)
        if (all->by_age[i]->spec.placements)
            return true;
    return false;
}

/* Gone, or deleted and created again within one relist: a different object. */
bool scorer_has_ended(const struct hub_scorer *s, const json_t *object)
{
    return !object || object_is_deleting(object) || strcmp(kube_uid(s->object), kube_uid(object)) != 0;
}

unsigned scorers_see(struct scorers *all, json_t *object)
{
    struct hub_scorer *s = scorers_find(all, kube_name(object));
    bool is_edited = !s || !object_has_same_spec(s->object, object);
    unsigned changes = CHANGE_STATUS;

    if (!s)
        s = hub_scorer_new(all, object);
    json_decref(s->object);
    s->object = json_incref(object);
    if (is_edited)
        changes |= scorer_read_spec(s) | CHANGE_PLAN | CHANGE_EDITED;
    if (!all->is_probing)
        changes |= scorer_follow(s);
    return changes;
}

void scorers_remove(struct scorers *all, struct hub_scorer *s)
{
    size_t left = 0;

    for (size_t i = 0; i < all->n; i++)
        if (all->by_age[i] != s)
            all->by_age[left++] = all->by_age[i];
    all->n = left;
    hub_scorer_free(s);
}

void scorers_start_probes(struct scorers *all)
{
    all->is_probing = true;
    for (size_t i = 0; i < all->n; i++)
        if (all->by_age[i]->has_spec)
            probe_start(all->by_age[i]->probe);
}

unsigned scorers_stop_probes(struct scorers *all)
{
    unsigned changes = CHANGE_NONE;

    all->is_probing = false;
    for (size_t i = 0; i < all->n; i++) {
        probe_stop(all->by_age[i]->probe);
        /* The next leader's status may have been seen before the Lease was known to be lost. */
        changes |= scorer_follow(all->by_age[i]) & CHANGE_PLAN;
    }
    return changes;
}

void scorers_done(struct scorers *all)
{
    for (size_t i = 0; i < all->n; i++)
        hub_scorer_free(all->by_age[i]);
    free(all->by_age);
    all->by_age = NULL;
    all->n = 0;
}

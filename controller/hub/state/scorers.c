#include "controller/hub/state/state.h"

#include "exporter/base/alloc.h"
#include "exporter/base/hash.h"
#include "exporter/base/log.h"

/* Computes the effective configuration. A change schedules a plan. */
static void scorer_refresh(struct hub_scorer *s)
{
    const struct api_config *synced = &probe_status(s->probe)->synced;
    struct effective now, *last = &s->effective;

    effective_make(&now, s->name, &s->spec, synced);
    if (effective_keep(&now, last, &s->spec, probe_status(s->probe)->is_synced_elsewhere))
        hub_schedule_status(s->hub, "scorer", s->name, false);
    else if (now.reason != last->reason || !str_eq(buf_str(&now.text), buf_str(&last->text)) ||
             strcmp(cstr(now.score_name), cstr(last->score_name)) != 0)
        hub_schedule_plan(s->hub);
    effective_done(last);
    s->effective = now;
}

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
    int64_t now_ms = kube_wall(s->hub->o.kube).ms;

    if (probe_status(s->probe)->health != HEALTH_INACTIVE)
        s->suspended_ms = 0;
    else if (!s->suspended_ms)
        s->suspended_ms = now_ms - now_ms % 1000;
}

static void scorer_on_probed(void *arg, enum probe_what what, const struct probe_part *part)
{
    struct hub_scorer *s = arg;
    const struct probe_status *st = probe_status(s->probe);
    uint64_t hash;
    const char *word = what == PROBE_HEALTH ? "health" : "config";
    struct metrics *m = s->hub->o.metrics;

    metric_add(m, METRIC_HUB_PROBES, LV(word, part->ok ? "ok" : probe_reason_word(part->reason), s->name), 1);
    metric_observe(m, METRIC_HUB_PROBE_DURATION, LV(word, s->name), part->seconds);
    if (st->health != s->health && st->health == HEALTH_ACTIVE)
        log_info("scoring API healthy", L_STR("scorer", s->name));
    else if (st->health != s->health && (s->health == HEALTH_ACTIVE || st->health == HEALTH_INACTIVE))
        log_warn("scoring API unhealthy", L_STR("scorer", s->name),
                 L_STR("reason", probe_reason_word(st->probe.reason)), L_STR("err", st->probe.message));
    s->health = st->health;
    scorer_note_suspension(s);
    if (s->place != hub_scorer_place(s)) {
        s->place = hub_scorer_place(s);
        hub_schedule_plan(s->hub);
    }
    if (what == PROBE_CONFIG)
        scorer_refresh(s);
    /* Making a status counts the whole fleet, which is too much for every probe. */
    hash = scorer_probe_hash(st);
    if (s->probe_hash != hash)
        hub_schedule_status(s->hub, "scorer", s->name, false);
    s->probe_hash = hash;
}

/* ---- One scorer ---- */

DEFINE_ORDER(scorer_compare_age, struct hub_scorer *const,
             COMPARE((*a)->created, (*b)->created) ?: strcmp((*a)->name, (*b)->name))

static void hub_scorer_free(struct hub_scorer *s)
{
    (void)probe_free(s->probe);
    hub_scorer_drop_held(s);
    free(s->first_without_addon);
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

/* Goes on from the status that an earlier process, or another implementation, wrote. */
static void scorer_resume(struct hub_scorer *s)
{
    const char *word = kube_str(s->object, "status", "healthStatus", NULL);
    const char *source = cstr(kube_str(s->object, "status", "configSource", NULL));
    struct str summary = kube_text(s->object, "status", "summary", NULL);
    json_t *synced = kube_map(s->object, "status", "lastSyncedConfig", NULL);
    enum probe_health health = HEALTH_INACTIVE;
    struct effective e;
    CLEANUP(api_config_done) struct api_config config = {0};
    char why[SPEC_WHY_BYTES];

    while (health > HEALTH_UNKNOWN && strcmp(cstr(word), health_word(health)) != 0)
        health--;
    if (synced && api_config_read(&config, synced, why) < 0)
        log_debug("status.lastSyncedConfig ignored", L_STR("scorer", s->name), L_STR("err", why));
    probe_resume(s->probe, health, &config, scorer_condition_since(s, "ConfigSynced", "False") > 0);
    s->health = probe_status(s->probe)->health;
    s->suspended_ms = s->health == HEALTH_INACTIVE ? scorer_condition_since(s, "Healthy", "False") : 0;
    scorer_note_suspension(s);
    s->distributed_ms = scorer_condition_since(s, "Distributed", "True");
    if (effective_usable(&s->effective) || !summary.n)
        return;
    /* Clusters keep their last summary while the newest spec is invalid, also after a restart. */
    if (effective_resume(&e, summary, strcmp(source, "API") == 0 ? CONFIG_FROM_API : CONFIG_FROM_SPEC)) {
        effective_done(&s->effective);
        s->effective = e;
    } else {
        log_debug("status.summary ignored", L_STR("scorer", s->name));
    }
}

static struct hub_scorer *scorer_add(struct hub *h, json_t *object)
{
    struct hub_scorer *s = xcalloc(1, sizeof(*s));
    struct probe_env env = {.loop = h->o.loop,
                            .http = h->o.http,
                            .hub = h->o.kube,
                            .namespace = h->o.namespace,
                            .settings = &h->o.probe,
                            .ended = scorer_on_probed,
                            .arg = s};

    env.name = s->name = xstrdup(kube_name(object));
    s->probe = probe_new(&env);
    s->hub = h;
    s->entry = SIZE_MAX;
    s->created = kube_time_parse(kube_str(object, "metadata", "creationTimestamp", NULL)).ms;
    s->object = json_incref(object);
    h->by_age = xreallocarray(h->by_age, h->n_scorers + 1, sizeof(struct hub_scorer *));
    h->by_age[h->n_scorers++] = s;
    qsort(h->by_age, h->n_scorers, sizeof(struct hub_scorer *), scorer_compare_age);
    scorer_resume(s);
    return s;
}

/* An invalid spec leaves the last valid one active. */
static void scorer_read_spec(struct hub_scorer *s)
{
    struct scorer_spec spec;

    if (scorer_spec_read(&spec, s->object, s->spec_error) < 0) {
        if (!s->has_spec)
            s->spec.health_check = spec.health_check;
        log_warn("invalid DynamicScorer, the last valid spec stays active", L_STR("scorer", s->name),
                 L_STR("err", s->spec_error));
        return;
    }
    s->spec_error[0] = '\0';
    if (!json_equal(s->spec.placements, spec.placements)) /* what people edit takes effect at once */
        hub_scorer_drop_held(s);
    scorer_spec_done(&s->spec);
    s->spec = spec;
    s->has_spec = true;
    probe_set(s->probe, &s->spec);
    scorer_note_suspension(s);
    s->health = probe_status(s->probe)->health;
    if (s->hub->active)
        probe_start(s->probe);
    scorer_refresh(s);
}

/* A standby does not probe: it takes over from what the leader wrote. */
static void scorer_follow(struct hub_scorer *s)
{
    scorer_resume(s);
    if (s->has_spec)
        scorer_refresh(s);
}

static void scorer_delete(struct hub *h, struct hub_scorer *s)
{
    size_t left = 0;

    for (size_t i = 0; i < h->n_scorers; i++)
        if (h->by_age[i] != s) {
            h->by_age[left++] = h->by_age[i];
            h->by_age[i]->older = h->by_age[i]->younger = NULL; /* found again by the next plan */
        }
    h->n_scorers = left;
    if (s->entry != SIZE_MAX)
        h->plan->entries[s->entry].owner = NULL;
    metrics_forget(h->o.metrics, "scorer", s->name);
    hub_scorer_free(s);
    hub_schedule_plan(h);
    hub_schedule_tally(h);
}

void hub_scorer_seen(struct hub *h, const char *name, json_t *object)
{
    struct hub_scorer *s = hub_scorer_find(h, name);
    bool gone = !object || object_is_deleting(object), changed;

    /* Gone, or deleted and created again within one relist: a different object. */
    if (s && (gone || strcmp(kube_uid(s->object), kube_uid(object)) != 0)) {
        scorer_delete(h, s);
        s = NULL;
    }
    if (gone)
        return;
    changed = !s || !object_has_same_spec(s->object, object);
    if (!s)
        s = scorer_add(h, object);
    json_decref(s->object);
    s->object = json_incref(object);
    if (changed) {
        scorer_read_spec(s);
        hub_schedule_plan(h);
    }
    if (!h->active)
        scorer_follow(s);
    hub_schedule_status(h, "scorer", s->name, changed);
}

void hub_update_probes(struct hub *h)
{
    for (size_t i = 0; i < h->n_scorers; i++) {
        struct hub_scorer *s = h->by_age[i];

        if (!h->active) {
            probe_stop(s->probe);
            /* The next leader's status may have been seen before the Lease was known to be lost. */
            scorer_follow(s);
        } else if (s->has_spec) {
            probe_start(s->probe);
        }
    }
}

void hub_scorers_free(struct hub *h)
{
    for (size_t i = 0; i < h->n_scorers; i++)
        hub_scorer_free(h->by_age[i]);
    free(h->by_age);
}

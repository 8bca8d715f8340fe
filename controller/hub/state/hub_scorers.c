/* Owns the DynamicScorers: what each asks for, how its API is, and what both come to. */
#include "controller/hub/state/hub_internal.h"

#include "exporter/base/hash.h"
#include "exporter/base/log.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

struct hub_scorer *hub_scorer_find(const struct hub *h, const char *name)
{
    return map_get(&h->scorers, name);
}

bool hub_scorer_healthy(const struct hub_scorer *s)
{
    return s->hub->o.keep_unhealthy || (s->probe && probe_status(s->probe)->health == HEALTH_ACTIVE);
}

static bool same_text(const struct effective *a, const struct effective *b)
{
    return a->reason == b->reason && str_eq(buf_str(&a->text), buf_str(&b->text)) &&
           strcmp(cstr(a->score_name), cstr(b->score_name)) == 0;
}

/* What spec and API come to now. A change asks for a new plan; when memory is out all stays as it was. */
static void refresh(struct hub_scorer *s)
{
    const struct api_config *synced = &probe_status(s->probe)->synced;
    bool full = s->spec.mode == SYNC_FULL && synced->owner;
    struct effective now = {0};

    if (effective_make(&now, s->name, &s->spec, full ? synced : NULL) < 0) {
        log_error("scorer not looked at: out of memory", L_STR("scorer", s->name));
        return;
    }
    if (effective_keep(&now, &s->effective, &s->spec))
        hub_status_wanted(s->hub, "scorer", s->name);
    else if (!same_text(&now, &s->effective))
        hub_replan(s->hub);
    effective_done(&s->effective);
    s->effective = now;
}

static void log_health(const struct hub_scorer *s, enum probe_health before)
{
    const struct probe_status *st = probe_status(s->probe);

    if (st->health == HEALTH_ACTIVE)
        log_info("scoring API healthy", L_STR("scorer", s->name));
    else if (before == HEALTH_ACTIVE || st->health == HEALTH_INACTIVE)
        log_warn("scoring API unhealthy", L_STR("scorer", s->name), L_STR("reason", st->probe.reason),
                 L_STR("err", st->probe.message));
}

/* All of a probe's outcome that a status shows. */
static uint64_t outcome(const struct probe_status *st)
{
    const struct probe_part *parts[] = {&st->probe, &st->config};
    uint64_t h = hash_bytes((struct str){(const char *)&st->synced.owner, sizeof(st->synced.owner)},
                            (uint64_t)st->health);

    for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
        h = hash_bytes(str_of(parts[i]->reason), h * 4 + parts[i]->ok * 2 + parts[i]->asked);
        h = hash_bytes(str_of(parts[i]->message), h);
    }
    return h;
}

static void on_probed(void *arg, enum probe_what what, const struct probe_part *part)
{
    struct hub_scorer *s = arg;
    enum probe_health health = probe_status(s->probe)->health;

    hub_count_probe(s->hub, s, what, part);
    if (health != s->health) {
        log_health(s, s->health);
        s->health = health;
        hub_replan(s->hub);
    }
    if (what == PROBE_CONFIG)
        refresh(s);
    if (s->told != outcome(probe_status(s->probe)))
        hub_status_wanted(s->hub, "scorer", s->name);
    s->told = outcome(probe_status(s->probe));
}

/* ---- By age ---- */

static int compare_age(const void *pa, const void *pb)
{
    const struct hub_scorer *a = *(const struct hub_scorer *const *)pa,
                            *b = *(const struct hub_scorer *const *)pb;

    return a->created != b->created ? (a->created < b->created ? -1 : 1) : strcmp(a->name, b->name);
}

/* Each adds room for itself beforehand, so that sorting never fails. */
static void sort_by_age(struct hub *h)
{
    struct hub_scorer *s;
    size_t at = 0;

    h->n_scorers = 0;
    while ((s = map_next(&h->scorers, &at)))
        h->by_age[h->n_scorers++] = s;
    qsort(h->by_age, h->n_scorers, sizeof(struct hub_scorer *), compare_age);
}

static int64_t time_created(const json_t *object)
{
    const char *text = kube_str(object, "metadata", "creationTimestamp", NULL);
    struct tm tm = {0};

    return text && strptime(text, "%Y-%m-%dT%H:%M:%S", &tm) ? (int64_t)timegm(&tm) : INT64_MAX;
}

/* ---- One scorer ---- */

struct hub_scorer *hub_scorer_free(struct hub_scorer *s)
{
    if (!s)
        return NULL;
    (void)probe_free(s->probe);
    scorer_spec_done(&s->spec);
    effective_done(&s->effective);
    written_done(&s->written);
    json_decref(s->object);
    free(s->name);
    free(s);
    return NULL;
}

/* What clusters have stays theirs when the newest spec cannot be used, however this controller came to be. */
static void resume_summary(struct hub_scorer *s)
{
    struct str text = kube_text(s->object, "status", "summary", NULL);
    const char *source = kube_str(s->object, "status", "configSource", NULL);
    struct effective e;

    if (effective_usable(&s->effective) || !text.n)
        return;
    if (effective_resume(&e, text, strcmp(cstr(source), "API") == 0 ? CONFIG_FROM_API : CONFIG_FROM_SPEC) <
        0) {
        log_debug("status.summary not read", L_STR("scorer", s->name));
        return;
    }
    effective_done(&s->effective);
    s->effective = e;
}

/* What the status of a former life of the controller, or another maker's, tells. */
static void resume(struct hub_scorer *s)
{
    const char *word = kube_str(s->object, "status", "healthStatus", NULL);
    json_t *synced = kube_map(s->object, "status", "lastSyncedConfig", NULL);
    enum probe_health health = !word                           ? HEALTH_UNKNOWN
                               : strcmp(word, "Active") == 0   ? HEALTH_ACTIVE
                               : strcmp(word, "Inactive") == 0 ? HEALTH_INACTIVE
                                                               : HEALTH_UNKNOWN;
    CLEANUP(api_config_done) struct api_config config = {0};
    char why[SPEC_WHY_BYTES];

    if (synced && api_config_read(&config, synced, why) < 0)
        log_debug("lastSyncedConfig not read", L_STR("scorer", s->name), L_STR("err", why));
    probe_resume(s->probe, health, &config);
    s->health = health;
    resume_summary(s);
}

static int new_scorer(struct hub_scorer **ret, struct hub *h, json_t *object)
{
    struct hub_scorer *s = calloc(1, sizeof(*s));
    struct hub_scorer **by_age = realloc(h->by_age, (h->scorers.n + 1) * sizeof(struct hub_scorer *));
    struct probe_env env = {.loop = h->o.loop,
                            .http = h->o.http,
                            .hub = h->o.kube,
                            .namespace = h->o.namespace,
                            .settings = &h->o.probe};
    const struct probe_callbacks callbacks = {.ended = on_probed, .arg = s};

    if (by_age)
        h->by_age = by_age;
    if (s)
        env.name = s->name = strdup(kube_name(object));
    if (!env.name || !by_age || probe_new(&s->probe, &env, &callbacks) < 0 ||
        map_set(&h->scorers, s->name, s) < 0) {
        (void)hub_scorer_free(s);
        return -ENOMEM;
    }
    s->hub = h;
    s->entry = SIZE_MAX;
    s->created = time_created(object);
    s->object = json_incref(object);
    sort_by_age(h);
    resume(s);
    *ret = s;
    return 0;
}

/* The newest spec, when it can be used; the one before stays in force otherwise. */
static void read_spec(struct hub_scorer *s)
{
    struct scorer_spec spec;
    char why[SPEC_WHY_BYTES];
    int r = scorer_spec_read(&spec, s->object, why);

    if (r == -ENOMEM)
        (void)snprintf(why, sizeof(why), "out of memory");
    if (r < 0) {
        (void)snprintf(s->spec_why, sizeof(s->spec_why), "%s", why);
        log_warn("DynamicScorer refused, the spec before stays in force", L_STR("scorer", s->name),
                 L_STR("err", s->spec_why));
        return;
    }
    s->spec_why[0] = '\0';
    scorer_spec_done(&s->spec);
    s->spec = spec;
    s->has_spec = true;
    r = probe_set(s->probe, &s->spec);
    s->health = probe_status(s->probe)->health;
    if (r < 0 || (s->hub->active && probe_start(s->probe) < 0))
        log_error("scoring API not probed: out of memory", L_STR("scorer", s->name));
    refresh(s);
}

/* Another is at work: it knows the API, and this one goes on from there when it takes over. */
static void follow(struct hub_scorer *s)
{
    resume(s);
    if (s->has_spec)
        refresh(s);
}

static int64_t generation_of(const json_t *object)
{
    int64_t n = 0;

    (void)kube_int(object, &n, "metadata", "generation", NULL);
    return n;
}

void hub_scorer_set(void *hub, json_t *object)
{
    struct hub *h = hub;
    struct hub_scorer *s = hub_scorer_find(h, kube_name(object));
    bool changed;

    /* Deleted and made again within one relist: another one. */
    if (s && strcmp(kube_uid(s->object), kube_uid(object)) != 0) {
        hub_scorer_delete(h, kube_namespace(object), kube_name(object));
        s = NULL;
    }
    if (kube_str(object, "metadata", "deletionTimestamp", NULL)) {
        if (s)
            hub_scorer_delete(h, kube_namespace(object), kube_name(object));
        return;
    }
    changed = !s || generation_of(s->object) != generation_of(object);
    if (!s && new_scorer(&s, h, object) < 0) {
        log_error("DynamicScorer not followed: out of memory", L_STR("scorer", kube_name(object)));
        return;
    }
    json_decref(s->object);
    s->object = json_incref(object);
    if (changed) {
        read_spec(s);
        hub_replan(h);
    }
    if (!h->active)
        follow(s);
    hub_status_wanted(h, "scorer", s->name);
}

void hub_scorer_delete(void *hub, const char *namespace, const char *name)
{
    struct hub *h = hub;
    struct hub_scorer *s = map_take(&h->scorers, name);

    (void)namespace;
    if (!s)
        return;
    for (size_t i = 0; i < h->n_entries; i++)
        if (h->entry_scorers[i] == s)
            h->entry_scorers[i] = NULL;
    hub_forget_scorer(h, name);
    sort_by_age(h);
    /* Whom it was compared with is found anew by the plan. */
    for (size_t i = 0; i < h->n_scorers; i++)
        h->by_age[i]->older = h->by_age[i]->younger = NULL;
    (void)hub_scorer_free(s);
    hub_replan(h);
    hub_touch(h);
}

void hub_probe_all(struct hub *h)
{
    for (size_t i = 0; i < h->n_scorers; i++) {
        struct hub_scorer *s = h->by_age[i];

        if (!h->active)
            probe_stop(s->probe);
        else if (s->has_spec && probe_start(s->probe) < 0)
            log_error("scoring API not probed: out of memory", L_STR("scorer", s->name));
    }
}

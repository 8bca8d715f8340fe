/* A DynamicScorer's status. Each condition covers one aspect; Ready says whether the scorer works on some
 * cluster. */
#include "controller/hub/probe/probe.h"
#include "controller/hub/rules/effective.h"
#include "controller/hub/rules/spec.h"
#include "controller/hub/state/status.h"
#include "controller/hub/state/status_conditions.h"
#include "exporter/base/clock.h"

#include <errno.h>
#include <stdio.h>

enum { SYNCED_BYTES = 300, DISTRIBUTED_BYTES = 300 }; /* in the message of Ready */
enum { HEALTHY, SYNCED, VALID, UNIQUE, DISTRIBUTED, SCORING, READY, CONDITIONS };

static const char *const types[CONDITIONS] = {
    [HEALTHY] = "Healthy", [SYNCED] = "ConfigSynced",     [VALID] = "Valid", [UNIQUE] = "UniqueScoreName",
    [SCORING] = "Scoring", [DISTRIBUTED] = "Distributed", [READY] = "Ready",
};

static void scorer_set_inactive(const struct hub_scorer *s, const struct probe_part *p,
                                struct status_condition *c)
{
    const char *kept = s->hub->o.keep_unhealthy ? "; still distributed, as --keep-unhealthy is set" : "";

    if (p->asked && p->ok)
        condition_set(c, TRUTH_FALSE, "Recovering",
                      "the scoring API responds again; healthy after %u consecutive successes%s",
                      s->hub->o.probe.healthy_after, kept);
    else if (p->asked)
        condition_set(c, TRUTH_FALSE, p->reason, "%s%s", p->message, kept);
    else if (!condition_resume(c, s->object) || c->status != TRUTH_FALSE)
        condition_set(c, TRUTH_FALSE, "NotProbed", "the scoring API was unhealthy when last probed%s", kept);
}

/* By the hub's probes. */
static void scorer_set_probed(const struct hub_scorer *s, struct status_condition *c)
{
    const struct probe_status *p = scorer_probe(s);

    if (p->health == HEALTH_INACTIVE)
        scorer_set_inactive(s, &p->probe, c);
    else if (p->health == HEALTH_ACTIVE && p->probe.asked && !p->probe.ok)
        condition_set(c, TRUTH_TRUE, "Healthy",
                      "the last probe failed; unhealthy after %u consecutive failures: %s",
                      s->hub->o.probe.unhealthy_after, p->probe.message);
    else if (p->health == HEALTH_ACTIVE)
        condition_set(c, TRUTH_TRUE, "Healthy", "the scoring API responds");
    else if (p->probe.asked)
        condition_set(c, TRUTH_UNKNOWN, p->probe.reason, "%s", p->probe.message);
    else
        condition_set(c, TRUTH_UNKNOWN, "NotProbed", "the scoring API has not been probed yet");
}

static void scorer_set_healthy(const struct hub_scorer *s, struct status_condition *c)
{
    if (s->spec.health_check == HEALTH_CHECK_HUB)
        scorer_set_probed(s, c);
    else if (s->spec.health_check == HEALTH_CHECK_AGENTS)
        scorer_set_reported(s, c);
    else
        condition_set(c, TRUTH_UNKNOWN, "NotChecked", "spec.healthCheck is None");
}

/* What stays active while /config cannot be read. */
static const char *scorer_config_meanwhile(const struct hub_scorer *s)
{
    if (scorer_probe(s)->synced.owner)
        return "the last valid configuration stays active";
    return s->effective.reason == EFFECTIVE_OK
               ? "none has been read yet, so the fields of the DynamicScorer are active"
               : "no configuration has been read yet";
}

static void scorer_set_synced(const struct hub_scorer *s, struct status_condition *c)
{
    const struct probe_status *p = scorer_probe(s);

    if (s->has_spec && s->spec.mode == SYNC_NONE)
        condition_set(c, TRUTH_TRUE, "NotNeeded", "configSyncMode is None");
    else if (p->config.asked && p->config.ok)
        condition_set(c, TRUTH_TRUE, "Synced", "the configuration was read from the scoring API");
    else if (p->config.asked)
        condition_set(c, TRUTH_FALSE, p->config.reason, "%s; %s", p->config.message,
                      scorer_config_meanwhile(s));
    else if (!condition_resume(c, s->object) || (c->status == TRUTH_TRUE && !p->synced.owner))
        condition_set(c, TRUTH_UNKNOWN, "NotAsked",
                      "the configuration has not been read from the scoring API yet");
}

static void scorer_set_valid(const struct hub_scorer *s, struct status_condition *c)
{
    static const struct {
        const char *reason;
        enum truth status;
    } reasons[] = {
        [EFFECTIVE_OK] = {"Valid", TRUTH_TRUE},
        [EFFECTIVE_INCOMPLETE] = {"Incomplete", TRUTH_FALSE},
        [EFFECTIVE_TOKEN_HOST] = {"TokenHostNotAllowed", TRUTH_FALSE},
        [EFFECTIVE_WAITING] = {"Waiting", TRUTH_UNKNOWN},
    };
    enum effective_reason reason = s->effective.reason;

    if (*s->spec_error || !s->has_spec)
        condition_set(c, TRUTH_FALSE, "InvalidSpec", "%s%s", s->spec_error,
                      s->has_spec                       ? "; the last valid spec stays active"
                      : effective_usable(&s->effective) ? "; the last valid summary stays active"
                                                        : "");
    else
        condition_set(c, reasons[reason].status, reasons[reason].reason, "%s%s%s",
                      reason != EFFECTIVE_OK  ? s->effective.error
                      : *s->effective.warning ? "the summary is valid, but its rounds will fail: "
                                              : "the summary is valid",
                      reason == EFFECTIVE_OK ? s->effective.warning : "",
                      s->effective.kept ? "; the last valid summary stays active" : "");
}

/* Two score names that map to one object. */
static void scorer_set_same_object(const struct hub_scorer *s, struct status_condition *c)
{
    const struct hub_scorer *other = s->older ?: s->younger;

    condition_set(c, TRUTH_FALSE, "DuplicateScoreName",
                  "score name %.256s maps to AddOnPlacementScore %s, as does score name %.256s of the %s "
                  "DynamicScorer %s; %s is not distributed",
                  cstr(s->effective.score_name), s->object_name, cstr(other->effective.score_name),
                  s->older ? "older" : "younger", other->name, s->older ? "this one" : "the younger one");
}

static void scorer_set_unique(const struct hub_scorer *s, struct status_condition *c)
{
    if (hub_scorer_shares_object(s))
        scorer_set_same_object(s, c);
    else if (s->older)
        condition_set(c, TRUTH_FALSE, "DuplicateScoreName",
                      "score name %s belongs to the older DynamicScorer %s; this one is not distributed",
                      cstr(s->effective.score_name), s->older->name);
    else if (s->younger)
        condition_set(c, TRUTH_FALSE, "DuplicateScoreName",
                      "score name %s is also used by the younger DynamicScorer %s, which is not distributed",
                      cstr(s->effective.score_name), s->younger->name);
    else if (!s->effective.score_name)
        condition_set(c, TRUTH_UNKNOWN, "NoScoreName", "the score name is not known yet");
    else
        condition_set(c, TRUTH_TRUE, "Unique", "no other DynamicScorer uses score name %s",
                      s->effective.score_name);
}

/* The condition that keeps the scorer from working on any cluster; NULL when none does. False goes before
 * Unknown. */
static const struct status_condition *scorer_blocking_condition(const struct hub_scorer *s,
                                                                const struct status_condition list[])
{
    const struct tally *t = &s->tally;
    bool is_probed = s->spec.health_check == HEALTH_CHECK_HUB; /* otherwise Scoring says more than Healthy */

    if (list[VALID].status == TRUTH_FALSE)
        return &list[VALID];
    if (is_probed && list[HEALTHY].status == TRUTH_FALSE)
        return &list[HEALTHY];
    if (list[VALID].status == TRUTH_UNKNOWN)
        return list[SYNCED].status == TRUTH_FALSE ? &list[SYNCED] : &list[VALID];
    if (is_probed && list[HEALTHY].status == TRUTH_UNKNOWN)
        return &list[HEALTHY];
    if (t->up_to_date <= t->stuck)
        return &list[DISTRIBUTED];
    if (t->unavailable == t->selected)
        return &list[SCORING];
    return t->scoring || list[SCORING].status != TRUTH_FALSE ? NULL : &list[SCORING];
}

static void scorer_set_ready(const struct hub_scorer *s, const struct status_condition list[],
                             struct status_condition *ready)
{
    const struct status_condition *cause = scorer_blocking_condition(s, list);
    const struct status_condition *synced = &list[SYNCED], *distributed = &list[DISTRIBUTED];
    bool unsynced = synced->status == TRUTH_FALSE;
    bool partly = s->tally.no_room && distributed->status == TRUTH_FALSE;

    if (cause)
        condition_set(ready, cause->status, cause->reason, "%s", cause->message);
    else
        condition_set(ready, TRUTH_TRUE, "Ready", "%.*s%s%.*s%s%s", unsynced ? SYNCED_BYTES : 0,
                      synced->message, unsynced ? "; " : "", partly ? DISTRIBUTED_BYTES : 0,
                      distributed->message, partly ? "; " : "", list[SCORING].message);
}

static void scorer_set_conditions(const struct hub_scorer *s, struct status_condition list[CONDITIONS])
{
    for (size_t i = 0; i < CONDITIONS; i++)
        list[i].type = types[i];
    scorer_set_healthy(s, &list[HEALTHY]);
    scorer_set_synced(s, &list[SYNCED]);
    scorer_set_valid(s, &list[VALID]);
    scorer_set_unique(s, &list[UNIQUE]);
    scorer_set_distributed(s, &list[DISTRIBUTED]);
    scorer_set_scoring(s, &list[SCORING]);
    scorer_set_ready(s, list, &list[READY]);
}

bool status_scorer_ready(const struct hub_scorer *s)
{
    struct status_condition list[CONDITIONS];

    scorer_set_conditions(s, list);
    return list[READY].status == TRUTH_TRUE;
}

static int scorer_put_summary(const struct hub_scorer *s, json_t *status)
{
    const struct effective *e = &s->effective;

    if (!effective_usable(e))
        return status_drop(status, "summary", s->object) ?: status_drop(status, "interval", s->object);
    return status_put(status, "summary", json_stringn(e->text.p, e->text.n), s->object)
               ?: status_put(status, "interval",
                             json_sprintf("%" JSON_INTEGER_FORMAT "s", (json_int_t)e->interval_ms / 1000),
                             s->object);
}

/* The members that describe the active configuration. */
static int scorer_put_config(const struct hub_scorer *s, json_t *status)
{
    static const char *const sources[] = {[CONFIG_FROM_SPEC] = "Spec", [CONFIG_FROM_API] = "API"};
    const struct probe_status *p = scorer_probe(s);
    const char *name = s->effective.score_name;
    int r = p->synced.owner ? status_put(status, "lastSyncedConfig", api_config_value(&p->synced), s->object)
                            : status_drop(status, "lastSyncedConfig", s->object);

    if (r == 0)
        r = name ? status_put(status, "scoreName", json_string(name), s->object)
                 : status_drop(status, "scoreName", s->object);
    if (r == 0)
        r = s->has_spec || effective_usable(&s->effective)
                ? status_put(status, "configSource", json_string(sources[s->effective.source]), s->object)
                : status_drop(status, "configSource", s->object);
    return r ?: scorer_put_summary(s, status);
}

json_t *status_of_scorer(const struct hub_scorer *s, unix_ms now)
{
    struct status_condition list[CONDITIONS];
    json_auto_t *status = json_pack("{s:s, s:I}", "healthStatus", health_word(hub_scorer_health(s)),
                                    "observedGeneration", status_generation(s->object));

    scorer_set_conditions(s, list);
    if (!status || scorer_put_config(s, status) < 0 || scorer_put_clusters(s, status) < 0 ||
        status_put(status, "conditions", conditions_value(list, CONDITIONS, s->object, &s->last_status, now),
                   s->object) < 0)
        return NULL;
    return TAKE_PTR(status);
}

/* Health by probes or by agents' reports, and the list that it lets a scorer into. Asked by the plan, the
 * conductor, statuses and pages. Owns nothing, changes nothing; loop thread. */
#include "controller/hub/follows/health.h"

#include "controller/hub/follows/counts.h"
#include "controller/hub/observed/scorer.h"
#include "controller/hub/probe/probe.h"
#include "controller/hub/probe/probe_status.h"
#include "controller/hub/rules/spec.h"
#include "controller/kube/json.h"

enum probe_health scorer_health(const struct fleet *f, const struct hub_scorer *s)
{
    const struct tally *t = counts_of(f->counts, s);
    bool works = t->api_healthy > 0, fails = t->api_unhealthy.total > 0;

    if (s->spec.health_check == HEALTH_CHECK_HUB)
        return probe_status(s->probe)->health;
    if (s->spec.health_check == HEALTH_CHECK_NONE || (!works && !fails))
        return HEALTH_UNKNOWN;
    if (!fails)
        return HEALTH_ACTIVE;
    return works ? HEALTH_DEGRADED : HEALTH_INACTIVE;
}

bool scorer_awaits_config(const struct hub_scorer *s)
{
    const struct probe_status *p = probe_status(s->probe);

    return s->has_spec && s->spec.mode == SYNC_FULL && !p->synced.owner && !p->config.asked &&
           !kube_str(s->object, "status", "summary", NULL);
}

enum hub_place scorer_place(const struct hub_options *o, const struct hub_scorer *s)
{
    if (scorer_awaits_config(s))
        return PLACE_NONE;
    if (o->keep_unhealthy || s->spec.health_check != HEALTH_CHECK_HUB)
        return PLACE_SUMMARIES;
    switch (probe_status(s->probe)->health) {
    case HEALTH_ACTIVE:
        return PLACE_SUMMARIES;
    case HEALTH_INACTIVE:
        return PLACE_SUSPENDED;
    case HEALTH_UNKNOWN:
    case HEALTH_DEGRADED:
    case HEALTH_STATES:
        break;
    }
    return PLACE_NONE;
}

bool scorer_is_probed(const struct hub_scorer *s)
{
    const struct probe_status *p = probe_status(s->probe);
    bool awaits_health =
        s->spec.health_check == HEALTH_CHECK_HUB && p->health == HEALTH_UNKNOWN && !p->probe.asked;

    return !scorer_awaits_config(s) && !awaits_health;
}

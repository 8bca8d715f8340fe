/* Owns nothing, changes nothing. Called as the status of the DynamicScoringConfig is made, by the pages,
 * and as metrics are read. */
#include "controller/hub/follows/adjusted.h"

#include "controller/hub/rules/adjustments.h"
#include "controller/hub/rules/plan.h"
#include "controller/kube/json.h"
#include "controller/kube/time.h"
#include "controller/placement/adjust.h"
#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/text.h"

enum { ADJUSTED_PATTERN_BYTES = 80 }; /* of a pattern in a warning */

bool adjustments_are_counted(const struct fleet *f)
{
    return f->plan && f->plan->adjustments.owner == f->seen->configs.used.adjustments.owner;
}

bool adjustment_has_ended(const struct fleet *f, size_t i)
{
    unix_ms until = f->plan->adjustments.list[i].what.until;

    return until.ms && f->wall.ms >= until.ms;
}

bool adjustment_is_idle(const struct fleet *f, size_t i)
{
    return adjustment_has_ended(f, i) || !f->plan->of_adjustments[i].clusters;
}

static bool set_is_empty(const uint64_t *set, size_t words)
{
    for (size_t i = 0; i < words; i++)
        if (set[i])
            return false;
    return true;
}

void adjustment_warning(struct buf *b, const struct fleet *f, size_t i)
{
    const struct fleet_adjustment *a = &f->plan->adjustments.list[i];
    const struct plan_adjustment *counts = &f->plan->of_adjustments[i];

    if (adjustment_has_ended(f, i))
        buf_puts(b, "until has passed");
    else if (counts->clusters)
        return;
    else if (!counts->selected && a->cluster)
        buf_printf(b, "no cluster matches clusterName \"%.*s\"", ADJUSTED_PATTERN_BYTES, a->cluster);
    else if (!counts->selected)
        buf_puts(b, "no cluster matches clusterSelector");
    else if (set_is_empty(counts->entries, f->plan->words))
        buf_printf(b, "no score matches scoreName \"%.*s\"", ADJUSTED_PATTERN_BYTES, a->what.score);
    else
        buf_puts(b, "no matching cluster has a matching score");
}

size_t adjustment_scores(const struct plan *plan, size_t i)
{
    size_t n = 0;

    for (size_t k = 0; k < plan->words; k++)
        n += (size_t)__builtin_popcountll(plan->of_adjustments[i].matched[k]);
    return n;
}

json_t *adjustments_told(const struct hub_config *c)
{
    const json_t *status = c->last_status.sent ?: kube_get(c->object, "status", NULL);

    return kube_list(status, "adjustments", NULL);
}

unix_ms adjustment_since(const struct fleet *f, const struct hub_config *c, size_t i)
{
    const char *name = f->plan->adjustments.list[i].what.name;
    const json_t *entry;
    size_t k;

    json_array_foreach(adjustments_told(c), k, entry)
    {
        unix_ms since = kube_time_parse(cstr(kube_str(entry, "since", NULL)));

        if (strcmp(cstr(kube_str(entry, "name", NULL)), name) == 0 && since.ms > 0)
            return since;
    }
    return f->wall;
}

void adjustment_describe(struct buf *b, const struct plan *plan, size_t i)
{
    const struct adjustment *a = &plan->adjustments.list[i].what;

    buf_printf(b, "\"%s\"", a->name);
    if (a->how == ADJUST_ADD)
        buf_printf(b, " adds %d to ", a->value);
    else
        buf_puts(b, " sets ");
    text_count(b, adjustment_scores(plan, i), "score");
    buf_puts(b, " on ");
    text_count(b, plan->of_adjustments[i].clusters, "cluster");
    if (a->how == ADJUST_SET)
        buf_printf(b, " to %d", a->value);
    if (*a->reason) {
        buf_puts(b, ": ");
        buf_puts(b, a->reason);
    }
}

/* What is asked of all that was observed together. Owns nothing itself. Loop thread. */
#include "controller/hub/observed/observed.h"

#include "controller/kube/resource.h"
#include "controller/kube/verdict.h"
#include "controller/kube/watch.h"
#include "exporter/base/clock.h"
#include "exporter/base/text.h"

WORD_TABLE(hub_kind_word, enum hub_kind, HUB_KINDS,
           {[HUB_SCORERS] = "DynamicScorers",
            [HUB_CONFIGS] = "DynamicScoringConfigs",
            [HUB_CLUSTERS] = "ManagedClusters",
            [HUB_WORKS] = "ManifestWorks",
            [HUB_ADDONS] = "ManagedClusterAddOns",
            [HUB_PLACEMENTS] = "Placements",
            [HUB_DECISIONS] = "PlacementDecisions"});

const struct kube_resource *hub_kind_resource(enum hub_kind kind)
{
    static const struct kube_resource *const resources[HUB_KINDS] = {
        [HUB_SCORERS] = &kube_dynamicscorers,       [HUB_CONFIGS] = &kube_dynamicscoringconfigs,
        [HUB_CLUSTERS] = &kube_managedclusters,     [HUB_WORKS] = &kube_manifestworks,
        [HUB_ADDONS] = &kube_managedclusteraddons,  [HUB_PLACEMENTS] = &kube_placements,
        [HUB_DECISIONS] = &kube_placementdecisions,
    };

    return resources[kind];
}

bool hub_kind_is_everywhere(enum hub_kind kind)
{
    return kind >= HUB_CLUSTERS && kind <= HUB_ADDONS;
}

bool hub_kind_is_of_placements(enum hub_kind kind)
{
    return kind == HUB_PLACEMENTS || kind == HUB_DECISIONS;
}

bool observed_is_refused(const struct observed *seen, enum hub_kind kind)
{
    enum kube_verdict refused = kube_watch_refused(seen->watches[kind]);

    return refused == KUBE_NO_KIND || refused == KUBE_FORBIDDEN;
}

/* Nobody misses the kinds of Placements while no scorer names one. */
static bool kind_is_unused(const struct observed *seen, enum hub_kind kind)
{
    return hub_kind_is_of_placements(kind) && !scorers_use_placements(&seen->scorers);
}

bool observed_has_listed(const struct observed *seen, enum hub_kind kind)
{
    const struct kube_watch *w = seen->watches[kind];

    if (kube_watch_synced(w))
        return true;
    if (kind == HUB_ADDONS)
        return kube_watch_error(w);
    if (hub_kind_is_of_placements(kind))
        return kind_is_unused(seen, kind) || observed_is_refused(seen, kind);
    return false;
}

bool observed_has_listed_all(const struct observed *seen)
{
    for (enum hub_kind kind = 0; kind < HUB_KINDS; kind++)
        if (!observed_has_listed(seen, kind))
            return false;
    return true;
}

void observed_take_over(struct observed *seen, mono_ms now)
{
    seen->took_over_at = now;
    for (enum hub_kind kind = 0; kind < HUB_KINDS; kind++) {
        seen->is_outdated[kind] = kube_watch_synced(seen->watches[kind]);
        if (seen->is_outdated[kind] && hub_kind_is_everywhere(kind))
            kube_watch_hurry(seen->watches[kind]);
    }
}

static bool kind_is_outdated(const struct observed *seen, enum hub_kind kind)
{
    const struct kube_watch *w = seen->watches[kind];

    if (!seen->is_outdated[kind] || observed_is_refused(seen, kind))
        return false;
    if (!mono_before(kube_watch_listed(w), seen->took_over_at))
        return false;
    return !hub_kind_is_everywhere(kind) || !kube_watch_is_current(w);
}

bool observed_has_caught_up(struct observed *seen)
{
    bool is_any_outdated = false;

    for (enum hub_kind kind = 0; kind < HUB_KINDS; kind++) {
        seen->is_outdated[kind] = kind_is_outdated(seen, kind);
        is_any_outdated |= seen->is_outdated[kind];
        if (seen->is_outdated[kind] && !hub_kind_is_everywhere(kind))
            kube_watch_relist(seen->watches[kind]); /* also if a list was begun before the takeover */
    }
    return !is_any_outdated;
}

void observed_put_awaited(const struct observed *seen, struct buf *into)
{
    bool has_listed_all = observed_has_listed_all(seen);

    for (enum hub_kind kind = 0; kind < HUB_KINDS; kind++) {
        if (has_listed_all ? !kind_is_outdated(seen, kind) : observed_has_listed(seen, kind))
            continue;
        text_join(into, ", ");
        buf_puts(into, hub_kind_word(kind));
    }
}

/* A hub without add-ons lacks nothing: agents may be installed by other means. */
const char *observed_error(const struct observed *seen, enum hub_kind kind)
{
    const struct kube_watch *w = seen->watches[kind];

    if (kind == HUB_ADDONS && kube_watch_refused(w) == KUBE_NO_KIND)
        return NULL;
    if (kind_is_unused(seen, kind) && observed_is_refused(seen, kind))
        return NULL;
    return kube_watch_error(w);
}

/* ---- Refusals that last ---- */

enum { REFUSAL_MS = 30 * 1000 };

void observed_note_error(struct observed *seen, enum hub_kind kind, mono_ms now)
{
    bool is_missed = kind != HUB_ADDONS || kube_watch_refused(seen->watches[kind]) != KUBE_NO_KIND;

    if (observed_is_refused(seen, kind) && is_missed && !seen->refused_at[kind].ms)
        seen->refused_at[kind] = now;
}

void observed_note_recovery(struct observed *seen, enum hub_kind kind)
{
    seen->refused_at[kind] = (mono_ms){0};
}

const char *observed_refusal(const struct observed *seen, enum hub_kind kind, mono_ms now)
{
    mono_ms at = seen->refused_at[kind];

    return at.ms && mono_diff(at, now) >= REFUSAL_MS ? observed_error(seen, kind) : NULL;
}

int64_t observed_refusal_due_ms(const struct observed *seen, mono_ms now)
{
    int64_t due_ms = INT64_MAX;

    for (enum hub_kind kind = 0; kind < HUB_KINDS; kind++) {
        int64_t left_ms = REFUSAL_MS - mono_diff(seen->refused_at[kind], now);

        if (seen->refused_at[kind].ms && left_ms > 0 && left_ms < due_ms)
            due_ms = left_ms;
    }
    return due_ms;
}

/* ---- What changes by time alone ---- */

/* Before a cluster that has left all decisions ceases to count, these are listed anew; where they cannot be
 * read, what is known of them has ended long ago. */
static void review_decisions(struct observed *seen, mono_ms now)
{
    struct kube_watch *w = seen->watches[HUB_DECISIONS];
    mono_ms listed = observed_is_refused(seen, HUB_DECISIONS) ? now : kube_watch_listed(w);

    decisions_review(&seen->decisions, &seen->scorers, &seen->clusters, listed, now);
    if (decisions_await_list(&seen->decisions))
        kube_watch_relist(w);
}

bool observed_review(struct observed *seen, mono_ms now)
{
    review_decisions(seen, now);
    return addons_review(&seen->addons, seen->watches[HUB_ADDONS], &seen->clusters, &seen->configs, now);
}

int64_t observed_due_ms(const struct observed *seen, mono_ms now)
{
    int64_t decisions_ms = decisions_due_ms(&seen->decisions, now);
    int64_t addons_ms = addons_due_ms(&seen->addons, now);

    return decisions_ms < addons_ms ? decisions_ms : addons_ms;
}

void observed_done(struct observed *seen)
{
    decisions_done(&seen->decisions, &seen->clusters);
    addons_done(&seen->addons);
    clusters_done(&seen->clusters);
    scorers_done(&seen->scorers);
    configs_done(&seen->configs);
}

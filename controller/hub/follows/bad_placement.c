/* Why a Placement gives a scorer no cluster: asked as condition Distributed is made. Owns nothing, changes
 * nothing; loop thread. */
#include "controller/hub/follows/bad_placement.h"

#include "controller/hub/follows/sentences.h"
#include "controller/hub/observed/decisions.h"
#include "controller/hub/observed/observed.h"
#include "controller/kube/condition.h"
#include "controller/kube/json.h"
#include "controller/kube/watch.h"
#include "exporter/base/buf.h"
#include "exporter/base/map.h"
#include "exporter/base/text.h"

/* Why Placements or their decisions cannot be read; NULL: they can, or that is only interrupted. */
static const char *placements_error(const struct fleet *f)
{
    for (enum hub_kind kind = HUB_PLACEMENTS; kind <= HUB_DECISIONS; kind++) {
        const struct kube_watch *w = f->seen->watches[kind];
        const char *error = observed_refusal(f->seen, kind, f->now);

        if (!kube_watch_synced(w))
            return kube_watch_error(w) ?: "not listed yet";
        if (error)
            return error;
    }
    return NULL;
}

static enum hub_reason placement_fault(const struct fleet *f, const char *name, char why[256])
{
    const struct decisions *d = &f->seen->decisions;
    const json_t *placement = map_get(&d->placements, name);
    const json_t *satisfied = kube_condition(kube_get(placement, "status", NULL), "PlacementSatisfied");
    const char *reason = cstr(kube_str(satisfied, "reason", NULL));
    char says[160];
    struct placement_facts facts = {
        .error = placements_error(f), .exists = placement, .namespace = f->o->namespace, .says = says};
    BUF_AUTO(line, SENTENCE_BYTES);

    if (!facts.error && placement && decisions_count(d, name))
        return REASON_NONE;
    kube_condition_why(satisfied, says, sizeof(says));
    sentence_placement(&line, &facts);
    text_line(why, 256, buf_str(&line));
    if (facts.error)
        return REASON_PLACEMENTS_UNREADABLE;
    if (!placement)
        return REASON_PLACEMENT_NOT_FOUND;
    /* Open Cluster Management's word. */
    return strcmp(reason, "NoManagedClusterSetBindings") == 0 ? REASON_NO_SET_BINDING
                                                              : REASON_NO_CLUSTER_SELECTED;
}

const char *scorer_bad_placement(const struct fleet *f, const struct hub_scorer *s, enum hub_reason *reason,
                                 char why[256])
{
    const json_t *entry;
    size_t i;

    json_array_foreach(s->spec.placements, i, entry)
    {
        const char *name = cstr(kube_str(entry, NULL));

        *reason = placement_fault(f, name, why);
        if (*reason != REASON_NONE)
            return name;
    }
    return NULL;
}

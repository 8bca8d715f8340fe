/* The features of agents: their words, and which of them a summary needs. Owns nothing; called on the loop
 * by the agent, which reports them, and by the hub, which reads the reports. A word that agents have
 * reported never changes. */
#include "exporter/score/feature.h"

#include "exporter/score/scoring_url.h"

static const struct {
    const char *word;
    bool is_refused; /* by older agents, with the whole list */
} features[FEATURES] = {
    [FEATURE_SCORE_ITEMS] = {"scoreItems", false},
    [FEATURE_REVERSED_RANGE] = {"reversedScoreRange", true},
    [FEATURE_SCORE_TOLERANCE] = {"scoreTolerance", false},
    [FEATURE_SCORING_CLUSTER] = {"clusterInScoringEndpoint", false},
    [FEATURE_ADJUSTMENTS] = {"adjustments", false},
};

const char *feature_word(enum feature f)
{
    return features[f].word;
}

unsigned feature_refused(void)
{
    unsigned refused = 0;

    for (unsigned f = 0; f < FEATURES; f++)
        if (features[f].is_refused)
            refused |= 1u << f;
    return refused;
}

unsigned feature_needs(const struct summary *s)
{
    unsigned needs = 0;

    if (s->n_items > 1)
        needs |= 1u << FEATURE_SCORE_ITEMS;
    if (s->has_range && s->range_min > s->range_max)
        needs |= 1u << FEATURE_REVERSED_RANGE;
    if (s->score_tolerance > 0)
        needs |= 1u << FEATURE_SCORE_TOLERANCE;
    if (scoring_url_uses_cluster(s->scoring_endpoint))
        needs |= 1u << FEATURE_SCORING_CLUSTER;
    return needs;
}

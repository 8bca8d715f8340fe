/* Fields of a summary that agents have learned since their first release. An agent names them in the
 * `features` of its report, so that the hub can tell which clusters' agents would ignore a field, or
 * refuse the whole list because of it. Pure; any thread. */
#pragma once

#include "exporter/score/summary.h"

enum feature {
    FEATURE_SCORE_ITEMS,     /* scoreItems: older agents use the first */
    FEATURE_REVERSED_RANGE,  /* scoreRange with min above max: older agents refuse the list */
    FEATURE_SCORE_TOLERANCE, /* scoreTolerance: older agents write every change */
    FEATURE_SCORING_CLUSTER, /* ${cluster} in scoringEndpoint: older agents send it as it is */
    FEATURE_ADJUSTMENTS,     /* those of the DynamicScoringConfig: older agents write unadjusted items */
    FEATURES
};

/* Sets of them have bit 1u << f for feature f. */
enum { FEATURE_ALL = (1u << FEATURES) - 1 };

/* As reports spell it: "scoreItems". */
const char *feature_word(enum feature f);
/* The features that an agent needs to do all that the summary says. */
unsigned feature_needs(const struct summary *s);
/* The features without which agents refuse the whole list of summaries, rather than ignore the field. */
unsigned feature_refused(void);

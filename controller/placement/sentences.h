/* Messages of an AddOnPlacementScore's conditions that have parts which may be absent. Each is a pure
 * function of its facts: it appends to the buffer, and reads nothing else. Any thread. */
#pragma once

#include "controller/placement/items.h"
#include "exporter/base/buf.h"
#include "exporter/score/round_error.h"
#include "exporter/score/summary.h"

/* The condition `Scored`: true with the first reason, false with each other one. */
enum scored_reason {
    SCORED_OK,
    SCORED_SUSPENDED,
    SCORED_SCORING_FAILED,
    SCORED_SOURCE_FAILED,
    SCORED_EXPIRED, /* the last round succeeded, and the next one lasts until its scores are gone */
    /* The round succeeded, and led to no item: */
    SCORED_NO_ITEMS,
    SCORED_SOURCE_EMPTY,
    SCORED_NO_RESULTS,
    SCORED_REASONS
};

/* "Scored", "SourceFailed", ... */
const char *scored_reason_word(enum scored_reason reason);

/* What the object has instead of new scores. */
enum scored_instead { INSTEAD_NOTHING, INSTEAD_LAST_SCORES, INSTEAD_FALLBACK, INSTEADS };

struct scored_facts {
    const struct summary *summary; /* its formats, and whether it has sources or is suspended */
    enum round_error error;        /* of the last round */
    enum round_stage stage;
    const char *reason;                     /* of a failure */
    size_t source_series, results, invalid; /* of the last round */
    bool expired;                           /* the scores that the last successful round had */
    const struct items *made;               /* of the last round */
    enum scored_instead instead;
};

enum scored_reason scored_reason(const struct scored_facts *f);
/* "5 items from 12 results; skipped 1 not a number": of parts that do not fit, nothing is said. */
void sentence_scored(struct buf *b, const struct scored_facts *f);

/* "3 of 10 items omitted, the last by name: an object holds at most 1.5 MiB; 2 results merged with ..." */
struct truncated_facts {
    size_t omitted, of; /* items */
    size_t merged;      /* results that only differ beyond a limit of labels */
};
void sentence_truncated(struct buf *b, const struct truncated_facts *f);

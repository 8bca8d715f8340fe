/* Type and help of metrics, by name after relabelling. Endpoint's thread. */
#pragma once

#include "exporter/base/strset.h"
#include "exporter/metric/metrics.h"

/* More names than this are the work of a rule that makes a name for each series. */
enum { FAMILIES_MAX = 1000, FAMILY_NAME_MAX = 255 };

struct family {
    enum metric_type type;
    const char *help; /* static */
    size_t stem_n;    /* bytes of the name without a histogram's suffix */
    char name[];
};

struct families {
    struct strset names;
    struct family *list[FAMILIES_MAX]; /* by their places */
    int64_t started_ms;                /* when the counters began; 0: unknown */
};

void families_done(struct families *f);
/* Adds or updates the metadata of a name; `suffix` is a histogram's, "" for none. */
void families_note(struct families *f, struct str name, const char *suffix, enum metric_type type,
                   const char *help);
/* NULL if unknown. */
const struct family *families_find(const struct families *f, struct str name);

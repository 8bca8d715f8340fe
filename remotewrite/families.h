/* Type and help of the metrics that an endpoint gets, by name after relabelling. Sender thread. */
#ifndef DS_REMOTEWRITE_FAMILIES_H
#define DS_REMOTEWRITE_FAMILIES_H

#include "exporter/base/map.h"
#include "exporter/base/str.h"

#include <stdbool.h>
#include <stdint.h>

/* More names than this are the work of a rule that makes a name for each series. */
enum { FAMILIES_MAX = 1000, FAMILY_NAME_MAX = 255 };

/* prometheus.MetricMetadata.MetricType, the same in 1.0 and 2.0. */
enum family_type { FAMILY_COUNTER = 1, FAMILY_GAUGE = 2, FAMILY_HISTOGRAM = 3 };

struct family {
    enum family_type type;
    const char *help; /* static */
    size_t stem_n;    /* bytes of the name without a histogram's suffix */
    char name[];
};

struct families {
    struct map by_name;
    int64_t started_ms; /* when the counters began; 0: unknown */
};

void families_done(struct families *f);
/* Adds or updates the metadata of a name. `suffix` is a histogram's, "" for none. Ignored if there is no
 * room or no memory. */
void families_note(struct families *f, struct str name, const char *suffix, enum family_type type,
                   const char *help);
/* NULL if unknown. */
const struct family *families_find(const struct families *f, struct str name);

#endif

/* Type and help of the metrics that an endpoint gets, by name after relabelling, and the requests that
 * carry them for 1.0 and vm, which have no place for them beside the samples: they neither wait for samples
 * nor hold them up. Sender thread. */
#ifndef DS_REMOTEWRITE_METADATA_H
#define DS_REMOTEWRITE_METADATA_H

#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/loop.h"
#include "exporter/base/map.h"
#include "remotewrite/transport.h"

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
 * room. */
void families_note(struct families *f, struct str name, const char *suffix, enum family_type type,
                   const char *help);
/* NULL if unknown. */
const struct family *families_find(const struct families *f, struct str name);

/* Appends a request of 1.0 or vm that carries only metadata; nothing if there is none. -ENOMEM, -EFBIG. */
MUST_USE int metadata_body(enum rw_form form, const struct families *families, struct buf *into);

struct metadata_stats {
    uint64_t sent, failed, retried; /* requests: accepted, rejected, sent again */
};

/* Owned by the endpoint; all zero but the first members at first. */
struct metadata {
    const struct rw_endpoint_config *config;
    struct loop *loop;
    struct transport *transport; /* of its own */
    const struct families *families;
    struct metadata_stats stats;
    struct buf body;
    bool in_flight;
    unsigned failures; /* consecutive */
    mono_ms next_at;
};

/* To be called about every second while the endpoint accepts samples in this form: sends what is due. */
void metadata_tick(struct metadata *m, enum rw_form form);
/* Ends a request in flight. */
void metadata_done(struct metadata *m);

#endif

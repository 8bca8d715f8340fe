/* Shared by the sources of the ingest. */
#ifndef DS_OTLP_INGEST_INTERNAL_H
#define DS_OTLP_INGEST_INTERNAL_H

#include "exporter/base/arena.h"
#include "exporter/base/buf.h"
#include "exporter/otlp/ingest.h"
#include "exporter/otlp/known.h"
#include "exporter/otlp/labels.h"
#include "exporter/otlp/schema.h"
#include "exporter/otlp/translate.h"
#include "exporter/otlp/wire.h"
#include "exporter/tsdb/tsdb.h"

enum { INGEST_MAX_PARTS = 400, INGEST_MAX_BUCKETS = INGEST_MAX_PARTS - 4 };

/* A sample of a point. */
enum part_kind { PART_VALUE, PART_COUNT, PART_SUM, PART_BUCKET, PART_QUANTILE };

struct ingest_part {
    enum part_kind kind;
    double bound; /* of a bucket or quantile */
    double value;
};

struct ingest_point {
    struct str message;
    unsigned attributes; /* the number of the field */
    uint64_t attributes_hash;
    uint64_t start_ns, time_ns, flags;
};

/* A metric of a request. */
struct ingest_metric {
    struct str name, unit;
    enum otlp_type type;
    uint64_t temporality;
    uint64_t hash; /* of resource, name, unit and type */
};

struct ingest {
    struct ingest_options o;
    struct known known;
    struct arena resource_arena, point_arena;
    /* The resource being read */
    struct str resource_message;
    struct labels_resource resource;
    bool resource_known; /* `resource` is filled in */
    uint64_t resource_hash, resource_time_ns;
    int64_t now_ms;
    struct ingest_metric metric;
    /* The point being read */
    struct ingest_part parts[INGEST_MAX_PARTS];
    size_t n_parts;
    struct tsdb_sample samples[INGEST_MAX_PARTS];
    enum tsdb_result results[INGEST_MAX_PARTS];
    struct labels labels;
    struct ingest_outcome *outcome;
};

static inline void ingest_part(struct ingest *in, enum part_kind kind, double bound, double value)
{
    in->parts[in->n_parts++] = (struct ingest_part){kind, bound, value};
}

/* Attributes usually lie in one run, which is hashed as it is. */
struct ingest_run {
    const char *from, *to;
};
/* Reads a field that points of each kind have; `flags` is the number that the kind gives to its flags.
 * Attributes have the number pt->attributes. Ignores other fields. */
void ingest_read_common(struct ingest_point *pt, struct ingest_run *run, const struct wire_field *f,
                        unsigned flags);
/* After the last field. */
void ingest_end_run(struct ingest_point *pt, struct ingest_run *run);

/* A point of each kind: fills in the parts, at most INGEST_MAX_PARTS. Returns TSDB_OK or OTLP_INVALID. */
unsigned ingest_read_number(struct ingest *in, struct ingest_point *pt);
unsigned ingest_read_histogram(struct ingest *in, struct ingest_point *pt);
unsigned ingest_read_exponential(struct ingest *in, struct ingest_point *pt);
unsigned ingest_read_summary(struct ingest *in, struct ingest_point *pt);

/* Stores the parts of the point (ingest_store.c). Returns what became of it. -ENOMEM. */
int ingest_store(struct ingest *in, const struct ingest_point *pt, unsigned *ret);
/* Stores target_info of the resource. -ENOMEM. */
MUST_USE int ingest_store_target_info(struct ingest *in);

#endif

/* The program's own metrics: a registry over metrics.def. Not locked: each registry belongs to one thread. */
#pragma once

#include "exporter/base/buf.h"

enum metric {
#define METRIC(id, type, owner, name, labels, help) METRIC_##id,
#include "exporter/metric/metrics.def"
#undef METRIC
    METRICS
};

enum metric_type { METRIC_TYPE_COUNTER, METRIC_TYPE_GAUGE, METRIC_TYPE_HISTOGRAM };
enum metric_owner { METRIC_OWNER_LOOP, METRIC_OWNER_SERVER };

struct metric_info {
    enum metric_type type;
    enum metric_owner owner;
    const char *name, *labels, *help;
};

struct metrics;

/* A registry for the metrics of one owner. */
struct metrics *metrics_new(enum metric_owner owner);
struct metrics *metrics_free(struct metrics *m);
DEFINE_CLEANUP(struct metrics, metrics_free)

/* Label values in the order of metrics.def, for all functions below: well-formed UTF-8. */
#define LV(...) ((const char *const[]){__VA_ARGS__})
#define LV_NONE NULL

/* Counters and gauges; a counter's v is not negative. */
void metric_add(struct metrics *m, enum metric id, const char *const *labels, double v);
void metric_set(struct metrics *m, enum metric id, const char *const *labels, double v);
/* Histograms of seconds, with buckets from 1 ms to 5 minutes. */
void metric_observe(struct metrics *m, enum metric id, const char *const *labels, double seconds);
/* Removes one series. */
void metric_remove(struct metrics *m, enum metric id, const char *const *labels);
/* Removes all series with this label value, for example of a scorer that was removed. */
void metrics_forget(struct metrics *m, const char *label, const char *value);

enum { METRIC_MAX_LABELS = 4 }; /* `le` included */

struct metric_label {
    struct str name, value;
};

/* One sample. A histogram has one for each bucket, cumulative, then its sum and its count. */
struct metric_sample {
    const struct metric_info *info;
    const char *suffix; /* of the name: "_bucket", "_sum", "_count" of a histogram, else "" */
    struct metric_label labels[METRIC_MAX_LABELS]; /* `le` is the last */
    size_t n_labels;
    double value;
};

/* Calls fn for every sample, family by family, in a stable order, until it returns other than 0. */
int metrics_each(const struct metrics *m, int (*fn)(void *arg, const struct metric_sample *s), void *arg);
/* A registry with the same values. */
struct metrics *metrics_copy(const struct metrics *m);
/* Appends every sample as text 0.0.4, with TYPE and HELP of its family. */
void metrics_render(const struct metrics *m, struct buf *into);
/* Appends what metrics_render() made, once or several times in a row, as OpenMetrics 1.0 without its end:
 * only the heads of counters differ. Any thread. */
void metrics_put_openmetrics(struct buf *into, struct str text);

/* Sets the process_* metrics from /proc/self. */
void metrics_set_process(struct metrics *m);
/* When the process began, in Unix time; 0 if unknown. Any thread. */
int64_t metrics_process_start_ms(void);

/* ---- What this build is ---- */

extern const char ds_version[];  /* "0.1.0" */
extern const char ds_revision[]; /* of the source tree, "unknown" outside one */
/* "dynamic-scoring/0.1.0", the User-Agent. */
extern const char ds_user_agent[];

/* Series of samples in memory: compressed, for a limited time, within limits on memory and series. What
 * the OTLP server receives, and what scorers of the source OpenTelemetry query.
 *
 * Any thread. One lock inside, which no call holds for more than about 100 us at a time: selecting,
 * pruning and saving take it once for each few series, and give way to whoever waits. */
#ifndef DS_TSDB_TSDB_H
#define DS_TSDB_TSDB_H

#include "exporter/base/clock.h"
#include "exporter/base/def.h"
#include "exporter/base/regex.h"
#include "exporter/base/str.h"
#include "exporter/tsdb/chunk.h"

#include <stdbool.h>

struct tsdb;

struct tsdb_options {
    const struct clock *clock; /* the wall clock decides what is too old or too new */
    uint64_t max_bytes;        /* see tsdb_set_limits() */
    uint32_t max_series;
};

/* -ENOMEM. */
MUST_USE int tsdb_new(struct tsdb **ret, const struct tsdb_options *options);
struct tsdb *tsdb_free(struct tsdb *t);
DEFINE_CLEANUP(struct tsdb, tsdb_free)

/* max_bytes: memory for samples, labels and indexes; 0: TSDB_DEFAULT_BYTES, but not more than a quarter of
 * the memory that the process may use. Nothing is removed at once if less is allowed than is used: new series
 * are refused, and the oldest samples are evicted. */
void tsdb_set_limits(struct tsdb *t, uint64_t max_bytes, uint32_t max_series);

/* How long samples are kept: at least `ms` from their timestamp, and up to a quarter longer, since they
 * are dropped by chunks. It must cover the longest range that is queried, with everything that its first
 * step looks back on. TSDB_MIN_AGE_MS until the first call, and at least. */
void tsdb_set_age(struct tsdb *t, int64_t ms);

enum {
    TSDB_DEFAULT_BYTES = 256 << 20,
    TSDB_MIN_AGE_MS = 10 * 60 * 1000,
    TSDB_MAX_AHEAD_MS = 10 * 60 * 1000, /* of the wall clock; as Prometheus */
    TSDB_MAX_LABELS = 128,
    TSDB_MAX_LABEL_BYTES = 64 << 10, /* of all names and values of a series */
};

/* A series' labels are sorted by name (by bytes), names are unique, and neither names nor values are
 * empty. The metric's name is the label `__name__`. */
struct tsdb_label {
    struct str name, value;
};

/* What became of a sample, or of a new series. */
enum tsdb_result {
    TSDB_OK,           /* stored, or the very sample that is the last one of the series already */
    TSDB_NO_SERIES,    /* the reference is invalid or the series has expired: call tsdb_ref() again */
    TSDB_OUT_OF_ORDER, /* older than the last sample of the series */
    TSDB_DUPLICATE, /* another value at the time of the last sample: two writers of one series, for example */
    TSDB_TOO_OLD,   /* older than the age */
    TSDB_TOO_NEW,   /* more than TSDB_MAX_AHEAD_MS in the future */
    TSDB_SERIES_LIMIT, /* a new series: max_series exist */
    TSDB_BYTES_LIMIT,  /* max_bytes is reached; for a new series: 7/8 of it, so that others can grow */
    TSDB_BAD_LABELS,   /* too many or too long labels, not sorted, or empty */
    TSDB_NO_MEMORY,
    TSDB_RESULTS
};

/* "ok", "out_of_order", ...: the word for metrics and logs. */
const char *tsdb_result_word(enum tsdb_result r);

/* Finds or creates the series with these labels. Sets *ret to its reference, never 0, which stays valid
 * until the series expires; a reference whose series has expired is never valid again. Copies the labels. */
enum tsdb_result tsdb_ref(struct tsdb *t, const struct tsdb_label *labels, size_t n, uint64_t *ret);

struct tsdb_sample {
    uint64_t ref;
    int64_t t_ms; /* Unix time */
    double v;     /* kept bit by bit; TSDB_STALE_BITS ends the series until its next sample */
};

#define TSDB_STALE_BITS UINT64_C(0x7ff0000000000002)

/* Appends samples, in their order. ret[i] tells what became of the i-th. Returns the number of samples
 * that are not TSDB_OK. Samples are either stored or counted by result; see struct tsdb_stats. */
size_t tsdb_append(struct tsdb *t, const struct tsdb_sample *samples, size_t n, enum tsdb_result *ret);

/* A label that a series does not have matches as the empty value, as in PromQL. */
struct tsdb_matcher {
    enum tsdb_op { TSDB_EQ, TSDB_NE, TSDB_RE, TSDB_NRE } op;
    struct str name, value;    /* value: for TSDB_EQ and TSDB_NE */
    const struct regex *regex; /* for TSDB_RE and TSDB_NRE */
};

/* An immutable copy of the chunks of some series. */
struct tsdb_view;

enum { TSDB_WHY_BYTES = 192 };

/* Copies all series that match every matcher and may have samples with from_ms <= t <= to_ms, in no
 * particular order. (A chunk that begins before the range and ends after it may have none in it.) Samples
 * that are appended meanwhile may or may not be seen. On failure `why` is a phrase for an error text:
 *   -EFBIG   the view would hold more than max_bytes
 *   -ENODATA samples of the time range were evicted because of max_bytes, so that answers would be wrong
 *   -ELOOP   a regex exceeded its limits on a value
 *   -ENOMEM */
MUST_USE int tsdb_select(struct tsdb *t, const struct tsdb_matcher *matchers, size_t n, int64_t from_ms,
                         int64_t to_ms, uint64_t max_bytes, struct tsdb_view **ret, char why[TSDB_WHY_BYTES]);
struct tsdb_view *tsdb_view_free(struct tsdb_view *v);
DEFINE_CLEANUP(struct tsdb_view, tsdb_view_free)

/* The number of series, and the bytes that the view holds. */
size_t tsdb_view_count(const struct tsdb_view *v);
uint64_t tsdb_view_bytes(const struct tsdb_view *v);
/* The labels of the i-th series, sorted by name; *ret_n is their number. Valid as long as the view. */
const struct tsdb_label *tsdb_view_labels(const struct tsdb_view *v, size_t i, size_t *ret_n);

/* Reads the samples of one series in order of time. The members are private. */
struct tsdb_iter {
    int64_t from, to;
    const struct view_chunk *next;
    uint32_t chunks;
    struct chunk_reader in;
};

void tsdb_iter_init(struct tsdb_iter *it, const struct tsdb_view *v, size_t i);
/* The next sample with from_ms <= t <= to_ms of tsdb_select(); false after the last. */
bool tsdb_iter_next(struct tsdb_iter *it, int64_t *ret_t, double *ret_v);

/* Drops what is older than the age, piece by piece: call it every second. */
void tsdb_prune(struct tsdb *t);

/* Everything is since the start but series, samples and bytes, which are now. */
struct tsdb_stats {
    uint64_t series, samples, bytes, max_series, max_bytes;
    int64_t age_ms;
    uint64_t
        results[TSDB_RESULTS]; /* samples by result; those of refused series are counted by their sender */
    uint64_t series_created, series_expired;
    uint64_t series_refused; /* attempts to add a series beyond a limit */
    /* Unix time of the last of them for each limit, also from before a restart; 0: never */
    int64_t series_limit_ms, bytes_limit_ms;
    uint64_t samples_expired, samples_evicted; /* dropped because of their age; because of max_bytes */
};

void tsdb_stats(struct tsdb *t, struct tsdb_stats *ret);

#endif

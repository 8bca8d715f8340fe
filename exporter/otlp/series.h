/* Series of plain samples in memory, for a limited time and within limits on memory and series: what the
 * receiver stores and queries read.
 *
 * Any thread. One lock, which is held for microseconds: for a few series or samples at a time, and never
 * while labels are made or copied. */
#pragma once

#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/regex.h"

struct store;

enum {
    STORE_MIN_AGE_MS = 10 * 60 * 1000,
    STORE_MAX_AHEAD_MS = 10 * 60 * 1000, /* of the wall clock; as Prometheus */
    SERIES_MAX_LABEL_BYTES = 64 << 10,   /* of the text */
};

/* The wall clock decides what is too old or too new. */
struct store *store_new(const struct clock *clock);
struct store *store_free(struct store *s);
DEFINE_CLEANUP(struct store, store_free)

/* max_bytes: memory for samples, labels and indexes; 0: 256 MiB, at most a quarter of what the process may
 * use. With less than is in use, new series are refused and the oldest samples are evicted. */
void store_set_limits(struct store *s, uint64_t max_bytes, uint64_t max_series);
/* How long samples are kept: for the longest range that is queried, with all that its first step looks back
 * on. STORE_MIN_AGE_MS until the first call, and at least. */
void store_set_age(struct store *s, int64_t ms);

struct series_label {
    struct str name, value;
};

/* A series' labels are one text: sorted by name (by bytes), with LABEL_END, which UTF-8 does not have, behind
 * each name and each value. Names are unique, and neither names nor values are empty. The metric's name is
 * the label `__name__`. */
#define LABEL_END '\xff'

/* The first label of *rest, which is cut off. False at the end. */
bool labels_next(struct str *rest, struct series_label *ret);
/* The value of a label; empty without it. */
struct str labels_value(struct str labels, struct str name);
/* Compares label sets as Prometheus sorts series. */
int labels_compare(struct str a, struct str b);

/* What became of a sample, or of a new series; and, from OTLP_INVALID on, why a point gives none. */
enum store_result {
    STORE_OK,           /* stored, or the very sample that is the last one of the series already */
    STORE_OUT_OF_ORDER, /* older than the last sample of the series */
    STORE_DUPLICATE,    /* another value at the time of the last sample */
    STORE_TOO_OLD,      /* older than the age */
    STORE_TOO_NEW,      /* more than STORE_MAX_AHEAD_MS in the future */
    STORE_SERIES_LIMIT, /* a new series: as many as allowed exist */
    STORE_BYTES_LIMIT,  /* max_bytes is reached; for a new series: 7/8 of it, so that others can grow */
    STORE_BAD_LABELS,   /* too long ones; for others than the store also too many, or not UTF-8 */
    OTLP_INVALID,       /* a histogram whose buckets do not fit its bounds, a number without a value */
    OTLP_TEMPORALITY,   /* a sum or histogram that is neither cumulative nor delta */
    OTLP_OVERLAP,       /* another writer of the series, or the same data again */
    OTLP_UNSUPPORTED,   /* of an exponential histogram */
    OTLP_RESULTS
};

struct series;

struct sample {
    int64_t t; /* Unix time in ms */
    double v;
};

/* What the receiver remembers of a series' writer. */
struct series_writer {
    uint64_t start_ns, last_ns; /* of the last point */
    uint64_t bounds_hash;       /* of the last point of a delta histogram; at its count */
    double total;               /* of a delta series */
};

/* For several of the calls below. Must be held only briefly: for STORE_TURN samples at most. */
enum { STORE_TURN = 32 };
void store_lock(struct store *s);
void store_unlock(struct store *s);

/* ---- Lock held ---- */

/* The series that store_enter() made known by this hash; NULL if it is not known, or has expired. It stays,
 * also while the lock is not held, until store_release(). */
struct series *store_find(struct store *s, uint64_t hash);
/* A series that was entered but never got a sample goes with its last holder. */
void store_release(struct store *s, struct series *x);
/* Whether a sample of this time would be kept in any series: STORE_TOO_OLD, STORE_TOO_NEW. */
enum store_result store_check_time(const struct store *s, int64_t t_ms);
/* Whether, and why, a new series would be refused now; counts it as refused then. */
enum store_result store_refuses(struct store *s);
/* A number that changes when a new series has got its first sample. */
uint64_t store_version(const struct store *s);
struct series_writer *series_writer(struct series *x);
/* Whether the sample can be appended: then there is room for it, which stays as long as the series is
 * held. */
enum store_result store_reserve(struct store *s, struct series *x, int64_t t_ms, double v);
/* Appends a sample for which store_reserve() has said STORE_OK. The value is kept bit by bit. STORE_DUPLICATE
 * if another one was appended at that time since. */
enum store_result store_push(struct store *s, struct series *x, int64_t t_ms, double v);
/* Both. */
enum store_result store_append(struct store *s, struct series *x, int64_t t_ms, double v);

/* ---- Lock not held ---- */

/* Finds or creates the series with these labels, which are copied; only `hash` finds it from now on. It stays
 * until store_release(). */
enum store_result store_enter(struct store *s, struct str labels, uint64_t hash, struct series **ret);

/* Drops a part of what is older than the age: call it every second. */
void store_prune(struct store *s);

/* A stale marker: ends the series until its next sample. In results of queries: no value. */
#define STALE_BITS UINT64_C(0x7ff0000000000002)

static inline double value_absent(void)
{
    return double_of(STALE_BITS);
}

static inline bool value_is_absent(double v)
{
    return double_bits(v) == STALE_BITS;
}

/* A label that a series does not have matches as the empty value. */
struct series_matcher {
    struct series_matcher *next;
    struct str name, value;    /* value: without a regex */
    const struct regex *regex; /* NULL: equality */
    bool negated;
};

/* Reads all series that match, in no particular order. Samples appended meanwhile may or may not be seen. */
struct series_reader {
    struct store *store;
    const struct series_matcher *matchers;
    int64_t from_ms, to_ms; /* of the samples, both included */
    /* The series at hand, valid until the next call */
    struct str labels;
    struct sample *samples;
    size_t n; /* at least one */
    /* Private */
    struct regex_matcher *regexes;
    struct buf text;
    size_t room;
    struct series *at; /* which stays until the reader goes on */
};

/* 1: a series, 0: no more. -ENODATA: samples of the time range were evicted, so that answers would be wrong;
 * -ELOOP: a regex exceeded its limits on a value. */
MUST_USE int series_next(struct series_reader *r);
void series_reader_done(struct series_reader *r);

/* Everything is since the start but series, samples and bytes, which are now. */
struct store_stats {
    uint64_t series, samples, bytes, max_series, max_bytes;
    int64_t age_ms;
    uint64_t series_refused;                 /* attempts to add a series beyond a limit */
    int64_t series_limit_ms, bytes_limit_ms; /* Unix time of the last of them for each limit; 0: never */
    uint64_t samples_evicted;                /* dropped because of max_bytes */
};

void store_stats(struct store *s, struct store_stats *ret);

/* A store with a clock that tests set, and short ways to write to it and to read from it. */
#ifndef DS_TEST_TSDB_STORE_H
#define DS_TEST_TSDB_STORE_H

#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/tsdb/tsdb.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define MINUTE INT64_C(60000)
/* When the tests play. */
#define NOW INT64_C(1790000000000)

static int64_t store_now = NOW;

static inline unix_ms store_wall(const struct clock *c)
{
    (void)c;
    return (unix_ms){store_now};
}

static const struct clock store_clock = {.wall = store_wall};

static inline struct tsdb *store_new(uint64_t max_bytes, uint32_t max_series)
{
    struct tsdb *t = NULL;

    store_now = NOW;
    assert_int_equal(tsdb_new(&t, &(struct tsdb_options){&store_clock, max_bytes, max_series}), 0);
    return t;
}

/* Splits "a=1;b=2" into labels. */
static inline size_t store_labels(const char *text, struct tsdb_label *ret)
{
    size_t n = 0;

    while (*text) {
        size_t name = strcspn(text, "="), value = strcspn(text + name + 1, ";");

        ret[n++] = (struct tsdb_label){{text, name}, {text + name + 1, value}};
        text += name + 1 + value;
        text += *text == ';';
    }
    return n;
}

static inline enum tsdb_result store_ref(struct tsdb *t, const char *text, uint64_t *ret)
{
    struct tsdb_label labels[16];

    return tsdb_ref(t, labels, store_labels(text, labels), ret);
}

static inline enum tsdb_result store_append(struct tsdb *t, uint64_t ref, int64_t t_ms, double v)
{
    enum tsdb_result result = TSDB_RESULTS;
    size_t refused = tsdb_append(t, &(struct tsdb_sample){ref, t_ms, v}, 1, &result);

    assert_int_equal(refused, result != TSDB_OK);
    return result;
}

/* A series with one sample. */
static inline uint64_t store_put(struct tsdb *t, const char *text, int64_t t_ms, double v)
{
    uint64_t ref = 0;

    assert_int_equal(store_ref(t, text, &ref), TSDB_OK);
    assert_int_equal(store_append(t, ref, t_ms, v), TSDB_OK);
    return ref;
}

static inline struct tsdb_view *store_view(struct tsdb *t, const struct tsdb_matcher *m, size_t n,
                                           int64_t from, int64_t to)
{
    char why[TSDB_WHY_BYTES] = "";
    struct tsdb_view *v = NULL;
    int r = tsdb_select(t, m, n, from, to, UINT64_MAX, &v, why);

    if (r < 0)
        fail_msg("%d: %s", r, why);
    return v;
}

static inline struct tsdb_stats store_stats(struct tsdb *t)
{
    struct tsdb_stats stats;

    tsdb_stats(t, &stats);
    return stats;
}

#endif

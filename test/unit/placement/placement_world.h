/* Batches and summaries for tests of the placement layer. */
#pragma once

#include "exporter/base/clock.h"
#include "exporter/metric/batch.h"
#include "exporter/metric/batch_builder.h"
#include "exporter/metric/series.h"
#include "exporter/score/summary.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

struct result {
    const char *node, *pod;
    double score;
};

/* The batch of these results, in their order, on cluster c1. */
static inline struct batch *batch_of(const char *score_name, const struct result *results, size_t n)
{
    CLEANUP(cleanup_batch_builder_free) struct batch_builder *b = NULL;
    struct batch *batch = NULL;

    b = batch_builder_new("c1", score_name, 1000000);
    batch_begin(b, 0, 0);
    for (size_t i = 0; i < n; i++) {
        struct batch_labels l = {.escapes = 1u << DS_NODE | 1u << DS_POD};

        l.value[DS_NODE] = str_of(results[i].node);
        l.value[DS_POD] = str_of(results[i].pod);
        assert_int_equal(batch_add(b, &l, results[i].score), 0);
    }
    batch_seal(b, (unix_ms){0}, &batch, NULL);
    return batch;
}

static inline struct summary summary_of(const char *score_name, const char *format)
{
    return (struct summary){.score_name = (char *)(uintptr_t)score_name,
                            .items = {{.format = (char *)(uintptr_t)format}},
                            .n_items = 1,
                            .interval_ms = 60000};
}

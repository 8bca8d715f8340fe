/* Results whose labels became equal when they were truncated. */
#include "exporter/base/clock.h"
#include "exporter/metric/batch.h"
#include "exporter/metric/batch_builder.h"
#include "exporter/metric/series.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static struct batch_builder *builder(void)
{
    struct batch_builder *b = NULL;

    b = batch_builder_new("c1", "cpu", 100);
    return b;
}

/* "ax": node a, which was truncated from something called x; "a.": node a, as it came. */
static int add(struct batch_builder *b, const char *result)
{
    uint32_t uncut[DS_LABELS] = {[DS_NODE] = (uint32_t)result[1]};
    struct batch_labels l = {.value[DS_NODE] = {result, 1}, .uncut = result[1] == '.' ? NULL : uncut};

    return batch_add(b, &l, 1);
}

/* Results of two letters each. */
static int seal(struct batch_builder *b, const char *results, struct batch **ret, size_t *ret_duplicates)
{
    int r = 0;

    batch_begin(b, 0, 0);
    for (; r == 0 && *results; results += 2)
        r = add(b, results);
    if (r == 0)
        batch_seal(b, (unix_ms){0}, ret, ret_duplicates);
    return r;
}

static void counts_results_that_differed_before(void **state)
{
    static const struct {
        const char *results;
        size_t duplicates, merged;
    } cases[] = {
        {"a.b.", 0, 0}, {"axbx", 0, 0}, {"a.a.", 1, 0},   {"axax", 1, 0},   {"axay", 1, 1},
        {"a.ax", 1, 1}, {"axa.", 1, 1}, {"a.axa.", 2, 2}, {"axa.a.", 2, 1}, {"axayaybxby", 3, 2},
    };
    struct batch_builder *b = builder();

    (void)state;
    for (size_t i = 0; i < 2 * ARRAY_SIZE(cases); i++) { /* both as new series and as known ones */
        CLEANUP(cleanup_batch_unref) struct batch *batch = NULL;
        size_t duplicates;

        assert_int_equal(seal(b, cases[i / 2].results, &batch, &duplicates), 0);
        assert_int_equal(duplicates, cases[i / 2].duplicates);
        if (batch->merged_by_cut != cases[i / 2].merged)
            fail_msg("%s: %zu merged", cases[i / 2].results, batch->merged_by_cut);
    }
    (void)batch_builder_free(b);
}

static void names_the_series_that_were_truncated(void **state)
{
    static const char *const rounds[] = {"cxb.ay", "cxb.ay", "d.cxb.ay", "ayd.e.cx"};
    static const uint32_t last[] = {2, 2, 2, 1}; /* where c is */
    struct batch_builder *b = builder();

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rounds); i++) {
        CLEANUP(cleanup_batch_unref) struct batch *batch = NULL;

        assert_int_equal(seal(b, rounds[i], &batch, NULL), 0);
        assert_int_equal(batch->n_cuts, 2);
        assert_int_equal(batch->cuts[0].series, 0);
        assert_int_equal(batch->cuts[0].uncut[DS_NODE], 'y');
        assert_int_equal(batch->cuts[1].series, last[i]);
        assert_int_equal(batch->cuts[1].uncut[DS_NODE], 'x');
    }
    (void)batch_builder_free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_results_that_differed_before),
        cmocka_unit_test(names_the_series_that_were_truncated),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

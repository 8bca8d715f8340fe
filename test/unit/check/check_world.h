/* Shared by the tests of check-scorer: a check without its calls. */
#ifndef DS_TEST_CHECK_WORLD_H
#define DS_TEST_CHECK_WORLD_H

#include "controller/check/check_internal.h"
#include "controller/check/findings.h"
#include "exporter/base/clock.h"
#include "exporter/base/loop.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

struct world {
    struct check_options options;
    struct findings findings;
    struct check c;
};

static inline int setup(void **state)
{
    struct world *w = calloc(1, sizeof(*w));

    w->options = (struct check_options){.cluster_name = "c1", .dimension_format = "${node}"};
    findings_init(&w->findings);
    w->c = (struct check){.options = &w->options, .findings = &w->findings};
    w->c.summary.score_name = strdup("s");
    assert_int_equal(loop_new(&w->c.loop, &clock_system), 0);
    *state = w;
    return 0;
}

static inline int teardown(void **state)
{
    struct world *w = *state;

    findings_done(&w->findings);
    free(w->c.summary.score_name);
    (void)loop_free(w->c.loop);
    free(w);
    return 0;
}

#endif

/* What both ways of showing the status have in common. */
#include "exporter/agent/status.h"
#include "exporter/base/buf.h"
#include "exporter/ui/list.h"
#include "test/unit/agent/status_world.h"

#include <errno.h>

static void leaves_a_buffer_that_is_too_small_unchanged(void **state)
{
    const struct list_query all = list_query_all();
    WORLD(w);

    (void)state;
    add(w, good_scorer((char *)"my_score"));
    for (size_t max = 2; max < 150; max += 7) {
        BUF_AUTO(b, max);
        assert_int_equal(buf_puts(&b, "x"), 0);
        assert_int_equal(status_json(&w->agent, &all, &b), -EFBIG);
        assert_int_equal(status_table(&w->agent, 0, &b), -EFBIG);
        assert_true(str_eq(buf_str(&b), STR("x")));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(leaves_a_buffer_that_is_too_small_unchanged),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

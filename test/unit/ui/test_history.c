#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/ui/history.h"
#include "exporter/ui/out.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

static const char *const names[] = {"a", "b", NULL};

static void assert_history(const struct history *h, const char *want)
{
    BUF_AUTO(b, 1 << 20);
    struct out o = out_begin(&b);

    out_puts(&o, "{");
    member_history(&o, h, names);
    assert_int_equal(out_end(&o), 0);
    assert_int_equal(buf_putc(&b, '\0'), 0);
    assert_string_equal(b.p + 1, want);
}

static void lists_rows_from_the_oldest(void **state)
{
    CLEANUP(cleanup_history_free) struct history *h = NULL;

    (void)state;
    assert_history(NULL, "\"history\":{\"unixSeconds\":[],\"a\":[],\"b\":[]}");
    history_add(&h, 2, (unix_ms){1999}, (const double[]){0.1, NAN});
    history_add(&h, 2, (unix_ms){3000}, (const double[]){1234567, -INFINITY});
    assert_history(h, "\"history\":{\"unixSeconds\":[1,3],\"a\":[0.1,1.23457e+06],\"b\":[null,null]}");
}

static void keeps_the_last_sixty_rows(void **state)
{
    CLEANUP(cleanup_history_free) struct history *h = NULL;
    BUF_AUTO(b, 1 << 20);
    struct out o = out_begin(&b);

    (void)state;
    for (int i = 0; i < 100; i++)
        history_add(&h, 2, (unix_ms){1000 * i}, (const double[]){i, i});
    out_puts(&o, "{");
    member_history(&o, h, names);
    assert_int_equal(buf_putc(&b, '\0'), 0);
    assert_non_null(strstr(b.p, "\"unixSeconds\":[40,41,"));
    assert_non_null(strstr(b.p, "98,99],\"a\":[40,41,"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_rows_from_the_oldest),
        cmocka_unit_test(keeps_the_last_sixty_rows),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

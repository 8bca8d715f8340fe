#include "exporter/base/buf.h"
#include "exporter/ui/members.h"
#include "exporter/ui/out.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void writes_members_and_items_with_commas(void **state)
{
    BUF_AUTO(b, 1000);
    struct out o = out_begin(&b);

    (void)state;
    out_puts(&o, "{");
    member_text(&o, "text", "a\"[{\xff");
    member_text(&o, "none", NULL);
    member_words(&o, "empty", "");
    member_bool(&o, "yes", true);
    member_count(&o, "count", UINT64_MAX);
    member_number(&o, "number", 0.5);
    member_number(&o, "infinite", -INFINITY);
    member_time(&o, "never", 0);
    member_time(&o, "at", 1795242181123);
    member_url(&o, "url", "https://me:hunter2@h/x");
    member_object(&o, "object");
    out_puts(&o, "}");
    member_list(&o, "list");
    for (int i = 0; i < 2; i++) {
        member_item(&o);
        value_number(&o, i);
    }
    out_puts(&o, "]}");
    assert_int_equal(out_end(&o), 0);
    assert_int_equal(buf_putc(&b, '\0'), 0);
    assert_string_equal(
        b.p, "{\"text\":\"a\\\"[{\xef\xbf\xbd\",\"none\":null,\"empty\":null,\"yes\":true,"
             "\"count\":18446744073709551615,\"number\":0.5,\"infinite\":\"-Inf\",\"never\":null,"
             "\"at\":\"2026-11-21T06:23:01.123Z\",\"url\":\"https://h/x\",\"object\":{},\"list\":[0,1]}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_members_and_items_with_commas),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "exporter/base/huge.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* It is a hint: whatever its size and place, the memory stays what it was. */
static void changes_nothing(void **state)
{
    static const size_t sizes[] = {1, 4095, 4097, 1 << 20, (4 << 20) - 1, 4 << 20, (5 << 20) + 17};

    (void)state;
    huge_pages(NULL, 0);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        unsigned char *p = malloc(sizes[i]);
        assert_non_null(p);
        memset(p, 0xa5, sizes[i]);
        huge_pages(p, sizes[i]);
        huge_pages(p + sizes[i] / 2, sizes[i] - sizes[i] / 2);
        for (size_t k = 0; k < sizes[i]; k++)
            assert_int_equal(p[k], 0xa5);
        free(p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(changes_nothing)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "exporter/base/arena.h"

#include "exporter/base/def.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void gives_out_separate_aligned_pieces(void **state)
{
    struct arena a = {.chunk_bytes = 256};
    char *pieces[200];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(pieces); i++) {
        pieces[i] = arena_alloc(&a, i);
        assert_non_null(pieces[i]);
        assert_int_equal((uintptr_t)pieces[i] % sizeof(void *), 0);
        memset(pieces[i], (int)i, i);
    }
    for (size_t i = 0; i < ARRAY_SIZE(pieces); i++)
        for (size_t k = 0; k < i; k++)
            assert_int_equal((unsigned char)pieces[i][k], i);
    arena_done(&a);
}

static void gives_a_large_piece_a_chunk_of_its_own(void **state)
{
    struct arena a = {.chunk_bytes = 64};
    char *large = arena_alloc(&a, 100000);

    (void)state;
    assert_non_null(large);
    memset(large, 1, 100000);
    assert_non_null(arena_alloc(&a, 8));
    arena_done(&a);
}

static void can_be_used_again_after_done(void **state)
{
    struct arena a = {.chunk_bytes = 64};

    (void)state;
    arena_done(&a);
    assert_non_null(arena_alloc(&a, 8));
    arena_done(&a);
    assert_null(a.chunks);
    assert_non_null(arena_alloc(&a, 8));
    arena_done(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gives_out_separate_aligned_pieces),
        cmocka_unit_test(gives_a_large_piece_a_chunk_of_its_own),
        cmocka_unit_test(can_be_used_again_after_done),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Whether the kernel takes memory back is read from /proc. Sanitizers have allocators of their own. */
#include "exporter/base/trimmer.h"

#include "exporter/base/clock.h"
#include "exporter/base/loop.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { BLOCKS = 20000, BLOCK_BYTES = 1000 };

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
static const bool has_own_malloc = false;
#else
static const bool has_own_malloc = true;
#endif

static int64_t fake_now;

static mono_ms fake_mono(const struct clock *c)
{
    (void)c;
    return (mono_ms){fake_now};
}

static unix_ms fake_wall(const struct clock *c)
{
    (void)c;
    return (unix_ms){fake_now};
}

static const struct clock fake_clock = {.mono = fake_mono, .wall = fake_wall};

static long resident_bytes(void)
{
    FILE *f = fopen("/proc/self/statm", "re");
    long pages = 0;

    assert_non_null(f);
    assert_int_equal(fscanf(f, "%*d %ld", &pages), 1);
    (void)fclose(f);
    return pages * sysconf(_SC_PAGESIZE);
}

/* Many small blocks, of which only the last stays, so that the heap cannot shrink from its end. */
static void *fragment_the_heap(void)
{
    static void *blocks[BLOCKS];

    for (size_t i = 0; i < BLOCKS; i++) {
        blocks[i] = malloc(BLOCK_BYTES);
        assert_non_null(blocks[i]);
        (void)memset(blocks[i], 1, BLOCK_BYTES);
    }
    for (size_t i = 0; i + 1 < BLOCKS; i++)
        free(blocks[i]);
    return blocks[BLOCKS - 1];
}

static void returns_freed_memory_after_the_start_and_each_minute(void **state)
{
    static const int64_t times[] = {10000, 70000, 130000};
    CLEANUP(cleanup_loop_free) struct loop *loop = NULL;
    struct trimmer t;

    (void)state;
    fake_now = 0;
    assert_int_equal(loop_new(&loop, &fake_clock), 0);
    trimmer_start(&t, loop);
    for (size_t i = 0; i < ARRAY_SIZE(times); i++) {
        void *last = fragment_the_heap();
        long before = resident_bytes(), early;

        fake_now = times[i] - 1;
        assert_true(loop_turn(loop, 0) >= 0);
        early = resident_bytes();
        fake_now = times[i];
        assert_true(loop_turn(loop, 0) >= 0);
        if (has_own_malloc) {
            assert_true(early > before - BLOCKS * BLOCK_BYTES / 2);
            assert_true(resident_bytes() < before - BLOCKS * BLOCK_BYTES / 2);
        }
        free(last);
    }
    trimmer_stop(&t);
    fake_now += 1000000;
    assert_true(loop_turn(loop, 0) >= 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(returns_freed_memory_after_the_start_and_each_minute),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

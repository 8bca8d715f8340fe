
#include "exporter/base/cgroup.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char root[] = "/tmp/ds-memory-XXXXXX";

static void put_file(const char *path, const char *text)
{
    char whole[512];
    FILE *f;

    (void)snprintf(whole, sizeof(whole), "mkdir -p $(dirname %s%s)", root, path);
    assert_int_equal(system(whole), 0);
    (void)snprintf(whole, sizeof(whole), "%s%s", root, path);
    f = fopen(whole, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static int setup(void **state)
{
    (void)state;
    (void)strcpy(root, "/tmp/ds-memory-XXXXXX");
    return mkdtemp(root) ? 0 : -1;
}

static int teardown(void **state)
{
    char command[128];

    (void)state;
    (void)snprintf(command, sizeof(command), "rm -r %s", root);
    return system(command);
}

static uint64_t all(void)
{
    return (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void is_the_machine_without_a_cgroup(void **state)
{
    (void)state;
    assert_int_equal(memory_limit(root), all());
    put_file("/proc/self/cgroup", "0::/\n");
    assert_int_equal(memory_limit(root), all());
    put_file("/sys/fs/cgroup/memory.max", "max\n");
    assert_int_equal(memory_limit(root), all());
}

static void is_the_lowest_of_the_groups_above(void **state)
{
    (void)state;
    put_file("/proc/self/cgroup", "0::/a/b\n");
    put_file("/sys/fs/cgroup/a/b/memory.max", "max\n");
    put_file("/sys/fs/cgroup/a/memory.max", "67108864\n");
    put_file("/sys/fs/cgroup/memory.max", "99999999\n");
    assert_int_equal(memory_limit(root), 67108864);
    put_file("/sys/fs/cgroup/a/b/memory.max", "4096\n");
    assert_int_equal(memory_limit(root), 4096);
}

static void reads_version_1(void **state)
{
    (void)state;
    put_file("/proc/self/cgroup", "5:cpu,cpuacct:/x\n4:memory:/docker/123\n0::/\nnonsense");
    put_file("/sys/fs/cgroup/memory/memory.limit_in_bytes", "33554432\n");
    assert_int_equal(memory_limit(root), 33554432);
    put_file("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    assert_int_equal(memory_limit(root), all());
    put_file("/sys/fs/cgroup/memory/memory.limit_in_bytes", "99999999999999999999999\n");
    assert_int_equal(memory_limit(root), all());
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(is_the_machine_without_a_cgroup),
        CASE(is_the_lowest_of_the_groups_above),
        CASE(reads_version_1),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

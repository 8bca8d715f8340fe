#include "controller/optimize/exact.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>

#include <cmocka.h>

static char folder[] = "/tmp/exact-find.XXXXXX";

static void make(const char *name, mode_t mode)
{
    char path[128];
    int fd;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, mode);
    assert_true(fd >= 0);
    (void)close(fd);
}

static void finds_an_executable_in_an_absolute_folder_of_path(void **state)
{
    CLEANUP(cleanup_free) char *found = NULL;
    char path[256], at[128];

    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "/nonexistent:.::%s", folder);
    assert_int_equal(setenv("PATH", path, 1), 0);
    assert_int_equal(exact_find(&found), -ENOENT);
    make("dynamic-scoring-cbc", 0600);
    snprintf(at, sizeof at, "%s/dynamic-scoring-cbc", folder);
    if (geteuid() != 0)
        assert_int_equal(exact_find(&found), -ENOENT);
    assert_int_equal(chmod(at, 0700), 0);
    assert_int_equal(exact_find(&found), 0);
    assert_string_equal(found, at);
    assert_int_equal(chdir(folder), 0);
    assert_int_equal(setenv("PATH", ".", 1), 0);
    free(TAKE_PTR(found));
    assert_int_equal(exact_find(&found), -ENOENT); /* not from whatever folder it was started in */
    assert_int_equal(unsetenv("PATH"), 0);
    assert_int_equal(exact_find(&found), -ENOENT);
    assert_int_equal(unlink(at), 0);
    assert_int_equal(rmdir(folder), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(finds_an_executable_in_an_absolute_folder_of_path)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}

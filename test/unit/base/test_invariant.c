#include "exporter/base/alloc.h"
#include "exporter/base/invariant.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* The line that a child that runs `dies` has written to stderr; it must have ended by SIGABRT. An emulator
 * adds a line of its own to that. */
static void last_line_of(void (*dies)(void), char *ret, size_t size)
{
    int ends[2], status;
    ssize_t n;
    char *end;
    pid_t child;

    assert_int_equal(pipe(ends), 0);
    child = fork();
    if (child == 0) {
        (void)signal(SIGABRT, SIG_DFL);
        (void)dup2(ends[1], STDERR_FILENO);
        dies();
        _exit(0);
    }
    (void)close(ends[1]);
    n = read(ends[0], ret, size - 1);
    (void)close(ends[0]);
    ret[n < 0 ? 0 : n] = '\0';
    end = strchr(ret, '\n');
    if (end)
        end[1] = '\0';
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

static void breaks_an_invariant(void)
{
    int refs = 0;

    invariant(refs > 0);
}

static void has_no_memory(void)
{
    memory_exhausted(77);
}

static void has_much_to_say(void)
{
    char text[2000];

    (void)memset(text, 'x', sizeof(text));
    die("%.*s", (int)sizeof(text), text);
}

static void names_what_failed_and_where(void **state)
{
    char line[1024];

    (void)state;
    last_line_of(breaks_an_invariant, line, sizeof(line));
    assert_non_null(strstr(line, "dynamic-scoring: invariant failed: refs > 0 ("));
    assert_non_null(strstr(line, "test_invariant.c:"));
    assert_int_equal(line[strlen(line) - 1], '\n');
}

static void names_the_bytes_that_are_missing(void **state)
{
    char line[1024];

    (void)state;
    last_line_of(has_no_memory, line, sizeof(line));
    assert_string_equal(line, "dynamic-scoring: out of memory: 77 bytes\n");
}

static void cuts_a_long_line(void **state)
{
    char line[1024];

    (void)state;
    last_line_of(has_much_to_say, line, sizeof(line));
    assert_int_equal(strlen(line), 512);
    assert_int_equal(line[511], '\n');
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_what_failed_and_where),
        cmocka_unit_test(names_the_bytes_that_are_missing),
        cmocka_unit_test(cuts_a_long_line),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* What a program that ends itself has to say. */
#pragma once

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
static inline void last_line_of(void (*dies)(void), char *ret, size_t size)
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

#include "test/oom.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

/* Calls left until the one that fails; 0 and below: none will. Several threads may allocate. */
static atomic_long left;
static atomic_bool happened;

void oom_fail_at(long nth)
{
    atomic_store(&happened, false);
    atomic_store(&left, nth);
}

bool oom_happened(void)
{
    return atomic_load(&happened);
}

long oom_next(long n)
{
    long next = n == 0 || oom_happened() ? n + 1 : 0;

    oom_fail_at(next);
    return next;
}

static bool fails(void)
{
    if (atomic_load(&left) <= 0 || atomic_fetch_sub(&left, 1) != 1)
        return false;
    atomic_store(&happened, true);
    errno = ENOMEM;
    return true;
}

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
char *__real_strdup(const char *s);
char *__real_strndup(const char *s, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
char *__wrap_strdup(const char *s);
char *__wrap_strndup(const char *s, size_t n);

void *__wrap_malloc(size_t n)
{
    return fails() ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t n)
{
    return fails() ? NULL : __real_realloc(p, n);
}

char *__wrap_strdup(const char *s)
{
    return fails() ? NULL : __real_strdup(s);
}

char *__wrap_strndup(const char *s, size_t n)
{
    return fails() ? NULL : __real_strndup(s, n);
}

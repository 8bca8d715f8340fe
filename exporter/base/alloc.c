/* Owns nothing. Any thread. Never returns NULL: the last resort is die(), which allocates nothing itself. */
#include "exporter/base/alloc.h"

#include "exporter/base/invariant.h"

#include <stdio.h>

void memory_exhausted(size_t bytes)
{
    die("out of memory: %zu bytes", bytes);
}

void *xmalloc(size_t n)
{
    return xreallocarray(NULL, 1, n);
}

void *xcalloc(size_t count, size_t n)
{
    void *p = calloc(count ? count : 1, n ? n : 1);

    if (!p)
        memory_exhausted(count * n);
    return p;
}

void *xrealloc(void *p, size_t n)
{
    return xreallocarray(p, 1, n);
}

void *xreallocarray(void *p, size_t count, size_t n)
{
    void *q = reallocarray(p, count ? count : 1, n ? n : 1);

    if (!q)
        memory_exhausted(n);
    return q;
}

char *xstrdup(const char *text)
{
    char *copy = strdup(text);

    if (!copy)
        memory_exhausted(strlen(text));
    return copy;
}

char *xasprintf(const char *fmt, ...)
{
    char *text;
    va_list ap;

    va_start(ap, fmt);
    text = xvasprintf(fmt, ap);
    va_end(ap);
    return text;
}

char *xvasprintf(const char *fmt, va_list ap)
{
    char *text;

    if (vasprintf(&text, fmt, ap) < 0)
        memory_exhausted(strlen(fmt));
    return text;
}

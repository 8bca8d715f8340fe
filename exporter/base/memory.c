#include "exporter/base/buf.h"
#include "exporter/base/invariant.h"

#include <stdio.h>

enum { PATH_MAX_BYTES = 4096, FILE_MAX_BYTES = 64 << 10 };

/* UINT64_MAX for none: "max", or no such file. */
static uint64_t read_limit(const char *root, const char *mount, struct str group, const char *file)
{
    char path[PATH_MAX_BYTES];
    BUF_AUTO(text, FILE_MAX_BYTES);
    int n = snprintf(path, sizeof(path), "%s%s%.*s/%s", root, mount, STR_ARG(group), file);
    uint64_t v;

    if (n < 0 || (size_t)n >= sizeof(path) || file_read(path, &text) < 0)
        return UINT64_MAX;
    return str_to_u64(str_trim(buf_str(&text)), &v) ? v : UINT64_MAX;
}

/* A group is limited by those above it too. In a container, its path may be that of the host, where only the
 * mount itself exists. */
static uint64_t lowest_limit(const char *root, const char *mount, struct str group, const char *file)
{
    uint64_t lowest = UINT64_MAX;

    for (;;) {
        const char *slash = group.n ? memrchr(group.p, '/', group.n) : NULL;

        lowest = size_min(lowest, read_limit(root, mount, group, file));
        if (!slash)
            return lowest;
        group.n = (size_t)(slash - group.p);
    }
}

/* A line of /proc/self/cgroup: "0::/path" (version 2) or "4:memory:/path". */
static uint64_t limit_of_line(const char *root, struct str line)
{
    struct str number = str_take(&line, ':'), controllers = str_take(&line, ':');

    if (str_eq(number, STR("0")) && controllers.n == 0)
        return lowest_limit(root, "/sys/fs/cgroup", line, "memory.max");
    if (str_eq(controllers, STR("memory")))
        return lowest_limit(root, "/sys/fs/cgroup/memory", line, "memory.limit_in_bytes");
    return UINT64_MAX;
}

uint64_t memory_limit(const char *root)
{
    uint64_t lowest = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    char path[PATH_MAX_BYTES];
    BUF_AUTO(text, FILE_MAX_BYTES);

    (void)snprintf(path, sizeof(path), "%s/proc/self/cgroup", root);
    if (file_read(path, &text) < 0)
        return lowest;
    for (struct str rest = buf_str(&text); rest.n;)
        lowest = size_min(lowest, limit_of_line(root, str_take(&rest, '\n')));
    return lowest;
}

/* ---- Allocation that cannot fail (def.h) ---- */

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
    return str_dup(str_of(text));
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

/* ---- Arenas ---- */

enum { ALIGN = 8 };

struct arena_chunk {
    struct arena_chunk *next;
    size_t used, size;
    _Alignas(ALIGN) char bytes[];
};

void *arena_alloc(struct arena *a, size_t n)
{
    struct arena_chunk *c = a->chunks;

    n = (n + ALIGN - 1) & ~(size_t)(ALIGN - 1);
    if (!c || c->size - c->used < n) {
        size_t size = size_max(n, a->chunk_bytes);

        c = xmalloc(sizeof(*c) + size);
        *c = (struct arena_chunk){.next = a->chunks, .size = size};
        a->chunks = c;
    }
    c->used += n;
    return c->bytes + c->used - n;
}

void arena_done(struct arena *a)
{
    struct arena_chunk *c;

    while ((c = a->chunks)) {
        a->chunks = c->next;
        free(c);
    }
}

char *arena_text(struct arena *a, struct str text)
{
    char *copy = arena_alloc(a, text.n + 1);

    *(char *)mempcpy(copy, cstr(text.p), text.n) = '\0';
    return copy;
}

#include "controller/optimize/exact.h"
#include "exporter/base/def.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define EXACT_PROGRAM "dynamic-scoring-cbc"

/* Takes <folder><between>dynamic-scoring-cbc if that is an executable. */
static int exact_find_in(char **ret, const char *folder, size_t n, const char *between)
{
    CLEANUP(cleanup_free) char *path = NULL;

    if (asprintf(&path, "%.*s%s%s", (int)n, folder, between, EXACT_PROGRAM) < 0) {
        path = NULL;
        return -ENOMEM;
    }
    if (access(path, X_OK) < 0)
        return -ENOENT;
    *ret = TAKE_PTR(path);
    return 0;
}

static int exact_find_in_path(char **ret)
{
    const char *at = getenv("PATH");

    while (at && *at) {
        size_t n = strcspn(at, ":");
        /* A relative entry would run a program from whatever folder this one was started in. */
        int r = *at == '/' ? exact_find_in(ret, at, n, "/") : -ENOENT;

        if (r != -ENOENT)
            return r;
        at += n + (at[n] == ':');
    }
    return -ENOENT;
}

int exact_find(char **ret)
{
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self);
    const char *slash = n > 0 ? memrchr(self, '/', (size_t)n) : NULL;
    int r = -ENOENT;

    if (slash)
        r = exact_find_in(ret, self, (size_t)(slash - self), "/");
    if (slash && r == -ENOENT)
        r = exact_find_in(ret, self, (size_t)(slash - self), "/../lib/dynamic-scoring/");
    return r == -ENOENT ? exact_find_in_path(ret) : r;
}

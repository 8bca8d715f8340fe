/* Reads /proc and /sys once, at the start. What cannot be read sets no limit. */
#include "exporter/base/cgroup.h"

#include "exporter/base/buf.h"
#include "exporter/base/file.h"

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

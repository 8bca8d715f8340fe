#include "exporter/base/descriptors.h"

#include <limits.h>
#include <sys/resource.h>

enum { ENOUGH = 1 << 16 };

unsigned descriptors_raise(void)
{
    struct rlimit files;
    rlim_t now;

    if (getrlimit(RLIMIT_NOFILE, &files) < 0)
        return UINT_MAX;
    now = files.rlim_cur;
    files.rlim_cur = files.rlim_max < ENOUGH ? files.rlim_max : ENOUGH;
    if (files.rlim_cur > now && setrlimit(RLIMIT_NOFILE, &files) == 0)
        now = files.rlim_cur;
    return now < UINT_MAX ? (unsigned)now : UINT_MAX;
}

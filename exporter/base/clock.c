/* The kernel's clocks. Any thread. Tests and the universe have clocks of their own instead. */
#include "exporter/base/clock.h"

#include <stdio.h>
#include <time.h>

static int64_t read_ms(clockid_t id)
{
    struct timespec ts;

    (void)clock_gettime(id, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static mono_ms system_mono(const struct clock *c)
{
    (void)c;
    /* Not CLOCK_MONOTONIC: a machine that slept for an hour must find its scores expired when it wakes. */
    return (mono_ms){read_ms(CLOCK_BOOTTIME)};
}

static unix_ms system_wall(const struct clock *c)
{
    (void)c;
    return (unix_ms){read_ms(CLOCK_REALTIME)};
}

const struct clock clock_system = {.mono = system_mono, .wall = system_wall};

double clock_seconds(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

void unix_ms_format(unix_ms t, char out[32])
{
    int64_t ms = t.ms % 1000;
    time_t s = (time_t)(t.ms / 1000);
    struct tm tm;
    size_t n;

    if (ms < 0) {
        ms += 1000;
        s--;
    }
    n = strftime(out, 32, "%Y-%m-%dT%H:%M:%S", gmtime_r(&s, &tm)); /* the year has 9 digits at most */
    (void)snprintf(out + n, 32 - n, ".%03uZ", (unsigned)ms % 1000);
}

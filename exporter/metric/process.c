/* The process_* metrics, as client libraries of Prometheus name them, from /proc/self. */
#include "exporter/base/buf.h"
#include "exporter/base/file.h"
#include "exporter/metric/metrics.h"

#include <dirent.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>

enum { FIELD_THREADS = 20, FIELD_START = 22, FIELD_VIRTUAL = 23, FIELD_RESIDENT = 24, FIELDS = 25 };

/* Numbers of /proc/self/stat by their number in proc(5). The second, the command in parentheses, may contain
 * any character. */
static bool read_stat(double fields[FIELDS])
{
    BUF_AUTO(text, 4096);
    const char *p;

    if (file_read("/proc/self/stat", &text) < 0 || buf_putc(&text, '\0') < 0)
        return false;
    p = strrchr(text.p, ')');
    if (!p)
        return false;
    p += sizeof(") S") - 1;
    for (size_t i = 4; i < FIELDS; i++) {
        char *end;
        fields[i] = strtod(p, &end);
        p = end;
    }
    return true;
}

static double cpu_seconds(void)
{
    struct rusage u;

    if (getrusage(RUSAGE_SELF, &u) < 0)
        return 0;
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static double open_fds(void)
{
    DIR *d = opendir("/proc/self/fd");
    double n = -3; /* ".", ".." and the one of opendir() */

    if (!d)
        return 0;
    while (readdir(d))
        n++;
    (void)closedir(d);
    return n;
}

/* Converts clock ticks since boot to Unix time, once, so that a later step of the wall clock does not move
 * it. If several threads get here first, one of them sets it. */
static double start_time(double ticks)
{
    static _Atomic double start;
    struct timespec wall, boot;
    double unset = 0;

    if (atomic_load(&start) == unset && clock_gettime(CLOCK_REALTIME, &wall) == 0 &&
        clock_gettime(CLOCK_BOOTTIME, &boot) == 0) {
        double booted = (double)(wall.tv_sec - boot.tv_sec) + (double)(wall.tv_nsec - boot.tv_nsec) / 1e9;
        double at = (booted + ticks / (double)sysconf(_SC_CLK_TCK)) * 100;
        (void)atomic_compare_exchange_strong(&start, &unset, (double)(int64_t)at / 100);
    }
    return atomic_load(&start);
}

int64_t metrics_process_start_ms(void)
{
    double f[FIELDS] = {0};

    return read_stat(f) ? (int64_t)(start_time(f[FIELD_START]) * 1000) : 0;
}

void metrics_set_process(struct metrics *m)
{
    struct rlimit files;
    double f[FIELDS] = {0};

    metric_set(m, METRIC_PROCESS_CPU, LV_NONE, cpu_seconds());
    metric_set(m, METRIC_PROCESS_OPEN_FDS, LV_NONE, open_fds());
    if (getrlimit(RLIMIT_NOFILE, &files) == 0)
        metric_set(m, METRIC_PROCESS_MAX_FDS, LV_NONE, (double)files.rlim_cur);
    if (!read_stat(f))
        return;
    metric_set(m, METRIC_PROCESS_VIRTUAL, LV_NONE, f[FIELD_VIRTUAL]);
    metric_set(m, METRIC_PROCESS_RESIDENT, LV_NONE, f[FIELD_RESIDENT] * (double)sysconf(_SC_PAGESIZE));
    metric_set(m, METRIC_PROCESS_START, LV_NONE, start_time(f[FIELD_START]));
    metric_set(m, METRIC_PROCESS_THREADS, LV_NONE, f[FIELD_THREADS]);
}

#include "test/bench/measure.h"
#include "exporter/base/heap.h"

#include "test/bench/gen.h"

#include <fcntl.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

enum { MAX_REPEATS = 99 };

void measure_init(void)
{
    heap_set_thresholds();
}

double measure_cpu_ms(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static int compare(const void *x, const void *y)
{
    const double *a = x, *b = y;

    return (*a > *b) - (*a < *b);
}

double measure_ms(void (*fn)(void *), void *arg, int repeats)
{
    double took[MAX_REPEATS], from;

    must(repeats > 0 && repeats <= MAX_REPEATS);
    fn(arg);
    for (int i = 0; i < repeats; i++) {
        from = measure_cpu_ms();
        fn(arg);
        took[i] = measure_cpu_ms() - from;
    }
    qsort(took, (size_t)repeats, sizeof(took[0]), compare);
    return took[repeats / 2];
}

double measure_mean_ms(void (*fn)(void *), void *arg, int repeats)
{
    double from;

    must(repeats > 0);
    fn(arg);
    from = measure_cpu_ms();
    for (int i = 0; i < repeats; i++)
        fn(arg);
    return (measure_cpu_ms() - from) / repeats;
}

/* A line of /proc/self/status, in bytes. */
static double status_bytes(const char *line)
{
    char text[256];
    double kib = -1;
    FILE *f = fopen("/proc/self/status", "re");

    must(f != NULL);
    while (fgets(text, sizeof(text), f))
        if (strncmp(text, line, strlen(line)) == 0)
            kib = strtod(text + strlen(line), NULL);
    (void)fclose(f);
    must(kib >= 0);
    return kib * 1024;
}

double measure_peak_bytes(void (*fn)(void *), void *arg)
{
    CLEANUP(cleanup_close) int fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
    double before;

    /* What an earlier run freed and the allocator kept would hide what this one takes. */
    (void)malloc_trim(0);
    must(fd >= 0 && write(fd, "5", 1) == 1); /* "5" sets the peak back to what is resident now: proc(5) */
    before = status_bytes("VmRSS:");
    fn(arg);
    return status_bytes("VmHWM:") - before;
}

void measure_print(double value, const char *key, ...)
{
    va_list ap;

    va_start(ap, key);
    (void)vprintf(key, ap);
    va_end(ap);
    (void)printf(" %.9g\n", value);
    (void)fflush(stdout);
}

/* CPU time and memory of what a benchmark does, and the lines it prints for test/bench/run: `key value`. */
#pragma once

/* Memory comes and goes as in the program itself (controller/main.c). To be called first. */
void measure_init(void);
/* The processor's time that this process has used, user and system, in milliseconds. */
double measure_cpu_ms(void);
/* The median of that over `repeats` (odd, at most 99) calls of fn, after one call to warm up. */
double measure_ms(void (*fn)(void *), void *arg, int repeats);
/* The mean, for work that some calls leave to others. */
double measure_mean_ms(void (*fn)(void *), void *arg, int repeats);
/* By how many bytes resident memory grows, at its peak, while fn runs. */
double measure_peak_bytes(void (*fn)(void *), void *arg);
/* Keeps the compiler from leaving out what made the bytes at p. */
static inline void measure_keep(const void *p)
{
    __asm__ volatile("" : : "r"(p) : "memory");
}
void measure_print(double value, const char *key, ...) __attribute__((format(printf, 2, 3)));

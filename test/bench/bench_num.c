/* What num_parse() and num_put_double() cost, next to strtod() and snprintf(). */
#include "exporter/num/num.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { NUMBERS = 200000 };

static double milliseconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static double random_value(void)
{
    static uint64_t x = 88172645463325252;

    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return (double)(x >> 11) / 9007199254740992.0;
}

static double random_cents(void)
{
    return (double)(int)(random_value() * 10000) / 100;
}

/* Runs one statement for each number and prints its cost. */
#define TIME_NUMBERS(what, statement)                                                 \
    do {                                                                              \
        double _from = milliseconds();                                                \
        for (int i = 0; i < NUMBERS; i++)                                             \
            sum += (double)(statement);                                               \
        printf("  %-28s %6.1f ns\n", what, (milliseconds() - _from) * 1e6 / NUMBERS); \
    } while (0)

static void time_numbers(const char *what, double (*make)(void))
{
    static char texts[NUMBERS][NUM_MAX], out[64];
    static double values[NUMBERS];
    double sum = 0, v;

    for (int i = 0; i < NUMBERS; i++) {
        values[i] = make();
        texts[i][num_put_double(texts[i], values[i])] = '\0';
    }
    printf("%s\n", what);
    TIME_NUMBERS("num_parse (and strlen)", (num_parse(str_of(texts[i]), &v), v));
    TIME_NUMBERS("strtod", strtod(texts[i], NULL));
    TIME_NUMBERS("num_put_double", num_put_double(out, values[i]));
    TIME_NUMBERS("snprintf %.17g", snprintf(out, sizeof(out), "%.17g", values[i]));
    printf("  (%g)\n", sum);
}

int main(void)
{
    time_numbers("sixteen digits", random_value);
    time_numbers("two decimals", random_cents);
    return 0;
}

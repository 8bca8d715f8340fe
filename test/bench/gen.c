#include "test/bench/gen.h"

#include "exporter/num/num.h"

#include <stdio.h>

enum { SCATTER = 7919 /* a prime that divides no number of results */ };

/* xorshift64: the numbers only have to look like measurements. */
static double fraction(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return (double)(*state >> 11) / 9007199254740992.0;
}

void must(bool good)
{
    if (!good)
        abort();
}

static void put_number(struct buf *b, double v)
{
    char *to;

    must(buf_reserve(b, NUM_MAX, &to) == 0);
    b->n += num_put_double(to, v);
}

static void put_samples(struct buf *b, int points, uint64_t *state)
{
    for (int i = 0; i < points; i++) {
        buf_printf(b, "%s[%d.123,\"", i ? "," : "", 1718600000 + 60 * i);
        put_number(b, fraction(state));
        buf_puts(b, "\"]");
    }
}

void gen_query_answer(struct buf *into, int series, int points)
{
    uint64_t state = 88172645463325252ull;

    buf_puts(into, "{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"result\":[");
    for (int i = 0; i < series; i++) {
        buf_printf(
            into,
            "%s{\"metric\":{\"container\":\"main\",\"namespace\":\"namespace-%d\",\"node\":\"node-%03d."
            "example.internal\",\"pod\":\"deployment-%d-%08x-abcde\"},\"values\":[",
            i ? "," : "", i % 37, i % 100, i % 500, i);
        put_samples(into, points, &state);
        buf_puts(into, "]}");
    }
    buf_puts(into, "]}}");
    must(buf_failed(into) == 0);
}

/* Result i; the suffix of its pod tells series of one place apart. */
static void put_result(struct buf *into, int i, const char *suffix, int round)
{
    buf_printf(into,
               "%s{\"metric\":{\"__name__\":\"container_cpu_usage\",\"container\":\"main\",\"meta\":"
               "\"mean\","
               "\"namespace\":\"namespace-%d\",\"node\":\"node-%03d.example.internal\","
               "\"pod\":\"deployment-%d-%08x-%s\"},\"score\":",
               i ? "," : "", i % 37, i % 100, i % 500, i, suffix);
    put_number(into, (i + round) * 1.001);
    buf_putc(into, '}');
}

void gen_scoring_answer(struct buf *into, int results, int round, int churn)
{
    buf_puts(into, "{\"results\":[");
    for (int i = 0; i < results; i++)
        put_result(into, i, churn && i % churn == 0 ? "fghij" : "abcde", round);
    buf_puts(into, "]}");
    must(buf_failed(into) == 0);
}

void gen_churned_answer(struct buf *into, int results, int round, int fresh)
{
    buf_puts(into, "{\"results\":[");
    for (int i = 0; i < results; i++) {
        long turn = (long)i * SCATTER % results; /* when it gives way, the first time */
        char suffix[16];

        (void)snprintf(suffix, sizeof(suffix), "%05lx", ((long)round * fresh + turn) / results);
        put_result(into, i, suffix, round);
    }
    buf_puts(into, "]}");
    must(buf_failed(into) == 0);
}

/* What jr_skip() and the pull calls cost, next to the memcpy() of the same bytes. */
#include "exporter/base/buf.h"
#include "exporter/base/json.h"
#include "exporter/num/num.h"

#include <stdio.h>
#include <time.h>

enum { SERIES = 10000, POINTS = 60, RESULTS = 100000, REPEATS = 7, BODY_MAX = 64 << 20 };

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

static void must(bool good)
{
    if (!good)
        abort();
}

static void put_labels(struct buf *b, int i)
{
    buf_printf(
        b,
        "%s{\"metric\":{\"__name__\":\"node_load1\",\"instance\":\"10.0.%d.%d:9100\",\"job\":\"node-"
        "exporter\","
        "\"namespace\":\"monitoring\",\"node\":\"worker-%d\",\"pod\":\"prometheus-node-exporter-%05d\"},",
        i ? "," : "", i / 250 % 250, i % 250, i, i);
}

static void make_range(struct buf *b, const char *fraction)
{
    char text[NUM_MAX];

    buf_puts(b, "{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"result\":[");
    for (int s = 0; s < SERIES; s++) {
        put_labels(b, s);
        for (int i = 0; i < POINTS; i++)
            buf_printf(b, "%s[%d%s,\"%.*s\"]", i ? "," : "\"values\":[", 1718600000 + 60 * i, fraction,
                       (int)num_put_double(text, random_value()), text);
        buf_puts(b, "]}");
    }
    buf_puts(b, "]}}");
    must(buf_failed(b) == 0);
}

static void make_results(struct buf *b)
{
    buf_puts(b, "{\"results\":[");
    for (int i = 0; i < RESULTS; i++) {
        put_labels(b, i);
        buf_printf(b, "\"score\":%.4f}", 100 * random_value());
    }
    buf_puts(b, "]}");
    must(buf_failed(b) == 0);
}

static void copy_all(struct str text)
{
    static char to[BODY_MAX];

    memcpy(to, text.p, text.n);
    __asm__ volatile("" ::"r"(to) : "memory");
}

static void skip_all(struct str text)
{
    struct jr j;

    jr_init(&j, text, JR_STRICT);
    must(jr_skip(&j, NULL) && jr_end(&j));
}

static void pull_labels(struct jr *j, size_t *ret)
{
    struct str key, value;

    jr_object(j);
    while (jr_member(j, &key))
        if (jr_string(j, &value) && jr_key_is(key, "node"))
            *ret += value.n;
}

static void pull_all(struct str text)
{
    struct jr j;
    struct str key, number;
    double sum = 0, v = 0;
    size_t n = 0;

    jr_init(&j, text, JR_STRICT);
    jr_object(&j);
    while (jr_member(&j, &key))
        for (jr_array(&j); jr_item(&j);)
            for (jr_object(&j); jr_member(&j, &key);)
                if (jr_key_is(key, "metric"))
                    pull_labels(&j, &n);
                else if (jr_number(&j, &number) && num_parse(number, &v) == NUM_OK)
                    sum += v;
    must(jr_end(&j) && n > RESULTS && sum > 0);
}

static void time_body(const char *what, void (*fn)(struct str), const struct buf *body)
{
    double best = 1e9, t;

    for (int i = 0; i < REPEATS; i++) {
        t = milliseconds();
        fn(buf_str(body));
        t = milliseconds() - t;
        best = t < best ? t : best;
    }
    printf("%-40s %5.1f MB %7.2f ms %6.2f GB/s\n", what, (double)body->n / 1e6, best,
           (double)body->n / best / 1e6);
}

int main(void)
{
    BUF_AUTO(whole, BODY_MAX);
    BUF_AUTO(millis, BODY_MAX);
    BUF_AUTO(results, BODY_MAX);

    make_range(&whole, "");
    make_range(&millis, ".123");
    make_results(&results);
    time_body("memcpy, range answer", copy_all, &millis);
    time_body("jr_skip, range answer, milliseconds", skip_all, &millis);
    time_body("jr_skip, range answer, whole seconds", skip_all, &whole);
    time_body("jr_skip, 100,000 results", skip_all, &results);
    time_body("pull calls, 100,000 results", pull_all, &results);
    return 0;
}

/* What the models `mean` and `forecast` cost: 10,000 series of 60 samples, of the kinds that users have, next
 * to only reading them, and to only checking the JSON.
 *
 *     bench_forecast          prints `key value` lines
 *     bench_forecast FILE     writes the request to a file, for other programs */
#include "exporter/base/buf.h"
#include "exporter/base/json.h"
#include "exporter/models/instance.h"
#include "exporter/models/model.h"
#include "exporter/models/wire.h"
#include "exporter/num/num.h"
#include "test/bench/gen.h"
#include "test/bench/measure.h"
#include "test/unit/models/model_world.h"

#include <math.h>
#include <stdio.h>

enum { SERIES = 10000, POINTS = 60, REPEATS = 7 };

static const double NOISE = 0.05;

static double random_value(void)
{
    static uint64_t x = 88172645463325252;

    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return (double)(x >> 11) / 9007199254740992.0;
}

/* CPU load that is on for 5 of 15 minutes, daily waves, ramps, and noise (without any: growth). */
static double value_of(int series, int point, double noise_part)
{
    double noise = noise_part * (random_value() + random_value() + random_value() - 1.5);

    switch (series % 4) {
    case 0:
        return ((point + series) % 15 < 5 ? 2 : 0.1) + noise;
    case 1:
        return 1 + sin((point + series) % 288 * 2 * M_PI / 288) + noise;
    case 2:
        return 0.01 * point + noise;
    default:
        return noise_part > 0 ? 20 * fabs(noise) : pow(1.02, point + series % 10);
    }
}

static void make_request(struct buf *b, double noise_part)
{
    char text[NUM_MAX];

    buf_truncate(b, 0);
    buf_puts(b, "{\"data\":[");
    for (int i = 0; i < SERIES; i++) {
        buf_printf(b,
                   "%s{\"metric\":{\"namespace\":\"team-%d\",\"node\":\"node-%d\",\"pod\":\"app-%d-"
                   "5d8c7b9f4-x2m7q\"}"
                   ",\"values\":[",
                   i ? "," : "", i % 40, i % 97, i);
        for (int k = 0; k < POINTS; k++)
            buf_printf(b, "%s[%d,\"%.*s\"]", k ? "," : "", 1718600000 + 60 * k,
                       (int)num_put_double(text, value_of(i, k, noise_part)), text);
        buf_puts(b, "]}");
    }
    buf_puts(b, "]}");
    must(buf_failed(b) == 0);
}

struct work {
    struct buf in, out;
    struct instance *instance;
    size_t results;
};

static void read_only(void *arg)
{
    struct work *w = arg;
    struct input_series series;
    struct request rq;

    request_begin(&rq, buf_str(&w->in));
    while (request_next(&rq, &series))
        measure_keep(series.values);
    must(request_end(&rq) == 0);
}

static void check_only(void *arg)
{
    struct work *w = arg;
    struct jr j;

    jr_init(&j, buf_str(&w->in), JR_STRICT);
    (void)jr_skip(&j, NULL);
    must(jr_end(&j));
}

static void mean(void *arg)
{
    struct work *w = arg;
    struct scoring s;

    must(model_call(&model_mean, NULL, buf_str(&w->in), &w->out, &s) == 0 && s.results.n == SERIES);
}

static void forecast(void *arg)
{
    struct work *w = arg;
    struct scoring s;

    must(model_call(&model_forecast, w->instance->state, buf_str(&w->in), &w->out, &s) == 0);
    w->results = s.results.n;
}

int main(int argc, char **argv)
{
    struct work w = {.in.max = 1u << 30, .out.max = 1u << 30};
    double read_ms, forecast_ms;

    measure_init();
    make_request(&w.in, NOISE);
    if (argc > 1) {
        FILE *f = fopen(argv[1], "we");

        must(f && fwrite(w.in.p, 1, w.in.n, f) == w.in.n && fclose(f) == 0);
        return 0;
    }
    w.instance = instance_new(&model_forecast);
    read_ms = measure_ms(read_only, &w, REPEATS);
    forecast_ms = measure_ms(forecast, &w, REPEATS);
    must(w.results == SERIES);
    measure_print((double)w.in.n, "bytes");
    measure_print(read_ms, "read_ms");
    measure_print(forecast_ms, "forecast_ms");
    measure_print(measure_ms(check_only, &w, REPEATS), "check_ms");
    measure_print(measure_ms(mean, &w, REPEATS), "mean_ms");
    measure_print(read_ms * 1e6 / (SERIES * POINTS), "read_ns_per_point");
    make_request(&w.in, 0);
    measure_print(measure_ms(read_only, &w, REPEATS), "exact_read_ms");
    measure_print(measure_ms(forecast, &w, REPEATS), "exact_forecast_ms");
    instance_free(w.instance);
    buf_done(&w.in);
    buf_done(&w.out);
    return 0;
}

/* Forecasts series for scripts. Each line of standard input holds the values of one; for each, three
 * lines are printed, every one the next HORIZON values: by autoregression, by smoothing, and by what the
 * backtest chooses. A fourth one has the method chosen and the period found. */
#include "exporter/models/autoregression.h"
#include "exporter/models/period.h"
#include "exporter/models/predict.h"
#include "exporter/models/smoothing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HORIZON = 10, MAX_VALUES = 4096, LINE_BYTES = MAX_VALUES * 32 };

static void print_values(const double *out)
{
    for (size_t i = 0; i < HORIZON; i++)
        printf("%.17g%c", out[i], i + 1 < HORIZON ? ' ' : '\n');
}

static void smooth(const double *v, size_t n, double *out)
{
    static struct smoothing s;
    double deviations[MAX_VALUES], mean = 0;

    for (size_t i = 0; i < n; i++)
        mean += v[i] / (double)n;
    for (size_t i = 0; i < n; i++)
        deviations[i] = v[i] - mean;
    smoothing_start(&s, v, find_period(deviations, n));
    smoothing_advance(&s, n);
    smoothing_forecast(&s, out, HORIZON);
}

static size_t read_values(char *line, double *v)
{
    size_t n = 0;

    for (char *end; n < MAX_VALUES; line = end, n++) {
        v[n] = strtod(line, &end);
        if (end == line)
            break;
    }
    return n;
}

int main(void)
{
    static char line[LINE_BYTES];
    double v[MAX_VALUES], copy[MAX_VALUES], out[HORIZON];
    struct prediction p;

    while (fgets(line, sizeof(line), stdin)) {
        size_t n = read_values(line, v);

        if (n <= LAGS)
            return 1;
        memcpy(copy, v, n * sizeof(*v));
        predict(copy, n, HORIZON, 0, out, &p);
        print_values(out);
        smooth(v, n, out);
        print_values(out);
        predict(v, n, HORIZON, HORIZON, out, &p);
        print_values(out);
        printf("%s %zu\n", predict_method_word(p.method), p.period);
    }
    return 0;
}

/* Forecasts series for scripts. Each line of standard input holds the values of one; for each, a line with
 * the next HORIZON values is printed. */

#include "exporter/models/autoregression.h"

#include <stdio.h>
#include <stdlib.h>

enum { HORIZON = 10, MAX_VALUES = 4096, LINE_BYTES = MAX_VALUES * 32 };

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
    double v[MAX_VALUES], out[HORIZON];

    while (fgets(line, sizeof(line), stdin)) {
        size_t n = read_values(line, v);

        if (n <= LAGS)
            return 1;
        (void)autoregression_predict(v, n, out, HORIZON, 0);
        for (size_t i = 0; i < HORIZON; i++)
            printf("%.17g%c", out[i], i + 1 < HORIZON ? ' ' : '\n');
    }
    return 0;
}

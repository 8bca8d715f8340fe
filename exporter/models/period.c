#include "exporter/models/period.h"

#include "exporter/base/def.h"
#include "exporter/models/least_squares.h"

#include <math.h>

/* A correlation of noise is below 3 / sqrt(samples) nearly always; below this one, repeating helps
 * little. */
static const double MIN_CORRELATION = 0.4, MIN_SIGMAS = 3;
/* A peak must stand out: just before it, the correlation was lower by this. */
static const double MIN_RISE = 0.2;
/* Two and three times the period correlate as well; a peak that is nearly as high as the highest is
 * preferred if it is earlier. */
static const double NEARLY = 0.9;

/* The correlations of the series with itself, shifted by 0 .. longest steps. */
static void autocorrelation(const double *x, size_t n, size_t longest, double *ret)
{
    double head = dot_product(x, x, n), tail = head;

    for (size_t lag = 0; lag <= longest; lag++) {
        double norm = head * tail;

        ret[lag] = norm > 0 ? dot_product(x, x + lag, n - lag) / sqrt(norm) : 0;
        head -= x[n - 1 - lag] * x[n - 1 - lag];
        tail -= x[lag] * x[lag];
    }
}

/* The first peak of at least `floor`; 0 without one. The last lag is none: what follows it is not known. */
static size_t first_peak(const double *r, size_t longest, double floor)
{
    double lowest = r[0];

    for (size_t lag = 1; lag < longest; lag++) {
        lowest = fmin(lowest, r[lag]);
        if (r[lag] >= floor && r[lag] >= lowest + MIN_RISE && r[lag] >= r[lag - 1] && r[lag] > r[lag + 1])
            return lag;
    }
    return 0;
}

size_t find_period(const double *deviations, size_t n)
{
    size_t longest = size_min(n / PERIODS_NEEDED, PERIOD_MAX + 1), peak;
    double r[PERIOD_MAX + 2], highest = 0, floor;

    if (longest < 2)
        return 0;
    autocorrelation(deviations, n, longest, r);
    floor = fmax(MIN_CORRELATION, MIN_SIGMAS / sqrt((double)(n - longest)));
    peak = first_peak(r, longest, floor);
    for (size_t lag = peak; peak && lag < longest; lag++)
        highest = fmax(highest, r[lag]);
    return peak ? first_peak(r, longest, fmax(floor, NEARLY * highest)) : 0;
}

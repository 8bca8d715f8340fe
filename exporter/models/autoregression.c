#include "exporter/models/autoregression.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { COLUMNS = LS_COLUMNS }; /* the lags, and then the value to be predicted */

/* What is left of a column after the columns before it explained their part, of its sum of squares.
 * Normal equations with less lose too many digits for one step of refinement to restore them. */
static const double MIN_PIVOT = 1e-8;
/* Largest residual of a recurrence, relative to the values: rounding errors of what users measure. */
static const double MAX_RESIDUAL = 1e-12;

/* Centered sums of products of columns, and the triangle of those of the lags. */
struct lag_products {
    double means[COLUMNS];
    double sums[COLUMNS][COLUMNS]; /* uncentered; [j][k] with j <= k */
    double lower[LAGS][LAGS];      /* Cholesky's; the diagonal holds reciprocals */
};

/* Column j is v[j .. j + rows - 1]. The sum of products of two columns follows from that of the two
 * before them: one row leaves and one enters. */
static void sum_lag_products(struct lag_products *e, const double *v, size_t rows)
{
    for (size_t k = 0; k < COLUMNS; k++)
        e->sums[0][k] = dot_product(v, v + k, rows);
    for (size_t j = 0; j + 1 < COLUMNS; j++)
        for (size_t k = j; k + 1 < COLUMNS; k++)
            e->sums[j + 1][k + 1] = e->sums[j][k] - v[j] * v[k] + v[j + rows] * v[k + rows];
    for (size_t j = 0; j < COLUMNS; j++) {
        double sum = 0;

        for (size_t i = 0; i < rows; i++)
            sum += v[i + j];
        e->means[j] = sum / (double)rows;
    }
}

static double centered(const struct lag_products *e, size_t j, size_t k, size_t rows)
{
    return e->sums[j][k] - (double)rows * e->means[j] * e->means[k];
}

/* Cholesky's decomposition. Returns the number of columns before the first that nearly depends on them:
 * LAGS if none does. */
static size_t decompose(struct lag_products *e, size_t rows)
{
    for (size_t j = 0; j < LAGS; j++) {
        double pivot = centered(e, j, j, rows);

        for (size_t i = 0; i < j; i++)
            pivot -= e->lower[j][i] * e->lower[j][i];
        if (!(pivot > MIN_PIVOT * e->sums[j][j]))
            return j;
        e->lower[j][j] = 1 / sqrt(pivot);
        for (size_t k = j + 1; k < LAGS; k++) {
            double s = centered(e, j, k, rows);

            for (size_t i = 0; i < j; i++)
                s -= e->lower[j][i] * e->lower[k][i];
            e->lower[k][j] = s * e->lower[j][j];
        }
    }
    return LAGS;
}

/* Adds the solution for right-hand side b, which is overwritten, to x. */
static void add_solution(const struct lag_products *e, size_t order, double *b, double *x)
{
    for (size_t j = 0; j < order; j++) {
        for (size_t i = 0; i < j; i++)
            b[j] -= e->lower[j][i] * b[i];
        b[j] *= e->lower[j][j];
    }
    for (size_t j = order; j-- > 0;) {
        for (size_t k = j + 1; k < order; k++)
            b[j] -= e->lower[k][j] * b[k];
        b[j] *= e->lower[j][j];
        x[j] += b[j];
    }
}

static double predict_next(const struct autoregression *a, size_t order, const double *window)
{
    double s = a->intercept;

    for (size_t j = 0; j < order; j++)
        s += a->coefficients[j] * window[j];
    return s;
}

static void set_intercept(struct autoregression *a, size_t order, const double *means)
{
    a->intercept = means[order];
    for (size_t j = 0; j < order; j++)
        a->intercept -= a->coefficients[j] * means[j];
}

/* Residuals of the data itself correct what the sums of products had lost (Björck 1987: corrected
 * seminormal equations). */
static void refine(struct autoregression *a, size_t order, const struct lag_products *e, const double *v,
                   size_t rows)
{
    double b[LAGS] = {0};

    for (size_t i = 0; i < rows; i++) {
        double residual = v[i + order] - predict_next(a, order, v + i);

        for (size_t j = 0; j < order; j++)
            b[j] += (v[i + j] - e->means[j]) * residual;
    }
    add_solution(e, order, b, a->coefficients);
    set_intercept(a, order, e->means);
}

/* Explains column `order` by those before it. */
static inline void solve(struct autoregression *a, size_t order, const struct lag_products *e,
                         const double *v, size_t rows)
{
    double b[LAGS];

    for (size_t j = 0; j < order; j++) {
        b[j] = centered(e, j, order, rows);
        a->coefficients[j] = 0;
    }
    add_solution(e, order, b, a->coefficients);
    set_intercept(a, order, e->means);
    refine(a, order, e, v, rows);
}

/* Whether all values follow from the `order` values before them. */
static bool is_recurrence(const struct autoregression *a, size_t order, const double *v, size_t n,
                          double limit)
{
    for (size_t i = 0; i + order < n; i++)
        if (!(fabs(v[i + order] - predict_next(a, order, v + i)) <= limit))
            return false;
    return true;
}

/* Turns the coefficients of a recurrence into those of minimum norm over all lags. The sequences that start
 * with a unit vector and follow the recurrence span all windows of the series; made orthonormal, the values
 * after them are the coefficients in that basis. False if they nearly depend on each other. */
static bool spread_recurrence(struct autoregression *a, size_t order)
{
    double rows[LAGS][COLUMNS] = {{0}}, spread[LAGS] = {0};

    for (size_t i = 0; i < order; i++) {
        double *x = rows[i], square;

        x[i] = 1;
        for (size_t k = order; k < COLUMNS; k++)
            x[k] = dot_product(a->coefficients, x + k - order, order);
        square = dot_product(x, x, LAGS);
        for (size_t j = 0; j < i; j++) {
            double part = dot_product(x, rows[j], LAGS);

            for (size_t k = 0; k < COLUMNS; k++)
                x[k] -= part * rows[j][k];
        }
        if (!(dot_product(x, x, LAGS) > MIN_PIVOT * square))
            return false;
        square = sqrt(dot_product(x, x, LAGS));
        for (size_t k = 0; k < COLUMNS; k++)
            x[k] /= square;
        for (size_t k = 0; k < LAGS; k++)
            spread[k] += x[LAGS] * x[k];
    }
    memcpy(a->coefficients, spread, sizeof(spread));
    return true;
}

/* A series without noise, such as a ramp, a wave, growth, or a short period, often follows from fewer values
 * than LAGS: `order` of them. */
static bool fit_recurrence(struct autoregression *a, size_t order, const struct lag_products *e,
                           const double *v, size_t n)
{
    size_t rows = n - LAGS;

    if (order == 0)
        return false;
    solve(a, order, e, v, rows);
    return is_recurrence(a, order, v, n, MAX_RESIDUAL * sqrt(e->sums[0][0] / (double)rows)) &&
           spread_recurrence(a, order);
}

void autoregression_fit(struct autoregression *a, const double *v, size_t n)
{
    struct lag_products e;
    size_t rows = n - LAGS, order = 0;

    sum_lag_products(&e, v, rows);
    if (rows > LAGS)
        order = decompose(&e, rows);
    if (order == LAGS) {
        solve(a, LAGS, &e, v, rows);
        return;
    }
    if (!fit_recurrence(a, order, &e, v, n))
        least_squares(v, rows, e.means, a->coefficients);
    set_intercept(a, LAGS, e.means);
}

void autoregression_forecast(const struct autoregression *a, const double *v, size_t n, double *out,
                             size_t horizon)
{
    double window[LAGS];

    for (size_t h = 0; h < horizon; h++) {
        for (size_t j = 0; j < LAGS; j++)
            window[j] = h + j < LAGS ? v[n - LAGS + h + j] : out[h + j - LAGS];
        out[h] = predict_next(a, LAGS, window);
    }
}

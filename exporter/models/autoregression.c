#include "exporter/models/autoregression.h"

#include <math.h>
#include <stdbool.h>

enum { COLUMNS = LS_COLUMNS }; /* the lags, and then the value to be predicted */

/* What is left of a column after the columns before it explained their part, of its sum of squares.
 * Normal equations with less lose too many digits for one step of refinement to restore them. */
static const double MIN_PIVOT = 1e-8;

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

/* Cholesky's decomposition. False if the equations are too close to singular. */
static bool decompose(struct lag_products *e, size_t rows)
{
    for (size_t j = 0; j < LAGS; j++) {
        double pivot = centered(e, j, j, rows);

        for (size_t i = 0; i < j; i++)
            pivot -= e->lower[j][i] * e->lower[j][i];
        if (!(pivot > MIN_PIVOT * e->sums[j][j]))
            return false;
        e->lower[j][j] = 1 / sqrt(pivot);
        for (size_t k = j + 1; k < LAGS; k++) {
            double s = centered(e, j, k, rows);

            for (size_t i = 0; i < j; i++)
                s -= e->lower[j][i] * e->lower[k][i];
            e->lower[k][j] = s * e->lower[j][j];
        }
    }
    return true;
}

/* Adds the solution for right-hand side b, which is overwritten, to x. */
static void add_solution(const struct lag_products *e, double b[LAGS], double x[LAGS])
{
    for (size_t j = 0; j < LAGS; j++) {
        for (size_t i = 0; i < j; i++)
            b[j] -= e->lower[j][i] * b[i];
        b[j] *= e->lower[j][j];
    }
    for (size_t j = LAGS; j-- > 0;) {
        for (size_t k = j + 1; k < LAGS; k++)
            b[j] -= e->lower[k][j] * b[k];
        b[j] *= e->lower[j][j];
        x[j] += b[j];
    }
}

static double predict_next(const struct autoregression *a, const double *window)
{
    double s = a->intercept;

    for (size_t j = 0; j < LAGS; j++)
        s += a->coefficients[j] * window[j];
    return s;
}

static void set_intercept(struct autoregression *a, const double *means)
{
    a->intercept = means[LAGS];
    for (size_t j = 0; j < LAGS; j++)
        a->intercept -= a->coefficients[j] * means[j];
}

/* Residuals of the data itself correct what the sums of products had lost (Björck 1987: corrected
 * seminormal equations). */
static void refine(struct autoregression *a, const struct lag_products *e, const double *v, size_t rows)
{
    double b[LAGS] = {0};

    for (size_t i = 0; i < rows; i++) {
        double residual = v[i + LAGS] - predict_next(a, v + i);

        for (size_t j = 0; j < LAGS; j++)
            b[j] += (v[i + j] - e->means[j]) * residual;
    }
    add_solution(e, b, a->coefficients);
}

void autoregression_fit(struct autoregression *a, const double *v, size_t n)
{
    struct lag_products e;
    size_t rows = n - LAGS;
    double b[LAGS];

    sum_lag_products(&e, v, rows);
    if (rows > LAGS && decompose(&e, rows)) {
        for (size_t j = 0; j < LAGS; j++) {
            b[j] = centered(&e, j, LAGS, rows);
            a->coefficients[j] = 0;
        }
        add_solution(&e, b, a->coefficients);
        set_intercept(a, e.means);
        refine(a, &e, v, rows);
    } else {
        least_squares(v, rows, e.means, a->coefficients);
    }
    set_intercept(a, e.means);
}

void autoregression_forecast(const struct autoregression *a, const double *v, size_t n, double *out,
                             size_t horizon)
{
    double window[LAGS];

    for (size_t h = 0; h < horizon; h++) {
        for (size_t j = 0; j < LAGS; j++)
            window[j] = h + j < LAGS ? v[n - LAGS + h + j] : out[h + j - LAGS];
        out[h] = predict_next(a, window);
    }
}

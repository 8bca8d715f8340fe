/* The fit: a QR decomposition of the centered rows, and back substitution. If R is nearly singular, its
 * singular value decomposition by Jacobi rotations instead, which costs five times as much. Normal equations
 * would lose half of the digits of smooth series. Owns nothing; any thread. */
#include "exporter/models/autoregression.h"

#include "exporter/base/def.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>

enum {
    COLUMNS = LAGS + 1, /* the lags, oldest first, and then the value to be explained */
    CHUNK = 64,         /* rows that are added to the triangle at a time */
    HEIGHT = LAGS + CHUNK,
    MAX_SWEEPS = 30 /* of Jacobi rotations; 3 to 6 are usual */
};

/* Smallest element of R's diagonal, relative to the largest, for back substitution. Ten columns hide singular
 * values at most some hundred times smaller, far above those that count as zero. */
static const double MIN_DIAGONAL = 1e-6;

/* Rows of R, each with its right-hand side last. */
struct triangle {
    double rows[LAGS][COLUMNS];
    double squares[LAGS]; /* of the rows' norms, without the right-hand side */
    size_t n;
};

/* ---- Least squares ---- */

/* Several sums, so that an addition does not wait for the one before. */
static double dot_product(const double *a, const double *b, size_t n)
{
    double s[4] = {0};
    size_t i = 0;

    for (; i + 4 <= n; i += 4)
        for (size_t k = 0; k < 4; k++)
            s[k] += a[i + k] * b[i + k];
    for (; i < n; i++)
        s[0] += a[i] * b[i];
    return s[0] + s[1] + (s[2] + s[3]);
}

static void add_multiple(double *into, const double *from, double factor, size_t n)
{
    size_t i = 0;

    for (; i + 4 <= n; i += 4)
        for (size_t k = 0; k < 4; k++)
            into[i + k] += factor * from[i + k];
    for (; i < n; i++)
        into[i] += factor * from[i];
}

/* A Householder reflection that makes column c zero below row c; applied to the columns after it. */
static void reflect_column(double columns[COLUMNS][HEIGHT], size_t rows, size_t c)
{
    double *x = columns[c] + c, norm = sqrt(dot_product(x, x, rows - c));

    if (norm == 0)
        return;
    norm = x[0] > 0 ? -norm : norm;
    x[0] -= norm;
    for (size_t j = c + 1; j < COLUMNS; j++) {
        double *y = columns[j] + c;

        add_multiple(y, x, dot_product(x, y, rows - c) / (norm * x[0]), rows - c);
    }
    x[0] = norm;
    for (size_t i = 1; i < rows - c; i++)
        x[i] = 0;
}

/* Row i is v[i] to v[i + LAGS], minus the columns' means. */
static void triangle_make(struct triangle *r, const double *v, size_t rows, const double *means)
{
    double columns[COLUMNS][HEIGHT]; /* of some rows */
    size_t kept = 0;

    for (size_t at = 0; at < rows;) {
        size_t n = size_min(CHUNK, rows - at);

        for (size_t j = 0; j < COLUMNS; j++)
            for (size_t i = 0; i < n; i++)
                columns[j][kept + i] = v[at + i + j] - means[j];
        for (size_t c = 0; c < size_min(LAGS, kept + n); c++)
            reflect_column(columns, kept + n, c);
        kept = size_min(LAGS, kept + n);
        at += n;
    }
    for (size_t i = 0; i < kept; i++)
        for (size_t j = 0; j < COLUMNS; j++)
            r->rows[i][j] = columns[j][i];
    for (size_t i = 0; i < kept; i++)
        r->squares[i] = dot_product(r->rows[i], r->rows[i], LAGS);
    r->n = kept;
}

/* Back substitution; false if R is nearly singular. */
static bool triangle_substitute(const struct triangle *r, double solution[LAGS])
{
    double least = INFINITY, most = 0;

    for (size_t i = 0; i < r->n; i++) {
        least = fmin(least, fabs(r->rows[i][i]));
        most = fmax(most, fabs(r->rows[i][i]));
    }
    if (r->n < LAGS || !(least > MIN_DIAGONAL * most))
        return false;
    for (size_t i = LAGS; i-- > 0;) {
        double s = r->rows[i][LAGS];

        for (size_t k = i + 1; k < LAGS; k++)
            s -= r->rows[i][k] * solution[k];
        solution[i] = s / r->rows[i][i];
    }
    return true;
}

/* Makes two rows orthogonal, with their right-hand sides. False if they were. */
static bool triangle_rotate(struct triangle *r, size_t i, size_t k)
{
    double *p = r->rows[i], *q = r->rows[k], pq = dot_product(p, q, LAGS), zeta, t, c, s;

    if (pq * pq <= DBL_EPSILON * DBL_EPSILON * r->squares[i] * r->squares[k])
        return false;
    zeta = (r->squares[k] - r->squares[i]) / (2 * pq);
    t = (zeta > 0 ? 1 : -1) / (fabs(zeta) + sqrt(1 + zeta * zeta));
    c = 1 / sqrt(1 + t * t);
    s = c * t;
    for (size_t j = 0; j < COLUMNS; j++) {
        double was = p[j];

        p[j] = c * was - s * q[j];
        q[j] = s * was + c * q[j];
    }
    r->squares[i] = dot_product(p, p, LAGS);
    r->squares[k] = dot_product(q, q, LAGS);
    return true;
}

/* The solution of minimum norm. One-sided Jacobi on the rows of R = USV' leaves s[i] * v[i]' in row i, and
 * u[i]'z as its right-hand side. As in scikit-learn, singular values below max(rows, LAGS) * DBL_EPSILON of
 * the largest count as zero. */
static void triangle_decompose(struct triangle *r, size_t rows, double solution[LAGS])
{
    double largest = 0, noise = pow((double)size_max(rows, LAGS) * DBL_EPSILON, 2);
    bool rotated = true;

    for (int sweep = 0; rotated && sweep < MAX_SWEEPS; sweep++) {
        double sum = 0; /* that of all squared singular values, of which there are at most LAGS */
        size_t kept = 0;

        rotated = false;
        for (size_t i = 0; i < r->n; i++)
            sum += r->squares[i];
        /* Rows whose square is below `noise` times the mean of all are rounding errors. */
        for (size_t i = 0; i < r->n; i++)
            if (r->squares[i] > noise * sum / LAGS) {
                memmove(r->rows[kept], r->rows[i], sizeof(r->rows[i]));
                r->squares[kept++] = r->squares[i];
            }
        r->n = kept;
        for (size_t i = 0; i + 1 < r->n; i++)
            for (size_t k = i + 1; k < r->n; k++)
                rotated |= triangle_rotate(r, i, k);
    }
    for (size_t i = 0; i < r->n; i++)
        largest = fmax(largest, r->squares[i]);
    memset(solution, 0, LAGS * sizeof(*solution));
    for (size_t i = 0; i < r->n; i++)
        if (r->squares[i] > noise * largest)
            add_multiple(solution, r->rows[i], r->rows[i][LAGS] / r->squares[i], LAGS);
}

/* ---- Predictions ---- */

/* Fits n values and predicts those that follow, each from predictions where it reaches beyond the series. */
static void autoregression_continue(const double *v, size_t n, double *out, size_t horizon)
{
    double means[COLUMNS] = {0}, coefficients[LAGS], intercept, window[LAGS];
    struct triangle r;
    size_t rows = n - LAGS;

    for (size_t j = 0; j < COLUMNS; j++) {
        for (size_t i = 0; i < rows; i++)
            means[j] += v[i + j];
        means[j] /= (double)rows;
    }
    triangle_make(&r, v, rows, means);
    if (!triangle_substitute(&r, coefficients))
        triangle_decompose(&r, rows, coefficients);
    intercept = means[LAGS] - dot_product(coefficients, means, LAGS);
    memcpy(window, v + n - LAGS, sizeof(window));
    for (size_t h = 0; h < horizon; h++) {
        out[h] = intercept + dot_product(coefficients, window, LAGS);
        memmove(window, window + 1, sizeof(window) - sizeof(*window));
        window[LAGS - 1] = out[h];
    }
}

/* value = scaled * unit + zero */
struct scale {
    double unit, zero;
};

/* Scales the values to a range of 2 around the mean of the first `known`: no sum of squares overflows or
 * vanishes, and a large constant part costs no digits. */
static struct scale scale_values(double *v, size_t n, size_t known)
{
    double least = v[0], most = v[0], sum = 0, unit, middle;

    for (size_t i = 1; i < n; i++) {
        least = v[i] < least ? v[i] : least;
        most = v[i] > most ? v[i] : most;
    }
    unit = most / 2 - least / 2;
    middle = most / 2 + least / 2;
    if (!(unit >= 1e-290)) /* constant, but for differences whose squares no double holds */
        unit = 1;
    for (size_t i = 0; i < n; i++)
        v[i] = (v[i] - middle) / unit;
    for (size_t i = 0; i < known; i++)
        sum += v[i];
    sum /= (double)known;
    for (size_t i = 0; i < n; i++)
        v[i] -= sum;
    return (struct scale){.unit = unit, .zero = middle + unit * sum};
}

double autoregression_predict(double *v, size_t n, double *out, size_t horizon, size_t validation)
{
    bool tested = validation > 0 && n >= validation + 2 * LAGS;
    struct scale scale = scale_values(v, n, tested ? n - validation : n);
    double error = NAN, sum = 0;

    if (tested) {
        const double *known = v + n - validation;

        autoregression_continue(v, n - validation, out, validation);
        for (size_t i = 0; i < validation; i++)
            sum += (out[i] - known[i]) * (out[i] - known[i]);
        /* A difference that is not finite counts as infinite. */
        error = (isfinite(sum) ? sqrt(sum / (double)validation) : INFINITY) * scale.unit;
    }
    autoregression_continue(v, n, out, horizon);
    for (size_t i = 0; i < horizon; i++)
        out[i] = out[i] * scale.unit + scale.zero;
    return error;
}

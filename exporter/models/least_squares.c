#include "exporter/models/least_squares.h"

#include "exporter/base/def.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

enum {
    CHUNK = 64, /* rows that are added to the triangle at a time */
    HEIGHT = LS_UNKNOWNS + CHUNK,
    MAX_SWEEPS = 30 /* of Jacobi rotations; 3 to 6 are usual */
};

/* The columns of some rows, the values to be explained last. */
struct ls_block {
    double columns[LS_COLUMNS][HEIGHT];
};

/* Rows of the triangle R, each with its right-hand side last. */
struct ls_triangle {
    double rows[LS_UNKNOWNS][LS_COLUMNS];
    double squares[LS_UNKNOWNS]; /* of the rows' norms, without the right-hand side */
    size_t n;
};

/* Several sums, so that an addition does not wait for the one before. */
double dot_product(const double *a, const double *b, size_t n)
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

/* A reflection that makes column c zero below row c; applied to the columns after it. */
static void reflect_column(struct ls_block *a, size_t rows, size_t c)
{
    double *x = a->columns[c] + c, norm = sqrt(dot_product(x, x, rows - c));

    if (norm == 0)
        return;
    norm = x[0] > 0 ? -norm : norm;
    x[0] -= norm;
    for (size_t j = c + 1; j < LS_COLUMNS; j++) {
        double *y = a->columns[j] + c;

        add_multiple(y, x, dot_product(x, y, rows - c) / (norm * x[0]), rows - c);
    }
    x[0] = norm;
    for (size_t i = 1; i < rows - c; i++)
        x[i] = 0;
}

/* The triangle R of the centered rows, with the right-hand side Q'y. */
static void triangle_of(struct ls_triangle *r, const double *v, size_t rows, const double *means)
{
    struct ls_block a;
    size_t kept = 0;

    for (size_t at = 0; at < rows;) {
        size_t n = size_min(CHUNK, rows - at);

        for (size_t j = 0; j < LS_COLUMNS; j++)
            for (size_t i = 0; i < n; i++)
                a.columns[j][kept + i] = v[at + i + j] - means[j];
        for (size_t c = 0; c < size_min(LS_UNKNOWNS, kept + n); c++)
            reflect_column(&a, kept + n, c);
        kept = size_min(LS_UNKNOWNS, kept + n);
        at += n;
    }
    for (size_t i = 0; i < kept; i++)
        for (size_t j = 0; j < LS_COLUMNS; j++)
            r->rows[i][j] = a.columns[j][i];
    for (size_t i = 0; i < kept; i++)
        r->squares[i] = dot_product(r->rows[i], r->rows[i], LS_UNKNOWNS);
    r->n = kept;
}

/* Removes rows whose squared norm is below `part` of the largest squared singular value: rounding errors. */
static void drop_noise(struct ls_triangle *r, double part)
{
    double sum = 0; /* that of all squared singular values, of which there are at most LS_UNKNOWNS */
    size_t kept = 0;

    for (size_t i = 0; i < r->n; i++)
        sum += r->squares[i];
    for (size_t i = 0; i < r->n; i++)
        if (r->squares[i] > part * sum / LS_UNKNOWNS) {
            memmove(r->rows[kept], r->rows[i], sizeof(r->rows[i]));
            r->squares[kept++] = r->squares[i];
        }
    r->n = kept;
}

/* Rotates two rows of R, with their right-hand sides, so that they become orthogonal. False if they were. */
static bool rotate_rows(struct ls_triangle *r, size_t i, size_t k)
{
    double *p = r->rows[i], *q = r->rows[k], pq = dot_product(p, q, LS_UNKNOWNS), zeta, t, c, s;

    if (pq * pq <= DBL_EPSILON * DBL_EPSILON * r->squares[i] * r->squares[k])
        return false;
    zeta = (r->squares[k] - r->squares[i]) / (2 * pq);
    t = (zeta > 0 ? 1 : -1) / (fabs(zeta) + sqrt(1 + zeta * zeta));
    c = 1 / sqrt(1 + t * t);
    s = c * t;
    for (size_t j = 0; j < LS_COLUMNS; j++) {
        double was = p[j];

        p[j] = c * was - s * q[j];
        q[j] = s * was + c * q[j];
    }
    r->squares[i] = dot_product(p, p, LS_UNKNOWNS);
    r->squares[k] = dot_product(q, q, LS_UNKNOWNS);
    return true;
}

/* One-sided Jacobi on the rows: R = U S V', and afterwards row i is s[i] * v[i]' with u[i]'z as its
 * right-hand side. */
static void orthogonalize(struct ls_triangle *r, double noise)
{
    bool rotated = true;

    for (int sweep = 0; rotated && sweep < MAX_SWEEPS; sweep++) {
        rotated = false;
        drop_noise(r, noise);
        for (size_t i = 0; i + 1 < r->n; i++)
            for (size_t k = i + 1; k < r->n; k++)
                rotated |= rotate_rows(r, i, k);
    }
}

void least_squares(const double *v, size_t rows, const double means[LS_COLUMNS], double solution[LS_UNKNOWNS])
{
    double largest = 0, noise = (double)size_max(rows, LS_UNKNOWNS) * DBL_EPSILON;
    struct ls_triangle r;

    noise *= noise;
    triangle_of(&r, v, rows, means);
    orthogonalize(&r, noise);
    for (size_t i = 0; i < r.n; i++)
        largest = fmax(largest, r.squares[i]);
    for (size_t j = 0; j < LS_UNKNOWNS; j++)
        solution[j] = 0;
    for (size_t i = 0; i < r.n; i++)
        if (r.squares[i] > noise * largest)
            add_multiple(solution, r.rows[i], r.rows[i][LS_UNKNOWNS] / r.squares[i], LS_UNKNOWNS);
}

#include "controller/optimize/cbc/mip.h"

#include <errno.h>

enum { MIP_ENTRIES_MAX = 1 << 25, MIP_COLUMNS_MAX = 1 << 22 };

void mip_done(struct mip *m)
{
    free(m->cost);
    free(m->row_lower);
    free(m->row_upper);
    free(m->entries);
    free(m->start);
    free(m->row);
    free(m->value);
    *m = (struct mip){0};
}

int mip_columns(struct mip *m, size_t n)
{
    if (n > MIP_COLUMNS_MAX)
        return -EFBIG;
    m->cost = calloc(n + 1, sizeof *m->cost);
    if (!m->cost)
        return -ENOMEM;
    m->n_cols = (int)n;
    return 0;
}

/* Sets *array to one of n elements with the same content. */
static int mip_grow(void *array, size_t n, size_t size)
{
    void *larger = realloc(*(void **)array, n * size);

    if (!larger)
        return -ENOMEM;
    *(void **)array = larger;
    return 0;
}

int mip_row(struct mip *m, double lower, double upper)
{
    if ((size_t)m->n_rows == m->cap_rows) {
        size_t n = m->cap_rows * 2 + 64;

        if (mip_grow(&m->row_lower, n, sizeof *m->row_lower) < 0 ||
            mip_grow(&m->row_upper, n, sizeof *m->row_upper) < 0)
            return -ENOMEM;
        m->cap_rows = n;
    }
    m->row_lower[m->n_rows] = lower;
    m->row_upper[m->n_rows++] = upper;
    return 0;
}

int mip_put(struct mip *m, int row, int col, double value)
{
    if (m->n_entries == m->cap_entries) {
        size_t n = m->cap_entries * 2 + 1024;

        if (n > MIP_ENTRIES_MAX)
            return -EFBIG;
        if (mip_grow(&m->entries, n, sizeof *m->entries) < 0)
            return -ENOMEM;
        m->cap_entries = n;
    }
    m->entries[m->n_entries++] = (struct mip_entry){row, col, value};
    return 0;
}

int mip_finish(struct mip *m)
{
    m->start = calloc((size_t)m->n_cols + 2, sizeof *m->start);
    m->row = malloc((m->n_entries + 1) * sizeof *m->row);
    m->value = malloc((m->n_entries + 1) * sizeof *m->value);
    if (!m->start || !m->row || !m->value)
        return -ENOMEM;
    for (size_t i = 0; i < m->n_entries; i++)
        m->start[m->entries[i].col + 2]++;
    for (int c = 0; c < m->n_cols; c++)
        m->start[c + 2] += m->start[c + 1];
    /* start[c + 1] is now where column c begins; filling moves it to where it ends. */
    for (size_t i = 0; i < m->n_entries; i++) {
        int at = m->start[m->entries[i].col + 1]++;

        m->row[at] = m->entries[i].row;
        m->value[at] = m->entries[i].value;
    }
    free(TAKE_PTR(m->entries));
    m->n_entries = m->cap_entries = 0;
    return 0;
}

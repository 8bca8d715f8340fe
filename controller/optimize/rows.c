#include "controller/optimize/rows.h"

#include "controller/optimize/problem.h"

#include <errno.h>
#include <stdlib.h>

enum { SCAN_BLOCK = 64, ROW_CELLS_MAX = 16 << 20, SAMPLED_ROWS = 32 };

int rows_init(struct rows *x, struct layout *l)
{
    const struct problem *p = l->p;
    size_t n = size_min(p->n_workloads * p->n_settings, ROW_CELLS_MAX);

    *x = (struct rows){
        .cells = malloc((n + 1) * sizeof(*x->cells)), /* pages that are not written cost nothing */
        .first = malloc((p->n_settings + 1) * sizeof(*x->first)),
        .n = malloc((p->n_settings + 1) * sizeof(*x->n)),
        .grain = calloc(p->n_settings + 1, sizeof(*x->grain)),
        .workload = malloc((p->n_workloads + 1) * sizeof(*x->workload)),
        .base = malloc((p->n_workloads + 1) * sizeof(*x->base)),
        .grains = malloc((p->n_workloads + 1) * sizeof(*x->grains)),
    };
    if (!x->cells || !x->first || !x->n || !x->grain || !x->workload || !x->base || !x->grains) {
        rows_done(x);
        return -ENOMEM;
    }
    for (size_t w = 0; w < p->n_workloads; w++)
        x->grains[w] = (float)layout_request(l, w);
    return 0;
}

void rows_done(struct rows *x)
{
    free(x->cells);
    free(x->first);
    free(x->n);
    free(x->grain);
    free(x->workload);
    free(x->base);
    free(x->grains);
    *x = (struct rows){0};
}

/* As block_is_above() of prices.c, with grains that cost something. */
__attribute__((optimize("O3"))) static bool block_is_worth(const int16_t *scores, const float *base,
                                                           const float *grains, float grain)
{
    int any = 0;

    for (int i = 0; i < SCAN_BLOCK; i++) {
        float above = (float)scores[i] - base[i] - grain * grains[i];

        any |= (scores[i] > 0) & (above > 0);
    }
    return any;
}

static bool rows_fill_one(struct rows *x, const struct problem *p, size_t k, size_t *used, size_t size)
{
    const int16_t *scores = &p->scores[k * p->n_workloads];
    float grain = (float)x->grain[k] / PRICE_ONE;

    for (size_t w = 0; w < p->n_workloads; w++) {
        if (w % SCAN_BLOCK == 0) {
            while (w + SCAN_BLOCK <= p->n_workloads &&
                   !block_is_worth(&scores[w], &x->base[w], &x->grains[w], grain))
                w += SCAN_BLOCK;
            if (w >= p->n_workloads)
                break;
        }
        if (scores[w] > 0 && (float)scores[w] - x->base[w] - grain * x->grains[w] > 0) {
            if (*used == size)
                return false;
            x->cells[(*used)++] = (struct row_cell){(uint32_t)w, scores[w]};
        }
    }
    return true;
}

static void set_base(struct rows *x, const struct prices *prices, int64_t margin)
{
    for (size_t w = 0; w < prices->l->p->n_workloads; w++) {
        x->workload[w] = prices->workload[w];
        x->base[w] = (float)(prices->workload[w] - margin) / PRICE_ONE - 0.125F; /* for rounding */
    }
    x->margin = margin;
}

void rows_fill(struct rows *x, const struct prices *prices, int64_t margin)
{
    const struct problem *p = prices->l->p;
    size_t used = 0, size = size_min(p->n_workloads * p->n_settings, ROW_CELLS_MAX);

    set_base(x, prices, margin);
    for (size_t k = 0; k < p->n_settings; k++) {
        x->first[k] = used;
        x->n[k] = 0;
        if (rows_fill_one(x, p, k, &used, size)) {
            x->n[k] = used - x->first[k];
        } else {
            used = x->first[k];
            x->first[k] = SIZE_MAX;
        }
    }
    x->is_filled = true;
}

size_t rows_estimate(struct rows *x, const struct prices *prices, int64_t margin)
{
    const struct problem *p = prices->l->p;
    size_t step = p->n_settings / SAMPLED_ROWS + 1, cells = 0;
    size_t size = size_min(p->n_workloads * p->n_settings, ROW_CELLS_MAX);

    set_base(x, prices, margin);
    x->is_filled = false;
    for (size_t k = 0; k < p->n_settings; k += step) {
        size_t used = 0;

        (void)rows_fill_one(x, p, k, &used, size);
        cells += used;
    }
    return cells * step;
}

bool rows_reach(struct rows *x, const struct prices *prices, int64_t margin)
{
    int64_t lower = 0;

    if (!x->is_filled)
        return false;
    for (size_t w = 0; w < prices->l->p->n_workloads; w++) {
        if (x->workload[w] - prices->workload[w] > lower)
            lower = x->workload[w] - prices->workload[w];
    }
    x->margin = margin - lower;
    return lower <= margin / 2;
}

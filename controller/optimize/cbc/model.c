#include "controller/optimize/cbc/model.h"

#include "controller/optimize/problem.h"

#include <errno.h>
#include <math.h>

struct model *model_free(struct model *m)
{
    if (m) {
        mip_done(&m->mip);
        free(m->first_z);
        free(m->y);
        free(m);
    }
    return NULL;
}

static int model_columns(struct model *m)
{
    const struct problem *p = m->x->p;
    int n = 0, r;

    for (size_t s = 0; s < p->n_settings; s++) {
        m->first_z[s] = n;
        n += (int)m->x->settings[s].n_items;
    }
    m->first_z[p->n_settings] = n;
    for (size_t s = 0; s < p->n_settings; s++) {
        uint32_t site = m->x->settings[s].site;

        m->y[s] = p->first_setting[site + 1] - p->first_setting[site] > 1 ? n++ : -1;
    }
    r = mip_columns(&m->mip, (size_t)n);
    for (size_t s = 0; s < p->n_settings && r == 0; s++) {
        for (size_t i = 0; i < m->x->settings[s].n_items; i++)
            m->mip.cost[m->first_z[s] + (int)i] = -(double)m->x->settings[s].items[i].gain;
    }
    return r;
}

/* Rows 0 .. n_workloads - 1. */
static int model_replicas(struct model *m)
{
    const struct problem *p = m->x->p;
    int r = 0;

    for (size_t w = 0; w < p->n_workloads && r == 0; w++)
        r = mip_row(&m->mip, -INFINITY, p->replicas[w]);
    for (size_t s = 0; s < p->n_settings; s++) {
        const struct price_setting *setting = &m->x->settings[s];

        for (size_t i = 0; i < setting->n_items && r == 0; i++)
            r = mip_put(&m->mip, (int)setting->items[i].workload, m->first_z[s] + (int)i, 1);
    }
    return r;
}

static int model_sites(struct model *m)
{
    const struct problem *p = m->x->p;
    int r = 0;

    for (size_t i = 0; i < p->n_sites && r == 0; i++) {
        if (p->first_setting[i + 1] - p->first_setting[i] < 2)
            continue;
        r = mip_row(&m->mip, -INFINITY, 1);
        for (uint32_t s = p->first_setting[i]; s < p->first_setting[i + 1] && r == 0; s++)
            r = mip_put(&m->mip, m->mip.n_rows - 1, m->y[s], 1);
    }
    return r;
}

/* In units that make the numbers small: a supply that cannot be used up is cut. */
static int model_capacity(struct model *m, size_t s, size_t resource)
{
    const struct price_setting *setting = &m->x->settings[s];
    const struct problem *p = m->x->p;
    int64_t unit = 0, supply;
    int r;

    for (size_t i = 0; i < setting->n_items; i++)
        unit = price_gcd(problem_request(p, setting->items[i].workload)[resource], unit);
    if (unit == 0)
        return 0;
    supply = problem_supply(p, s)[resource] / unit;
    r = mip_row(&m->mip, -INFINITY, m->y[s] < 0 ? (double)supply : 0);
    for (size_t i = 0; i < setting->n_items && r == 0; i++) {
        int64_t request = problem_request(p, setting->items[i].workload)[resource] / unit;

        r = mip_put(&m->mip, m->mip.n_rows - 1, m->first_z[s] + (int)i, (double)request);
    }
    if (r == 0 && m->y[s] >= 0)
        r = mip_put(&m->mip, m->mip.n_rows - 1, m->y[s], -(double)supply);
    return r;
}

static int model_capacities(struct model *m)
{
    int r = 0;

    for (size_t s = 0; s < m->x->p->n_settings && r == 0; s++) {
        for (size_t k = 0; k < m->x->p->n_resources && r == 0; k++)
            r = model_capacity(m, s, k);
    }
    return r;
}

static int model_links(struct model *m)
{
    int r = 0;

    for (size_t s = 0; s < m->x->p->n_settings; s++) {
        for (int z = m->first_z[s]; z < m->first_z[s + 1] && m->y[s] >= 0 && r == 0; z++) {
            r = mip_row(&m->mip, -INFINITY, 0);
            if (r == 0)
                r = mip_put(&m->mip, m->mip.n_rows - 1, z, 1);
            if (r == 0)
                r = mip_put(&m->mip, m->mip.n_rows - 1, m->y[s], -1);
        }
    }
    return r;
}

static int model_limits(struct model *m)
{
    const struct problem *p = m->x->p;
    int r = 0;

    for (size_t l = 0; l < p->n_limits && r == 0; l++) {
        r = mip_row(&m->mip, -INFINITY, p->limits[l].max);
        for (size_t s = 0; s < p->n_settings; s++) {
            const struct price_setting *setting = &m->x->settings[s];

            for (size_t i = 0; i < setting->n_items && r == 0; i++)
                if (price_limit_has(&p->limits[l], setting->site, setting->items[i].workload))
                    r = mip_put(&m->mip, m->mip.n_rows - 1, m->first_z[s] + (int)i, 1);
        }
    }
    return r;
}

static int model_moves(struct model *m)
{
    const struct problem *p = m->x->p;
    int r;

    if (price_must_stay(p) <= 0)
        return 0;
    r = mip_row(&m->mip, price_must_stay(p), INFINITY);
    for (size_t s = 0; s < p->n_settings; s++) {
        const struct price_setting *setting = &m->x->settings[s];

        for (size_t i = 0; i < setting->n_items && r == 0; i++)
            if (price_stays(m->x, setting->site, setting->items[i].workload))
                r = mip_put(&m->mip, m->mip.n_rows - 1, m->first_z[s] + (int)i, 1);
    }
    return r;
}

int model_new(struct model **ret, const struct price *x)
{
    static int (*const parts[])(struct model *) = {
        model_columns, model_replicas, model_sites, model_capacities, model_links, model_limits, model_moves,
    };
    CLEANUP(cleanup_model_free) struct model *m = calloc(1, sizeof *m);
    int r = 0;

    if (!m)
        return -ENOMEM;
    m->x = x;
    m->first_z = calloc(x->p->n_settings + 1, sizeof *m->first_z);
    m->y = calloc(x->p->n_settings + 1, sizeof *m->y);
    if (!m->first_z || !m->y)
        return -ENOMEM;
    for (size_t i = 0; i < ARRAY_SIZE(parts) && r == 0; i++)
        r = parts[i](m);
    if (r == 0)
        r = mip_finish(&m->mip);
    if (r == 0)
        *ret = TAKE_PTR(m);
    return r;
}

uint32_t model_choices(const struct model *m, const double *solution, struct wire_choice *choices)
{
    const struct problem *p = m->x->p;
    uint32_t n = 0;

    for (uint32_t s = 0; s < p->n_settings; s++) {
        for (int z = m->first_z[s]; z < m->first_z[s + 1]; z++) {
            if (solution[z] > 0.5)
                choices[n++] = (struct wire_choice){m->x->settings[s].items[z - m->first_z[s]].workload, s};
        }
    }
    return n;
}

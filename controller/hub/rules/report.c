#include "controller/hub/rules/report.h"

#include "exporter/base/hash.h"
#include "exporter/score/state.h"

#include <stdlib.h>
#include <string.h>

uint64_t report_score(struct str score_name)
{
    return hash_bytes(score_name);
}

uint64_t report_hash(struct str text)
{
    return hash_bytes(text);
}

bool report_cell_fails(const struct report_cell *c)
{
    return c->placement || c->state == SCORER_FAILING || c->state == SCORER_STALE;
}

bool report_cell_scores(const struct report_cell *c)
{
    return !report_cell_fails(c) && (c->state == SCORER_OK || c->state == SCORER_EMPTY);
}

void report_done(struct report *r)
{
    free(r->problem);
    free(r->cells);
    for (uint32_t i = 0; i < r->n_errors; i++)
        free(r->errors[i]);
    free(r->errors);
    *r = (struct report){0};
}

static bool report_same_cell(const struct report_cell *a, const struct report_cell *b)
{
    return a->score == b->score && a->state == b->state && a->placement == b->placement &&
           a->api_failed == b->api_failed && a->error == b->error && !a->succeeded == !b->succeeded;
}

bool report_same(const struct report *a, const struct report *b)
{
    bool same = a->exists == b->exists && a->config_ok == b->config_ok &&
                a->config_rejected == b->config_rejected && a->n == b->n && a->not_shown == b->not_shown &&
                a->n_errors == b->n_errors && strcmp(cstr(a->problem), cstr(b->problem)) == 0;

    for (uint32_t i = 0; same && i < a->n_errors; i++)
        same = strcmp(a->errors[i], b->errors[i]) == 0;
    for (uint32_t i = 0; same && i < a->n; i++)
        same = report_same_cell(&a->cells[i], &b->cells[i]);
    return same;
}

static int report_compare_score(const void *score, const void *at)
{
    uint64_t want = *(const uint64_t *)score;
    const struct report_cell *c = at;

    return want < c->score ? -1 : want > c->score;
}

const struct report_cell *report_find(const struct report *r, uint64_t score)
{
    return r->n ? bsearch(&score, r->cells, r->n, sizeof(*r->cells), report_compare_score) : NULL;
}

const char *report_error(const struct report *r, const struct report_cell *c)
{
    return c->error > 0 ? r->errors[c->error - 1] : "";
}

#include "controller/hub/rules/report_read.h"

#include "exporter/base/hash.h"
#include "exporter/base/text.h"

#include <errno.h>

enum { TROUBLE_BYTES = 512 };

uint64_t report_score(struct str score_name)
{
    return hash_bytes(score_name, 0);
}

uint64_t report_hash(struct str text)
{
    return hash_bytes(text, 0);
}

bool report_state_fails(uint8_t state)
{
    return state == SCORER_FAILING || state == SCORER_STALE;
}

bool report_cell_fails(const struct report_cell *c)
{
    return c->placement || report_state_fails(c->state);
}

bool report_cell_scores(const struct report_cell *c)
{
    return !report_cell_fails(c) && (c->state == SCORER_OK || c->state == SCORER_EMPTY);
}

static int by_score(const void *a, const void *b)
{
    const struct found *x = a, *y = b;

    if (x->cell.score != y->cell.score)
        return x->cell.score < y->cell.score ? -1 : 1;
    return x->place < y->place ? -1 : x->place > y->place;
}

static int by_place(const void *a, const void *b)
{
    const struct found *x = a, *y = b;

    return x->place < y->place ? -1 : x->place > y->place;
}

static int cells_by_score(const void *a, const void *b)
{
    const struct report_cell *x = a, *y = b;

    return x->score < y->score ? -1 : x->score > y->score;
}

/* Of those with one name only the first stays. */
static void drop_repeated(struct reading *r)
{
    size_t n = 0;

    if (r->n == 0)
        return;
    qsort(r->list, r->n, sizeof(*r->list), by_score);
    for (size_t i = 0; i < r->n; i++)
        if (n == 0 || r->list[n - 1].cell.score != r->list[i].cell.score)
            r->list[n++] = r->list[i];
    r->n = n;
    qsort(r->list, r->n, sizeof(*r->list), by_place);
}

/* The raw string as a line on the heap; *ret stays NULL when there is nothing in it. */
static int keep_line(char **ret, struct str raw)
{
    char line[TROUBLE_BYTES];

    text_line_json(line, sizeof(line), raw);
    if (!line[0])
        return 0;
    *ret = strdup(line);
    return *ret ? 0 : -ENOMEM;
}

/* The line's place in errors, from 1 on; 0 when it is empty, or one too many. */
static int keep_error(struct report *to, const char *line, uint16_t *ret)
{
    uint32_t i = 0;
    char **list;

    while (i < to->n_errors && strcmp(to->errors[i], line) != 0)
        i++;
    if (!*line || i == REPORT_MAX_ERRORS)
        return 0;
    if (i == to->n_errors) {
        list = reallocarray(to->errors, i + 1, sizeof(*list));
        if (!list)
            return -ENOMEM;
        to->errors = list;
        list[i] = strdup(line);
        if (!list[i])
            return -ENOMEM;
        to->n_errors++;
    }
    *ret = (uint16_t)(i + 1);
    return 0;
}

static int keep_errors(struct report *to, struct reading *r)
{
    char line[REPORT_ERROR_BYTES];
    int e = 0;

    for (size_t i = 0; i < r->n && e == 0; i++) {
        struct found *f = &r->list[i];

        if (!report_cell_fails(&f->cell))
            continue;
        text_line_json(line, sizeof(line), f->error);
        e = keep_error(to, line, &f->cell.error);
    }
    return e;
}

static int keep_cells(struct report *to, const struct reading *r)
{
    if (r->n == 0)
        return 0;
    to->cells = calloc(r->n, sizeof(*to->cells));
    if (!to->cells)
        return -ENOMEM;
    for (size_t i = 0; i < r->n; i++)
        to->cells[i] = r->list[i].cell;
    to->n = (uint32_t)r->n;
    qsort(to->cells, to->n, sizeof(*to->cells), cells_by_score);
    return 0;
}

int report_parse(struct report *ret, struct str text)
{
    CLEANUP(reading_done) struct reading r = {0};
    CLEANUP(report_done) struct report to = {0};
    int e;

    if (text.n == 0) {
        *ret = to;
        return 0;
    }
    e = reading_read(&r, text);
    if (e < 0)
        return e;
    drop_repeated(&r);
    to.there = true;
    to.config_ok = r.config_ok;
    to.hash = report_hash(text);
    to.not_shown = (uint32_t)(r.not_shown + r.over);
    if (keep_line(&to.trouble, r.problems) < 0)
        return -ENOMEM;
    to.refused = to.trouble && !to.config_ok;
    if ((!to.trouble && keep_line(&to.trouble, r.hub_error) < 0) || keep_errors(&to, &r) < 0 ||
        keep_cells(&to, &r) < 0)
        return -ENOMEM;
    *ret = to;
    to = (struct report){0};
    return 0;
}

void report_done(struct report *r)
{
    free(r->trouble);
    free(r->cells);
    for (uint32_t i = 0; i < r->n_errors; i++)
        free(r->errors[i]);
    free(r->errors);
    *r = (struct report){0};
}

static bool same_cell(const struct report_cell *a, const struct report_cell *b)
{
    return a->score == b->score && a->state == b->state && a->placement == b->placement &&
           a->error == b->error && !a->succeeded == !b->succeeded;
}

bool report_same(const struct report *a, const struct report *b)
{
    bool same = a->there == b->there && a->config_ok == b->config_ok && a->refused == b->refused &&
                a->n == b->n && a->not_shown == b->not_shown && a->n_errors == b->n_errors &&
                strcmp(cstr(a->trouble), cstr(b->trouble)) == 0;

    for (uint32_t i = 0; same && i < a->n_errors; i++)
        same = strcmp(a->errors[i], b->errors[i]) == 0;
    for (uint32_t i = 0; same && i < a->n; i++)
        same = same_cell(&a->cells[i], &b->cells[i]);
    return same;
}

static int compare_score(const void *score, const void *at)
{
    uint64_t want = *(const uint64_t *)score;
    const struct report_cell *c = at;

    return want < c->score ? -1 : want > c->score;
}

const struct report_cell *report_find(const struct report *r, uint64_t score)
{
    return r->n ? bsearch(&score, r->cells, r->n, sizeof(*r->cells), compare_score) : NULL;
}

const char *report_error(const struct report *r, const struct report_cell *c)
{
    return c->error > 0 ? r->errors[c->error - 1] : "";
}

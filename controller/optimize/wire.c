#include "controller/optimize/wire.h"

#include <errno.h>
#include <string.h>

static const char WIRE_MAGIC[8] = "DSPLAC1";

struct wire_header {
    char magic[8];
    int64_t bound, limit_ms, move_cost, max_moves;
    uint32_t n_workloads, n_sites, n_settings, n_resources, n_scores, n_running, n_limits, n_items, n_start,
        has_start;
};

struct wire_score {
    uint32_t setting, workload;
    int32_t score;
};

struct wire_limit {
    uint32_t max, n_workloads, n_sites; /* the lists of all limits follow each other */
};

/* ---- Writing a problem ---- */

static int wire_put_scores(struct buf *out, const struct problem *p, uint32_t *ret_n)
{
    const int16_t *at = p->scores;
    uint32_t n = 0;
    int r = 0;

    for (size_t s = 0; s < p->n_settings && r == 0; s++) {
        for (size_t w = 0; w < p->n_workloads && r == 0; w++, at++) {
            struct wire_score one = {(uint32_t)s, (uint32_t)w, *at};

            if (*at != SCORE_IMPOSSIBLE) {
                r = buf_put(out, &one, sizeof one);
                n++;
            }
        }
    }
    *ret_n = n;
    return r;
}

static int wire_put_limits(struct buf *out, const struct problem *p, uint32_t *ret_items)
{
    uint32_t items = 0;
    int r = 0;

    for (size_t i = 0; i < p->n_limits && r == 0; i++) {
        const struct problem_limit *l = &p->limits[i];
        struct wire_limit one = {l->max, (uint32_t)l->n_workloads, (uint32_t)l->n_sites};

        r = buf_put(out, &one, sizeof one);
    }
    for (size_t i = 0; i < p->n_limits && r == 0; i++) {
        const struct problem_limit *l = &p->limits[i];

        r = buf_put(out, l->workloads, l->n_workloads * sizeof *l->workloads);
        if (r == 0)
            r = buf_put(out, l->sites, l->n_sites * sizeof *l->sites);
        items += (uint32_t)(l->n_workloads + l->n_sites);
    }
    *ret_items = items;
    return r;
}

int wire_put_problem(struct buf *out, const struct wire_problem *w)
{
    const struct problem *p = &w->p;
    struct wire_header h = {
        .bound = w->bound,
        .limit_ms = w->limit_ms,
        .move_cost = p->move_cost,
        .max_moves = p->max_moves < INT64_MAX ? (int64_t)p->max_moves : INT64_MAX,
        .n_workloads = (uint32_t)p->n_workloads,
        .n_sites = (uint32_t)p->n_sites,
        .n_settings = (uint32_t)p->n_settings,
        .n_resources = (uint32_t)p->n_resources,
        .n_running = (uint32_t)p->n_running,
        .n_limits = (uint32_t)p->n_limits,
        .n_start = (uint32_t)w->n_start,
        .has_start = w->has_start,
    };
    const struct {
        const void *p;
        size_t n;
    } arrays[] = {
        {&h, sizeof h},
        {p->requests, p->n_workloads * p->n_resources * sizeof *p->requests},
        {p->supplies, p->n_settings * p->n_resources * sizeof *p->supplies},
        {p->replicas, p->n_workloads * sizeof *p->replicas},
        {p->first_setting, (p->n_sites + 1) * sizeof *p->first_setting},
        {p->running, p->n_running * sizeof *p->running},
        {w->start, w->n_start * sizeof *w->start},
    };
    size_t at = out->n;
    int r = 0;

    memcpy(h.magic, WIRE_MAGIC, sizeof h.magic);
    for (size_t i = 0; i < ARRAY_SIZE(arrays) && r == 0; i++)
        if (arrays[i].n > 0)
            r = buf_put(out, arrays[i].p, arrays[i].n);
    if (r == 0)
        r = wire_put_limits(out, p, &h.n_items);
    if (r == 0)
        r = wire_put_scores(out, p, &h.n_scores);
    if (r == 0)
        memcpy(out->p + at, &h, sizeof h);
    else
        buf_truncate(out, at);
    return r;
}

/* ---- Reading a problem ---- */

struct wire_arrays {
    int64_t *requests, *supplies;
    uint32_t *replicas, *first_setting;
    struct problem_pair *running;
    struct wire_choice *start;
    struct wire_limit *limits;
    uint32_t *items;
    struct wire_score *scores;
};

static bool wire_sizes_ok(const struct wire_header *h)
{
    const uint32_t counts[] = {h->n_workloads, h->n_sites,  h->n_settings, h->n_resources, h->n_scores,
                               h->n_running,   h->n_limits, h->n_items,    h->n_start};

    for (size_t i = 0; i < ARRAY_SIZE(counts); i++)
        if (counts[i] > WIRE_COUNT_MAX)
            return false;
    return memcmp(h->magic, WIRE_MAGIC, sizeof h->magic) == 0 && h->has_start <= 1 && h->max_moves >= 0 &&
           h->n_sites >= 1 && (uint64_t)h->n_workloads * h->n_settings <= WIRE_SCORES_MAX;
}

/* Sets a pointer to n elements at the place reached, and moves that on. */
#define WIRE_ARRAY(at, array, n)                 \
    do {                                         \
        (array) = (void *)(at);                  \
        (at) += (uint64_t)(n) * sizeof *(array); \
    } while (0)

/* Where the arrays are in `memory`, and how many bytes all of it has. */
static uint64_t wire_layout(struct wire_arrays *a, const struct wire_header *h, uintptr_t memory)
{
    uint64_t at = memory + sizeof *h;

    WIRE_ARRAY(at, a->requests, (uint64_t)h->n_workloads * h->n_resources);
    WIRE_ARRAY(at, a->supplies, (uint64_t)h->n_settings * h->n_resources);
    WIRE_ARRAY(at, a->replicas, h->n_workloads);
    WIRE_ARRAY(at, a->first_setting, h->n_sites + 1);
    WIRE_ARRAY(at, a->running, h->n_running);
    WIRE_ARRAY(at, a->start, h->n_start);
    WIRE_ARRAY(at, a->limits, h->n_limits);
    WIRE_ARRAY(at, a->items, h->n_items);
    WIRE_ARRAY(at, a->scores, h->n_scores);
    return at - memory;
}

/* Pairs ascend by their first number, then the second, and are below the limits given. */
static bool wire_pairs_ok(const uint32_t (*pairs)[2], size_t n, uint32_t below_first, uint32_t below_second)
{
    for (size_t i = 0; i < n; i++) {
        if (pairs[i][0] >= below_first || pairs[i][1] >= below_second)
            return false;
        if (i > 0 && (pairs[i][0] < pairs[i - 1][0] ||
                      (pairs[i][0] == pairs[i - 1][0] && pairs[i][1] <= pairs[i - 1][1])))
            return false;
    }
    return true;
}

static bool wire_fill_limits(struct problem_limit *limits, const struct wire_header *h,
                             const struct wire_arrays *a)
{
    size_t at = 0;

    for (size_t i = 0; i < h->n_limits; i++) {
        const struct wire_limit *l = &a->limits[i];

        if ((uint64_t)l->n_workloads + l->n_sites > h->n_items - at)
            return false;
        limits[i] = (struct problem_limit){.workloads = a->items + at,
                                           .sites = a->items + at + l->n_workloads,
                                           .n_workloads = l->n_workloads,
                                           .n_sites = l->n_sites,
                                           .max = l->max};
        at += (size_t)l->n_workloads + l->n_sites;
    }
    return at == h->n_items;
}

static bool wire_fill_scores(int16_t *scores, const struct wire_header *h, const struct wire_arrays *a)
{
    size_t last = 0;

    for (size_t i = 0; i < (size_t)h->n_workloads * h->n_settings; i++)
        scores[i] = SCORE_IMPOSSIBLE;
    for (size_t i = 0; i < h->n_scores; i++) {
        const struct wire_score *s = &a->scores[i];
        size_t at = (size_t)s->setting * h->n_workloads + s->workload;

        if (s->setting >= h->n_settings || s->workload >= h->n_workloads || (i > 0 && at <= last) ||
            s->score <= SCORE_IMPOSSIBLE || s->score > INT16_MAX)
            return false;
        scores[at] = (int16_t)s->score;
        last = at;
    }
    for (size_t i = 0; i < h->n_start; i++)
        if (scores[(size_t)a->start[i].setting * h->n_workloads + a->start[i].workload] == SCORE_IMPOSSIBLE)
            return false;
    return true;
}

int wire_get_problem(struct wire_problem *ret, const void *bytes, size_t n)
{
    CLEANUP(cleanup_free) char *memory = NULL;
    struct wire_header h;
    struct wire_arrays a;
    struct problem_limit *limits;
    struct wire_problem w;
    int16_t *scores;
    size_t dense;

    if (n < sizeof h)
        return -EBADMSG;
    memcpy(&h, bytes, sizeof h);
    if (!wire_sizes_ok(&h) || wire_layout(&a, &h, 0) != n)
        return -EBADMSG;
    dense = (size_t)h.n_workloads * h.n_settings;
    /* In order of alignment: the arrays, what limits they make, the scores. */
    memory = malloc(n + 8 + h.n_limits * sizeof *limits + dense * sizeof *scores);
    if (!memory)
        return -ENOMEM;
    memcpy(memory, bytes, n);
    (void)wire_layout(&a, &h, (uintptr_t)memory);
    limits = (void *)(memory + (n + 7) / 8 * 8);
    scores = (void *)(limits + h.n_limits);
    w = (struct wire_problem){
        .p = {.n_workloads = h.n_workloads,
              .n_sites = h.n_sites,
              .n_settings = h.n_settings,
              .n_resources = h.n_resources,
              .requests = a.requests,
              .replicas = a.replicas,
              .first_setting = a.first_setting,
              .supplies = a.supplies,
              .scores = scores,
              .unit = 1,
              .running = a.running,
              .n_running = h.n_running,
              .move_cost = h.move_cost,
              .max_moves = h.max_moves == INT64_MAX ? SIZE_MAX : (size_t)h.max_moves,
              .limits = limits,
              .n_limits = h.n_limits},
        .start = a.start,
        .n_start = h.n_start,
        .has_start = h.has_start,
        .bound = h.bound,
        .limit_ms = h.limit_ms,
    };
    if (!wire_pairs_ok((const void *)a.start, h.n_start, h.n_workloads, h.n_settings) ||
        !wire_fill_limits(limits, &h, &a) || problem_check(&w.p) || !wire_fill_scores(scores, &h, &a))
        return -EBADMSG;
    w.memory = TAKE_PTR(memory);
    *ret = w;
    return 0;
}

void wire_problem_done(struct wire_problem *w)
{
    free(w->memory);
    *w = (struct wire_problem){0};
}

/* ---- Messages ---- */

struct wire_message_header {
    uint32_t kind, n_choices;
    int64_t value;
};

int wire_put_message(struct buf *out, const struct wire_message *m)
{
    struct wire_message_header h = {m->kind, m->n_choices, m->value};
    size_t at = out->n;
    int r = buf_put(out, &h, sizeof h);

    if (r == 0 && m->n_choices > 0)
        r = buf_put(out, m->choices, m->n_choices * sizeof *m->choices);
    if (r < 0)
        buf_truncate(out, at);
    return r;
}

int64_t wire_get_message(struct wire_message *ret, const struct problem *p, const void *bytes, size_t n)
{
    struct wire_message_header h;
    const struct wire_choice *choices;
    size_t size;

    if (n < sizeof h)
        return 0;
    memcpy(&h, bytes, sizeof h);
    if (h.kind < WIRE_BOUND || h.kind > WIRE_END || h.n_choices > WIRE_COUNT_MAX ||
        (h.n_choices > 0 && h.kind != WIRE_SOLUTION))
        return -EBADMSG;
    size = sizeof h + h.n_choices * sizeof *choices;
    if (n < size)
        return 0;
    choices = (const void *)((const char *)bytes + sizeof h);
    if (!wire_pairs_ok((const void *)choices, h.n_choices, (uint32_t)p->n_workloads, (uint32_t)p->n_settings))
        return -EBADMSG;
    *ret = (struct wire_message){h.kind, h.n_choices, h.value, choices};
    return (int64_t)size;
}

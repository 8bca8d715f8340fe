/* Which series match, and copies of their chunks. */
#include "exporter/tsdb/tsdb_internal.h"
#include "exporter/tsdb/view.h"

#include <stdio.h>
#include <string.h>

/* What is done while the lock is held, in units of a series that does not match: some 100 ns. */
enum { PIECE_COST = 500, COPY_COST = 12, BLOCK_COST = 1, MAX_PENDING = 64 };

enum verdict_of_value { UNKNOWN, MATCH, NO_MATCH };

/* A matcher, with symbols for texts: what a regex says about a value is remembered by the value's symbol. */
struct matching {
    const struct tsdb_matcher *matcher;
    uint32_t name, value; /* symbols; 0: no series has it */
    enum verdict_of_value if_absent;
    uint8_t *known; /* verdicts by symbol */
    uint32_t n_known;
};

struct pending {
    struct matching *by;
    uint32_t symbol;
    struct str text; /* lives while the selection counts as a reader */
};

struct selection {
    struct tsdb *t;
    struct matching *list;
    size_t n;
    struct regex_matcher *regexes;
    uint32_t at;  /* the next series */
    bool by_name; /* `at` moves along the list of a name, else along all numbers */
    struct pending pending[MAX_PENDING];
    size_t n_pending;
    int64_t from;
    struct tsdb_view *view;
};

static bool is_regex(const struct tsdb_matcher *m)
{
    return m->op == TSDB_RE || m->op == TSDB_NRE;
}

static int matching_evaluate(struct selection *s, const struct tsdb_matcher *m, struct str value,
                             enum verdict_of_value *ret)
{
    int r = is_regex(m) ? regex_match(s->regexes, m->regex, value) : str_eq(value, m->value);

    /* A value that is no UTF-8 matches no expression. */
    if (r == -EINVAL)
        r = 0;
    if (r >= 0)
        *ret = (r > 0) == (m->op == TSDB_EQ || m->op == TSDB_RE) ? MATCH : NO_MATCH;
    return r < 0 ? r : 0;
}

/* Lock held. */
static enum verdict_of_value matching_verdict(struct selection *s, struct matching *m,
                                              const struct series *series)
{
    uint32_t symbol = 0;

    for (uint32_t i = 0; m->name && i < series->n_pairs && !symbol; i++)
        if (series->pairs[2 * i] == m->name)
            symbol = series->pairs[2 * i + 1];
    if (!symbol)
        return m->if_absent;
    if (!is_regex(m->matcher))
        return (symbol == m->value) == (m->matcher->op == TSDB_EQ) ? MATCH : NO_MATCH;
    if (symbol < m->n_known && m->known[symbol] != UNKNOWN)
        return (enum verdict_of_value)m->known[symbol];
    if (s->n_pending < MAX_PENDING)
        s->pending[s->n_pending++] = (struct pending){m, symbol, symbols_text(&s->t->symbols, symbol)};
    return UNKNOWN;
}

/* Lock held. All matchers are asked, until one says no: more pending values at a time. */
static enum verdict_of_value series_verdict(struct selection *s, const struct series *series)
{
    enum verdict_of_value verdict = MATCH;

    for (size_t i = 0; i < s->n && verdict != NO_MATCH; i++) {
        enum verdict_of_value one = matching_verdict(s, &s->list[i], series);

        if (one != MATCH)
            verdict = one;
    }
    return verdict;
}

/* Lock held. The number of the series after `at`, 0 after the last. */
static uint32_t selection_next(const struct selection *s)
{
    uint32_t id = s->at + 1, last = slab_last(&s->t->series);

    if (s->by_name)
        return series_at(s->t, s->at)->next;
    while (id < last && !series_find(s->t, id))
        id++;
    return id < last ? id : 0;
}

/* One piece of work with the lock. Series whose verdict is pending are looked at again in the next piece. */
static int selection_piece(struct selection *s)
{
    unsigned cost = 0;
    bool copies = true;
    uint32_t resume = 0;
    int r = 0;

    tsdb_lock(s->t);
    while (r == 0 && s->at && cost < PIECE_COST && s->n_pending < MAX_PENDING) {
        const struct series *series = series_at(s->t, s->at);
        enum verdict_of_value verdict = series_verdict(s, series);

        if (verdict == UNKNOWN && copies) {
            copies = false;
            resume = s->at;
        }
        if (verdict == MATCH && copies) {
            uint32_t blocks = 0;

            r = view_add(s->view, s->t, series, &blocks);
            cost += COPY_COST + blocks * BLOCK_COST;
        }
        cost++;
        s->at = selection_next(s);
    }
    tsdb_unlock(s->t);
    if (!copies)
        s->at = resume;
    return r;
}

/* Without the lock: a regex may take a millisecond. */
static int selection_settle(struct selection *s)
{
    int r = 0;

    for (size_t i = 0; i < s->n_pending && r == 0; i++) {
        const struct pending *p = &s->pending[i];
        enum verdict_of_value verdict = UNKNOWN;

        if (p->symbol >= p->by->n_known) {
            size_t cap = size_max((size_t)p->symbol + 1, (size_t)p->by->n_known * 2);
            uint8_t *known = realloc(p->by->known, cap);

            if (!known)
                return -ENOMEM;
            memset(known + p->by->n_known, UNKNOWN, cap - p->by->n_known);
            p->by->known = known;
            p->by->n_known = (uint32_t)cap;
        }
        r = matching_evaluate(s, p->by->matcher, p->text, &verdict);
        p->by->known[p->symbol] = (uint8_t)verdict;
    }
    s->n_pending = 0;
    return r;
}

/* Lock held. */
static void selection_begin(struct selection *s)
{
    struct tsdb *t = s->t;

    t->readers++;
    for (size_t i = 0; i < s->n; i++) {
        struct matching *m = &s->list[i];

        m->name = symbols_find(&t->symbols, m->matcher->name);
        m->value = is_regex(m->matcher) ? 0 : symbols_find(&t->symbols, m->matcher->value);
        if (m->matcher->op == TSDB_EQ && m->matcher->value.n > 0 &&
            str_eq(m->matcher->name, STR("__name__"))) {
            s->by_name = true;
            s->at = m->name && m->value ? symbols_at(&t->symbols, m->value)->series : 0;
        }
    }
    if (!s->by_name)
        s->at = selection_next(s);
}

static int selection_run(struct selection *s)
{
    int r = 0;

    tsdb_lock(s->t);
    if (s->t->complete_from > s->from)
        r = -ENODATA;
    else
        selection_begin(s);
    tsdb_unlock(s->t);
    if (r < 0)
        return r;
    while (r == 0 && s->at) {
        r = selection_piece(s);
        r = r ?: selection_settle(s);
    }
    tsdb_lock(s->t);
    s->t->readers--;
    /* Samples may have been evicted meanwhile. */
    if (r == 0 && s->t->complete_from > s->from)
        r = -ENODATA;
    tsdb_unlock(s->t);
    return r;
}

static int selection_prepare(struct selection *s, const struct tsdb_matcher *matchers)
{
    int r = regex_matcher_new(&s->regexes);

    s->list = calloc(s->n + 1, sizeof(*s->list));
    if (!s->list)
        r = -ENOMEM;
    for (size_t i = 0; i < s->n && r == 0; i++) {
        s->list[i].matcher = &matchers[i];
        r = matching_evaluate(s, &matchers[i], STR(""), &s->list[i].if_absent);
    }
    return r;
}

static void explain(int r, struct tsdb *t, uint64_t max_bytes, char why[TSDB_WHY_BYTES])
{
    struct tsdb_stats stats;

    tsdb_stats(t, &stats);
    if (r == -EFBIG)
        (void)snprintf(why, TSDB_WHY_BYTES, "the selected series take more than %llu bytes",
                       (unsigned long long)max_bytes);
    else if (r == -ENODATA)
        (void)snprintf(why, TSDB_WHY_BYTES,
                       "samples of the time range were evicted: limits.otlpMemory (%llu bytes) is reached",
                       (unsigned long long)stats.max_bytes);
    else
        (void)snprintf(why, TSDB_WHY_BYTES, "%s",
                       r == -ELOOP ? "a regular expression takes too many steps on a label value"
                                   : "out of memory");
}

int tsdb_select(struct tsdb *t, const struct tsdb_matcher *matchers, size_t n, int64_t from_ms, int64_t to_ms,
                uint64_t max_bytes, struct tsdb_view **ret, char why[TSDB_WHY_BYTES])
{
    struct selection s = {.t = t, .n = n, .from = from_ms};
    int r = view_new(&s.view, from_ms, to_ms, max_bytes) ?: selection_prepare(&s, matchers);

    r = r ?: selection_run(&s);
    if (r == 0)
        *ret = TAKE_PTR(s.view);
    else
        explain(r, t, max_bytes, why);
    for (size_t i = 0; s.list && i < n; i++)
        free(s.list[i].known);
    free(s.list);
    (void)regex_matcher_free(s.regexes);
    (void)tsdb_view_free(s.view);
    return r;
}

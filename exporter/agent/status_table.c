/* The table of `agent --once`: for each scorer what became of its round, with advice where it failed, and its
 * scores. Only reads, on the loop. */
#include "exporter/agent/status_table.h"

#include "exporter/agent/hint.h"
#include "exporter/base/alloc.h"
#include "exporter/base/buf.h"
#include "exporter/base/invariant.h"
#include "exporter/metric/series.h"
#include "exporter/score/round_error.h"
#include "exporter/score/scorer_state.h"
#include "exporter/score/summary.h"
#include "exporter/ui/grid.h"
#include "exporter/ui/ranking.h"
#include "exporter/ui/words.h"

#include <math.h>
#include <stdarg.h>

enum { INDENT = 4, LINE_MAX_BYTES = 4096 };

struct status_table {
    struct buf *o;
    bool colours;
};

/* A line of prose. */
static void table_put(struct status_table *t, int indent, struct str text)
{
    buf_printf(t->o, "%*s", indent, "");
    grid_clean(t->o, text);
    buf_puts(t->o, "\n");
}

static void table_line(struct status_table *t, int indent, const char *fmt, ...) PRINTF_LIKE(3, 4);
static void table_line(struct status_table *t, int indent, const char *fmt, ...)
{
    CLEANUP(cleanup_free) char *text = NULL;
    va_list ap;

    va_start(ap, fmt);
    text = xvasprintf(fmt, ap);
    va_end(ap);
    table_put(t, indent, str_of(text));
}

static void table_colour(struct status_table *t, const char *code)
{
    if (t->colours)
        buf_puts(t->o, code);
}

static void table_headline(struct status_table *t, const struct scorer *s)
{
    static const struct {
        const char *mark, *colour;
    } looks[] = {
        [SCORER_WAITING] = {"… waiting", "\033[2m"}, [SCORER_OK] = {"✓ ok", "\033[32m"},
        [SCORER_EMPTY] = {"○ empty", "\033[33m"},    [SCORER_FAILING] = {"✗ failed", "\033[31m"},
        [SCORER_STALE] = {"✗ failed", "\033[31m"},   [SCORER_SUSPENDED] = {"… suspended", "\033[33m"},
    };
    const char *mark = looks[scorer_state(s)].mark, *colour = looks[scorer_state(s)].colour;

    table_colour(t, colour);
    buf_puts(t->o, mark);
    table_colour(t, "\033[0m");
    buf_puts(t->o, "  ");
    table_colour(t, "\033[1m");
    grid_clean(t->o, str_of(s->summary.score_name));
    if (strcmp(s->summary.name, s->summary.score_name) != 0) {
        buf_puts(t->o, ", of ");
        grid_clean(t->o, str_of(s->summary.name));
    }
    table_colour(t, "\033[0m");
    buf_puts(t->o, "\n");
}

/* "12 series from the source in 3.1 ms → 12 results in 12 ms → 11 scores" */
static void table_flow(struct status_table *t, const struct scorer *s)
{
    const struct round_result *last = &s->status.last;
    const char *from = s->summary.n_sources > 1 ? "series from the sources in" : "series from the source in";
    BUF_AUTO(line, LINE_MAX_BYTES);

    if (s->summary.n_sources) {
        buf_puts(&line, words_count(last->source_series, from, from).s);
        buf_puts(&line, " ");
        buf_puts(&line, words_seconds(last->fetch_s).s);
    } else {
        buf_puts(&line, "no source");
    }
    buf_puts(&line, " → ");
    buf_puts(&line, words_count(last->answer.results, "result", "results").s);
    buf_puts(&line, " in ");
    buf_puts(&line, words_seconds(last->perform_s).s);
    buf_puts(&line, " → ");
    buf_puts(&line, words_count(scorer_series(s), "score", "scores").s);
    invariant(buf_failed(&line) == 0);
    table_put(t, INDENT, buf_str(&line));
}

static void table_error(struct status_table *t, const struct scorer *s)
{
    const struct scorer_status *st = &s->status;

    table_line(t, INDENT, "%s failed: %s (%s)", round_stage_word(st->last.stage), st->last.reason,
               round_error_word(st->last.error));
    if (*st->url)
        table_line(t, INDENT, "URL: %s, trace: %s", st->url, st->last.trace);
    if (st->last.stage == STAGE_SOURCE && st->last.source < s->summary.n_sources)
        table_line(t, INDENT, "query: %s", s->summary.sources[st->last.source].query);
    table_line(t, INDENT, "check %s", hint_of_error(st->last.error, st->last.stage));
    if (s->batch)
        table_line(t, INDENT, "the scores below are from an earlier round");
}

static void table_empty(struct status_table *t, const struct scorer *s)
{
    if (s->status.last.source_series || !s->summary.n_sources)
        table_line(t, INDENT, "the scoring API returned no results");
    else
        for (size_t i = 0; i < s->summary.n_sources; i++)
            table_line(t, INDENT, "the source has no series for this query: %s", s->summary.sources[i].query);
}

static void table_remarks(struct status_table *t, const struct scorer_status *st)
{
    if (st->last.source_warnings)
        table_line(t, INDENT, "%s: %s",
                   words_count(st->last.source_warnings, "warning from the source",
                               "warnings from the source, the first")
                       .s,
                   st->last.source_warning);
    if (st->last.answer.invalid)
        table_line(t, INDENT, "%s: %s",
                   words_count(st->last.answer.invalid, "invalid result ignored",
                               "invalid results ignored, the first")
                       .s,
                   st->last.answer.first_invalid);
    if (st->last.duplicates)
        table_line(t, INDENT, "%s: the last result of each label set is used",
                   words_count(st->last.duplicates, "duplicate result", "duplicate results").s);
    if (st->last.answer.cut)
        table_line(t, INDENT, "%s cut to limits.labelValueBytes",
                   words_count(st->last.answer.cut, "label value", "label values").s);
}

/* For a hub; on a laptop nobody rounds. */
static void table_rounding(struct status_table *t, const struct agent_state *a, const struct scorer *s)
{
    const struct batch *b = s->batch;
    struct rounding rounding = {0};
    char text[ROUNDING_BYTES];

    for (size_t i = 0; b && i < series_count(b->set); i++)
        if (isfinite(b->values[i]))
            rounding_add(&rounding, b->values[i]);
    if (a->configmap && rounding_loses(&rounding, &s->summary, text))
        table_line(t, INDENT, "%s", text);
}

static void table_scores(struct status_table *t, const struct scorer *s)
{
    struct ranking r;

    rank_scores(s->batch, RANKED_MAX, &r);
    if (r.n) {
        buf_puts(t->o, "\n");
        grid_scores(t->o, s->batch, r.highest, r.n, INDENT);
    }
    if (r.numbers > r.n)
        table_line(t, INDENT, "… and %s", words_count(r.numbers - r.n, "more", "more").s);
    if (r.nans)
        table_line(t, INDENT, "%s", words_count(r.nans, "score is NaN", "scores are NaN").s);
}

static void table_scorer(struct status_table *t, const struct agent_state *a, const struct scorer *s)
{
    const struct scorer_status *st = &s->status;
    const char *stale_reason = scorer_stale_reason(s);

    table_headline(t, s);
    if (st->rounds && st->last.error != ROUND_OK)
        table_error(t, s);
    else if (st->rounds)
        table_flow(t, s);
    if (stale_reason)
        table_line(t, INDENT, "%s", stale_reason);
    if (scorer_state(s) == SCORER_SUSPENDED)
        table_line(t, INDENT, "not called: the hub has found its scoring API unhealthy since %s",
                   s->summary.suspended_since);
    if (scorer_state(s) == SCORER_EMPTY)
        table_empty(t, s);
    table_remarks(t, st);
    table_rounding(t, a, s);
    table_scores(t, s);
    buf_puts(t->o, "\n");
}

static void table_totals(struct status_table *t, size_t scorers, const struct agent_totals *totals)
{
    const size_t *n = totals->by_state;
    BUF_AUTO(line, LINE_MAX_BYTES);

    buf_puts(&line, words_count(scorers, "scorer", "scorers").s);
    buf_printf(&line, ": %zu ok, %zu empty", n[SCORER_OK], n[SCORER_EMPTY]);
    buf_printf(&line, ", %zu failed, %zu waiting", n[SCORER_FAILING] + n[SCORER_STALE], n[SCORER_WAITING]);
    if (n[SCORER_SUSPENDED])
        buf_printf(&line, ", %zu suspended", n[SCORER_SUSPENDED]);
    buf_puts(&line, "; ");
    buf_puts(&line, words_count(totals->series, "score", "scores").s);
    invariant(buf_failed(&line) == 0);
    table_put(t, 0, buf_str(&line));
}

int status_table(const struct agent_state *a, bool on_terminal, struct buf *into)
{
    struct buf_mark mark = buf_mark(into);
    struct status_table t = {.o = into, .colours = on_terminal && !*cstr(getenv("NO_COLOR"))};
    struct agent_totals totals = agent_totals(a);

    for (size_t i = 0; i < a->n_scorers; i++)
        table_scorer(&t, a, a->scorers[i]);
    if (a->n_scorers)
        table_totals(&t, a->n_scorers, &totals);
    else
        buf_puts(t.o, "no scorers configured: add some under `summaries`\n");
    return buf_commit(into, mark);
}

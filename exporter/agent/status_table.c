/* The table of `agent --once`, for people who write a scoring API: what each scorer did, and its scores. */
#include "exporter/agent/scorer.h"
#include "exporter/agent/status.h"
#include "exporter/agent/status_text.h"
#include "exporter/base/buf.h"
#include "exporter/base/utf8.h"
#include "exporter/score/error.h"
#include "exporter/score/round.h"
#include "exporter/score/source.h"
#include "exporter/score/state.h"
#include "exporter/score/summary.h"
#include "exporter/ui/grid.h"
#include "exporter/ui/out.h"
#include "exporter/ui/ranking.h"

#include <stdio.h>

enum { INDENT = 4, LINE_MAX_BYTES = 1 << 20 };

struct table {
    struct out o;
    unsigned width;
    bool colours;
    struct buf line; /* of prose, being put together */
};

static const struct look {
    const char *mark, *colour;
} looks[] = {
    [SCORER_WAITING] = {"… waiting", "\033[2m"}, [SCORER_OK] = {"✓ ok", "\033[32m"},
    [SCORER_EMPTY] = {"○ empty", "\033[33m"},    [SCORER_FAILING] = {"✗ failed", "\033[31m"},
    [SCORER_STALE] = {"✗ failed", "\033[31m"},
};

static void table_spaces(struct out *o, size_t n)
{
    while (n-- > 0)
        out_puts(o, " ");
}

static void table_put(struct table *t, const char *s)
{
    struct out o = {.b = &t->line, .error = t->o.error};

    grid_clean(&o, str_of(s));
    t->o.error = o.error;
}

static void table_put_count(struct table *t, uint64_t n, const char *one, const char *many)
{
    char digits[WORDS_BYTES];

    words_count(n, digits);
    table_put(t, digits);
    table_put(t, " ");
    table_put(t, n == 1 ? one : many);
}

static void table_put_seconds(struct table *t, double s)
{
    char words[WORDS_BYTES];

    words_seconds(s, words);
    table_put(t, words);
}

/* The bytes of s that go on a line of `room` characters: up to the last space, or all that fit. */
static size_t table_fit(struct str s, size_t room)
{
    size_t at = 0, space = 0;

    for (size_t chars = 0; at < s.n; chars++) {
        if (chars == room)
            return s.p[at] == ' ' || space == 0 ? at : space;
        if (s.p[at] == ' ')
            space = at;
        at += size_max(utf8_char((struct str){s.p + at, s.n - at}), 1);
    }
    return at;
}

/* Ends the line of prose, wrapped at the width; continuation lines are indented further. */
static void table_fold_line(struct table *t, size_t indent)
{
    struct str rest = buf_str(&t->line);

    for (size_t deep = indent; rest.n; deep = indent + 2) {
        size_t room = t->width > deep + 16 ? t->width - deep : t->width ? 16 : SIZE_MAX;
        size_t n = table_fit(rest, room);

        table_spaces(&t->o, deep);
        out_str(&t->o, (struct str){rest.p, n});
        out_puts(&t->o, "\n");
        rest = str_trim((struct str){rest.p + n, rest.n - n});
    }
    buf_truncate(&t->line, 0);
}

static void table_end_line(struct table *t)
{
    table_fold_line(t, INDENT);
}

static void table_headline(struct table *t, const struct scorer *s)
{
    const struct look *look = &looks[scorer_state(s)];
    const struct summary *summary = scorer_summary(s);
    size_t used = grid_chars(str_of(look->mark)) + 2;

    table_put(t, summary->score_name);
    if (strcmp(summary->name, summary->score_name) != 0) {
        table_put(t, ", of ");
        table_put(t, summary->name);
    }
    out_puts(&t->o, t->colours ? look->colour : "");
    out_puts(&t->o, look->mark);
    out_puts(&t->o, t->colours ? "\033[0m  \033[1m" : "  ");
    grid_cut(&t->o, buf_str(&t->line), t->width == 0 ? SIZE_MAX : t->width > used + 1 ? t->width - used : 1);
    out_puts(&t->o, t->colours ? "\033[0m\n" : "\n");
    buf_truncate(&t->line, 0);
}

/* "12 series from Prometheus in 3.1 ms → 12 results in 12 ms → 11 series" */
static void table_flow(struct table *t, const struct scorer *s)
{
    const struct scorer_status *st = scorer_status(s);

    if (scorer_summary(s)->source.type == SOURCE_NONE) {
        table_put(t, "no source");
    } else {
        const char *from = summary_sources(scorer_summary(s)) > 1 ? "series from the sources in "
                                                                  : "series from the source in ";
        table_put_count(t, st->source_series, from, from);
        table_put_seconds(t, st->fetch_s);
    }
    table_put(t, " → ");
    table_put_count(t, st->results, "result in ", "results in ");
    table_put_seconds(t, st->perform_s);
    table_put(t, " → ");
    table_put_count(t, status_series(s), "score", "scores");
    table_end_line(t);
}

static void table_request(struct table *t, const struct summary *summary, const struct scorer_status *st)
{
    const char *query = summary_source(summary, st->source).query;

    if (*st->url) {
        table_put(t, "URL: ");
        table_put(t, st->url);
        table_end_line(t);
    }
    if (st->stage == STAGE_SOURCE && query) {
        table_put(t, "query: ");
        table_put(t, query);
        table_end_line(t);
    }
}

static void table_error(struct table *t, const struct scorer *s)
{
    const struct scorer_status *st = scorer_status(s);

    table_put(t, st->stage == STAGE_SOURCE ? "source failed: " : "scoring failed: ");
    table_put(t, st->reason);
    table_put(t, " (");
    table_put(t, round_error_word(st->error));
    table_put(t, ")");
    table_end_line(t);
    table_request(t, scorer_summary(s), st);
    table_put(t, "check ");
    table_put(t, status_hint(st->error, st->stage));
    table_end_line(t);
    if (scorer_batch(s)) {
        table_put(t, "the scores below are from an earlier round");
        table_end_line(t);
    }
}

static void table_empty(struct table *t, const struct summary *summary)
{
    size_t n = summary_sources(summary);

    table_put(t,
              n > 1 ? "no source has series for its query: " : "the source has no series for this query: ");
    for (size_t i = 0; i < n; i++) {
        table_put(t, i ? "; " : "");
        table_put(t, summary_source(summary, i).query);
    }
    table_end_line(t);
}

static void table_remarks(struct table *t, const struct scorer_status *st)
{
    if (st->source_warnings) {
        table_put_count(t, st->source_warnings,
                        "warning from the source: ", "warnings from the source, the first: ");
        table_put(t, st->source_warning);
        table_end_line(t);
    }
    if (st->invalid) {
        table_put_count(t, st->invalid, "invalid result ignored: ", "invalid results ignored, the first: ");
        table_put(t, st->first_invalid);
        table_end_line(t);
    }
    if (st->duplicates) {
        table_put_count(t, st->duplicates, "duplicate result", "duplicate results");
        table_put(t, ": the last result of each label set is used");
        table_end_line(t);
    }
    if (st->cut) {
        table_put_count(t, st->cut, "label value", "label values");
        table_put(t, " cut to limits.labelValueBytes");
        table_end_line(t);
    }
}

static void table_scores(struct table *t, const struct scorer *s)
{
    struct ranking r;
    char more[WORDS_BYTES];

    rank_scores(scorer_batch(s), RANKED_MAX, &r);
    if (r.n) {
        out_puts(&t->o, "\n");
        grid_scores(&t->o, scorer_batch(s), r.highest, r.n, INDENT, t->width);
    }
    if (r.numbers > r.n) {
        words_count(r.numbers - r.n, more);
        table_put(t, "… and ");
        table_put(t, more);
        table_put(t, " more");
        table_end_line(t);
    }
    if (r.nans) {
        table_put_count(t, r.nans, "score is NaN", "scores are NaN");
        table_end_line(t);
    }
}

static void table_scorer(struct table *t, const struct scorer *s)
{
    const struct scorer_status *st = scorer_status(s);

    table_headline(t, s);
    if (st->rounds && st->error != ROUND_OK)
        table_error(t, s);
    else if (st->rounds)
        table_flow(t, s);
    if (scorer_state(s) == SCORER_EMPTY)
        table_empty(t, scorer_summary(s));
    table_remarks(t, st);
    table_scores(t, s);
    out_puts(&t->o, "\n");
}

static void table_totals(struct table *t, const struct agent_state *a)
{
    struct totals totals = status_totals(a);
    size_t failed = totals.by_state[SCORER_FAILING] + totals.by_state[SCORER_STALE];
    char words[160];

    (void)snprintf(words, sizeof(words), ": %zu ok, %zu empty, %zu failed, %zu waiting; ",
                   totals.by_state[SCORER_OK], totals.by_state[SCORER_EMPTY], failed,
                   totals.by_state[SCORER_WAITING]);
    table_put_count(t, a->n_scorers, "scorer", "scorers");
    table_put(t, words);
    table_put_count(t, totals.series, "score", "scores");
    table_fold_line(t, 0);
}

int status_table(const struct agent_state *a, unsigned width, struct buf *into)
{
    struct table t = {.o = out_begin(into), .width = width};

    buf_init(&t.line, LINE_MAX_BYTES);
    t.colours = width > 0 && !*cstr(getenv("NO_COLOR"));
    for (size_t i = 0; i < a->n_scorers; i++)
        table_scorer(&t, a->scorers[i]);
    if (a->n_scorers)
        table_totals(&t, a);
    else
        out_puts(&t.o, "no scorers configured: add some under `summaries`\n");
    buf_done(&t.line);
    return out_end(&t.o);
}

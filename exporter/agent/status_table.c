/* The table of `agent --once`, for whoever is writing a scorer: what each of them did, in words, and the
 * scores it gave. */
#include "exporter/agent/status.h"

#include "exporter/agent/status_text.h"
#include "exporter/base/utf8.h"
#include "exporter/ui/grid.h"

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

static void spaces(struct out *o, size_t n)
{
    while (n-- > 0)
        out_puts(o, " ");
}

static void say(struct table *t, const char *s)
{
    struct out o = {.b = &t->line, .error = t->o.error};

    grid_clean(&o, str_of(s));
    t->o.error = o.error;
}

static void say_url(struct table *t, const char *url)
{
    BUF_AUTO(plain, LINE_MAX_BYTES);
    struct out o = {.b = &plain, .error = t->o.error};

    out_url(&o, url);
    out_str(&o, (struct str){"", 1});
    t->o.error = o.error;
    if (o.error == 0)
        say(t, plain.p);
}

static void say_count(struct table *t, uint64_t n, const char *one, const char *many)
{
    char digits[WORDS_BYTES];

    words_count(n, digits);
    say(t, digits);
    say(t, " ");
    say(t, n == 1 ? one : many);
}

static void say_seconds(struct table *t, double s)
{
    char words[WORDS_BYTES];

    words_seconds(s, words);
    say(t, words);
}

/* How much of s goes on a line of `room` characters: up to the last space that fits, or as much as there is
 * room for. */
static size_t fits(struct str s, size_t room)
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

/* Ends the line of prose, folding it at the width: what does not fit goes in deeper. */
static void fold_line(struct table *t, size_t indent)
{
    struct str rest = buf_str(&t->line);

    for (size_t deep = indent; rest.n; deep = indent + 2) {
        size_t room = t->width > deep + 16 ? t->width - deep : t->width ? 16 : SIZE_MAX;
        size_t n = fits(rest, room);

        spaces(&t->o, deep);
        out_str(&t->o, (struct str){rest.p, n});
        out_puts(&t->o, "\n");
        rest = str_trim((struct str){rest.p + n, rest.n - n});
    }
    buf_truncate(&t->line, 0);
}

static void end_line(struct table *t)
{
    fold_line(t, INDENT);
}

static void headline(struct table *t, const struct scorer *s)
{
    const struct look *look = &looks[scorer_state(s)];
    const struct summary *summary = scorer_summary(s);
    size_t used = grid_chars(str_of(look->mark)) + 2;

    say(t, summary->score_name);
    if (strcmp(summary->name, summary->score_name) != 0) {
        say(t, ", of ");
        say(t, summary->name);
    }
    out_puts(&t->o, t->colours ? look->colour : "");
    out_puts(&t->o, look->mark);
    out_puts(&t->o, t->colours ? "\033[0m  \033[1m" : "  ");
    grid_cut(&t->o, buf_str(&t->line), t->width == 0 ? SIZE_MAX : t->width > used + 1 ? t->width - used : 1);
    out_puts(&t->o, t->colours ? "\033[0m\n" : "\n");
    buf_truncate(&t->line, 0);
}

/* "12 series from Prometheus in 3.1 ms → 12 results in 12 ms → 11 series" */
static void say_flow(struct table *t, const struct scorer *s)
{
    const struct scorer_status *st = scorer_status(s);

    if (scorer_summary(s)->source_type == SOURCE_NONE) {
        say(t, "no source");
    } else {
        const char *from = summary_sources(scorer_summary(s)) > 1 ? "series from the sources in "
                                                                  : "series from the source in ";
        say_count(t, st->source_series, from, from);
        say_seconds(t, st->fetch_s);
    }
    say(t, " → ");
    say_count(t, st->results, "result in ", "results in ");
    say_seconds(t, st->perform_s);
    say(t, " → ");
    say_count(t, status_series(s), "score", "scores");
    end_line(t);
}

/* Of several, the reason names the one that failed. */
static void say_asked(struct table *t, const struct summary *summary, enum round_stage stage)
{
    if (stage == STAGE_SOURCE && summary_sources(summary) > 1)
        return;
    say(t, "asked: ");
    say_url(t, stage == STAGE_SOURCE ? cstr(summary->source_endpoint) : summary->scoring_endpoint);
    end_line(t);
    if (stage == STAGE_SOURCE && summary->source_query) {
        say(t, "query: ");
        say(t, summary->source_query);
        end_line(t);
    }
}

static void say_error(struct table *t, const struct scorer *s)
{
    const struct scorer_status *st = scorer_status(s);

    say(t, st->stage == STAGE_SOURCE ? "asking the source: " : "asking the scorer: ");
    say(t, st->reason);
    say(t, " (");
    say(t, round_error_word(st->error));
    say(t, ")");
    end_line(t);
    say_asked(t, scorer_summary(s), st->stage);
    say(t, "look at: ");
    say(t, status_hint(st->error, st->stage));
    end_line(t);
    if (scorer_batch(s)) {
        say(t, "the scores below are of an earlier round");
        end_line(t);
    }
}

static void say_empty(struct table *t, const struct summary *summary)
{
    size_t n = summary_sources(summary);

    say(t, n > 1 ? "no source has series for its query: " : "the source has no series for this query: ");
    for (size_t i = 0; i < n; i++) {
        say(t, i ? "; " : "");
        say(t, summary_source(summary, i).query);
    }
    end_line(t);
}

static void say_remarks(struct table *t, const struct scorer_status *st)
{
    if (st->source_warnings) {
        say_count(t, st->source_warnings, "warning of the source: ", "warnings of the source, the first: ");
        say(t, st->source_warning);
        end_line(t);
    }
    if (st->invalid) {
        say_count(t, st->invalid, "result left out: ", "results left out, the first: ");
        say(t, st->first_invalid);
        end_line(t);
    }
    if (st->duplicates) {
        say_count(t, st->duplicates, "result", "results");
        say(t, " with the labels of an earlier one, which the later replaces");
        end_line(t);
    }
    if (st->cut) {
        say_count(t, st->cut, "label value", "label values");
        say(t, " cut to limits.labelValueBytes");
        end_line(t);
    }
}

static void say_scores(struct table *t, const struct scorer *s)
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
        say(t, "… and ");
        say(t, more);
        say(t, " more");
        end_line(t);
    }
    if (r.nans) {
        say_count(t, r.nans, "score is NaN", "scores are NaN");
        end_line(t);
    }
}

static void say_scorer(struct table *t, const struct scorer *s)
{
    const struct scorer_status *st = scorer_status(s);

    headline(t, s);
    if (st->rounds && st->error != ROUND_OK)
        say_error(t, s);
    else if (st->rounds)
        say_flow(t, s);
    if (scorer_state(s) == SCORER_EMPTY)
        say_empty(t, scorer_summary(s));
    say_remarks(t, st);
    say_scores(t, s);
    out_puts(&t->o, "\n");
}

static void say_totals(struct table *t, const struct agent *a)
{
    struct totals totals = status_totals(a);
    size_t failed = totals.by_state[SCORER_FAILING] + totals.by_state[SCORER_STALE];
    char words[160];

    (void)snprintf(words, sizeof(words), ": %zu ok, %zu empty, %zu failed, %zu waiting; ",
                   totals.by_state[SCORER_OK], totals.by_state[SCORER_EMPTY], failed,
                   totals.by_state[SCORER_WAITING]);
    say_count(t, agent_scorers(a), "scorer", "scorers");
    say(t, words);
    say_count(t, totals.series, "score", "scores");
    fold_line(t, 0);
}

int status_table(const struct agent *a, unsigned width, struct buf *into)
{
    struct table t = {.o = out_begin(into), .width = width};

    buf_init(&t.line, LINE_MAX_BYTES);
    t.colours = width > 0 && !*cstr(getenv("NO_COLOR"));
    for (size_t i = 0; i < agent_scorers(a); i++)
        say_scorer(&t, agent_scorer(a, i));
    if (agent_scorers(a))
        say_totals(&t, a);
    else
        out_puts(&t.o, "no scorers configured: add some under `summaries`\n");
    buf_done(&t.line);
    return out_end(&t.o);
}

/* Owns nothing. Called by slot.c as it derives an object's conditions, and by nothing else. */
#include "controller/placement/sentences.h"

#include "exporter/base/doc.h"
#include "exporter/base/text.h"
#include "exporter/score/format.h"
#include "exporter/score/round_error.h"
#include "exporter/score/scorer_state.h"

enum { FORMATS_BYTES = 768 };

WORD_TABLE(scored_reason_word, enum scored_reason, SCORED_REASONS,
           {[SCORED_OK] = "Scored",
            [SCORED_SUSPENDED] = "Suspended",
            [SCORED_SCORING_FAILED] = "ScoringFailed",
            [SCORED_SOURCE_FAILED] = "SourceFailed",
            [SCORED_EXPIRED] = "Expired",
            [SCORED_NO_ITEMS] = "NoItems",
            [SCORED_SOURCE_EMPTY] = "SourceEmpty",
            [SCORED_NO_RESULTS] = "NoResults"});

static WORD_TABLE(scored_instead_word, enum scored_instead, INSTEADS,
                  {[INSTEAD_NOTHING] = "there are no scores",
                   [INSTEAD_LAST_SCORES] = "the last scores stay until validUntil",
                   [INSTEAD_FALLBACK] = "fallbackScore is used"});

enum scored_reason scored_reason(const struct scored_facts *f)
{
    if (f->summary->suspended_since)
        return SCORED_SUSPENDED;
    if (f->error != ROUND_OK)
        return f->stage == STAGE_SCORING ? SCORED_SCORING_FAILED : SCORED_SOURCE_FAILED;
    if (f->expired)
        return SCORED_EXPIRED;
    if (f->made->n)
        return SCORED_OK;
    if (f->results)
        return SCORED_NO_ITEMS;
    return f->summary->n_sources && f->source_series == 0 ? SCORED_SOURCE_EMPTY : SCORED_NO_RESULTS;
}

/* "; skipped 1 not a number, 2 NaN or infinite": results without an item, by reason. */
static void scored_put_skipped(struct buf *b, const struct scored_facts *f)
{
    const struct {
        size_t n;
        const char *why;
    } reasons[] = {{f->invalid, "not a number"},
                   {f->made->left_out, "NaN or infinite"},
                   {f->made->unnamed, "with an empty name"}};
    bool is_first = true;

    for (size_t i = 0; i < ARRAY_SIZE(reasons); i++) {
        if (reasons[i].n == 0)
            continue;
        buf_puts(b, is_first ? "; skipped " : ", ");
        buf_printf(b, "%zu %s", reasons[i].n, reasons[i].why);
        is_first = false;
    }
}

/* "; "${node}" makes 5 from 12 results; unknown placeholder "${nod}"": what one format makes of them. */
static void scored_put_format(struct buf *b, const struct summary_item *item, const struct format_items *made,
                              bool is_only)
{
    struct str unknown = format_mistake(item->format);

    if (made->results > made->n && item->aggregation == AGGREGATE_LAST) {
        if (!is_only) {
            buf_puts(b, "; ");
            problem_quote(str_of(item->format), b);
            buf_printf(b, " makes %zu", made->n);
        }
        buf_printf(b, " from %zu results", made->results);
    }
    if (unknown.n) {
        buf_puts(b, "; unknown placeholder ");
        problem_quote(unknown, b);
    }
}

/* "; left out 3 results of "${pod}": "${node}" has an item "a" already" */
static void scored_put_overlap(struct buf *b, const struct summary *sum, const struct item_overlap *o)
{
    buf_puts(b, "; left out ");
    text_count(b, o->results, "result");
    buf_puts(b, " of ");
    problem_quote(str_of(sum->items[o->later].format), b);
    buf_puts(b, ": ");
    problem_quote(str_of(sum->items[o->earlier].format), b);
    buf_puts(b, " has an item ");
    problem_quote(str_of(o->name), b);
    buf_puts(b, " already");
}

/* What the formats make of the results. Each part is there whole, or not at all. */
static void scored_put_formats(struct buf *b, const struct summary *sum, const struct items *made)
{
    BUF_AUTO(formats, FORMATS_BYTES);

    for (size_t i = 0; i < sum->n_items; i++) {
        struct buf_mark mark = buf_mark(&formats);

        scored_put_format(&formats, &sum->items[i], &made->formats[i], sum->n_items == 1);
        if (buf_failed(&formats) < 0)
            buf_rollback(&formats, mark);
    }
    if (made->overlap.results > 0) {
        struct buf_mark mark = buf_mark(&formats);

        scored_put_overlap(&formats, sum, &made->overlap);
        if (buf_failed(&formats) < 0)
            buf_rollback(&formats, mark);
    }
    buf_put_str(b, buf_str(&formats));
}

static void scored_put_cause(struct buf *b, enum scored_reason reason, const struct scored_facts *f)
{
    switch (reason) {
    case SCORED_SUSPENDED:
        buf_printf(b, "not called since %.64s, ", f->summary->suspended_since);
        buf_puts(b, "as the hub finds the scoring API unhealthy");
        break;
    case SCORED_SCORING_FAILED:
    case SCORED_SOURCE_FAILED:
        buf_puts(b, f->reason);
        break;
    case SCORED_EXPIRED:
        buf_puts(b, scores_expired_text);
        break;
    case SCORED_NO_ITEMS:
        buf_printf(b, "no item from %zu results of the scoring API", f->results);
        scored_put_skipped(b, f);
        break;
    case SCORED_SOURCE_EMPTY:
        buf_puts(b, "the source returned no series");
        break;
    case SCORED_NO_RESULTS:
        buf_puts(b, "the scoring API returned no results");
        break;
    case SCORED_OK:
    case SCORED_REASONS:
        break;
    }
}

void sentence_scored(struct buf *b, const struct scored_facts *f)
{
    enum scored_reason reason = scored_reason(f);

    if (reason == SCORED_OK) {
        text_count(b, f->made->n, "item");
        scored_put_formats(b, f->summary, f->made);
        scored_put_skipped(b, f);
        return;
    }
    scored_put_cause(b, reason, f);
    buf_printf(b, "; %s", scored_instead_word(f->instead));
}

void sentence_truncated(struct buf *b, const struct truncated_facts *f)
{
    if (f->omitted) {
        buf_printf(b, "%zu of %zu items omitted, the last by name: ", f->omitted, f->of);
        buf_puts(b, "an object holds at most 1.5 MiB");
    }
    if (f->merged) {
        text_join(b, "; ");
        text_count(b, f->merged, "result");
        buf_puts(b, " merged with others whose labels differ only beyond limits.labelValueBytes");
    }
    if (f->omitted == 0 && f->merged == 0)
        buf_puts(b, "all items are written");
}

/* The report for people. */
#include "controller/check/findings.h"

#include "exporter/base/buf.h"
#include "exporter/base/json.h"
#include "exporter/ui/grid.h"
#include "exporter/ui/out.h"
#include "exporter/ui/ranking.h"

#include <stdio.h>

enum { INDENT = 4, WHAT_CHARS = 26, SHOWN_SCORES = 10, SHOWN_ITEMS = 3, ITEM_CHARS = 80 };

static void findings_put_count(struct out *o, size_t n, const char *one, const char *many)
{
    char words[WORDS_BYTES];

    words_count(n, words);
    out_puts(o, words);
    out_puts(o, " ");
    out_puts(o, n == 1 ? one : many);
}

static void findings_put_row(struct out *o, const struct call_row *row, unsigned width)
{
    char line[1024], seconds[WORDS_BYTES];
    size_t n = (size_t)snprintf(line, sizeof(line), "%s %-*s %s", row->ok ? "✓" : "✗", WHAT_CHARS, row->what,
                                row->text);

    words_seconds(row->seconds, seconds);
    if (row->ok && row->seconds > 0)
        (void)snprintf(line + n, sizeof(line) - n, ", in %s", seconds);
    grid_cut(o, str_of(line), width ? width : SIZE_MAX);
    out_puts(o, "\n");
}

static void findings_put_scores(struct out *o, const struct batch *b, unsigned width)
{
    struct ranking ranking;

    rank_scores(b, SHOWN_SCORES, &ranking);
    if (ranking.n == 0)
        return;
    grid_scores(o, b, ranking.highest, ranking.n, INDENT, width);
    if (ranking.numbers > ranking.n) {
        out_puts(o, "    … and ");
        findings_put_count(o, ranking.numbers - ranking.n, "more\n", "more\n");
    }
}

/* What became of the results that have no item of their own. */
static void findings_put_losses(struct out *o, const struct outcome *x)
{
    const struct {
        size_t n;
        const char *text;
    } losses[] = {
        {x->stats.invalid, "dropped, without a valid score or metric"},
        {x->duplicates, "lost, with the labels of a later result"},
        {x->items.left_out, "without an item: NaN or infinite"},
        {x->items.unnamed, "without an item: its name is empty"},
        {x->items.merged, "merged into the item of another result"},
        {x->items.clamped, "clamped to -100..100"},
        {x->stats.cut, "with a label that was cut to 256 bytes"},
        {x->stats.mended, "with a label that was not UTF-8"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(losses); i++)
        if (losses[i].n) {
            out_puts(o, "    ");
            findings_put_count(o, losses[i].n, "result ", "results ");
            out_puts(o, losses[i].text);
            out_puts(o, "\n");
        }
}

/* The first items by name: "a = 1, b = 2, … and 8 more". */
static void findings_put_items(struct out *o, const struct items *items)
{
    struct jr j;
    struct str key, value;
    size_t i = 0;

    jr_init(&j, buf_str(&items->json), JR_STRICT);
    (void)jr_array(&j);
    for (; i < SHOWN_ITEMS && jr_item(&j); i++) {
        out_puts(o, i ? ", " : "    ");
        (void)jr_object(&j);
        while (jr_member(&j, &key)) {
            (void)jr_skip(&j, &value);
            out_puts(o, jr_key_is(key, "value") ? " = " : "");
            grid_cut(o, value, ITEM_CHARS);
        }
    }
    if (items->n > i) {
        out_puts(o, ", … and ");
        findings_put_count(o, items->n - i, "more", "more");
    }
    out_puts(o, items->n ? "\n" : "");
}

static void findings_put_outcome(struct out *o, const struct findings *r, unsigned width)
{
    const struct outcome *x = &r->outcome;

    out_puts(o, "\nWhat an agent makes of the first answer: ");
    findings_put_count(o, series_count(x->batch->set), "series, ", "series, ");
    findings_put_count(o, x->items.n, "item", "items");
    out_puts(o, " of the AddOnPlacementScore ");
    out_puts(o, x->object);
    out_puts(o, "\n");
    findings_put_items(o, &x->items);
    findings_put_losses(o, x);
    findings_put_scores(o, x->batch, width);
}

static void findings_put_finding(struct out *o, const struct finding *f)
{
    const struct rule_info *rule = &rule_info[f->rule];

    out_puts(o, rule->level == RULE_PROBLEM ? "\n✗ " : "\n! ");
    out_puts(o, rule->word);
    out_puts(o, ": ");
    out_puts(o, rule->what);
    out_puts(o, "\n    ");
    out_puts(o, f->what);
    out_puts(o, ": ");
    grid_clean(o, str_of(f->detail));
    out_puts(o, "\n    ");
    out_puts(o, rule->mend);
    out_puts(o, "\n");
}

static void findings_put_verdict(struct out *o, const struct findings *r)
{
    out_puts(o, "\n");
    out_url(o, r->url);
    out_puts(o, ": ");
    if (r->n_findings == 0)
        out_puts(o, "no problems");
    if (r->by_level[RULE_PROBLEM])
        findings_put_count(o, r->by_level[RULE_PROBLEM], "problem", "problems");
    if (r->by_level[RULE_PROBLEM] && r->by_level[RULE_WARNING])
        out_puts(o, ", ");
    if (r->by_level[RULE_WARNING])
        findings_put_count(o, r->by_level[RULE_WARNING], "warning", "warnings");
    out_puts(o, "\n");
}

int findings_table(const struct findings *r, unsigned width, struct buf *into)
{
    struct out o = out_begin(into);

    for (size_t i = 0; i < r->n_rows; i++)
        findings_put_row(&o, &r->rows[i], width);
    if (r->outcome.batch)
        findings_put_outcome(&o, r, width);
    for (size_t i = 0; i < r->n_findings; i++)
        findings_put_finding(&o, &r->findings[i]);
    findings_put_verdict(&o, r);
    return out_end(&o);
}

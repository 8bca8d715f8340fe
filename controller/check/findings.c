/* Collects what a check finds, and prints it for people or for programs. Owns the findings. On the one
 * thread of check-scorer. Of a rule only the first finding counts. */
#include "controller/check/findings.h"

#include "controller/kube/json.h"
#include "exporter/base/text.h"
#include "exporter/metric/batch.h"
#include "exporter/metric/series.h"
#include "exporter/ui/grid.h"
#include "exporter/ui/member.h"
#include "exporter/ui/ranking.h"
#include "exporter/ui/words.h"

#include <stdio.h>

static const struct rule_info {
    enum rule_level level;
    const char *word; /* its id for people */
    const char *what, *why, *mend;
} rule_info[RULES] = {
#define RULE(id, level, word, what, why, mend) [RULE_##id] = {RULE_##level, word, what, why, mend},
#include "controller/check/rules.def"
#undef RULE
};

void findings_done(struct findings *r)
{
    free(r->url);
    free(r->scoring_url);
    buf_done(&r->summary);
    r->outcome.batch = batch_unref(r->outcome.batch);
    items_done(&r->outcome.items);
}

void findings_add(struct findings *r, enum check_rule rule, const char *fmt, ...)
{
    struct call_row *row = &r->rows[r->n_rows - 1];
    enum rule_level level = rule_info[rule].level;
    struct finding *f = &r->findings[r->n_findings];
    char text[2048];
    va_list ap;

    row->ok = row->ok && level != RULE_PROBLEM;
    for (size_t i = 0; i < r->n_findings; i++)
        if (r->findings[i].rule == rule)
            return;
    r->n_findings++;
    r->by_level[level]++;
    f->rule = rule;
    f->what = row->what;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    text_line(f->detail, sizeof(f->detail), str_of(text));
}

/* ---- For programs ---- */

static void json_call(struct buf *o, const struct call_row *row)
{
    member_item(o);
    buf_puts(o, "{");
    member_text(o, "what", row->what);
    member_bool(o, "ok", row->ok);
    member_count(o, "status", (uint64_t)row->status);
    member_number(o, "seconds", row->seconds);
    member_text(o, "text", row->text);
    buf_puts(o, "}");
}

static void json_finding(struct buf *o, const struct finding *f)
{
    const struct rule_info *rule = &rule_info[f->rule];

    member_item(o);
    buf_puts(o, "{");
    member_text(o, "rule", rule->word);
    member_text(o, "level", rule->level == RULE_PROBLEM ? "problem" : "warning");
    member_text(o, "call", f->what);
    member_text(o, "detail", f->detail);
    member_text(o, "expected", rule->what);
    member_text(o, "why", rule->why);
    member_text(o, "mend", rule->mend);
    buf_puts(o, "}");
}

static void json_outcome(struct buf *o, const struct agent_outcome *x)
{
    if (!member_object_if(o, "agent", x->batch))
        return;
    member_count(o, "results", x->stats.results);
    member_count(o, "dropped", x->stats.invalid);
    member_count(o, "duplicates", x->duplicates);
    member_count(o, "cutLabels", x->stats.cut);
    member_count(o, "series", series_count(x->batch->set));
    member_text(o, "addOnPlacementScore", x->object);
    member_count(o, "merged", x->items.merged);
    member_count(o, "clamped", x->items.clamped);
    member_count(o, "notFinite", x->items.left_out);
    member_count(o, "unnamed", x->items.unnamed);
    member(o, "items");
    buf_put_str(o, buf_str(&x->items.json));
    buf_puts(o, "}");
}

int findings_json(const struct findings *r, struct buf *into)
{
    struct buf_mark mark = buf_mark(into);

    buf_puts(into, "{");
    member_url(into, "configURL", r->url);
    member_url(into, "scoringURL", r->scoring_url);
    member_text(into, "traceId", r->trace);
    member_bool(into, "ok", !r->by_level[RULE_PROBLEM]);
    member_count(into, "problems", r->by_level[RULE_PROBLEM]);
    member_count(into, "warnings", r->by_level[RULE_WARNING]);
    if (member_object_if(into, "summary", r->summary.n > 0))
        buf_put_str(into, (struct str){r->summary.p + 1, r->summary.n - 1}); /* after its `{` */
    member_list(into, "calls");
    for (size_t i = 0; i < r->n_rows; i++)
        json_call(into, &r->rows[i]);
    buf_puts(into, "]");
    member_list(into, "findings");
    for (size_t i = 0; i < r->n_findings; i++)
        json_finding(into, &r->findings[i]);
    buf_puts(into, "]");
    json_outcome(into, &r->outcome);
    buf_puts(into, "}\n");
    return buf_commit(into, mark);
}

/* ---- For people ---- */

enum { INDENT = 4, WHAT_CHARS = 26, SHOWN_SCORES = 10, SHOWN_ITEMS = 3, ITEM_CHARS = 80 };

/* "✓ GET /healthz               HTTP 200 OK, in 2 ms" */
static void table_row(struct buf *o, const struct call_row *row)
{
    BUF_AUTO(line, 4096);

    buf_puts(&line, row->ok ? "✓ " : "✗ ");
    buf_printf(&line, "%-*s ", WHAT_CHARS, row->what);
    buf_puts(&line, row->text);
    if (row->ok && row->seconds > 0)
        buf_printf(&line, ", in %s", words_seconds(row->seconds).s);
    grid_clean(o, buf_str(&line));
    buf_puts(o, "\n");
}

static void table_ranking(struct buf *o, const struct batch *b)
{
    struct ranking ranking;

    rank_scores(b, SHOWN_SCORES, &ranking);
    if (ranking.n)
        grid_scores(o, b, ranking.highest, ranking.n, INDENT);
    if (ranking.numbers > ranking.n)
        buf_printf(o, "    … and %s\n", words_count(ranking.numbers - ranking.n, "more", "more").s);
}

/* What became of the results that have no item of their own. */
static void table_losses(struct buf *o, const struct agent_outcome *x)
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
        {x->stats.repaired, "with a label that was not UTF-8"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(losses); i++)
        if (losses[i].n)
            buf_printf(o, "    %s %s\n", words_count(losses[i].n, "result", "results").s, losses[i].text);
}

/* The first items by name: "a = 1, b = 2, … and 8 more". */
static void table_items(struct buf *o, const struct items *items)
{
    json_auto_t *list = json_loadb(items->json.p, items->json.n, 0, NULL);
    const json_t *item;
    size_t i;

    json_array_foreach(list, i, item)
    {
        if (i == SHOWN_ITEMS)
            break;
        buf_puts(o, i ? ", \"" : "    \"");
        grid_cut(o, kube_text(item, "name", NULL), ITEM_CHARS);
        buf_printf(o, "\" = %" JSON_INTEGER_FORMAT, json_integer_value(json_object_get(item, "value")));
    }
    if (items->n > SHOWN_ITEMS)
        buf_printf(o, ", … and %s", words_count(items->n - SHOWN_ITEMS, "more", "more").s);
    buf_puts(o, items->n ? "\n" : "");
}

static void table_outcome(struct buf *o, const struct agent_outcome *x)
{
    buf_printf(o, "\nWhat an agent makes of the first answer: %s, %s of the AddOnPlacementScore %s\n",
               words_count(series_count(x->batch->set), "series", "series").s,
               words_count(x->items.n, "item", "items").s, x->object);
    table_items(o, &x->items);
    table_losses(o, x);
    table_ranking(o, x->batch);
}

static void table_finding(struct buf *o, const struct finding *f)
{
    const struct rule_info *rule = &rule_info[f->rule];

    buf_printf(o, "\n%s %s: %s\n    %s: ", rule->level == RULE_PROBLEM ? "✗" : "!", rule->word, rule->what,
               f->what);
    grid_clean(o, str_of(f->detail));
    buf_printf(o, "\n    %s\n", rule->mend);
}

int findings_table(const struct findings *r, struct buf *into)
{
    size_t problems = r->by_level[RULE_PROBLEM], warnings = r->by_level[RULE_WARNING];
    struct buf_mark mark = buf_mark(into);

    for (size_t i = 0; i < r->n_rows; i++)
        table_row(into, &r->rows[i]);
    if (r->outcome.batch)
        table_outcome(into, &r->outcome);
    for (size_t i = 0; i < r->n_findings; i++)
        table_finding(into, &r->findings[i]);
    buf_puts(into, "\n");
    http_url_for_people(str_of(r->url), into);
    buf_puts(into, r->n_findings ? ": " : ": no problems");
    if (problems)
        buf_puts(into, words_count(problems, "problem", "problems").s);
    buf_puts(into, problems && warnings ? ", " : "");
    if (warnings)
        buf_puts(into, words_count(warnings, "warning", "warnings").s);
    buf_printf(into, "\ntrace of all calls: %s\n", r->trace);
    return buf_commit(into, mark);
}

/* The report for programs. README.md documents each member. */
#include "controller/check/findings.h"

#include "exporter/base/buf.h"
#include "exporter/ui/members.h"
#include "exporter/ui/out.h"

static void json_call(struct out *o, const struct call_row *row)
{
    member_item(o);
    out_puts(o, "{");
    member_text(o, "what", row->what);
    member_bool(o, "ok", row->ok);
    member_count(o, "status", (uint64_t)row->status);
    member_number(o, "seconds", row->seconds);
    member_text(o, "text", row->text);
    out_puts(o, "}");
}

static void json_finding(struct out *o, const struct finding *f)
{
    const struct rule_info *rule = &rule_info[f->rule];

    member_item(o);
    out_puts(o, "{");
    member_text(o, "rule", rule->word);
    member_text(o, "level", rule_level_word(rule->level));
    member_text(o, "call", f->what);
    member_text(o, "detail", f->detail);
    member_text(o, "expected", rule->what);
    member_text(o, "why", rule->why);
    member_text(o, "mend", rule->mend);
    out_puts(o, "}");
}

static void json_outcome(struct out *o, const struct outcome *x)
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
    out_str(o, buf_str(&x->items.json));
    out_puts(o, "}");
}

int findings_json(const struct findings *r, struct buf *into)
{
    struct out o = out_begin(into);

    out_puts(&o, "{");
    member_url(&o, "configURL", r->url);
    member_url(&o, "scoringURL", r->scoring_url);
    member_bool(&o, "ok", !findings_has_problems(r));
    member_count(&o, "problems", r->by_level[RULE_PROBLEM]);
    member_count(&o, "warnings", r->by_level[RULE_WARNING]);
    if (member_object_if(&o, "summary", r->summary.n > 0)) {
        out_str(&o, (struct str){r->summary.p + 1, r->summary.n - 1}); /* after its `{` */
    }
    member_list(&o, "calls");
    for (size_t i = 0; i < r->n_rows; i++)
        json_call(&o, &r->rows[i]);
    out_puts(&o, "]");
    member_list(&o, "findings");
    for (size_t i = 0; i < r->n_findings; i++)
        json_finding(&o, &r->findings[i]);
    out_puts(&o, "]");
    json_outcome(&o, &r->outcome);
    out_puts(&o, "}\n");
    return out_end(&o);
}

#include "controller/check/findings.h"

#include "exporter/base/buf.h"
#include "exporter/base/text.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

enum { SUMMARY_MAX_BYTES = 1 << 20 };

void findings_init(struct findings *r)
{
    *r = (struct findings){.url = NULL};
    buf_init(&r->summary, SUMMARY_MAX_BYTES);
}

void findings_done(struct findings *r)
{
    free(r->url);
    free(r->scoring_url);
    buf_done(&r->summary);
    r->outcome.batch = batch_unref(r->outcome.batch);
    items_done(&r->outcome.items);
    *r = (struct findings){.url = NULL};
}

struct call_row *findings_add_row(struct findings *r, const char *what)
{
    struct call_row *row = &r->rows[r->n_rows++];

    assert(r->n_rows <= FINDINGS_MAX_ROWS);
    *row = (struct call_row){.what = what, .ok = true};
    return row;
}

bool findings_has(const struct findings *r, enum rule rule)
{
    for (size_t i = 0; i < r->n_findings; i++)
        if (r->findings[i].rule == rule)
            return true;
    return false;
}

bool findings_has_problems(const struct findings *r)
{
    return r->by_level[RULE_PROBLEM] > 0;
}

void findings_add(struct findings *r, enum rule rule, const char *fmt, ...)
{
    struct call_row *row = &r->rows[r->n_rows - 1];
    enum rule_level level = rule_info[rule].level;
    struct finding *f;
    char text[2048];
    va_list ap;

    row->ok = row->ok && level != RULE_PROBLEM;
    if (findings_has(r, rule))
        return;
    f = &r->findings[r->n_findings++];
    r->by_level[level]++;
    f->rule = rule;
    f->what = row->what;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    text_line(f->detail, sizeof(f->detail), str_of(text));
}

/* The rules that a scoring API follows, and what a check has found: its calls, the rules that are broken,
 * and what an agent makes of the first answer. */
#pragma once

#include "controller/placement/items.h"
#include "exporter/base/buf.h"
#include "exporter/http/http.h"
#include "exporter/score/answer.h"

#include <stdbool.h>

enum rule_level { RULE_PROBLEM, RULE_WARNING, RULE_LEVELS };

/* The rules that a scoring API follows; rules.def says what each means. */
enum check_rule {
#define RULE(id, level, word, what, why, mend) RULE_##id,
#include "controller/check/rules.def"
#undef RULE
    RULES
};

enum { FINDINGS_MAX_ROWS = 24, FINDINGS_TEXT_BYTES = 640 };

struct call_row {
    const char *what; /* a literal */
    bool ok;          /* until a finding is added */
    long status;      /* of HTTP; 0 without an answer */
    double seconds;
    char text[FINDINGS_TEXT_BYTES]; /* one line */
};

struct findings {
    char *url;                             /* of /config */
    char trace[HTTP_TRACE_BYTES];          /* the id that all calls carry */
    char *scoring_url;                     /* that agents call; NULL before /config was asked for */
    char unreachable[FINDINGS_TEXT_BYTES]; /* why there is nothing to check; empty if there is */
    struct buf summary;                    /* the scorer as the hub distributes it, a JSON object */
    struct call_row rows[FINDINGS_MAX_ROWS];
    size_t n_rows;
    struct finding { /* one for each rule that is broken */
        enum check_rule rule;
        const char *what; /* the row that it is about */
        char detail[FINDINGS_TEXT_BYTES];
    } findings[RULES];
    size_t n_findings, by_level[RULE_LEVELS];
    struct agent_outcome { /* of the first answer with series */
        struct answer_stats stats;
        struct batch *batch; /* NULL: no agent can read any answer */
        size_t duplicates;
        struct items items;
        char object[OBJECT_NAME_MAX + 1]; /* name of the AddOnPlacementScore */
    } outcome;
};

void findings_done(struct findings *r);
/* Adds a finding about the last row; only the first of a rule counts. */
void findings_add(struct findings *r, enum check_rule rule, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* Appends the report for people, or for programs. -EFBIG. */
MUST_USE int findings_table(const struct findings *r, struct buf *into);
MUST_USE int findings_json(const struct findings *r, struct buf *into);

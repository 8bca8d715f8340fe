/* What check-scorer found: a row for each call, the findings by rule, and what an agent makes of the
 * answer. */
#ifndef DS_CHECK_FINDINGS_H
#define DS_CHECK_FINDINGS_H

#include "controller/check/rules.h"
#include "controller/placement/items.h"
#include "exporter/metric/series.h"
#include "exporter/score/answer.h"

enum { FINDINGS_MAX_ROWS = 24, FINDINGS_TEXT_BYTES = 640 };

struct call_row {
    const char *what; /* a literal */
    bool ok;
    long status; /* of HTTP; 0 without an answer */
    double seconds;
    char text[FINDINGS_TEXT_BYTES]; /* one line */
};

/* One for each rule that is broken. */
struct finding {
    enum rule rule;
    const char *what; /* the row that it is about */
    char detail[FINDINGS_TEXT_BYTES];
};

/* What an agent makes of the first answer with series. */
struct outcome {
    struct batch *batch; /* NULL: no agent can read any answer */
    struct answer_stats stats;
    size_t duplicates;
    struct items items;
    char object[OBJECT_NAME_MAX + 1]; /* name of the AddOnPlacementScore */
};

struct findings {
    char *url;                             /* of /config */
    char *scoring_url;                     /* that agents call; NULL before /config was asked for */
    char unreachable[FINDINGS_TEXT_BYTES]; /* why there is nothing to check; empty if there is */
    struct buf summary;                    /* the scorer as the hub distributes it, a JSON object */
    struct call_row rows[FINDINGS_MAX_ROWS];
    size_t n_rows;
    struct finding findings[RULES];
    size_t n_findings, by_level[RULE_LEVELS];
    struct outcome outcome;
};

void findings_init(struct findings *r);
void findings_done(struct findings *r);
/* The next row, which is ok until a finding is added. Its text is empty. */
struct call_row *findings_add_row(struct findings *r, const char *what);
/* Adds a finding about the last row; only the first of a rule counts. */
void findings_add(struct findings *r, enum rule rule, const char *fmt, ...) PRINTF_LIKE(3, 4);
bool findings_has_problems(const struct findings *r);

/* Appends the report for people, or for programs. -EFBIG. */
MUST_USE int findings_table(const struct findings *r, struct buf *into);
MUST_USE int findings_json(const struct findings *r, struct buf *into);

#endif

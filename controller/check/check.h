/* Checks a scoring API: what the hub and an agent make of its answers, and which rules it breaks. */
#pragma once

#include "controller/placement/items.h"
#include "exporter/base/buf.h"
#include "exporter/http/http.h"
#include "exporter/metric/series.h"
#include "exporter/score/answer.h"
#include "exporter/score/summary.h"

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

struct check_options {
    const char *url;              /* of the scoring API: its base, or its /config */
    struct str token;             /* empty: none */
    const char *ca_file;          /* NULL: the system's CAs */
    int64_t timeout_ms;           /* of each call; 0: that of an agent's round */
    const char *cluster_name;     /* as an agent's --cluster-name */
    const char *dimension_format; /* as of a DynamicScorer */
};

/* Makes all calls, one after the other, and fills *ret, which is zeroed. Blocks. 0 also if there are
 * findings, or if the scoring API cannot be reached (ret->unreachable). -EINVAL if options->url is no URL. */
MUST_USE int check_run(struct findings *ret, const struct check_options *options);

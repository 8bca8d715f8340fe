/* Private to check*.c. */
#ifndef DS_CHECK_CHECK_INTERNAL_H
#define DS_CHECK_CHECK_INTERNAL_H

#include "controller/check/check.h"
#include "controller/check/findings.h"
#include "controller/check/rules.h"
#include "exporter/base/buf.h"
#include "exporter/base/http.h"
#include "exporter/metric/series.h"
#include "exporter/score/answer.h"
#include "exporter/score/error.h"
#include "exporter/score/summary.h"

struct check {
    const struct check_options *options;
    struct findings *findings;
    struct loop *loop;
    struct http *http;
    struct http_tls tls;
    char *origin;           /* scheme, host and port of the URL that is checked */
    char *prefix;           /* the URL of /config without that */
    struct summary summary; /* the scorer's, as an agent would have it */
    char *scoring_url;      /* that is called: at `origin`, whatever host /config names */
};

/* ---- check_call.c ---- */

struct check_request {
    const char *url;
    struct str body;  /* empty: GET */
    struct str token; /* empty: none */
    size_t max_answer;
};

/* One call, blocking. *ret is to be freed with buf_done(&ret->body). -ENOMEM; -EINVAL
 * for a URL that cannot be used. */
MUST_USE int check_call(struct check *c, const struct check_request *rq, struct http_answer *ret);
/* Fills in the row from the answer, whose text describes an error; also checks its Content-Type. */
void check_take_answer(struct check *c, struct call_row *row, const struct http_answer *a);

/* ---- check_config.c ---- */

/* ---- check_series.c ---- */

/* What series to generate, from the query: the labels that its results have, and the points of its range. */
struct series_plan {
    struct str labels[16]; /* slices of the query, or literals */
    size_t n_labels;
    size_t points;
    int64_t from_s, step_s;
};

enum series_kind {
    SERIES_PLAIN,
    SERIES_OF_ONE_POINT, /* the first of them; the others are plain */
    SERIES_WITHOUT_POINTS,
    SERIES_WITH_NAN,
    SERIES_WITH_ODD_LABELS,
    SERIES_TWICE,
};

/* now_s: end of the range. The plan borrows from the summary. */
void series_plan_make(struct series_plan *ret, const struct summary *s, int64_t now_s);
/* Appends the body of a call with n series. -ENOMEM, -EFBIG. */
MUST_USE int series_put_request(struct buf *into, const struct series_plan *p, enum series_kind kind,
                                size_t n);
/* Appends the answer of a scoring API that gives each series a score under the same labels. -ENOMEM,
 * -EFBIG. */
MUST_USE int series_put_answer(struct buf *into, const struct series_plan *p, enum series_kind kind,
                               size_t n);

/* ---- check_answer.c ---- */

/* An answer as an agent reads it. */
struct reading_of_answer {
    enum round_error error; /* ROUND_OK: batch is set */
    enum rule rule;         /* that the error breaks */
    char why[ROUND_REASON_BYTES];
    struct answer_stats stats;
    struct batch *batch;
    size_t duplicates, not_finite;
    char odd_label[200]; /* the first label whose value is no string; empty: none */
};

/* -ENOMEM. */
MUST_USE int answer_read(struct reading_of_answer *ret, const struct check *c, struct str body);
void answer_done(struct reading_of_answer *a);
/* The first series of a that is not in b, by all labels or by all but meta. SIZE_MAX: none. */
size_t answer_new_series(const struct batch *a, const struct batch *b, bool with_meta);

/* ---- check_scoring.c ---- */

/* Makes all calls of the scoring path. -ENOMEM. */
MUST_USE int check_scoring(struct check *c);

#endif

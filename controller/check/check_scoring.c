/* The calls of the scoring path. The first one, with plain series, decides whether there is anything more to
 * ask; the others differ from it in one thing each, so that a failure tells its rule. */
#include "controller/check/check_internal.h"

#include "controller/placement/items.h"
#include "controller/placement/name.h"
#include "exporter/agent/config.h"
#include "exporter/base/loop.h"
#include "exporter/base/text.h"
#include "exporter/metric/series.h"
#include "exporter/score/error.h"
#include "exporter/score/source.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

enum { REQUEST_MAX_BYTES = 256 << 20 };

static const struct str not_json = STR("{\"data\":["), no_data = STR("{\"data\":[]}");

struct scoring_probe {
    const char *what;
    enum rule rule; /* that a failure breaks; RULE_SCORING: the answer tells */
    enum series_kind kind;
    size_t n; /* series */
};

static const struct scoring_probe plain_probe = {"10 series", RULE_SCORING, SERIES_PLAIN, 10},
                                  sourceless_probe = {"no source", RULE_SCORING, SERIES_PLAIN, 0};
static const struct scoring_probe other_probes[] = {
    {"no series", RULE_EMPTY_DATA, SERIES_PLAIN, 0},
    {"a series of one point", RULE_SHORT_SERIES, SERIES_OF_ONE_POINT, 10},
    {"a series without points", RULE_SHORT_SERIES, SERIES_WITHOUT_POINTS, 10},
    {"NaN and infinite values", RULE_NAN_VALUES, SERIES_WITH_NAN, 10},
    {"unusual labels", RULE_LABELS_KEPT, SERIES_WITH_ODD_LABELS, 6},
    {"series with equal labels", RULE_DUPLICATE_SERIES, SERIES_TWICE, 10},
    {"10,000 series", RULE_MANY_SERIES, SERIES_PLAIN, 10000},
};

struct scoring {
    struct check *c;
    const struct scoring_probe *first_probe;
    struct series_plan plan;
    struct buf body;
    struct reading_of_answer first;
};

static int scoring_call(struct scoring *s, const char *what, struct str body, struct str token,
                        struct call_row **ret_row, struct http_answer *ret)
{
    const struct check_request rq = {
        .url = s->c->scoring_url, .body = body, .token = token, .max_answer = limits_default.response_bytes};
    int r = check_call(s->c, &rq, ret);

    if (r < 0)
        return r;
    *ret_row = findings_add_row(s->c->findings, what);
    check_take_answer(s->c, *ret_row, ret);
    return 0;
}

/* ---- What an answer says ---- */

static enum rule scoring_rule_of_failure(const struct scoring_probe *p, const struct http_answer *a)
{
    if (p->rule != RULE_SCORING)
        return p->rule;
    if (a->error == HTTP_TIMEOUT)
        return RULE_SCORING_TIME;
    if (a->error == HTTP_TOO_LARGE)
        return RULE_RESPONSE_SIZE;
    return a->status == 401 || a->status == 403 ? RULE_TOKEN_ACCEPTED : RULE_SCORING;
}

static void scoring_add_failure(struct scoring *s, const struct scoring_probe *p, const struct http_answer *a,
                                const char *text)
{
    enum rule rule = scoring_rule_of_failure(p, a);
    bool no_token = rule == RULE_TOKEN_ACCEPTED && s->c->options->token.n == 0;

    findings_add(s->c->findings, rule, "%s%s", text,
                 no_token ? " (no token was sent; --token-file sends one)" : "");
}

/* Faults of single results. A fault of the first call is no news in another. */
static void scoring_judge_results(struct scoring *s, const struct scoring_probe *p,
                                  const struct reading_of_answer *a)
{
    bool is_first = p == s->first_probe;
    struct findings *findings = s->c->findings;

    if (a->stats.invalid && (is_first || s->first.stats.invalid == 0))
        findings_add(findings, is_first ? a->rule : p->rule, "%s (the agent drops %zu of %zu results)",
                     a->stats.first_invalid, a->stats.invalid, a->stats.results);
    if (*a->odd_label)
        findings_add(findings, RULE_LABEL_STRINGS, "%s", a->odd_label);
    if (a->not_finite && (is_first || s->first.not_finite == 0))
        findings_add(findings, is_first ? RULE_SCORE_FINITE : p->rule,
                     "%zu of %zu scores are NaN or infinite", a->not_finite, series_count(a->batch->set));
}

static void scoring_judge_time(struct scoring *s, const struct scoring_probe *p, double seconds)
{
    int64_t interval_ms = s->c->summary.interval_ms;

    if (seconds * 1000 > (double)interval_ms && (p == s->first_probe || p->rule == RULE_MANY_SERIES))
        findings_add(s->c->findings, p == s->first_probe ? RULE_SCORING_TIME : p->rule,
                     "the answer took %.3g s, the interval is %.3g s", seconds, (double)interval_ms / 1000);
}

static void scoring_judge_first(struct scoring *s, const struct scoring_probe *p,
                                const struct reading_of_answer *a)
{
    struct findings *findings = s->c->findings;

    if (a->duplicates)
        findings_add(findings, RULE_LABELS_DISTINCT, "of %zu results the agent keeps %zu", a->stats.results,
                     series_count(a->batch->set));
    if (a->stats.cut)
        findings_add(findings, RULE_LABEL_LENGTH, "the agent cuts %zu values", a->stats.cut);
    if (a->stats.results == 0 && p->n)
        findings_add(findings, RULE_NO_RESULTS, "%zu series of %zu points each have no result", p->n,
                     s->plan.points);
}

/* The answer that keeps all labels. */
static int scoring_expect(struct scoring *s, const struct scoring_probe *p, struct reading_of_answer *ret)
{
    BUF_AUTO(text, REQUEST_MAX_BYTES);
    int r = series_put_answer(&text, &s->plan, p->kind, p->n);

    return r ?: answer_read(ret, s->c, buf_str(&text));
}

/* Results may be about something else than the series: then their labels say nothing. */
static int scoring_judge_labels(struct scoring *s, const struct scoring_probe *p,
                                const struct reading_of_answer *a)
{
    CLEANUP(answer_done) struct reading_of_answer plain = {.error = ROUND_OK}, sent = {.error = ROUND_OK};
    int r = scoring_expect(s, s->first_probe, &plain) ?: scoring_expect(s, p, &sent);
    size_t changed;
    char labels[FINDINGS_TEXT_BYTES];

    if (r < 0 || answer_new_series(s->first.batch, plain.batch, false) != SIZE_MAX)
        return r;
    changed = answer_new_series(a->batch, sent.batch, false);
    if (changed != SIZE_MAX) {
        answer_describe_series(a->batch, changed, labels);
        findings_add(s->c->findings, p->rule, "no series was sent with these labels: %s", labels);
    } else if (s->first.stats.results == s->first_probe->n && a->stats.results < p->n) {
        findings_add(s->c->findings, p->rule, "%zu of %zu series have no result", p->n - a->stats.results,
                     p->n);
    }
    return 0;
}

static int scoring_keep_first(struct scoring *s, struct reading_of_answer *a)
{
    struct outcome *out = &s->c->findings->outcome;
    int r = items_make(&out->items, a->batch, &s->c->summary);

    if (r < 0)
        return r;
    s->first = *a;
    a->batch = NULL;
    out->batch = batch_ref(s->first.batch);
    out->stats = s->first.stats;
    out->duplicates = s->first.duplicates;
    (void)object_name(str_of(s->c->summary.score_name), out->object);
    if (out->items.clamped)
        findings_add(s->c->findings, RULE_SCORE_RANGE, "%zu of %zu values are clamped", out->items.clamped,
                     out->items.n);
    return 0;
}

static int scoring_judge(struct scoring *s, const struct scoring_probe *p, struct call_row *row,
                         struct reading_of_answer *a)
{
    (void)snprintf(row->text, sizeof(row->text), "%zu result%s, %zu series", a->stats.results,
                   a->stats.results == 1 ? "" : "s", series_count(a->batch->set));
    scoring_judge_results(s, p, a);
    scoring_judge_time(s, p, row->seconds);
    if (p == s->first_probe) {
        scoring_judge_first(s, p, a);
        return scoring_keep_first(s, a);
    }
    return p->kind == SERIES_WITH_ODD_LABELS ? scoring_judge_labels(s, p, a) : 0;
}

/* ---- The calls ---- */

static int scoring_make_body(struct scoring *s, const struct scoring_probe *p)
{
    buf_truncate(&s->body, 0);
    return series_put_request(&s->body, &s->plan, p->kind, p->n);
}

static int scoring_run(struct scoring *s, const struct scoring_probe *p)
{
    CLEANUP(answer_done) struct reading_of_answer a = {.error = ROUND_OK};
    struct http_answer answer = {0};
    struct call_row *row = NULL;
    int r = scoring_make_body(s, p);

    r = r ?: scoring_call(s, p->what, buf_str(&s->body), s->c->options->token, &row, &answer);
    if (r < 0)
        return r;
    if (answer.error != HTTP_OK || answer.status / 100 != 2) {
        scoring_add_failure(s, p, &answer, row->text);
    } else {
        r = answer_read(&a, s->c, buf_str(&answer.body));
        if (r == 0 && a.error != ROUND_OK) {
            text_line(row->text, sizeof(row->text), str_of(a.why));
            findings_add(s->c->findings, p->rule == RULE_SCORING ? a.rule : p->rule, "%s", a.why);
        } else if (r == 0) {
            r = scoring_judge(s, p, row, &a);
        }
    }
    buf_done(&answer.body);
    return r;
}

/* Compares the series of the first call and of another with the same body. */
static int scoring_repeat(struct scoring *s)
{
    CLEANUP(answer_done) struct reading_of_answer a = {.error = ROUND_OK};
    struct http_answer answer = {0};
    struct call_row *row = NULL;
    char labels[FINDINGS_TEXT_BYTES];
    size_t changed = SIZE_MAX;
    int r = scoring_call(s, "the same again", buf_str(&s->body), s->c->options->token, &row, &answer);

    if (r < 0)
        return r;
    if (answer.error != HTTP_OK || answer.status / 100 != 2)
        scoring_add_failure(s, s->first_probe, &answer, row->text);
    else
        r = answer_read(&a, s->c, buf_str(&answer.body));
    buf_done(&answer.body);
    if (r < 0 || (!a.batch && a.error == ROUND_OK))
        return r;
    if (a.error != ROUND_OK) {
        findings_add(s->c->findings, a.rule, "%s", a.why);
        return 0;
    }
    changed = answer_new_series(a.batch, s->first.batch, true);
    (void)snprintf(row->text, sizeof(row->text), "%s",
                   changed == SIZE_MAX ? "the same series" : "other series");
    if (changed == SIZE_MAX)
        return 0;
    answer_describe_series(a.batch, changed, labels);
    findings_add(s->c->findings, RULE_LABELS_STABLE, "new in the second call: %s", labels);
    return 0;
}

/* A call that must be refused. */
static int scoring_refusal(struct scoring *s, const char *what, struct str body, struct str token,
                           enum rule rule)
{
    struct http_answer answer = {0};
    struct call_row *row = NULL;
    int r = scoring_call(s, what, body, token, &row, &answer);
    long status = answer.status;
    bool refused = rule == RULE_TOKEN_REFUSED ? status == 401 || status == 403 : status / 100 == 4;

    if (r == 0 && (answer.error != HTTP_OK || !refused))
        findings_add(s->c->findings, rule, "%s", row->text);
    buf_done(&answer.body);
    return r;
}

static int scoring_refusals(struct scoring *s, bool has_source)
{
    struct str token = s->c->options->token;
    int r = 0;

    if (has_source)
        r = scoring_refusal(s, "a body cut short", not_json, token, RULE_MALFORMED_BODY);
    if (r < 0 || token.n == 0)
        return r;
    r = scoring_refusal(s, "without the token", no_data, STR(""), RULE_TOKEN_REFUSED);
    return r
               ?: scoring_refusal(s, "a wrong token", no_data, STR("not-the-token-of-this-scoring-api"),
                                  RULE_TOKEN_REFUSED);
}

int check_scoring(struct check *c)
{
    bool has_source = c->summary.source.type != SOURCE_NONE;
    struct scoring s = {.c = c, .first_probe = has_source ? &plain_probe : &sourceless_probe};
    int r;

    buf_init(&s.body, REQUEST_MAX_BYTES);
    series_plan_make(&s.plan, &c->summary, loop_wall(c->loop).ms / 1000);
    r = scoring_run(&s, s.first_probe);
    if (r == 0 && s.first.batch)
        r = scoring_repeat(&s);
    for (size_t i = 0; r == 0 && s.first.batch && has_source && i < ARRAY_SIZE(other_probes); i++)
        r = scoring_run(&s, &other_probes[i]);
    if (r == 0 && s.first.batch)
        r = scoring_refusals(&s, has_source);
    buf_done(&s.body);
    answer_done(&s.first);
    return r;
}

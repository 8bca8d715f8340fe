/* The calls of the scoring path. The first one, with plain series, decides whether there is anything more to
 * ask; the others differ from it in one thing each, so that a failure tells its rule. */
#include "controller/check/check_internal.h"
#include "controller/placement/items.h"
#include "exporter/agent/config.h"
#include "exporter/base/json.h"
#include "exporter/base/loop.h"
#include "exporter/base/text.h"
#include "exporter/metric/series.h"
#include "exporter/score/answer.h"
#include "exporter/score/error.h"
#include "exporter/ui/ranking.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

/* Generated series, in the JSON of Prometheus. The same plan gives the same bytes. */

enum { MAX_POINTS = 240, LONG_VALUE_BYTES = 1000 };

/* ---- Labels ---- */

static bool is_label_char(char c, bool first)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (!first && c >= '0' && c <= '9');
}

static struct str series_word(struct str *rest)
{
    struct str word;

    while (rest->n && !is_label_char(*rest->p, true))
        *rest = (struct str){rest->p + 1, rest->n - 1};
    word = (struct str){rest->p, 0};
    while (word.n < rest->n && is_label_char(word.p[word.n], false))
        word.n++;
    *rest = (struct str){rest->p + word.n, rest->n - word.n};
    return word;
}

/* The labels in the parentheses after the first `by` of a query; false if there is none. */
static bool series_find_grouping(struct series_plan *p, struct str query)
{
    struct str word;

    while ((word = series_word(&query)).n) {
        struct str list = str_trim(query);
        const char *end = list.n && *list.p == '(' ? memchr(list.p, ')', list.n) : NULL;

        if (!end || !str_eq_nocase(word, STR("by")))
            continue;
        list.n = (size_t)(end - list.p);
        while (p->n_labels < ARRAY_SIZE(p->labels) && (word = series_word(&list)).n)
            p->labels[p->n_labels++] = word;
        return p->n_labels > 0;
    }
    return false;
}

void series_plan_make(struct series_plan *ret, const struct summary *s, int64_t now_s)
{
    static const struct str usual[] = {STR("instance"), STR("job"), STR("namespace"), STR("node"),
                                       STR("pod")};
    const struct summary_source *from = &s->source;
    int64_t step = from->step_s ?: 60, steps = (from->range_s ?: 3600) / step;

    *ret = (struct series_plan){.step_s = step};
    ret->points = steps < MAX_POINTS ? (size_t)steps + 1 : MAX_POINTS;
    ret->from_s = now_s - (int64_t)(ret->points - 1) * step;
    if (series_find_grouping(ret, str_of(cstr(from->query))))
        return;
    memcpy(ret->labels, usual, sizeof(usual));
    ret->n_labels = ARRAY_SIZE(usual);
}

static int series_put_odd_value(struct buf *into, size_t i)
{
    static const struct str values[] = {
        STR("größe-日本-\xf0\x9f\x90\xa7"),   /* two, three and four bytes a character */
        STR("a \"quoted\\ value\", 'twice'"), /* what JSON escapes */
        STR("line\nand\ttab"),                /* and control characters */
        STR("<b>&amp;</b>${pod}%7B{{node}}"), /* what others give a meaning */
        STR("12"),                            /* looks like a number */
    };
    char filler[LONG_VALUE_BYTES];

    if (i % (ARRAY_SIZE(values) + 1) < ARRAY_SIZE(values))
        return buf_put_json(into, values[i % (ARRAY_SIZE(values) + 1)]);
    memset(filler, 'x', sizeof(filler));
    return buf_put_json(into, (struct str){filler, sizeof(filler)});
}

/* The last label differs from series to series, the others do not always. */
static int series_put_value(struct buf *into, const struct series_plan *p, enum series_kind kind, size_t i,
                            size_t k)
{
    bool is_last = k + 1 == p->n_labels;

    if (is_last && kind == SERIES_WITH_ODD_LABELS)
        return series_put_odd_value(into, i);
    if (kind == SERIES_TWICE)
        i /= 2;
    return buf_printf(into, "\"%.*s-%zu\"", STR_ARG(p->labels[k]), is_last ? i : i % 3);
}

static int series_put_metric(struct buf *into, const struct series_plan *p, enum series_kind kind, size_t i)
{
    int r = buf_putc(into, '{');

    for (size_t k = 0; k < p->n_labels && r == 0; k++)
        r = buf_printf(into, "%s\"%.*s\":", k ? "," : "", STR_ARG(p->labels[k]))
                ?: series_put_value(into, p, kind, i, k);
    if (kind == SERIES_WITH_ODD_LABELS)
        r = r ?: buf_puts(into, ",\"a_label_of_another_exporter\":\"1\"");
    return r ?: buf_putc(into, '}');
}

/* ---- Values ---- */

static int series_put_point(struct buf *into, const struct series_plan *p, enum series_kind kind, size_t i,
                            size_t k)
{
    static const char *const words[] = {"NaN", "+Inf", "-Inf"};
    long long at = p->from_s + (int64_t)k * p->step_s;

    /* The first series has nothing else, the others have some. */
    if (kind == SERIES_WITH_NAN && (i == 0 || (i + k) % 5 == 0))
        return buf_printf(into, "[%lld,\"%s\"]", at, words[i < 3 ? 0 : i % ARRAY_SIZE(words)]);
    return buf_printf(into, "[%lld,\"0.%03zu\"]", at, 100 + (i * 37 + k * k * 13 + k * 7) % 800);
}

static size_t series_points(const struct series_plan *p, enum series_kind kind, size_t i)
{
    if (i == 0 && kind == SERIES_OF_ONE_POINT)
        return 1;
    return i == 0 && kind == SERIES_WITHOUT_POINTS ? 0 : p->points;
}

static int series_put(struct buf *into, const struct series_plan *p, enum series_kind kind, size_t i)
{
    size_t n = series_points(p, kind, i);
    int r = buf_puts(into, "{\"metric\":") ?: series_put_metric(into, p, kind, i);

    r = r ?: buf_puts(into, ",\"values\":[");
    for (size_t k = p->points - n; k < p->points && r == 0; k++)
        r = (k > p->points - n ? buf_putc(into, ',') : 0) ?: series_put_point(into, p, kind, i, k);
    return r ?: buf_puts(into, "]}");
}

int series_put_request(struct buf *into, const struct series_plan *p, enum series_kind kind, size_t n)
{
    int r = buf_puts(into, "{\"data\":[");

    for (size_t i = 0; i < n && r == 0; i++)
        r = (i ? buf_putc(into, ',') : 0) ?: series_put(into, p, kind, i);
    return r ?: buf_puts(into, "]}");
}

int series_put_answer(struct buf *into, const struct series_plan *p, enum series_kind kind, size_t n)
{
    int r = buf_puts(into, "{\"results\":[");

    for (size_t i = 0; i < n && r == 0; i++)
        r = buf_puts(into, i ? ",{\"score\":0,\"metric\":" : "{\"score\":0,\"metric\":")
                ?: series_put_metric(into, p, kind, i) ?: buf_putc(into, '}');
    return r ?: buf_puts(into, "]}");
}

/* What an agent makes of an answer: read by the agent's own code, under its default limits. */

void answer_done(struct reading_of_answer *a)
{
    a->batch = batch_unref(a->batch);
}

/* Which rule a result breaks that the agent drops. */
static enum rule answer_rule_of_drop(const struct answer_stats *s)
{
    if (strstr(s->first_invalid, "].metric"))
        return RULE_LABEL_STRINGS;
    return strstr(s->first_invalid, "].score") ? RULE_SCORE : RULE_RESULTS;
}

static void answer_set_rule(struct reading_of_answer *a)
{
    if (a->error == ROUND_JSON)
        a->rule = RULE_JSON;
    else if (a->stats.results && a->stats.invalid == a->stats.results)
        a->rule = answer_rule_of_drop(&a->stats);
    else
        a->rule = RULE_RESULTS;
}

/* Looks at the labels of one result as they are written: the agent takes some that are no strings. */
static void answer_scan_metric(struct jr *j, size_t result, char out[200])
{
    struct str key;

    if (jr_peek(j) != JR_OBJECT) {
        (void)jr_skip(j, NULL);
        return;
    }
    (void)jr_object(j);
    while (jr_member(j, &key)) {
        if (jr_peek(j) != JR_STRING && !*out)
            (void)snprintf(out, 200, "results[%zu].metric.%.*s: expected a string", result,
                           (int)size_min(key.n, 100), key.p);
        (void)jr_skip(j, NULL);
    }
}

static void answer_scan_results(struct jr *j, char out[200])
{
    struct str key;

    for (size_t i = 0; jr_item(j); i++) {
        if (jr_peek(j) != JR_OBJECT) {
            (void)jr_skip(j, NULL);
            continue;
        }
        (void)jr_object(j);
        while (jr_member(j, &key))
            if (jr_key_is(key, "metric"))
                answer_scan_metric(j, i, out);
            else
                (void)jr_skip(j, NULL);
    }
}

static void answer_scan(struct str body, char out[200])
{
    struct jr j;
    struct str key;

    jr_init(&j, body, JR_LENIENT_UTF8 | JR_NAN_WORDS);
    if (!jr_object(&j))
        return;
    while (jr_member(&j, &key)) {
        if (jr_key_is(key, "results") && jr_peek(&j) == JR_ARRAY && jr_array(&j))
            answer_scan_results(&j, out);
        else
            (void)jr_skip(&j, NULL);
    }
}

int answer_read(struct reading_of_answer *ret, const struct check *c, struct str body)
{
    const struct batch_options o = {
        .cluster_name = c->options->cluster_name,
        .score_name = c->summary.score_name,
        .max_series = (size_t)limits_default.series_per_scorer,
    };
    CLEANUP(cleanup_batch_builder_free) struct batch_builder *b = NULL;
    int r = batch_builder_new(&b, &o);

    *ret = (struct reading_of_answer){.error = ROUND_OK};
    if (r < 0)
        return r;
    batch_begin(b);
    ret->error = answer_parse(body, b, (size_t)limits_default.label_value_bytes, &ret->stats, ret->why);
    if (ret->error == ROUND_MEMORY)
        return -ENOMEM;
    if (ret->error != ROUND_OK) {
        answer_set_rule(ret);
        return 0;
    }
    if (ret->stats.invalid)
        ret->rule = answer_rule_of_drop(&ret->stats);
    answer_scan(body, ret->odd_label);
    r = batch_seal(b, loop_wall(c->loop), &ret->batch, &ret->duplicates);
    for (size_t i = 0; r == 0 && i < series_count(ret->batch->set); i++)
        ret->not_finite += isfinite(ret->batch->values[i]) ? 0 : 1;
    return r;
}

static bool answer_same_labels(const struct str a[DS_LABELS], const struct str b[DS_LABELS], bool with_meta)
{
    for (unsigned i = 0; i < DS_LABELS; i++)
        if ((with_meta || i != DS_META) && !str_eq(a[i], b[i]))
            return false;
    return true;
}

size_t answer_new_series(const struct batch *a, const struct batch *b, bool with_meta)
{
    for (size_t i = 0; i < series_count(a->set); i++) {
        struct str own[DS_LABELS], other[DS_LABELS];
        bool found = false;

        series_labels(a->set, i, own);
        for (size_t k = 0; k < series_count(b->set) && !found; k++) {
            series_labels(b->set, k, other);
            found = answer_same_labels(own, other, with_meta);
        }
        if (!found)
            return i;
    }
    return SIZE_MAX;
}

/* The labels of a series that are set: pod="a", meta="b". Cut in the middle if they are long. */
static void answer_describe_series(const struct batch *b, size_t series, char out[FINDINGS_TEXT_BYTES])
{
    struct shown_label labels[SHOWN_LABELS];
    size_t n = shown_labels(b, series, labels);
    BUF_AUTO(text, 1 << 20);
    int r = n ? 0 : buf_puts(&text, "no labels");

    for (size_t i = 0; i < n && r == 0; i++)
        r = buf_printf(&text, "%s%s=", i ? ", " : "", labels[i].name) ?: buf_put_json(&text, labels[i].value);
    text_line(out, FINDINGS_TEXT_BYTES, buf_str(&text));
}

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

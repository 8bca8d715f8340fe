#include "controller/check/check.h"

#include "exporter/agent/config.h"
#include "exporter/base/clock.h"
#include "exporter/base/json.h"
#include "exporter/ui/out.h"

#include <math.h>
#include <stdio.h>

/* ---- Generated series, in the JSON of Prometheus ---- */

enum { MAX_POINTS = 240, LONG_VALUE_BYTES = 1000 };

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

static void series_put_odd_value(struct out *o, size_t i)
{
    static const struct str values[] = {
        STR("größe-日本-\xf0\x9f\x90\xa7"),   /* two, three and four bytes a character */
        STR("a \"quoted\\ value\", 'twice'"), /* what JSON escapes */
        STR("line\nand\ttab"),                /* and control characters */
        STR("<b>&amp;</b>${pod}%7B{{node}}"), /* what others give a meaning */
        STR("12"),                            /* looks like a number */
    };
    char filler[LONG_VALUE_BYTES];

    i %= ARRAY_SIZE(values) + 1;
    memset(filler, 'x', sizeof(filler));
    value_text(o, i < ARRAY_SIZE(values) ? values[i] : (struct str){filler, sizeof(filler)});
}

/* The last label differs from series to series, the others do not always. */
static void series_put_metric(struct out *o, const struct series_plan *p, enum series_kind kind, size_t i)
{
    size_t of = kind == SERIES_TWICE ? i / 2 : i;

    out_puts(o, "{");
    for (size_t k = 0; k < p->n_labels; k++) {
        bool is_last = k + 1 == p->n_labels;

        out_printf(o, "%s\"%.*s\":", k ? "," : "", STR_ARG(p->labels[k]));
        if (is_last && kind == SERIES_WITH_ODD_LABELS)
            series_put_odd_value(o, i);
        else
            out_printf(o, "\"%.*s-%zu\"", STR_ARG(p->labels[k]), is_last ? of : of % 3);
    }
    out_puts(o, kind == SERIES_WITH_ODD_LABELS ? ",\"a_label_of_another_exporter\":\"1\"}" : "}");
}

static void series_put_point(struct out *o, const struct series_plan *p, enum series_kind kind, size_t i,
                             size_t k)
{
    static const char *const words[] = {"NaN", "+Inf", "-Inf"};
    long long at = p->from_s + (int64_t)k * p->step_s;
    size_t tenths = 100 + (i * 37 + k * k * 13 + k * 7) % 800; /* as percentages are */

    /* The first series has nothing else, the others have some. */
    if (kind == SERIES_WITH_NAN && (i == 0 || (i + k) % 5 == 0))
        out_printf(o, "[%lld,\"%s\"]", at, words[i < 3 ? 0 : i % ARRAY_SIZE(words)]);
    else
        out_printf(o, "[%lld,\"%zu.%zu\"]", at, tenths / 10, tenths % 10);
}

static void series_put(struct out *o, const struct series_plan *p, enum series_kind kind, size_t i)
{
    size_t n = i > 0                           ? p->points
               : kind == SERIES_OF_ONE_POINT   ? 1
               : kind == SERIES_WITHOUT_POINTS ? 0
                                               : p->points;

    out_puts(o, "{\"metric\":");
    series_put_metric(o, p, kind, i);
    out_puts(o, ",\"values\":[");
    for (size_t k = p->points - n; k < p->points; k++) {
        out_puts(o, k > p->points - n ? "," : "");
        series_put_point(o, p, kind, i, k);
    }
    out_puts(o, "]}");
}

void series_put_request(struct buf *into, const struct series_plan *p, enum series_kind kind, size_t n)
{
    struct out o = out_begin(into);

    out_puts(&o, "{\"data\":[");
    for (size_t i = 0; i < n; i++) {
        out_puts(&o, i ? "," : "");
        series_put(&o, p, kind, i);
    }
    out_puts(&o, "]}");
    (void)!out_end(&o);
}

void series_put_answer(struct buf *into, const struct series_plan *p, enum series_kind kind, size_t n)
{
    struct out o = out_begin(into);

    out_puts(&o, "{\"results\":[");
    for (size_t i = 0; i < n; i++) {
        out_puts(&o, i ? ",{\"score\":0,\"metric\":" : "{\"score\":0,\"metric\":");
        series_put_metric(&o, p, kind, i);
        out_puts(&o, "}");
    }
    out_puts(&o, "]}");
    (void)!out_end(&o);
}

/* ---- What an agent makes of an answer: read by the agent's own code, under its default limits ---- */

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

/* body: an object, as the agent has read it. */
static void answer_scan(struct str body, char out[200])
{
    struct jr j;
    struct str key;

    jr_init(&j, body, JR_LENIENT_UTF8 | JR_NAN_WORDS);
    (void)jr_object(&j);
    while (jr_member(&j, &key)) {
        if (jr_key_is(key, "results") && jr_array(&j))
            answer_scan_results(&j, out);
        else
            (void)jr_skip(&j, NULL);
    }
}

void answer_read(struct reading_of_answer *ret, const char *cluster_name, const char *score_name,
                 struct str body)
{
    const struct batch_options o = {.cluster_name = cluster_name,
                                    .score_name = score_name,
                                    .max_series = (size_t)limits_default.series_per_scorer};
    CLEANUP(cleanup_batch_builder_free) struct batch_builder *b = NULL;
    bool all_dropped;

    *ret = (struct reading_of_answer){.error = ROUND_OK};
    (void)!batch_builder_new(&b, &o);
    batch_begin(b);
    ret->error = answer_parse(body, b, (size_t)limits_default.label_value_bytes, &ret->stats, ret->why);
    all_dropped = ret->stats.results && ret->stats.invalid == ret->stats.results;
    if (ret->error == ROUND_JSON)
        ret->rule = RULE_JSON;
    else if (ret->error != ROUND_OK && !all_dropped)
        ret->rule = RULE_RESULTS;
    else if (ret->stats.invalid)
        ret->rule = answer_rule_of_drop(&ret->stats);
    if (ret->error != ROUND_OK)
        return;
    answer_scan(body, ret->odd_label);
    (void)!batch_seal(b, (unix_ms){0}, &ret->batch, &ret->duplicates);
    for (size_t i = 0; i < series_count(ret->batch->set); i++)
        ret->not_finite += isfinite(ret->batch->values[i]) ? 0 : 1;
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

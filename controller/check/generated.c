/* Writes the JSON of Prometheus, series by series; the same plan gives the same bytes. Owns nothing. On the
 * one thread of check-scorer. */
#include "controller/check/generated.h"

#include "exporter/base/escape.h"
#include "exporter/base/regex.h"
#include "exporter/ui/member.h"

#include <ctype.h>

enum { MAX_POINTS = 240, LONG_VALUE_BYTES = 1000 };

/* The labels in the parentheses after the first `by` of a query; none without. */
static void series_find_grouping(struct series_plan *p, struct str query)
{
    static const struct str pattern = STR("(?is).*?\\bby\\s*\\(\\s*([a-z_]\\w*[\\w\\s,]*)\\).*");
    struct regex_matcher *m = regex_matcher_new();
    struct str list = {0};
    struct regex *x;
    char why[REGEX_WHY_BYTES];

    if (regex_new(&x, pattern, why) < 0)
        abort();
    if (regex_match(m, x, query) > 0)
        list = regex_group(m, STR("1"));
    for (size_t i = 0, n; i < list.n && p->n_labels < ARRAY_SIZE(p->labels); i += n ? n : 1) {
        for (n = 0; i + n < list.n && (isalnum((unsigned char)list.p[i + n]) || list.p[i + n] == '_');)
            n++;
        if (n)
            p->labels[p->n_labels++] = (struct str){list.p + i, n};
    }
    (void)regex_free(x);
    (void)regex_matcher_free(m);
}

void series_plan_make(struct series_plan *ret, const struct summary *s, int64_t now_s)
{
    static const struct str usual[] = {STR("instance"), STR("job"), STR("namespace"), STR("node"),
                                       STR("pod")};
    const struct summary_source none = {.range_s = 3600, .step_s = 60};
    const struct summary_source *from = s->n_sources ? s->sources : &none;
    int64_t step = from->step_s, steps = from->range_s / step;

    *ret = (struct series_plan){.step_s = step};
    ret->points = steps < MAX_POINTS ? (size_t)steps + 1 : MAX_POINTS;
    ret->from_s = now_s - (int64_t)(ret->points - 1) * step;
    series_find_grouping(ret, str_of(cstr(from->query)));
    if (ret->n_labels)
        return;
    memcpy(ret->labels, usual, sizeof(usual));
    ret->n_labels = ARRAY_SIZE(usual);
}

static void series_put_odd_value(struct buf *o, size_t i)
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
    buf_put_json(o, i < ARRAY_SIZE(values) ? values[i] : (struct str){filler, sizeof(filler)});
}

/* The last label differs from series to series, the others do not always. */
static void series_put_metric(struct buf *o, const struct series_plan *p, enum series_kind kind, size_t i)
{
    size_t of = kind == SERIES_TWICE ? i / 2 : i;

    buf_puts(o, "{");
    for (size_t k = 0; k < p->n_labels; k++) {
        bool is_last = k + 1 == p->n_labels;

        buf_printf(o, "%s\"%.*s\":", k ? "," : "", STR_ARG(p->labels[k]));
        if (is_last && kind == SERIES_WITH_ODD_LABELS)
            series_put_odd_value(o, i);
        else
            buf_printf(o, "\"%.*s-%zu\"", STR_ARG(p->labels[k]), is_last ? of : of % 3);
    }
    buf_puts(o, kind == SERIES_WITH_ODD_LABELS ? ",\"a_label_of_another_exporter\":\"1\"}" : "}");
}

static void series_put_point(struct buf *o, const struct series_plan *p, enum series_kind kind, size_t i,
                             size_t k)
{
    static const char *const words[] = {"NaN", "+Inf", "-Inf"};
    long long at = p->from_s + (int64_t)k * p->step_s;
    size_t tenths = 100 + (i * 37 + k * k * 13 + k * 7) % 800; /* as percentages are */

    /* The first series has nothing else, the others have some. */
    member_item(o);
    if (kind == SERIES_WITH_NAN && (i == 0 || (i + k) % 5 == 0))
        buf_printf(o, "[%lld,\"%s\"]", at, words[i < 3 ? 0 : i % ARRAY_SIZE(words)]);
    else
        buf_printf(o, "[%lld,\"%zu.%zu\"]", at, tenths / 10, tenths % 10);
}

static void series_put(struct buf *o, const struct series_plan *p, enum series_kind kind, size_t i)
{
    size_t n = p->points;

    if (i == 0 && kind == SERIES_OF_ONE_POINT)
        n = 1;
    else if (i == 0 && kind == SERIES_WITHOUT_POINTS)
        n = 0;
    buf_puts(o, "{\"metric\":");
    series_put_metric(o, p, kind, i);
    member_list(o, "values");
    for (size_t k = p->points - n; k < p->points; k++)
        series_put_point(o, p, kind, i, k);
    buf_puts(o, "]}");
}

void series_put_request(struct buf *into, const struct series_plan *p, enum series_kind kind, size_t n)
{
    struct buf_mark mark = buf_mark(into);

    buf_puts(into, "{\"data\":[");
    for (size_t i = 0; i < n; i++) {
        member_item(into);
        series_put(into, p, kind, i);
    }
    buf_puts(into, "]}");
    if (buf_failed(into) < 0)
        buf_rollback(into, mark);
}

void series_put_answer(struct buf *into, const struct series_plan *p, enum series_kind kind, size_t n)
{
    struct buf_mark mark = buf_mark(into);

    buf_puts(into, "{\"results\":[");
    for (size_t i = 0; i < n; i++) {
        member_item(into);
        buf_puts(into, "{\"score\":0,\"metric\":");
        series_put_metric(into, p, kind, i);
        buf_puts(into, "}");
    }
    buf_puts(into, "]}");
    if (buf_failed(into) < 0)
        buf_rollback(into, mark);
}

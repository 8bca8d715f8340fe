/* Generated series, in the JSON of Prometheus. The same plan gives the same bytes. */
#include "controller/check/check_internal.h"

#include "exporter/base/json.h"

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

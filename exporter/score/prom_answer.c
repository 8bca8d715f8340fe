/* Reads what the Prometheus query API answers: finds the members, checks every byte of data.result by
 * skipping it, and never decodes it into a tree. Owns nothing; on the loop, or on the worker for a large
 * response.
 *
 *     {"status":"success","data":{"resultType":"matrix","result":[ SERIES, SERIES ]},"warnings":["..."]} */
#include "exporter/score/prom_answer.h"

#include "exporter/base/buf.h"
#include "exporter/base/json.h"
#include "exporter/base/text.h"

#include <errno.h>
#include <stdio.h>

/* The members of the response as slices of the body. */
struct parts {
    struct str status, error_type, error, type;
    struct str result; /* data.result with its brackets */
    bool has_data, has_result;
    bool is_partial; /* as VictoriaMetrics says if some of its storage did not answer */
    enum jr_type result_kind;
    size_t items, warnings;
    size_t objects; /* items before the first that is not an object */
    struct str warning;
};

/* Leaves *ret alone if the value is not a string. */
static void read_if_string(struct jr *j, struct str *ret)
{
    if (jr_peek(j) == JR_STRING)
        (void)jr_string(j, ret);
    else
        (void)jr_skip(j, NULL);
}

static void read_warnings(struct jr *j, struct parts *p)
{
    struct str s;

    if (jr_peek(j) != JR_ARRAY) {
        (void)jr_skip(j, NULL);
        return;
    }
    (void)jr_array(j);
    while (jr_item(j)) {
        s = STR("");
        read_if_string(j, &s);
        if (s.n && p->warnings++ == 0)
            p->warning = s;
    }
}

static void read_is_partial(struct jr *j, struct parts *p)
{
    p->is_partial = jr_peek(j) == JR_TRUE;
    (void)jr_skip(j, NULL);
}

/* Skipping data.result validates every byte of it. */
static void find_result(struct jr *j, struct parts *p)
{
    const char *from;

    p->result_kind = jr_peek(j);
    if (p->result_kind != JR_ARRAY) {
        (void)jr_skip(j, NULL);
        return;
    }
    from = j->p;
    (void)jr_array(j);
    p->items = p->objects = 0;
    while (jr_item(j)) {
        p->objects += p->objects == p->items && jr_peek(j) == JR_OBJECT;
        (void)jr_skip(j, NULL);
        p->items++;
    }
    if (!j->error)
        p->result = (struct str){from, (size_t)(j->p - from)};
}

/* Of two members with the same name, parsers take either: what is scored must be what others see. */
static bool is_first(struct jr *j, bool *seen, const char *error)
{
    if (*seen)
        (void)jr_fail(j, error);
    *seen = true;
    return !j->error;
}

static void read_data(struct jr *j, struct parts *p)
{
    struct str key;

    if (jr_peek(j) != JR_OBJECT) {
        (void)jr_skip(j, NULL);
        return;
    }
    (void)jr_object(j);
    while (jr_member(j, &key)) {
        if (jr_key_is(key, "result") && is_first(j, &p->has_result, "duplicate \"result\""))
            find_result(j, p);
        else if (jr_key_is(key, "resultType"))
            read_if_string(j, &p->type);
        else
            (void)jr_skip(j, NULL);
    }
}

/* False if the body is not a JSON object. */
static bool read_parts(struct jr *j, struct parts *p)
{
    struct str key;

    *p = (struct parts){.result_kind = JR_NONE};
    (void)jr_object(j);
    while (jr_member(j, &key)) {
        if (jr_key_is(key, "data") && is_first(j, &p->has_data, "duplicate \"data\""))
            read_data(j, p);
        else if (jr_key_is(key, "status"))
            read_if_string(j, &p->status);
        else if (jr_key_is(key, "errorType"))
            read_if_string(j, &p->error_type);
        else if (jr_key_is(key, "error"))
            read_if_string(j, &p->error);
        else if (jr_key_is(key, "warnings"))
            read_warnings(j, p);
        else if (jr_key_is(key, "isPartial"))
            read_is_partial(j, p);
        else
            (void)jr_skip(j, NULL);
    }
    return jr_end(j);
}

/* "<errorType>: <error>" */
static void put_error(const struct parts *p, char why[ROUND_REASON_BYTES])
{
    char type[64];
    size_t n = 0;

    text_line_json(type, sizeof(type), p->error_type);
    if (*type)
        n = (size_t)snprintf(why, ROUND_REASON_BYTES, "%s: ", type);
    text_line_json(why + n, ROUND_REASON_BYTES - n, p->error);
}

bool prom_answer_error(struct str body, char why[ROUND_REASON_BYTES])
{
    struct jr j;
    struct parts p;

    jr_init(&j, body, JR_LENIENT_UTF8);
    if (!read_parts(&j, &p) || !str_eq(p.status, STR("error")) || (p.error.n == 0 && p.error_type.n == 0))
        return false;
    put_error(&p, why);
    return true;
}

/* Rewrites the item `{"metric":M,"value":V}` of an instant vector as the series `{"metric":M,"values":[V]}`,
 * which is what scoring APIs expect. */
static int put_vector_item(struct jr *j, struct prom_answer *a)
{
    struct buf *out = &a->made;
    struct str key, metric = STR("{}"), value = {0};
    (void)jr_object(j);
    while (jr_member(j, &key)) {
        struct str span;
        if (!jr_skip(j, &span))
            break;
        if (jr_key_is(key, "metric"))
            metric = span;
        else if (jr_key_is(key, "value"))
            value = span;
    }
    if (value.n == 0) {
        a->n_dropped++; /* a native histogram has no single value */
        return 0;
    }
    if (metric.p[0] != '{' || value.p[0] != '[')
        return -EINVAL;
    text_join(out, ",");
    buf_puts(out, "{\"metric\":");
    buf_put_str(out, metric);
    buf_puts(out, ",\"values\":[");
    buf_put_str(out, value);
    buf_puts(out, "]}");
    if (buf_failed(out) == 0)
        a->n_series++;
    return buf_failed(out);
}

/* [time, value], as one series without labels. */
static enum round_error prom_read_scalar(const struct parts *p, struct prom_answer *a,
                                         char why[ROUND_REASON_BYTES])
{
    if (p->items != 2)
        return round_error_because(why, ROUND_SHAPE,
                                   "invalid query response: data.result: expected [time, value]");
    buf_puts(&a->made, "{\"metric\":{},\"values\":[");
    buf_put_str(&a->made, p->result);
    buf_puts(&a->made, "]}");
    if (buf_failed(&a->made) < 0)
        return round_error_because(why, ROUND_MEMORY, "out of memory");
    a->n_series = 1;
    a->series = buf_str(&a->made);
    return ROUND_OK;
}

static enum round_error prom_read_vector(const struct parts *p, struct prom_answer *a,
                                         char why[ROUND_REASON_BYTES])
{
    struct jr j;
    size_t i = 0;
    int r = 0;

    jr_init(&j, p->result, JR_STRICT);
    (void)jr_array(&j);
    for (; r == 0 && jr_item(&j); i++)
        r = put_vector_item(&j, a);
    if (r == -EINVAL)
        return round_error_because(why, ROUND_SHAPE,
                                   "invalid query response: data.result[%zu]: expected an object \"metric\" "
                                   "and a list \"value\"",
                                   i - 1);
    if (r < 0)
        return round_error_because(why, ROUND_MEMORY, "out of memory");
    a->series = buf_str(&a->made);
    return ROUND_OK;
}

/* As it came. */
static void prom_read_matrix(const struct parts *p, struct prom_answer *a)
{
    a->series = str_trim((struct str){p->result.p + 1, p->result.n - 2}); /* without the brackets */
    a->n_series = p->items;
}

static enum round_error prom_read_result(const struct parts *p, struct prom_answer *a,
                                         char why[ROUND_REASON_BYTES])
{
    char type[64];

    if (p->result_kind == JR_NULL)
        return ROUND_OK; /* as Go writes an empty list */
    if (p->result_kind != JR_ARRAY)
        return round_error_because(why, ROUND_SHAPE, "invalid query response: missing list data.result");
    if (str_eq(p->type, STR("scalar")))
        return prom_read_scalar(p, a, why);
    if (p->type.n && !str_eq(p->type, STR("matrix")) && !str_eq(p->type, STR("vector"))) {
        text_line_json(type, sizeof(type), p->type);
        return round_error_because(why, ROUND_SHAPE,
                                   "unsupported result type \"%s\"; expected matrix, vector or scalar", type);
    }
    /* Cheap to check here, where the message can name the item. */
    if (p->objects < p->items)
        return round_error_because(
            why, ROUND_SHAPE, "invalid query response: data.result[%zu]: expected an object", p->objects);
    if (str_eq(p->type, STR("vector")))
        return prom_read_vector(p, a, why);
    prom_read_matrix(p, a);
    return ROUND_OK;
}

static void add_warning(struct prom_answer *a, const char *text)
{
    if (a->warnings++ == 0)
        (void)snprintf(a->warning, sizeof(a->warning), "%s", text);
}

enum round_error prom_answer_parse(struct str body, struct prom_answer *ret, char why[ROUND_REASON_BYTES])
{
    enum round_error error;
    char dropped[128];
    struct jr j;
    struct parts p;

    *ret = (struct prom_answer){.made.max = SIZE_MAX / 2};
    jr_init(&j, body, JR_STRICT);
    if (!read_parts(&j, &p))
        return round_error_of_json(body, &j, "invalid query response", why);
    if (str_eq(p.status, STR("error"))) {
        put_error(&p, why);
        return ROUND_QUERY;
    }
    ret->warnings = p.warnings;
    text_line_json(ret->warning, sizeof(ret->warning), p.warning);
    if (p.is_partial)
        add_warning(ret, "partial result: isPartial is true, so series or samples may be missing");
    error = prom_read_result(&p, ret, why);
    if (ret->n_dropped) {
        (void)snprintf(dropped, sizeof(dropped),
                       "%zu series dropped: an instant query gives native histograms no single value",
                       ret->n_dropped);
        add_warning(ret, dropped);
    }
    return error;
}

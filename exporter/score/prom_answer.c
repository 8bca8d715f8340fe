#include "exporter/score/prom_answer.h"

#include "exporter/base/buf.h"
#include "exporter/base/json.h"
#include "exporter/base/text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

/* The members of the response as slices of the body. */
struct parts {
    struct str status, error_type, error, type;
    struct str result; /* data.result with its brackets */
    bool has_data, has_result;
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
        else
            (void)jr_skip(j, NULL);
    }
    return jr_end(j);
}

static void put_error(const struct parts *p, char why[ROUND_REASON_BYTES])
{
    char type[64];

    text_line_json(type, sizeof(type), p->error_type);
    (void)snprintf(why, ROUND_REASON_BYTES, "%s%s", type, *type ? ": " : "");
    text_line_json(why + strlen(why), ROUND_REASON_BYTES - strlen(why), p->error);
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
static int put_vector_item(struct jr *j, struct buf *out, size_t *series)
{
    struct str key, metric = STR("{}"), value = {0};
    int r;

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
    if (value.n == 0)
        return 0; /* a native histogram has no single value */
    if (metric.p[0] != '{' || value.p[0] != '[')
        return -EINVAL;
    r = buf_puts(out, out->n ? ",{\"metric\":" : "{\"metric\":") ?: buf_put_str(out, metric);
    r = r ?: buf_puts(out, ",\"values\":[") ?: buf_put_str(out, value) ?: buf_puts(out, "]}");
    if (r == 0)
        ++*series;
    return r;
}

PRINTF_LIKE(2, 3) static enum round_error bad_shape(char why[ROUND_REASON_BYTES], const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(why, ROUND_REASON_BYTES, fmt, ap);
    va_end(ap);
    return ROUND_SHAPE;
}

static enum round_error out_of_memory(char why[ROUND_REASON_BYTES])
{
    (void)snprintf(why, ROUND_REASON_BYTES, "out of memory");
    return ROUND_MEMORY;
}

static enum round_error from_vector(const struct parts *p, struct prom_answer *a,
                                    char why[ROUND_REASON_BYTES])
{
    struct jr j;
    size_t i;
    int r = 0;

    jr_init(&j, p->result, JR_STRICT);
    (void)jr_array(&j);
    for (i = 0; r == 0 && jr_item(&j); i++)
        r = put_vector_item(&j, &a->made, &a->n_series);
    if (r == -EINVAL)
        return bad_shape(why,
                         "invalid query response: data.result[%zu]: expected an object \"metric\" and a list "
                         "\"value\"",
                         i - 1);
    if (r < 0)
        return out_of_memory(why);
    a->series = buf_str(&a->made);
    return ROUND_OK;
}

static enum round_error from_scalar(const struct parts *p, struct prom_answer *a,
                                    char why[ROUND_REASON_BYTES])
{
    int r;

    if (p->items != 2)
        return bad_shape(why, "invalid query response: data.result: expected [time, value]");
    r = buf_puts(&a->made, "{\"metric\":{},\"values\":[") ?: buf_put_str(&a->made, p->result);
    r = r ?: buf_puts(&a->made, "]}");
    if (r < 0)
        return out_of_memory(why);
    a->n_series = 1;
    a->series = buf_str(&a->made);
    return ROUND_OK;
}

static enum round_error from_data(const struct parts *p, struct prom_answer *a, char why[ROUND_REASON_BYTES])
{
    char type[64];

    if (p->result_kind == JR_NULL)
        return ROUND_OK; /* as Go writes an empty list */
    if (p->result_kind != JR_ARRAY)
        return bad_shape(why, "invalid query response: missing list data.result");
    if (str_eq(p->type, STR("scalar")))
        return from_scalar(p, a, why);
    if (p->type.n && !str_eq(p->type, STR("matrix")) && !str_eq(p->type, STR("vector"))) {
        text_line_json(type, sizeof(type), p->type);
        return bad_shape(why, "unsupported result type \"%s\"; expected matrix, vector or scalar", type);
    }
    /* Cheap to check here, where the message can name the item. */
    if (p->objects < p->items)
        return bad_shape(why, "invalid query response: data.result[%zu]: expected an object", p->objects);
    if (str_eq(p->type, STR("vector")))
        return from_vector(p, a, why);
    a->series = str_trim((struct str){p->result.p + 1, p->result.n - 2}); /* without the brackets */
    a->n_series = p->items;
    return ROUND_OK;
}

enum round_error prom_answer_parse(struct str body, struct prom_answer *ret, char why[ROUND_REASON_BYTES])
{
    struct prom_answer a = {.made = {.max = SIZE_MAX / 2}};
    struct jr j;
    struct parts p;
    enum round_error e;

    jr_init(&j, body, JR_STRICT);
    if (!read_parts(&j, &p))
        return round_error_of_json(body, &j, "invalid query response", why);
    if (str_eq(p.status, STR("error"))) {
        put_error(&p, why);
        return ROUND_QUERY;
    }
    e = from_data(&p, &a, why);
    if (e != ROUND_OK) {
        prom_answer_done(&a);
        return e;
    }
    a.warnings = p.warnings;
    text_line_json(a.warning, sizeof(a.warning), p.warning);
    *ret = a;
    return ROUND_OK;
}

void prom_answer_done(struct prom_answer *a)
{
    buf_done(&a->made);
    *a = (struct prom_answer){.made = {.max = SIZE_MAX / 2}};
}

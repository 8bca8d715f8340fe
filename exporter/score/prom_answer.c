#include "exporter/score/prom_answer.h"

#include "exporter/base/json.h"
#include "exporter/base/text.h"

#include <errno.h>
#include <stdio.h>

/* The members of the answer as slices of the body. */
struct parts {
    struct str status, error_type, error, type;
    struct str result; /* data.result with its brackets */
    enum jr_type result_kind;
    size_t items, warnings;
    size_t objects; /* of the items, from the first on: as many as come before one that is none */
    struct str warning;
};

/* A string is taken, anything else is passed over. */
static void take_string(struct jr *j, struct str *ret)
{
    if (jr_peek(j) == JR_STRING)
        (void)jr_string(j, ret);
    else
        (void)jr_skip(j, NULL);
}

static void take_warnings(struct jr *j, struct parts *p)
{
    struct str s;

    if (jr_peek(j) != JR_ARRAY) {
        (void)jr_skip(j, NULL);
        return;
    }
    (void)jr_array(j);
    while (jr_item(j)) {
        s = STR("");
        take_string(j, &s);
        if (s.n && p->warnings++ == 0)
            p->warning = s;
    }
}

/* Passes over data.result, which is checked byte by byte on the way, and remembers its inside. */
static void take_result(struct jr *j, struct parts *p)
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

static struct str inside(struct str array)
{
    return str_trim((struct str){array.p + 1, array.n - 2});
}

static void take_data(struct jr *j, struct parts *p)
{
    struct str key;

    if (jr_peek(j) != JR_OBJECT) {
        (void)jr_skip(j, NULL);
        return;
    }
    (void)jr_object(j);
    while (jr_member(j, &key)) {
        if (jr_key_is(key, "result"))
            take_result(j, p);
        else if (jr_key_is(key, "resultType"))
            take_string(j, &p->type);
        else
            (void)jr_skip(j, NULL);
    }
}

/* True when the body is JSON and an object. */
static bool take_all(struct jr *j, struct parts *p)
{
    struct str key;

    *p = (struct parts){.result_kind = JR_NONE};
    (void)jr_object(j);
    while (jr_member(j, &key)) {
        if (jr_key_is(key, "data"))
            take_data(j, p);
        else if (jr_key_is(key, "status"))
            take_string(j, &p->status);
        else if (jr_key_is(key, "errorType"))
            take_string(j, &p->error_type);
        else if (jr_key_is(key, "error"))
            take_string(j, &p->error);
        else if (jr_key_is(key, "warnings"))
            take_warnings(j, p);
        else
            (void)jr_skip(j, NULL);
    }
    return jr_end(j);
}

static void put_error(const struct parts *p, char why[1024])
{
    char type[64];

    text_line_json(type, sizeof(type), p->error_type);
    (void)snprintf(why, 1024, "%s%s", type, *type ? ": " : "");
    text_line_json(why + strlen(why), 1024 - strlen(why), p->error);
}

bool prom_answer_error(struct str body, char why[1024])
{
    struct jr j;
    struct parts p;

    jr_init(&j, body, JR_LENIENT_UTF8);
    if (!take_all(&j, &p) || !str_eq(p.status, STR("error")) || (p.error.n == 0 && p.error_type.n == 0))
        return false;
    put_error(&p, why);
    return true;
}

/* `{"metric":M,"values":[V]}` for one element `{"metric":M,"value":V}` of an instant vector, since
 * scoring APIs know series. */
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
        return 0; /* a native histogram: it has no single value */
    if (metric.p[0] != '{' || value.p[0] != '[')
        return -EINVAL;
    r = buf_puts(out, out->n ? ",{\"metric\":" : "{\"metric\":");
    if (r == 0)
        r = buf_put_str(out, metric);
    if (r == 0)
        r = buf_puts(out, ",\"values\":[");
    if (r == 0)
        r = buf_put_str(out, value);
    if (r == 0)
        r = buf_puts(out, "]}");
    if (r == 0)
        ++*series;
    return r;
}

static enum round_error out_of_memory(char why[1024])
{
    (void)snprintf(why, 1024, "out of memory");
    return ROUND_MEMORY;
}

static enum round_error from_vector(const struct parts *p, struct prom_answer *a, char why[1024])
{
    struct jr j;
    size_t i;
    int r = 0;

    jr_init(&j, p->result, JR_STRICT);
    (void)jr_array(&j);
    for (i = 0; r == 0 && jr_item(&j); i++)
        r = put_vector_item(&j, &a->made, &a->n_series);
    if (r == -EINVAL) {
        (void)snprintf(why, 1024,
                       "data.result[%zu]: expected a metric that is an object and a value that is a list",
                       i - 1);
        return ROUND_SHAPE;
    }
    if (r < 0)
        return out_of_memory(why);
    a->series = buf_str(&a->made);
    return ROUND_OK;
}

static enum round_error from_scalar(const struct parts *p, struct prom_answer *a, char why[1024])
{
    int r = buf_puts(&a->made, "{\"metric\":{},\"values\":[");

    if (p->items != 2) {
        (void)snprintf(why, 1024, "data.result: expected a time and a value");
        return ROUND_SHAPE;
    }
    if (r == 0)
        r = buf_put_str(&a->made, p->result);
    if (r == 0)
        r = buf_puts(&a->made, "]}");
    if (r < 0)
        return out_of_memory(why);
    a->n_series = 1;
    a->series = buf_str(&a->made);
    return ROUND_OK;
}

static enum round_error from_matrix(const struct parts *p, struct prom_answer *a)
{
    a->series = inside(p->result);
    a->n_series = p->items;
    return ROUND_OK;
}

static enum round_error from_data(const struct parts *p, struct prom_answer *a, char why[1024])
{
    char type[64];

    if (p->result_kind == JR_NULL)
        return ROUND_OK; /* as Go writes an empty list */
    if (p->result_kind != JR_ARRAY) {
        (void)snprintf(why, 1024, "not an answer of the query API: it has no list data.result");
        return ROUND_SHAPE;
    }
    if (str_eq(p->type, STR("scalar")))
        return from_scalar(p, a, why);
    if (p->type.n && !str_eq(p->type, STR("matrix")) && !str_eq(p->type, STR("vector"))) {
        text_line_json(type, sizeof(type), p->type);
        (void)snprintf(why, 1024, "the query gives a %s, which cannot be scored", type);
        return ROUND_SHAPE;
    }
    /* Cheap to see, and what a scoring API would stumble over first. */
    if (p->objects < p->items) {
        (void)snprintf(why, 1024, "data.result[%zu]: expected an object", p->objects);
        return ROUND_SHAPE;
    }
    return str_eq(p->type, STR("vector")) ? from_vector(p, a, why) : from_matrix(p, a);
}

/* Tells what is JSON, but no object, from what is not JSON at all. */
static enum round_error refuse(struct str body, const struct jr *j, char why[1024])
{
    struct jr again;
    unsigned line, column;

    jr_init(&again, body, JR_STRICT);
    (void)jr_skip(&again, NULL);
    if (jr_end(&again)) {
        (void)snprintf(why, 1024, "not an answer of the query API: it is no object");
        return ROUND_SHAPE;
    }
    jr_position(body, j->error_at, &line, &column);
    (void)snprintf(why, 1024, "the answer is not JSON: line %u, column %u: %s", line, column, j->error);
    return ROUND_JSON;
}

enum round_error prom_answer_parse(struct str body, struct prom_answer *ret, char why[1024])
{
    struct prom_answer a = {.made = {.max = SIZE_MAX / 2}};
    struct jr j;
    struct parts p;
    enum round_error e;

    jr_init(&j, body, JR_STRICT);
    if (!take_all(&j, &p))
        return refuse(body, &j, why);
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

/* The request and the response of a scoring API, as bytes: a request is read into samples, series by
 * series, and results are written as they come. Whoever calls owns the request; any thread, one at a time.
 *
 *     {"data":[{"metric":{...},"values":[[1718600060,"0.25"],...]},...]}
 *     {"results":[{"metric":{...},"score":1.5},...]} */
#include "exporter/models/wire.h"

#include "exporter/base/alloc.h"
#include "exporter/base/buf.h"
#include "exporter/base/escape.h"
#include "exporter/base/json.h"
#include "exporter/num/num.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

enum { FIRST_SAMPLES = 256 };

/* Ends the reading, with an error of the member that is being read; an error of the grammar was there first.
 * */
static void PRINTF_LIKE(3, 4) request_fail(struct request *rq, int error, const char *fmt, ...)
{
    unsigned line, column;
    va_list ap;

    if (rq->error)
        return;
    rq->error = error;
    if (rq->j.error) {
        jr_position(rq->body, rq->j.error_at, &line, &column);
        rq->error = -EINVAL;
        (void)snprintf(rq->why, sizeof(rq->why), "line %u, column %u: %s", line, column, rq->j.error);
        return;
    }
    va_start(ap, fmt);
    (void)vsnprintf(rq->why, sizeof(rq->why), fmt, ap);
    va_end(ap);
    (void)jr_fail(&rq->j, "refused");
}

/* A number, or a string of one as Prometheus writes it. */
static bool request_read_value(struct jr *j, double *ret)
{
    enum jr_type type = jr_peek(j);
    struct str raw;

    if (type == JR_NUMBER)
        return jr_number(j, &raw) && (num_parse(raw, ret), true); /* infinite on overflow */
    if (type != JR_STRING)
        return false;
    return jr_string(j, &raw) && num_parse_word(raw, ret) != NUM_SYNTAX;
}

/* [time, "value"] */
static bool request_read_sample(struct request *rq)
{
    struct jr *j = &rq->j;
    struct str raw;

    if (rq->n == rq->cap) { /* the body bounds their number */
        rq->cap = rq->cap ? rq->cap * 2 : FIRST_SAMPLES;
        rq->times = xreallocarray(rq->times, rq->cap, sizeof(*rq->times));
        rq->values = xreallocarray(rq->values, rq->cap, sizeof(*rq->values));
    }
    if (jr_peek(j) != JR_ARRAY)
        return false;
    (void)jr_array(j);
    if (!jr_item(j) || jr_peek(j) != JR_NUMBER || !jr_number(j, &raw))
        return false;
    (void)num_parse(raw, &rq->times[rq->n]);
    if (!jr_item(j) || !request_read_value(j, &rq->values[rq->n]) || jr_item(j))
        return false;
    rq->n++;
    return true;
}

static void request_read_samples(struct request *rq)
{
    struct jr *j = &rq->j;

    if (jr_peek(j) != JR_ARRAY)
        request_fail(rq, -EINVAL, "data[%zu].values: expected a list of [time, \"value\"]", rq->n_series);
    (void)jr_array(j);
    while (jr_item(j))
        if (!request_read_sample(rq))
            request_fail(rq, -EINVAL, "data[%zu].values[%zu]: expected [time, \"value\"]", rq->n_series,
                         rq->n);
}

/* The members of one series: its samples go to the reader. Returns whether it has any list of them. */
static bool request_read_series(struct request *rq, struct str *ret_metric)
{
    struct jr *j = &rq->j;
    bool has_values = false;
    struct str key;

    (void)jr_object(j);
    while (jr_member(j, &key)) {
        bool values = jr_key_is(key, "values"), value = !values && jr_key_is(key, "value");

        if (jr_key_is(key, "metric") && !ret_metric->p) {
            if (jr_peek(j) != JR_OBJECT)
                request_fail(rq, -EINVAL, "data[%zu].metric: expected an object", rq->n_series);
            (void)jr_skip(j, ret_metric);
        } else if ((values || value) && !has_values) {
            has_values = true;
            if (values)
                request_read_samples(rq);
            else if (!request_read_sample(rq))
                request_fail(rq, -EINVAL, "data[%zu].value: expected [time, \"value\"]", rq->n_series);
        } else if (values || value || jr_key_is(key, "metric")) {
            request_fail(rq, -EINVAL, "data[%zu]: duplicate \"%.*s\"", rq->n_series, STR_ARG(key));
        } else {
            (void)jr_skip(j, NULL);
        }
    }
    if (!ret_metric->p || j->error)
        request_fail(rq, -EINVAL, "data[%zu]: missing \"metric\"", rq->n_series);
    return has_values;
}

void request_begin(struct request *rq, struct str body)
{
    *rq = (struct request){.body = body};
    jr_init(&rq->j, body, JR_STRICT);
}

/* Moves to the first series. False if there is no list. */
static bool request_enter_data(struct request *rq)
{
    struct jr *j = &rq->j;
    struct str key;

    if (jr_peek(j) == JR_OBJECT && jr_object(j))
        while (jr_member(j, &key)) {
            if (!jr_key_is(key, "data")) {
                (void)jr_skip(j, NULL);
                continue;
            }
            if (jr_peek(j) == JR_ARRAY)
                return rq->in_data = rq->has_data = jr_array(j);
            break;
        }
    request_fail(rq, -EINVAL, "expected an object with a list \"data\"");
    return false;
}

/* After the last series: "data" must not appear again. */
static void request_leave_data(struct request *rq)
{
    struct str key;

    rq->in_data = false;
    while (jr_member(&rq->j, &key)) {
        if (jr_key_is(key, "data"))
            request_fail(rq, -EINVAL, "duplicate \"data\"");
        (void)jr_skip(&rq->j, NULL);
    }
    if (!jr_end(&rq->j))
        request_fail(rq, -EINVAL, "%s", rq->j.error);
}

/* Reads the item at hand. False after an error, or if the series has no values and is skipped. */
static bool request_read_item(struct request *rq, struct str *ret_metric)
{
    bool has_values = false;

    rq->n = 0;
    if (rq->n_series == REQUEST_MAX_SERIES)
        request_fail(rq, -E2BIG, "data: more than %d series", REQUEST_MAX_SERIES);
    else if (jr_peek(&rq->j) == JR_OBJECT)
        has_values = request_read_series(rq, ret_metric);
    if (!ret_metric->p)
        request_fail(rq, -EINVAL, "data[%zu]: expected an object", rq->n_series);
    if (rq->error)
        return false;
    rq->n_series++;
    if (!has_values)
        rq->n_without_values++;
    return has_values;
}

bool request_next(struct request *rq, struct input_series *ret)
{
    if (rq->error || (rq->has_data && !rq->in_data) || (!rq->has_data && !request_enter_data(rq)))
        return false;
    while (jr_item(&rq->j)) {
        struct str metric = {0};

        if (request_read_item(rq, &metric)) {
            *ret =
                (struct input_series){.metric = metric, .times = rq->times, .values = rq->values, .n = rq->n};
            return true;
        }
        if (rq->error)
            return false;
    }
    request_leave_data(rq);
    return false;
}

int request_end(struct request *rq)
{
    struct input_series rest;

    while (request_next(rq, &rest))
        continue;
    request_abandon(rq);
    return rq->error;
}

void request_abandon(struct request *rq)
{
    free(rq->times);
    free(rq->values);
    rq->times = rq->values = NULL;
    rq->cap = 0;
}

bool series_label(struct str metric, const char *name, struct str *ret_raw)
{
    struct jr j;
    struct str key;

    jr_init(&j, metric, JR_STRICT);
    (void)jr_object(&j);
    while (jr_member(&j, &key)) {
        if (jr_key_is(key, name) && jr_peek(&j) == JR_STRING)
            return jr_string(&j, ret_raw);
        (void)jr_skip(&j, NULL);
    }
    return false;
}

/* ---- The answer ---- */

void results_begin(struct results *rs, struct buf *out)
{
    *rs = (struct results){.out = out, .mark = buf_mark(out)};
    buf_puts(rs->out, "{\"results\":[");
}

/* The labels of the series as they came, but for one that is replaced. */
static void results_put_metric(struct buf *o, const struct result *r)
{
    struct str key, value;
    struct jr j;

    if (!r->meta.p) {
        buf_put_str(o, r->metric);
        return;
    }
    buf_puts(o, "{");
    jr_init(&j, r->metric, JR_STRICT);
    (void)jr_object(&j);
    while (jr_member(&j, &key)) {
        (void)jr_skip(&j, &value);
        if (jr_key_is(key, "meta"))
            continue;
        buf_puts(o, "\"");
        buf_put_str(o, key);
        buf_puts(o, "\":");
        buf_put_str(o, value);
        buf_puts(o, ",");
    }
    buf_puts(o, "\"meta\":");
    buf_put_json(o, r->meta);
    buf_puts(o, "}");
}

void put_decimal(struct buf *o, double v)
{
    char text[NUM_MAX];
    size_t n = num_put_double(text, v);

    buf_put_str(o, (struct str){text, n});
    if (!memchr(text, '.', n) && !memchr(text, 'e', n))
        buf_puts(o, ".0");
}

void results_add(struct results *rs, const struct result *r)
{
    struct buf *o = rs->out;

    buf_puts(o, rs->n++ ? ",{\"metric\":" : "{\"metric\":");
    results_put_metric(o, r);
    buf_puts(o, ",\"score\":");
    put_decimal(o, r->score);
    buf_put_str(o, r->members);
    buf_puts(o, "}");
}

int results_end(struct results *rs)
{
    buf_puts(rs->out, "]}");
    return buf_commit(rs->out, rs->mark);
}

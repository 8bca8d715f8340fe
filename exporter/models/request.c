#include "exporter/models/request.h"

#include "exporter/num/num.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

enum { FIRST_SAMPLES = 256 };

/* Ends the reading, with an error of the member that is being read. */
static void request_fail(struct request *rq, int error, const char *fmt, ...) PRINTF_LIKE(3, 4);
static void request_fail(struct request *rq, int error, const char *fmt, ...)
{
    va_list ap;

    if (rq->error)
        return;
    rq->error = error;
    va_start(ap, fmt);
    (void)vsnprintf(rq->why, sizeof(rq->why), fmt, ap);
    va_end(ap);
    (void)jr_fail(&rq->j, "refused");
}

/* Takes over an error of the grammar. */
static void request_check(struct request *rq)
{
    unsigned line, column;

    if (rq->error || !rq->j.error)
        return;
    jr_position(rq->body, rq->j.error_at, &line, &column);
    request_fail(rq, -EINVAL, "line %u, column %u: %s", line, column, rq->j.error);
}

static bool request_grow(struct request *rq)
{
    size_t cap = rq->cap ? rq->cap * 2 : FIRST_SAMPLES;
    double *times = realloc(rq->times, cap * sizeof(*times)), *values;

    if (times)
        rq->times = times;
    values = times ? realloc(rq->values, cap * sizeof(*values)) : NULL;
    if (!values) {
        request_fail(rq, -ENOMEM, "out of memory");
        return false;
    }
    rq->values = values;
    rq->cap = cap;
    return true;
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

    if (rq->n == rq->cap && !request_grow(rq))
        return false;
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

    if (jr_peek(j) != JR_ARRAY) {
        request_check(rq);
        request_fail(rq, -EINVAL, "data[%zu].values: expected a list of [time, \"value\"]", rq->n_series);
        return;
    }
    (void)jr_array(j);
    while (jr_item(j))
        if (!request_read_sample(rq)) {
            request_check(rq);
            request_fail(rq, -EINVAL, "data[%zu].values[%zu]: expected [time, \"value\"]", rq->n_series,
                         rq->n);
        }
}

static void request_read_metric(struct request *rq, struct str *ret)
{
    if (jr_peek(&rq->j) == JR_OBJECT)
        (void)jr_skip(&rq->j, ret);
    else {
        request_check(rq);
        request_fail(rq, -EINVAL, "data[%zu].metric: expected an object", rq->n_series);
    }
}

/* The members of one series. */
static void request_read_series(struct request *rq, struct input_series *ret)
{
    struct jr *j = &rq->j;
    bool has_values = false;
    struct str key;

    (void)jr_object(j);
    while (jr_member(j, &key)) {
        bool values = jr_key_is(key, "values"), value = !values && jr_key_is(key, "value");

        if (jr_key_is(key, "metric") && !ret->metric.p) {
            request_read_metric(rq, &ret->metric);
        } else if ((values || value) && !has_values) {
            has_values = true;
            if (values)
                request_read_samples(rq);
            else if (!request_read_sample(rq)) {
                request_check(rq);
                request_fail(rq, -EINVAL, "data[%zu].value: expected [time, \"value\"]", rq->n_series);
            }
        } else if (values || value || jr_key_is(key, "metric")) {
            request_fail(rq, -EINVAL, "data[%zu]: duplicate \"%.*s\"", rq->n_series, STR_ARG(key));
        } else {
            (void)jr_skip(j, NULL);
        }
    }
    request_check(rq);
    if (!ret->metric.p || !has_values)
        request_fail(rq, -EINVAL, "data[%zu]: missing \"%s\"", rq->n_series,
                     ret->metric.p ? "values" : "metric");
}

void request_begin(struct request *rq, struct str body)
{
    *rq = (struct request){.body = body};
    jr_init(&rq->j, body, JR_STRICT);
}

/* Moves to the first series. False if there is no list. */
static bool request_enter_data(struct request *rq)
{
    static const char expected[] = "expected an object with a list \"data\"";
    struct jr *j = &rq->j;
    struct str key;

    if (jr_peek(j) != JR_OBJECT) {
        request_check(rq);
        request_fail(rq, -EINVAL, expected);
        return false;
    }
    (void)jr_object(j);
    while (jr_member(j, &key)) {
        if (!jr_key_is(key, "data")) {
            (void)jr_skip(j, NULL);
            continue;
        }
        if (jr_peek(j) == JR_ARRAY)
            return rq->in_data = rq->has_data = jr_array(j);
        break;
    }
    request_check(rq);
    request_fail(rq, -EINVAL, expected);
    return false;
}

/* Reads to the end of the body, after the last series. */
static void request_leave_data(struct request *rq)
{
    struct str key;

    rq->in_data = false;
    while (jr_member(&rq->j, &key)) {
        if (jr_key_is(key, "data"))
            request_fail(rq, -EINVAL, "duplicate \"data\"");
        (void)jr_skip(&rq->j, NULL);
    }
    (void)jr_end(&rq->j);
    request_check(rq);
}

bool request_next(struct request *rq, struct input_series *ret)
{
    struct input_series series = {0};

    if (rq->error || (rq->has_data && !rq->in_data) || (!rq->has_data && !request_enter_data(rq)))
        return false;
    if (!jr_item(&rq->j)) {
        request_leave_data(rq);
        return false;
    }
    rq->n = 0;
    if (rq->n_series == REQUEST_MAX_SERIES)
        request_fail(rq, -E2BIG, "data: more than %d series", REQUEST_MAX_SERIES);
    else if (jr_peek(&rq->j) == JR_OBJECT)
        request_read_series(rq, &series);
    request_check(rq);
    if (!series.metric.p)
        request_fail(rq, -EINVAL, "data[%zu]: expected an object", rq->n_series);
    if (rq->error)
        return false;
    rq->n_series++;
    series.times = rq->times;
    series.values = rq->values;
    series.n = rq->n;
    *ret = series;
    return true;
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

#include "exporter/models/last_call.h"

#include "exporter/base/json.h"
#include "exporter/models/request.h"
#include "exporter/ui/members.h"

enum { METRIC_MAX_BYTES = 4 << 10, RESULT_MAX_BYTES = 16 << 10 };

static void show_numbers(struct out *o, const char *key, const double *v, size_t n)
{
    member_list(o, key);
    for (size_t i = 0; i < n; i++) {
        member_item(o);
        value_number(o, v[i]);
    }
    out_puts(o, "]");
}

/* The last samples of the series. */
static void show_series(struct out *o, const struct input_series *s)
{
    size_t n = size_min(s->n, LAST_CALL_SAMPLES), from = s->n - n;

    member_item(o);
    out_puts(o, "{");
    member(o, "metric");
    out_str(o, s->metric);
    show_numbers(o, "unixSeconds", s->times + from, n);
    show_numbers(o, "values", s->values + from, n);
    out_puts(o, "}");
}

static void show_request(struct out *o, struct str body)
{
    struct input_series s;
    struct request rq;
    size_t n = 0;

    member_list(o, "shownSeries");
    request_begin(&rq, body);
    while (n < LAST_CALL_SERIES && request_next(&rq, &s))
        if (s.metric.n <= METRIC_MAX_BYTES) {
            show_series(o, &s);
            n++;
        }
    request_abandon(&rq);
    out_puts(o, "]");
}

static void show_answer(struct out *o, struct str answer)
{
    struct str key, result;
    struct jr j;
    size_t n = 0;

    member_list(o, "shownResults");
    jr_init(&j, answer, JR_STRICT);
    (void)jr_object(&j);
    (void)jr_member(&j, &key);
    (void)jr_array(&j);
    while (n < LAST_CALL_RESULTS && jr_item(&j) && jr_skip(&j, &result))
        if (result.n <= RESULT_MAX_BYTES) {
            member_item(o);
            out_str(o, result);
            n++;
        }
    out_puts(o, "]");
}

int last_call_show(struct str body, struct str answer, struct buf *into)
{
    struct out o = out_begin(into);

    show_request(&o, body);
    show_answer(&o, answer);
    return out_end(&o);
}

static void show_left_out(struct out *o, const struct last_call *c)
{
    member_object(o, "leftOut");
    for (size_t i = 0; i < LEFT_OUTS; i++)
        if (c->left_out[i])
            member_count(o, left_out_word((enum left_out)i), c->left_out[i]);
    out_puts(o, "}");
}

void member_last_call(struct out *o, const struct last_call *c)
{
    member_count(o, "calls", c->calls);
    member_count(o, "failures", c->failures);
    if (member_object_if(o, "lastCall", c->at.ms != 0)) {
        member_time(o, "at", c->at.ms);
        member_number(o, "seconds", c->seconds);
        member_count(o, "bodyBytes", c->bytes);
        member_count(o, "series", c->series);
        member_count(o, "results", c->results);
        show_left_out(o, c);
        if (c->backtests)
            member_number(o, "backtestError", c->backtest_error);
        if (c->shown.n) {
            out_puts(o, ",");
            out_str(o, buf_str(&c->shown));
        }
        out_puts(o, "}");
    }
    if (member_object_if(o, "lastFailure", c->failed_at.ms != 0)) {
        member_time(o, "at", c->failed_at.ms);
        member_count(o, "status", c->failed_status);
        member_text(o, "error", c->failure);
        out_puts(o, "}");
    }
}

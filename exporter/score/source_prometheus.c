/* The Prometheus query API as a source. Queries are sent one after the other, so that a scorer of many
 * queries puts no more load on a small Prometheus than one of a single query. The scoring API gets slices of
 * the responses' bodies. */
#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/escape.h"
#include "exporter/base/json.h"
#include "exporter/base/loop.h"
#include "exporter/base/text.h"
#include "exporter/http/cause.h"
#include "exporter/http/http.h"
#include "exporter/score/credentials.h"
#include "exporter/score/round.h"
#include "exporter/score/summary.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

/* ---- Responses: validated in one pass, never decoded into a tree ---- */

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

static enum round_error from_data(const struct parts *p, struct prom_answer *a, char why[ROUND_REASON_BYTES])
{
    char type[64];
    struct jr j;
    size_t i;
    int r = 0;

    if (p->result_kind == JR_NULL)
        return ROUND_OK; /* as Go writes an empty list */
    if (p->result_kind != JR_ARRAY)
        return round_error_because(why, ROUND_SHAPE, "invalid query response: missing list data.result");
    if (str_eq(p->type, STR("scalar"))) {
        if (p->items != 2)
            return round_error_because(why, ROUND_SHAPE,
                                       "invalid query response: data.result: expected [time, value]");
        buf_puts(&a->made, "{\"metric\":{},\"values\":[");
        buf_put_str(&a->made, p->result);
        buf_puts(&a->made, "]}");
        a->n_series = 1;
        a->series = buf_str(&a->made);
        if (buf_failed(&a->made) < 0)
            return round_error_because(why, ROUND_MEMORY, "out of memory");
        return ROUND_OK;
    }
    if (p->type.n && !str_eq(p->type, STR("matrix")) && !str_eq(p->type, STR("vector"))) {
        text_line_json(type, sizeof(type), p->type);
        return round_error_because(why, ROUND_SHAPE,
                                   "unsupported result type \"%s\"; expected matrix, vector or scalar", type);
    }
    /* Cheap to check here, where the message can name the item. */
    if (p->objects < p->items)
        return round_error_because(
            why, ROUND_SHAPE, "invalid query response: data.result[%zu]: expected an object", p->objects);
    if (!str_eq(p->type, STR("vector"))) {
        a->series = str_trim((struct str){p->result.p + 1, p->result.n - 2}); /* without the brackets */
        a->n_series = p->items;
        return ROUND_OK;
    }
    jr_init(&j, p->result, JR_STRICT);
    (void)jr_array(&j);
    for (i = 0; r == 0 && jr_item(&j); i++)
        r = put_vector_item(&j, a);
    if (r == -EINVAL)
        return round_error_because(why, ROUND_SHAPE,
                                   "invalid query response: data.result[%zu]: expected an object \"metric\" "
                                   "and a list \"value\"",
                                   i - 1);
    a->series = buf_str(&a->made);
    return r < 0 ? round_error_because(why, ROUND_MEMORY, "out of memory") : ROUND_OK;
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
    error = from_data(&p, ret, why);
    if (ret->n_dropped) {
        (void)snprintf(dropped, sizeof(dropped),
                       "%zu series dropped: an instant query gives native histograms no single value",
                       ret->n_dropped);
        add_warning(ret, dropped);
    }
    return error;
}

/* ---- Queries ---- */

enum {
    GET_MAX_BYTES = 2000,
    URL_MAX_BYTES = 1 << 20,
    FORM_MAX_BYTES = SOURCE_QUERY_BYTES * 3 + 256, /* each byte of a query may become three */
};

struct prometheus {
    struct source source;
    struct http_call *call;
    struct credentials *credentials;
    struct buf form;    /* of the running request */
    bool posts;         /* the running request is a POST */
    bool refuses_posts; /* the server, in this round */
    struct str form_part;
    /* The response that is read, and what came of it. */
    struct buf body;
    char content_type[128];
    struct prom_answer answer;
    enum round_error error;
    char reason[ROUND_REASON_BYTES];
    struct buf kept[SUMMARY_MAX_QUERIES]; /* the parts are slices of these */
};

static void prometheus_done(struct source *s)
{
    struct prometheus *p = CONTAINER_OF(s, struct prometheus, source);

    p->call = http_cancel(p->call);
    for (size_t i = 0; i < s->n; i++)
        buf_keep(&p->kept[i]);
    buf_done(&p->body);
    buf_keep(&p->answer.made);
    (void)credentials_free(p->credentials);
    buf_done(&p->form);
}

static void got_answer(void *arg, struct http_response *a);

static int put_form(struct prometheus *p, struct str query)
{
    const struct source *s = &p->source;
    long long start = s->start_ms, end = s->end_ms;

    buf_clear(&p->form);
    buf_puts(&p->form, "query=");
    buf_put_url(&p->form, query);
    buf_printf(&p->form, "&start=%lld.%03lld", start / 1000, start % 1000);
    buf_printf(&p->form, "&end=%lld.%03lld", end / 1000, end % 1000);
    buf_printf(&p->form, "&step=%lld", (long long)s->from.step_s);
    return buf_failed(&p->form);
}

/* Sends the form: by GET, or by POST if proxies might reject the length of the URL, and the server has not
 * refused that. -EINVAL, -EFBIG. */
static int send_form(struct prometheus *p)
{
    const struct source *s = &p->source;
    const char *endpoint = s->from.endpoint ? s->from.endpoint : s->env->otlp_url;
    struct http_request r = {
        .max_answer = s->env->max_answer,
        .timeout_ms = mono_diff(loop_now(s->env->loop), s->deadline),
        .share = s->share,
        .trace = s->result->trace,
    };
    BUF_AUTO(url, URL_MAX_BYTES);

    credentials_apply(p->credentials, &r);
    buf_puts(&url, endpoint);
    p->posts = url.n + p->form.n > GET_MAX_BYTES && !p->refuses_posts;
    if (!p->posts) {
        buf_putc(&url, strchr(endpoint, '?') ? '&' : '?');
        buf_put_str(&url, buf_str(&p->form));
    } else {
        p->form_part = buf_str(&p->form);
        r.body = &p->form_part;
        r.body_parts = 1;
        r.content_type = "application/x-www-form-urlencoded";
    }
    buf_putc(&url, '\0');
    if (buf_failed(&url) < 0)
        return buf_failed(&url);
    r.url = url.p;
    return http_start(&p->call, s->env->http, &r, got_answer, p);
}

/* Sends the next query, or ends the fetch. */
static void prometheus_ask(struct prometheus *p)
{
    struct source *s = &p->source;
    BUF_AUTO(query, SOURCE_QUERY_BYTES);

    if (!source_next_query(s, &query))
        source_end(s);
    else if (!mono_before(loop_now(s->env->loop), s->deadline))
        source_fail(s, ROUND_TIMEOUT, "timed out before all queries were sent");
    else if (put_form(p, buf_str(&query)) < 0 || send_form(p) < 0)
        source_fail(s, ROUND_URL, "sourceEndpoint is not a valid URL");
}

static void prometheus_run(struct source *s)
{
    struct prometheus *p = CONTAINER_OF(s, struct prometheus, source);

    p->error = prom_answer_parse(buf_str(&p->body), &p->answer, p->reason);
    if (p->error == ROUND_JSON)
        text_show_body(p->reason, sizeof(p->reason), p->content_type, buf_str(&p->body));
}

static void prometheus_ran(struct source *s)
{
    struct prometheus *p = CONTAINER_OF(s, struct prometheus, source);
    struct prom_answer *a = &p->answer;

    if (p->error != ROUND_OK) {
        source_fail(s, p->error, p->reason);
        return;
    }
    if (s->result->source_warnings == 0)
        memcpy(s->result->source_warning, a->warning, sizeof(s->result->source_warning));
    s->result->source_warnings += a->warnings;
    s->result->source_series += a->n_series;
    s->parts[s->n] = a->series;
    p->kept[s->n++] = buf_take(a->made.n ? &a->made : &p->body);
    buf_keep(&p->body);
    prometheus_ask(p);
}

/* Some proxies let only GET through, and then it depends on their limits whether a long URL passes. */
static bool refuses_post(const struct prometheus *p, const struct http_response *a)
{
    return p->posts && a->error == HTTP_OK && (a->status == 403 || a->status == 405 || a->status == 501);
}

static void got_answer(void *arg, struct http_response *a)
{
    struct prometheus *p = arg;
    struct source *s = &p->source;
    struct round_result *res = s->result;
    enum round_error e = round_error_of_answer(a);
    char said[ROUND_REASON_BYTES] = "";

    p->call = NULL;
    res->fetch_s += a->seconds;
    res->received[STAGE_SOURCE] += a->received;
    res->sent[STAGE_SOURCE] += a->sent;
    if (refuses_post(p, a) && mono_before(loop_now(s->env->loop), s->deadline)) {
        p->refuses_posts = true;
        if (send_form(p) == 0)
            return;
    }
    if (e == ROUND_OK) {
        p->body = buf_take(&a->body);
        memcpy(p->content_type, a->content_type, sizeof(p->content_type));
        source_work(s, p->body.n);
        return;
    }
    res->error = e;
    res->cause = a->cause;
    res->retry_after_ms = a->retry_after_ms;
    if (a->error == HTTP_OK && prom_answer_error(buf_str(&a->body), said))
        /* 503: a query that timed out, or an overloaded engine. Either may pass. */
        res->error = e == ROUND_HTTP_5XX ? e : ROUND_QUERY;
    if (a->error != HTTP_OK || (*said && a->status != 401 && a->status != 403))
        (void)snprintf(res->reason, sizeof(res->reason), "%s", *said ? said : a->reason);
    else
        text_http_status(res->reason, sizeof(res->reason), a->status,
                         p->credentials ? p->credentials->shown
                                        : " without credentials (sourceEndpointAuthName is not set)",
                         *said ? str_of(said) : buf_str(&a->body));
    source_end(s);
}

/* Starts the first query. */
static void prometheus_on_timer(struct source *s)
{
    struct prometheus *p = CONTAINER_OF(s, struct prometheus, source);
    char why[CREDENTIALS_WHY_BYTES];

    buf_init(&p->form, FORM_MAX_BYTES);
    if (credentials_read(&p->credentials, s->env->secrets, s->from.auth.name, s->from.auth.key, why) < 0)
        source_fail(s, ROUND_SECRET, why);
    else
        prometheus_ask(p);
}

const struct source_ops source_prometheus = {sizeof(struct prometheus), prometheus_on_timer, prometheus_run,
                                             prometheus_ran, prometheus_done};

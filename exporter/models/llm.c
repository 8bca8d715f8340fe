/* The next value of each series, as a language model says it. One call of /scoring is a round: a question for
 * each series, several at a time, until all are answered or the deadline has come. A series without an answer
 * is left out; the call fails if that leaves none, so that an agent keeps the scores that it has. Everything
 * runs on the loop. */
#include "exporter/models/llm.h"

#include "exporter/base/alloc.h"
#include "exporter/base/backoff.h"
#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/escape.h"
#include "exporter/base/file.h"
#include "exporter/base/loop.h"
#include "exporter/base/secret.h"
#include "exporter/base/text.h"
#include "exporter/http/cause.h"
#include "exporter/http/http.h"
#include "exporter/http/rule.h"
#include "exporter/metric/metrics.h"
#include "exporter/models/model.h"
#include "exporter/models/setting.h"
#include "exporter/models/wire.h"
#include "exporter/ui/member.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <pcre2.h>
#include <stdio.h>
#include <sys/queue.h>

enum {
    NUMBER_MAX = 64,
    LLM_REASON_BYTES = 300,
    MAX_ATTEMPTS = 4,
    TEMPLATE_MAX = 256 << 10,
    PROMPT_MAX = 1 << 20,
    ANSWER_MAX = 1 << 20,
    KEY_MAX = 16 << 10,
    ENDPOINT_MAX = 64 << 10,
};

static const struct backoff llm_backoff = {.min_ms = 500, .max_ms = 8000, .retry_after_max_ms = 30000};

struct llm {
    const char *endpoint, *name;
    const char *template_file, *tendency_file, *timeseries_kind, *api_key_file;
    double temperature;
    int64_t max_tokens, concurrency, timeout_ms, max_values;
    struct loop *loop;
    struct http *http;
    struct metrics *metrics;
    struct buf template, tendency;            /* terminated */
    TAILQ_HEAD(llm_rounds, llm_round) rounds; /* the earliest gets the free questions first */
    size_t running;                           /* questions */
};

/* A question that is under way, or waits for its next attempt. */
struct llm_question {
    struct llm_round *round;
    struct str metric; /* of the series */
    unsigned attempts;
    struct http_call *call;
    struct timer pause;
    struct buf body;
    LIST_ENTRY(llm_question) entry;
};

struct llm_round {
    struct llm *llm;
    struct scoring *scoring;
    size_t n, asked; /* series with a value */
    LIST_HEAD(, llm_question) questions;
    struct buf key; /* bearer token for the endpoint */
    struct timer deadline;
    char why[LLM_REASON_BYTES]; /* the last failure */
    TAILQ_ENTRY(llm_round) entry;
};

static void llm_ask_more(struct llm *m);

/* ---- The number ---- */

/* A word that is a number: behind a label ("value:0.83"), within punctuation, with separators of thousands,
 * and with U+2212 for a minus. The first alternative passes over "1." that begins a line and has text behind
 * it. */
#define BREAK "[\\s=\"'`(){}\\[\\]<>|*~$]"
static const char number_pattern[] = "^[ \\t]*\\d{1,2}\\.(?=" BREAK ")[ \\t]*(?!\\n|\\z)(*SKIP)(*FAIL)"
                                     "|(?:(?<=" BREAK ")|\\A)"
                                     "(?:[A-Za-z](?:(?!" BREAK ")[^:])*:)?[,;:!?_#]*"
                                     "((?:[+-]|\xe2\x88\x92)?"
                                     "(?:(?:\\d{1,3}(?:,\\d{3})+|\\d+)(?:\\.\\d*)?|\\.\\d+)"
                                     "(?:[eE][+-]?\\d+)?)"
                                     "[.,;:!?%_]*(?=" BREAK "|\\z)";

bool llm_find_number(struct str text, double *ret)
{
    static const struct str minus = STR("\xe2\x88\x92");
    int error;
    PCRE2_SIZE at;
    pcre2_code *code =
        pcre2_compile((PCRE2_SPTR)number_pattern, PCRE2_ZERO_TERMINATED, PCRE2_MULTILINE, &error, &at, NULL);
    pcre2_match_data *match = pcre2_match_data_create_from_pattern(code, NULL);
    const PCRE2_SIZE *found = pcre2_get_ovector_pointer(match);
    bool ok = false;

    for (at = 0; !ok && pcre2_match(code, (PCRE2_SPTR)text.p, text.n, at, 0, match, NULL) > 0;
         at = found[3]) {
        struct str word = {text.p + found[2], found[3] - found[2]};
        char number[NUMBER_MAX + 1] = ""; /* as strtod() reads it */
        size_t n = 0, i = 0;

        if (word.n > NUMBER_MAX)
            continue;
        if (str_starts(word, minus)) {
            number[n++] = '-';
            i = minus.n;
        }
        for (; i < word.n; i++)
            if (word.p[i] != ',')
                number[n++] = word.p[i];
        *ret = strtod(number, NULL);
        ok = isfinite(*ret);
    }
    pcre2_match_data_free(match);
    pcre2_code_free(code);
    return ok;
}

/* ---- The prompt ---- */

static const char llm_default_template[] = "Predict the next value of this time series.\n"
                                           "Answer with one number and nothing else.\n"
                                           "\n"
                                           "timeseries_kind: ${timeseries_kind}\n"
                                           "app_name: ${app_name}\n"
                                           "${tendency}\n"
                                           "\n"
                                           "timestamp : value\n"
                                           "${values}";

enum { VALUES, LABELS, APP_NAME, TIMESERIES_KIND, TENDENCY, PLACEHOLDERS };
static const char *const placeholders[] = {"${values}", "${labels}", "${app_name}", "${timeseries_kind}",
                                           "${tendency}"};

/* The placeholder at p; PLACEHOLDERS if there is none. */
static size_t placeholder_at(const char *p)
{
    size_t i = 0;

    while (i < PLACEHOLDERS && strncmp(p, placeholders[i], strlen(placeholders[i])) != 0)
        i++;
    return i;
}

static int template_check(const char *template, const char *file, char **ret_why)
{
    const char *p = strstr(template, "${");

    while (p && placeholder_at(p) < PLACEHOLDERS)
        p = strstr(p + 2, "${");
    if (p)
        *ret_why = xasprintf("%s: unknown placeholder \"%.*s\"; known are ${values}, ${labels}, ${app_name}, "
                             "${timeseries_kind} and ${tendency}",
                             file, (int)strcspn(p, "} \n") + 1, p);
    else if (!strstr(template, placeholders[VALUES]))
        *ret_why =
            xasprintf("%s: it has no ${values}, so that every series would have the same answer", file);
    else
        return 0;
    return -EINVAL;
}

/* Samples that are not finite are left out. */
static void prompt_put_placeholder(struct buf *into, size_t which, const struct llm *m,
                                   const struct input_series *s)
{
    struct str name = STR("unknown");
    char *room;
    int r;

    switch (which) {
    case VALUES:
        for (size_t i = 0; i < s->n; i++)
            if (isfinite(s->values[i])) {
                value_number(into, s->times[i]);
                buf_puts(into, " : ");
                value_number(into, s->values[i]);
                buf_puts(into, "\n");
            }
        break;
    case LABELS:
        buf_put_str(into, s->metric);
        break;
    case APP_NAME:
        if (!series_label(s->metric, "pod", &name))
            (void)series_label(s->metric, "namespace", &name);
        r = buf_reserve(into, name.n * 3, &room);
        if (r < 0)
            buf_fail(into, r);
        else
            into->n += jr_unescape(name, room);
        break;
    case TIMESERIES_KIND:
        buf_puts(into, m->timeseries_kind);
        break;
    default:
        buf_puts(into, m->tendency.p);
    }
}

static int prompt_put(struct buf *into, const struct llm *m, const struct input_series *s)
{
    const char *t = m->template.p, *next;
    struct buf_mark mark = buf_mark(into);

    for (; (next = strstr(t, "${")); t = next + strlen(placeholders[placeholder_at(next)])) {
        buf_put_str(into, (struct str){t, (size_t)(next - t)});
        prompt_put_placeholder(into, placeholder_at(next), m, s);
    }
    buf_puts(into, t);
    return buf_commit(into, mark);
}

/* ---- The API ---- */

/* The body of a request of the OpenAI-compatible API: of chat completions if the path ends like that, else of
 * completions. */
static int request_put(struct buf *into, const struct llm *m, struct str prompt)
{
    static const struct str suffix = STR("/chat/completions");
    size_t n = strcspn(m->endpoint, "?#");
    struct buf_mark mark = buf_mark(into);
    bool chat;

    while (n && m->endpoint[n - 1] == '/')
        n--;
    chat = n >= suffix.n && memcmp(m->endpoint + n - suffix.n, suffix.p, suffix.n) == 0;
    buf_puts(into, "{");
    member_text(into, "model", m->name);
    buf_puts(into, chat ? ",\"messages\":[{\"role\":\"user\",\"content\":" : ",\"prompt\":");
    buf_put_json(into, prompt);
    buf_puts(into, chat ? "}]" : "");
    member_number(into, "temperature", m->temperature);
    member_count(into, "max_tokens", (uint64_t)m->max_tokens);
    buf_puts(into, "}");
    return buf_commit(into, mark);
}

/* ---- The end of a round ---- */

static void question_free(struct llm_question *q)
{
    q->round->llm->running--;
    LIST_REMOVE(q, entry);
    loop_timer_clear(q->round->llm->loop, &q->pause);
    (void)http_cancel(q->call);
    buf_done(&q->body);
    free(q);
}

static void llm_round_free(struct llm_round *r)
{
    while (!LIST_EMPTY(&r->questions))
        question_free(LIST_FIRST(&r->questions));
    loop_timer_clear(r->llm->loop, &r->deadline);
    secret_done(&r->key);
    free(r);
}

/* Answers the call with what there is. */
static void round_end(struct llm_round *r)
{
    struct scoring *s = r->scoring;
    struct llm *m = r->llm;
    BUF_AUTO(endpoint, ENDPOINT_MAX);
    int e = 0;

    s->left_out[LEFT_OUT_NO_ANSWER] += r->n - s->results.n - s->left_out[LEFT_OUT_NO_NUMBER];
    if (r->n && !s->results.n) {
        http_url_for_people(str_of(m->endpoint), &endpoint);
        (void)snprintf(s->why, sizeof(s->why), "no response from %.*s: %.150s", (int)size_min(endpoint.n, 80),
                       cstr(endpoint.p), r->why);
        secret_hide_text(s->why);
        e = -EIO;
    }
    TAILQ_REMOVE(&m->rounds, r, entry);
    llm_round_free(r);
    scoring_done(s, e);
}

/* ---- Answers ---- */

static const struct http_rule llm_rules[] = {
    {200, 299, HTTP_OK, LLM_ANSWER},
    {400, 400, HTTP_OK, LLM_GIVE_UP}, /* a prompt that is too long, for one */
    {408, 408, HTTP_OK, LLM_RETRY},
    {413, 413, HTTP_OK, LLM_GIVE_UP},
    {422, 422, HTTP_OK, LLM_GIVE_UP},
    {425, 425, HTTP_OK, LLM_RETRY},
    {429, 429, HTTP_OK, LLM_RETRY},
    {500, 599, HTTP_OK, LLM_RETRY},
    {0, 0, HTTP_DNS, LLM_RETRY},
    {0, 0, HTTP_CONNECT, LLM_RETRY},
    {0, 0, HTTP_FORBIDDEN, LLM_RETRY},
    {0, 0, HTTP_TIMEOUT, LLM_RETRY},
    {0, 0, HTTP_TOO_LARGE, LLM_GIVE_UP},
    {0, 0, HTTP_BROKEN, LLM_RETRY},
    {0, 0, HTTP_MEMORY, LLM_RETRY},
    {0, 0, HTTP_AUTH, LLM_RETRY},
    {0, HTTP_STATUS_MAX, HTTP_ANY, LLM_GIVE_UP_ALL}, /* the key, the URL, a certificate, a redirect */
};

enum llm_verdict llm_judge(long status, enum http_error error)
{
    return (enum llm_verdict)HTTP_VERDICT(llm_rules, status, error);
}

/* What became of a question's attempt. */
enum llm_result {
    LLM_SUCCESS,
    LLM_NO_NUMBER,
    LLM_INVALID,
    LLM_HTTP_ERROR,
    LLM_TIMEOUT,
    LLM_FAILURE, /* any other transfer without an answer */
    LLM_RESULTS
};

static WORD_TABLE(llm_result_word, enum llm_result, LLM_RESULTS,
                  {[LLM_SUCCESS] = "success",
                   [LLM_NO_NUMBER] = "no_number",
                   [LLM_INVALID] = "invalid",
                   [LLM_HTTP_ERROR] = "http_error",
                   [LLM_TIMEOUT] = "timeout",
                   [LLM_FAILURE] = "failure"});

static void llm_count(const struct llm *m, enum llm_result result)
{
    metric_add(m->metrics, METRIC_MODEL_CALLS, LV(llm_result_word(result)), 1);
}

/* Reads the number in the text of the first choice, else says why there is none. */
static void question_read_answer(struct llm_question *q, struct str body)
{
    struct llm_round *r = q->round;
    struct result result = {.metric = q->metric};
    json_error_t e;
    json_auto_t *root = json_loadb(body.p ? body.p : "", body.n, 0, &e);
    const json_t *choice = json_array_get(json_object_get(root, "choices"), 0);
    const json_t *text =
        json_object_get(choice, "text") ?: json_object_get(json_object_get(choice, "message"), "content");
    struct str said = {json_string_value(text), json_string_length(text)};
    enum llm_result outcome = LLM_INVALID;
    char line[80];

    if (!root) {
        (void)snprintf(r->why, sizeof(r->why), "the answer is not valid: %s", e.text);
    } else if (!said.p) {
        (void)snprintf(r->why, sizeof(r->why),
                       "the answer has neither choices[0].text nor choices[0].message.content");
    } else if (llm_find_number(said, &result.score)) {
        outcome = LLM_SUCCESS;
        results_add(&r->scoring->results, &result);
    } else {
        outcome = LLM_NO_NUMBER;
        r->scoring->left_out[LEFT_OUT_NO_NUMBER]++;
        text_line(line, sizeof(line), said);
        (void)snprintf(r->why, sizeof(r->why), "the answer has no number: \"%s\"", line);
    }
    llm_count(r->llm, outcome);
}

static void question_on_answer(void *arg, struct http_response *a)
{
    struct llm_question *q = arg, *next;
    struct llm_round *r = q->round;
    struct llm *m = r->llm;
    enum llm_verdict verdict = llm_judge(a->status, a->error);

    q->call = NULL;
    metric_observe(m->metrics, METRIC_MODEL_SECONDS, LV_NONE, a->seconds);
    if (verdict == LLM_ANSWER) {
        question_read_answer(q, buf_str(&a->body));
    } else if (a->error == HTTP_OK) {
        text_http_status(r->why, sizeof(r->why), a->status, "", buf_str(&a->body));
        llm_count(m, LLM_HTTP_ERROR);
    } else {
        (void)snprintf(r->why, sizeof(r->why), "%.*s", LLM_REASON_BYTES - 1, a->reason);
        llm_count(m, a->error == HTTP_TIMEOUT ? LLM_TIMEOUT : LLM_FAILURE);
    }
    if (verdict == LLM_RETRY && q->attempts < MAX_ATTEMPTS) {
        int64_t pause = backoff_ms(&llm_backoff, q->attempts, a->retry_after_ms);

        loop_timer_set(m->loop, &q->pause, mono_add(loop_now(m->loop), pause));
        return;
    }
    question_free(q);
    if (verdict == LLM_GIVE_UP_ALL) { /* but questions that were sent may still be answered */
        r->asked = r->n;
        for (q = LIST_FIRST(&r->questions); q; q = next) {
            next = LIST_NEXT(q, entry);
            if (!q->call)
                question_free(q);
        }
    }
    llm_ask_more(m);
}

/* ---- Questions ---- */

static bool has_value(const struct input_series *s)
{
    size_t i = 0;

    while (i < s->n && !isfinite(s->values[i]))
        i++;
    return i < s->n;
}

/* Asks; a question that cannot be asked is given up. e: what became of its body. */
static void question_send(struct llm_question *q, int e)
{
    struct llm_round *r = q->round;
    const struct llm *m = r->llm;
    const struct str body = buf_str(&q->body);
    const struct http_request rq = {.url = m->endpoint,
                                    .content_type = "application/json",
                                    .bearer = buf_str(&r->key),
                                    .body = &body,
                                    .body_parts = 1,
                                    .max_answer = ANSWER_MAX,
                                    .timeout_ms = m->timeout_ms + 1000 /* the deadline comes first */};

    q->attempts++;
    e = e ?: http_start(&q->call, m->http, &rq, question_on_answer, q);
    if (e == 0)
        return;
    (void)snprintf(r->why, sizeof(r->why), "%s",
                   e == -EINVAL ? "the endpoint is not a valid URL" : "the prompt is longer than 1 MiB");
    question_free(q);
}

static void question_on_pause(struct timer *t)
{
    struct llm_question *q = CONTAINER_OF(t, struct llm_question, pause);
    struct llm *m = q->round->llm;

    question_send(q, 0);
    llm_ask_more(m);
}

static void round_ask(struct llm_round *r)
{
    struct llm *m = r->llm;
    struct llm_question *q = xcalloc(1, sizeof(*q));
    BUF_AUTO(prompt, PROMPT_MAX);
    struct input_series series;
    size_t skipped;

    do /* there is one more with a value */
        (void)request_next(&r->scoring->request, &series);
    while (!has_value(&series));
    skipped = series.n - size_min(series.n, (size_t)m->max_values);
    series.times += skipped;
    series.values += skipped;
    series.n -= skipped;
    r->asked++;
    q->round = r;
    q->metric = series.metric;
    q->pause.fn = question_on_pause;
    LIST_INSERT_HEAD(&r->questions, q, entry);
    m->running++;
    buf_init(&q->body, 2 * PROMPT_MAX);
    question_send(q, prompt_put(&prompt, m, &series) ?: request_put(&q->body, m, buf_str(&prompt)));
}

static void llm_ask_more(struct llm *m)
{
    struct llm_round *r, *next;

    for (r = TAILQ_FIRST(&m->rounds); r; r = next) {
        next = TAILQ_NEXT(r, entry);
        while (m->running < (size_t)m->concurrency && r->asked < r->n)
            round_ask(r);
        if (r->asked == r->n && LIST_EMPTY(&r->questions))
            round_end(r);
    }
}

static void round_on_deadline(struct timer *t)
{
    struct llm_round *r = CONTAINER_OF(t, struct llm_round, deadline);
    struct llm *m = r->llm;

    if (!r->why[0])
        (void)snprintf(r->why, sizeof(r->why), "timed out after %.3g s", (double)m->timeout_ms / 1e3);
    round_end(r);
    llm_ask_more(m);
}

/* ---- The start of a round ---- */

/* The endpoint's own key, else the caller's token, else none. -EIO with the reason in the scoring. */
static int round_read_key(struct llm_round *r)
{
    const char *variable = getenv("OPENAI_API_KEY"), *path = r->llm->api_key_file, *wrong = NULL;
    SECRET_AUTO(file, KEY_MAX);
    struct str value = {0}, key = {0}, authorization = r->scoring->authorization;
    int e = path ? file_read(path, &file) : 0;

    if (e < 0) {
        (void)snprintf(r->scoring->why, sizeof(r->scoring->why), "cannot read the API key from %s: %s", path,
                       strerror(-e));
        return -EIO;
    }
    if (file.n)
        value = buf_str(&file);
    else if (variable && *variable)
        value = str_of(variable);
    else if (authorization.n > 7 && str_eq_nocase((struct str){authorization.p, 7}, STR("Bearer ")))
        value = (struct str){authorization.p + 7, authorization.n - 7};
    if (value.n)
        wrong = secret_token(value, &key);
    if (wrong) {
        (void)snprintf(r->scoring->why, sizeof(r->scoring->why), "invalid API key: %s", wrong);
        return -EIO;
    }
    secret_used(key);
    buf_init(&r->key, KEY_MAX);
    buf_put_str(&r->key, key);
    return buf_failed(&r->key);
}

/* The request is checked as a whole before the first question. The server bounds the number of rounds, which
 * is that of its calls. */
static void llm_begin(void *state, struct scoring *s)
{
    struct llm *m = state;
    struct llm_round *r = xcalloc(1, sizeof(*r));
    struct input_series series;
    int e;

    *r = (struct llm_round){.llm = m, .scoring = s, .deadline.fn = round_on_deadline};
    while (request_next(&s->request, &series)) {
        r->n += has_value(&series);
        s->left_out[LEFT_OUT_NOT_FINITE] += !has_value(&series);
    }
    e = s->request.error ?: round_read_key(r);
    if (e < 0) {
        llm_round_free(r);
        scoring_done(s, e);
        return;
    }
    loop_timer_set(m->loop, &r->deadline, mono_add(loop_now(m->loop), m->timeout_ms));
    request_abandon(&s->request);
    request_begin(&s->request, s->request.body);
    TAILQ_INSERT_TAIL(&m->rounds, r, entry);
    llm_ask_more(m);
}

/* ---- The model ---- */

/* The file, or the text, terminated. */
static int llm_read_text(struct buf *into, const char *file, const char *otherwise, char **ret_why)
{
    int r = 0;

    buf_init(into, TEMPLATE_MAX);
    if (file)
        r = file_read(file, into);
    else
        buf_puts(into, otherwise);
    buf_putc(into, '\0');
    r = r ?: buf_failed(into);
    if (r == 0 && strlen(into->p) + 1 == into->n)
        return 0;
    *ret_why = xasprintf("%s: %s", cstr(file), r < 0 ? strerror(-r) : "it has a NUL byte");
    return -EINVAL;
}

static int llm_open(void *state, struct loop *loop, struct metrics *metrics, char **ret_why)
{
    struct llm *m = state;
    int r;

    TAILQ_INIT(&m->rounds);
    m->loop = loop;
    m->metrics = metrics;
    r = llm_read_text(&m->template, m->template_file, llm_default_template, ret_why)
            ?: llm_read_text(&m->tendency, m->tendency_file, "", ret_why)
            ?: template_check(m->template.p, cstr(m->template_file), ret_why);
    m->http = r == 0 ? http_new(m->loop, ds_user_agent) : NULL;
    return r;
}

static void llm_close(void *state)
{
    struct llm *m = state;

    while (!TAILQ_EMPTY(&m->rounds))
        round_end(TAILQ_FIRST(&m->rounds));
    m->http = http_free(m->http);
    buf_done(&m->template);
    buf_done(&m->tendency);
}

static const struct model_endpoint llm_endpoint = {
    .prefix = "",
    .name = "llm-forecast-scorer",
    .description = "A sample score for time series data with vLLM",
    MODEL_CPU_SOURCE,
    .range = 3600,
    .step = 60,
    .score_name = "llm_forecast_score",
    .interval = 60,
};

#define FIELD(name) .field = offsetof(struct llm, name)

static const struct setting llm_settings[] = {
    {"inference-endpoint", "URL", "Completions or chat completions of an OpenAI-compatible server",
     SETTING_URL, FIELD(endpoint), "http://localhost:8000/v1/completions", "VLLM_ENDPOINT"},
    {"model-name", "NAME", "Name of the model", SETTING_TEXT, FIELD(name), "Qwen/Qwen2.5-14B-Instruct"},
    {"prompt-template-file", "FILE",
     "File with the prompt; ${values}, ${labels}, ${app_name}, ${timeseries_kind} and ${tendency} are "
     "replaced",
     SETTING_TEXT, FIELD(template_file)},
    {"tendency-file", "FILE", "File with the text for ${tendency}", SETTING_TEXT, FIELD(tendency_file)},
    {"timeseries-kind", "WORD", "Text for ${timeseries_kind}", SETTING_TEXT, FIELD(timeseries_kind),
     "APP_CPU_LOAD"},
    {"api-key-file", "FILE",
     "File with a key for the endpoint, instead of the caller's token; the variable OPENAI_API_KEY holds one "
     "itself",
     SETTING_TEXT, FIELD(api_key_file)},
    {"temperature", "N", "Temperature of the model; 0 asks for the likeliest answer", SETTING_NUMBER,
     FIELD(temperature), "0", .max = 2},
    {"max-tokens", "N", "Tokens of an answer at most", SETTING_COUNT, FIELD(max_tokens), "64", NULL, 1,
     100000},
    {"max-values", "N", "Samples of a series in the prompt at most, the last ones", SETTING_COUNT,
     FIELD(max_values), "120", NULL, 1, 11000},
    {"concurrency", "N", "Questions at the same time at most", SETTING_COUNT, FIELD(concurrency), "8", NULL,
     1, 256},
    {"scoring-timeout", "DURATION",
     "Deadline of a call; shorter than the agents' timeout, which is the interval", SETTING_DURATION,
     FIELD(timeout_ms), "50s", NULL, 0.1, 3600},
    {.name = NULL},
};

#undef FIELD

const struct model model_llm = {
    .name = "llm",
    .help = "The next value of each series, as a language model says it.",
    .endpoints = &llm_endpoint,
    .n_endpoints = 1,
    .settings = llm_settings,
    .size = sizeof(struct llm),
    .open = llm_open,
    .close = llm_close,
    .begin = llm_begin,
};

/* The next value of each series, as a language model says it. One call of /scoring is a round: a question for
 * each series, several at a time, until all are answered or the deadline has come. A series without an answer
 * is left out; the call fails if that leaves none, so that an agent keeps the scores that it has. Everything
 * runs on the loop. */
#include "exporter/base/backoff.h"
#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/file.h"
#include "exporter/base/http.h"
#include "exporter/base/loop.h"
#include "exporter/base/secret.h"
#include "exporter/base/text.h"
#include "exporter/metric/metrics.h"
#include "exporter/metric/version.h"
#include "exporter/models/llm_text.h"
#include "exporter/models/model.h"
#include "exporter/models/wire.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <sys/queue.h>

enum {
    MAX_SERIES = 100000, /* of a round */
    MAX_ATTEMPTS = 4,
    TEMPLATE_MAX = 256 << 10,
    PROMPT_MAX = 1 << 20,
    ANSWER_MAX = 1 << 20,
    KEY_MAX = 16 << 10,
    ENDPOINT_MAX = 64 << 10,
};

static const struct backoff llm_backoff = {.min_ms = 500, .max_ms = 8000, .retry_after_max_ms = 30000};

struct llm_round;

struct llm {
    const char *endpoint, *name;
    const char *template_file, *tendency_file, *timeseries_kind, *api_key_file;
    double temperature;
    int64_t max_tokens, concurrency, timeout_ms, max_values;
    struct loop *loop;
    struct http *http;
    struct metrics *metrics;
    struct buf template, tendency;            /* terminated */
    struct buf endpoint_shown;                /* terminated; without credentials */
    TAILQ_HEAD(llm_rounds, llm_round) rounds; /* the earliest gets the free calls first */
    size_t running;
    size_t cursor; /* where the next round begins to ask, so that a short time serves all series in turn */
};

enum item_state { ITEM_NEW, ITEM_ASKED, ITEM_DONE, ITEM_NO_NUMBER, ITEM_NO_ANSWER };

/* A series, and the question about it. */
struct llm_item {
    struct llm_round *round;
    struct str raw, metric; /* in the request */
    double score;
    unsigned attempts;
    enum item_state state;
    struct http_call *call; /* while the state is ITEM_ASKED; so is the body */
    struct buf body;
};

struct llm_round {
    struct llm *llm;
    struct scoring *scoring;
    struct llm_item *items;
    size_t n_items, n_open; /* n_open: neither answered nor given up */
    size_t at;              /* where to look for the next one to ask about */
    struct buf key;         /* bearer token for the endpoint */
    struct timer deadline, pause;
    char why[LLM_REASON_BYTES]; /* the last failure */
    TAILQ_ENTRY(llm_round) entry;
};

static void llm_ask_more(struct llm *m);

/* ---- The end of a round ---- */

static void item_end_question(struct llm_item *item)
{
    if (item->state == ITEM_ASKED)
        item->round->llm->running--;
    item->call = http_cancel(item->call);
    buf_done(&item->body);
}

static void round_free(struct llm_round *r)
{
    for (size_t i = 0; i < r->n_items; i++)
        item_end_question(&r->items[i]);
    loop_timer_clear(r->llm->loop, &r->deadline);
    loop_timer_clear(r->llm->loop, &r->pause);
    secret_done(&r->key);
    free(r->items);
    free(r);
}

/* Answers the call with what there is. */
static void round_end(struct llm_round *r)
{
    struct scoring *s = r->scoring;
    struct llm *m = r->llm;
    int e = 0;

    for (size_t i = 0; i < r->n_items; i++) {
        const struct llm_item *item = &r->items[i];

        if (item->state == ITEM_DONE)
            results_add(&s->results, &(struct result){.metric = item->metric, .score = item->score});
        else
            s->left_out[item->state == ITEM_NO_NUMBER ? LEFT_OUT_NO_NUMBER : LEFT_OUT_NO_ANSWER]++;
    }
    if (r->n_items && !s->results.n) {
        (void)snprintf(s->why, sizeof(s->why), "no answer of %.80s: %.150s", m->endpoint_shown.p, r->why);
        secret_hide_text(s->why);
        e = -EIO;
    }
    TAILQ_REMOVE(&m->rounds, r, entry);
    round_free(r);
    scoring_done(s, e);
}

static void item_settle(struct llm_item *item, enum item_state state)
{
    item->state = state;
    item->round->n_open--;
}

/* ---- Answers ---- */

/* What a response, or its absence, means for the question and for the others. */
enum verdict { VERDICT_ANSWER, VERDICT_RETRY, VERDICT_GIVE_UP, VERDICT_GIVE_UP_ALL };

static enum verdict answer_judge(const struct http_answer *a)
{
    if (a->error == HTTP_URL || a->error == HTTP_TLS || a->error == HTTP_REDIRECT)
        return VERDICT_GIVE_UP_ALL;
    if (a->error != HTTP_OK)
        return a->error == HTTP_TOO_LARGE ? VERDICT_GIVE_UP : VERDICT_RETRY;
    switch (a->status) {
    case 400: /* a prompt that is too long, for one */
    case 413:
    case 422:
        return VERDICT_GIVE_UP;
    case 408:
    case 425:
    case 429:
    case 500:
    case 502:
    case 503:
    case 504:
        return VERDICT_RETRY;
    default:
        return a->status / 100 == 2 ? VERDICT_ANSWER : VERDICT_GIVE_UP_ALL;
    }
}

static void llm_count(const struct llm *m, const char *result)
{
    metric_add(m->metrics, METRIC_MODEL_CALLS, LV(result), 1);
}

static void item_read_answer(struct llm_item *item, struct str body)
{
    static const char *const results[] = {
        [LLM_NUMBER] = "success", [LLM_NO_NUMBER] = "no_number", [LLM_INVALID] = "invalid"};
    static const enum item_state states[] = {
        [LLM_NUMBER] = ITEM_DONE, [LLM_NO_NUMBER] = ITEM_NO_NUMBER, [LLM_INVALID] = ITEM_NO_ANSWER};
    enum llm_answer read = llm_read_answer(body, &item->score, item->round->why);

    item_settle(item, states[read]);
    llm_count(item->round->llm, results[read]);
}

/* Asks again later, or no more. During the pause nothing else of the round is asked: what failed is the
 * endpoint, not the series. */
static void item_fail(struct llm_item *item, const struct http_answer *a, enum verdict verdict)
{
    struct llm_round *r = item->round;
    struct loop *loop = r->llm->loop;

    if (a->error == HTTP_OK)
        text_http_status(r->why, sizeof(r->why), a->status, buf_str(&a->body));
    else
        (void)snprintf(r->why, sizeof(r->why), "%.*s", LLM_REASON_BYTES - 1, a->reason);
    llm_count(r->llm, a->error == HTTP_OK ? "http_error" : a->error == HTTP_TIMEOUT ? "timeout" : "failure");
    item->state = ITEM_NEW;
    if (verdict == VERDICT_RETRY && item->attempts < MAX_ATTEMPTS) {
        int64_t pause = backoff_ms(&llm_backoff, item->attempts, a->retry_after_ms);

        loop_timer_set(loop, &r->pause, mono_add(loop_now(loop), pause));
        return;
    }
    item_settle(item, ITEM_NO_ANSWER);
    for (size_t i = 0; verdict == VERDICT_GIVE_UP_ALL && i < r->n_items; i++)
        if (r->items[i].state == ITEM_NEW)
            item_settle(&r->items[i], ITEM_NO_ANSWER);
}

static void item_on_answer(void *arg, struct http_answer *a)
{
    struct llm_item *item = arg;
    struct llm_round *r = item->round;
    struct llm *m = r->llm;
    enum verdict verdict = answer_judge(a);

    item->call = NULL;
    item_end_question(item);
    metric_observe(m->metrics, METRIC_MODEL_SECONDS, LV_NONE, a->seconds);
    if (verdict == VERDICT_ANSWER)
        item_read_answer(item, buf_str(&a->body));
    else
        item_fail(item, a, verdict);
    if (r->n_open == 0)
        round_end(r);
    llm_ask_more(m);
}

/* ---- Questions ---- */

/* Samples are read again for each question, so that a round keeps no copy of them. */
static int item_write_question(struct llm_item *item, const struct llm *m)
{
    const struct llm_prompt p = {m->template.p, m->timeseries_kind, m->tendency.p};
    BUF_AUTO(prompt, PROMPT_MAX);
    struct input_series series;
    struct request again;
    int e = request_read_again(&again, item->raw, &series);
    size_t skipped = series.n - size_min(series.n, (size_t)m->max_values);

    series.times += skipped;
    series.values += skipped;
    series.n -= skipped;
    e = e ?: llm_put_prompt(&prompt, &p, &series);
    request_abandon(&again);
    buf_init(&item->body, 2 * PROMPT_MAX);
    e = e
            ?: llm_put_request(&item->body, llm_is_chat(m->endpoint), m->name, m->temperature, m->max_tokens,
                               buf_str(&prompt));
    return e;
}

static int item_start_question(struct llm_item *item)
{
    struct llm_round *r = item->round;
    const struct llm *m = r->llm;
    int64_t left = mono_diff(loop_now(m->loop), r->deadline.at);
    int e = item_write_question(item, m);
    const struct str body = buf_str(&item->body);
    const struct http_request rq = {.url = m->endpoint,
                                    .content_type = "application/json",
                                    .bearer = buf_str(&r->key),
                                    .body = &body,
                                    .body_parts = 1,
                                    .max_answer = ANSWER_MAX,
                                    .timeout_ms = left > 0 ? left : 1};

    return e ?: http_start(&item->call, m->http, &rq, item_on_answer, item);
}

static void item_ask(struct llm_item *item)
{
    struct llm_round *r = item->round;
    int e;

    item->state = ITEM_ASKED;
    item->attempts++;
    r->llm->running++;
    r->llm->cursor = r->at + 1;
    e = item_start_question(item);
    if (e == 0)
        return;
    (void)snprintf(r->why, sizeof(r->why), "%s",
                   e == -EINVAL  ? "the endpoint is not a valid URL"
                   : e == -EFBIG ? "the prompt is longer than 1 MiB"
                                 : "out of memory");
    item_end_question(item);
    item_settle(item, ITEM_NO_ANSWER);
}

/* The next series to ask about; NULL for none. */
static struct llm_item *round_next(struct llm_round *r)
{
    if (r->pause.place || !r->n_open)
        return NULL;
    for (size_t i = 0; i < r->n_items; i++) {
        if (r->items[r->at].state == ITEM_NEW)
            return &r->items[r->at];
        r->at = (r->at + 1) % r->n_items;
    }
    return NULL;
}

static void llm_ask_more(struct llm *m)
{
    struct llm_round *r, *next;
    struct llm_item *item;

    for (r = TAILQ_FIRST(&m->rounds); r; r = next) {
        next = TAILQ_NEXT(r, entry);
        while (m->running < (size_t)m->concurrency && (item = round_next(r)))
            item_ask(item);
        if (r->n_open == 0)
            round_end(r);
    }
}

static void round_on_pause(struct timer *t)
{
    llm_ask_more(CONTAINER_OF(t, struct llm_round, pause)->llm);
}

static void round_on_deadline(struct timer *t)
{
    struct llm_round *r = CONTAINER_OF(t, struct llm_round, deadline);
    struct llm *m = r->llm;

    if (!r->why[0])
        (void)snprintf(r->why, sizeof(r->why), "none within %.3g s", (double)m->timeout_ms / 1e3);
    round_end(r);
    llm_ask_more(m);
}

/* ---- The start of a round ---- */

static void round_add(struct llm_round *r, const struct input_series *in)
{
    size_t n_finite = 0;

    for (size_t i = 0; i < in->n; i++)
        n_finite += isfinite(in->values[i]) != 0;
    if (n_finite == 0 || r->n_items == MAX_SERIES) {
        r->scoring->left_out[n_finite ? LEFT_OUT_NO_ANSWER : LEFT_OUT_NOT_FINITE]++;
        return;
    }
    if ((r->n_items & (r->n_items - 1)) == 0) {
        struct llm_item *items = xreallocarray(r->items, r->n_items ? 2 * r->n_items : 1, sizeof(*items));

        r->items = items;
    }
    r->items[r->n_items++] = (struct llm_item){.round = r, .raw = in->raw, .metric = in->metric};
    r->n_open++;
}

/* The endpoint's own key, else the caller's token, else none. -EIO with the reason in the scoring, -ENOMEM.
 * */
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
    return buf_put_str(&r->key, key);
}

/* The server bounds the number of rounds, which is that of its calls. */
static void llm_begin(void *state, struct scoring *s)
{
    struct llm *m = state;
    struct llm_round *r = xcalloc(1, sizeof(*r));
    struct input_series series;
    int e = 0;

    *r = (struct llm_round){
        .llm = m, .scoring = s, .deadline.fn = round_on_deadline, .pause.fn = round_on_pause};
    while (request_next(&s->request, &series))
        round_add(r, &series);
    e = s->request.error ?: round_read_key(r);
    loop_timer_set(m->loop, &r->deadline, mono_add(loop_now(m->loop), m->timeout_ms));
    if (e < 0) {
        round_free(r);
        scoring_done(s, e);
        return;
    }
    r->at = r->n_items ? m->cursor % r->n_items : 0;
    TAILQ_INSERT_TAIL(&m->rounds, r, entry);
    llm_ask_more(m);
}

/* ---- The model ---- */

static int llm_explain(char **ret_why, const char *file, const char *why)
{
    return asprintf(ret_why, "%s: %s", file, why) < 0 ? -ENOMEM : -EINVAL;
}

/* The file, or the text, terminated. */
static int llm_read_text(struct buf *into, const char *file, const char *otherwise, char **ret_why)
{
    int r;

    buf_init(into, TEMPLATE_MAX);
    r = file ? file_read(file, into) : buf_puts(into, otherwise);
    r = r ?: buf_putc(into, '\0');
    if (r == 0 && strlen(into->p) + 1 != into->n)
        return llm_explain(ret_why, file, "it has a NUL byte");
    return r == 0 || r == -ENOMEM ? r : llm_explain(ret_why, cstr(file), strerror(-r));
}

static int llm_open(void *state, const struct model_env *env, char **ret_why)
{
    struct llm *m = state;
    CLEANUP(cleanup_free) char *why = NULL;
    BUF_AUTO(agent, 100);
    int r;

    TAILQ_INIT(&m->rounds);
    m->loop = env->loop;
    m->metrics = env->metrics;
    buf_init(&m->endpoint_shown, ENDPOINT_MAX);
    r = llm_read_text(&m->template, m->template_file, llm_default_template, ret_why)
            ?: llm_read_text(&m->tendency, m->tendency_file, "", ret_why);
    r = r ?: llm_template_check(m->template.p, &why);
    if (r == -EINVAL && why)
        r = llm_explain(ret_why, m->template_file, why);
    r = r ?: http_url_for_people(str_of(m->endpoint), &m->endpoint_shown);
    r = r ?: buf_putc(&m->endpoint_shown, '\0');
    r = r ?: buf_printf(&agent, "dynamic-scoring/%s", ds_version) ?: buf_putc(&agent, '\0');
    return r ?: http_new(&m->http, m->loop, agent.p);
}

static void llm_close(void *state)
{
    struct llm *m = state;

    while (!TAILQ_EMPTY(&m->rounds))
        round_end(TAILQ_FIRST(&m->rounds));
    m->http = http_free(m->http);
    buf_done(&m->template);
    buf_done(&m->tendency);
    buf_done(&m->endpoint_shown);
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

/* One call of /scoring: a question for each series that has moved, several at a time, until all are answered
 * or the deadline has come. A series without an answer is left out; the call fails if that leaves none, so
 * that an agent keeps the scores that it has. */
#include "exporter/base/backoff.h"
#include "exporter/base/clock.h"
#include "exporter/base/log.h"
#include "exporter/base/loop.h"
#include "exporter/base/secret.h"
#include "exporter/base/text.h"
#include "exporter/metric/metrics.h"
#include "exporter/models/llm_internal.h"
#include "exporter/models/llm_number.h"
#include "exporter/models/request.h"
#include "exporter/models/results.h"

#include <errno.h>
#include <stdio.h>

enum {
    ATTEMPTS_MAX = 4,
    PROMPT_MAX = 1 << 20,
    ANSWER_MAX = 1 << 20,
};

static const struct backoff retries = {.min_ms = 500, .max_ms = 8000, .retry_after_max_ms = 30000};

/* What a response, or its absence, means for the question and for the others. */
enum llm_verdict { VERDICT_ANSWER, VERDICT_RETRY, VERDICT_GIVE_UP, VERDICT_GIVE_UP_ALL };

static enum llm_verdict round_judge(const struct http_answer *a)
{
    static const struct {
        long status;
        enum llm_verdict verdict;
    } statuses[] = {
        {400, VERDICT_GIVE_UP}, /* a prompt that is too long, for one */
        {408, VERDICT_RETRY},       {413, VERDICT_GIVE_UP},     {422, VERDICT_GIVE_UP},
        {425, VERDICT_RETRY},       {429, VERDICT_RETRY},       {500, VERDICT_RETRY},
        {502, VERDICT_RETRY},       {503, VERDICT_RETRY},       {504, VERDICT_RETRY},
        {401, VERDICT_GIVE_UP_ALL}, {403, VERDICT_GIVE_UP_ALL}, {404, VERDICT_GIVE_UP_ALL},
    };

    if (a->error == HTTP_URL || a->error == HTTP_TLS || a->error == HTTP_REDIRECT)
        return VERDICT_GIVE_UP_ALL;
    if (a->error == HTTP_TOO_LARGE)
        return VERDICT_GIVE_UP;
    if (a->error != HTTP_OK)
        return VERDICT_RETRY;
    if (a->status / 100 == 2)
        return VERDICT_ANSWER;
    for (size_t i = 0; i < ARRAY_SIZE(statuses); i++)
        if (statuses[i].status == a->status)
            return statuses[i].verdict;
    return VERDICT_GIVE_UP_ALL;
}

static void question_free(struct llm_question *q)
{
    q->round->llm->running -= q->call ? 1 : 0;
    q->call = http_cancel(q->call);
    LIST_REMOVE(q, entry);
    buf_done(&q->body);
    free(q);
}

static void round_free(struct llm_round *r)
{
    struct llm_question *q;

    while ((q = LIST_FIRST(&r->questions)))
        question_free(q);
    loop_timer_clear(r->llm->loop, &r->deadline);
    loop_timer_clear(r->llm->loop, &r->pause);
    secret_done(&r->key);
    free(r->items);
    free(r->times);
    free(r->values);
    free(r);
}

/* Whether there is a result, or nothing to answer. */
static bool round_write_results(struct llm_round *r)
{
    size_t *left_out = r->scoring->left_out;

    for (size_t i = 0; i < r->n_items; i++) {
        const struct llm_item *item = &r->items[i];
        if (item->state == ITEM_DONE)
            results_add(&r->scoring->results, &(struct result){.metric = item->metric, .score = item->score});
        else
            left_out[item->state == ITEM_NO_NUMBER ? LEFT_OUT_NO_NUMBER : LEFT_OUT_NO_ANSWER]++;
    }
    return r->scoring->results.n || !r->n_items;
}

void llm_round_end(struct llm_round *r)
{
    struct scoring *s = r->scoring;
    struct llm *m = r->llm;
    int e = 0;

    if (!round_write_results(r)) {
        (void)snprintf(s->why, sizeof(s->why), "no answer of %.80s: %.150s", m->endpoint, r->why);
        e = -EIO;
    }
    TAILQ_REMOVE(&m->rounds, r, entry);
    m->n_rounds--;
    round_free(r);
    scoring_done(s, e);
}

void llm_count(const struct llm *m, const char *result)
{
    metric_add(m->metrics, METRIC_MODEL_CALLS, LV(result), 1);
}

static void round_settle(struct llm_round *r, struct llm_item *item, enum item_state state)
{
    item->state = state;
    r->n_open--;
}

static void round_give_up_all(struct llm_round *r)
{
    for (size_t i = 0; i < r->n_items; i++)
        if (r->items[i].state == ITEM_NEW)
            round_settle(r, &r->items[i], ITEM_NO_ANSWER);
}

/* Nothing more is asked for this round until the pause is over: what failed is the endpoint, not the
 * series. */
static void round_pause(struct llm_round *r, const struct llm_item *item, int64_t retry_after_ms)
{
    mono_ms until = mono_add(loop_now(r->llm->loop), backoff_ms(&retries, item->attempts, retry_after_ms));

    if (loop_timer_set(r->llm->loop, &r->pause, until) < 0)
        log_debug("no pause before the next question: out of memory");
}

static void round_read_number(struct llm_round *r, struct llm_item *item, struct str body)
{
    BUF_AUTO(text, ANSWER_MAX);
    struct llm *m = r->llm;
    char line[80];

    if (!llm_read_answer(body, &text, r->why)) {
        round_settle(r, item, ITEM_NO_ANSWER);
        llm_count(m, "invalid");
        return;
    }
    if (!llm_number(buf_str(&text), &item->score)) {
        text_line(line, sizeof(line), buf_str(&text));
        (void)snprintf(r->why, sizeof(r->why), "the answer has no number: \"%s\"", line);
        round_settle(r, item, ITEM_NO_NUMBER);
        llm_count(m, "no_number");
        return;
    }
    round_settle(r, item, ITEM_DONE);
    llm_count(m, "success");
    llm_cache_put(&m->cache, item->series_hash, item->values_hash, item->score);
}

static void llm_start_more(struct llm *m);

static void round_on_answer(void *arg, struct http_answer *a)
{
    struct llm_question *q = arg;
    struct llm_round *r = q->round;
    struct llm_item *item = q->item;
    struct llm *m = r->llm;
    enum llm_verdict verdict = round_judge(a);

    q->call = NULL;
    m->running--;
    metric_observe(m->metrics, METRIC_MODEL_SECONDS, LV_NONE, a->seconds);
    question_free(q);
    if (verdict == VERDICT_ANSWER) {
        round_read_number(r, item, buf_str(&a->body));
    } else {
        if (a->error != HTTP_OK)
            (void)snprintf(r->why, sizeof(r->why), "%.*s", LLM_REASON_BYTES - 1, a->reason);
        else
            text_http_status(r->why, sizeof(r->why), a->status, buf_str(&a->body));
        llm_count(m, a->error == HTTP_OK ? "http_error" : a->error == HTTP_TIMEOUT ? "timeout" : "failure");
        item->state = ITEM_NEW;
        if (verdict == VERDICT_RETRY && item->attempts < ATTEMPTS_MAX)
            round_pause(r, item, a->retry_after_ms);
        else
            round_settle(r, item, ITEM_NO_ANSWER);
        if (verdict == VERDICT_GIVE_UP_ALL)
            round_give_up_all(r);
    }
    if (r->n_open == 0)
        llm_round_end(r);
    llm_start_more(m);
}

static int question_start(struct llm_round *r, struct llm_item *item)
{
    struct llm *m = r->llm;
    bool chat = llm_is_chat(m->endpoint);
    const struct llm_settings settings = {m->name, m->temperature, (int)m->max_tokens};
    const struct llm_template t = {m->template.p, m->timeseries_kind, m->tendency.p};
    const struct llm_series series = {item->metric, r->times + item->first, r->values + item->first, item->n};
    struct llm_question *q = calloc(1, sizeof(*q));
    struct http_request rq = {.url = m->endpoint,
                              .content_type = "application/json",
                              .bearer = buf_str(&r->key),
                              .body_parts = 1,
                              .max_answer = ANSWER_MAX,
                              .timeout_ms = mono_diff(loop_now(m->loop), r->deadline.at)};
    BUF_AUTO(prompt, PROMPT_MAX);
    int e;

    if (!q)
        return -ENOMEM;
    q->round = r;
    q->item = item;
    buf_init(&q->body, 2 * PROMPT_MAX);
    LIST_INSERT_HEAD(&r->questions, q, entry);
    e = llm_put_prompt(&prompt, &t, &series) ?: llm_put_request(&q->body, &settings, chat, buf_str(&prompt));
    q->part = buf_str(&q->body);
    rq.body = &q->part;
    if (rq.timeout_ms < 1)
        rq.timeout_ms = 1;
    e = e ?: http_start(&q->call, m->http, &rq, round_on_answer, q);
    if (e < 0)
        question_free(q);
    return e;
}

/* The next series to ask about; NULL for none. */
static struct llm_item *round_next(struct llm_round *r)
{
    if (r->pause.place || !r->n_open)
        return NULL;
    for (size_t i = 0; i < r->n_items; i++) {
        struct llm_item *item = &r->items[r->at];
        if (item->state == ITEM_NEW)
            return item;
        r->at = (r->at + 1) % r->n_items;
    }
    return NULL;
}

static void round_ask(struct llm_round *r, struct llm_item *item)
{
    int e;

    item->state = ITEM_ASKED;
    item->attempts++;
    e = question_start(r, item);
    if (e == 0) {
        r->llm->running++;
        r->llm->cursor = r->at + 1;
        return;
    }
    (void)snprintf(r->why, sizeof(r->why), "%s",
                   e == -EINVAL  ? "the endpoint is not a valid URL"
                   : e == -EFBIG ? "the prompt is longer than 1 MiB"
                                 : "out of memory");
    round_settle(r, item, ITEM_NO_ANSWER);
}

static void llm_start_more(struct llm *m)
{
    struct llm_round *r, *next;
    struct llm_item *item;

    for (r = TAILQ_FIRST(&m->rounds); r; r = next) {
        next = TAILQ_NEXT(r, entry);
        while (m->running < (size_t)m->concurrency && (item = round_next(r)))
            round_ask(r, item);
        if (r->n_open == 0)
            llm_round_end(r);
    }
}

static void round_on_pause(struct timer *t)
{
    llm_start_more(CONTAINER_OF(t, struct llm_round, pause)->llm);
}

static void round_on_deadline(struct timer *t)
{
    struct llm_round *r = CONTAINER_OF(t, struct llm_round, deadline);
    struct llm *m = r->llm;

    if (!r->why[0])
        (void)snprintf(r->why, sizeof(r->why), "none within %.3g s", (double)m->timeout_ms / 1e3);
    llm_round_end(r);
    llm_start_more(m);
}

int llm_round_start(struct llm *m, struct scoring *s)
{
    struct llm_round *r = calloc(1, sizeof(*r));
    struct input_series series;
    int e = 0;

    if (!r)
        return -ENOMEM;
    *r = (struct llm_round){.llm = m,
                            .scoring = s,

                            .deadline.fn = round_on_deadline,
                            .pause.fn = round_on_pause};
    while (e == 0 && request_next(&s->request, &series))
        e = llm_round_add(r, &series);
    e = e ?: s->request.error;
    e = e ?: llm_round_read_key(r);
    e = e ?: loop_timer_set(m->loop, &r->deadline, mono_add(loop_now(m->loop), m->timeout_ms));
    if (e < 0) {
        round_free(r);
        return e;
    }
    llm_cache_reserve(&m->cache, r->n_items);
    r->at = r->n_items ? m->cursor % r->n_items : 0;
    TAILQ_INSERT_TAIL(&m->rounds, r, entry);
    m->n_rounds++;
    llm_start_more(m);
    return 0;
}

/* Private to the model `llm` (llm.c, llm_round.c). */
#ifndef DS_MODELS_LLM_INTERNAL_H
#define DS_MODELS_LLM_INTERNAL_H

#include "exporter/base/buf.h"
#include "exporter/base/http.h"
#include "exporter/base/loop.h"
#include "exporter/models/llm_cache.h"
#include "exporter/models/llm_prompt.h"
#include "exporter/models/llm_wire.h"
#include "exporter/models/model.h"
#include "exporter/models/request.h"

#include <sys/queue.h>

struct llm_round;
TAILQ_HEAD(llm_rounds, llm_round);

struct llm {
    /* Settings */
    const char *endpoint, *name;
    const char *template_file, *tendency_file, *timeseries_kind;
    const char *api_key_file;
    double temperature;
    int64_t max_tokens, concurrency, timeout_ms, max_values;
    /* Loop's */
    struct loop *loop;
    struct http *http;
    struct metrics *metrics;
    struct buf template, tendency; /* terminated */
    struct llm_cache cache;
    struct llm_rounds rounds; /* those with series to ask about get the free calls in this order */
    size_t n_rounds, running;
    size_t cursor; /* where the next round begins to ask, so that a short time serves all series in turn */
};

enum { LLM_MAX_ROUNDS = 16, LLM_MAX_SERIES = 100000 };

enum item_state { ITEM_NEW, ITEM_ASKED, ITEM_DONE, ITEM_NO_NUMBER, ITEM_NO_ANSWER };

struct llm_item {
    struct str metric;
    size_t first, n; /* samples in the round's arrays */
    uint64_t series_hash, values_hash;
    double score;
    unsigned attempts;
    enum item_state state;
};

/* One question that has been sent. */
struct llm_question {
    struct llm_round *round;
    struct llm_item *item;
    struct http_call *call;
    struct buf body;
    struct str part;
    LIST_ENTRY(llm_question) entry;
};

struct llm_round {
    struct llm *llm;
    struct scoring *scoring;
    struct llm_item *items;
    size_t n_items, n_open; /* n_open: neither answered nor given up */
    size_t at;              /* where to look for the next one to ask about */
    double *times, *values;
    size_t n_samples, cap_samples;
    struct buf key; /* bearer token for the endpoint */
    LIST_HEAD(, llm_question) questions;
    struct timer deadline, pause;
    char why[LLM_REASON_BYTES]; /* of the last failure */
    TAILQ_ENTRY(llm_round) entry;
};

/* Reads the series of a call: those that have not moved get their answers from the cache. -ENOMEM. */
MUST_USE int llm_round_add(struct llm_round *r, const struct input_series *in);
/* The endpoint's own key, else the caller's token, else none. -EIO with the reason in the scoring,
 * -ENOMEM. */
MUST_USE int llm_round_read_key(struct llm_round *r);
/* Counts a question's end, or an answer from the cache. */
void llm_count(const struct llm *m, const char *result);

/* Asks for the series of one call of /scoring, which it answers by scoring_done(). On failure -ENOMEM, or
 * s->request's own error. */
MUST_USE int llm_round_start(struct llm *m, struct scoring *s);
/* Answers with what there is. */
void llm_round_end(struct llm_round *r);

#endif

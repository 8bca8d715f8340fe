#include "exporter/tsdb/tsdb.h"

#include "exporter/base/hash.h"
#include "exporter/base/memory.h"
#include "exporter/tsdb/index.h"
#include "exporter/tsdb/tsdb_internal.h"

#include <string.h>

/* Samples that are appended while the lock is held: some 50 us if nothing is in the CPU's caches. */
enum { APPEND_PIECE = 128 };

WORD_TABLE(tsdb_result_word, enum tsdb_result, TSDB_RESULTS,
           {[TSDB_OK] = "ok",
            [TSDB_NO_SERIES] = "no_series",
            [TSDB_OUT_OF_ORDER] = "out_of_order",
            [TSDB_DUPLICATE] = "duplicate",
            [TSDB_TOO_OLD] = "too_old",
            [TSDB_TOO_NEW] = "too_new",
            [TSDB_SERIES_LIMIT] = "series_limit",
            [TSDB_BYTES_LIMIT] = "bytes_limit",
            [TSDB_BAD_LABELS] = "bad_labels",
            [TSDB_NO_MEMORY] = "no_memory"});

void tsdb_lock(struct tsdb *t)
{
    (void)pthread_mutex_lock(&t->turn);
    (void)pthread_mutex_lock(&t->lock);
    (void)pthread_mutex_unlock(&t->turn);
}

void tsdb_unlock(struct tsdb *t)
{
    (void)pthread_mutex_unlock(&t->lock);
}

static uint64_t bytes_or_default(uint64_t max_bytes)
{
    uint64_t quarter = max_bytes ? 0 : memory_limit("") / 4;

    return max_bytes ? max_bytes : quarter < TSDB_DEFAULT_BYTES ? quarter : TSDB_DEFAULT_BYTES;
}

int tsdb_new(struct tsdb **ret, const struct tsdb_options *options)
{
    struct tsdb *t = calloc(1, sizeof(*t));

    if (!t)
        return -ENOMEM;
    (void)pthread_mutex_init(&t->turn, NULL);
    (void)pthread_mutex_init(&t->lock, NULL);
    t->options = *options;
    t->budget.max = bytes_or_default(options->max_bytes);
    t->age_ms = TSDB_MIN_AGE_MS;
    t->complete_from = INT64_MIN;
    t->evict_before = INT64_MIN;
    symbols_init(&t->symbols, &t->budget);
    slab_init(&t->series, &t->budget, sizeof(struct series));
    slab_init(&t->blocks, &t->budget, sizeof(struct block));
    t->index = (struct index){.budget = &t->budget};
    *ret = t;
    return 0;
}

struct tsdb *tsdb_free(struct tsdb *t)
{
    if (!t)
        return NULL;
    for (uint32_t id = 1; id < slab_last(&t->series); id++) {
        struct series *s = series_find(t, id);

        if (s)
            free(s->pairs);
    }
    slab_done(&t->series);
    slab_done(&t->blocks);
    index_done(&t->index);
    symbols_done(&t->symbols);
    (void)pthread_mutex_destroy(&t->turn);
    (void)pthread_mutex_destroy(&t->lock);
    free(t);
    return NULL;
}

void tsdb_set_age(struct tsdb *t, int64_t ms)
{
    tsdb_lock(t);
    t->age_ms = ms > TSDB_MIN_AGE_MS ? ms : TSDB_MIN_AGE_MS;
    tsdb_unlock(t);
}

void tsdb_set_limits(struct tsdb *t, uint64_t max_bytes, uint32_t max_series)
{
    max_bytes = bytes_or_default(max_bytes);
    tsdb_lock(t);
    t->budget.max = max_bytes;
    t->options.max_series = max_series;
    tsdb_unlock(t);
}

void tsdb_stats(struct tsdb *t, struct tsdb_stats *ret)
{
    tsdb_lock(t);
    *ret = t->stats;
    ret->series = t->series.used;
    ret->samples = t->samples;
    ret->bytes = t->budget.bytes;
    ret->age_ms = t->age_ms;
    ret->max_series = t->options.max_series;
    ret->max_bytes = t->budget.max;
    tsdb_unlock(t);
}

/* --- series --- */

static bool labels_are_valid(const struct tsdb_label *labels, size_t n)
{
    size_t bytes = 0;

    if (n == 0 || n > TSDB_MAX_LABELS)
        return false;
    for (size_t i = 0; i < n; i++) {
        if (labels[i].name.n == 0 || labels[i].value.n == 0)
            return false;
        if (labels[i].name.n > TSDB_MAX_LABEL_BYTES || labels[i].value.n > TSDB_MAX_LABEL_BYTES)
            return false;
        if (i > 0 && str_cmp(labels[i - 1].name, labels[i].name) >= 0)
            return false;
        bytes += labels[i].name.n + labels[i].value.n;
    }
    return bytes <= TSDB_MAX_LABEL_BYTES;
}

static uint32_t labels_hash(const struct tsdb_label *labels, size_t n)
{
    uint64_t h = n;

    for (size_t i = 0; i < n; i++)
        h = hash_chain(hash_chain(h, labels[i].name), labels[i].value);
    return (uint32_t)h;
}

struct series_key {
    const struct tsdb *t;
    const struct tsdb_label *labels;
    size_t n;
};

static bool series_is(const void *arg, uint32_t id)
{
    const struct series_key *key = arg;
    const struct series *s = series_at(key->t, id);

    if (s->n_pairs != key->n)
        return false;
    for (size_t i = 0; i < key->n; i++)
        if (!str_eq(symbols_text(&key->t->symbols, s->pairs[2 * i]), key->labels[i].name) ||
            !str_eq(symbols_text(&key->t->symbols, s->pairs[2 * i + 1]), key->labels[i].value))
            return false;
    return true;
}

/* References the symbols of all labels, or of none. */
static int pairs_new(struct tsdb *t, const struct series_key *key, uint32_t **ret)
{
    size_t bytes = 2 * sizeof(uint32_t) * key->n, n = 0;
    uint32_t *pairs = NULL;
    int r = budget_take(&t->budget, budget_cost(bytes));

    if (r < 0)
        return r;
    pairs = malloc(bytes);
    r = pairs ? 0 : -ENOMEM;
    for (; r == 0 && n < 2 * key->n; n++)
        r = symbols_ref(&t->symbols, n % 2 ? key->labels[n / 2].value : key->labels[n / 2].name, &pairs[n]);
    if (r == 0) {
        *ret = pairs;
        return 0;
    }
    for (n -= n > 0; n > 0; n--)
        symbols_unref(&t->symbols, pairs[n - 1]);
    free(pairs);
    budget_give(&t->budget, budget_cost(bytes));
    return r;
}

/* Enters the series into the list of its name. */
static void series_link(struct tsdb *t, struct series *s, uint32_t id)
{
    if (!t->name_symbol)
        t->name_symbol = symbols_find(&t->symbols, STR("__name__"));
    for (uint32_t i = 0; i < s->n_pairs; i++) {
        struct symbol *name = symbols_at(&t->symbols, s->pairs[2 * i + 1]);

        if (s->pairs[2 * i] != t->name_symbol)
            continue;
        s->next = name->series;
        if (name->series)
            series_at(t, name->series)->previous = id;
        name->series = id;
    }
}

static int series_new(struct tsdb *t, const struct series_key *key, uint32_t hash, int64_t now, uint32_t *ret)
{
    uint32_t id, *pairs = NULL;
    struct series *s;
    int r = slab_alloc(&t->series, &id);

    if (r < 0)
        return r;
    r = pairs_new(t, key, &pairs) ?: index_add(&t->index, hash, id);
    if (r < 0) {
        for (size_t i = 0; pairs && i < 2 * key->n; i++)
            symbols_unref(&t->symbols, pairs[i]);
        if (pairs)
            budget_give(&t->budget, budget_cost(2 * sizeof(*pairs) * key->n));
        free(pairs);
        slab_free(&t->series, id);
        return r;
    }
    if (++t->generations == 0)
        t->generations = 1;
    s = series_at(t, id);
    *s = (struct series){
        .generation = t->generations, .hash = hash, .pairs = pairs, .n_pairs = (uint16_t)key->n};
    chunk_codec_init(&s->codec);
    s->codec.t = now; /* it expires as if it had a sample */
    series_link(t, s, id);
    t->stats.series_created++;
    *ret = id;
    return 0;
}

static enum tsdb_result result_of(int r)
{
    return r == 0 ? TSDB_OK : r == -ENOBUFS ? TSDB_BYTES_LIMIT : TSDB_NO_MEMORY;
}

static void series_refuse(struct tsdb *t, enum tsdb_result why, int64_t now)
{
    t->stats.series_refused++;
    if (why == TSDB_SERIES_LIMIT)
        t->stats.series_limit_ms = now;
    else if (why == TSDB_BYTES_LIMIT)
        t->stats.bytes_limit_ms = now;
}

/* New series are refused while the others need what is left, or have lost samples for lack of it. */
static bool is_full(const struct tsdb *t, int64_t now)
{
    return tsdb_bytes_left(t) < t->budget.max / 8 || t->complete_from > now - t->age_ms;
}

enum tsdb_result tsdb_ref(struct tsdb *t, const struct tsdb_label *labels, size_t n, uint64_t *ret)
{
    struct series_key key = {t, labels, n};
    enum tsdb_result result = TSDB_OK;
    int64_t now = t->options.clock->wall(t->options.clock).ms;
    uint32_t id, hash;

    if (!labels_are_valid(labels, n))
        return TSDB_BAD_LABELS;
    hash = labels_hash(labels, n);
    tsdb_lock(t);
    id = index_find(&t->index, hash, series_is, &key);
    if (!id && t->series.used >= t->options.max_series)
        result = TSDB_SERIES_LIMIT;
    else if (!id && is_full(t, now))
        result = TSDB_BYTES_LIMIT;
    else if (!id)
        result = result_of(series_new(t, &key, hash, now, &id));
    if (result == TSDB_OK)
        *ret = (uint64_t)series_at(t, id)->generation << 32 | id;
    else
        series_refuse(t, result, now);
    tsdb_unlock(t);
    return result;
}

/* --- samples --- */

static enum tsdb_result append_one(struct tsdb *t, const struct tsdb_sample *sample, int64_t now)
{
    struct series *s = series_find(t, (uint32_t)sample->ref);
    enum tsdb_result result;
    uint64_t v;

    memcpy(&v, &sample->v, sizeof(v));
    if (!s || s->generation != sample->ref >> 32)
        return TSDB_NO_SERIES;
    if (s->last_chunk && sample->t_ms == s->codec.t)
        return v == s->codec.v ? TSDB_OK : TSDB_DUPLICATE;
    if (s->last_chunk && sample->t_ms < s->codec.t)
        return TSDB_OUT_OF_ORDER;
    if (sample->t_ms < now - t->age_ms)
        return TSDB_TOO_OLD;
    if (sample->t_ms > now + TSDB_MAX_AHEAD_MS)
        return TSDB_TOO_NEW;
    result = result_of(series_append(t, s, sample->t_ms, v));
    if (result != TSDB_OK && t->complete_from <= sample->t_ms)
        t->complete_from = sample->t_ms + 1;
    return result;
}

size_t tsdb_append(struct tsdb *t, const struct tsdb_sample *samples, size_t n, enum tsdb_result *ret)
{
    int64_t now = t->options.clock->wall(t->options.clock).ms;
    size_t refused = 0;

    for (size_t i = 0; i < n;) {
        size_t end = size_min(n, i + APPEND_PIECE);

        tsdb_lock(t);
        for (; i < end; i++) {
            ret[i] = append_one(t, &samples[i], now);
            t->stats.results[ret[i]]++;
            refused += ret[i] != TSDB_OK;
        }
        tsdb_unlock(t);
        tsdb_evict(t, now);
    }
    return refused;
}

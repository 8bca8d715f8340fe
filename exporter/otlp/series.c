/* Series are in one list and in two hash tables. A sweep over the list, a piece at a time, drops what is too
 * old; when memory runs short the sweep's horizon moves from the oldest samples towards now, and queries that
 * begin before it fail, since some series would lack samples that others have. */
#include "exporter/otlp/series.h"

#include "exporter/base/map.h"

#include <errno.h>
#include <pthread.h>
#include <sys/queue.h>

enum {
    MALLOC_BYTES = 8, /* of malloc() for each piece */
    FIRST_BUCKETS = 1024,
    SWEEP_SERIES = 256, /* looked at while the lock is held */
    PRUNE_PIECES = 16,
    EVICT_PIECES = 4,
    HORIZON_PARTS = 16, /* the part of the age by which the horizon moves */
    GROW_MAX = 256,     /* samples */
};

/* By the labels, and by the hash that was last given to store_enter(). */
enum { BY_LABELS, BY_REQUEST, TABLES };

struct series {
    TAILQ_ENTRY(series) entry;
    LIST_ENTRY(series) chain[TABLES]; /* of the bucket */
    uint64_t hash[TABLES];
    struct sample *samples;
    uint32_t n, room;
    uint32_t readers; /* which stopped here: the series must stay */
    uint32_t label_bytes;
    int64_t last_ms; /* of the last sample, or when it was created */
    struct series_writer writer;
    char labels[];
};

LIST_HEAD(bucket, series);

struct store {
    pthread_mutex_t turn, lock; /* whoever waits for `lock` has `turn`, so that readers let writers in */
    const struct clock *clock;
    TAILQ_HEAD(, series) list;
    struct series *sweep; /* the next one to look at; NULL: the first */
    struct bucket *buckets[TABLES];
    size_t n_buckets;      /* of each table: a power of two */
    int64_t complete_from; /* older samples were, or will be, evicted */
    struct store_stats stats;
};

bool labels_next(struct str *rest, struct series_label *ret)
{
    if (rest->n == 0)
        return false;
    ret->name = str_take(rest, LABEL_END);
    ret->value = str_take(rest, LABEL_END);
    return true;
}

struct str labels_value(struct str labels, struct str name)
{
    struct series_label l;

    while (labels_next(&labels, &l))
        if (str_eq(l.name, name))
            return l.value;
    return STR("");
}

/* As Prometheus' Labels.Compare: what ends comes before what goes on. */
int labels_compare(struct str a, struct str b)
{
    size_t i = 0, n = size_min(a.n, b.n);

    while (i < n && a.p[i] == b.p[i])
        i++;
    if (i == n)
        return (a.n > b.n) - (a.n < b.n);
    return (uint8_t)(a.p[i] - LABEL_END) - (uint8_t)(b.p[i] - LABEL_END);
}

void store_lock(struct store *s)
{
    (void)pthread_mutex_lock(&s->turn);
    (void)pthread_mutex_lock(&s->lock);
    (void)pthread_mutex_unlock(&s->turn);
}

void store_unlock(struct store *s)
{
    (void)pthread_mutex_unlock(&s->lock);
}

static int64_t store_now(const struct store *s)
{
    return s->clock->wall(s->clock).ms;
}

static struct bucket *store_bucket(const struct store *s, unsigned table, uint64_t hash)
{
    return &s->buckets[table][hash & (s->n_buckets - 1)];
}

static void store_link(struct store *s, struct series *x, unsigned table, uint64_t hash)
{
    x->hash[table] = hash;
    LIST_INSERT_HEAD(store_bucket(s, table, hash), x, chain[table]);
}

static void store_rehash(struct store *s, size_t n_buckets)
{
    struct series *x;

    s->stats.bytes += (n_buckets - s->n_buckets) * TABLES * sizeof(*s->buckets[0]);
    s->n_buckets = n_buckets;
    for (unsigned table = 0; table < TABLES; table++) {
        free(s->buckets[table]);
        s->buckets[table] = xcalloc(n_buckets, sizeof(*s->buckets[table]));
        TAILQ_FOREACH (x, &s->list, entry)
            store_link(s, x, table, x->hash[table]);
    }
}

struct store *store_new(const struct clock *clock)
{
    struct store *s = xcalloc(1, sizeof(*s));

    (void)pthread_mutex_init(&s->turn, NULL);
    (void)pthread_mutex_init(&s->lock, NULL);
    s->clock = clock;
    TAILQ_INIT(&s->list);
    s->complete_from = INT64_MIN;
    s->stats.age_ms = STORE_MIN_AGE_MS;
    store_rehash(s, FIRST_BUCKETS);
    store_set_limits(s, 0, UINT64_MAX);
    return s;
}

void store_set_limits(struct store *s, uint64_t max_bytes, uint64_t max_series)
{
    if (!max_bytes)
        max_bytes = size_min(memory_limit("") / 4, 256 << 20);
    store_lock(s);
    s->stats.max_bytes = max_bytes;
    s->stats.max_series = max_series;
    store_unlock(s);
}

void store_set_age(struct store *s, int64_t ms)
{
    store_lock(s);
    s->stats.age_ms = ms > STORE_MIN_AGE_MS ? ms : STORE_MIN_AGE_MS;
    store_unlock(s);
}

void store_stats(struct store *s, struct store_stats *ret)
{
    store_lock(s);
    *ret = s->stats;
    store_unlock(s);
}

/* ---- Dropping samples. Lock held ---- */

static void series_resize(struct store *s, struct series *x, size_t room)
{
    s->stats.bytes += room * sizeof(*x->samples);
    s->stats.bytes -= x->room * sizeof(*x->samples);
    x->samples = xreallocarray(x->samples, room, sizeof(*x->samples));
    x->room = (uint32_t)room;
}

/* Drops older samples, once they are an eighth of all. Returns how many. */
static size_t series_drop_before(struct store *s, struct series *x, int64_t before)
{
    size_t n = 0;

    while (n < x->n && x->samples[n].t < before)
        n++;
    if (n * 8 <= x->n)
        return 0;
    x->n -= (uint32_t)n;
    memmove(x->samples, x->samples + n, x->n * sizeof(*x->samples));
    s->stats.samples -= n;
    if (x->n + x->n / 4 + 8 < x->room)
        series_resize(s, x, x->n + x->n / 8 + 1);
    return n;
}

static size_t series_bytes(const struct series *x)
{
    return sizeof(*x) + x->label_bytes + x->room * sizeof(*x->samples) + 2 * MALLOC_BYTES;
}

static void series_free(struct store *s, struct series *x)
{
    TAILQ_REMOVE(&s->list, x, entry);
    for (unsigned table = 0; table < TABLES; table++)
        LIST_REMOVE(x, chain[table]);
    s->stats.samples -= x->n;
    s->stats.bytes -= series_bytes(x);
    s->stats.series--;
    free(x->samples);
    free(x);
}

/* How much is left before the samples that exist could not grow. */
static bool is_short(const struct store *s, uint64_t part)
{
    return s->stats.bytes > s->stats.max_bytes - s->stats.max_bytes / part;
}

/* Returns whether that was the end of a turn over all series. */
static bool sweep_piece(struct store *s, int64_t now)
{
    struct series *x = s->sweep ?: TAILQ_FIRST(&s->list);
    int64_t too_old = now - s->stats.age_ms;

    for (size_t i = 0; i < SWEEP_SERIES && x; i++) {
        s->sweep = TAILQ_NEXT(x, entry);
        if (x->last_ms < too_old && x->readers == 0) {
            series_free(s, x);
        } else {
            (void)series_drop_before(s, x, too_old);
            s->stats.samples_evicted += series_drop_before(s, x, s->complete_from);
        }
        x = s->sweep;
    }
    if (x)
        return false;
    if (is_short(s, 16) && s->complete_from < now)
        s->complete_from =
            (s->complete_from > too_old ? s->complete_from : too_old) + s->stats.age_ms / HORIZON_PARTS;
    return true;
}

void store_prune(struct store *s)
{
    bool ended = false;

    for (unsigned piece = 0; piece < PRUNE_PIECES && !ended; piece++) {
        store_lock(s);
        ended = sweep_piece(s, store_now(s));
        store_unlock(s);
    }
}

/* ---- Finding and creating series. Lock held ---- */

static struct series *store_lookup(const struct store *s, unsigned table, uint64_t hash)
{
    struct series *x;

    LIST_FOREACH (x, store_bucket(s, table, hash), chain[table])
        if (x->hash[table] == hash)
            break;
    return x;
}

struct series *store_find(const struct store *s, uint64_t hash)
{
    return store_lookup(s, BY_REQUEST, hash);
}

/* New series are refused while the others need what is left, or have lost samples for lack of it. */
static enum store_result store_refuses(struct store *s, int64_t now)
{
    bool is_full = s->stats.series >= s->stats.max_series;

    if (!is_full && !is_short(s, 8) && s->complete_from <= now - s->stats.age_ms)
        return STORE_OK;
    s->stats.series_refused++;
    *(is_full ? &s->stats.series_limit_ms : &s->stats.bytes_limit_ms) = now;
    return is_full ? STORE_SERIES_LIMIT : STORE_BYTES_LIMIT;
}

enum store_result store_enter(struct store *s, struct str labels, uint64_t hash, struct series **ret)
{
    uint64_t own = hash_bytes(labels);
    struct series *x = store_lookup(s, BY_LABELS, own);
    enum store_result refused;

    if (x) {
        LIST_REMOVE(x, chain[BY_REQUEST]);
    } else {
        int64_t now = store_now(s);

        refused = labels.n > SERIES_MAX_LABEL_BYTES ? STORE_BAD_LABELS : store_refuses(s, now);
        if (refused != STORE_OK)
            return refused;
        if (s->stats.series >= s->n_buckets)
            store_rehash(s, s->n_buckets * 2);
        x = xcalloc(1, sizeof(*x) + labels.n);
        x->label_bytes = (uint32_t)labels.n;
        memcpy(x->labels, labels.p, labels.n);
        x->last_ms = now; /* it expires as if it had a sample */
        store_link(s, x, BY_LABELS, own);
        TAILQ_INSERT_TAIL(&s->list, x, entry);
        s->stats.bytes += series_bytes(x);
        s->stats.series++;
    }
    store_link(s, x, BY_REQUEST, hash);
    *ret = x;
    return STORE_OK;
}

struct series_writer *series_writer(struct series *x)
{
    return &x->writer;
}

/* ---- Samples. Lock held ---- */

static enum store_result series_grow(struct store *s, struct series *x, int64_t t_ms, int64_t now)
{
    size_t more = size_min(x->n / 8 + 8, GROW_MAX);

    x->readers++; /* it stays, even if all of its samples are too old */
    for (unsigned piece = 0; piece < EVICT_PIECES && is_short(s, 16); piece++)
        (void)sweep_piece(s, now);
    x->readers--;
    if (x->n < x->room || series_drop_before(s, x, now - s->stats.age_ms))
        return STORE_OK;
    if (s->stats.bytes + more * sizeof(*x->samples) > s->stats.max_bytes) {
        if (s->complete_from <= t_ms)
            s->complete_from = t_ms + 1;
        return STORE_BYTES_LIMIT;
    }
    series_resize(s, x, x->n + more);
    return STORE_OK;
}

enum store_result store_append(struct store *s, struct series *x, int64_t t_ms, double v)
{
    int64_t now = store_now(s);
    enum store_result grown;

    if (x->n && t_ms == x->last_ms)
        return double_bits(x->samples[x->n - 1].v) == double_bits(v) ? STORE_OK : STORE_DUPLICATE;
    if (x->n && t_ms < x->last_ms)
        return STORE_OUT_OF_ORDER;
    if (t_ms < now - s->stats.age_ms)
        return STORE_TOO_OLD;
    if (t_ms > now + STORE_MAX_AHEAD_MS)
        return STORE_TOO_NEW;
    grown = x->n < x->room ? STORE_OK : series_grow(s, x, t_ms, now);
    if (grown != STORE_OK)
        return grown;
    x->last_ms = t_ms;
    x->samples[x->n++] = (struct sample){t_ms, v};
    s->stats.samples++;
    return STORE_OK;
}

struct store *store_free(struct store *s)
{
    if (!s)
        return NULL;
    while (!TAILQ_EMPTY(&s->list))
        series_free(s, TAILQ_FIRST(&s->list));
    free(s->buckets[BY_LABELS]);
    free(s->buckets[BY_REQUEST]);
    (void)pthread_mutex_destroy(&s->turn);
    (void)pthread_mutex_destroy(&s->lock);
    free(s);
    return NULL;
}

/* ---- Reading. Lock held, except by series_next() ---- */

/* 1 if the series matches, 0 if not. */
static int reader_matches(struct series_reader *r, const struct series *x)
{
    for (const struct series_matcher *m = r->matchers; m; m = m->next) {
        struct str value = labels_value((struct str){x->labels, x->label_bytes}, m->name);
        int matched = m->regex ? regex_match(r->regexes, m->regex, value) : str_eq(value, m->value);

        if (matched == -EINVAL) /* a value that is not UTF-8 matches no expression */
            matched = 0;
        if (matched < 0)
            return matched;
        if ((matched > 0) == m->negated)
            return 0;
    }
    return 1;
}

/* Copies labels and samples. 1 if there are samples in the range. */
static int reader_copy(struct series_reader *r, const struct series *x)
{
    size_t first = 0, end = x->n;

    while (first < end && x->samples[first].t < r->from_ms)
        first++;
    while (end > first && x->samples[end - 1].t > r->to_ms)
        end--;
    r->n = end - first;
    if (r->n == 0)
        return 0;
    if (r->n > r->room)
        r->samples = xreallocarray(r->samples, r->room = r->n * 2, sizeof(*r->samples));
    memcpy(r->samples, x->samples + first, r->n * sizeof(*r->samples));
    r->text.n = 0;
    (void)!buf_put(&r->text, x->labels, x->label_bytes);
    r->labels = buf_str(&r->text);
    return 1;
}

static void reader_move(struct series_reader *r, struct series *to)
{
    if (r->at)
        r->at->readers--;
    if (to)
        to->readers++;
    r->at = to;
}

/* Looks at series up to the first that matches. The lock is held for one at a time. */
int series_next(struct series_reader *r)
{
    const struct store *s = r->store;
    int found = 0;

    if (!r->regexes) {
        r->regexes = regex_matcher_new();
        r->text.max = SIZE_MAX;
    }
    do {
        store_lock(r->store);
        reader_move(r, r->at ? TAILQ_NEXT(r->at, entry) : TAILQ_FIRST(&s->list));
        if (s->complete_from > r->from_ms)
            found = -ENODATA;
        else if (r->at)
            found = reader_matches(r, r->at);
        if (found > 0)
            found = reader_copy(r, r->at);
        store_unlock(r->store);
    } while (found == 0 && r->at);
    return found;
}

void series_reader_done(struct series_reader *r)
{
    store_lock(r->store);
    reader_move(r, NULL);
    store_unlock(r->store);
    (void)regex_matcher_free(r->regexes);
    buf_done(&r->text);
    free(r->samples);
}

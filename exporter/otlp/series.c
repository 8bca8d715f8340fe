/* Series are in one list and in two hash tables, which grow by a bucket for each series that is added, so
 * that no call moves more than the series of one bucket. A sweep over the list, a piece at a time, drops what
 * is too old; when memory runs short the sweep's horizon moves from the oldest samples towards now, and
 * queries that begin before it fail, since some series would lack samples that others have. */
#include "exporter/otlp/series.h"

#include "exporter/base/alloc.h"
#include "exporter/base/cgroup.h"
#include "exporter/base/hash.h"
#include "exporter/base/invariant.h"
#include "exporter/base/lock.h"

#include <errno.h>
#include <pthread.h>
#include <sys/queue.h>

enum {
    MALLOC_BYTES = 8,     /* of malloc() for each piece */
    FIRST_BUCKETS = 1024, /* a power of two */
    SEGMENTS = 48,        /* of a table; each but the first is as large as all before it */
    SWEEP_SERIES = 32,    /* looked at while the lock is held */
    PRUNE_PIECES = 128,
    EVICT_PIECES = 4,
    COPY_SAMPLES = 4096, /* copied while the lock is held */
    HORIZON_PARTS = 16,  /* the part of the age by which the horizon moves */
    GROW_MAX = 256,      /* samples, or */
    GROW_PARTS = 32,     /* this part of them, if that is more, so that copying them stays cheap */
};

/* By the labels, and by the hash that was last given to store_enter(). */
enum { BY_LABELS, BY_REQUEST, TABLES };

struct series {
    TAILQ_ENTRY(series) entry;
    LIST_ENTRY(series) chain[TABLES]; /* of the bucket */
    uint64_t hash[TABLES];
    struct sample *samples;
    uint32_t n, room;
    uint32_t holders; /* the series must stay for them */
    uint32_t label_bytes;
    bool has_begun;  /* there was a sample */
    int64_t last_ms; /* of the last sample, or when it was created */
    struct series_writer writer;
    char labels[];
};

LIST_HEAD(bucket, series);

struct store {
    struct lock turn, lock; /* whoever waits for `lock` has `turn`, so that readers let writers in */
    const struct clock *clock;
    TAILQ_HEAD(, series) list;
    struct series *sweep; /* the next one to look at; NULL: the first */
    struct bucket *segments[TABLES][SEGMENTS];
    size_t n_buckets;      /* of each table */
    uint64_t version;      /* new series that got their first sample */
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
    lock_take(&s->turn);
    lock_take(&s->lock);
    lock_release(&s->turn);
}

void store_unlock(struct store *s)
{
    lock_release(&s->lock);
}

static int64_t store_now(const struct store *s)
{
    return s->clock->wall(s->clock).ms;
}

/* ---- The tables: linear hashing, after Litwin. A hash's bucket is its low bits; where those name a bucket
 * that does not exist yet, one bit less. Lock held ---- */

/* The largest power of two up to n. */
static size_t power_of_two(size_t n)
{
    return (size_t)1 << (63 - __builtin_clzll(n));
}

/* Bucket i: in the first segment, or in one that begins at a power of two. */
static struct bucket *table_bucket(const struct store *s, unsigned table, size_t i)
{
    size_t begin;

    if (i < FIRST_BUCKETS)
        return &s->segments[table][0][i];
    begin = power_of_two(i);
    return &s->segments[table][1 + __builtin_ctzll(begin / FIRST_BUCKETS)][i - begin];
}

static struct bucket *store_bucket(const struct store *s, unsigned table, uint64_t hash)
{
    size_t half = power_of_two(s->n_buckets), i = hash & (2 * half - 1);

    return table_bucket(s, table, i < s->n_buckets ? i : i - half);
}

static void store_link(struct store *s, struct series *x, unsigned table, uint64_t hash)
{
    x->hash[table] = hash;
    LIST_INSERT_HEAD(store_bucket(s, table, hash), x, chain[table]);
}

/* Room for buckets up to twice as many. Zeroed memory of this size comes from the system page by page. */
static void store_add_segment(struct store *s, size_t n)
{
    unsigned segment = n == 0 ? 0 : 1 + (unsigned)__builtin_ctzll(n / FIRST_BUCKETS);
    size_t room = n == 0 ? FIRST_BUCKETS : n;

    invariant(segment < SEGMENTS);
    for (unsigned table = 0; table < TABLES; table++)
        s->segments[table][segment] = xcalloc(room, sizeof(struct bucket));
    s->stats.bytes += room * TABLES * sizeof(struct bucket);
}

/* Adds a bucket to each table, and moves those series to it that belong there: half of another bucket's. */
static void store_add_bucket(struct store *s)
{
    size_t added = s->n_buckets, half = power_of_two(added);

    invariant(lock_is_held(&s->lock));
    if (added == half)
        store_add_segment(s, added);
    s->n_buckets++;
    for (unsigned table = 0; table < TABLES; table++) {
        struct series *x = LIST_FIRST(table_bucket(s, table, added - half)), *next;

        for (; x; x = next) {
            next = LIST_NEXT(x, chain[table]);
            if ((x->hash[table] & (2 * half - 1)) != added)
                continue;
            LIST_REMOVE(x, chain[table]);
            store_link(s, x, table, x->hash[table]);
        }
    }
}

struct store *store_new(const struct clock *clock)
{
    struct store *s = xcalloc(1, sizeof(*s));

    lock_init(&s->turn);
    lock_init(&s->lock);
    s->clock = clock;
    TAILQ_INIT(&s->list);
    s->complete_from = INT64_MIN;
    s->stats.age_ms = STORE_MIN_AGE_MS;
    store_add_segment(s, 0);
    s->n_buckets = FIRST_BUCKETS;
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

/* How many samples are older. */
static size_t series_count_before(const struct series *x, int64_t before)
{
    size_t low = 0, high = x->n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (x->samples[middle].t < before)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Drops older samples, once they are an eighth of all. Returns how many. */
static size_t series_drop_before(struct store *s, struct series *x, int64_t before)
{
    size_t n = series_count_before(x, before);

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

/* Also of one that the sweep, in its pause, would go on with. */
static void series_free(struct store *s, struct series *x)
{
    invariant(x->holders == 0);
    if (s->sweep == x)
        s->sweep = TAILQ_NEXT(x, entry);
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

    invariant(lock_is_held(&s->lock));
    for (size_t i = 0; i < SWEEP_SERIES && x; i++) {
        s->sweep = TAILQ_NEXT(x, entry);
        if (x->last_ms < too_old && x->holders == 0) {
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

struct series *store_find(struct store *s, uint64_t hash)
{
    struct series *x = store_lookup(s, BY_REQUEST, hash);

    invariant(lock_is_held(&s->lock));
    if (x)
        x->holders++;
    return x;
}

void store_release(struct store *s, struct series *x)
{
    invariant(lock_is_held(&s->lock));
    invariant(x->holders > 0);
    x->holders--;
    if (x->holders == 0 && !x->has_begun)
        series_free(s, x);
}

/* New series are refused while the others need what is left, or have lost samples for lack of it. */
enum store_result store_refuses(struct store *s)
{
    bool is_full = s->stats.series >= s->stats.max_series;
    int64_t now = store_now(s);

    invariant(lock_is_held(&s->lock));
    if (!is_full && !is_short(s, 8) && s->complete_from <= now - s->stats.age_ms)
        return STORE_OK;
    s->stats.series_refused++;
    *(is_full ? &s->stats.series_limit_ms : &s->stats.bytes_limit_ms) = now;
    return is_full ? STORE_SERIES_LIMIT : STORE_BYTES_LIMIT;
}

uint64_t store_version(const struct store *s)
{
    invariant(lock_is_held(&s->lock));
    return s->version;
}

/* A copy of the labels, in no list yet. */
static struct series *series_new(struct str labels, uint64_t labels_hash)
{
    struct series *x = xcalloc(1, sizeof(*x) + labels.n);

    x->label_bytes = (uint32_t)labels.n;
    memcpy(x->labels, labels.p, labels.n);
    x->hash[BY_LABELS] = labels_hash;
    return x;
}

/* Returns the series, which is held. Lock held. */
static struct series *store_add(struct store *s, struct series *x, uint64_t hash)
{
    invariant(lock_is_held(&s->lock));
    if (s->stats.series >= s->n_buckets)
        store_add_bucket(s);
    x->last_ms = store_now(s); /* it expires as if it had a sample */
    x->holders = 1;
    store_link(s, x, BY_LABELS, x->hash[BY_LABELS]);
    store_link(s, x, BY_REQUEST, hash);
    TAILQ_INSERT_TAIL(&s->list, x, entry);
    s->stats.bytes += series_bytes(x);
    s->stats.series++;
    return x;
}

/* Makes `hash` find the series with these labels, and holds it. NULL if there is none. Lock held. */
static struct series *store_claim(struct store *s, uint64_t labels_hash, uint64_t hash)
{
    struct series *x = store_lookup(s, BY_LABELS, labels_hash);

    invariant(lock_is_held(&s->lock));
    if (!x)
        return NULL;
    LIST_REMOVE(x, chain[BY_REQUEST]);
    store_link(s, x, BY_REQUEST, hash);
    x->holders++;
    return x;
}

/* Labels are copied between two turns with the lock, and only for a series that will be added. */
enum store_result store_enter(struct store *s, struct str labels, uint64_t hash, struct series **ret)
{
    CLEANUP(cleanup_free) struct series *made = NULL;
    enum store_result result = STORE_OK;
    uint64_t labels_hash;
    struct series *x;

    if (labels.n > SERIES_MAX_LABEL_BYTES)
        return STORE_BAD_LABELS;
    labels_hash = hash_bytes(labels);
    store_lock(s);
    x = store_claim(s, labels_hash, hash);
    if (!x)
        result = store_refuses(s);
    store_unlock(s);
    if (!x && result == STORE_OK) {
        made = series_new(labels, labels_hash);
        store_lock(s);
        x = store_claim(s, labels_hash, hash);
        if (!x)
            x = store_add(s, TAKE_PTR(made), hash);
        store_unlock(s);
    }
    if (x)
        *ret = x;
    return result;
}

struct series_writer *series_writer(struct series *x)
{
    return &x->writer;
}

/* ---- Samples. Lock held ---- */

/* By how many samples a series grows. Close to the ceiling the steps are small: each of them moves the
 * horizon, which has to reach what can be evicted before the ceiling is reached. */
static size_t series_growth(const struct store *s, const struct series *x)
{
    size_t most = is_short(s, 16) ? GROW_MAX : size_max(GROW_MAX, x->n / GROW_PARTS);

    return size_min(x->n / 8 + 8, most);
}

static enum store_result series_grow(struct store *s, struct series *x, int64_t t_ms)
{
    int64_t now = store_now(s);
    size_t more;

    invariant(x->holders > 0); /* it stays, even if all of its samples are too old */
    for (unsigned piece = 0; piece < EVICT_PIECES && is_short(s, 16); piece++)
        (void)sweep_piece(s, now);
    if (x->n < x->room || series_drop_before(s, x, now - s->stats.age_ms))
        return STORE_OK;
    more = series_growth(s, x);
    if (s->stats.bytes + more * sizeof(*x->samples) > s->stats.max_bytes) {
        if (s->complete_from <= t_ms)
            s->complete_from = t_ms + 1;
        return STORE_BYTES_LIMIT;
    }
    series_resize(s, x, x->n + more);
    return STORE_OK;
}

enum store_result store_check_time(const struct store *s, int64_t t_ms)
{
    int64_t now = store_now(s);

    invariant(lock_is_held(&s->lock));
    if (t_ms < now - s->stats.age_ms)
        return STORE_TOO_OLD;
    return t_ms > now + STORE_MAX_AHEAD_MS ? STORE_TOO_NEW : STORE_OK;
}

enum store_result store_reserve(struct store *s, struct series *x, int64_t t_ms, double v)
{
    enum store_result timely = store_check_time(s, t_ms);

    invariant(lock_is_held(&s->lock));
    if (x->n && t_ms == x->last_ms)
        return double_bits(x->samples[x->n - 1].v) == double_bits(v) ? STORE_OK : STORE_DUPLICATE;
    if (x->n && t_ms < x->last_ms)
        return STORE_OUT_OF_ORDER;
    if (timely != STORE_OK)
        return timely;
    return x->n < x->room ? STORE_OK : series_grow(s, x, t_ms);
}

enum store_result store_push(struct store *s, struct series *x, int64_t t_ms, double v)
{
    invariant(lock_is_held(&s->lock));
    if (x->n && t_ms == x->last_ms)
        return double_bits(x->samples[x->n - 1].v) == double_bits(v) ? STORE_OK : STORE_DUPLICATE;
    invariant(x->holders > 0 && x->n < x->room);
    invariant(x->n == 0 || t_ms > x->last_ms);
    if (!x->has_begun)
        s->version++;
    x->has_begun = true;
    x->last_ms = t_ms;
    x->samples[x->n++] = (struct sample){t_ms, v};
    s->stats.samples++;
    return STORE_OK;
}

enum store_result store_append(struct store *s, struct series *x, int64_t t_ms, double v)
{
    enum store_result result = store_reserve(s, x, t_ms, v);

    return result == STORE_OK ? store_push(s, x, t_ms, v) : result;
}

struct store *store_free(struct store *s)
{
    if (!s)
        return NULL;
    while (!TAILQ_EMPTY(&s->list))
        series_free(s, TAILQ_FIRST(&s->list));
    for (unsigned segment = 0; segment < SEGMENTS; segment++) {
        free(s->segments[BY_LABELS][segment]);
        free(s->segments[BY_REQUEST][segment]);
    }
    lock_done(&s->turn);
    lock_done(&s->lock);
    free(s);
    return NULL;
}

/* ---- Reading. Lock not held, unless a function says so ---- */

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

/* Takes the next samples of the range, as many as there is room for. Returns whether there are more. */
static bool reader_copy(struct series_reader *r, const struct series *x)
{
    int64_t from_ms = r->n ? r->samples[r->n - 1].t + 1 : r->from_ms;
    size_t first = series_count_before(x, from_ms);
    size_t end = r->to_ms == INT64_MAX ? x->n : series_count_before(x, r->to_ms + 1);
    size_t n = end > first ? size_min(end - first, COPY_SAMPLES) : 0;

    invariant(lock_is_held(&r->store->lock));
    invariant(n <= r->room - r->n);
    if (n)
        memcpy(r->samples + r->n, x->samples + first, n * sizeof(*r->samples));
    r->n += n;
    return end > first + n;
}

static bool reader_is_complete(const struct series_reader *r)
{
    return r->store->complete_from <= r->from_ms;
}

/* Copies labels and samples of the series at hand, which stays. 1 if there are samples in the range. */
static int reader_read_range(struct series_reader *r)
{
    bool is_complete, more;

    buf_clear(&r->text);
    buf_put(&r->text, r->at->labels, r->at->label_bytes);
    if (buf_failed(&r->text) < 0)
        memory_exhausted(r->at->label_bytes);
    r->labels = buf_str(&r->text);
    r->n = 0;
    do {
        if (r->room - r->n < COPY_SAMPLES) {
            r->room = r->room * 2 + COPY_SAMPLES;
            r->samples = xreallocarray(r->samples, r->room, sizeof(*r->samples));
        }
        store_lock(r->store);
        more = reader_copy(r, r->at);
        is_complete = reader_is_complete(r);
        store_unlock(r->store);
    } while (more && is_complete);
    return is_complete ? r->n > 0 : -ENODATA;
}

static void reader_move(struct series_reader *r, struct series *to)
{
    struct series *from = r->at;

    invariant(lock_is_held(&r->store->lock));
    if (to)
        to->holders++;
    r->at = to;
    if (from)
        store_release(r->store, from);
}

/* Looks at series up to the first that matches. The lock is held to go on to the next one, and to copy
 * samples; the labels of a series that stays do not change. */
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
        if (!reader_is_complete(r))
            found = -ENODATA;
        store_unlock(r->store);
        if (found == 0 && r->at)
            found = reader_matches(r, r->at);
        if (found > 0)
            found = reader_read_range(r);
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

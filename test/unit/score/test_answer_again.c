/* Answer after answer into one builder, which knows most labels by how the last answer spelled them, and each
 * into a new builder, which has to read them all: both must make the same batch. */
#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/metric/batch.h"
#include "exporter/metric/batch_builder.h"
#include "exporter/metric/series.h"
#include "exporter/score/answer.h"
#include "exporter/score/round_error.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

enum { ROUNDS = 4000, MAX_ITEMS = 40, LABEL_MAX = 256 };

static uint64_t random_u64(void)
{
    static uint64_t x = 0x2545f4914f6cdd1d;

    x ^= x << 13;
    x ^= x >> 7;
    return x ^= x << 17;
}

static size_t below(size_t n)
{
    return (size_t)(random_u64() >> 20) % n;
}

/* A result by its two numbers: which labels, and how they are written. */
struct item {
    size_t key, style;
};

/* Values that have to be mended or cut, names twice, odd values, another order, spaces: none may be taken for
 * another. */
static void put_metric(struct buf *b, struct item it)
{
    static const char *const styles[] = {
        "{\"pod\":\"p-%zu\",\"node\":\"n\"}",
        "{\"node\":\"n\", \"pod\":\"p-%zu\"}",
        "{\"pod\":\"p\\u002d%zu\",\"node\":\"n\"}",
        "{\"pod\":\"\xff%zu\"}",
        "{\"pod\":\"a value that is longer than one of the limits %zu\"}",
        "{\"pod\":\"x\",\"pod\":\"p-%zu\"}",
        "{\"pod\":%zu,\"other\":[{}]}",
        "{\"node\":{},\"pod\":\"p-%zu\"}",
        "{ \"namespace\" : \"\\\"}\" , \"app\" : \"%zu\" }",
    };

    buf_printf(b, styles[it.style % ARRAY_SIZE(styles)], it.key);
    assert_int_equal(buf_failed(b), 0);
}

static void put_result(struct buf *b, struct item it)
{
    static const char *const shapes[] = {"1", "-0.5", "1e300", "\"NaN\"", "null", "\"7\"", "{}"};
    const char *score = below(8) ? shapes[below(4)] : shapes[below(ARRAY_SIZE(shapes))];

    if (below(30) == 0) {
        buf_printf(b, "{\"score\":%s}", score);
        assert_int_equal(buf_failed(b), 0);
        return;
    }
    buf_puts(b, below(20) ? "{\"metric\":" : "{\"metric\":{\"pod\":\"p-1\"},\"metric\": ");
    assert_int_equal(buf_failed(b), 0);
    put_metric(b, it);
    buf_printf(b, ",\"score\":%s", score);
    assert_int_equal(buf_failed(b), 0);
    if (below(30) == 0) {
        buf_puts(b, ",\"metric\":");
        assert_int_equal(buf_failed(b), 0);
        put_metric(b, (struct item){below(20), below(9)});
    }
    buf_putc(b, '}');
    assert_int_equal(buf_failed(b), 0);
}

static void put_answer(struct buf *b, const struct item *items, size_t n)
{
    b->n = 0;
    buf_puts(b, "{\"results\":[");
    assert_int_equal(buf_failed(b), 0);
    for (size_t i = 0; i < n; i++) {
        buf_puts(b, i ? "," : "");
        assert_int_equal(buf_failed(b), 0);
        put_result(b, items[i]);
    }
    buf_puts(b, "]}");
    assert_int_equal(buf_failed(b), 0);
}

/* One comes, one goes, one changes, two change places; or nothing does. */
static size_t edit(struct item *items, size_t n)
{
    size_t at = n ? below(n) : 0;

    switch (below(8)) {
    case 0:
        if (n == MAX_ITEMS)
            break;
        memmove(items + at + 1, items + at, (n - at) * sizeof(*items));
        items[at] = (struct item){below(60), below(9)};
        return n + 1;
    case 1:
        if (n < 2)
            break;
        memmove(items + at, items + at + 1, (n - at - 1) * sizeof(*items));
        return n - 1;
    case 2:
        items[at] = (struct item){below(60), below(9)};
        break;
    case 3: {
        struct item was = items[at];
        size_t other = n ? below(n) : 0;
        items[at] = items[other];
        items[other] = was;
        break;
    }
    default:
        break;
    }
    return n;
}

static enum round_error read_with(struct batch_builder *b, struct str body, size_t label_max,
                                  struct batch **ret, struct answer_stats *stats, size_t *duplicates)
{
    char why[1024];
    enum round_error e;

    e = answer_parse(body, b, label_max, stats, why);
    if (e == ROUND_OK)
        batch_seal(b, (unix_ms){1}, ret, duplicates);
    else
        batch_abandon(b);
    return e;
}

static void assert_same(const struct batch *a, const struct batch *b)
{
    assert_int_equal(series_count(a->set), series_count(b->set));
    for (size_t i = 0; i < series_count(a->set); i++) {
        assert_true(str_eq(series_name(a->set, i), series_name(b->set, i)));
        assert_memory_equal(&a->values[i], &b->values[i], sizeof(a->values[i]));
        assert_int_equal(a->order[i], b->order[i]);
    }
}

static void check_round(struct batch_builder *kept, struct str body, size_t label_max)
{
    CLEANUP(cleanup_batch_builder_free) struct batch_builder *fresh = NULL;
    CLEANUP(cleanup_batch_unref) struct batch *a = NULL, *b = NULL;
    struct answer_stats stats[2];
    size_t duplicates[2] = {0, 0};
    enum round_error e[2];

    fresh = batch_builder_new("c1", "cpu", 1000000);
    e[0] = read_with(fresh, body, label_max, &a, &stats[0], &duplicates[0]);
    e[1] = read_with(kept, body, label_max, &b, &stats[1], &duplicates[1]);
    assert_int_equal(e[0], e[1]);
    assert_memory_equal(&stats[0], &stats[1], offsetof(struct answer_stats, first_invalid));
    assert_string_equal(stats[0].first_invalid, stats[1].first_invalid);
    assert_int_equal(duplicates[0], duplicates[1]);
    if (e[0] == ROUND_OK)
        assert_same(a, b);
}

static void reads_a_repeated_spelling_like_a_new_one(void **state)
{
    CLEANUP(cleanup_batch_builder_free) struct batch_builder *kept = NULL;
    BUF_AUTO(body, 1u << 20);
    struct item items[MAX_ITEMS + 1];
    size_t n = 20, label_max = LABEL_MAX;

    (void)state;
    kept = batch_builder_new("c1", "cpu", 1000000);
    for (size_t i = 0; i < n; i++)
        items[i] = (struct item){i, i};
    for (int round = 0; round < ROUNDS; round++) {
        if (below(100) == 0)
            label_max = below(2) ? 12 : LABEL_MAX;
        for (size_t k = below(4); k > 0; k--)
            n = edit(items, n);
        put_answer(&body, items, n);
        /* An answer that breaks off is forgotten whole. */
        if (below(20) == 0)
            body.n = below(body.n);
        check_round(kept, buf_str(&body), label_max);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_a_repeated_spelling_like_a_new_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

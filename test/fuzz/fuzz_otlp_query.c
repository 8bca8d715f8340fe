/* A query is either refused with its place, or computes a result of a store with a few series; white space
 * and comments around it change nothing. */
#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/otlp/query.h"
#include "exporter/otlp/series.h"

#include <errno.h>

static const int64_t NOW_MS = 1700000100 * 1000LL, STEP_MS = 15000, SAMPLES = 20;

static void require(bool good)
{
    if (!good)
        abort();
}

static mono_ms fuzz_mono(const struct clock *c)
{
    (void)c;
    return (mono_ms){0};
}

static unix_ms fuzz_wall(const struct clock *c)
{
    (void)c;
    return (unix_ms){NOW_MS};
}

static const struct clock fuzz_clock = {.mono = fuzz_mono, .wall = fuzz_wall};

static struct store *new_store(void)
{
    static const struct str labels[] = {
        STR("__name__\xffm\xff"
            "a\xff"
            "1\xff"
            "b\xffx\xff"),
        STR("__name__\xffm\xff"
            "a\xff"
            "2\xff"
            "b\xffx\xff"),
        STR("__name__\xffn\xff"
            "a\xff"
            "1\xff"
            "b\xffx\xff"),
    };
    struct store *s = store_new(&fuzz_clock);

    for (unsigned i = 0; i < 3; i++) {
        struct series *x;

        require(store_enter(s, labels[i], i + 1, &x) == STORE_OK);
        store_lock(s);
        for (int64_t k = 0; k < SAMPLES; k++)
            require(store_append(s, x, NOW_MS - (SAMPLES - k) * STEP_MS, (double)k * (i + 1.0)) == STORE_OK);
        store_release(s, x);
        store_unlock(s);
    }
    return s;
}

static int run(struct store *s, const struct query *q, struct buf *out)
{
    const struct query_range range = {NOW_MS - 60000, NOW_MS, STEP_MS};
    atomic_bool cancelled = false;
    char why[QUERY_WHY_BYTES] = "";
    size_t n;
    int r = query_run(q, s, &range, &cancelled, out, &n, why);

    require(r == 0 || ((r == -EINVAL || r == -ELOOP) && *why));
    return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str query = {(const char *)data, size};
    struct query *q = NULL, *again = NULL;
    char why[QUERY_WHY_BYTES] = "";
    int r = query_parse(&q, query, query, why);
    BUF_AUTO(text, 1u << 20);
    BUF_AUTO(out, 1u << 20);
    BUF_AUTO(other, 1u << 20);
    struct store *s;

    require(r == 0 || (r == -EINVAL && strncmp(why, "line ", 5) == 0));
    if (r < 0)
        return 0;
    s = new_store();
    require(q->reach_ms >= 0);
    buf_puts(&text, "# a\n\t");
    buf_put_str(&text, query);
    buf_puts(&text, "\n#b");
    require(buf_failed(&text) == 0);
    if (text.n <= QUERY_TEXT_MAX) {
        require(query_parse(&again, buf_str(&text), buf_str(&text), why) == 0);
        require(run(s, q, &out) == run(s, again, &other) && str_eq(buf_str(&out), buf_str(&other)));
    }
    (void)query_free(q);
    (void)query_free(again);
    (void)store_free(s);
    return 0;
}

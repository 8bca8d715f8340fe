#include "exporter/base/regex.h"
#include "test/oom.h"
#include "test/unit/tsdb/store.h"

#include <errno.h>
#include <stdlib.h>

#define PLENTY (UINT64_C(1) << 30)

/* Reads `name=value`, `name!=value`, `name=~regex` and `name!~regex`. */
static size_t read_matchers(const char *text, struct tsdb_matcher *ret, struct regex **regexes)
{
    size_t n = 0;

    while (*text) {
        size_t name = strcspn(text, "=!"), value;
        char op[2] = {text[name], text[name + 1]}, why[REGEX_WHY_BYTES];
        bool two = op[0] == '!' || op[1] == '~';
        struct tsdb_matcher *m = &ret[n];

        *m = (struct tsdb_matcher){.op = op[0] == '='   ? (two ? TSDB_RE : TSDB_EQ)
                                         : op[1] == '~' ? TSDB_NRE
                                                        : TSDB_NE,
                                   .name = {text, name}};
        text += name + 1 + two;
        value = strcspn(text, ";");
        m->value = (struct str){text, value};
        regexes[n] = NULL;
        if (op[1] == '~')
            assert_int_equal(regex_new(&regexes[n], m->value, why), 0);
        m->regex = regexes[n++];
        text += value + (text[value] == ';');
    }
    return n;
}

/* The labels of all selected series, sorted, as one text. */
static void select_text(struct tsdb *t, const char *matchers, struct buf *into)
{
    struct tsdb_matcher list[8];
    struct regex *regexes[8];
    size_t n = read_matchers(matchers, list, regexes);
    struct tsdb_view *v = store_view(t, list, n, NOW - MINUTE, NOW + MINUTE);
    bool done[16] = {false};

    buf_truncate(into, 0);
    for (size_t round = 0; round < tsdb_view_count(v); round++) {
        char least[128] = "\xff", text[128];
        size_t chosen = 0;

        for (size_t i = 0; i < tsdb_view_count(v); i++) {
            size_t labels;
            const struct tsdb_label *l = tsdb_view_labels(v, i, &labels);
            int used = 0;

            for (size_t k = 0; k < labels; k++)
                used += snprintf(text + used, sizeof(text) - (size_t)used, k ? ",%.*s" : "%.*s",
                                 STR_ARG(l[k].value));
            if (!done[i] && strcmp(text, least) < 0) {
                strcpy(least, text);
                chosen = i;
            }
        }
        done[chosen] = true;
        assert_int_equal(buf_printf(into, "%s%s", round ? " " : "", least), 0);
    }
    assert_int_equal(buf_putc(into, '\0'), 0);
    (void)tsdb_view_free(v);
    for (size_t i = 0; i < n; i++)
        (void)regex_free(regexes[i]);
}

static void matches_as_promql_does(void **state)
{
    static const struct {
        const char *matchers, *want;
    } cases[] = {
        {"", "down down,a up up,a up,a,x up,b up,ü"},
        {"__name__=up", "up up,a up,a,x up,b up,ü"},
        {"__name__=up;job=a", "up,a up,a,x"},
        {"__name__=up;job!=a", "up up,b up,ü"},
        {"__name__=up;job=", "up"},
        {"__name__=up;job!=", "up,a up,a,x up,b up,ü"},
        {"__name__=up;job=~a|b", "up,a up,a,x up,b"},
        {"__name__=up;job!~a|b", "up up,ü"},
        {"__name__=up;job=~a|", "up up,a up,a,x"},
        {"__name__=up;job=~.*", "up up,a up,a,x up,b up,ü"},
        {"__name__=up;job=~.+", "up,a up,a,x up,b up,ü"},
        {"__name__=up;job=~.", "up,a up,a,x up,b up,ü"},
        {"__name__=up;job!~.*", ""},
        {"__name__=~u.", "up up,a up,a,x up,b up,ü"},
        {"__name__=~p", ""},
        {"__name__!=up", "down down,a"},
        {"__name__=~.+;job=a", "down,a up,a up,a,x"},
        {"job=a;pod=x", "up,a,x"},
        {"pod=", "down down,a up up,a up,b up,ü"},
        {"__name__=none", ""},
        {"nolabel=x", ""},
        {"nolabel!=x;pod=~x", "up,a,x"},
        {"__name__=up;__name__=down", ""},
        {"__name__=up;__name__!=down;job=b", "up,b"},
        {"__name__=a", ""}, /* a value of another label */
    };
    struct tsdb *t = store_new(PLENTY, 10);
    BUF_AUTO(text, 4096);

    (void)state;
    (void)store_put(t, "__name__=up", NOW, 1);
    (void)store_put(t, "__name__=up;job=a", NOW, 1);
    (void)store_put(t, "__name__=up;job=b", NOW, 1);
    (void)store_put(t, "__name__=up;job=ü", NOW, 1);
    (void)store_put(t, "__name__=up;job=a;pod=x", NOW, 1);
    (void)store_put(t, "__name__=down", NOW, 1);
    (void)store_put(t, "__name__=down;job=a", NOW, 1);
    (void)store_put(t, "__name__=up;job=later", NOW + 2 * MINUTE, 1);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        select_text(t, cases[i].matchers, &text);
        if (strcmp(text.p, cases[i].want) != 0)
            fail_msg("%s: %s, not %s", cases[i].matchers, text.p, cases[i].want);
    }
    (void)tsdb_free(t);
}

static void returns_the_samples_of_the_range_only(void **state)
{
    enum { SAMPLES = 1000 };
    struct tsdb *t = store_new(PLENTY, 10);
    int64_t times[SAMPLES];
    uint64_t values[SAMPLES], ref;

    (void)state;
    srand48(3);
    tsdb_set_age(t, 24 * 60 * MINUTE);
    assert_int_equal(store_ref(t, "__name__=m", &ref), TSDB_OK);
    for (unsigned i = 0; i < SAMPLES; i++) {
        double v = i % 50 < 40 ? i : drand48();

        store_now += 1 + (int64_t)(drand48() * 20000);
        times[i] = store_now;
        memcpy(&values[i], &v, sizeof(v));
        assert_int_equal(store_append(t, ref, times[i], v), TSDB_OK);
    }
    for (unsigned round = 0; round < 300; round++) {
        unsigned a = (unsigned)(drand48() * SAMPLES), b = (unsigned)(drand48() * SAMPLES), i = a;
        int64_t from = times[a] - (round % 3 == 0), to = times[b] + (round % 3 == 1), at;
        struct tsdb_view *v = store_view(t, NULL, 0, from, to);
        struct tsdb_iter it;
        uint64_t bits;
        double x;

        if (tsdb_view_count(v) > 0) {
            for (tsdb_iter_init(&it, v, 0); tsdb_iter_next(&it, &at, &x); i++) {
                memcpy(&bits, &x, sizeof(bits));
                assert_true(at == times[i] && bits == values[i]);
            }
        }
        assert_int_equal(i, a <= b ? b + 1 : a);
        (void)tsdb_view_free(v);
    }
    (void)tsdb_free(t);
}

static void takes_more_series_than_one_piece_holds(void **state)
{
    enum { SERIES = 3000 };
    struct tsdb *t = store_new(PLENTY, SERIES);
    struct tsdb_matcher list[2];
    struct regex *regexes[2];
    size_t n = read_matchers("__name__=m;pod=~p[0-9]*[02468]", list, regexes);
    struct tsdb_view *v;
    char text[64];

    (void)state;
    for (unsigned i = 0; i < SERIES; i++) {
        (void)snprintf(text, sizeof(text), "__name__=m;pod=p%u", i);
        (void)store_put(t, text, NOW, i);
    }
    v = store_view(t, list, n, NOW, NOW);
    assert_int_equal(tsdb_view_count(v), SERIES / 2);
    for (size_t i = 0; i < SERIES / 2; i++) {
        const struct tsdb_label *l = tsdb_view_labels(v, i, &n);
        struct tsdb_iter it;
        int64_t at;
        double x;

        tsdb_iter_init(&it, v, i);
        assert_true(tsdb_iter_next(&it, &at, &x));
        (void)snprintf(text, sizeof(text), "p%.0f", x);
        assert_true(n == 2 && str_eq(l[1].value, str_of(text)));
    }
    (void)tsdb_view_free(v);
    (void)regex_free(regexes[1]);
    (void)tsdb_free(t);
}

static void stops_at_the_limit_of_a_view(void **state)
{
    struct tsdb *t = store_new(PLENTY, 1000);
    struct tsdb_view *v = NULL;
    char text[64], why[TSDB_WHY_BYTES];

    (void)state;
    for (unsigned i = 0; i < 1000; i++) {
        (void)snprintf(text, sizeof(text), "__name__=m;pod=p%u", i);
        (void)store_put(t, text, NOW, i);
    }
    assert_int_equal(tsdb_select(t, NULL, 0, NOW, NOW, 20000, &v, why), -EFBIG);
    assert_string_equal(why, "the selected series take more than 20000 bytes");
    assert_null(v);
    (void)tsdb_free(t);
}

static void fails_if_a_regex_takes_too_long(void **state)
{
    struct tsdb *t = store_new(PLENTY, 10);
    struct tsdb_label labels[] = {{STR("__name__"), STR("m")}, {STR("a"), {NULL, 4000}}};
    struct tsdb_matcher list[1];
    struct regex *regexes[1];
    struct tsdb_view *v = NULL;
    char why[TSDB_WHY_BYTES], value[4000];
    uint64_t ref;

    (void)state;
    memset(value, 'a', sizeof(value));
    value[sizeof(value) / 2] = 'c';
    labels[1].value.p = value;
    assert_int_equal(tsdb_ref(t, labels, 2, &ref), TSDB_OK);
    (void)read_matchers("a=~(a|b)*(a|b)*(a|b)*c", list, regexes);
    assert_int_equal(tsdb_select(t, list, 1, NOW, NOW, UINT64_MAX, &v, why), -ELOOP);
    assert_string_equal(why, "a regular expression takes too many steps on a label value");
    (void)regex_free(regexes[0]);
    (void)tsdb_free(t);
}

static void survives_each_failed_allocation(void **state)
{
    struct tsdb *t = store_new(PLENTY, 10);
    struct tsdb_matcher list[2];
    struct regex *regexes[2];
    size_t n = read_matchers("__name__=~m;job!~y", list, regexes);

    (void)state;
    (void)store_put(t, "__name__=m;job=x", NOW, 1);
    (void)store_put(t, "__name__=m;job=y", NOW, 1);
    FOR_EACH_ALLOCATION_FAILURE(round)
    {
        struct tsdb_view *v = NULL;
        char why[TSDB_WHY_BYTES] = "";
        int r = tsdb_select(t, list, n, NOW, NOW, UINT64_MAX, &v, why);

        assert_int_equal(r, oom_happened() ? -ENOMEM : 0);
        if (r < 0)
            assert_string_equal(why, "out of memory");
        else
            assert_int_equal(tsdb_view_count(v), 1);
        (void)tsdb_view_free(v);
    }
    (void)regex_free(regexes[0]);
    (void)regex_free(regexes[1]);
    (void)tsdb_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matches_as_promql_does),
        cmocka_unit_test(returns_the_samples_of_the_range_only),
        cmocka_unit_test(takes_more_series_than_one_piece_holds),
        cmocka_unit_test(stops_at_the_limit_of_a_view),
        cmocka_unit_test(fails_if_a_regex_takes_too_long),
        cmocka_unit_test(survives_each_failed_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

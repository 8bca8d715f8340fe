#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/utf8.h"
#include "exporter/metric/batch.h"
#include "exporter/metric/batch_builder.h"
#include "exporter/metric/series.h"
#include "exporter/num/num.h"
#include "exporter/score/answer.h"
#include "exporter/score/round_error.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include <cmocka.h>

enum { LABEL_MAX = 256, MAX_SERIES = 1000 };

static struct answer_stats stats;
static char why[1024];

/* What a batch holds: "node:a,pod:b=1.5 node:c=2", values unescaped, empty labels left out. */
static void describe(const struct batch *b, struct buf *into)
{
    for (size_t i = 0; i < series_count(b->set); i++) {
        struct str labels[DS_LABELS];
        bool first = true;
        char number[NUM_MAX];
        series_labels(b->set, i, labels);
        if (i)
            buf_putc(into, ' ');
        assert_int_equal(buf_failed(into), 0);
        for (size_t k = 0; k < DS_LABELS; k++) {
            if (labels[k].n == 0 || ds_label_sources[k].n == 0)
                continue;
            buf_printf(into, "%s%s:", first ? "" : ",", ds_label_sources[k].p);
            buf_put_str(into, labels[k]);
            assert_int_equal(buf_failed(into), 0);
            first = false;
        }
        buf_printf(into, "=%.*s", (int)num_put_double(number, b->values[i]), number);
        assert_int_equal(buf_failed(into), 0);
    }
    buf_putc(into, '\0');
    assert_int_equal(buf_failed(into), 0);
}

/* Reads one answer with a builder of its own; *into is what describe() says when it is good. */
static enum round_error parse(struct str body, size_t label_max, size_t max_series, struct buf *into)
{
    CLEANUP(cleanup_batch_builder_free) struct batch_builder *b = NULL;
    CLEANUP(cleanup_batch_unref) struct batch *batch = NULL;
    enum round_error e;

    (void)strcpy(why, "");
    b = batch_builder_new("c1", "s1", max_series);
    e = answer_parse(body, b, label_max, &stats, why);
    if (e == ROUND_OK) {
        batch_seal(b, (unix_ms){0}, &batch, NULL);
        describe(batch, into);
    } else {
        assert_true(*why && strlen(why) < sizeof(why) && !strchr(why, '\n'));
    }
    return e;
}

static void assert_gives(const char *body, const char *want)
{
    BUF_AUTO(got, 1u << 20);
    enum round_error e = parse(str_of(body), LABEL_MAX, MAX_SERIES, &got);

    if (e != ROUND_OK)
        fail_msg("%s\nwas refused: %s", body, why);
    assert_string_equal(got.p, want);
}

static void assert_refused(struct str body, enum round_error want, const char *reason)
{
    BUF_AUTO(got, 1u << 20);
    enum round_error e = parse(body, LABEL_MAX, MAX_SERIES, &got);

    if (e != want)
        fail_msg("%.*s\ngave %s: %s %s", STR_ARG(body), round_error_word(e), why, cstr(got.p));
    if (!strstr(why, reason))
        fail_msg("%.*s\ngave `%s`, expected `%s`", STR_ARG(body), why, reason);
}

struct good {
    const char *body, *want;
};

static void assert_all(const struct good *cases, size_t n)
{
    for (size_t i = 0; i < n; i++)
        assert_gives(cases[i].body, cases[i].want);
}

#define RESULTS(r)  "{\"results\":[" r "]}"
#define METRIC(m)   RESULTS("{\"metric\":{" m "},\"score\":1}")
#define SCORE(s)    RESULTS("{\"metric\":{\"node\":\"a\"},\"score\":" s "}")
#define GOOD_RESULT "{\"metric\":{\"node\":\"z\"},\"score\":9}"

static void reads_every_shape_of_a_result(void **state)
{
    static const struct good cases[] = {
        {RESULTS(""), ""},
        {"{\"results\":null}", ""},
        {RESULTS("{\"score\":2}"), "=2"},
        {RESULTS("{\"metric\":null,\"score\":2}"), "=2"},
        {RESULTS("{\"metric\":{},\"score\":2}"), "=2"},
        {RESULTS("{\"score\":1,\"metric\":{\"pod\":\"p\"}}"), "pod:p=1"},
        {METRIC("\"meta\":\"m\",\"app\":\"x\",\"namespace\":\"ns\",\"device\":\"d\",\"container\":\"c\","
                "\"pod\":\"p\","
                "\"node\":\"n\""),
         "app:x,container:c,device:d,meta:m,namespace:ns,node:n,pod:p=1"},
        {" \r\n\t{ \"results\" : [ { \"metric\" : { \"node\" : \"a\" } , \"score\" : 1 } , "
         "{\"metric\":{\"node\":\"b\"},\"score\":2} ] } \n",
         "node:a=1 node:b=2"},
        /* Unknown members, at each level and of each kind */
        {"{\"version\":2,\"results\":[{\"x\":[{}],\"metric\":{\"__name__\":\"up\",\"instance\":\"i\","
         "\"nodes\":\"n\",\"node\":\"a\"},"
         "\"extra\":{\"score\":5,\"metric\":{\"node\":\"no\"}},\"score\":1,\"why\":null}],\"more\":{"
         "\"results\":[1]}}",
         "node:a=1"},
        /* The builder's own labels cannot be set from outside. */
        {METRIC("\"cluster\":\"c\",\"score_name\":\"s\",\"ds_node\":\"n\",\"ds_cluster\":\"x\""), "=1"},
        /* Names with escapes */
        {"{\"r\\u0065sults\":[{\"m\\u0065tric\":{\"n\\u006fde\":\"a\",\"\\u0070od\":\"p\"},\"sc\\u006Fre\":3}"
         "]}",
         "node:a,pod:p=3"},
        {"{\"results\\u0000\":5,\"\":1,\"results\":[]}", ""},
        /* Named twice: the last counts. */
        {RESULTS("{\"score\":1,\"score\":2}"), "=2"},
        {RESULTS("{\"score\":null,\"score\":2}"), "=2"},
        {RESULTS("{\"metric\":{\"node\":\"a\",\"pod\":\"p\"},\"metric\":{\"node\":\"b\"},\"score\":1}"),
         "node:b=1"},
        {RESULTS("{\"metric\":5,\"metric\":{\"node\":\"b\"},\"score\":1}"), "node:b=1"},
        {METRIC("\"node\":\"a\",\"node\":\"b\""), "node:b=1"},
        {METRIC("\"node\":{},\"node\":\"b\""), "node:b=1"},
        {METRIC("\"node\":\"a\\\"\",\"node\":\"b\""), "node:b=1"},
        {METRIC("\"node\":\"a\",\"node\":null"), "=1"},
    };

    (void)state;
    assert_all(cases, ARRAY_SIZE(cases));
}

static void reads_numbers_in_every_spelling(void **state)
{
    static const struct good cases[] = {
        {SCORE("1.5"), "node:a=1.5"},
        {SCORE("0"), "node:a=0"},
        {SCORE("-0"), "node:a=-0"},
        {SCORE("-0.0e5"), "node:a=-0"},
        {SCORE("0.12345678901234567"), "node:a=0.12345678901234566"},
        {SCORE("12345678901234567890123"), "node:a=1.2345678901234568e+22"},
        {SCORE("9007199254740993"), "node:a=9007199254740992"},
        {SCORE("1e308"), "node:a=1e+308"},
        {SCORE("1.7976931348623157e308"), "node:a=1.7976931348623157e+308"},
        {SCORE("5e-324"), "node:a=5e-324"},
        {SCORE("1e-999"), "node:a=0"},
        {SCORE("-1e-999"), "node:a=-0"},
        {SCORE("1E+2"), "node:a=100"},
        {SCORE("\"2.5\""), "node:a=2.5"},
        {SCORE("\"-1e3\""), "node:a=-1000"},
        {SCORE("\"+7\""), "node:a=7"},
        {SCORE("\"NaN\""), "node:a=NaN"},
        {SCORE("\"+Inf\""), "node:a=+Inf"},
        {SCORE("\"-Inf\""), "node:a=-Inf"},
        {SCORE("NaN"), "node:a=NaN"},
        {SCORE("Infinity"), "node:a=+Inf"},
        {SCORE("-Infinity"), "node:a=-Inf"},
    };

    (void)state;
    assert_all(cases, ARRAY_SIZE(cases));
}

/* Whatever way a NaN is written, its bits are those that no sink takes for a stale marker. */
static void gives_every_nan_one_bit_pattern(void **state)
{
    static const char *const bodies[] = {SCORE("NaN"), SCORE("\"NaN\"")};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(bodies); i++) {
        CLEANUP(cleanup_batch_builder_free) struct batch_builder *b = NULL;
        CLEANUP(cleanup_batch_unref) struct batch *batch = NULL;
        uint64_t bits;
        b = batch_builder_new("c1", "s1", 5);
        assert_int_equal(answer_parse(str_of(bodies[i]), b, LABEL_MAX, &stats, why), ROUND_OK);
        batch_seal(b, (unix_ms){0}, &batch, NULL);
        memcpy(&bits, batch->values, sizeof(bits));
        assert_true(bits == 0x7ff8000000000001ull);
    }
}

/* Each is left out beside a good one, named when it is alone, and counted. */
static enum answer_fault fault_of(const char *reason)
{
    if (strncmp(reason, "results[0].metric", 17) == 0)
        return ANSWER_FAULT_METRIC;
    return strncmp(reason, "results[0].score", 16) == 0 ? ANSWER_FAULT_SCORE : ANSWER_FAULT_RESULT;
}

static void drops_and_counts_invalid_results(void **state)
{
    static const struct {
        const char *result, *reason;
    } cases[] = {
        {"{\"metric\":{\"node\":\"a\"}}", "results[0].score: missing"},
        {"{}", "results[0].score: missing"},
        {"{\"score\":null}", "results[0].score: expected a number, got null"},
        {"{\"score\":true}", "results[0].score: expected a number"},
        {"{\"score\":[1]}", "results[0].score: expected a number"},
        {"{\"score\":{\"value\":1}}", "results[0].score: expected a number"},
        {"{\"score\":\"\"}", "results[0].score: expected a number, got a string that is not one"},
        {"{\"score\":\"high\"}", "results[0].score: expected a number, got a string that is not one"},
        {"{\"score\":\" 1\"}", "results[0].score: expected a number, got a string that is not one"},
        {"{\"score\":\"0x10\"}", "results[0].score: expected a number, got a string that is not one"},
        {"{\"score\":\"1,5\"}", "results[0].score: expected a number, got a string that is not one"},
        {"{\"score\":1e999}", "results[0].score: number too large for a double"},
        {"{\"score\":-1e999}", "results[0].score: number too large for a double"},
        {"{\"score\":\"1e999\"}", "results[0].score: number too large for a double"},
        {"{\"score\":1,\"score\":null}", "results[0].score: expected a number, got null"},
        {"{\"metric\":{\"node\":{\"a\":1}},\"score\":1}", "results[0].metric: label values must be strings"},
        {"{\"metric\":{\"node\":[]},\"score\":1}", "results[0].metric: label values must be strings"},
        {"{\"metric\":{\"node\":\"a\",\"node\":[]},\"score\":1}",
         "results[0].metric: label values must be strings"},
        {"{\"metric\":5,\"score\":1}", "results[0].metric: expected an object"},
        {"{\"metric\":[],\"score\":1}", "results[0].metric: expected an object"},
        {"{\"metric\":\"{}\",\"score\":1}", "results[0].metric: expected an object"},
        {"null", "results[0]: expected an object"},
        {"5", "results[0]: expected an object"},
        {"[[]]", "results[0]: expected an object"},
        {"\"{}\"", "results[0]: expected an object"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char body[512], want[300];
        (void)snprintf(body, sizeof(body), RESULTS("%s," GOOD_RESULT ",%s"), cases[i].result,
                       cases[i].result);
        assert_gives(body, "node:z=9");
        assert_int_equal(stats.results, 3);
        assert_int_equal(stats.invalid, 2);
        assert_string_equal(stats.first_invalid, cases[i].reason);
        assert_int_equal(stats.first_fault, fault_of(cases[i].reason));
        (void)snprintf(body, sizeof(body), RESULTS("%s,{}"), cases[i].result);
        (void)snprintf(want, sizeof(want), "no result is valid: %s", cases[i].reason);
        assert_refused(str_of(body), ROUND_SHAPE, want);
    }
    assert_gives(RESULTS(GOOD_RESULT), "node:z=9");
    assert_int_equal(stats.invalid, 0);
    assert_int_equal(stats.first_fault, ANSWER_FAULT_NONE);
    assert_string_equal(stats.first_invalid, "");
}

static void reads_labels_that_are_not_strings(void **state)
{
    static const struct good cases[] = {
        {METRIC("\"node\":5"), "node:5=1"},
        {METRIC("\"node\":-1.50E+2"), "node:-1.50E+2=1"},
        {METRIC("\"node\":true,\"pod\":false"), "node:true,pod:false=1"},
        {METRIC("\"node\":null"), "=1"},
        {METRIC("\"node\":NaN"), "node:NaN=1"},
        {METRIC("\"other\":{\"deep\":[1,{}]}"), "=1"}, /* not a label of ours */
    };

    (void)state;
    assert_all(cases, ARRAY_SIZE(cases));
}

static void repairs_label_text(void **state)
{
    static const struct {
        const char *body, *want;
        size_t repaired;
    } cases[] = {
        {METRIC("\"node\":\"sm\xc3\xb8r\""), "node:sm\xc3\xb8r=1", 0},
        {METRIC("\"node\":\"\\u20ac\\ud83d\\ude00\""), "node:\xe2\x82\xac\xf0\x9f\x98\x80=1", 0},
        {METRIC("\"node\":\"\\\"\\\\\\/\\b\\f\\n\\r\\t\""), "node:\"\\/\b\f\n\r\t=1", 0},
        {METRIC("\"node\":\"}\\n# EOF\\n\""), "node:}\n# EOF\n=1", 0},
        {METRIC("\"node\":\"\\ud83d\""), "node:\xef\xbf\xbd=1", 1},
        {METRIC("\"node\":\"\\ude00x\""), "node:\xef\xbf\xbdx=1", 1},
        {METRIC("\"node\":\"\\ud83d\\u0041\""),
         "node:\xef\xbf\xbd"
         "A=1",
         1},
        {METRIC("\"node\":\"a\\u0000b\\u0000\""),
         "node:a\xef\xbf\xbd"
         "b\xef\xbf\xbd=1",
         1},
        {METRIC("\"node\":\"\\u0000\",\"pod\":\"\\u0000\""), "node:\xef\xbf\xbd,pod:\xef\xbf\xbd=1", 2},
        {METRIC("\"node\":\"a\xff\""), "node:a\xef\xbf\xbd=1", 1},
        {METRIC("\"node\":\"\xc0\xaf\""), "node:\xef\xbf\xbd\xef\xbf\xbd=1", 1}, /* overlong */
        {METRIC("\"node\":\"\xed\xa0\x80\""), "node:\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd=1",
         1}, /* surrogate */
        {METRIC("\"node\":\"\xe2\x82\""), "node:\xef\xbf\xbd=1", 1},
        {METRIC("\"node\":\"\xf4\x90\x80\x80\""), "node:\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd=1",
         1}, /* past U+10FFFF */
        {METRIC("\"no\xff\":\"a\""), "=1", 0},
        {"{\"\xff\":\"\xff\",\"results\":[{\"score\":1}]}", "=1", 0},
        {METRIC("\"node\":\"\""), "=1", 0},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        assert_gives(cases[i].body, cases[i].want);
        assert_int_equal(stats.repaired, cases[i].repaired);
        assert_int_equal(stats.cut, 0);
    }
}

static const char *const cut_units[] = {"b",       "\xc3\xa9",       "\xe2\x82\xac", "\xf0\x9f\x98\x80",
                                        "\\u00e9", "\\ud83d\\ude00", "\xff",         "\\\\",
                                        "\\u0000"};
static const size_t cut_sizes[] = {1, 2, 3, 4, 2, 4, 3, 1, 3}; /* of what each stands for */

/* A value of `pad` letters and units of some characters is cut to the most whole ones that fit. */
static void cuts_labels_between_characters(void **state)
{
    (void)state;
    for (size_t unit = 0; unit < ARRAY_SIZE(cut_units); unit++)
        for (size_t pad = 248; pad < 260; pad++) {
            BUF_AUTO(body, 1u << 16);
            BUF_AUTO(got, 1u << 16);
            size_t units = 4, n = pad + units * cut_sizes[unit], want = n;
            buf_puts(&body, "{\"results\":[{\"score\":1,\"metric\":{\"node\":\"");
            for (size_t i = 0; i < pad; i++)
                buf_putc(&body, 'a');
            for (size_t i = 0; i < units; i++)
                buf_puts(&body, cut_units[unit]);
            buf_puts(&body, "\"}}]}");
            assert_int_equal(buf_failed(&body), 0);
            assert_int_equal(parse(buf_str(&body), LABEL_MAX, 5, &got), ROUND_OK);
            while (want > LABEL_MAX)
                want -= want > pad ? cut_sizes[unit] : 1;
            assert_int_equal(got.n, strlen("node:") + want + strlen("=1") + 1);
            assert_int_equal(utf8_valid_prefix(buf_str(&got)), got.n);
            assert_int_equal(stats.cut, n > LABEL_MAX);
        }
}

static void keeps_any_label_limit(void **state)
{
    (void)state;
    for (size_t max = 0; max < 12; max++) {
        BUF_AUTO(got, 1000);
        assert_int_equal(
            parse(STR(METRIC("\"node\":\"abcdefgh\",\"pod\":\"\xc3\xa9\\u00e9\xc3\xa9\xc3\xa9\"")), max, 5,
                  &got),
            ROUND_OK);
        assert_int_equal(stats.cut, max < 8 ? 2 : 0);
    }
}

static void rejects_what_is_not_a_scoring_response(void **state)
{
    static const struct {
        const char *body;
        enum round_error error;
        const char *reason;
    } cases[] = {
        {"", ROUND_JSON, "response is not JSON: line 1, column 1: "},
        {" \n", ROUND_JSON, "response is not JSON: line 2, column 1: "},
        {"<html>", ROUND_JSON, "response is not JSON: line 1, column 1: "},
        {"{\n \"results\": [\n  {\"score\": 1,}]}", ROUND_JSON, "line 3, column 15: "},
        {"{'results':[]}", ROUND_JSON, "column 2"},
        {"{\"results\":[]}x", ROUND_JSON, "unexpected data after the value"},
        {"{\"results\":[]}{}", ROUND_JSON, "unexpected data after the value"},
        {"{\"results\":[01]}", ROUND_JSON, "leading zero"},
        {SCORE("1."), ROUND_JSON, ""},
        {SCORE("nan"), ROUND_JSON, ""},
        {SCORE("-NaN"), ROUND_JSON, ""},
        {SCORE("Inf"), ROUND_JSON, ""},
        {METRIC("\"node\":\"\\x\""), ROUND_JSON, "invalid escape"},
        {METRIC("\"node\":\"\\u12g4\""), ROUND_JSON, "hexadecimal"},
        {METRIC("\"node\":\"a\nb\""), ROUND_JSON, "control character"},
        {METRIC("node:\"a\""), ROUND_JSON, ""},
        {"\xef\xbb\xbf{\"results\":[]}", ROUND_JSON, ""},
        {"null", ROUND_SHAPE, "invalid scoring response: line 1, column 1: expected an object"},
        {"[]", ROUND_SHAPE, "expected an object"},
        {"\"results\"", ROUND_SHAPE, "expected an object"},
        {"5", ROUND_SHAPE, "expected an object"},
        {"{}", ROUND_SHAPE, "invalid scoring response: missing \"results\""},
        {"{\"error\":\"model not loaded\"}", ROUND_SHAPE, "missing \"results\""},
        {"{\"Results\":[]}", ROUND_SHAPE, "missing \"results\""},
        {"{\"results\":{}}", ROUND_SHAPE, "line 1, column 12: expected an array"},
        {"{\"results\":5}", ROUND_SHAPE, "expected an array"},
        {"{\"results\":\"[]\"}", ROUND_SHAPE, "expected an array"},
        {"{\"results\":[],\"results\":[]}", ROUND_SHAPE, "duplicate \"results\""},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_refused(str_of(cases[i].body), cases[i].error, cases[i].reason);
    assert_refused(STR("{\"results\":[]\0}"), ROUND_JSON, "");
    assert_refused(STR("{\"results\":[]}\0"), ROUND_JSON, "");
}

static void rejects_every_truncation(void **state)
{
    static const char body[] =
        "{\"a\":[1,{}],\"results\":[{\"metric\":{\"node\":\"\\u20ac\xc3\xa9\",\"pod\":5},\"score\":-1.5e-3},"
        "{\"metric\":null,\"score\":\"NaN\"},{\"score\":-Infinity}]}";

    (void)state;
    assert_gives(body, "=-Inf node:\xe2\x82\xac\xc3\xa9,pod:5=-0.0015");
    for (size_t n = 0; n < sizeof(body) - 1; n++) {
        CLEANUP(cleanup_free) char *exact = malloc(n ? n : 1); /* so that a read past the end is seen */
        memcpy(exact, body, n);
        assert_refused((struct str){exact, n}, ROUND_JSON, "");
    }
}

static void limits_the_series(void **state)
{
    BUF_AUTO(got, 1000);
    static const char body[] =
        RESULTS("{\"metric\":{\"node\":\"a\"},\"score\":1},{\"metric\":{\"node\":\"b\"},\"score\":2},"
                "{\"metric\":{\"node\":\"a\"},\"score\":3}");

    (void)state;
    assert_int_equal(parse(str_of(body), LABEL_MAX, 2, &got), ROUND_OK);
    assert_string_equal(got.p, "node:a=3 node:b=2");
    assert_int_equal(parse(str_of(body), LABEL_MAX, 1, &got), ROUND_SERIES);
    assert_int_equal(parse(str_of(body), LABEL_MAX, 0, &got), ROUND_SERIES);
}

static void fill(struct buf *b, const char *unit, size_t times)
{
    size_t n = strlen(unit);
    char *to;

    assert_int_equal(buf_reserve(b, n * times, &to), 0);
    for (size_t i = 0; i < times; i++)
        memcpy(to + i * n, unit, n);
    b->n += n * times;
}

static void rejects_deep_nesting(void **state)
{
    static const char *const opens[] = {"[", "{\"a\":", "[{\"a\":"};
    static const char *const places[] = {"",
                                         "{\"results\":[",
                                         "{\"x\":",
                                         "{\"results\":[{\"metric\":",
                                         "{\"results\":[{\"metric\":{\"node\":",
                                         "{\"results\":[{\"score\":"};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(opens); i++)
        for (size_t k = 0; k < ARRAY_SIZE(places); k++) {
            BUF_AUTO(body, 8u << 20);
            fill(&body, places[k], 1);
            fill(&body, opens[i], 1u << 20);
            assert_refused(buf_str(&body), ROUND_JSON, "");
        }
    BUF_AUTO(fits, 10000);
    fill(&fits, "{\"x\":", 1);
    fill(&fits, "[", 255);
    fill(&fits, "]", 255);
    fill(&fits, ",\"results\":[]}", 1);
    fill(&fits, "", 1);
    buf_putc(&fits, '\0');
    assert_int_equal(buf_failed(&fits), 0);
    assert_gives(fits.p, "");
}

/* 100 MB, most of it what nobody asked for, in seconds even under AddressSanitizer. */
static void reads_large_responses_quickly(void **state)
{
    BUF_AUTO(body, 128u << 20);
    BUF_AUTO(got, 1000);
    clock_t began;

    (void)state;
    fill(&body, "{\"text\":\"", 1);
    fill(&body, "lorem ipsum \\n \xc3\xa9 ", 2u << 20);
    fill(&body, "\",\"reads_numbers_in_every_spelling\":[0", 1);
    fill(&body, ",-12.5e3", 2u << 20);
    fill(&body, "],\"results\":[{\"score\":1}", 1);
    fill(&body, ",{\"metric\":{\"node\":\"a\"},\"score\":5.25}", 1u << 20);
    fill(&body, "]}", 1);
    fill(&body, " ", (100u << 20) - body.n);
    began = clock();
    assert_int_equal(parse(buf_str(&body), LABEL_MAX, 5, &got), ROUND_OK);
    assert_string_equal(got.p, "=1 node:a=5.25");
    assert_int_equal(stats.results, (1u << 20) + 1);
    body.p[body.n - 1] = '}';
    assert_int_equal(parse(buf_str(&body), LABEL_MAX, 5, &got), ROUND_JSON);
    assert_true((double)(clock() - began) / CLOCKS_PER_SEC < 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_every_shape_of_a_result),
        cmocka_unit_test(reads_numbers_in_every_spelling),
        cmocka_unit_test(gives_every_nan_one_bit_pattern),
        cmocka_unit_test(drops_and_counts_invalid_results),
        cmocka_unit_test(reads_labels_that_are_not_strings),
        cmocka_unit_test(repairs_label_text),
        cmocka_unit_test(cuts_labels_between_characters),
        cmocka_unit_test(keeps_any_label_limit),
        cmocka_unit_test(rejects_what_is_not_a_scoring_response),
        cmocka_unit_test(rejects_every_truncation),
        cmocka_unit_test(limits_the_series),
        cmocka_unit_test(rejects_deep_nesting),
        cmocka_unit_test(reads_large_responses_quickly),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

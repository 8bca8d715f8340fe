/* Random scoring answers, whole and damaged, read by answer_parse() and by a plain reader on top of jansson:
 * the same must be taken, with the same series and values. What jansson knowingly does otherwise ends a
 * comparison: it refuses ill-formed UTF-8, lone surrogates, NUL in names and numbers past a double, and does
 * not keep a number's text. */
#include "exporter/base/clock.h"
#include "exporter/metric/batch.h"
#include "exporter/metric/batch_builder.h"
#include "exporter/metric/series.h"
#include "exporter/score/answer.h"
#include "exporter/score/round_error.h"

#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

enum { DOCUMENTS = 120000, LABEL_MAX = 12, MAX_RESULTS = 64, MAX_BODY = 8192 };

static uint64_t random_u64(void)
{
    static uint64_t x = 0x9fb21c651e98df25;

    x ^= x << 13;
    x ^= x >> 7;
    return x ^= x << 17;
}

static size_t below(size_t n)
{
    return (size_t)(random_u64() >> 33) % n;
}

/* --- making answers --- */

struct text {
    char p[MAX_BODY];
    size_t n;
};

static void put(struct text *t, const char *s)
{
    size_t n = strlen(s);

    if (t->n + n <= sizeof(t->p)) {
        memcpy(t->p + t->n, s, n);
        t->n += n;
    }
}

#define PUT_ONE_OF(t, ...)                                \
    do {                                                  \
        static const char *const list_[] = {__VA_ARGS__}; \
        put(t, list_[below(ARRAY_SIZE(list_))]);          \
    } while (0)

static void put_string(struct text *t)
{
    put(t, "\"");
    for (size_t n = below(5); n > 0; n--)
        PUT_ONE_OF(t, "a", "b", "web-", "\\\"", "\\\\", "\\n", "\\/", "\\u00e9", "\\u20AC", "\\ud83d\\ude00",
                   "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "long-long-", "\\u0000", " ", "\\t", "{",
                   "\x7f");
    put(t, "\"");
}

static void put_label_value(struct text *t)
{
    if (below(12))
        put_string(t);
    else
        PUT_ONE_OF(t, "true", "false", "null", "{}", "[]", "{\"a\":[1,\"x\"]}", "[null]");
}

static void put_metric(struct text *t)
{
    put(t, "{");
    for (size_t n = below(5), i = 0; i < n; i++) {
        put(t, i ? ",\"" : "\"");
        PUT_ONE_OF(t, "node", "pod", "namespace", "app", "container", "device", "meta", "n\\u006fde",
                   "cluster", "nod", "__name__", "");
        put(t, below(8) ? "\":" : "\" :\n ");
        put_label_value(t);
    }
    put(t, "}");
}

static void put_score(struct text *t)
{
    PUT_ONE_OF(t, "1", "0", "-0", "0.5", "-12.25", "1e3", "1E-3", "100", "3.14159265358979", "5e-324",
               "123456789012345678", "\"2.5\"", "\"-7\"", "\"NaN\"", "\"+Inf\"", "\"-Inf\"", "\"+1\"",
               "\"x\"", "\"\"", "null", "true", "[]", "{}", "\"1e5\"", "\" 1\"");
}

static void put_member(struct text *t)
{
    switch (below(9)) {
    case 0 ... 3:
        put(t, "\"metric\":");
        if (below(15))
            put_metric(t);
        else
            PUT_ONE_OF(t, "null", "[]", "5", "\"x\"", "true");
        break;
    case 4 ... 7:
        put(t, "\"score\":");
        put_score(t);
        break;
    default:
        put(t, "\"other\":");
        PUT_ONE_OF(t, "{\"score\":1,\"metric\":{}}", "[{},{}]", "\"x\"", "1.5", "null");
    }
}

static void put_result(struct text *t)
{
    if (below(40) == 0) {
        PUT_ONE_OF(t, "null", "5", "[]", "\"x\"", "true");
        return;
    }
    put(t, "{");
    for (size_t n = below(5), i = 0; i <= n; i++) {
        put(t, i ? "," : "");
        put_member(t);
    }
    put(t, "}");
}

static void make_answer(struct text *t)
{
    t->n = 0;
    PUT_ONE_OF(t, "{", "{", "{\"version\":2,", " {\"x\":{\"results\":[5]},");
    PUT_ONE_OF(t, "\"results\":[", "\"results\":[", "\"results\":[", "\"r\\u0065sults\" : [");
    for (size_t n = below(6), i = 0; i < n; i++) {
        put(t, i ? "," : "");
        put_result(t);
    }
    PUT_ONE_OF(t, "]}", "]}", "]}\n", "],\"x\":[[]]}");
}

/* Changes a byte, takes some out, or copies some from elsewhere. */
static void damage(struct text *t)
{
    static const char bytes[] = "{}[]\",:\\0123456789.eE+-truefalsn \n\x01\xc3\xa9\xff";
    size_t at = below(t->n), n = below(12), from;

    if (at + n > t->n)
        n = t->n - at;
    switch (below(4)) {
    case 0:
    case 1:
        t->p[at] = bytes[below(sizeof(bytes) - 1)];
        break;
    case 2:
        memmove(t->p + at, t->p + at + n, t->n - at - n);
        t->n -= n;
        break;
    default:
        from = below(t->n - n + 1);
        if (t->n + n > sizeof(t->p))
            break;
        memmove(t->p + at + n, t->p + at, t->n - at);
        t->n += n;
        memmove(t->p + at, t->p + from, n);
    }
}

/* --- the plain reader --- */

struct plain {
    enum { TAKEN, REFUSED, SKIPPED } verdict;
    size_t results, invalid, n, duplicates;
    struct {
        char name[1024]; /* as in the exposition */
        double value;
    } series[MAX_RESULTS];
};

/* The most whole characters that fit, NUL replaced; returns false where the text was not kept. */
static bool label_text(const json_t *v, struct text *into)
{
    struct text t = {.n = 0};

    into->n = 0;
    if (json_is_real(v))
        return false;
    if (json_is_boolean(v))
        put(&t, json_is_true(v) ? "true" : "false");
    for (size_t i = 0; json_is_string(v) && i < json_string_length(v); i++) {
        char c = json_string_value(v)[i];
        put(&t, c ? (char[]){c, '\0'} : "\xef\xbf\xbd");
    }
    for (size_t i = 0; i < t.n;) {
        size_t k = 1;
        while (i + k < t.n && ((unsigned char)t.p[i + k] & 0xc0) == 0x80)
            k++;
        if (into->n + k > LABEL_MAX)
            break;
        memcpy(into->p + into->n, t.p + i, k);
        into->n += k;
        i += k;
    }
    return true;
}

static void put_plain_label(struct text *name, size_t label, const struct text *value)
{
    put(name, label ? "," : "");
    put(name, ds_label_names[label].p);
    put(name, "=\"");
    for (size_t i = 0; i < value->n; i++) {
        char c = value->p[i];
        put(name, c == '\n' ? "\\n" : c == '"' ? "\\\"" : c == '\\' ? "\\\\" : (char[]){c, '\0'});
    }
    put(name, "\"");
}

static bool plain_number(const char *s, size_t n, double *ret)
{
    json_t *v;

    if (n == 3 && memcmp(s, "NaN", 3) == 0)
        return *ret = NAN, true;
    if ((n == 3 && memcmp(s, "Inf", 3) == 0) || (n == 4 && memcmp(s, "+Inf", 4) == 0))
        return *ret = INFINITY, true;
    if (n == 4 && memcmp(s, "-Inf", 4) == 0)
        return *ret = -INFINITY, true;
    if (n > 1 && s[0] == '+' && s[1] != '-')
        s++, n--;
    if (n == 0 || strchr(" \t\r\n", s[0]) || strchr(" \t\r\n", s[n - 1]))
        return false;
    v = json_loadb(s, n, JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL, NULL);
    bool good = json_is_real(v);
    if (good)
        *ret = json_real_value(v);
    json_decref(v);
    return good;
}

static bool plain_score(const json_t *v, double *ret)
{
    if (json_is_string(v))
        return plain_number(json_string_value(v), json_string_length(v), ret);
    *ret = json_is_real(v) ? json_real_value(v) : 0;
    return json_is_real(v);
}

static void plain_add(struct plain *p, const struct text *name, double value)
{
    size_t i = 0;

    while (i < p->n &&
           (strlen(p->series[i].name) != name->n || memcmp(p->series[i].name, name->p, name->n) != 0))
        i++;
    p->duplicates += i < p->n;
    if (i == p->n) {
        assert_true(p->n < MAX_RESULTS && name->n < sizeof(p->series[i].name));
        memcpy(p->series[i].name, name->p, name->n);
        p->series[i].name[name->n] = '\0';
        p->n++;
    }
    p->series[i].value = value;
}

static void plain_result(struct plain *p, const json_t *result)
{
    const json_t *metric = json_object_get(result, "metric");
    struct text name = {.n = 0};
    double score = 0;
    bool good = plain_score(json_object_get(result, "score"), &score) &&
                (!metric || json_is_object(metric) || json_is_null(metric));

    put(&name, "dynamic_score{");
    for (size_t i = 0; i < DS_LABELS; i++) {
        struct text value = {.n = 0};
        const json_t *v = ds_label_sources[i].n ? json_object_get(metric, ds_label_sources[i].p) : NULL;
        good = good && !json_is_object(v) && !json_is_array(v);
        if (i == DS_CLUSTER || i == DS_SCORE_NAME)
            put(&value, i == DS_CLUSTER ? "c1" : "s1");
        else if (!label_text(v, &value))
            p->verdict = SKIPPED;
        put_plain_label(&name, i, &value);
    }
    put(&name, "}");
    p->results++;
    if (good)
        plain_add(p, &name, score);
    else
        p->invalid++;
}

static bool knowingly_different(const json_error_t *e)
{
    switch (json_error_code(e)) {
    case json_error_invalid_utf8:
    case json_error_numeric_overflow:
    case json_error_null_byte_in_key:
        return true;
    default:
        return strstr(e->text, "invalid Unicode") || strstr(e->text, "UTF-8");
    }
}

static void plain_read(struct plain *p, const struct text *t)
{
    json_error_t error;
    json_t *root = json_loadb(t->p, t->n, JSON_DECODE_INT_AS_REAL | JSON_ALLOW_NUL, &error), *list, *result;
    size_t i;

    *p = (struct plain){.verdict = REFUSED};
    if (!root) {
        p->verdict = knowingly_different(&error) ? SKIPPED : REFUSED;
        return;
    }
    list = json_object_get(root, "results");
    if (json_is_array(list) || json_is_null(list)) {
        p->verdict = TAKEN;
        json_array_foreach(list, i, result) plain_result(p, result);
        if (p->verdict == TAKEN && p->results && p->results == p->invalid)
            p->verdict = REFUSED;
    }
    json_decref(root);
}

/* --- comparing --- */

static void compare(const struct plain *p, const struct batch *b, const struct text *t)
{
    if (series_count(b->set) != p->n)
        fail_msg("%zu series, not %zu: %.*s", series_count(b->set), p->n, (int)t->n, t->p);
    for (size_t i = 0; i < p->n; i++) {
        double want = p->series[i].value;
        size_t at = 0;

        while (at < p->n && !str_eq(series_name(b->set, at), str_of(p->series[i].name)))
            at++;
        if (at == p->n)
            fail_msg("no %s: %.*s", p->series[i].name, (int)t->n, t->p);
        if (isnan(want) ? !isnan(b->values[at]) : memcmp(&want, &b->values[at], sizeof(want)) != 0)
            fail_msg("%s is %g, not %g: %.*s", p->series[i].name, b->values[at], want, (int)t->n, t->p);
    }
}

static bool has_duplicate_names(const struct text *t)
{
    json_t *root =
        json_loadb(t->p, t->n, JSON_REJECT_DUPLICATES | JSON_DECODE_INT_AS_REAL | JSON_ALLOW_NUL, NULL);

    json_decref(root);
    return !root;
}

/* Counts what was compared, by verdict, so that the test cannot pass by comparing nothing. */
static size_t compared[3];

static void read_both(struct batch_builder *b, const struct text *t)
{
    static struct plain p;
    CLEANUP(cleanup_batch_unref) struct batch *batch = NULL;
    CLEANUP(cleanup_free) char *exact = malloc(t->n ? t->n : 1); /* so that a read past the end is seen */
    struct answer_stats stats;
    size_t duplicates;
    char why[1024] = "";
    enum round_error e;

    memcpy(exact, t->p, t->n);
    plain_read(&p, t);
    e = answer_parse((struct str){exact, t->n}, b, LABEL_MAX, &stats, why);
    if (e == ROUND_OK)
        batch_seal(b, (unix_ms){0}, &batch, &duplicates);
    if (strstr(why, "duplicate \"results\"")) {
        assert_true(has_duplicate_names(t));
        return;
    }
    compared[p.verdict]++;
    if (p.verdict == SKIPPED)
        return;
    if ((e == ROUND_OK) != (p.verdict == TAKEN))
        fail_msg("%s (%s), the plain reader %s it: %.*s", round_error_word(e), why,
                 p.verdict == TAKEN ? "took" : "refused", (int)t->n, t->p);
    if (e != ROUND_OK)
        return;
    assert_int_equal(stats.results, p.results);
    assert_int_equal(stats.invalid, p.invalid);
    assert_int_equal(duplicates, p.duplicates);
    compare(&p, batch, t);
}

static void agrees_with_a_plain_reader(void **state)
{
    static struct text t;
    CLEANUP(cleanup_batch_builder_free) struct batch_builder *b = NULL;

    (void)state;
    b = batch_builder_new("c1", "s1", 1000);
    for (size_t i = 0; i < DOCUMENTS; i++) {
        make_answer(&t);
        for (size_t n = i % 2 ? 1 + below(4) : 0; n > 0 && t.n > 0; n--)
            damage(&t);
        read_both(b, &t);
    }
    assert_in_range(compared[TAKEN], DOCUMENTS / 3, DOCUMENTS);
    assert_in_range(compared[REFUSED], DOCUMENTS / 5, DOCUMENTS);
    assert_in_range(compared[SKIPPED], 1, DOCUMENTS / 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(agrees_with_a_plain_reader)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* What a schema lets through, and what the reader builds of a text. */
#include "controller/assist/schema.h"
#include "exporter/base/buf.h"

#include <errno.h>
#include <jansson.h>
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char schema_text[] =
    "{'type':'object','additionalProperties':false,'required':['namespace'],'properties':{"
    "'namespace':{'type':'string','minLength':1,'maxLength':4},'n':{'type':'integer','minimum':1,'maximum':9}"
    ","
    "'x':{'type':'number','maximum':0.5},'b':{'type':'boolean'},"
    "'clusters':{'type':'array','minItems':1,'maxItems':2,'items':{'type':'object','required':['name'],"
    "'additionalProperties':false,'properties':{'name':{'type':'string'}}}},"
    "'any':{'type':'object'}}}";

enum { NO_LIMIT = 1 << 30 };

/* JSON with ' for ". */
static char *quoted(const char *text)
{
    char *copy = strdup(text);

    for (char *p = copy; (p = strchr(p, '\'')); p++)
        *p = '"';
    return copy;
}

static json_t *parse(const char *text)
{
    CLEANUP(cleanup_free) char *copy = quoted(text);
    json_t *o = json_loads(copy, 0, NULL);

    assert_non_null(o);
    return o;
}

/* Reads a text with ' for " under the schema above. */
static int read_text(json_t **ret, const char *text, struct api_error *error)
{
    CLEANUP(cleanup_free) char *copy = quoted(text);
    json_auto_t *schema = parse(schema_text);
    size_t bytes;

    return schema_read(ret, schema, str_of(copy), "body", NO_LIMIT, &bytes, error);
}

static void names_the_field_and_what_is_wrong(void **state)
{
    static const struct {
        const char *value, *field, *text;
    } cases[] = {
        {"[]", "", "must be an object"},
        {"{}", "namespace", "missing field"},
        {"{'namespace':1}", "namespace", "must be a string"},
        {"{'namespace':''}", "namespace", "must have at least 1 characters"},
        {"{'namespace':'abcde'}", "namespace", "must have at most 4 characters"},
        {"{'namespace':'a\\u0000b'}", "namespace", "must not contain a NUL"},
        {"{'namespace':null}", "namespace", "must be a string"},
        {"{'namespace':'a','n':0}", "n", "must be at least 1"},
        {"{'namespace':'a','n':10}", "n", "must be at most 9"},
        {"{'namespace':'a','n':1.5}", "n", "must be an integer"},
        {"{'namespace':'a','x':0.6}", "x", "must be at most 0.5"},
        {"{'namespace':'a','b':'true'}", "b", "must be a boolean"},
        {"{'namespace':'a','clusters':[]}", "clusters", "must have at least 1 elements"},
        {"{'namespace':'a','clusters':[{'name':'a'},{}]}", "clusters[1].name", "missing field"},
        {"{'namespace':'a','clusters':[{'name':2}]}", "clusters[0].name", "must be a string"},
        {"{'namespace':'a','clusters':[{'name':'a','nmae':'b'}]}", "clusters[0].nmae",
         "unknown field; did you mean name?"},
        {"{'namespace':'a','clustesr':[]}", "clustesr", "unknown field; did you mean clusters?"},
        {"{'namespace':'a','zzzzzzzz':1}", "zzzzzzzz", "unknown field"},
        {"{'namespace\\u0000':'a'}", "namespace", "unknown field; did you mean namespace?"},
        {"{'namespace':'a','n':1e999}", "n", "must be an integer"},
        {"{'namespace':'a','x':1e999}", "x", "is out of range"},
        {"{'namespace':'a','n':99999999999999999999}", "n", "is out of range"},
        {"{'namespace':'a','clusters':[{'name':''},{'name':''},{'name':''}]}", "clusters",
         "must have at most 2 elements"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        json_t *value = NULL;
        struct api_error error = {0};
        char detail[256];

        (void)snprintf(detail, sizeof(detail), "%s: %s", *cases[i].field ? cases[i].field : "body",
                       cases[i].text);
        assert_int_equal(read_text(&value, cases[i].value, &error), -EINVAL);
        assert_null(value);
        assert_int_equal(error.status, 422);
        assert_string_equal(error.field, cases[i].field);
        assert_string_equal(error.detail, detail);
    }
}

static void reads_what_keeps_the_schema(void **state)
{
    static const struct {
        const char *text, *expected; /* NULL: as it came */
    } cases[] = {
        {"{'namespace':'abcd','n':9,'x':0.5,'b':true}", NULL},
        {"{'namespace':'\\u00e4\\u00f6\\u00fc\\u00df','x':-3}", NULL},
        {"{'namespace':'\\ud83d\\ude00'}", NULL},
        {"{'namespace':'\\n\\u0022'}", NULL},
        {"{'\\u006eamespace':'a'}", "{'namespace':'a'}"},
        {"{'namespace':'a','namespace':'b'}", "{'namespace':'b'}"},
        {"{'namespace':'a','clusters':[{'name':''},{'name':'b'}]}", NULL},
        /* What the schema does not describe is skipped. */
        {"{'namespace':'a','any':{'k':[null]}}", "{'namespace':'a','any':{}}"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        json_auto_t *expected = parse(cases[i].expected ? cases[i].expected : cases[i].text);
        json_auto_t *value = NULL;
        struct api_error error;

        assert_int_equal(read_text(&value, cases[i].text, &error), 0);
        assert_true(json_equal(value, expected));
        assert_int_equal(error.status, 0);
    }
}

static void says_where_it_is_not_json(void **state)
{
    static const char *const texts[] = {
        "", "{", "{'namespace':'a'}x", "{'namespace':}", "{'any':{'k':[}}", "{'namespace':'\xff'}"};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        struct api_error error;
        json_t *value = NULL;

        assert_int_equal(read_text(&value, texts[i], &error), -EINVAL);
        assert_int_equal(error.status, 400);
        assert_string_equal(error.field, "");
        assert_memory_equal(error.detail, "not JSON at line 1, column ", 27);
    }
}

static void cuts_a_path_that_is_too_long(void **state)
{
    char name[600];
    json_auto_t *schema = parse("{'type':'object','additionalProperties':false}");
    struct api_error error = {0};
    json_t *value = NULL;
    BUF_AUTO(text, 1 << 10);
    size_t bytes;

    (void)state;
    memset(name, 'n', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    buf_printf(&text, "{\"%s\":1}", name);
    assert_int_equal(buf_failed(&text), 0);
    assert_int_equal(schema_read(&value, schema, buf_str(&text), "body", NO_LIMIT, &bytes, &error), -EINVAL);
    assert_int_equal(strlen(error.field), sizeof(error.field) - 1);
}

/* ---- Memory ---- */

/* jansson's bytes, the most at once. */
static size_t live_bytes, peak_bytes;

static void *count_malloc(size_t n)
{
    void *p = malloc(n);

    live_bytes += malloc_usable_size(p);
    peak_bytes = live_bytes > peak_bytes ? live_bytes : peak_bytes;
    return p;
}

static void count_free(void *p)
{
    live_bytes -= malloc_usable_size(p);
    free(p);
}

/* Head, n times the element, tail. */
static void repeat(struct buf *into, const char *head, const char *element, size_t n, const char *tail)
{
    buf_puts(into, head);
    for (size_t i = 0; i < n; i++) {
        buf_puts(into, i ? "," : "");
        buf_puts(into, element);
    }
    buf_puts(into, tail);
    assert_int_equal(buf_failed(into), 0);
}

/* A hundred thousand empty objects, where the schema knows none or few: no tree is built of them. */
static void builds_no_tree_of_what_it_refuses(void **state)
{
    static const char *const heads[] = {"{\"unknown\":[",
                                        "{\"namespace\":[",
                                        "{\"clusters\":[{\"name\":\"\"},",
                                        "{\"clusters\":[{\"names\":[",
                                        "{\"n\":[",
                                        "["};
    json_auto_t *schema = parse(schema_text);

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(heads); i++) {
        struct api_error error;
        json_t *value = NULL;
        BUF_AUTO(text, 1 << 20);
        size_t bytes, before = live_bytes;

        repeat(&text, heads[i], "{}", 100000, "]}");
        peak_bytes = live_bytes;
        assert_int_equal(schema_read(&value, schema, buf_str(&text), "body", NO_LIMIT, &bytes, &error),
                         -EINVAL);
        assert_int_equal(error.status, 422);
        assert_true(peak_bytes - before < 4096);
        assert_true(bytes < 4096);
        assert_int_equal(live_bytes, before);
    }
}

/* What a tree takes is never more than was said, and its ceiling holds. */
static void bounds_the_memory_of_a_tree(void **state)
{
    static const struct {
        const char *items, *element;
    } cases[] = {
        {"{'type':'object'}", "{}"},
        {"{'type':'array'}", "[]"},
        {"{'type':'array','items':{'type':'integer'}}", "[1]"},
        {"{'type':'string'}", "\"a\""},
        {"{'type':'string'}", "\"\\u00e4\\u00e4\\u00e4\\u00e4\\u00e4\\u00e4\\u00e4\\u00e4\\u00e4\\u00e4\""},
        {"{'type':'integer'}", "1"},
        {"{'type':'number'}", "0.5"},
        {"{'type':'object','properties':{'name':{'type':'string'}}}", "{\"name\":\"policy-1\"}"},
        {"{'type':'object','properties':{'a':{'type':'integer'},'b':{'type':'integer'},'c':{'type':'integer'}"
         ","
         "'d':{'type':'integer'},'e':{'type':'integer'},'f':{'type':'integer'},'g':{'type':'integer'},"
         "'h':{'type':'integer'},'i':{'type':'integer'}}}",
         "{\"a\":1,\"b\":1,\"c\":1,\"d\":1,\"e\":1,\"f\":1,\"g\":1,\"h\":1,\"i\":1}"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        json_auto_t *schema = parse("{'type':'array'}");
        struct api_error error;
        json_t *value = NULL;
        BUF_AUTO(text, 4 << 20);
        size_t bytes, used, before;

        assert_int_equal(json_object_set_new(schema, "items", parse(cases[i].items)), 0);
        repeat(&text, "[", cases[i].element, 20000, "]");
        before = peak_bytes = live_bytes;
        assert_int_equal(schema_read(&value, schema, buf_str(&text), "body", NO_LIMIT, &bytes, &error), 0);
        used = peak_bytes - before;
        assert_in_range(bytes, used, used * 4);
        json_decref(value);
        value = NULL;
        peak_bytes = live_bytes;
        assert_int_equal(schema_read(&value, schema, buf_str(&text), "body", bytes / 10, &bytes, &error),
                         -EFBIG);
        assert_int_equal(error.status, 0);
        assert_null(value);
        assert_true(peak_bytes - before < used / 4);
        assert_int_equal(live_bytes, before);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_the_field_and_what_is_wrong), cmocka_unit_test(reads_what_keeps_the_schema),
        cmocka_unit_test(says_where_it_is_not_json),         cmocka_unit_test(cuts_a_path_that_is_too_long),
        cmocka_unit_test(builds_no_tree_of_what_it_refuses), cmocka_unit_test(bounds_the_memory_of_a_tree),
    };

    json_set_alloc_funcs(count_malloc, count_free);

    return cmocka_run_group_tests(tests, NULL, NULL);
}

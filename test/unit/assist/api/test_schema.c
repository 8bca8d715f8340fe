#include "controller/assist/api/schema.h"
#include "exporter/base/def.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const char schema_text[] =
    "{'type':'object','additionalProperties':false,'required':['namespace'],'properties':{"
    "'namespace':{'type':'string','minLength':1,'maxLength':4},'n':{'type':'integer','minimum':1,'maximum':9}"
    ","
    "'x':{'type':'number','maximum':0.5},'b':{'type':'boolean'},'at':{'type':['integer','string']},"
    "'mode':{'type':'string','enum':['fast','slow']},'one':{'const':'only'},"
    "'clusters':{'type':'array','minItems':1,'maxItems':2,'items':{'type':'object','required':['name'],"
    "'additionalProperties':false,'properties':{'name':{'type':'string'}}}},"
    "'labels':{'type':'object','additionalProperties':{'type':'string'}},'any':{'type':'object'}}}";

/* JSON with ' for ". */
static json_t *parse(const char *text)
{
    char *copy = strdup(text);
    json_t *o;

    for (char *p = copy; (p = strchr(p, '\'')); p++)
        *p = '"';
    o = json_loads(copy, JSON_ALLOW_NUL, NULL);
    free(copy);
    assert_non_null(o);
    return o;
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
        {"{'namespace':'a','at':[]}", "at", "must be an integer or string"},
        {"{'namespace':'a','mode':'quick'}", "mode", "must be one of fast, slow"},
        {"{'namespace':'a','one':'other'}", "one", "must be only"},
        {"{'namespace':'a','clusters':[]}", "clusters", "must have at least 1 elements"},
        {"{'namespace':'a','clusters':[{'name':'a'},{}]}", "clusters[1].name", "missing field"},
        {"{'namespace':'a','clusters':[{'name':2}]}", "clusters[0].name", "must be a string"},
        {"{'namespace':'a','clusters':[{'name':'a','nmae':'b'}]}", "clusters[0].nmae",
         "unknown field; did you mean name?"},
        {"{'namespace':'a','labels':{'k':1}}", "labels.k", "must be a string"},
        {"{'namespace':'a','clustesr':[]}", "clustesr", "unknown field; did you mean clusters?"},
        {"{'namespace':'a','zzzzzzzz':1}", "zzzzzzzz", "unknown field"},
    };
    json_auto_t *schema = parse(schema_text);

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        json_auto_t *value = parse(cases[i].value);
        struct schema_problem p;

        assert_false(schema_accepts(schema, value, &p));
        assert_string_equal(p.field, cases[i].field);
        assert_string_equal(p.text, cases[i].text);
    }
}

static void accepts_what_keeps_the_schema(void **state)
{
    static const char *const values[] = {
        "{'namespace':'abcd','n':9,'x':0.5,'b':true,'mode':'slow','one':'only','any':{'k':[null]}}",
        "{'namespace':'\\u00e4\\u00f6\\u00fc\\u00df','x':-3}",
        "{'namespace':'a','at':'5','clusters':[{'name':''},{'name':'b'}],'labels':{'k':'v'}}",
        "{'namespace':'a','at':5,'labels':{}}",
    };
    json_auto_t *schema = parse(schema_text);

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
        json_auto_t *value = parse(values[i]);
        struct schema_problem p;

        assert_true(schema_accepts(schema, value, &p));
        assert_string_equal(p.field, "");
    }
}

static void cuts_a_path_that_is_too_long(void **state)
{
    char name[600];
    json_auto_t *schema = parse("{'type':'object','additionalProperties':{'type':'string'}}");
    json_auto_t *value = json_object();
    struct schema_problem p;

    (void)state;
    memset(name, 'n', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    assert_int_equal(json_object_set_new(value, name, json_integer(1)), 0);
    assert_false(schema_accepts(schema, value, &p));
    assert_int_equal(strlen(p.field), sizeof(p.field) - 1);
}

static void reads_query_parameters_by_type(void **state)
{
    static const struct {
        const char *schema, *text, *value;
    } cases[] = {
        {"{'type':'integer'}", "12", "12"},
        {"{'type':'integer'}", "12x", "'12x'"},
        {"{'type':'integer'}", " 12", "' 12'"},
        {"{'type':'integer'}", "99999999999999999999", "'99999999999999999999'"},
        {"{'type':'number'}", "0.5", "0.5"},
        {"{'type':'number'}", "inf", "'inf'"},
        {"{'type':'boolean'}", "true", "true"},
        {"{'type':'boolean'}", "1", "'1'"},
        {"{'type':'string'}", "12", "'12'"},
        {"{'type':['integer','string']}", "12", "12"},
        {"{}", "true", "'true'"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char expected[64];
        json_auto_t *schema = parse(cases[i].schema), *wrapped = NULL;
        json_auto_t *value = schema_read_text(schema, cases[i].text);

        (void)snprintf(expected, sizeof(expected), "[%s]", cases[i].value);
        wrapped = parse(expected);
        assert_true(json_equal(value, json_array_get(wrapped, 0)));
    }
    assert_null(schema_read_text(NULL, "\xff"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_the_field_and_what_is_wrong),
        cmocka_unit_test(accepts_what_keeps_the_schema),
        cmocka_unit_test(cuts_a_path_that_is_too_long),
        cmocka_unit_test(reads_query_parameters_by_type),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

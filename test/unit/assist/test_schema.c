#include "controller/assist/api.h"
#include "exporter/base/def.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
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
        {"{'namespace':'a','clusters':[]}", "clusters", "must have at least 1 elements"},
        {"{'namespace':'a','clusters':[{'name':'a'},{}]}", "clusters[1].name", "missing field"},
        {"{'namespace':'a','clusters':[{'name':2}]}", "clusters[0].name", "must be a string"},
        {"{'namespace':'a','clusters':[{'name':'a','nmae':'b'}]}", "clusters[0].nmae",
         "unknown field; did you mean name?"},
        {"{'namespace':'a','clustesr':[]}", "clustesr", "unknown field; did you mean clusters?"},
        {"{'namespace':'a','zzzzzzzz':1}", "zzzzzzzz", "unknown field"},
    };
    json_auto_t *schema = parse(schema_text);

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        json_auto_t *value = parse(cases[i].value);
        struct objection ob = {0};
        char detail[256];

        (void)snprintf(detail, sizeof(detail), "%s: %s", *cases[i].field ? cases[i].field : "body",
                       cases[i].text);
        assert_false(schema_accepts(schema, value, "body", &ob));
        assert_string_equal(ob.field, cases[i].field);
        assert_string_equal(ob.detail, detail);
    }
}

static void accepts_what_keeps_the_schema(void **state)
{
    static const char *const values[] = {
        "{'namespace':'abcd','n':9,'x':0.5,'b':true,'any':{'k':[null]}}",
        "{'namespace':'\\u00e4\\u00f6\\u00fc\\u00df','x':-3}",
        "{'namespace':'a','clusters':[{'name':''},{'name':'b'}]}",
    };
    json_auto_t *schema = parse(schema_text);

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
        json_auto_t *value = parse(values[i]);
        struct objection ob = {0};

        assert_true(schema_accepts(schema, value, "body", &ob));
    }
}

static void cuts_a_path_that_is_too_long(void **state)
{
    char name[600];
    json_auto_t *schema = parse("{'type':'object','additionalProperties':false}");
    json_auto_t *value = json_object();
    struct objection ob = {0};

    (void)state;
    memset(name, 'n', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    assert_int_equal(json_object_set_new(value, name, json_integer(1)), 0);
    assert_false(schema_accepts(schema, value, "body", &ob));
    assert_int_equal(strlen(ob.field), sizeof(ob.field) - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_the_field_and_what_is_wrong),
        cmocka_unit_test(accepts_what_keeps_the_schema),
        cmocka_unit_test(cuts_a_path_that_is_too_long),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

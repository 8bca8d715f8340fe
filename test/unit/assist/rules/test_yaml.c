/* JSON values as YAML. What comes out is read again by test/scenarios with PyYAML. */
#include "controller/assist/rules/objects.h"
#include "exporter/base/buf.h"

#include "test/unit/assist/rules/guide.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void prints(const char *json, const char *expected)
{
    json_auto_t *list = guide_json(json);
    BUF_AUTO(text, 4096);

    assert_int_equal(yaml_print(list, &text), 0);
    assert_int_equal(buf_putc(&text, '\0'), 0);
    assert_string_equal(text.p, expected);
}

static void prints_maps_and_lists(void **state)
{
    (void)state;
    prints("[{'a':1,'b':[1,'x',{'c':2,'d':[]}],'e':{},'f':{'g':null,'h':true}}]",
           "a: 1\nb:\n- 1\n- x\n- c: 2\n  d: []\ne: {}\nf:\n  g: null\n  h: true\n");
    prints("[{'l':[[1,2],[]]}]", "l:\n- - 1\n  - 2\n- []\n");
    prints("[{'a':1},{'b':2}]", "a: 1\n---\nb: 2\n");
}

static void quotes_what_yaml_reads_otherwise(void **state)
{
    (void)state;
    prints("[{'a':'true','b':'12','c':'','d':'0x1f','e':'1e3','f':'No','g':'a: b','h':'-','i':'3g.48gb'}]",
           "a: \"true\"\nb: \"12\"\nc: \"\"\nd: \"0x1f\"\ne: \"1e3\"\nf: \"No\"\ng: \"a: b\"\nh: \"-\"\ni: "
           "3g.48gb\n");
    prints("[{'x.y/z':'.inf','k':'~','l':'12.5','m':'1_000','p':'2026-11-22','o':'worker01','null':'v1'}]",
           "x.y/z: \".inf\"\nk: \"~\"\nl: \"12.5\"\nm: \"1_000\"\np: \"2026-11-22\"\no: worker01\n\"null\": "
           "v1\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prints_maps_and_lists),
        cmocka_unit_test(quotes_what_yaml_reads_otherwise),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

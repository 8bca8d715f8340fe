#include "controller/kube/json.h"
#include "controller/placement/slot.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define DOMAIN "dynamic-scoring.open-cluster-management.io"

static json_t *object_of(const char *metadata)
{
    json_t *o = NULL;
    char text[512];

    (void)snprintf(text, sizeof(text), "{\"metadata\":{%s}}", metadata);
    assert_int_equal(kube_json_parse(&o, str_of(text), NULL), 0);
    return o;
}

static void finds_the_owner_that_an_object_names(void **state)
{
    static const struct {
        const char *metadata, *owner; /* NULL: none */
    } cases[] = {
        {"", NULL},
        {"\"labels\":{\"team\":\"x\"},\"annotations\":{\"note\":\"y\"},\"ownerReferences\":[]", NULL},
        {"\"annotations\":{\"" DOMAIN "/owner\":\"ns/other\"}", "ns/other"},
        {"\"labels\":{\"" DOMAIN "/managed-by\":\"other\"}", "other"},
        {"\"labels\":{\"open-cluster-management.io/addon-name\":\"other\"}", "other"},
        {"\"labels\":{\"app.kubernetes.io/managed-by\":\"Helm\"}", "Helm"},
        {"\"ownerReferences\":[{\"kind\":\"Deployment\",\"name\":\"d\"}]", "Deployment d"},
        {"\"ownerReferences\":[{}],\"labels\":{\"" DOMAIN "/managed-by\":\"other\"}", " "},
    };
    char owner[OWNER_BYTES];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        json_t *o = object_of(cases[i].metadata);

        assert_int_equal(object_owner(o, owner), cases[i].owner != NULL);
        assert_string_equal(owner, cstr(cases[i].owner));
        json_decref(o);
    }
}

static void knows_its_own_objects_by_annotation_then_by_label(void **state)
{
    static const struct {
        const char *metadata;
        bool ours;
    } cases[] = {
        {"", false},
        {"\"labels\":{\"" DOMAIN "/managed-by\":\"agent\"}", true},
        {"\"labels\":{\"" DOMAIN "/managed-by\":\"controller\"}", false},
        {"\"annotations\":{\"" DOMAIN "/owner\":\"ns/addon\"}", true},
        {"\"labels\":{\"" DOMAIN "/managed-by\":\"agent\"},\"annotations\":{\"" DOMAIN "/owner\":\"ns/b\"}",
         false},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        json_t *o = object_of(cases[i].metadata);

        assert_int_equal(object_is_ours(o, "ns/addon"), cases[i].ours);
        json_decref(o);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_the_owner_that_an_object_names),
        cmocka_unit_test(knows_its_own_objects_by_annotation_then_by_label),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

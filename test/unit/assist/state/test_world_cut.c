#include "controller/assist/state/world.h"
#include "controller/assist/state/world_cut.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void keeps_what_is_needed_of_each_kind(void **state)
{
    static const struct {
        enum world_kind kind;
        const char *object, *want;
    } cases[] = {
        {WORLD_WORKLOADS,
         "{\"apiVersion\":\"v\",\"kind\":\"k\",\"metadata\":{\"name\":\"a\",\"managedFields\":[1],"
         "\"annotations\":"
         "{\"kubectl.kubernetes.io/"
         "last-applied-configuration\":\"{}\",\"b\":\"c\"}},\"spec\":{\"placementRefs\":"
         "[{\"name\":\"p\"}],\"manifestWorkTemplate\":{\"workload\":{}}},\"status\":{\"summary\":{\"total\":"
         "1}}}",
         "{\"metadata\":{\"annotations\":{\"b\":\"c\"},\"name\":\"a\"},\"spec\":{\"placementRefs\":[{"
         "\"name\":"
         "\"p\"}]},\"status\":{\"summary\":{\"total\":1}}}"},
        {WORLD_BINDINGS,
         "{\"metadata\":{},\"placementRef\":{},\"subjects\":[],\"other\":1,\"status\":{\"x\":1}}",
         "{\"metadata\":{},\"placementRef\":{},\"status\":{},\"subjects\":[]}"},
        {WORLD_CLUSTERS,
         "{\"spec\":{\"managedClusterClientConfigs\":[1],\"taints\":[]},\"status\":{\"version\":{}}}",
         "{\"spec\":{\"taints\":[]},\"status\":{}}"},
        {WORLD_PLACEMENTS, "{\"spec\":{\"a\":1},\"status\":{\"b\":2}}",
         "{\"spec\":{\"a\":1},\"status\":{\"b\":2}}"},
        {WORLD_SETS, "{\"spec\":3,\"metadata\":null}", "{\"metadata\":null,\"spec\":3}"},
        {WORLD_SCORES, "[]", "[]"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        json_t *o = json_loads(cases[i].object, 0, NULL);
        char *text;

        assert_non_null(o);
        world_cut(cases[i].kind, o);
        text = json_dumps(o, JSON_COMPACT | JSON_SORT_KEYS);
        assert_string_equal(text, cases[i].want);
        free(text);
        json_decref(o);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(keeps_what_is_needed_of_each_kind)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}

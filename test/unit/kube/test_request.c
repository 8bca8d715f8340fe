/* A request's path, and the words for it in errors: each of their parts, there and absent. */
#include "controller/kube/request.h"
#include "controller/kube/resource.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static size_t on_data(void *arg, struct str piece)
{
    (void)arg;
    return piece.n;
}

static const struct {
    struct kube_request rq;
    const char *path, *words; /* path: NULL: refused */
} cases[] = {
    {{.method = KUBE_GET, .path = "/version"}, "/version", "get /version"},
    {{.method = KUBE_LIST, .resource = &kube_managedclusters},
     "/apis/cluster.open-cluster-management.io/v1/managedclusters",
     "list managedclusters"},
    {{.method = KUBE_LIST, .resource = &kube_configmaps, .namespace = "ns"},
     "/api/v1/namespaces/ns/configmaps",
     "list configmaps ns"},
    {{.method = KUBE_GET, .resource = &kube_configmaps, .namespace = "ns", .name = "a.b"},
     "/api/v1/namespaces/ns/configmaps/a.b",
     "get configmaps ns/a.b"},
    {{.method = KUBE_DELETE, .resource = &kube_clusterclaims, .name = "a"},
     "/apis/cluster.open-cluster-management.io/v1alpha1/clusterclaims/a",
     "delete clusterclaims a"},
    {{.method = KUBE_MERGE_PATCH,
      .resource = &kube_addonplacementscores,
      .namespace = "c1",
      .name = "s",
      .subresource = "status",
      .query = "fieldManager=x"},
     "/apis/cluster.open-cluster-management.io/v1alpha1/namespaces/c1/addonplacementscores/s/status"
     "?fieldManager=x",
     "patch addonplacementscores/status c1/s"},
    {{.method = KUBE_LIST,
      .resource = &kube_configmaps,
      .on_data = on_data,
      .label_selector = "a/b=c",
      .field_selector = "metadata.name=n",
      .query = "watch=1"},
     "/api/v1/configmaps?labelSelector=a%2Fb%3Dc&fieldSelector=metadata.name%3Dn&watch=1",
     "watch configmaps"},
    {{.method = KUBE_GET, .resource = &kube_configmaps, .namespace = "..", .name = "a"},
     NULL,
     "get configmaps ../a"},
    {{.method = KUBE_GET, .resource = &kube_configmaps, .namespace = "ns", .name = "a/b"},
     NULL,
     "get configmaps ns/a/b"},
};

static void has_a_path_and_words(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char *path = kube_request_path(&cases[i].rq), *words = kube_request_describe(&cases[i].rq);

        if (cases[i].path)
            assert_string_equal(path, cases[i].path);
        else
            assert_null(path);
        assert_string_equal(words, cases[i].words);
        free(path);
        free(words);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(has_a_path_and_words),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

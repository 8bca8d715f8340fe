#include "controller/kube/review_internal.h"
#include "test/unit/base/pairs.h"

#include <jansson.h>

static json_t *user_of(struct wish wish)
{
    struct pair p = {0};
    gnutls_datum_t der;
    json_t *user;

    make_pair(&p, wish);
    assert_int_equal(gnutls_x509_crt_export2(p.crt, GNUTLS_X509_FMT_DER, &der), 0);
    user = review_certificate_user((struct str){(const char *)der.data, der.size});
    gnutls_free(der.data);
    drop_pair(&p);
    return user;
}

static void takes_the_common_name_and_the_organizations(void **state)
{
    static const struct {
        struct wish wish;
        const char *user;
    } cases[] = {
        {{.name = "prometheus"}, "{\"username\":\"prometheus\",\"groups\":[\"system:authenticated\"]}"},
        {{.name = "system:serviceaccount:monitoring:k8s", .organizations = {"system:monitoring", "b"}},
         "{\"username\":\"system:serviceaccount:monitoring:k8s\",\"groups\":[\"system:monitoring\",\"b\","
         "\"system:authenticated\"]}"},
        {{.name = "#a, \"b\" + c\\d;<e> ", .organizations = {" f=g", "\xc3\xbc"}},
         "{\"username\":\"#a, \\\"b\\\" + c\\\\d;<e> \",\"groups\":[\" f=g\",\"\xc3\xbc\","
         "\"system:authenticated\"]}"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        json_auto_t *user = user_of(cases[i].wish);
        char *text = json_dumps(user, JSON_COMPACT);

        assert_string_equal(text, cases[i].user);
        free(text);
    }
}

static void refuses_certificates_without_a_name(void **state)
{
    (void)state;
    assert_null(user_of((struct wish){.name = ""}));
    assert_null(review_certificate_user(STR("")));
    assert_null(review_certificate_user(STR("no certificate")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_the_common_name_and_the_organizations),
        cmocka_unit_test(refuses_certificates_without_a_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Whom a client certificate names. */
#include "controller/kube/json.h"
#include "controller/kube/review.h"
#include "test/fakes/fake_kube.h"
#include "test/fakes/fake_server.h"
#include "test/unit/base/pairs.h"

#include <jansson.h>

struct asker {
    struct kube_review review;
    unsigned told, status;
};

static void on_done(struct kube_review *r, const struct httpd_refusal *refusal)
{
    struct asker *a = CONTAINER_OF(r, struct asker, review);

    a->told++;
    a->status = refusal ? refusal->status : 200;
}

/* The user of the SubjectAccessReview that the certificate leads to; NULL if it is refused at once. */
static json_t *user_of_der(struct str der)
{
    static const struct kube_right right = {"get", "/metrics"};
    struct fake_kube *f = fake_kube_new();
    const struct kube_review_options o = {.kube = f->kube, .cache_ttl_ms = 1000, .timeout_ms = 1000};
    struct kube_reviews *reviews = NULL;
    struct asker a = {.review.done = on_done};
    json_auto_t *body = NULL;
    json_t *user = NULL;

    reviews = kube_reviews_new(&o);
    fake_push(f->server, (struct fake_answer){.status = 201, .body = "{\"status\":{\"allowed\":true}}"});
    kube_review_start(reviews, &a.review, &(struct kube_credential){.certificate = der}, &right);
    fake_kube_turn(f, &a.told, 1);
    assert_int_equal(a.status, fake_requests(f->server) ? 200 : 401);
    if (fake_requests(f->server)) {
        assert_int_equal(kube_json_parse(&body, str_of(fake_request(f->server, 0)->body), NULL), 0);
        user = json_pack("{s:O, s:O}", "username", kube_get(body, "spec", "user", NULL), "groups",
                         kube_get(body, "spec", "groups", NULL));
    }
    (void)kube_reviews_free(reviews);
    (void)fake_kube_free(f);
    return user;
}

static json_t *user_of(struct wish wish)
{
    struct pair p = {0};
    gnutls_datum_t der;
    json_t *user;

    make_pair(&p, wish);
    assert_int_equal(gnutls_x509_crt_export2(p.crt, GNUTLS_X509_FMT_DER, &der), 0);
    user = user_of_der((struct str){(const char *)der.data, der.size});
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
    assert_null(user_of_der(STR("x")));
    assert_null(user_of_der(STR("no certificate")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_the_common_name_and_the_organizations),
        cmocka_unit_test(refuses_certificates_without_a_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

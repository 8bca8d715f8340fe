/* What the HTTP server demands of clients' certificates, with a GnuTLS client. */
#include "test/unit/base/tls_world.h"

static void demands_client_certificates(void **state)
{
    static const unsigned who[] = {PAIRS, CLIENT, CLIENT_ALIEN, CLIENT_EXPIRED, CLIENT_NO_PURPOSE};
    static const struct {
        const char *type;
        const char *served; /* for each of those: + or - */
    } cases[] = {
        {"", "+++++"},
        {"NoClientCert", "+++++"},
        {"RequestClientCert", "+++++"},
        {"RequireAnyClientCert", "-++++"},
        {"RequireClientCert", "-++++"},
        {"VerifyClientCertIfGiven", "++---"},
        {"RequireAndVerifyClientCert", "-+---"},
    };
    static const char *const versions[] = {ONLY("TLS1.2"), ONLY("TLS1.3")};
    struct env *e = *state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct httpd_tls_settings s = settings_of_files();
        struct httpd_tls *t;

        s.client_auth_type = cases[i].type;
        s.client_ca.file = strstr(cases[i].type, "Verify") ? ca_file : NULL;
        t = open_tls(e, &s);
        for (size_t k = 0; k < ARRAY_SIZE(who) * ARRAY_SIZE(versions); k++) {
            unsigned pair = who[k / ARRAY_SIZE(versions)];
            struct client_tls c = {.priorities = versions[k % ARRAY_SIZE(versions)],
                                   .pair = pair < PAIRS ? &pairs[pair] : NULL};
            bool expected = cases[i].served[k / ARRAY_SIZE(versions)] == '+';

            if (is_served(e, &c) != expected)
                fail_msg("%s, client %u, %s: %s", cases[i].type, pair, c.priorities,
                         gnutls_strerror(c.error));
            if (!expected)
                assert_true(c.alert == GNUTLS_A_CERTIFICATE_REQUIRED || c.alert == GNUTLS_A_BAD_CERTIFICATE ||
                            c.alert == GNUTLS_A_CERTIFICATE_EXPIRED);
        }
        close_tls(e, t);
    }
}

/* Allows requests of the client, and refuses those without a certificate. */
static enum httpd_access on_check(void *arg, const struct httpd_request *rq,
                                  const struct httpd_ticket *ticket, struct httpd_refusal *ret)
{
    gnutls_datum_t der;
    bool same;

    (void)arg;
    (void)ticket;
    assert_int_equal(gnutls_x509_crt_export2(pairs[CLIENT].crt, GNUTLS_X509_FMT_DER, &der), 0);
    same = str_eq(rq->client_certificate, (struct str){(const char *)der.data, der.size});
    gnutls_free(der.data);
    *ret = (struct httpd_refusal){.status = rq->client_certificate.n ? 403 : 401, .text = ""};
    return same ? HTTPD_ALLOW : HTTPD_REFUSE;
}

/* Anyone can make one that is not verified. */
static void shows_the_guard_verified_certificates_only(void **state)
{
    static const struct {
        const char *type;
        unsigned pair, status;
    } cases[] = {
        {"RequireAndVerifyClientCert", CLIENT, 200}, {"VerifyClientCertIfGiven", CLIENT, 200},
        {"VerifyClientCertIfGiven", PAIRS, 401},     {"RequireAnyClientCert", CLIENT, 401},
        {"RequestClientCert", CLIENT, 401},          {"NoClientCert", CLIENT, 401},
    };
    static const struct httpd_guard guard = {.check = on_check, .deadline_ms = 60000};
    struct env *e = *state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct httpd_options o = options_for(e);
        struct httpd_tls_settings s = settings_of_files();
        struct client_tls c = {.pair = cases[i].pair < PAIRS ? &pairs[cases[i].pair] : NULL};
        char *why = NULL;

        s.client_auth_type = cases[i].type;
        s.client_ca.file = strstr(cases[i].type, "Verify") ? ca_file : NULL;
        assert_int_equal(httpd_tls_new(&o.tls, &s, &why), 0);
        o.guard = &guard;
        open_server(e, &o);
        ask_direct(e, &c);
        assert_int_equal(c.error, 0);
        assert_int_equal(strtoul(c.answer + strlen("HTTP/1.1 "), NULL, 10), cases[i].status);
        close_tls(e, o.tls);
    }
}

/* What stands before a NUL is not the name. */
static void refuses_a_name_with_a_nul(void **state)
{
    /* SEQUENCE { dNSName "scraper.example\0.evil" } */
    static const char split[] = "\x30\x17\x82\x15scraper.example\0.evil";
    const char *const names[] = {"scraper.example"};
    struct env *e = *state;
    struct httpd_tls_settings s = settings_of_files();
    struct pair pair = {0};
    struct client_tls c = {.pair = &pair};
    struct httpd_tls *t;

    make_pair(&pair, (struct wish){.issuer = &pairs[CA], .name = "other.example"});
    assert_int_equal(gnutls_x509_crt_set_extension_by_oid(pair.crt, "2.5.29.17", split, sizeof(split) - 1, 0),
                     0);
    assert_int_equal(gnutls_x509_crt_sign2(pair.crt, pairs[CA].crt, pairs[CA].key, GNUTLS_DIG_SHA256, 0), 0);
    gnutls_free(pair.crt_pem.data);
    assert_int_equal(gnutls_x509_crt_export2(pair.crt, GNUTLS_X509_FMT_PEM, &pair.crt_pem), 0);
    s.client_ca.file = ca_file;
    s.client_auth_type = "RequireAndVerifyClientCert";
    s.client_allowed_sans = (struct httpd_tls_list){names, 1};
    t = open_tls(e, &s);
    assert_false(is_served(e, &c));
    assert_int_equal(c.alert, GNUTLS_A_BAD_CERTIFICATE);
    close_tls(e, t);
    drop_pair(&pair);
}

static void demands_a_name_of_the_client(void **state)
{
    static const struct {
        const char *name;
        bool served;
    } cases[] = {{"scraper.example", true},      {"10.1.2.3", true}, {"spiffe://example/scraper", true},
                 {"SCRAPER.EXAMPLE", false}, /* as Go compares them */
                 {"scraper.example.org", false}, {"scraper", false}, {"*.example", false}};
    struct env *e = *state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const char *const names[] = {"other.example", cases[i].name};
        struct httpd_tls_settings s = settings_of_files();
        struct client_tls c = {.pair = &pairs[CLIENT]};
        struct httpd_tls *t;

        s.client_ca.file = ca_file;
        s.client_auth_type = "RequireAndVerifyClientCert";
        s.client_allowed_sans = (struct httpd_tls_list){names, 2};
        t = open_tls(e, &s);
        if (is_served(e, &c) != cases[i].served)
            fail_msg("%s: %s", cases[i].name, gnutls_strerror(c.error));
        close_tls(e, t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(demands_client_certificates),
        CASE(shows_the_guard_verified_certificates_only),
        CASE(demands_a_name_of_the_client),
        CASE(refuses_a_name_with_a_nul),
    };

    return cmocka_run_group_tests(tests, make_pairs, drop_pairs);
}

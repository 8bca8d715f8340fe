/* The HTTP server with TLS, with a GnuTLS client. */
#include "test/unit/http/tls_world.h"

#include <dirent.h>

static void serves_requests(void **state)
{
    struct env *e = *state;
    struct httpd_tls_settings s = settings_of_files();
    struct client_tls c = {0};

    open_tls(e, &s);
    assert_true(is_served(e, &c));
    assert_int_equal(c.version, GNUTLS_TLS1_3);
    assert_int_equal(c.cipher, GNUTLS_CIPHER_AES_128_GCM);
    assert_string_equal(c.server, "first.example");
    assert_int_equal(e->served_status, 200);
    close_tls(e);
}

static void takes_inline_certificates(void **state)
{
    struct env *e = *state;
    struct httpd_tls_settings s = {.cert.text = (char *)pairs[SERVER_RSA].crt_pem.data,
                                   .key.text = (char *)pairs[SERVER_RSA].key_pem.data};
    struct client_tls c = {0};

    open_tls(e, &s);
    assert_true(is_served(e, &c));
    assert_string_equal(c.server, "rsa.example");
    close_tls(e);
}

static void sends_large_answers_whole(void **state)
{
    struct env *e = *state;
    struct httpd_tls_settings s = settings_of_files();
    struct client_tls c = {0};

    open_tls(e, &s);
    answer_with(e, e->small, 700);
    ask_tls(httpd_port(e->server, 0), REQUEST("GET /large"), &c);
    assert_int_equal(c.error, 0);
    assert_non_null(strstr(c.answer, "\r\n\r\n"));
    assert_int_equal(strlen(strstr(c.answer, "\r\n\r\n") + 4), 2100);
    assert_int_equal(atomic_load(&e->released), 1);
    close_tls(e);
}

static void answers_plain_http_with_a_hint(void **state)
{
    struct env *e = *state;
    struct httpd_tls_settings s = settings_of_files();
    struct buf b = {.max = 1 << 20};

    open_tls(e, &s);
    ask(e, REQUEST("GET /direct"), &b);
    assert_non_null(strstr(b.p, "HTTP/1.0 400 Bad Request\r\n"));
    assert_string_equal(body_of(&b), "Client sent an HTTP request to an HTTPS server.\n");
    assert_int_equal(atomic_load(&e->handled), 0);
    buf_done(&b);
    close_tls(e);
}

/* Those whose handshake does not end make room, the oldest first, as slow readers of plain HTTP do. */
static void displaces_slow_handshakes(void **state)
{
    enum { LIMIT = 4 };
    static const char hello[] = {0x16, 3, 1, 2, 0, 1, 0, 1, (char)0xfc};
    struct env *e = *state;
    struct httpd_tls_settings s = settings_of_files();
    struct httpd_options o = options_for(e);
    struct client_tls c = {0};
    int slow[2 * LIMIT];

    o.max_connections = LIMIT;
    o.tls = make_tls(&s);
    open_server(e, &o);
    for (size_t i = 0; i < ARRAY_SIZE(slow); i++) {
        slow[i] = dial(httpd_port(e->server, 0), 0);
        say(slow[i], hello, sizeof(hello));
    }
    assert_true(is_served(e, &c));
    assert_int_equal(hear(e, slow[0], (char[1]){0}, 1), 0); /* closed */
    for (size_t i = 0; i < ARRAY_SIZE(slow); i++)
        (void)close(slow[i]);
    close_tls(e);
}

/* ---- Versions, cipher suites, curves ---- */

#define TLS12_ONLY(cipher) "NORMAL:-VERS-ALL:+VERS-TLS1.2:-CIPHER-ALL:+" cipher

static void limits_what_is_negotiated(void **state)
{
    static const char *const gcm256[] = {"TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"};
    static const char *const rsa_only[] = {"TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"};
    static const char *const cbc[] = {"TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA"};
    static const char *const tls13[] = {"TLS_AES_128_GCM_SHA256"};
    static const char *const p384[] = {"CurveP384", "CurveP256"};
    static const struct {
        struct httpd_tls_settings s;
        const char *priorities;
        bool ok;
    } cases[] = {
        {{.min_version = NULL}, ONLY("TLS1.2"), true},
        {{.min_version = NULL}, ONLY("TLS1.3"), true},
        {{.min_version = NULL}, ONLY("TLS1.1"), false},
        {{.min_version = NULL}, ONLY("TLS1.0"), false},
        {{.min_version = "TLS13"}, ONLY("TLS1.3"), true},
        {{.min_version = "TLS13"}, ONLY("TLS1.2"), false},
        {{.max_version = "TLS12"}, ONLY("TLS1.2"), true},
        {{.max_version = "TLS12"}, ONLY("TLS1.3"), false},
        {{.max_version = "TLS12"}, "NORMAL", true},
        {{.min_version = "TLS11"}, ONLY("TLS1.1"), true},
        {{.min_version = "TLS11"}, ONLY("TLS1.0"), false},
        {{.min_version = "TLS10"}, ONLY("TLS1.0"), true},
        {{.min_version = "TLS10", .max_version = "TLS10"}, "NORMAL", true},
        {{.min_version = NULL}, TLS12_ONLY("AES-128-GCM"), true},
        {{.min_version = NULL}, TLS12_ONLY("CHACHA20-POLY1305"), true},
        {{.min_version = NULL}, TLS12_ONLY("AES-128-CBC"), false},
        {{.min_version = NULL}, "NORMAL:-VERS-ALL:+VERS-TLS1.2:-KX-ALL:+RSA", false},
        {{.min_version = NULL}, "NORMAL:-VERS-ALL:+VERS-TLS1.2:-KX-ALL:+DHE-RSA", false},
        {{.cipher_suites = {gcm256, 1}}, TLS12_ONLY("AES-256-GCM"), true},
        {{.cipher_suites = {gcm256, 1}}, TLS12_ONLY("AES-128-GCM"), false},
        {{.cipher_suites = {gcm256, 1}}, ONLY("TLS1.3"), true},
        {{.cipher_suites = {cbc, 1}, .max_version = "TLS12"}, TLS12_ONLY("AES-128-CBC"), true},
        {{.cipher_suites = {cbc, 1}, .max_version = "TLS12"}, TLS12_ONLY("AES-128-GCM"), false},
        {{.cipher_suites = {rsa_only, 1}}, ONLY("TLS1.2"), false},
        {{.cipher_suites = {rsa_only, 1}}, ONLY("TLS1.3"), true},
        {{.cipher_suites = {tls13, 1}}, ONLY("TLS1.3"), true},
        {{.cipher_suites = {tls13, 1}}, ONLY("TLS1.2"), false},
        {{.cipher_suites = {cbc, 1}, .min_version = "TLS13"}, ONLY("TLS1.3"), true},
        {{.curve_preferences = {p384, 2}}, "NORMAL:-GROUP-ALL:+GROUP-SECP384R1", true},
        {{.curve_preferences = {p384, 2}}, "NORMAL:-GROUP-ALL:+GROUP-X25519", false},
        {{.curve_preferences = {p384, 2}},
         "NORMAL:-VERS-ALL:+VERS-TLS1.2:-GROUP-ALL:+GROUP-SECP521R1",
         false},
    };
    struct env *e = *state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct httpd_tls_settings s = cases[i].s, files = settings_of_files();
        struct client_tls c = {.priorities = cases[i].priorities};
        bool served;

        s.cert = files.cert;
        s.key = files.key;
        open_tls(e, &s);
        served = is_served(e, &c);
        if (served != cases[i].ok)
            fail_msg("case %zu, %s: %s", i, cases[i].priorities, gnutls_strerror(c.error));
        close_tls(e);
    }
}

/* ---- Resumption ---- */

static void resumes_sessions_unless_clients_are_verified(void **state)
{
    struct env *e = *state;

    for (int verified = 0; verified <= 1; verified++) {
        struct httpd_tls_settings s = settings_of_files();
        gnutls_datum_t ticket = {0};
        struct client_tls c = {.ticket = &ticket, .pair = &pairs[CLIENT]};

        s.client_auth_type = verified ? "RequireAndVerifyClientCert" : NULL;
        s.client_ca.file = verified ? ca_file : NULL;
        open_tls(e, &s);
        assert_true(is_served(e, &c));
        assert_false(c.resumed);
        assert_true(is_served(e, &c));
        assert_int_equal(c.resumed, !verified);
        /* Not what was agreed on under other settings. */
        httpd_set(e->server, NULL, 0, make_tls(&s));
        assert_true(is_served(e, &c));
        assert_false(c.resumed);
        gnutls_free(ticket.data);
        close_tls(e);
    }
}

/* ---- Replaced files ---- */

static void takes_a_replaced_certificate(void **state)
{
    struct env *e = *state;
    struct httpd_tls_settings s = settings_of_files();
    struct client_tls c = {0};

    open_tls(e, &s);
    write_files(&pairs[SERVER_RSA]);
    httpd_set(e->server, NULL, 0, make_tls(&s));
    assert_true(is_served(e, &c));
    assert_string_equal(c.server, "rsa.example");
    close_tls(e);
}

/* The one of a pair that is written first makes a mismatch; the second one ends it. */
static void keeps_the_last_valid_certificate(void **state)
{
    struct env *e = *state;
    struct httpd_tls_settings s = settings_of_files();
    struct client_tls c = {0};
    struct httpd_tls *t = NULL;
    struct httpd_tls_fault fault = {0};

    open_tls(e, &s);
    write_pem(cert_file, &pairs[SERVER_RSA].crt_pem);
    assert_int_equal(httpd_tls_new(&t, &s, &fault), -EINVAL);
    assert_non_null(strstr(fault.text, key_file));
    assert_non_null(strstr(fault.text, "is not the key of the certificate in"));
    free(fault.text);
    assert_true(is_served(e, &c));
    assert_string_equal(c.server, "first.example");
    write_pem(key_file, &pairs[SERVER_RSA].key_pem);
    httpd_set(e->server, NULL, 0, make_tls(&s));
    assert_int_equal(unlink(cert_file), 0);
    assert_int_equal(httpd_tls_new(&t, &s, &fault), -ENOENT);
    free(fault.text);
    assert_true(is_served(e, &c));
    assert_string_equal(c.server, "rsa.example");
    close_tls(e);
}

/* Connections that began before keep what they began with. */
static void keeps_connections_when_settings_change(void **state)
{
    struct env *e = *state;
    struct httpd_tls_settings s = settings_of_files();
    int fd = dial(httpd_port(e->server, 0), 0);
    struct client_tls c = {0};

    open_tls(e, &s);
    assert_true(is_served(e, &c)); /* the other connection has been accepted as well */
    s.min_version = "TLS13";
    httpd_set(e->server, NULL, 0, make_tls(&s));
    assert_true(is_served(e, &c));
    (void)close(fd);
    close_tls(e);
}

/* ---- Refusals ---- */

static void explains_what_it_refuses(void **state)
{
    static const char *const bad_suite[] = {"TLS_RSA_WITH_RC4_128_SHA"};
    static const char *const rsa_suite[] = {"TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"};
    static const char *const cbc_suite[] = {"TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA"};
    static const char *const bad_curve[] = {"CurveP224"};
    static const char *const new_curve[] = {"X25519MLKEM768"};
    struct pair expired = {0};
    const struct {
        struct httpd_tls_settings s;
        const char *why;
    } cases[] = {
        {{.min_version = "TLS14"}, "min_version: unknown version \"TLS14\""},
        {{.max_version = "tls12"}, "max_version: unknown version \"tls12\""},
        {{.min_version = "TLS13", .max_version = "TLS12"}, "max_version: TLS12 is below min_version, TLS13"},
        {{.cipher_suites = {bad_suite, 1}},
         "cipher_suites: unknown or insecure cipher suite \"TLS_RSA_WITH_RC4_128_SHA\""},
        {{.cipher_suites = {rsa_suite, 1}, .max_version = "TLS12"},
         "cipher_suites: none can be used with the certificate's EC/ECDSA key"},
        {{.cipher_suites = {cbc_suite, 1}},
         "cipher_suites: TLS 1.3 needs a suite with GCM or CHACHA20: add one, or set max_version to TLS12"},
        {{.curve_preferences = {bad_curve, 1}}, "curve_preferences: unknown curve \"CurveP224\""},
        {{.client_auth_type = "Maybe"}, "client_auth_type: unknown type \"Maybe\""},
        {{.client_auth_type = "RequireAndVerifyClientCert"},
         "client_auth_type: RequireAndVerifyClientCert needs client_ca_file"},
        {{.client_ca.text = "x"}, "client_ca: has no effect without client_auth_type: set that as well"},
        {{.client_ca.text = "x", .client_auth_type = "RequestClientCert"},
         "client_ca: no certificate in PEM format found"},
        {{.client_ca.file = "/nowhere/ca", .client_auth_type = "RequestClientCert"},
         "client_ca_file: could not read /nowhere/ca: No such file or directory"},
        {{.cert.file = "/nowhere/crt"}, "cert_file: could not read /nowhere/crt: No such file or directory"},
        {{.key.file = "/nowhere/key"}, "key_file: could not read /nowhere/key: No such file or directory"},
        {{.cert.text = ""}, "cert: no certificate in PEM format found"},
        {{.cert.text = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"}, "cert: "},
        {{.key.text = "x"}, "key: no private key in PEM format found"},
        {{.key.text = (char *)pairs[CLIENT].key_pem.data}, "key: it is not the key of the certificate in "},
    };
    struct httpd_tls *t = NULL;
    struct httpd_tls_settings s;
    struct httpd_tls_fault fault = {0};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const struct httpd_tls_settings files = settings_of_files();

        s = cases[i].s;
        s.cert = s.cert.file || s.cert.text ? s.cert : files.cert;
        s.key = s.key.file || s.key.text ? s.key : files.key;
        assert_true(httpd_tls_new(&t, &s, &fault) < 0);
        assert_null(t);
        assert_non_null(fault.text);
        if (strncmp(fault.text, cases[i].why, strlen(cases[i].why)) != 0)
            fail_msg("case %zu: %s", i, fault.text);
        free(TAKE_PTR(fault.text));
    }
    s = settings_of_files();
    s.curve_preferences = (struct httpd_tls_list){new_curve, 1};
    if (gnutls_group_get_id("X25519-MLKEM768") == GNUTLS_GROUP_INVALID) {
        assert_int_equal(httpd_tls_new(&t, &s, &fault), -EINVAL);
        assert_non_null(strstr(fault.text, "curve_preferences: X25519MLKEM768 is not supported by GnuTLS "));
        free(TAKE_PTR(fault.text));
    }
    make_pair(&expired, (struct wish){.days = -2});
    write_files(&expired);
    s = (struct httpd_tls_settings){.cert.file = cert_file, .key.file = key_file};
    assert_int_equal(httpd_tls_new(&t, &s, &fault), -EINVAL);
    assert_non_null(strstr(fault.text, cert_file));
    assert_non_null(strstr(fault.text, "the certificate expired at 2"));
    free(fault.text);
    drop_pair(&expired);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(serves_requests),
        CASE(takes_inline_certificates),
        CASE(sends_large_answers_whole),
        CASE(answers_plain_http_with_a_hint),
        CASE(displaces_slow_handshakes),
        CASE(limits_what_is_negotiated),
        CASE(resumes_sessions_unless_clients_are_verified),
        CASE(takes_a_replaced_certificate),
        CASE(keeps_the_last_valid_certificate),
        CASE(keeps_connections_when_settings_change),
        CASE(explains_what_it_refuses),
    };

    return cmocka_run_group_tests(tests, make_pairs, drop_pairs);
}

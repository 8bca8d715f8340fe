/* The cases are those of exporter-toolkit's own tests, and one for each rule of ours. */
#include "exporter/base/buf.h"
#include "exporter/base/def.h"
#include "exporter/base/doc.h"
#include "exporter/http/tls.h"
#include "exporter/web/web_file.h"
#include "test/unit/web/web_world.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define TLS             "tls_server_config:\n  cert_file: server.crt\n  key_file: server.key\n"
#define SALT_AND_DIGEST "abcdefghijklmnopqrstuu5s2v8.iXieOjg/.AySBTTZIIVFJeBui"
#define HASH(cost)      "$2y$" cost "$" SALT_AND_DIGEST
#define HASH4           HASH("04")

static int parse(struct web_file **ret, const char *text, struct buf *why)
{
    CLEANUP(problems_done) struct problems p = {0};
    int r;

    problems_init(&p, "web.yml");
    *ret = NULL;
    r = web_file_parse(ret, str_of(text), "/etc/web", &p);
    why->n = 0;
    problems_print(&p, why);
    buf_putc(why, '\0');
    assert_int_equal(buf_failed(why), 0);
    return r;
}

static void accepts_valid_files(void **state)
{
    static const char *const cases[] = {
        "",
        "{}",
        "tls_server_config:\nbasic_auth_users:\nhttp_server_config:\nrate_limit:\n",
        "tls_server_config: {}\n",
        TLS,
        TLS "  client_auth_type: VerifyClientCertIfGiven\n",
        TLS "  client_auth_type: RequireAnyClientCert\n",
        TLS "  client_auth_type: RequireAndVerifyClientCert\n  client_ca_file: client.pem\n",
        TLS "  client_auth_type: RequireAndVerifyClientCert\n  client_ca_file: client.pem\n"
            "  client_allowed_sans:\n    - one\n    - \"10.0.0.1\"\n",
        TLS
        "  cipher_suites:\n  - TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256\n  prefer_server_cipher_suites: false\n"
        "  min_version: TLS12\n  max_version: TLS12\n",
        TLS "  curve_preferences:\n    - CurveP256\n    - X25519\n",
        TLS "http_server_config:\n  http2: false\n",
        "tls_server_config:\n  cert: |\n    -----BEGIN CERTIFICATE-----\n  key: |\n    -----BEGIN PRIVATE "
        "KEY-----\n",
        "tls_server_config:\n  cert_file: /server.crt\n  cert: \"\"\n  key: x\n",
        "http_server_config:\n  headers:\n    X-Frame-Options: deny\n    X-XSS-Protection: 1\n"
        "    Strict-Transport-Security: max-age=31536000; includeSubDomains\n    X-Content-Type-Options: "
        "nosniff\n"
        "    Content-Security-Policy: \"default-src 'self'\"\n",
        "http_server_config:\n  headers:\n    X-Frame-Options: sameorigin\n    X-XSS-Protection:\n",
        "basic_auth_users:\n  alice: " HASH("12") "\n  bob: " HASH("14") "\n  42: $2a$10$" SALT_AND_DIGEST
                                                                         "\n",
        TLS "basic_auth_users:\n  alice: " HASH4 "\n",
        "rate_limit:\n  interval: 0\n  burst: 0\n",
        "rate_limit:\n  interval: 1s\n  burst: 5\n",
        "{\"rate_limit\": {\"interval\": \"100ms\", \"burst\": 5}}",
    };
    BUF_AUTO(why, 1 << 20);

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct web_file *f;
        assert_int_equal(parse(&f, cases[i], &why), 0);
        assert_string_equal(why.p, "");
        (void)web_file_free(f);
    }
}

static void names_the_place_of_each_error(void **state)
{
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"hWkNKCp3fvIx3jKnsaBI\nTuEjdwNS8A2vYdFbiKqr\n", "web.yml:1:1: error: expected an object with"},
        {"[]", "web.yml:1:1: error: expected an object with"},
        {"tls_server_config:\n  cert_filse: x\n",
         "web.yml:2:3: error: tls_server_config.cert_filse: unknown key"},
        {"tls_server_config: 5\n", "web.yml:1:20: error: tls_server_config: expected an object, got 5"},
        {"tls_server: {}\n",
         "web.yml:1:1: error: tls_server: unknown key, expected one of tls_server_config"},
        {"tls_server_config:\n  cert_file: \"\"\n  key_file: a\n",
         "web.yml:2:3: error: tls_server_config.cert_file: missing"},
        {"tls_server_config:\n  cert: \"\"\n  key_file: a\n", "tls_server_config.cert_file: missing"},
        {"tls_server_config:\n  cert_file: a\n  key: \"\"\n", "tls_server_config.key_file: missing"},
        {"tls_server_config:\n  min_version: TLS12\n", "tls_server_config.cert_file: missing"},
        {TLS "  cert: x\n", "web.yml:4:9: error: tls_server_config.cert: cert_file is given as well"},
        {TLS "  key: x\n", "tls_server_config.key: key_file is given as well"},
        {TLS "  client_ca: x\n  client_ca_file: x\n",
         "tls_server_config.client_ca: client_ca_file is given as well"},
        {TLS "  cipher_suites: x\n", "tls_server_config.cipher_suites: expected a list of strings"},
        {TLS "  cipher_suites: [5]\n", "tls_server_config.cipher_suites[0]: expected a string"},
        {TLS "  prefer_server_cipher_suites: 5\n", "prefer_server_cipher_suites: expected true or false"},
        {"http_server_config:\n  http3: true\n",
         "http_server_config.http3: unknown key, did you mean http2?"},
        {"http_server_config:\n  http2: 5\n", "http_server_config.http2: expected true or false"},
        {"http_server_config:\n  headers:\n    X-Content-Type-Options: sniff\n",
         "web.yml:3:29: error: http_server_config.headers.X-Content-Type-Options: expected nosniff"},
        {"http_server_config:\n  headers:\n    X-Frame-Options: foo\n", "expected deny or sameorigin"},
        {"http_server_config:\n  headers:\n    Content-Type: foo\n", "headers.Content-Type: unknown key"},
        {"http_server_config:\n  headers:\n    x-frame-options: deny\n",
         "unknown key, did you mean X-Frame-Options?"},
        {"http_server_config:\n  headers:\n    X-XSS-Protection: \"a\\r\\nb\"\n", "expected printable ASCII"},
        {"http_server_config:\n  headers:\n    X-XSS-Protection: [a]\n", "expected a string of at most"},
        {"http_server_config:\n  headers: x\n", "headers: expected an object"},
        {"basic_auth_users:\n  john: doe\n",
         "web.yml:2:9: error: basic_auth_users.john: expected a bcrypt hash"},
        {"basic_auth_users:\n  john: 5\n", "expected a bcrypt hash"},
        {"basic_auth_users:\n  john:\n", "expected a bcrypt hash"},
        {"basic_auth_users:\n  john: " HASH("03") "\n", "expected a bcrypt hash"},
        {"basic_auth_users:\n  john: " HASH("19") "\n", "cost 19 is too high: at most 18 is allowed"},
        {"basic_auth_users:\n  \"jo:hn\": " HASH4 "\n",
         "web.yml:2:3: error: basic_auth_users[...]: a user name"},
        {"basic_auth_users:\n  john: " HASH4 "\n  john: " HASH4 "\n", "john: duplicate key"},
        {"basic_auth_users: [" HASH4 "]\n", "basic_auth_users: expected an object, got a list"},
        {"rate_limit:\n  interval: 5\n", "rate_limit.interval: expected a duration with a unit"},
        {"rate_limit:\n  interval: 2d\n", "rate_limit.interval: expected a duration from"},
        {"rate_limit:\n  interval: 1s\n  burst: -1\n", "rate_limit.burst: expected"},
        {"rate_limit:\n  intervall: 1s\n", "did you mean interval?"},
        {"rate_limit: &a\n  interval: 1s\nbasic_auth_users: *a\n", "alias"},
        {"tls_server_config: {\n", "web.yml:2:1: error:"},
    };
    BUF_AUTO(why, 1 << 20);

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct web_file *f;
        assert_int_equal(parse(&f, cases[i].text, &why), -EINVAL);
        assert_null(f);
        if (!strstr(why.p, cases[i].why))
            fail_msg("\"%s\" is not in: %s", cases[i].why, why.p);
    }
}

static void warns_of_what_is_valid_but_hardly_meant(void **state)
{
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"rate_limit:\n  interval: \"1s\"\n  burst: 0\n",
         "warning: rate_limit: burst is 0: every request is refused"},
        {"basic_auth_users:\n  bob: " HASH("18") "\n",
         "warning: basic_auth_users.bob: cost 18: checking a password"},
    };
    BUF_AUTO(why, 1 << 20);

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct web_file *f;
        assert_int_equal(parse(&f, cases[i].text, &why), 0);
        assert_non_null(strstr(why.p, cases[i].why));
        (void)web_file_free(f);
    }
}

static void never_quotes_a_hash_or_a_key(void **state)
{
    static const char *const cases[] = {
        "basic_auth_users:\n  john: $2y$10$SECRETsalt\n",
        "basic_auth_users:\n  $2y$10$SECRETsalt: john\n",
        "basic_auth_users: $2y$10$SECRETsalt\n",
        "john:$2y$10$SECRETsalt\n",
        "tls_server_config:\n  key: {SECRETsalt: 5}\n",
        "basic_auth_users:\n  john:\n    $2y$10$SECRETsalt: x\n",
        "basic_auth_users:\n  - $2y$10$SECRETsalt\n",
    };
    BUF_AUTO(why, 1 << 20);

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct web_file *f;
        assert_int_equal(parse(&f, cases[i], &why), -EINVAL);
        if (strstr(why.p, "SECRET"))
            fail_msg("%s", why.p);
    }
}

static const char all[] =
    "tls_server_config:\n  cert_file: tls.crt\n  key_file: /key\n  client_ca: CA\n"
    "  client_auth_type: RequireAndVerifyClientCert\n  client_allowed_sans: [one, two]\n"
    "  min_version: TLS13\n  max_version: TLS13\n  cipher_suites: [c]\n  curve_preferences: [X25519]\n"
    "http_server_config:\n  headers: {X-Frame-Options: deny, Content-Security-Policy: x}\n"
    "basic_auth_users:\n  alice: " HASH4
    "\n  \"\": " HASH("10") "\nrate_limit:\n  interval: 100ms\n  burst: 7\n";

static void reads_every_field(void **state)
{
    CLEANUP(cleanup_web_file_free) struct web_file *f = NULL;
    BUF_AUTO(why, 1 << 20);

    (void)state;
    assert_int_equal(parse(&f, all, &why), 0);
    assert_true(f->has_tls);
    assert_string_equal(f->tls.cert.file, "/etc/web/tls.crt");
    assert_string_equal(f->tls.key.file, "/key");
    assert_string_equal(f->tls.client_ca.text, "CA");
    assert_null(f->tls.client_ca.file);
    assert_string_equal(f->tls.client_auth_type, "RequireAndVerifyClientCert");
    assert_string_equal(f->tls.min_version, "TLS13");
    assert_string_equal(f->tls.max_version, "TLS13");
    assert_int_equal(f->tls.client_allowed_sans.n, 2);
    assert_string_equal(f->tls.client_allowed_sans.items[1], "two");
    assert_string_equal(f->tls.cipher_suites.items[0], "c");
    assert_string_equal(f->tls.curve_preferences.items[0], "X25519");
    assert_int_equal(f->n_headers, 2);
    assert_string_equal(f->headers[0].name, "X-Frame-Options");
    assert_string_equal(f->headers[1].value, "x");
    assert_int_equal(f->n_users, 2);
    assert_true(str_eq(f->users[0]->key, STR("alice")) && str_eq(f->users[0]->text, STR(HASH4)));
    assert_int_equal(f->users[1]->key.n, 0);
    assert_int_equal(f->interval_ms, 100);
    assert_int_equal(f->burst, 7);
}

/* ---- Files that cannot be read; certificates that can are in test/scenarios/test_web_config.py ---- */

static int load(const char *path, struct problems *p)
{
    CLEANUP(cleanup_web_file_free) struct web_file *f = NULL;
    struct httpd_tls *tls = NULL;
    int r;

    problems_init(p, "web.yml");
    r = web_file_read(&f, path, p);
    r = r ?: web_file_tls(f, &tls, p);
    (void)httpd_tls_unref(tls);
    return r;
}

static void names_the_place_of_errors_in_other_files(void **state)
{
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"tls_server_config:\n  cert_file: nowhere\n  key_file: nowhere\n",
         "web.yml:2:14: error: tls_server_config.cert_file: "},
        {"tls_server_config:\n  cert: nothing\n  key: nothing\n",
         "web.yml:2:9: error: tls_server_config.cert"},
        {"tls_server_config:\n  cert_file: nowhere\n  key_file: nowhere\n  client_auth_type: x\n",
         "web.yml:4:21: error: tls_server_config.client_auth_type: "},
        {"{", "web.yml:2:1: error: YAML: unexpected end"},
    };
    struct folder f;

    (void)state;
    folder_make(&f);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(problems_done) struct problems p = {0};
        BUF_AUTO(why, 1 << 20);
        folder_write(&f, cases[i].text);
        assert_int_equal(load(f.file, &p), -EINVAL);
        problems_print(&p, &why);
        buf_putc(&why, '\0');
        assert_int_equal(buf_failed(&why), 0);
        if (!strstr(why.p, cases[i].why))
            fail_msg("\"%s\" is not in: %s", cases[i].why, why.p);
    }
    folder_remove(&f);
}

static void says_why_a_file_cannot_be_read(void **state)
{
    CLEANUP(problems_done) struct problems none = {0}, folder = {0};
    struct folder f;

    (void)state;
    folder_make(&f);
    assert_int_equal(load(f.file, &none), -EINVAL);
    assert_string_equal(none.list[0].text, "No such file or directory");
    assert_int_equal(load(f.path, &folder), -EINVAL);
    assert_string_equal(folder.list[0].text, "Is a directory");
    folder_remove(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accepts_valid_files),
        cmocka_unit_test(names_the_place_of_each_error),
        cmocka_unit_test(warns_of_what_is_valid_but_hardly_meant),
        cmocka_unit_test(never_quotes_a_hash_or_a_key),
        cmocka_unit_test(reads_every_field),
        cmocka_unit_test(names_the_place_of_errors_in_other_files),
        cmocka_unit_test(says_why_a_file_cannot_be_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

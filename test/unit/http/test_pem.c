#include "exporter/base/buf.h"
#include "exporter/http/tls.h"
#include "test/unit/base/pairs.h"

#include <errno.h>
#include <stdio.h>

static struct pair one, other;

static int setup(void **state)
{
    (void)state;
    make_pair(&one, (struct wish){.name = "one"});
    make_pair(&other, (struct wish){.name = "other", .rsa = true});
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    drop_pair(&one);
    drop_pair(&other);
    return 0;
}

static struct str pem_of(const gnutls_datum_t *d)
{
    return (struct str){(char *)d->data, d->size};
}

static void reads_a_bundle_of_certificates(void **state)
{
    struct pem_certificates list = {0};
    BUF_AUTO(text, 1 << 20);

    (void)state;
    buf_puts(&text, "# a comment\r\n");
    for (unsigned i = 0; i < 3; i++)
        buf_put_str(&text, pem_of(i == 1 ? &other.crt_pem : &one.crt_pem));
    assert_int_equal(buf_failed(&text), 0);
    assert_null(pem_read_certificates(buf_str(&text), &list));
    assert_int_equal(list.n, 3);
    pem_certificates_done(&list);
    pem_certificates_done(&list); /* again */
}

static void says_what_is_no_certificate(void **state)
{
    char cut[64];
    const struct {
        struct str text;
        const char *why;
    } cases[] = {
        {STR(""), "no certificate in PEM format found"},
        {STR("hello"), "no certificate in PEM format found"},
        {pem_of(&one.key_pem), "no certificate in PEM format found"},
        {STR("-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n"), NULL},
        {(struct str){cut, sizeof(cut)}, NULL},
    };

    (void)state;
    memcpy(cut, one.crt_pem.data, sizeof(cut));
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct pem_certificates list = {0};
        const char *why = pem_read_certificates(cases[i].text, &list);
        assert_non_null(why);
        if (cases[i].why)
            assert_string_equal(why, cases[i].why);
        pem_certificates_done(&list);
    }
}

static void says_what_is_no_key(void **state)
{
    static const char encrypted[] =
        "-----BEGIN ENCRYPTED PRIVATE "
        "KEY-----\nMIGbMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAhWWvX2JUXOVQICCAAw\n"
        "DAYIKoZIhvcNAgkFADAdBglghkgBZQMEASoEEK1hZxbzwL0XKlBhtkCcTtkEQGzf\n-----END ENCRYPTED PRIVATE "
        "KEY-----\n";
    const struct str cases[] = {STR(""), STR("hello"), pem_of(&one.crt_pem), str_of(encrypted)};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(pem_key_done) gnutls_x509_privkey_t key = NULL;
        const char *why = pem_read_key(cases[i], &key);
        assert_non_null(why);
        if (i < 3)
            assert_string_equal(why, "no private key in PEM format found");
    }
}

static void tells_pairs_from_strangers(void **state)
{
    (void)state;
    assert_true(pem_is_pair(pem_of(&one.crt_pem), pem_of(&one.key_pem)));
    assert_true(pem_is_pair(pem_of(&other.crt_pem), pem_of(&other.key_pem)));
    assert_false(pem_is_pair(pem_of(&one.crt_pem), pem_of(&other.key_pem)));
    assert_false(pem_is_pair(pem_of(&one.crt_pem), STR("x")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_a_bundle_of_certificates),
        cmocka_unit_test(says_what_is_no_certificate),
        cmocka_unit_test(says_what_is_no_key),
        cmocka_unit_test(tells_pairs_from_strangers),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}

/* Certificates and their keys, made on the spot. */
#pragma once

#include "exporter/base/def.h"

#include <arpa/inet.h>
#include <gnutls/x509.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

/* A certificate with its key. */
struct pair {
    gnutls_x509_crt_t crt;
    gnutls_x509_privkey_t key;
    gnutls_datum_t crt_pem, key_pem;
};

/* What make_pair() makes. */
struct wish {
    const char *name;     /* DNS name, "localhost" if NULL */
    const char *ip, *uri; /* further names */
    const char *organizations[2];
    const struct pair *issuer; /* NULL: signed by itself */
    bool rsa, ca, for_servers; /* else for clients and servers */
    int days;                  /* of validity, from now; negative: it has ended; 0: a year */
};

static inline void make_pair(struct pair *p, struct wish w)
{
    struct in_addr ip;
    time_t now_s = time(NULL), end = now_s + (w.days ? w.days : 365) * 86400;
    unsigned char serial[4] = {1, 2, 3, (unsigned char)rand()};
    const char *name = w.name ? w.name : "localhost";

    assert_int_equal(gnutls_x509_privkey_init(&p->key), 0);
    assert_int_equal(
        gnutls_x509_privkey_generate(p->key, w.rsa ? GNUTLS_PK_RSA : GNUTLS_PK_ECDSA,
                                     w.rsa ? 2048 : GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0),
        0);
    assert_int_equal(gnutls_x509_crt_init(&p->crt), 0);
    assert_int_equal(gnutls_x509_crt_set_version(p->crt, 3), 0);
    assert_int_equal(gnutls_x509_crt_set_serial(p->crt, serial, sizeof(serial)), 0);
    assert_int_equal(gnutls_x509_crt_set_activation_time(p->crt, now_s - 30 * 86400), 0);
    assert_int_equal(gnutls_x509_crt_set_expiration_time(p->crt, end), 0);
    if (*name)
        assert_int_equal(gnutls_x509_crt_set_dn_by_oid(p->crt, GNUTLS_OID_X520_COMMON_NAME, 0, name,
                                                       (unsigned)strlen(name)),
                         0);
    assert_int_equal(gnutls_x509_crt_set_subject_alt_name(p->crt, GNUTLS_SAN_DNSNAME, name,
                                                          (unsigned)strlen(name), GNUTLS_FSAN_SET),
                     0);
    for (size_t i = 0; i < ARRAY_SIZE(w.organizations) && w.organizations[i]; i++)
        assert_int_equal(gnutls_x509_crt_set_dn_by_oid(p->crt, GNUTLS_OID_X520_ORGANIZATION_NAME, 0,
                                                       w.organizations[i],
                                                       (unsigned)strlen(w.organizations[i])),
                         0);
    if (w.ip && inet_pton(AF_INET, w.ip, &ip) == 1)
        assert_int_equal(gnutls_x509_crt_set_subject_alt_name(p->crt, GNUTLS_SAN_IPADDRESS, &ip, sizeof(ip),
                                                              GNUTLS_FSAN_APPEND),
                         0);
    if (w.uri)
        assert_int_equal(gnutls_x509_crt_set_subject_alt_name(p->crt, GNUTLS_SAN_URI, w.uri,
                                                              (unsigned)strlen(w.uri), GNUTLS_FSAN_APPEND),
                         0);
    assert_int_equal(gnutls_x509_crt_set_basic_constraints(p->crt, w.ca, -1), 0);
    if (!w.ca)
        assert_int_equal(gnutls_x509_crt_set_key_purpose_oid(p->crt, GNUTLS_KP_TLS_WWW_SERVER, 0), 0);
    if (!w.ca && !w.for_servers)
        assert_int_equal(gnutls_x509_crt_set_key_purpose_oid(p->crt, GNUTLS_KP_TLS_WWW_CLIENT, 0), 0);
    assert_int_equal(gnutls_x509_crt_set_key(p->crt, p->key), 0);
    assert_int_equal(gnutls_x509_crt_sign2(p->crt, w.issuer ? w.issuer->crt : p->crt,
                                           w.issuer ? w.issuer->key : p->key, GNUTLS_DIG_SHA256, 0),
                     0);
    assert_int_equal(gnutls_x509_crt_export2(p->crt, GNUTLS_X509_FMT_PEM, &p->crt_pem), 0);
    assert_int_equal(gnutls_x509_privkey_export2(p->key, GNUTLS_X509_FMT_PEM, &p->key_pem), 0);
}

static inline void drop_pair(struct pair *p)
{
    if (p->crt)
        gnutls_x509_crt_deinit(p->crt);
    if (p->key)
        gnutls_x509_privkey_deinit(p->key);
    gnutls_free(p->crt_pem.data);
    gnutls_free(p->key_pem.data);
    *p = (struct pair){0};
}

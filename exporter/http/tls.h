/* TLS of the HTTP server, by GnuTLS: the settings of exporter-toolkit's tls_server_config. A connection keeps
 * those of when it was accepted. Sessions are resumed by tickets whose key GnuTLS rotates and nobody else
 * knows, unless client certificates are requested: those are verified on each connection. */
#pragma once

#include "exporter/base/str.h"

#include <gnutls/x509.h>

/* Settings that were found to be valid; immutable, and shared by reference. */
struct httpd_tls;

/* PEM: the name of a file, or the text itself; both NULL if absent. */
struct httpd_tls_pem {
    const char *file, *text;
};

struct httpd_tls_list {
    const char *const *items;
    size_t n;
};

/* A NULL or empty word is the default. Names are those of Go's crypto/tls. */
struct httpd_tls_settings {
    struct httpd_tls_pem cert, key, client_ca;
    const char *client_auth_type;              /* "NoClientCert" */
    const char *min_version, *max_version;     /* "TLS10" to "TLS13"; "TLS12", the highest */
    struct httpd_tls_list client_allowed_sans; /* empty: any */
    struct httpd_tls_list cipher_suites; /* of TLS 1.2 and below; empty: with forward secrecy and AEAD */
    struct httpd_tls_list curve_preferences;
};

enum httpd_tls_field {
    TLS_FIELD_NONE, /* several together, or the machine */
    TLS_FIELD_CERT,
    TLS_FIELD_KEY,
    TLS_FIELD_CLIENT_CA,
    TLS_FIELD_CLIENT_AUTH_TYPE,
    TLS_FIELD_MIN_VERSION,
    TLS_FIELD_MAX_VERSION,
    TLS_FIELD_CIPHER_SUITES,
    TLS_FIELD_CURVE_PREFERENCES,
    TLS_FIELDS
};

/* What is wrong, and with which field. */
struct httpd_tls_fault {
    enum httpd_tls_field field;
    bool is_file; /* of a PEM: the field with the name of the file, not that with the text */
    char *text;   /* from malloc: "cert_file: could not read ..."; NULL: none */
};

/* "cert", "client_auth_type", ...; the field with the name of a file has "_file" behind it. */
const char *httpd_tls_field_word(enum httpd_tls_field field);
/* The key of the field that is wrong, from malloc: "cert_file". */
char *httpd_tls_fault_key(const struct httpd_tls_fault *fault);

/* Reads the files and checks everything. A negative errno and *ret_fault, whose text names the field and the
 * file. */
MUST_USE int httpd_tls_new(struct httpd_tls **ret, const struct httpd_tls_settings *s,
                           struct httpd_tls_fault *ret_fault);
/* Takes NULL, returns NULL. Any thread. */
struct httpd_tls *httpd_tls_unref(struct httpd_tls *t);
DEFINE_CLEANUP(struct httpd_tls, httpd_tls_unref)

/* ---- Certificates and keys in PEM format. Readers return NULL, or a literal that says what is wrong ---- */

struct pem_certificates {
    gnutls_x509_crt_t *list;
    unsigned n;
};

/* At least one certificate. */
MUST_USE const char *pem_read_certificates(struct str text, struct pem_certificates *ret);
void pem_certificates_done(struct pem_certificates *c);
/* A private key that is not encrypted. */
MUST_USE const char *pem_read_key(struct str text, gnutls_x509_privkey_t *ret);
void pem_key_done(gnutls_x509_privkey_t *key);
/* Whether both can be read, and the key belongs to the certificate, the first of its chain. */
bool pem_is_pair(struct str certificates, struct str key);

/* Certificates and private keys in PEM format, by GnuTLS. Problems are literals, without any part of the
 * text. */
#ifndef DS_BASE_PEM_H
#define DS_BASE_PEM_H

#include "exporter/base/def.h"
#include "exporter/base/str.h"

#include <gnutls/x509.h>

struct pem_certificates {
    gnutls_x509_crt_t *list;
    unsigned n;
};

/* At least one certificate. -EINVAL with *ret_why; -ENOMEM. */
MUST_USE int pem_read_certificates(struct str text, struct pem_certificates *ret, const char **ret_why);
void pem_certificates_done(struct pem_certificates *c);

/* A private key that is not encrypted. -EINVAL with *ret_why; -ENOMEM. */
MUST_USE int pem_read_key(struct str text, gnutls_x509_privkey_t *ret, const char **ret_why);
/* For CLEANUP(). */
void pem_key_done(gnutls_x509_privkey_t *key);

/* 1 if the key belongs to the certificate, the first of its chain, else 0. -EINVAL with *ret_why if they
 * cannot be read; -ENOMEM. */
MUST_USE int pem_is_pair(struct str certificates, struct str key, const char **ret_why);

#endif

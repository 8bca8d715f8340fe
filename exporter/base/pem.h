/* Certificates and private keys in PEM format, by GnuTLS. Functions that read return NULL, or what is wrong:
 * a literal, without any part of the text. */
#ifndef DS_BASE_PEM_H
#define DS_BASE_PEM_H

#include "exporter/base/def.h"
#include "exporter/base/str.h"

#include <gnutls/x509.h>

struct pem_certificates {
    gnutls_x509_crt_t *list;
    unsigned n;
};

/* At least one certificate. */
MUST_USE const char *pem_read_certificates(struct str text, struct pem_certificates *ret);
void pem_certificates_done(struct pem_certificates *c);

/* A private key that is not encrypted. */
MUST_USE const char *pem_read_key(struct str text, gnutls_x509_privkey_t *ret);
/* For CLEANUP(). */
void pem_key_done(gnutls_x509_privkey_t *key);

/* Whether both can be read, and the key belongs to the certificate, the first of its chain. */
bool pem_is_pair(struct str certificates, struct str key);

#endif

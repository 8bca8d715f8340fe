#include "exporter/base/pem.h"

#include "exporter/base/buf.h"
#include "exporter/base/secret.h"

static gnutls_datum_t datum_of(struct str s)
{
    return (gnutls_datum_t){.data = (unsigned char *)(uintptr_t)s.p, .size = (unsigned)s.n};
}

const char *pem_read_certificates(struct str text, struct pem_certificates *ret)
{
    gnutls_datum_t datum = datum_of(text);
    int r = text.n ? gnutls_x509_crt_list_import2(&ret->list, &ret->n, &datum, GNUTLS_X509_FMT_PEM, 0)
                   : GNUTLS_E_NO_CERTIFICATE_FOUND;

    if (r == GNUTLS_E_NO_CERTIFICATE_FOUND || r == GNUTLS_E_BASE64_UNEXPECTED_HEADER_ERROR)
        return "no certificate in PEM format found";
    return r < 0 ? gnutls_strerror(r) : NULL;
}

void pem_certificates_done(struct pem_certificates *c)
{
    for (unsigned i = 0; i < c->n; i++)
        gnutls_x509_crt_deinit(c->list[i]);
    gnutls_free(c->list);
    *c = (struct pem_certificates){0};
}

const char *pem_read_key(struct str text, gnutls_x509_privkey_t *ret)
{
    /* A copy with a NUL behind it: GnuTLS compares what follows "DEK-Info: " as if a string ended there. */
    SECRET_AUTO(copy, text.n + 1);
    gnutls_datum_t datum;
    char *room;
    int r = buf_room(&copy, text.n + 1, &room) ?: buf_put_str(&copy, text);

    if (r < 0 || gnutls_x509_privkey_init(ret) < 0)
        memory_exhausted(text.n);
    room[text.n] = '\0';
    datum = datum_of(buf_str(&copy));
    r = text.n ? gnutls_x509_privkey_import2(*ret, &datum, GNUTLS_X509_FMT_PEM, NULL, 0)
               : GNUTLS_E_BASE64_UNEXPECTED_HEADER_ERROR;
    if (r == GNUTLS_E_DECRYPTION_FAILED)
        return "encrypted keys are not supported";
    if (r == GNUTLS_E_BASE64_UNEXPECTED_HEADER_ERROR || r == GNUTLS_E_REQUESTED_DATA_NOT_AVAILABLE)
        return "no private key in PEM format found";
    return r < 0 ? gnutls_strerror(r) : NULL;
}

void pem_key_done(gnutls_x509_privkey_t *key)
{
    if (*key)
        gnutls_x509_privkey_deinit(*key);
}

bool pem_is_pair(struct str certificates, struct str key)
{
    CLEANUP(pem_certificates_done) struct pem_certificates chain = {0};
    CLEANUP(pem_key_done) gnutls_x509_privkey_t private = NULL;
    unsigned char ids[2][64];
    size_t n[2] = {sizeof(ids[0]), sizeof(ids[1])};

    return !pem_read_certificates(certificates, &chain) && !pem_read_key(key, &private) &&
           gnutls_x509_crt_get_key_id(chain.list[0], GNUTLS_KEYID_USE_SHA256, ids[0], &n[0]) == 0 &&
           gnutls_x509_privkey_get_key_id(private, GNUTLS_KEYID_USE_SHA256, ids[1], &n[1]) == 0 &&
           n[0] == n[1] && memcmp(ids[0], ids[1], n[0]) == 0;
}

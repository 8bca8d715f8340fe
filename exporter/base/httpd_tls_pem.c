/* Certificates and keys of the HTTP server, in PEM format. */
#include "exporter/base/buf.h"
#include "exporter/base/file.h"
#include "exporter/base/httpd_internal.h"
#include "exporter/base/pem.h"
#include "exporter/base/secret.h"

#include <errno.h>
#include <gnutls/x509.h>
#include <time.h>

enum { MAX_PEM = 1 << 20 };

static int read_pem(const char *field, const struct httpd_tls_pem *pem, struct buf *into, char **ret_why)
{
    int r = pem->file ? file_read(pem->file, into) : buf_puts(into, cstr(pem->text));

    if (r < 0 && pem->file)
        return httpd_explain(ret_why, r, "%s_file: could not read %s: %s", field, pem->file, strerror(-r));
    return r;
}

static int refuse_pem(const char *field, const struct httpd_tls_pem *pem, char **ret_why, const char *why)
{
    if (pem->file)
        return httpd_explain(ret_why, -EINVAL, "%s_file: %s: %s", field, pem->file, why);
    return httpd_explain(ret_why, -EINVAL, "%s: %s", field, why);
}

static int read_certificates(const char *field, const struct httpd_tls_pem *pem, struct pem_certificates *ret,
                             char **ret_why)
{
    BUF_AUTO(text, MAX_PEM);
    const char *why = NULL;
    int r = read_pem(field, pem, &text, ret_why);

    if (r < 0)
        return r;
    r = pem_read_certificates(buf_str(&text), ret, &why);
    return why ? refuse_pem(field, pem, ret_why, why) : r;
}

static int read_key(const struct httpd_tls_pem *pem, gnutls_x509_privkey_t *ret, char **ret_why)
{
    SECRET_AUTO(text, MAX_PEM);
    const char *why = NULL;
    int r = read_pem("key", pem, &text, ret_why);

    if (r < 0)
        return r;
    r = pem_read_key(buf_str(&text), ret, &why);
    return why ? refuse_pem("key", pem, ret_why, why) : r;
}

static int check_expiry(const struct httpd_tls_pem *pem, gnutls_x509_crt_t certificate, char **ret_why)
{
    time_t end = gnutls_x509_crt_get_expiration_time(certificate);
    char why[64] = "";
    struct tm tm;

    if (end > time(NULL))
        return 0;
    (void)strftime(why, sizeof(why), "the certificate expired at %Y-%m-%dT%H:%M:%SZ", gmtime_r(&end, &tm));
    return refuse_pem("cert", pem, ret_why, why);
}

int httpd_tls_load_key(gnutls_certificate_credentials_t into, const struct httpd_tls_settings *s,
                       gnutls_pk_algorithm_t *ret_key, char **ret_why)
{
    CLEANUP(pem_certificates_done) struct pem_certificates chain = {0};
    CLEANUP(pem_key_done) gnutls_x509_privkey_t key = NULL;
    int r = read_certificates("cert", &s->cert, &chain, ret_why);

    r = r ?: read_key(&s->key, &key, ret_why);
    r = r ?: check_expiry(&s->cert, chain.list[0], ret_why);
    if (r < 0)
        return r;
    *ret_key = (gnutls_pk_algorithm_t)gnutls_x509_privkey_get_pk_algorithm(key);
    r = gnutls_certificate_set_x509_key(into, chain.list, (int)chain.n, key);
    if (r == GNUTLS_E_CERTIFICATE_KEY_MISMATCH)
        return httpd_explain(ret_why, -EINVAL, "%s%s is not the key of the certificate in %s",
                             s->key.file ? "key_file: " : "key: it", cstr(s->key.file),
                             s->cert.file ? s->cert.file : "cert");
    return r < 0 ? refuse_pem("cert", &s->cert, ret_why, gnutls_strerror(r)) : 0;
}

int httpd_tls_load_ca(gnutls_certificate_credentials_t into, const struct httpd_tls_settings *s,
                      char **ret_why)
{
    CLEANUP(pem_certificates_done) struct pem_certificates ca = {0};
    int r = read_certificates("client_ca", &s->client_ca, &ca, ret_why);

    if (r < 0)
        return r;
    r = gnutls_certificate_set_x509_trust(into, ca.list, (int)ca.n);
    return r < 0 ? refuse_pem("client_ca", &s->client_ca, ret_why, gnutls_strerror(r)) : 0;
}

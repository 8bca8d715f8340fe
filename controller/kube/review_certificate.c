/* Specification: "X.509 client certificates" of the Kubernetes documentation on authentication. */
#include "controller/kube/review_internal.h"

#include <gnutls/x509.h>

enum { MAX_NAME = 1024, MAX_NAMES = 256 };

/* Reverts RFC 4514's escapes, in place; returns the length. */
static size_t certificate_unescape(char *s, size_t n)
{
    size_t to = 0;

    for (size_t i = 0; i < n; i++) {
        if (s[i] == '\\' && i + 1 < n)
            i++;
        s[to++] = s[i];
    }
    return to;
}

/* All values of an attribute, in their order. NULL when out of memory, or if one is no text. */
static json_t *certificate_names(gnutls_x509_crt_t crt, const char *oid)
{
    json_t *names = json_array();
    int r = names ? 0 : GNUTLS_E_MEMORY_ERROR;

    for (unsigned i = 0; r == 0 && i < MAX_NAMES; i++) {
        char name[MAX_NAME];
        size_t n = sizeof(name);

        r = gnutls_x509_crt_get_dn_by_oid(crt, oid, i, 0, name, &n);
        if (r == 0 && json_array_append_new(names, json_stringn(name, certificate_unescape(name, n))) < 0)
            r = GNUTLS_E_MEMORY_ERROR;
    }
    if (r != GNUTLS_E_REQUESTED_DATA_NOT_AVAILABLE) {
        json_decref(names);
        return NULL;
    }
    return names;
}

/* Of several common names the last one counts, as in Go. */
static json_t *certificate_user(gnutls_x509_crt_t crt)
{
    json_auto_t *names = certificate_names(crt, GNUTLS_OID_X520_COMMON_NAME);
    json_auto_t *groups = certificate_names(crt, GNUTLS_OID_X520_ORGANIZATION_NAME);
    json_t *name = json_array_get(names, json_array_size(names) - 1);

    if (!name || json_string_length(name) == 0 || !groups ||
        json_array_append_new(groups, json_string("system:authenticated")) < 0)
        return NULL;
    return json_pack("{s:O, s:O}", "username", name, "groups", groups);
}

json_t *review_certificate_user(struct str der)
{
    const gnutls_datum_t datum = {(unsigned char *)(uintptr_t)der.p, (unsigned)der.n};
    json_t *user = NULL;
    gnutls_x509_crt_t crt;

    if (gnutls_x509_crt_init(&crt) < 0)
        return NULL;
    if (gnutls_x509_crt_import(crt, &datum, GNUTLS_X509_FMT_DER) == 0)
        user = certificate_user(crt);
    gnutls_x509_crt_deinit(crt);
    return user;
}

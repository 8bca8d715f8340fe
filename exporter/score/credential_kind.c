/* The keys that a Secret may have, and what the value of each must be. A check finds the part of the value
 * that counts, without the line end of a file; its problems never show values. Pure; any thread. */
#include "exporter/score/credential_kind.h"

#include "exporter/base/header.h"
#include "exporter/base/secret.h"
#include "exporter/base/str.h"
#include "exporter/http/http.h"
#include "exporter/http/tls.h"

enum { VALUE_MAX_BYTES = 64 << 10, PEM_MAX_BYTES = 1 << 20 /* as Kubernetes limits a Secret */ };

static bool has_control(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if ((unsigned char)s.p[i] < 0x20 || s.p[i] == 0x7f)
            return true;
    return false;
}

/* Spaces may belong to a password; line ends are those of a file. It may be empty. */
static const char *check_password(struct str value, struct str *ret)
{
    while (value.n && (value.p[value.n - 1] == '\n' || value.p[value.n - 1] == '\r'))
        value.n--;
    *ret = value;
    return has_control(value) ? "contains control characters" : NULL;
}

static const char *check_user(struct str value, struct str *ret)
{
    const char *why = check_password(value, ret);

    if (why)
        return why;
    if (ret->n == 0)
        return "empty";
    if (memchr(ret->p, ':', ret->n))
        return "contains a colon, which basic authentication does not allow";
    return NULL;
}

/* Printable text on one line, without the white space around it. */
static const char *check_text(struct str value, struct str *ret)
{
    *ret = str_trim(value);
    if (has_control(*ret))
        return "contains control characters";
    return ret->n ? NULL : "empty";
}

static const char *check_url(struct str value, struct str *ret)
{
    const char *why = check_text(value, ret);
    CLEANUP(cleanup_free) char *url = str_dup(*ret), *origin = url_origin(url);

    if (why)
        return why;
    return *origin ? NULL : "expected an http or https URL without a user";
}

/* Headers that end at the next server, or that all requests have. */
static bool is_own_header(struct str name)
{
    static const struct str own[] = {STR("Accept"),           STR("Keep-Alive"), STR("Proxy-Authorization"),
                                     STR("Proxy-Connection"), STR("TE"),         STR("Trailer"),
                                     STR("Upgrade")};

    for (size_t i = 0; i < ARRAY_SIZE(own); i++)
        if (str_eq_nocase(name, own[i]))
            return true;
    return header_is_reserved(name) && !str_eq_nocase(name, STR("Authorization"));
}

static const char *check_header(struct str value, struct str *ret)
{
    struct str line = str_trim(value), name = {line.p, 0}, rest;
    const char *colon = line.n ? memchr(line.p, ':', line.n) : NULL;

    if (!line.n)
        return "empty";
    if (memchr(line.p, '\n', line.n) || memchr(line.p, '\r', line.n))
        return "expected one header, found several lines";
    if (!colon)
        return "expected a header as \"Name: value\"";
    name.n = (size_t)(colon - line.p);
    rest = str_trim((struct str){colon + 1, line.n - name.n - 1});
    if (!header_is_name(name))
        return "expected a header as \"Name: value\"; the name is not valid";
    if (!header_is_value(rest))
        return "expected a header as \"Name: value\"; the value is empty, too long, or has control "
               "characters";
    if (is_own_header(name))
        return "this header cannot be set";
    *ret = line;
    return NULL;
}

static const char *check_certificates(struct str value, struct str *ret)
{
    CLEANUP(pem_certificates_done) struct pem_certificates list = {0};

    *ret = value;
    return pem_read_certificates(value, &list);
}

static const char *check_private_key(struct str value, struct str *ret)
{
    CLEANUP(pem_key_done) gnutls_x509_privkey_t key = NULL;

    *ret = value;
    return pem_read_key(value, &key);
}

const struct credential_kind credential_kinds[CREDENTIALS] = {
    [CREDENTIAL_TOKEN] = {NULL, secret_token, VALUE_MAX_BYTES},
    [CREDENTIAL_CA] = {"ca.crt", check_certificates, PEM_MAX_BYTES},
    [CREDENTIAL_CERT] = {"tls.crt", check_certificates, PEM_MAX_BYTES},
    [CREDENTIAL_KEY] = {"tls.key", check_private_key, PEM_MAX_BYTES},
    [CREDENTIAL_USER] = {"username", check_user, VALUE_MAX_BYTES},
    [CREDENTIAL_PASSWORD] = {"password", check_password, VALUE_MAX_BYTES},
    [CREDENTIAL_HEADER] = {"header", check_header, VALUE_MAX_BYTES},
    [CREDENTIAL_CLIENT_ID] = {"client_id", check_text, VALUE_MAX_BYTES},
    [CREDENTIAL_CLIENT_SECRET] = {"client_secret", check_text, VALUE_MAX_BYTES},
    [CREDENTIAL_TOKEN_URL] = {"token_url", check_url, VALUE_MAX_BYTES},
    [CREDENTIAL_SCOPES] = {"scopes", check_text, VALUE_MAX_BYTES},
    [CREDENTIAL_AUDIENCE] = {"audience", check_text, VALUE_MAX_BYTES},
};

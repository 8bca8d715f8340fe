#include "exporter/score/credentials.h"

#include "exporter/base/alloc.h"
#include "exporter/base/buf.h"
#include "exporter/base/escape.h"
#include "exporter/base/file.h"
#include "exporter/base/header.h"
#include "exporter/base/secret.h"
#include "exporter/base/str.h"
#include "exporter/base/text.h"
#include "exporter/http/tls.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

enum { VALUE_MAX_BYTES = 64 << 10, PEM_MAX_BYTES = 1 << 20 /* as Kubernetes limits a Secret */ };

/* ---- The values of each kind: NULL, with *ret a part of `value`; else the problem ---- */

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

    return why                           ? why
           : !ret->n                     ? "empty"
           : memchr(ret->p, ':', ret->n) ? "contains a colon, which basic authentication does not allow"
                                         : NULL;
}

/* Printable text on one line, without the white space around it. */
static const char *check_text(struct str value, struct str *ret)
{
    *ret = str_trim(value);
    return has_control(*ret) ? "contains control characters" : ret->n ? NULL : "empty";
}

static const char *check_url(struct str value, struct str *ret)
{
    const char *why = check_text(value, ret);
    CLEANUP(cleanup_free) char *url = str_dup(*ret), *origin = url_origin(url);

    return why ? why : *origin ? NULL : "expected an http or https URL without a user";
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

static const struct {
    const char *key;
    const char *(*check)(struct str value, struct str *ret);
    size_t max;
} kinds[CREDENTIALS] = {
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

/* ---- Reading a Secret ---- */

struct credentials_reader {
    struct secrets *secrets;
    const char *name, *token_key;
    char *shown; /* secret "namespace/name" */
    struct credentials *c;
    char *why;
};

/* Says why there are no credentials; returns the error. */
PRINTF_LIKE(3, 4) static int reader_refuse(struct credentials_reader *rd, int error, const char *fmt, ...)
{
    CLEANUP(cleanup_free) char *text = NULL, *all = NULL;
    va_list args;

    va_start(args, fmt);
    text = xvasprintf(fmt, args);
    va_end(args);
    all = xasprintf("%s%s", rd->shown, text);
    text_line(rd->why, CREDENTIALS_WHY_BYTES, str_of(all));
    return error;
}

/* -ENOENT, without a text, if the Secret has no such key. */
static int read_credential(struct credentials_reader *rd, enum credential kind, const char *key)
{
    SECRET_AUTO(value, kinds[kind].max);
    const char *problem = NULL;
    struct buf *into = &rd->c->values[kind];
    struct str part = {0};
    int r = rd->secrets->read(rd->secrets, rd->name, key, &value, &problem);

    if (r == 0 && (problem = kinds[kind].check(buf_str(&value), &part)))
        r = -EINVAL;
    if (r == 0) {
        buf_init(into, part.n + 1);
        buf_put_str(into, part);
        buf_putc(into, '\0'); /* terminated, but the terminator does not count */
        r = buf_failed(into);
        if (r == 0)
            buf_truncate(into, part.n);
    }
    if (r == -ENOENT && !problem)
        return r;
    if (r == -EFBIG)
        return reader_refuse(rd, r, ", key \"%s\": longer than %zu bytes", key, kinds[kind].max);
    return r == 0 ? 0 : reader_refuse(rd, r, ", key \"%s\": %s", key, problem ? problem : strerror(-r));
}

static bool has(const struct credentials *c, enum credential kind)
{
    return c->values[kind].p != NULL;
}

/* Keys that the Secret does not have are skipped, and so is one that is named for the token. */
static int read_known_keys(struct credentials_reader *rd, bool trusts_ca)
{
    const char *token_key = rd->token_key;

    for (enum credential k = CREDENTIAL_CA; k < CREDENTIALS; k++) {
        bool is_login = k == CREDENTIAL_USER || k == CREDENTIAL_PASSWORD || k >= CREDENTIAL_CLIENT_ID;
        int r;

        if ((k == CREDENTIAL_CA && !trusts_ca) || (is_login && token_key) ||
            strcmp(cstr(token_key), kinds[k].key) == 0)
            continue;
        r = read_credential(rd, k, kinds[k].key);
        if (r < 0 && r != -ENOENT)
            return r;
    }
    return 0;
}

/* Keys that mean nothing without another one, and a private key that is not the certificate's. */
static int check_partners(struct credentials_reader *rd)
{
    static const struct {
        enum credential key, needs;
    } pairs[] = {
        {CREDENTIAL_CERT, CREDENTIAL_KEY},
        {CREDENTIAL_KEY, CREDENTIAL_CERT},
        {CREDENTIAL_USER, CREDENTIAL_PASSWORD},
        {CREDENTIAL_PASSWORD, CREDENTIAL_USER},
        {CREDENTIAL_CLIENT_ID, CREDENTIAL_CLIENT_SECRET},
        {CREDENTIAL_CLIENT_ID, CREDENTIAL_TOKEN_URL},
        {CREDENTIAL_CLIENT_SECRET, CREDENTIAL_CLIENT_ID},
        {CREDENTIAL_TOKEN_URL, CREDENTIAL_CLIENT_ID},
        {CREDENTIAL_SCOPES, CREDENTIAL_CLIENT_ID},
        {CREDENTIAL_AUDIENCE, CREDENTIAL_CLIENT_ID},
    };
    const struct buf *v = rd->c->values;

    for (size_t i = 0; i < ARRAY_SIZE(pairs); i++)
        if (has(rd->c, pairs[i].key) && !has(rd->c, pairs[i].needs))
            return reader_refuse(rd, -EINVAL, ": it has the key \"%s\" without \"%s\"",
                                 kinds[pairs[i].key].key, kinds[pairs[i].needs].key);
    if (!v[CREDENTIAL_CERT].p || pem_is_pair(buf_str(&v[CREDENTIAL_CERT]), buf_str(&v[CREDENTIAL_KEY])))
        return 0;
    return reader_refuse(rd, -EINVAL, ", key \"tls.key\": not the key of the certificate in \"tls.crt\"");
}

/* Only one may set Authorization. */
static int check_authorization(struct credentials_reader *rd)
{
    const struct credentials *c = rd->c;
    struct str name = STR("Authorization:"), header = buf_str(&c->values[CREDENTIAL_HEADER]);
    bool is_set = header.p && str_eq_nocase((struct str){header.p, size_min(header.n, name.n)}, name);
    const char *by = has(c, CREDENTIAL_TOKEN)       ? rd->token_key
                     : has(c, CREDENTIAL_CLIENT_ID) ? "client_id"
                     : has(c, CREDENTIAL_USER)      ? "username"
                                                    : NULL;
    const char *too = is_set                                                    ? "header"
                      : has(c, CREDENTIAL_CLIENT_ID) && has(c, CREDENTIAL_USER) ? "username"
                                                                                : NULL;

    if (!by || !too)
        return 0;
    return reader_refuse(rd, -EINVAL, ", key \"%s\": Authorization is set by the key \"%s\" already", too,
                         by);
}

static int refuse_nothing(struct credentials_reader *rd)
{
    for (enum credential k = 0; k < CREDENTIALS; k++)
        if (has(rd->c, k))
            return 0;
    return reader_refuse(
        rd, -ENOENT,
        ": it has none of the keys ca.crt, tls.crt, username, client_id and header; a bearer "
        "token needs the name of its key");
}

/* A Secret without the named key is a mistake: the request would go out without its token. */
static int read_token(struct credentials_reader *rd)
{
    int r = rd->token_key ? read_credential(rd, CREDENTIAL_TOKEN, rd->token_key) : 0;
    bool has_known_key = false;

    if (r != -ENOENT)
        return r;
    for (enum credential k = CREDENTIAL_CA; !has_known_key && k < CREDENTIALS; k++) {
        SECRET_AUTO(value, kinds[k].max);
        const char *problem = NULL;

        has_known_key = rd->secrets->read(rd->secrets, rd->name, kinds[k].key, &value, &problem) == 0;
    }
    return reader_refuse(rd, r, ", key \"%s\": key not found%s", rd->token_key,
                         has_known_key ? "; name no key to send no bearer token" : "");
}

static int reader_look(struct credentials_reader *rd, bool *ret_trusts_ca)
{
    const char *problem = NULL;
    int r = rd->secrets->look ? rd->secrets->look(rd->secrets, rd->name, ret_trusts_ca, &problem) : 0;

    if (r == 0)
        return 0;
    if (!problem)
        problem = r == -ENOENT ? "Secret not found" : strerror(-r);
    return rd->token_key ? reader_refuse(rd, r, ", key \"%s\": %s", rd->token_key, problem)
                         : reader_refuse(rd, r, ": %s", problem);
}

/* The authorities in ca.crt count for the token endpoint, too; the client certificate is for the server. */
static void credentials_set_oauth2(struct credentials *c)
{
    const struct buf *v = c->values;
    struct buf *form = &c->oauth2_form;

    buf_init(form, 8 * VALUE_MAX_BYTES);
    buf_put_form(form, STR("grant_type"), STR("client_credentials"));
    if (has(c, CREDENTIAL_SCOPES))
        buf_put_form(form, STR("scope"), buf_str(&v[CREDENTIAL_SCOPES]));
    if (has(c, CREDENTIAL_AUDIENCE))
        buf_put_form(form, STR("audience"), buf_str(&v[CREDENTIAL_AUDIENCE]));
    if (buf_failed(form) < 0) /* both values have a ceiling, so there is no memory */
        memory_exhausted(form->max);
    c->token_tls.ca = c->tls.ca;
    c->oauth2 = (struct http_oauth2){.token_url = v[CREDENTIAL_TOKEN_URL].p,
                                     .client_id = buf_str(&v[CREDENTIAL_CLIENT_ID]),
                                     .client_secret = buf_str(&v[CREDENTIAL_CLIENT_SECRET]),
                                     .form = buf_str(form),
                                     .tls = &c->token_tls};
}

int credentials_read(struct credentials **ret, struct secrets *s, const char *name, const char *token_key,
                     char why[CREDENTIALS_WHY_BYTES])
{
    CLEANUP(cleanup_free) char *secret = NULL;
    CLEANUP(cleanup_credentials_free) struct credentials *c = NULL;
    struct credentials_reader rd = {.secrets = s, .name = name, .token_key = token_key, .why = why};
    bool trusts_ca = true;
    int r;

    *ret = NULL;
    why[0] = '\0';
    if (!name)
        return 0;
    rd.shown = secret = xasprintf("secret \"%s%s%s\"", cstr(s->namespace), s->namespace ? "/" : "", name);
    rd.c = c = xcalloc(1, sizeof(*c));
    r = reader_look(&rd, &trusts_ca)
            ?: read_token(&rd)
            ?: read_known_keys(&rd, trusts_ca)
            ?: check_partners(&rd)
            ?: check_authorization(&rd)
            ?: refuse_nothing(&rd);
    if (r < 0)
        return r;
    c->shown = xasprintf(token_key ? " with %s, key \"%s\"" : " with %s", secret, token_key);
    c->header = c->values[CREDENTIAL_HEADER].p;
    c->tls = (struct http_tls){.ca = buf_str(&c->values[CREDENTIAL_CA]),
                               .cert = buf_str(&c->values[CREDENTIAL_CERT]),
                               .key = buf_str(&c->values[CREDENTIAL_KEY])};
    credentials_set_oauth2(c);
    *ret = TAKE_PTR(c);
    return 0;
}

struct credentials *credentials_free(struct credentials *c)
{
    if (!c)
        return NULL;
    for (size_t i = 0; i < CREDENTIALS; i++)
        secret_done(&c->values[i]);
    buf_done(&c->oauth2_form);
    free(c->shown);
    free(c);
    return NULL;
}

void credentials_apply(const struct credentials *c, struct http_request *rq)
{
    if (!c)
        return;
    rq->tls = &c->tls;
    rq->bearer = buf_str(&c->values[CREDENTIAL_TOKEN]);
    rq->user = c->values[CREDENTIAL_USER].p;
    rq->password = c->values[CREDENTIAL_PASSWORD].p;
    rq->oauth2 = has(c, CREDENTIAL_CLIENT_ID) ? &c->oauth2 : NULL;
    rq->headers = &c->header;
    rq->n_headers = c->header ? 1 : 0;
}

/* ---- Files ---- */

static int secret_file_read(struct secrets *s, const char *name, const char *key, struct buf *into,
                            const char **ret_why)
{
    const struct secret_files *f = CONTAINER_OF(s, struct secret_files, secrets);
    CLEANUP(cleanup_free) char *path = f->dir ? xasprintf("%s/%s/%s", f->dir, name, key) : NULL;

    (void)ret_why;
    return path ? file_read(path, into) : -ENOENT;
}

static int secret_file_look(struct secrets *s, const char *name, bool *ret_trusts_ca, const char **ret_why)
{
    const struct secret_files *f = CONTAINER_OF(s, struct secret_files, secrets);
    CLEANUP(cleanup_free) char *path = f->dir ? xasprintf("%s/%s/namespace", f->dir, name) : NULL;

    (void)ret_why;
    if (!path)
        return -ENOENT;
    *ret_trusts_ca = access(path, F_OK) < 0;
    *strrchr(path, '/') = '\0';
    return access(path, F_OK) < 0 ? -errno : 0;
}

void secret_files_init(struct secret_files *f, const char *dir)
{
    *f = (struct secret_files){.secrets = {.look = secret_file_look, .read = secret_file_read}, .dir = dir};
}

/* Reads a Secret into the credentials of a request: all keys that it has, and whether they fit together.
 * Owns the values, and wipes them. Loop thread, before each request. A problem names the Secret and the
 * key, never the value. */
#include "exporter/score/credentials.h"

#include "exporter/base/alloc.h"
#include "exporter/base/buf.h"
#include "exporter/base/escape.h"
#include "exporter/base/secret.h"
#include "exporter/base/str.h"
#include "exporter/base/text.h"
#include "exporter/http/tls.h"

#include <errno.h>
#include <stdarg.h>

enum { FORM_MAX_BYTES = 512 << 10 /* of the token request: all values have ceilings */ };

struct credentials_reader {
    struct secrets *secrets;
    const char *name, *token_key;
    struct credentials *c;
    char *why;
};

/* secret "namespace/name" */
static void reader_put_secret(const struct credentials_reader *rd, struct buf *b)
{
    buf_puts(b, "secret \"");
    if (rd->secrets->namespace) {
        buf_puts(b, rd->secrets->namespace);
        buf_puts(b, "/");
    }
    buf_puts(b, rd->name);
    buf_puts(b, "\"");
}

/* The same, with: , key "key" */
static void reader_put_key(const struct credentials_reader *rd, const char *key, struct buf *b)
{
    reader_put_secret(rd, b);
    if (key)
        buf_printf(b, ", key \"%s\"", key);
}

/* Says why there are no credentials; returns the error. key: NULL if all of the Secret is meant. */
PRINTF_LIKE(4, 5)
static int reader_refuse(const struct credentials_reader *rd, int error, const char *key, const char *fmt,
                         ...)
{
    BUF_AUTO(text, SIZE_MAX / 2);
    va_list args;

    reader_put_key(rd, key, &text);
    buf_puts(&text, ": ");
    va_start(args, fmt);
    buf_vprintf(&text, fmt, args);
    va_end(args);
    if (buf_failed(&text) < 0) /* without a ceiling, so there is no memory */
        memory_exhausted(text.n);
    text_line(rd->why, CREDENTIALS_WHY_BYTES, buf_str(&text));
    return error;
}

/* -ENOENT, without a text, if the Secret has no such key. */
static int read_credential(struct credentials_reader *rd, enum credential kind, const char *key)
{
    SECRET_AUTO(value, credential_kinds[kind].max);
    const char *problem = NULL;
    struct buf *into = &rd->c->values[kind];
    struct str part = {0};
    int r = rd->secrets->read(rd->secrets, rd->name, key, &value, &problem);

    if (r == 0 && (problem = credential_kinds[kind].check(buf_str(&value), &part)))
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
        return reader_refuse(rd, r, key, "longer than %zu bytes", credential_kinds[kind].max);
    if (r < 0)
        return reader_refuse(rd, r, key, "%s", problem ? problem : strerror(-r));
    return 0;
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
            strcmp(cstr(token_key), credential_kinds[k].key) == 0)
            continue;
        r = read_credential(rd, k, credential_kinds[k].key);
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
            return reader_refuse(rd, -EINVAL, NULL, "it has the key \"%s\" without \"%s\"",
                                 credential_kinds[pairs[i].key].key, credential_kinds[pairs[i].needs].key);
    if (!v[CREDENTIAL_CERT].p || pem_is_pair(buf_str(&v[CREDENTIAL_CERT]), buf_str(&v[CREDENTIAL_KEY])))
        return 0;
    return reader_refuse(rd, -EINVAL, "tls.key", "not the key of the certificate in \"tls.crt\"");
}

static bool sets_authorization(const struct buf *header)
{
    struct str name = STR("Authorization:"), value = buf_str(header);

    return value.n >= name.n && str_eq_nocase((struct str){value.p, name.n}, name);
}

static int refuse_second_authorization(struct credentials_reader *rd, const char *key, const char *first)
{
    return reader_refuse(rd, -EINVAL, key, "Authorization is set by the key \"%s\" already", first);
}

/* Only one may set Authorization. */
static int check_authorization(struct credentials_reader *rd)
{
    const struct credentials *c = rd->c;
    const char *first = NULL;

    if (has(c, CREDENTIAL_TOKEN))
        first = rd->token_key;
    else if (has(c, CREDENTIAL_CLIENT_ID))
        first = "client_id";
    else if (has(c, CREDENTIAL_USER))
        first = "username";
    if (first && sets_authorization(&c->values[CREDENTIAL_HEADER]))
        return refuse_second_authorization(rd, "header", first);
    if (has(c, CREDENTIAL_CLIENT_ID) && has(c, CREDENTIAL_USER))
        return refuse_second_authorization(rd, "username", first);
    return 0;
}

static int refuse_nothing(struct credentials_reader *rd)
{
    for (enum credential k = 0; k < CREDENTIALS; k++)
        if (has(rd->c, k))
            return 0;
    return reader_refuse(rd, -ENOENT, NULL,
                         "it has none of the keys ca.crt, tls.crt, username, client_id and header; a bearer "
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
        SECRET_AUTO(value, credential_kinds[k].max);
        const char *problem = NULL;

        has_known_key =
            rd->secrets->read(rd->secrets, rd->name, credential_kinds[k].key, &value, &problem) == 0;
    }
    if (has_known_key)
        return reader_refuse(rd, r, rd->token_key, "key not found; name no key to send no bearer token");
    return reader_refuse(rd, r, rd->token_key, "key not found");
}

static int reader_look(struct credentials_reader *rd, bool *ret_trusts_ca)
{
    const char *problem = NULL;
    int r = rd->secrets->look ? rd->secrets->look(rd->secrets, rd->name, ret_trusts_ca, &problem) : 0;

    if (r == 0)
        return 0;
    if (!problem)
        problem = r == -ENOENT ? "Secret not found" : strerror(-r);
    return reader_refuse(rd, r, rd->token_key, "%s", problem);
}

/* The authorities in ca.crt count for the token endpoint, too; the client certificate is for the server. */
static void credentials_set_oauth2(struct credentials *c)
{
    const struct buf *v = c->values;
    struct buf *form = &c->oauth2_form;

    buf_init(form, FORM_MAX_BYTES);
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

/* As text_http_status() adds it to a status that is about credentials. */
static void credentials_set_shown(struct credentials *c, const struct credentials_reader *rd)
{
    BUF_AUTO(text, SIZE_MAX / 2);

    buf_puts(&text, " with ");
    reader_put_key(rd, rd->token_key, &text);
    if (buf_failed(&text) < 0) /* without a ceiling, so there is no memory */
        memory_exhausted(text.n);
    c->shown = str_dup(buf_str(&text));
}

int credentials_read(struct credentials **ret, struct secrets *s, const char *name, const char *token_key,
                     char why[CREDENTIALS_WHY_BYTES])
{
    CLEANUP(cleanup_credentials_free) struct credentials *c = NULL;
    struct credentials_reader rd = {.secrets = s, .name = name, .token_key = token_key, .why = why};
    bool trusts_ca = true;
    int r;

    *ret = NULL;
    why[0] = '\0';
    if (!name)
        return 0;
    rd.c = c = xcalloc(1, sizeof(*c));
    r = reader_look(&rd, &trusts_ca)
            ?: read_token(&rd)
            ?: read_known_keys(&rd, trusts_ca)
            ?: check_partners(&rd)
            ?: check_authorization(&rd)
            ?: refuse_nothing(&rd);
    if (r < 0)
        return r;
    credentials_set_shown(c, &rd);
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

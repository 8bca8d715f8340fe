#include "exporter/score/credentials.h"

#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/file.h"
#include "exporter/base/hash.h"
#include "exporter/base/header.h"
#include "exporter/base/pem.h"
#include "exporter/base/secret.h"
#include "exporter/base/text.h"
#include "exporter/score/secrets.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

static bool has(const struct credentials *c, enum credential kind);

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
    const char *why = NULL;
    int r = pem_read_certificates(value, &list, &why);

    *ret = value;
    return r == -ENOMEM ? "out of memory" : why;
}

static const char *check_private_key(struct str value, struct str *ret)
{
    CLEANUP(pem_key_done) gnutls_x509_privkey_t key = NULL;
    const char *why = NULL;
    int r = pem_read_key(value, &key, &why);

    *ret = value;
    return r == -ENOMEM ? "out of memory" : why;
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
};

/* The key of a credential; NULL for the token. */
static const char *credential_key(enum credential c)
{
    return kinds[c].key;
}

/* ---- Reading a Secret ---- */

struct credentials_reader {
    struct secrets *secrets;
    struct credentials *c;
    char *why;
};

PRINTF_LIKE(2, 3) static void reader_explain(struct credentials_reader *rd, const char *fmt, ...)
{
    const struct credentials *c = rd->c;
    char text[256];
    va_list args;
    int n;

    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    n = snprintf(rd->why, 256, "secret \"%.80s\"", c->name);
    text_line(rd->why + n, 256 - (size_t)n, str_of(text));
}

static int keep_credential(struct buf *into, struct str value)
{
    char *to;
    int r;

    buf_init(into, value.n + 1);
    r = buf_room(into, value.n + 1, &to);
    if (r < 0)
        return r;
    *(char *)mempcpy(to, cstr(value.p), value.n) = '\0';
    into->n = value.n;
    return 0;
}

/* -ENOENT, without a text, if the Secret has no such key. */
static int read_credential(struct credentials_reader *rd, enum credential kind, const char *key)
{
    SECRET_AUTO(value, kinds[kind].max);
    const char *problem = NULL;
    struct str part = {0};
    int r = rd->secrets->read(rd->secrets, rd->c->name, key, &value, &problem);

    if (r == 0) {
        problem = kinds[kind].check(buf_str(&value), &part);
        r = problem ? -EINVAL : keep_credential(&rd->c->values[kind], part);
    }
    if (r == -ENOENT && !problem)
        return r;
    if (r == -EFBIG)
        reader_explain(rd, ", key \"%.80s\": longer than %zu bytes", key, kinds[kind].max);
    else if (r < 0)
        reader_explain(rd, ", key \"%.80s\": %s", key, problem ? problem : strerror(-r));
    return r;
}

static bool has(const struct credentials *c, enum credential kind)
{
    return c->values[kind].p != NULL;
}

/* Keys that the Secret does not have are skipped, and so is one that is named for the token. */
static int read_known_keys(struct credentials_reader *rd, bool trusts_ca)
{
    const char *token_key = rd->c->token_key;

    for (enum credential k = CREDENTIAL_CA; k < CREDENTIALS; k++) {
        bool is_basic = k == CREDENTIAL_USER || k == CREDENTIAL_PASSWORD;
        int r;

        if ((k == CREDENTIAL_CA && !trusts_ca) || (is_basic && token_key) ||
            strcmp(cstr(token_key), kinds[k].key) == 0)
            continue;
        r = read_credential(rd, k, kinds[k].key);
        if (r < 0 && r != -ENOENT)
            return r;
    }
    return 0;
}

static int check_both(struct credentials_reader *rd, enum credential a, enum credential b)
{
    if (has(rd->c, a) == has(rd->c, b))
        return 0;
    reader_explain(rd, ": it has the key \"%s\" without \"%s\"", kinds[has(rd->c, a) ? a : b].key,
                   kinds[has(rd->c, a) ? b : a].key);
    return -EINVAL;
}

static int check_pair(struct credentials_reader *rd)
{
    const struct credentials *c = rd->c;
    const char *problem = NULL;
    int r;

    if (!has(c, CREDENTIAL_CERT))
        return 0;
    r = pem_is_pair(buf_str(&c->values[CREDENTIAL_CERT]), buf_str(&c->values[CREDENTIAL_KEY]), &problem);
    if (r == 1)
        return 0;
    reader_explain(rd, ", key \"tls.key\": %s",
                   r == 0 ? "not the key of the certificate in \"tls.crt\"" : cstr(problem));
    return r == 0 ? -EINVAL : r;
}

/* Only one may set Authorization. */
static int check_authorization(struct credentials_reader *rd)
{
    const struct credentials *c = rd->c;
    struct str name = STR("Authorization:"), header = buf_str(&c->values[CREDENTIAL_HEADER]);

    if (!has(c, CREDENTIAL_HEADER) || (!has(c, CREDENTIAL_TOKEN) && !has(c, CREDENTIAL_USER)) ||
        !str_eq_nocase((struct str){header.p, size_min(header.n, name.n)}, name))
        return 0;
    reader_explain(rd, ", key \"header\": Authorization is set by the key \"%.80s\" already",
                   has(c, CREDENTIAL_TOKEN) ? c->token_key : "username");
    return -EINVAL;
}

static int refuse_nothing(struct credentials_reader *rd)
{
    for (enum credential k = 0; k < CREDENTIALS; k++)
        if (has(rd->c, k))
            return 0;
    reader_explain(
        rd, ": it has none of the keys ca.crt, tls.crt, username and header; a bearer token needs the name "
            "of its key");
    return -ENOENT;
}

static bool has_known_key(struct credentials_reader *rd)
{
    for (enum credential k = CREDENTIAL_CA; k < CREDENTIALS; k++) {
        SECRET_AUTO(value, kinds[k].max);
        const char *problem = NULL;
        if (rd->secrets->read(rd->secrets, rd->c->name, kinds[k].key, &value, &problem) == 0)
            return true;
    }
    return false;
}

/* A Secret without the named key is a mistake: the request would go out without its token. */
static int read_token(struct credentials_reader *rd)
{
    const char *key = rd->c->token_key;
    int r = key ? read_credential(rd, CREDENTIAL_TOKEN, key) : 0;

    if (r == -ENOENT)
        reader_explain(rd, ", key \"%.80s\": not found%s", key,
                       has_known_key(rd) ? "; name no key to send no bearer token" : "");
    return r;
}

static int credentials_read(struct credentials_reader *rd, bool trusts_ca)
{
    int r = read_token(rd)
                ?: read_known_keys(rd, trusts_ca)
                ?: check_both(rd, CREDENTIAL_CERT, CREDENTIAL_KEY)
                ?: check_both(rd, CREDENTIAL_USER, CREDENTIAL_PASSWORD)
                ?: check_pair(rd)
                ?: check_authorization(rd)
                ?: refuse_nothing(rd);

    if (r < 0 && !*rd->why)
        reader_explain(rd, ": %s", strerror(-r));
    return r;
}

int credentials_new(struct credentials **ret, struct secrets *s, const char *name, const char *token_key,
                    bool trusts_ca, char why[256])
{
    CLEANUP(cleanup_credentials_unref) struct credentials *c = xcalloc(1, sizeof(*c));
    struct credentials_reader rd = {.secrets = s, .c = c, .why = why};
    int r;

    why[0] = '\0';
    if (c) {
        c->refs = 1;
        c->name = str_dup(str_of(name));
        c->token_key = token_key ? str_dup(str_of(token_key)) : NULL;
    }
    if (!c || !c->name || (token_key && !c->token_key)) {
        (void)snprintf(why, 256, "secret \"%.80s\": out of memory", name);
        return -ENOMEM;
    }
    r = credentials_read(&rd, trusts_ca);
    if (r < 0)
        return r;
    c->header = c->values[CREDENTIAL_HEADER].p;
    c->tls = (struct http_tls){.ca = buf_str(&c->values[CREDENTIAL_CA]),
                               .cert = buf_str(&c->values[CREDENTIAL_CERT]),
                               .key = buf_str(&c->values[CREDENTIAL_KEY])};
    *ret = TAKE_PTR(c);
    return 0;
}

struct credentials *credentials_unref(struct credentials *c)
{
    if (!c || --c->refs)
        return NULL;
    for (size_t i = 0; i < CREDENTIALS; i++)
        secret_done(&c->values[i]);
    free(c->name);
    free(c->token_key);
    free(c);
    return NULL;
}

void credentials_apply_tls(const struct credentials *c, struct http_request *rq)
{
    if (c)
        rq->tls = &c->tls;
}

void credentials_apply(const struct credentials *c, struct http_request *rq)
{
    if (!c)
        return;
    credentials_apply_tls(c, rq);
    rq->bearer = buf_str(&c->values[CREDENTIAL_TOKEN]);
    rq->user = c->values[CREDENTIAL_USER].p;
    rq->password = c->values[CREDENTIAL_PASSWORD].p;
    rq->headers = &c->header;
    rq->n_headers = c->header ? 1 : 0;
}

enum {
    PATH_BYTES = 4096,
    SETTLED_AFTER_S = 1, /* file systems count time in steps of some milliseconds, some in seconds */
    READ_TIMES = 3,
};

/* ---- Files ---- */

static int secret_file_path(const struct secret_files *f, const char *name, const char *key,
                            char path[PATH_BYTES])
{
    int n;

    if (!f->dir)
        return -ENOENT;
    n = snprintf(path, PATH_BYTES, "%s/%s%s%s", f->dir, name, *key ? "/" : "", key);
    return n < PATH_BYTES ? 0 : -ENAMETOOLONG;
}

static int secret_file_read(struct secrets *s, const char *name, const char *key, struct buf *into,
                            const char **ret_why)
{
    const struct secret_files *f = CONTAINER_OF(s, struct secret_files, secrets);
    char path[PATH_BYTES];

    (void)ret_why;
    return secret_file_path(f, name, key, path) ?: file_read(path, into);
}

/* False if there is no such file. */
static bool add_stamp(const struct secret_files *f, const char *name, const char *key,
                      struct secret_state *to)
{
    char path[PATH_BYTES];
    struct file_stamp at = {0};

    if (secret_file_path(f, name, key, path) == 0)
        at = file_stamp(path);
    to->stamp = hash_chain_u64(hash_chain_u64(to->stamp, at.device), at.inode);
    to->stamp = hash_chain_u64(hash_chain_u64(to->stamp, (uint64_t)at.size), (uint64_t)at.modified.tv_sec);
    to->stamp = hash_chain_u64(to->stamp, (uint64_t)at.modified.tv_nsec);
    to->is_unsettled |= at.modified.tv_sec + SETTLED_AFTER_S >= clock_system.wall(&clock_system).ms / 1000;
    return at.inode != 0;
}

static int secret_file_look(struct secrets *s, const char *name, const char *token_key,
                            struct secret_state *ret, const char **ret_why)
{
    const struct secret_files *f = CONTAINER_OF(s, struct secret_files, secrets);

    (void)ret_why;
    *ret = (struct secret_state){0};
    if (!add_stamp(f, name, "", ret))
        return -ENOENT;
    for (enum credential k = CREDENTIAL_TOKEN; k < CREDENTIALS; k++) {
        const char *key = credential_key(k) ? credential_key(k) : token_key;
        if (key)
            (void)add_stamp(f, name, key, ret);
    }
    ret->trusts_ca = !add_stamp(f, name, "namespace", ret);
    return 0;
}

void secret_files_init(struct secret_files *f, const char *dir)
{
    *f = (struct secret_files){.secrets = {.look = secret_file_look, .read = secret_file_read}, .dir = dir};
}

/* ---- The cache ---- */

static struct credentials *cache_entry(struct secrets *s, const char *name, const char *token_key)
{
    struct credentials *c;

    LIST_FOREACH (c, &s->cache, entry)
        if (strcmp(c->name, name) == 0 && !c->token_key == !token_key &&
            strcmp(cstr(c->token_key), cstr(token_key)) == 0)
            return c;
    return NULL;
}

static void cache_remove(struct credentials *c)
{
    LIST_REMOVE(c, entry);
    (void)credentials_unref(c);
}

void secrets_forget(struct secrets *s)
{
    while (!LIST_EMPTY(&s->cache))
        cache_remove(LIST_FIRST(&s->cache));
}

static int cache_look_at(struct secrets *s, const char *name, const char *token_key, struct secret_state *ret,
                         char why[256])
{
    const char *problem = NULL;
    int r = s->look(s, name, token_key, ret, &problem), n;

    if (r == 0)
        return 0;
    if (!problem)
        problem = r == -ENOENT ? "not found" : strerror(-r);
    n = token_key ? snprintf(why, 256, "secret \"%.80s\", key \"%.80s\": ", name, token_key)
                  : snprintf(why, 256, "secret \"%.80s\": ", name);
    text_line(why + n, 256 - (size_t)n, str_of(problem));
    return r;
}

/* A volume may be swapped between two of its files: those read before and after it do not belong together. */
static int cache_read(struct secrets *s, const char *name, const char *token_key, struct secret_state *state,
                      struct credentials **ret, char why[256])
{
    struct secret_state before;
    int r = 0;

    for (int i = 0; i < READ_TIMES; i++) {
        *ret = credentials_unref(*ret);
        before = *state;
        r = credentials_new(ret, s, name, token_key, before.trusts_ca, why);
        if (cache_look_at(s, name, token_key, state, why) < 0 || state->stamp == before.stamp)
            break;
    }
    return r;
}

int secrets_get(struct secrets *s, const char *name, const char *token_key, struct credentials **ret,
                char why[256])
{
    CLEANUP(cleanup_credentials_unref) struct credentials *fresh = NULL;
    struct secret_state state;
    struct credentials *c;
    int r;

    *ret = NULL;
    if (!name)
        return 0;
    c = cache_entry(s, name, token_key);
    r = cache_look_at(s, name, token_key, &state, why);
    if (c && (r < 0 || state.is_unsettled || state.stamp != c->stamp)) {
        cache_remove(c);
        c = NULL;
    }
    if (r == 0 && !c) {
        r = cache_read(s, name, token_key, &state, &fresh, why);
        c = fresh;
    }
    if (r < 0)
        return r;
    if (fresh) {
        fresh->stamp = state.stamp;
        LIST_INSERT_HEAD(&s->cache, c, entry);
        fresh = NULL;
    }
    c->refs++;
    *ret = c;
    return 0;
}

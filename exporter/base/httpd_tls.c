/* Owns what TLS sessions share: the certificate, the allowed versions, and the key of their tickets. Each
 * session holds a reference, so that new settings replace them while sessions go on. */
#include "exporter/base/httpd_tls.h"

#include "exporter/base/file.h"
#include "exporter/base/httpd_internal.h"

#include <arpa/inet.h>
#include <errno.h>
#include <gnutls/x509.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>

enum { PEMS = 3 };

struct httpd_tls {
    pthread_mutex_t lock; /* its holder never blocks */
    struct tls_context *current;
    struct httpd_tls_settings settings;
    struct file_stamp stamps[PEMS]; /* of the files when they were last read. Loop's thread */
};

/* ---- Contexts ---- */

static void context_free(struct tls_context *c)
{
    if (c->credentials)
        gnutls_certificate_free_credentials(c->credentials);
    if (c->priorities)
        gnutls_priority_deinit(c->priorities);
    gnutls_memset(c->ticket_key.data, 0, c->ticket_key.size);
    gnutls_free(c->ticket_key.data);
    free(c);
}

static void context_unref(struct httpd_tls *t, struct tls_context *c)
{
    bool last;

    if (!c)
        return;
    (void)pthread_mutex_lock(&t->lock);
    last = --c->refs == 0;
    (void)pthread_mutex_unlock(&t->lock);
    if (last)
        context_free(c);
}

static int read_client_auth(const char *word, enum client_auth *ret, char **ret_why)
{
    static const char *const words[] = {"NoClientCert", "RequestClientCert", "RequireAnyClientCert",
                                        "VerifyClientCertIfGiven", "RequireAndVerifyClientCert"};

    if (cstr(word)[0] == '\0')
        return 0;
    for (unsigned i = 0; i < ARRAY_SIZE(words); i++)
        if (strcmp(word, words[i]) == 0) {
            *ret = (enum client_auth)i;
            return 0;
        }
    /* exporter-toolkit's older name. */
    if (strcmp(word, "RequireClientCert") == 0) {
        *ret = AUTH_REQUIRE_ANY;
        return 0;
    }
    return httpd_explain(ret_why, -EINVAL, "client_auth_type: unknown type \"%.64s\"", word);
}

/* exporter-toolkit accepts VerifyClientCertIfGiven without client_ca_file; every certificate then fails. */
static int context_load_ca(struct tls_context *c, const struct httpd_tls_settings *s, char **ret_why)
{
    bool given = s->client_ca.file || s->client_ca.text;

    if (given && c->auth == AUTH_NONE)
        return httpd_explain(ret_why, -EINVAL,
                             "client_ca_file: has no effect without client_auth_type: set that as well");
    if (!given && c->auth == AUTH_REQUIRE_AND_VERIFY)
        return httpd_explain(ret_why, -EINVAL, "client_auth_type: %s needs client_ca_file",
                             s->client_auth_type);
    return given ? httpd_tls_load_ca(c->credentials, s, ret_why) : 0;
}

static int context_fill(struct tls_context *c, const struct httpd_tls_settings *s, char **ret_why)
{
    gnutls_pk_algorithm_t key = GNUTLS_PK_UNKNOWN;
    int r = read_client_auth(s->client_auth_type, &c->auth, ret_why);

    if (r < 0)
        return r;
    if (gnutls_certificate_allocate_credentials(&c->credentials) < 0)
        return -ENOMEM;
    r = httpd_tls_load_key(c->credentials, s, &key, ret_why);
    r = r ?: context_load_ca(c, s, ret_why);
    r = r ?: httpd_tls_priorities(&c->priorities, s, key, ret_why);
    if (r == 0 && gnutls_session_ticket_key_generate(&c->ticket_key) < 0)
        return -ENOMEM;
    return r;
}

static int context_new(struct tls_context **ret, struct httpd_tls *t, const struct httpd_tls_settings *s,
                       char **ret_why)
{
    struct tls_context *c = calloc(1, sizeof(*c));
    int r;

    *ret_why = NULL;
    if (!c)
        return -ENOMEM;
    c->owner = t;
    c->refs = 1;
    r = context_fill(c, s, ret_why);
    if (r < 0) {
        context_free(c);
        return r;
    }
    *ret = c;
    return 0;
}

/* ---- Settings ---- */

static void read_stamps(const struct httpd_tls_settings *s, struct file_stamp stamps[PEMS])
{
    const char *const files[PEMS] = {s->cert.file, s->key.file, s->client_ca.file};

    for (unsigned i = 0; i < PEMS; i++)
        stamps[i] = files[i] ? file_stamp(files[i]) : (struct file_stamp){0};
}

static bool stamps_are(const struct file_stamp a[PEMS], const struct file_stamp b[PEMS])
{
    bool same = true;

    for (unsigned i = 0; i < PEMS; i++)
        same = same && file_stamp_is(&a[i], &b[i]);
    return same;
}

int httpd_tls_set(struct httpd_tls *t, const struct httpd_tls_settings *s, char **ret_why)
{
    struct file_stamp stamps[PEMS];
    struct tls_context *c, *was;
    int r;

    read_stamps(s, stamps);
    r = context_new(&c, t, s, ret_why);
    if (r < 0)
        return r;
    memcpy(t->stamps, stamps, sizeof(stamps));
    (void)pthread_mutex_lock(&t->lock);
    was = t->current;
    t->current = c;
    t->settings = *s;
    (void)pthread_mutex_unlock(&t->lock);
    context_unref(t, was);
    return 0;
}

int httpd_tls_refresh(struct httpd_tls *t, char **ret_why)
{
    struct httpd_tls_settings s = t->settings;
    struct file_stamp stamps[PEMS];
    int r;

    read_stamps(&s, stamps);
    if (stamps_are(stamps, t->stamps))
        return 0;
    memcpy(t->stamps, stamps, sizeof(stamps));
    r = httpd_tls_set(t, &s, ret_why);
    return r < 0 ? r : 1;
}

int httpd_tls_new(struct httpd_tls **ret, const struct httpd_tls_settings *s, char **ret_why)
{
    struct httpd_tls *t = calloc(1, sizeof(*t));
    int r;

    *ret_why = NULL;
    if (!t)
        return -ENOMEM;
    (void)pthread_mutex_init(&t->lock, NULL);
    r = httpd_tls_set(t, s, ret_why);
    if (r < 0) {
        (void)httpd_tls_free(t);
        return r;
    }
    *ret = t;
    return 0;
}

struct httpd_tls *httpd_tls_free(struct httpd_tls *t)
{
    if (!t)
        return NULL;
    context_unref(t, t->current);
    (void)pthread_mutex_destroy(&t->lock);
    free(t);
    return NULL;
}

/* ---- For sessions ---- */

struct tls_context *httpd_tls_take(struct httpd_tls *t)
{
    struct tls_context *c;

    (void)pthread_mutex_lock(&t->lock);
    c = t->current;
    c->refs++;
    (void)pthread_mutex_unlock(&t->lock);
    return c;
}

void httpd_tls_drop(struct tls_context *c)
{
    context_unref(c->owner, c);
}

bool httpd_tls_allows_name(struct httpd_tls *t, const char *name)
{
    const struct httpd_tls_list *list = &t->settings.client_allowed_sans;
    bool found;

    (void)pthread_mutex_lock(&t->lock);
    found = list->n == 0;
    for (size_t i = 0; !found && i < list->n; i++)
        found = strcmp(list->items[i], name) == 0;
    (void)pthread_mutex_unlock(&t->lock);
    return found;
}

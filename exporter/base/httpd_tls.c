/* Owns what TLS sessions share: the certificate, the allowed versions, and the key of their tickets. Each
 * session holds a reference, so that new settings replace them while sessions go on. */
#include "exporter/base/httpd_tls.h"

#include "exporter/base/httpd_internal.h"
#include "exporter/base/log.h"

#include <arpa/inet.h>
#include <errno.h>
#include <gnutls/x509.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>

enum { MAX_NAME = 1024, PEMS = 3 };

/* client_auth_type, from the most lenient. */
enum client_auth { AUTH_NONE, AUTH_REQUEST, AUTH_REQUIRE_ANY, AUTH_VERIFY_IF_GIVEN, AUTH_REQUIRE_AND_VERIFY };

struct tls_context {
    struct httpd_tls *owner;
    unsigned refs; /* by sessions and as `current`; under the owner's lock */
    enum client_auth auth;
    gnutls_certificate_credentials_t credentials;
    gnutls_priority_t priorities;
    gnutls_datum_t ticket_key; /* GnuTLS derives those in use from it and the time */
};

struct file_stamp {
    ino_t inode;
    struct timespec modified;
    off_t size;
};

struct httpd_tls {
    pthread_mutex_t lock; /* its holder never blocks */
    struct tls_context *current;
    struct httpd_tls_settings settings;
    struct file_stamp stamps[PEMS]; /* of the files when they were last read. Loop's thread */
};

struct tls_session {
    struct tls_context *context;
    int fd;
    bool begun; /* the first bytes have been read */
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

    for (unsigned i = 0; i < PEMS; i++) {
        struct stat st;
        stamps[i] = (struct file_stamp){0};
        if (files[i] && stat(files[i], &st) == 0)
            stamps[i] = (struct file_stamp){st.st_ino, st.st_mtim, st.st_size};
    }
}

static bool stamp_is(const struct file_stamp *a, const struct file_stamp *b)
{
    return a->inode == b->inode && a->size == b->size && a->modified.tv_sec == b->modified.tv_sec &&
           a->modified.tv_nsec == b->modified.tv_nsec;
}

static bool stamps_are(const struct file_stamp a[PEMS], const struct file_stamp b[PEMS])
{
    bool same = true;

    for (unsigned i = 0; i < PEMS; i++)
        same = same && stamp_is(&a[i], &b[i]);
    return same;
}

/* The stamps are from before the files are read, so that a later change is seen. */
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

/* ---- Sessions. Server's thread ---- */

static int tls_refuse_peer(gnutls_session_t session, gnutls_alert_description_t alert, const char *why)
{
    log_debug("client certificate refused", L_STR("err", why));
    (void)gnutls_alert_send(session, GNUTLS_AL_FATAL, alert);
    return GNUTLS_E_CERTIFICATE_ERROR;
}

/* The text of a subject alternative name; false if there is no such name or it has another kind. */
static int read_san(gnutls_x509_crt_t crt, unsigned i, char *name, size_t size)
{
    char raw[MAX_NAME];
    size_t n = sizeof(raw);
    int kind = gnutls_x509_crt_get_subject_alt_name(crt, i, raw, &n, NULL);

    name[0] = '\0';
    if (kind == GNUTLS_SAN_IPADDRESS)
        (void)inet_ntop(n == sizeof(struct in_addr) ? AF_INET : AF_INET6, raw, name, (socklen_t)size);
    else if (kind == GNUTLS_SAN_DNSNAME || kind == GNUTLS_SAN_RFC822NAME || kind == GNUTLS_SAN_URI)
        (void)snprintf(name, size, "%.*s", (int)n, raw);
    return kind;
}

static bool san_is_listed(struct httpd_tls *t, const char *name)
{
    const struct httpd_tls_list *list = &t->settings.client_allowed_sans;
    bool found = false;

    (void)pthread_mutex_lock(&t->lock);
    for (size_t i = 0; i < list->n; i++)
        found = found || strcmp(list->items[i], name) == 0;
    (void)pthread_mutex_unlock(&t->lock);
    return found;
}

static bool san_is_allowed(struct httpd_tls *t, const gnutls_datum_t *certificate)
{
    char name[MAX_NAME];
    gnutls_x509_crt_t crt;
    bool found = false;
    int kind = 0;

    if (gnutls_x509_crt_init(&crt) < 0)
        return false;
    if (gnutls_x509_crt_import(crt, certificate, GNUTLS_X509_FMT_DER) == 0)
        for (unsigned i = 0; !found && kind != GNUTLS_E_REQUESTED_DATA_NOT_AVAILABLE; i++) {
            kind = read_san(crt, i, name, sizeof(name));
            found = name[0] && san_is_listed(t, name);
        }
    gnutls_x509_crt_deinit(crt);
    return found;
}

/* Called in the handshake, also if the client sent no certificate. */
static int tls_verify_peer(gnutls_session_t session)
{
    static char client[] = GNUTLS_KP_TLS_WWW_CLIENT;
    gnutls_typed_vdata_st purpose = {.type = GNUTLS_DT_KEY_PURPOSE_OID, .data = (unsigned char *)client};
    const struct tls_context *c = gnutls_session_get_ptr(session);
    unsigned n = 0, status = 0;
    const gnutls_datum_t *chain = gnutls_certificate_get_peers(session, &n);

    if (!chain || n == 0)
        return c->auth == AUTH_REQUIRE_ANY || c->auth == AUTH_REQUIRE_AND_VERIFY
                   ? tls_refuse_peer(session, GNUTLS_A_CERTIFICATE_REQUIRED, "no certificate")
                   : 0;
    if (c->auth >= AUTH_VERIFY_IF_GIVEN &&
        (gnutls_certificate_verify_peers(session, &purpose, 1, &status) < 0 || status))
        return tls_refuse_peer(
            session, status & GNUTLS_CERT_EXPIRED ? GNUTLS_A_CERTIFICATE_EXPIRED : GNUTLS_A_BAD_CERTIFICATE,
            status & GNUTLS_CERT_EXPIRED ? "expired" : "not issued by client_ca for clients");
    if (c->owner->settings.client_allowed_sans.n && !san_is_allowed(c->owner, chain))
        return tls_refuse_peer(session, GNUTLS_A_BAD_CERTIFICATE, "no name is in client_allowed_sans");
    return 0;
}

/* What Go answers. The request is read, because a socket closed with unread bytes would lose the answer. */
static void tls_answer_plain(int fd)
{
    static const char text[] = "HTTP/1.0 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\n"
                               "Connection: close\r\n\r\nClient sent an HTTP request to an HTTPS server.\n";
    char rest[4096];

    for (int i = 0; i < 16 && recv(fd, rest, sizeof(rest), MSG_DONTWAIT) > 0; i++)
        continue;
    (void)send(fd, text, sizeof(text) - 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static ssize_t tls_pull(gnutls_transport_ptr_t ptr, void *to, size_t n)
{
    struct tls_session *s = ptr;
    ssize_t got = recv(s->fd, to, n, 0);
    const char *first = to;

    if (s->begun || got <= 0)
        return got;
    s->begun = true;
    if (*first < 'A' || *first > 'Z')
        return got;
    tls_answer_plain(s->fd);
    errno = ECONNRESET;
    return -1;
}

static bool session_set_up(gnutls_session_t session, struct tls_context *c)
{
    gnutls_credentials_clear(session); /* those of the daemon */
    gnutls_session_set_ptr(session, c);
    if (gnutls_priority_set(session, c->priorities) < 0)
        return false;
    if (c->auth != AUTH_NONE) {
        gnutls_certificate_server_set_request(session, GNUTLS_CERT_REQUEST);
        gnutls_session_set_verify_function(session, tls_verify_peer);
    } else if (gnutls_session_ticket_enable_server(session, &c->ticket_key) < 0) {
        return false;
    }
    return gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, c->credentials) == 0;
}

struct tls_session *httpd_tls_begin(struct httpd_tls *t, gnutls_session_t session, int fd)
{
    struct tls_session *s = calloc(1, sizeof(*s));

    if (!s)
        return NULL;
    (void)pthread_mutex_lock(&t->lock);
    s->context = t->current;
    s->context->refs++;
    (void)pthread_mutex_unlock(&t->lock);
    s->fd = fd;
    gnutls_transport_set_ptr2(session, s, (gnutls_transport_ptr_t)(intptr_t)fd);
    gnutls_transport_set_pull_function(session, tls_pull);
    if (!session_set_up(session, s->context))
        log_debug("TLS session not set up: out of memory");
    return s;
}

void httpd_tls_end(struct tls_session *s)
{
    if (!s)
        return;
    context_unref(s->context->owner, s->context);
    free(s);
}

struct str httpd_tls_peer(gnutls_session_t session)
{
    const struct tls_context *c = gnutls_session_get_ptr(session);
    unsigned n = 0;
    const gnutls_datum_t *chain =
        c->auth >= AUTH_VERIFY_IF_GIVEN ? gnutls_certificate_get_peers(session, &n) : NULL;

    return chain && n ? (struct str){(const char *)chain->data, chain->size} : STR("");
}

/* TLS sessions of the HTTP server: what each gets before its handshake, and what the handshake demands of the
 * client. Server's thread. */
#include "exporter/base/httpd_internal.h"
#include "exporter/base/log.h"

#include <arpa/inet.h>
#include <errno.h>
#include <gnutls/x509.h>
#include <stdio.h>
#include <sys/socket.h>

enum { MAX_NAME = 1024 };

struct tls_session {
    struct tls_context *context;
    int fd;
    bool begun; /* the first bytes have been read */
};

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
    else if ((kind == GNUTLS_SAN_DNSNAME || kind == GNUTLS_SAN_RFC822NAME || kind == GNUTLS_SAN_URI) &&
             !memchr(raw, '\0', n)) /* else a part of the name would be taken for all of it */
        (void)snprintf(name, size, "%.*s", (int)n, raw);
    return kind;
}

static bool san_is_allowed(struct httpd_tls *t, const gnutls_datum_t *certificate)
{
    char name[MAX_NAME];
    gnutls_x509_crt_t crt;
    bool found = httpd_tls_allows_name(t, ""); /* any */
    int kind = 0;

    if (found || gnutls_x509_crt_init(&crt) < 0)
        return found;
    if (gnutls_x509_crt_import(crt, certificate, GNUTLS_X509_FMT_DER) == 0)
        for (unsigned i = 0; !found && kind != GNUTLS_E_REQUESTED_DATA_NOT_AVAILABLE; i++) {
            kind = read_san(crt, i, name, sizeof(name));
            found = name[0] && httpd_tls_allows_name(t, name);
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
    if (!san_is_allowed(c->owner, chain))
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
    s->context = httpd_tls_take(t);
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
    httpd_tls_drop(s->context);
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

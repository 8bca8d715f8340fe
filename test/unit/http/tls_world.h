/* What the tests of TLS share: certificates made on the spot, files in a folder of their own, and a GnuTLS
 * client. */
#pragma once

#include "exporter/http/httpd.h"
#include "exporter/http/tls.h"
#include "test/unit/base/pairs.h"
#include "test/unit/http/httpd_world.h"

#include <arpa/inet.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <sys/stat.h>
#include <time.h>

/* What a client offers, and what became of it. */
struct client_tls {
    const char *priorities;  /* "NORMAL" if NULL */
    const struct pair *pair; /* its certificate; NULL for none */
    gnutls_datum_t *ticket;  /* in: the session to resume; out: the one to resume next; NULL: none */
    /* Result */
    int error; /* of the handshake or of the exchange; 0 */
    gnutls_alert_description_t alert;
    bool resumed;
    char server[64]; /* common name of its certificate */
    char answer[4096];
    gnutls_protocol_t version;
    gnutls_cipher_algorithm_t cipher;
    gnutls_group_t group;
};

static inline void read_server_name(gnutls_session_t s, struct client_tls *c)
{
    unsigned n = 0;
    const gnutls_datum_t *chain = gnutls_certificate_get_peers(s, &n);
    size_t size = sizeof(c->server);
    gnutls_x509_crt_t crt;

    if (!chain)
        return;
    assert_int_equal(gnutls_x509_crt_init(&crt), 0);
    assert_int_equal(gnutls_x509_crt_import(crt, chain, GNUTLS_X509_FMT_DER), 0);
    assert_int_equal(gnutls_x509_crt_get_dn_by_oid(crt, GNUTLS_OID_X520_COMMON_NAME, 0, 0, c->server, &size),
                     0);
    gnutls_x509_crt_deinit(crt);
}

/* Until the end; a failure after some bytes counts as the end. */
static inline int read_answer(gnutls_session_t s, struct client_tls *c)
{
    size_t have = 0;
    ssize_t got;

    do {
        got = gnutls_record_recv(s, c->answer + have, sizeof(c->answer) - 1 - have);
        have += got > 0 ? (size_t)got : 0;
    } while ((got > 0 && have < sizeof(c->answer) - 1) || got == GNUTLS_E_AGAIN ||
             got == GNUTLS_E_INTERRUPTED);
    c->answer[have] = '\0';
    return have || got >= 0 ? 0 : (int)got;
}

/* One request on a connection of its own. */
static inline void ask_tls(unsigned port, const char *request, struct client_tls *c)
{
    gnutls_certificate_credentials_t credentials;
    const struct timeval patience = {.tv_sec = PATIENCE_MS / 1000};
    gnutls_session_t s;
    int fd = dial(port, 0);

    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    assert_int_equal(gnutls_certificate_allocate_credentials(&credentials), 0);
    if (c->pair)
        assert_int_equal(gnutls_certificate_set_x509_key_mem(credentials, &c->pair->crt_pem,
                                                             &c->pair->key_pem, GNUTLS_X509_FMT_PEM),
                         0);
    /* So that a certificate is sent even if its issuer is not one that the server names. */
    assert_int_equal(gnutls_init(&s, GNUTLS_CLIENT | GNUTLS_FORCE_CLIENT_CERT | GNUTLS_NO_SIGNAL), 0);
    assert_int_equal(gnutls_priority_set_direct(s, c->priorities ? c->priorities : "NORMAL", NULL), 0);
    assert_int_equal(gnutls_credentials_set(s, GNUTLS_CRD_CERTIFICATE, credentials), 0);
    gnutls_transport_set_int(s, fd);
    if (c->ticket && c->ticket->size)
        assert_int_equal(gnutls_session_set_data(s, c->ticket->data, c->ticket->size), 0);
    do
        c->error = gnutls_handshake(s);
    while (c->error == GNUTLS_E_INTERRUPTED || c->error == GNUTLS_E_AGAIN);
    if (c->error == 0) {
        c->version = gnutls_protocol_get_version(s);
        c->cipher = gnutls_cipher_get(s);
        c->group = gnutls_group_get(s);
        c->resumed = gnutls_session_is_resumed(s);
        read_server_name(s, c);
        (void)gnutls_record_send(s, request, strlen(request));
        c->error = read_answer(s, c);
    }
    if (c->error == GNUTLS_E_FATAL_ALERT_RECEIVED)
        c->alert = gnutls_alert_get(s);
    if (c->ticket && c->error == 0) {
        gnutls_free(c->ticket->data);
        assert_int_equal(gnutls_session_get_data2(s, c->ticket), 0);
    }
    gnutls_deinit(s);
    gnutls_certificate_free_credentials(credentials);
    (void)close(fd);
}

static inline void write_pem(const char *path, const gnutls_datum_t *text)
{
    char part[256];
    FILE *f;

    /* Replaced as a whole, so that its inode differs even if its size and time do not. */
    (void)snprintf(part, sizeof(part), "%s.part", path);
    f = fopen(part, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(text->data, 1, text->size, f), text->size);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(rename(part, path), 0);
}

/* ---- The server and its files ---- */

#define ONLY(version) "NORMAL:-VERS-ALL:+VERS-" version

enum { CA, OTHER_CA, SERVER, SERVER_RSA, CLIENT, CLIENT_ALIEN, CLIENT_EXPIRED, CLIENT_NO_PURPOSE, PAIRS };

static struct pair pairs[PAIRS];
static char folder[] = "/tmp/test_httpd_tls.XXXXXX", cert_file[64], key_file[64], ca_file[64];

static inline int make_pairs(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(folder));
    (void)snprintf(cert_file, sizeof(cert_file), "%s/tls.crt", folder);
    (void)snprintf(key_file, sizeof(key_file), "%s/tls.key", folder);
    (void)snprintf(ca_file, sizeof(ca_file), "%s/ca.crt", folder);
    make_pair(&pairs[CA], (struct wish){.ca = true, .name = "ca"});
    make_pair(&pairs[OTHER_CA], (struct wish){.ca = true, .name = "other ca"});
    make_pair(&pairs[SERVER], (struct wish){.issuer = &pairs[CA], .name = "first.example"});
    make_pair(&pairs[SERVER_RSA], (struct wish){.issuer = &pairs[CA], .name = "rsa.example", .rsa = true});
    make_pair(&pairs[CLIENT], (struct wish){.issuer = &pairs[CA],
                                            .name = "scraper.example",
                                            .ip = "10.1.2.3",
                                            .uri = "spiffe://example/scraper"});
    make_pair(&pairs[CLIENT_ALIEN], (struct wish){.issuer = &pairs[OTHER_CA]});
    make_pair(&pairs[CLIENT_EXPIRED], (struct wish){.issuer = &pairs[CA], .days = -1});
    make_pair(&pairs[CLIENT_NO_PURPOSE], (struct wish){.issuer = &pairs[CA], .for_servers = true});
    return 0;
}

static inline int drop_pairs(void **state)
{
    (void)state;
    for (unsigned i = 0; i < PAIRS; i++)
        drop_pair(&pairs[i]);
    (void)unlink(cert_file);
    (void)unlink(key_file);
    (void)unlink(ca_file);
    return rmdir(folder);
}

static inline void write_files(const struct pair *p)
{
    write_pem(cert_file, &p->crt_pem);
    write_pem(key_file, &p->key_pem);
    write_pem(ca_file, &pairs[CA].crt_pem);
}

static inline struct httpd_tls_settings settings_of_files(void)
{
    write_files(&pairs[SERVER]);
    return (struct httpd_tls_settings){.cert.file = cert_file, .key.file = key_file};
}

static inline struct httpd_tls *make_tls(const struct httpd_tls_settings *s)
{
    struct httpd_tls *t = NULL;
    struct httpd_tls_fault fault = {0};

    assert_int_equal(httpd_tls_new(&t, s, &fault), 0);
    assert_null(fault.text);
    return t;
}

static inline void open_tls(struct env *e, const struct httpd_tls_settings *s)
{
    struct httpd_options o = options_for(e);

    o.tls = make_tls(s);
    open_server(e, &o);
}

static inline void close_tls(struct env *e)
{
    e->server = httpd_stop(e->server, 0);
}

static inline void ask_direct(struct env *e, struct client_tls *c)
{
    ask_tls(httpd_port(e->server, 0), REQUEST("GET /direct"), c);
}

static inline bool is_served(struct env *e, struct client_tls *c)
{
    c->answer[0] = '\0';
    ask_direct(e, c);
    return c->error == 0 && strstr(c->answer, "hello");
}

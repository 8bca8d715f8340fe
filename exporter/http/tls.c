/* Owns what TLS sessions share: the certificate, the allowed versions, and the key of their tickets. Each
 * session holds a reference, so that other settings may replace them while sessions go on. */
#include "exporter/http/tls.h"

#include "exporter/base/alloc.h"
#include "exporter/base/buf.h"
#include "exporter/base/file.h"
#include "exporter/base/log.h"
#include "exporter/base/secret.h"
#include "exporter/http/httpd_internal.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <time.h>

enum { MAX_PEM = 1 << 20, MAX_PRIORITIES = 4096, MAX_NAME = 1024 };

/* client_auth_type, from the most lenient. */
enum client_auth { AUTH_NONE, AUTH_REQUEST, AUTH_REQUIRE_ANY, AUTH_VERIFY_IF_GIVEN, AUTH_REQUIRE_AND_VERIFY };

struct httpd_tls {
    atomic_uint refs; /* by sessions, and by the server or its owner */
    enum client_auth auth;
    struct buf client_allowed_sans; /* a NUL behind each; empty: any */
    gnutls_certificate_credentials_t credentials;
    gnutls_priority_t priorities;
    gnutls_datum_t ticket_key; /* GnuTLS derives those in use from it and the time */
};

/* ---- Versions, cipher suites and curves ----
 *
 * GnuTLS enables every combination of the key exchanges, ciphers and MACs that are named, and the same
 * ciphers for TLS 1.3. A list that would enable more than it names is refused. */

static const char *const auth_names[] = {"NoClientCert", "RequestClientCert", "RequireAnyClientCert",
                                         "VerifyClientCertIfGiven", "RequireAndVerifyClientCert"};

enum { TLS12 = 2, TLS13 = 3 };
static const char *const version_names[] = {"TLS10", "TLS11", "TLS12", "TLS13"};

enum { DEFAULT_CURVES = 4 };
static const char *const curve_names[] = {"X25519", "CurveP256", "CurveP384", "CurveP521", "X25519MLKEM768"};
static const char *const gnutls_curves[] = {"X25519", "SECP256R1", "SECP384R1", "SECP521R1",
                                            "X25519-MLKEM768"};

/* For ECDSA and RSA keys in turn, in the order of preference: AES-128 before AES-256, as in Go, since it is
 * cheaper. Those of TLS 1.3, which, as in Go, cannot be chosen, follow. */
enum { CHOSEN_SUITES = 10, AEAD_SUITES = 6 };
static const char *const suite_names[] = {
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA",
    "TLS_AES_128_GCM_SHA256",
    "TLS_AES_256_GCM_SHA384",
    "TLS_CHACHA20_POLY1305_SHA256",
};
static const char *const gnutls_ciphers[] = {"AES-128-GCM:+AEAD", "AES-256-GCM:+AEAD",
                                             "CHACHA20-POLY1305:+AEAD", "AES-128-CBC:+SHA1",
                                             "AES-256-CBC:+SHA1"};

WORD_TABLE(httpd_tls_field_word, enum httpd_tls_field, TLS_FIELDS,
           {[TLS_FIELD_NONE] = "",
            [TLS_FIELD_CERT] = "cert",
            [TLS_FIELD_KEY] = "key",
            [TLS_FIELD_CLIENT_CA] = "client_ca",
            [TLS_FIELD_CLIENT_AUTH_TYPE] = "client_auth_type",
            [TLS_FIELD_MIN_VERSION] = "min_version",
            [TLS_FIELD_MAX_VERSION] = "max_version",
            [TLS_FIELD_CIPHER_SUITES] = "cipher_suites",
            [TLS_FIELD_CURVE_PREFERENCES] = "curve_preferences"});

char *httpd_tls_fault_key(const struct httpd_tls_fault *fault)
{
    const char *field = httpd_tls_field_word(fault->field);

    return fault->is_file ? xasprintf("%s_file", field) : xstrdup(field);
}

static int fault_put(struct httpd_tls_fault *fault, int error, const char *fmt, va_list ap)
{
    CLEANUP(cleanup_free) char *text = xvasprintf(fmt, ap), *key = httpd_tls_fault_key(fault);

    if (fault->field == TLS_FIELD_NONE)
        fault->text = TAKE_PTR(text);
    else
        fault->text = xasprintf("%s: %s", key, text);
    return error;
}

/* Returns error. */
static int PRINTF_LIKE(4, 5)
    tls_refuse(struct httpd_tls_fault *fault, enum httpd_tls_field field, int error, const char *fmt, ...)
{
    va_list ap;

    *fault = (struct httpd_tls_fault){.field = field};
    va_start(ap, fmt);
    error = fault_put(fault, error, fmt, ap);
    va_end(ap);
    return error;
}

/* The index of the name, `otherwise` without one; or -EINVAL and *fault from `what`. */
static int find_name(const char *const *names, int n, const char *name, int otherwise,
                     enum httpd_tls_field field, const char *what, struct httpd_tls_fault *fault)
{
    int i = 0;

    if (!*cstr(name) && otherwise >= 0)
        return otherwise;
    while (i < n && strcmp(name, names[i]) != 0)
        i++;
    return i < n ? i : tls_refuse(fault, field, -EINVAL, "%s \"%.64s\"", what, name);
}

static int put_versions(struct buf *b, int min, int max, struct httpd_tls_fault *fault)
{
    if (min > max)
        return tls_refuse(fault, TLS_FIELD_MAX_VERSION, -EINVAL, "%s is below min_version, %s",
                          version_names[max], version_names[min]);
    for (int i = max; i >= min; i--)
        buf_printf(b, ":+VERS-%s", gnutls_protocol_get_name(GNUTLS_TLS1_0 + i));
    return 0;
}

/* Those that can be used with the key, so that GnuTLS enables no others. Suites with CBC are offered by
 * default only where older versions need them. */
static int put_suites(struct buf *b, const struct httpd_tls_settings *s, gnutls_pk_algorithm_t key, int min,
                      int max, struct httpd_tls_fault *fault)
{
    unsigned named = s->cipher_suites.n ? 0 : min < TLS12 ? UINT32_MAX : (1u << AEAD_SUITES) - 1;
    unsigned is_rsa = key == GNUTLS_PK_RSA || key == GNUTLS_PK_RSA_PSS, usable = 0;

    for (size_t i = 0; i < s->cipher_suites.n; i++) {
        int at = find_name(suite_names, ARRAY_SIZE(suite_names), s->cipher_suites.items[i], -EINVAL,
                           TLS_FIELD_CIPHER_SUITES, "unknown or insecure cipher suite", fault);
        if (at < 0)
            return at;
        named |= 1u << at;
    }
    for (unsigned i = is_rsa; min < TLS13 && i < CHOSEN_SUITES; i += 2)
        if (named & 1u << i) {
            usable |= 1u << i;
            buf_printf(b, ":+ECDHE-%s:+%s", is_rsa ? "RSA" : "ECDSA", gnutls_ciphers[i / 2]);
        }
    if (max < TLS13 && !usable)
        return tls_refuse(fault, TLS_FIELD_CIPHER_SUITES, -EINVAL,
                          "none can be used with the certificate's %s key", gnutls_pk_get_name(key));
    if (max == TLS13 && usable >> AEAD_SUITES && !(usable & ((1u << AEAD_SUITES) - 1)))
        return tls_refuse(fault, TLS_FIELD_CIPHER_SUITES, -EINVAL,
                          "TLS 1.3 needs a suite with GCM or CHACHA20: add one, or set "
                          "max_version to TLS12");
    for (unsigned i = 0; !usable && i < AEAD_SUITES / 2; i++) /* TLS 1.3 has no key exchange */
        buf_printf(b, ":+%s", gnutls_ciphers[i]);
    return 0;
}

static int put_curves(struct buf *b, const struct httpd_tls_settings *s, struct httpd_tls_fault *fault)
{
    unsigned chosen = s->curve_preferences.n ? 0 : (1u << DEFAULT_CURVES) - 1;

    for (size_t i = 0; i < s->curve_preferences.n; i++) {
        const char *name = s->curve_preferences.items[i];
        int at = find_name(curve_names, ARRAY_SIZE(curve_names), name, -EINVAL, TLS_FIELD_CURVE_PREFERENCES,
                           "unknown curve", fault);

        if (at < 0)
            return at;
        if (gnutls_group_get_id(gnutls_curves[at]) == GNUTLS_GROUP_INVALID)
            return tls_refuse(fault, TLS_FIELD_CURVE_PREFERENCES, -EINVAL, "%s is not supported by GnuTLS %s",
                              name, gnutls_check_version(NULL));
        chosen |= 1u << at;
    }
    for (size_t i = 0; i < ARRAY_SIZE(gnutls_curves); i++)
        if (chosen & 1u << i)
            buf_printf(b, ":+GROUP-%s", gnutls_curves[i]);
    return 0;
}

/* Sets what a certificate with such a key and the settings allow. */
static int tls_choose(struct httpd_tls *into, const struct httpd_tls_settings *s, gnutls_pk_algorithm_t key,
                      struct httpd_tls_fault *fault)
{
    BUF_AUTO(b, MAX_PRIORITIES);
    int n = ARRAY_SIZE(version_names), r, max;
    int min =
        find_name(version_names, n, s->min_version, TLS12, TLS_FIELD_MIN_VERSION, "unknown version", fault);
    const unsigned *enabled;

    if (min < 0)
        return min;
    max = find_name(version_names, n, s->max_version, TLS13, TLS_FIELD_MAX_VERSION, "unknown version", fault);
    if (max < 0)
        return max;
    buf_puts(&b, "NORMAL:-VERS-ALL:-KX-ALL:-CIPHER-ALL:-MAC-ALL:-GROUP-ALL:-SIGN-RSA-SHA1"
                 ":-SIGN-ECDSA-SHA1:%SERVER_PRECEDENCE");
    r = put_versions(&b, min, max, fault);
    r = r ?: put_suites(&b, s, key, min, max, fault);
    r = r ?: put_curves(&b, s, fault);
    buf_putc(&b, '\0');
    r = r ?: buf_failed(&b);
    if (r < 0)
        return r;
    r = gnutls_priority_init(&into->priorities, b.p, NULL);
    if (r < 0)
        return tls_refuse(fault, TLS_FIELD_NONE, -EINVAL, "versions and cipher suites: %s",
                          gnutls_strerror(r));
    n = gnutls_priority_protocol_list(into->priorities, &enabled);
    for (int i = 0; i < n; i++)
        if (enabled[i] == (unsigned)GNUTLS_TLS1_0 + (unsigned)min)
            return 0;
    /* Distributions and machines can disable versions (gnutls.conf). */
    return tls_refuse(fault, TLS_FIELD_MIN_VERSION, -EINVAL, "%s is disabled in GnuTLS on this machine",
                      version_names[min]);
}

/* ---- Certificates and keys ---- */

/* Returns error. */
static int PRINTF_LIKE(5, 6) refuse_pem(enum httpd_tls_field field, const struct httpd_tls_pem *pem,
                                        struct httpd_tls_fault *fault, int error, const char *fmt, ...)
{
    va_list ap;

    *fault = (struct httpd_tls_fault){.field = field, .is_file = pem->file != NULL};
    va_start(ap, fmt);
    error = fault_put(fault, error, fmt, ap);
    va_end(ap);
    return error;
}

/* With what is wrong with the text itself. */
static int refuse_pem_text(enum httpd_tls_field field, const struct httpd_tls_pem *pem,
                           struct httpd_tls_fault *fault, const char *why)
{
    if (pem->file)
        return refuse_pem(field, pem, fault, -EINVAL, "%s: %s", pem->file, why);
    return refuse_pem(field, pem, fault, -EINVAL, "%s", why);
}

static int read_pem(enum httpd_tls_field field, const struct httpd_tls_pem *pem, struct buf *into,
                    struct httpd_tls_fault *fault)
{
    int r;

    if (!pem->file) {
        buf_puts(into, cstr(pem->text));
        return buf_failed(into);
    }
    r = file_read(pem->file, into);
    if (r < 0)
        return refuse_pem(field, pem, fault, r, "could not read %s: %s", pem->file, strerror(-r));
    return 0;
}

static int read_certificates(enum httpd_tls_field field, const struct httpd_tls_pem *pem,
                             struct pem_certificates *ret, struct httpd_tls_fault *fault)
{
    BUF_AUTO(text, MAX_PEM);
    int r = read_pem(field, pem, &text, fault);
    const char *why = r < 0 ? NULL : pem_read_certificates(buf_str(&text), ret);

    return why ? refuse_pem_text(field, pem, fault, why) : r;
}

static int check_expiry(const struct httpd_tls_pem *pem, gnutls_x509_crt_t certificate,
                        struct httpd_tls_fault *fault)
{
    time_t end = gnutls_x509_crt_get_expiration_time(certificate);
    char why[64] = "";
    struct tm tm;

    if (end > time(NULL))
        return 0;
    (void)strftime(why, sizeof(why), "the certificate expired at %Y-%m-%dT%H:%M:%SZ", gmtime_r(&end, &tm));
    return refuse_pem_text(TLS_FIELD_CERT, pem, fault, why);
}

/* Reads the certificate, its chain and its key; *ret_key: the kind of the key. */
static int tls_load_key(struct httpd_tls *t, const struct httpd_tls_settings *s,
                        gnutls_pk_algorithm_t *ret_key, struct httpd_tls_fault *fault)
{
    CLEANUP(pem_certificates_done) struct pem_certificates chain = {0};
    CLEANUP(pem_key_done) gnutls_x509_privkey_t key = NULL;
    SECRET_AUTO(text, MAX_PEM);
    const char *why;
    int r = read_certificates(TLS_FIELD_CERT, &s->cert, &chain, fault);

    r = r ?: read_pem(TLS_FIELD_KEY, &s->key, &text, fault);
    why = r < 0 ? NULL : pem_read_key(buf_str(&text), &key);
    if (why)
        return refuse_pem_text(TLS_FIELD_KEY, &s->key, fault, why);
    r = r ?: check_expiry(&s->cert, chain.list[0], fault);
    if (r < 0)
        return r;
    *ret_key = (gnutls_pk_algorithm_t)gnutls_x509_privkey_get_pk_algorithm(key);
    r = gnutls_certificate_set_x509_key(t->credentials, chain.list, (int)chain.n, key);
    if (r == GNUTLS_E_CERTIFICATE_KEY_MISMATCH)
        return refuse_pem(TLS_FIELD_KEY, &s->key, fault, -EINVAL,
                          "%s is not the key of the certificate in %s", s->key.file ? s->key.file : "it",
                          s->cert.file ? s->cert.file : "cert");
    return r < 0 ? refuse_pem_text(TLS_FIELD_CERT, &s->cert, fault, gnutls_strerror(r)) : 0;
}

/* Reads the certificates that clients' must be issued by. exporter-toolkit accepts VerifyClientCertIfGiven
 * without client_ca_file; every certificate then fails. */
static int tls_load_ca(struct httpd_tls *t, const struct httpd_tls_settings *s, struct httpd_tls_fault *fault)
{
    CLEANUP(pem_certificates_done) struct pem_certificates ca = {0};
    bool given = s->client_ca.file || s->client_ca.text;
    int r;

    if (given && t->auth == AUTH_NONE)
        return refuse_pem(TLS_FIELD_CLIENT_CA, &s->client_ca, fault, -EINVAL,
                          "has no effect without client_auth_type: set that as well");
    if (!given && t->auth == AUTH_REQUIRE_AND_VERIFY)
        return tls_refuse(fault, TLS_FIELD_CLIENT_AUTH_TYPE, -EINVAL, "%s needs client_ca_file",
                          s->client_auth_type);
    if (!given)
        return 0;
    r = read_certificates(TLS_FIELD_CLIENT_CA, &s->client_ca, &ca, fault);
    if (r < 0)
        return r;
    r = gnutls_certificate_set_x509_trust(t->credentials, ca.list, (int)ca.n);
    return r < 0 ? refuse_pem_text(TLS_FIELD_CLIENT_CA, &s->client_ca, fault, gnutls_strerror(r)) : 0;
}

/* ---- All settings ---- */

struct httpd_tls *httpd_tls_unref(struct httpd_tls *t)
{
    if (!t || atomic_fetch_sub(&t->refs, 1) > 1)
        return NULL;
    if (t->credentials)
        gnutls_certificate_free_credentials(t->credentials);
    if (t->priorities)
        gnutls_priority_deinit(t->priorities);
    gnutls_memset(t->ticket_key.data, 0, t->ticket_key.size);
    gnutls_free(t->ticket_key.data);
    buf_done(&t->client_allowed_sans);
    free(t);
    return NULL;
}

int httpd_tls_new(struct httpd_tls **ret, const struct httpd_tls_settings *s, struct httpd_tls_fault *fault)
{
    CLEANUP(cleanup_httpd_tls_unref) struct httpd_tls *t = xcalloc(1, sizeof(*t));
    gnutls_pk_algorithm_t key = GNUTLS_PK_UNKNOWN;
    bool is_old_name = strcmp(cstr(s->client_auth_type), "RequireClientCert") == 0; /* of exporter-toolkit */
    int r = find_name(auth_names, ARRAY_SIZE(auth_names),
                      is_old_name ? auth_names[AUTH_REQUIRE_ANY] : s->client_auth_type, AUTH_NONE,
                      TLS_FIELD_CLIENT_AUTH_TYPE, "unknown type", fault);

    t->refs = 1;
    if (r < 0)
        return r;
    t->auth = (enum client_auth)r;
    t->client_allowed_sans.max = SIZE_MAX;
    if (gnutls_certificate_allocate_credentials(&t->credentials) < 0 ||
        gnutls_session_ticket_key_generate(&t->ticket_key) < 0)
        return tls_refuse(fault, TLS_FIELD_NONE, -ENOMEM, "GnuTLS: out of memory");
    r = tls_load_key(t, s, &key, fault);
    r = r ?: tls_load_ca(t, s, fault);
    r = r ?: tls_choose(t, s, key, fault);
    for (size_t i = 0; i < s->client_allowed_sans.n; i++)
        buf_put(&t->client_allowed_sans, s->client_allowed_sans.items[i],
                strlen(s->client_allowed_sans.items[i]) + 1);
    r = r ?: buf_failed(&t->client_allowed_sans);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(t);
    return 0;
}

/* ---- Sessions: what each gets before its handshake, and what that demands of the client ---- */

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

/* Whether the certificate has one of client_allowed_sans. */
static bool san_is_allowed(const struct httpd_tls *t, const gnutls_datum_t *certificate)
{
    struct str allowed = buf_str(&t->client_allowed_sans);
    gnutls_x509_crt_t crt;
    char name[MAX_NAME];
    int kind = 0;
    bool found = allowed.n == 0;

    if (gnutls_x509_crt_init(&crt) < 0)
        return false;
    if (!found && gnutls_x509_crt_import(crt, certificate, GNUTLS_X509_FMT_DER) == 0)
        for (unsigned i = 0; !found && kind != GNUTLS_E_REQUESTED_DATA_NOT_AVAILABLE; i++) {
            kind = read_san(crt, i, name, sizeof(name));
            for (const char *p = allowed.p; name[0] && p < allowed.p + allowed.n; p += strlen(p) + 1)
                found |= strcmp(p, name) == 0;
        }
    gnutls_x509_crt_deinit(crt);
    return found;
}

/* Called in the handshake, also if the client sent no certificate. */
static int tls_verify_peer(gnutls_session_t session)
{
    static char client[] = GNUTLS_KP_TLS_WWW_CLIENT;
    gnutls_typed_vdata_st purpose = {.type = GNUTLS_DT_KEY_PURPOSE_OID, .data = (unsigned char *)client};
    const struct httpd_tls *c = gnutls_session_get_ptr(session);
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
    if (!san_is_allowed(c, chain))
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
    struct conn *c = ptr;
    ssize_t got = recv(c->fd, to, n, 0);
    const char *first = to;

    if (c->tls_begun || got <= 0)
        return got;
    c->tls_begun = true;
    if (*first < 'A' || *first > 'Z')
        return got;
    tls_answer_plain(c->fd);
    errno = ECONNRESET;
    return -1;
}

void httpd_tls_begin(struct httpd_tls *t, gnutls_session_t session, struct conn *conn)
{
    int r;

    atomic_fetch_add(&t->refs, 1);
    conn->tls = t;
    gnutls_transport_set_ptr2(session, conn, (gnutls_transport_ptr_t)(intptr_t)conn->fd);
    gnutls_transport_set_pull_function(session, tls_pull);
    gnutls_credentials_clear(session); /* those of the daemon */
    gnutls_session_set_ptr(session, t);
    r = gnutls_priority_set(session, t->priorities);
    if (t->auth != AUTH_NONE) {
        gnutls_certificate_server_set_request(session, GNUTLS_CERT_REQUEST);
        gnutls_session_set_verify_function(session, tls_verify_peer);
    } else {
        r = r ?: gnutls_session_ticket_enable_server(session, &t->ticket_key);
    }
    r = r ?: gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, t->credentials);
    if (r < 0)
        log_debug("TLS session not set up");
}

struct str httpd_tls_peer(gnutls_session_t session)
{
    const struct httpd_tls *c = gnutls_session_get_ptr(session);
    unsigned n = 0;
    const gnutls_datum_t *chain =
        c->auth >= AUTH_VERIFY_IF_GIVEN ? gnutls_certificate_get_peers(session, &n) : NULL;

    return chain && n ? (struct str){(const char *)chain->data, chain->size} : STR("");
}

/* ---- PEM ---- */

static gnutls_datum_t datum_of(struct str s)
{
    return (gnutls_datum_t){.data = (unsigned char *)(uintptr_t)s.p, .size = (unsigned)s.n};
}

const char *pem_read_certificates(struct str text, struct pem_certificates *ret)
{
    gnutls_datum_t datum = datum_of(text);
    int r = text.n ? gnutls_x509_crt_list_import2(&ret->list, &ret->n, &datum, GNUTLS_X509_FMT_PEM, 0)
                   : GNUTLS_E_NO_CERTIFICATE_FOUND;

    if (r == GNUTLS_E_NO_CERTIFICATE_FOUND || r == GNUTLS_E_BASE64_UNEXPECTED_HEADER_ERROR)
        return "no certificate in PEM format found";
    return r < 0 ? gnutls_strerror(r) : NULL;
}

void pem_certificates_done(struct pem_certificates *c)
{
    for (unsigned i = 0; i < c->n; i++)
        gnutls_x509_crt_deinit(c->list[i]);
    gnutls_free(c->list);
    *c = (struct pem_certificates){0};
}

const char *pem_read_key(struct str text, gnutls_x509_privkey_t *ret)
{
    /* A copy with a NUL behind it: GnuTLS compares what follows "DEK-Info: " as if a string ended there. */
    SECRET_AUTO(copy, text.n + 1);
    gnutls_datum_t datum;
    char *room;
    int r;

    if (buf_reserve(&copy, text.n + 1, &room) < 0)
        memory_exhausted(text.n);
    buf_put_str(&copy, text);
    if (buf_failed(&copy) < 0 || gnutls_x509_privkey_init(ret) < 0)
        memory_exhausted(text.n);
    room[text.n] = '\0';
    datum = datum_of(buf_str(&copy));
    r = text.n ? gnutls_x509_privkey_import2(*ret, &datum, GNUTLS_X509_FMT_PEM, NULL, 0)
               : GNUTLS_E_BASE64_UNEXPECTED_HEADER_ERROR;
    if (r == GNUTLS_E_DECRYPTION_FAILED)
        return "encrypted keys are not supported";
    if (r == GNUTLS_E_BASE64_UNEXPECTED_HEADER_ERROR || r == GNUTLS_E_REQUESTED_DATA_NOT_AVAILABLE)
        return "no private key in PEM format found";
    return r < 0 ? gnutls_strerror(r) : NULL;
}

void pem_key_done(gnutls_x509_privkey_t *key)
{
    if (*key)
        gnutls_x509_privkey_deinit(*key);
}

bool pem_is_pair(struct str certificates, struct str key)
{
    CLEANUP(pem_certificates_done) struct pem_certificates chain = {0};
    CLEANUP(pem_key_done) gnutls_x509_privkey_t private = NULL;
    unsigned char ids[2][64];
    size_t n[2] = {sizeof(ids[0]), sizeof(ids[1])};

    return !pem_read_certificates(certificates, &chain) && !pem_read_key(key, &private) &&
           gnutls_x509_crt_get_key_id(chain.list[0], GNUTLS_KEYID_USE_SHA256, ids[0], &n[0]) == 0 &&
           gnutls_x509_privkey_get_key_id(private, GNUTLS_KEYID_USE_SHA256, ids[1], &n[1]) == 0 &&
           n[0] == n[1] && memcmp(ids[0], ids[1], n[0]) == 0;
}

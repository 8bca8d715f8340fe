/* Owns what TLS sessions share: the certificate, the allowed versions, and the key of their tickets. Each
 * session holds a reference, so that new settings replace them while sessions go on. */
#include "exporter/base/httpd_tls.h"

#include "exporter/base/buf.h"
#include "exporter/base/file.h"
#include "exporter/base/httpd_internal.h"
#include "exporter/base/log.h"
#include "exporter/base/pem.h"
#include "exporter/base/secret.h"

#include <arpa/inet.h>
#include <errno.h>
#include <gnutls/x509.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>

/* Go's names of TLS versions, cipher suites and curves, as a priority string of GnuTLS.
 *
 * GnuTLS enables every combination of the key exchanges, ciphers and MACs that are named, and the same
 * ciphers for TLS 1.3. A list that would enable more than it names is refused. */

struct word {
    const char *go, *gnutls;
};

static const struct word versions[] = {
    {"TLS10", "TLS1.0"}, {"TLS11", "TLS1.1"}, {"TLS12", "TLS1.2"}, {"TLS13", "TLS1.3"}};
enum { TLS12 = 2, TLS13 = 3 };

static const struct word curves[] = {{"X25519", "X25519"},
                                     {"CurveP256", "SECP256R1"},
                                     {"CurveP384", "SECP384R1"},
                                     {"CurveP521", "SECP521R1"},
                                     {"X25519MLKEM768", "X25519-MLKEM768"}};
enum { DEFAULT_CURVES = 4 };

/* In the order of preference: AES-128 before AES-256, as in Go, since it is cheaper. */
static const struct suite {
    const char *go;
    gnutls_kx_algorithm_t kx;
    gnutls_cipher_algorithm_t cipher;
    gnutls_mac_algorithm_t mac;
} suites[] = {
#define ROWS(cipher, gnutls_cipher, mac)                                                         \
    {"TLS_ECDHE_ECDSA_WITH_" cipher, GNUTLS_KX_ECDHE_ECDSA, GNUTLS_CIPHER_##gnutls_cipher, mac}, \
    {                                                                                            \
        "TLS_ECDHE_RSA_WITH_" cipher, GNUTLS_KX_ECDHE_RSA, GNUTLS_CIPHER_##gnutls_cipher, mac    \
    }
    ROWS("AES_128_GCM_SHA256", AES_128_GCM, GNUTLS_MAC_AEAD),
    ROWS("AES_256_GCM_SHA384", AES_256_GCM, GNUTLS_MAC_AEAD),
    ROWS("CHACHA20_POLY1305_SHA256", CHACHA20_POLY1305, GNUTLS_MAC_AEAD),
    ROWS("AES_128_CBC_SHA", AES_128_CBC, GNUTLS_MAC_SHA1),
    ROWS("AES_256_CBC_SHA", AES_256_CBC, GNUTLS_MAC_SHA1),
#undef ROWS
};

static const char *const suites_of_tls13[] = {"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384",
                                              "TLS_CHACHA20_POLY1305_SHA256"};

/* What the settings select: indexes of the tables, as bits. */
struct choice {
    size_t min, max;
    unsigned suites, curves;
};

static bool word_is(const char *word, const char *name)
{
    return strcmp(word, name) == 0;
}

static int choose_version(const char *field, const char *name, size_t fallback, size_t *ret, char **ret_why)
{
    *ret = fallback;
    if (cstr(name)[0] == '\0')
        return 0;
    for (size_t i = 0; i < ARRAY_SIZE(versions); i++)
        if (word_is(name, versions[i].go)) {
            *ret = i;
            return 0;
        }
    return httpd_explain(ret_why, -EINVAL,
                         "%s: unknown version \"%.64s\": expected TLS10, TLS11, TLS12 or TLS13", field, name);
}

static int choose_versions(const struct httpd_tls_settings *s, struct choice *c, char **ret_why)
{
    int r = choose_version("min_version", s->min_version, TLS12, &c->min, ret_why)
                ?: choose_version("max_version", s->max_version, TLS13, &c->max, ret_why);

    if (r == 0 && c->min > c->max)
        return httpd_explain(ret_why, -EINVAL, "max_version: %s is below min_version, %s",
                             versions[c->max].go, versions[c->min].go);
    return r;
}

static int find_suite(const char *name, unsigned *ret, char **ret_why)
{
    for (size_t i = 0; i < ARRAY_SIZE(suites); i++)
        if (word_is(name, suites[i].go)) {
            *ret |= 1u << i;
            return 0;
        }
    for (size_t i = 0; i < ARRAY_SIZE(suites_of_tls13); i++)
        if (word_is(name, suites_of_tls13[i]))
            return 0;
    return httpd_explain(ret_why, -EINVAL, "cipher_suites: unknown or insecure cipher suite \"%.64s\"", name);
}

/* Those that can be used with such a key, for one kind of key exchange, so that GnuTLS enables no others.
 * `aead`: also those that TLS 1.3 needs. */
static unsigned usable_suites(unsigned named, gnutls_pk_algorithm_t key, bool *ret_aead)
{
    bool rsa = key == GNUTLS_PK_RSA || key == GNUTLS_PK_RSA_PSS;
    unsigned usable = 0;

    *ret_aead = false;
    for (size_t i = 0; i < ARRAY_SIZE(suites); i++)
        if (named & 1u << i && rsa == (suites[i].kx == GNUTLS_KX_ECDHE_RSA)) {
            usable |= 1u << i;
            *ret_aead = *ret_aead || suites[i].mac == GNUTLS_MAC_AEAD;
        }
    return usable;
}

/* Go, too, has no way to choose those of TLS 1.3. Suites with CBC are offered by default only where older
 * versions need them. */
static int choose_suites(const struct httpd_tls_settings *s, gnutls_pk_algorithm_t key, struct choice *c,
                         char **ret_why)
{
    unsigned named = 0;
    bool aead = false;
    int r = 0;

    for (size_t i = 0; r == 0 && i < s->cipher_suites.n; i++)
        r = find_suite(s->cipher_suites.items[i], &named, ret_why);
    for (size_t i = 0; s->cipher_suites.n == 0 && i < ARRAY_SIZE(suites); i++)
        if (suites[i].mac == GNUTLS_MAC_AEAD || c->min < TLS12)
            named |= 1u << i;
    c->suites = c->min < TLS13 ? usable_suites(named, key, &aead) : 0;
    if (r == 0 && c->max < TLS13 && !c->suites)
        return httpd_explain(ret_why, -EINVAL,
                             "cipher_suites: none can be used with the certificate's %s key",
                             gnutls_pk_get_name(key));
    if (r == 0 && c->max == TLS13 && c->suites && !aead)
        return httpd_explain(ret_why, -EINVAL,
                             "cipher_suites: TLS 1.3 needs a suite with GCM or CHACHA20: add one, or set "
                             "max_version to TLS12");
    return r;
}

static int choose_curve(const char *name, struct choice *c, char **ret_why)
{
    for (size_t i = 0; i < ARRAY_SIZE(curves); i++) {
        if (!word_is(name, curves[i].go))
            continue;
        c->curves |= 1u << i;
        if (gnutls_group_get_id(curves[i].gnutls) != GNUTLS_GROUP_INVALID)
            return 0;
        return httpd_explain(ret_why, -EINVAL, "curve_preferences: %s is not supported by GnuTLS %s", name,
                             gnutls_check_version(NULL));
    }
    return httpd_explain(ret_why, -EINVAL, "curve_preferences: unknown curve \"%.64s\"", name);
}

static int choose_curves(const struct httpd_tls_settings *s, struct choice *c, char **ret_why)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < s->curve_preferences.n; i++)
        r = choose_curve(s->curve_preferences.items[i], c, ret_why);
    if (s->curve_preferences.n == 0)
        c->curves = (1u << DEFAULT_CURVES) - 1;
    return r;
}

/* Naming something twice does no harm. */
static int put_suites(struct buf *b, const struct choice *c)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(suites); i++) {
        const struct suite *s = &suites[i];
        if (c->suites & 1u << i)
            r = buf_printf(b, ":+%s:+%s:+%s", gnutls_kx_get_name(s->kx), gnutls_cipher_get_name(s->cipher),
                           gnutls_mac_get_name(s->mac));
        else if (!c->suites && s->mac == GNUTLS_MAC_AEAD) /* only for TLS 1.3, which has no key exchange */
            r = buf_printf(b, ":+%s:+%s", gnutls_cipher_get_name(s->cipher), gnutls_mac_get_name(s->mac));
    }
    return r;
}

static int put_priorities(struct buf *b, const struct choice *c)
{
    int r =
        buf_puts(b, "NORMAL:-VERS-ALL:-KX-ALL:-CIPHER-ALL:-MAC-ALL:-GROUP-ALL:-SIGN-RSA-SHA1:-SIGN-ECDSA-SHA1"
                    ":%SERVER_PRECEDENCE");

    for (size_t i = c->max + 1; r == 0 && i-- > c->min;)
        r = buf_printf(b, ":+VERS-%s", versions[i].gnutls);
    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(curves); i++)
        if (c->curves & 1u << i)
            r = buf_printf(b, ":+GROUP-%s", curves[i].gnutls);
    r = r ?: put_suites(b, c);
    return r ?: buf_putc(b, '\0');
}

/* Distributions and machines can disable versions (gnutls.conf). */
static int check_versions(gnutls_priority_t p, const struct choice *c, char **ret_why)
{
    const unsigned *list;
    int n = gnutls_priority_protocol_list(p, &list);

    for (int i = 0; i < n; i++)
        if (word_is(gnutls_protocol_get_name(list[i]), versions[c->min].gnutls))
            return 0;
    return httpd_explain(ret_why, -EINVAL, "min_version: %s is disabled in GnuTLS on this machine",
                         versions[c->min].go);
}

/* What a certificate with such a key and the settings allow. On failure a negative errno and *ret_why. */
static int httpd_tls_priorities(gnutls_priority_t *ret, const struct httpd_tls_settings *s,
                                gnutls_pk_algorithm_t key, char **ret_why)
{
    struct choice c = {0};
    BUF_AUTO(text, 4096);
    gnutls_priority_t p;
    int r = choose_versions(s, &c, ret_why);

    r = r ?: choose_suites(s, key, &c, ret_why);
    r = r ?: choose_curves(s, &c, ret_why);
    r = r ?: put_priorities(&text, &c);
    if (r < 0)
        return r;
    r = gnutls_priority_init(&p, text.p, NULL);
    if (r < 0)
        return httpd_explain(ret_why, -EINVAL, "versions and cipher suites: %s", gnutls_strerror(r));
    r = check_versions(p, &c, ret_why);
    if (r < 0)
        gnutls_priority_deinit(p);
    else
        *ret = p;
    return r;
}

/* Certificates and keys of the HTTP server, in PEM format. */

enum { MAX_PEM = 1 << 20 };

static int read_pem(const char *field, const struct httpd_tls_pem *pem, struct buf *into, char **ret_why)
{
    int r = pem->file ? file_read(pem->file, into) : buf_puts(into, cstr(pem->text));

    if (r < 0 && pem->file)
        return httpd_explain(ret_why, r, "%s_file: could not read %s: %s", field, pem->file, strerror(-r));
    return r;
}

static int refuse_pem(const char *field, const struct httpd_tls_pem *pem, char **ret_why, const char *why)
{
    if (pem->file)
        return httpd_explain(ret_why, -EINVAL, "%s_file: %s: %s", field, pem->file, why);
    return httpd_explain(ret_why, -EINVAL, "%s: %s", field, why);
}

static int read_certificates(const char *field, const struct httpd_tls_pem *pem, struct pem_certificates *ret,
                             char **ret_why)
{
    BUF_AUTO(text, MAX_PEM);
    const char *why = NULL;
    int r = read_pem(field, pem, &text, ret_why);

    if (r < 0)
        return r;
    r = pem_read_certificates(buf_str(&text), ret, &why);
    return why ? refuse_pem(field, pem, ret_why, why) : r;
}

static int read_key(const struct httpd_tls_pem *pem, gnutls_x509_privkey_t *ret, char **ret_why)
{
    SECRET_AUTO(text, MAX_PEM);
    const char *why = NULL;
    int r = read_pem("key", pem, &text, ret_why);

    if (r < 0)
        return r;
    r = pem_read_key(buf_str(&text), ret, &why);
    return why ? refuse_pem("key", pem, ret_why, why) : r;
}

static int check_expiry(const struct httpd_tls_pem *pem, gnutls_x509_crt_t certificate, char **ret_why)
{
    time_t end = gnutls_x509_crt_get_expiration_time(certificate);
    char why[64] = "";
    struct tm tm;

    if (end > time(NULL))
        return 0;
    (void)strftime(why, sizeof(why), "the certificate expired at %Y-%m-%dT%H:%M:%SZ", gmtime_r(&end, &tm));
    return refuse_pem("cert", pem, ret_why, why);
}

/* Reads the certificate, its chain and its key; *ret_key: the kind of the key. On failure a negative errno
 * and *ret_why. */
static int httpd_tls_load_key(gnutls_certificate_credentials_t into, const struct httpd_tls_settings *s,
                              gnutls_pk_algorithm_t *ret_key, char **ret_why)
{
    CLEANUP(pem_certificates_done) struct pem_certificates chain = {0};
    CLEANUP(pem_key_done) gnutls_x509_privkey_t key = NULL;
    int r = read_certificates("cert", &s->cert, &chain, ret_why);

    r = r ?: read_key(&s->key, &key, ret_why);
    r = r ?: check_expiry(&s->cert, chain.list[0], ret_why);
    if (r < 0)
        return r;
    *ret_key = (gnutls_pk_algorithm_t)gnutls_x509_privkey_get_pk_algorithm(key);
    r = gnutls_certificate_set_x509_key(into, chain.list, (int)chain.n, key);
    if (r == GNUTLS_E_CERTIFICATE_KEY_MISMATCH)
        return httpd_explain(ret_why, -EINVAL, "%s%s is not the key of the certificate in %s",
                             s->key.file ? "key_file: " : "key: it", cstr(s->key.file),
                             s->cert.file ? s->cert.file : "cert");
    return r < 0 ? refuse_pem("cert", &s->cert, ret_why, gnutls_strerror(r)) : 0;
}

/* Reads the certificates that clients' must be issued by. */
static int httpd_tls_load_ca(gnutls_certificate_credentials_t into, const struct httpd_tls_settings *s,
                             char **ret_why)
{
    CLEANUP(pem_certificates_done) struct pem_certificates ca = {0};
    int r = read_certificates("client_ca", &s->client_ca, &ca, ret_why);

    if (r < 0)
        return r;
    r = gnutls_certificate_set_x509_trust(into, ca.list, (int)ca.n);
    return r < 0 ? refuse_pem("client_ca", &s->client_ca, ret_why, gnutls_strerror(r)) : 0;
}

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
    if (gnutls_certificate_allocate_credentials(&c->credentials) < 0 ||
        gnutls_session_ticket_key_generate(&c->ticket_key) < 0)
        return httpd_explain(ret_why, -ENOMEM, "GnuTLS: out of memory");
    r = httpd_tls_load_key(c->credentials, s, &key, ret_why);
    r = r ?: context_load_ca(c, s, ret_why);
    return r ?: httpd_tls_priorities(&c->priorities, s, key, ret_why);
}

static int context_new(struct tls_context **ret, struct httpd_tls *t, const struct httpd_tls_settings *s,
                       char **ret_why)
{
    struct tls_context *c = xcalloc(1, sizeof(*c));
    int r;

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
    struct httpd_tls *t = xcalloc(1, sizeof(*t));
    int r;

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

/* The context in force, with a reference for httpd_tls_drop(). Any thread. */
static struct tls_context *httpd_tls_take(struct httpd_tls *t)
{
    struct tls_context *c;

    (void)pthread_mutex_lock(&t->lock);
    c = t->current;
    c->refs++;
    (void)pthread_mutex_unlock(&t->lock);
    return c;
}

static void httpd_tls_drop(struct tls_context *c)
{
    context_unref(c->owner, c);
}

/* Whether client_allowed_sans has the name, or is empty. Any thread. */
static bool httpd_tls_allows_name(struct httpd_tls *t, const char *name)
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

/* TLS sessions of the HTTP server: what each gets before its handshake, and what the handshake demands of the
 * client. Server's thread. */

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
    struct tls_session *s = xcalloc(1, sizeof(*s));

    s->context = httpd_tls_take(t);
    s->fd = fd;
    gnutls_transport_set_ptr2(session, s, (gnutls_transport_ptr_t)(intptr_t)fd);
    gnutls_transport_set_pull_function(session, tls_pull);
    if (!session_set_up(session, s->context))
        log_debug("TLS session not set up");
    return s;
}

void httpd_tls_end(struct tls_session *s)
{
    if (!s) /* plain HTTP */
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

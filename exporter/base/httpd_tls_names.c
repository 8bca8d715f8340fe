/* Go's names of TLS versions, cipher suites and curves, as a priority string of GnuTLS.
 *
 * GnuTLS enables every combination of the key exchanges, ciphers and MACs that are named, and the same
 * ciphers for TLS 1.3. A list that would enable more than it names is refused. */
#include "exporter/base/buf.h"
#include "exporter/base/httpd_internal.h"

#include <errno.h>

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

int httpd_tls_priorities(gnutls_priority_t *ret, const struct httpd_tls_settings *s,
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
        return httpd_explain(ret_why, r == GNUTLS_E_MEMORY_ERROR ? -ENOMEM : -EINVAL,
                             "versions and cipher suites: %s", gnutls_strerror(r));
    r = check_versions(p, &c, ret_why);
    if (r < 0)
        gnutls_priority_deinit(p);
    else
        *ret = p;
    return r;
}

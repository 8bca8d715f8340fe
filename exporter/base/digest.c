#include "exporter/base/digest.h"

#include <errno.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <pthread.h>
#include <stdint.h>

enum { DIGEST_BYTES = 32, KEY_BYTES = 32 };

static unsigned char digest_key[KEY_BYTES];
static int digest_key_error;

static void digest_make_key(void)
{
    digest_key_error = gnutls_rnd(GNUTLS_RND_KEY, digest_key, sizeof(digest_key));
}

static int digest_add(gnutls_hmac_hd_t mac, struct str part)
{
    uint64_t n = part.n;

    return gnutls_hmac(mac, &n, sizeof(n)) ?: (part.n ? gnutls_hmac(mac, part.p, part.n) : 0);
}

int digest_parts(char ret[DIGEST_TEXT_BYTES], const struct str *parts, size_t n)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    static const char digits[] = "0123456789abcdef";
    unsigned char digest[DIGEST_BYTES];
    gnutls_hmac_hd_t mac;
    int r;

    (void)pthread_once(&once, digest_make_key);
    if (digest_key_error || gnutls_hmac_init(&mac, GNUTLS_MAC_SHA256, digest_key, sizeof(digest_key)) < 0)
        return -ENOMEM;
    r = 0;
    for (size_t i = 0; i < n && r == 0; i++)
        r = digest_add(mac, parts[i]);
    gnutls_hmac_deinit(mac, digest);
    if (r < 0)
        return -ENOMEM;
    for (size_t i = 0; i < sizeof(digest); i++) {
        ret[2 * i] = digits[digest[i] >> 4];
        ret[2 * i + 1] = digits[digest[i] & 15];
    }
    ret[2 * sizeof(digest)] = '\0';
    return 0;
}

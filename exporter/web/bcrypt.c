#include "exporter/web/bcrypt.h"

#include <crypt.h>
#include <errno.h>
#include <gnutls/gnutls.h>

enum {
    SALT_AT = 7, /* after "$2b$10$" */
    DIGEST_AT = 29,
};

unsigned bcrypt_cost(struct str hash)
{
    static const char digits[] = "0123456789";
    unsigned cost;

    if (hash.n != BCRYPT_BYTES || hash.p[0] != '$' || hash.p[1] != '2' || !memchr("aby", hash.p[2], 3) ||
        hash.p[3] != '$' || !memchr(digits, hash.p[4], 10) || !memchr(digits, hash.p[5], 10) ||
        hash.p[6] != '$' || !str_has_only((struct str){hash.p + SALT_AT, hash.n - SALT_AT}, "./"))
        return 0;
    cost = (unsigned)(hash.p[4] - '0') * 10 + (unsigned)(hash.p[5] - '0');
    return cost >= 4 && cost <= 31 ? cost : 0;
}

/* libxcrypt treats some passwords of $2a$ in a way of its own; $2b$ is what all other programs mean by the
 * three. */
int bcrypt_matches(struct str password, struct str hash)
{
    struct crypt_data *data = calloc(1, sizeof(*data));
    char key[PASSWORD_MAX_BYTES + 1] = "", setting[BCRYPT_BYTES + 1] = "";
    const char *made = NULL;
    bool same;

    if (!data)
        return -ENOMEM;
    memcpy(setting, hash.p, BCRYPT_BYTES);
    setting[2] = 'b';
    if (password.n <= PASSWORD_MAX_BYTES) {
        if (password.n)
            memcpy(key, password.p, password.n);
        made = crypt_r(key, setting, data);
    }
    same = made && strlen(made) == BCRYPT_BYTES &&
           gnutls_memcmp(made + DIGEST_AT, hash.p + DIGEST_AT, BCRYPT_BYTES - DIGEST_AT) == 0;
    explicit_bzero(key, sizeof(key));
    explicit_bzero(data, sizeof(*data));
    free(data);
    return same;
}

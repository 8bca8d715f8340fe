/* Passwords hashed with bcrypt, by libxcrypt. */
#ifndef DS_WEB_BCRYPT_H
#define DS_WEB_BCRYPT_H

#include "exporter/base/def.h"
#include "exporter/base/str.h"

enum {
    BCRYPT_BYTES = 60,        /* of a hash, without a NUL */
    BCRYPT_MAX_COST = 18,     /* one comparison takes a quarter of a minute */
    BCRYPT_SLOW_COST = 14,    /* a second */
    PASSWORD_MAX_BYTES = 511, /* libxcrypt's limit; bcrypt itself uses the first 72 */
};

/* The cost of a hash; 0 if it is none with $2a$, $2b$ or $2y$ and a cost from 4 to 31. */
unsigned bcrypt_cost(struct str hash);
/* 1 if this is the password, which must not have a NUL, else 0. `hash` has a cost. Takes 60 ms at cost 10,
 * twice as long for each one more. -ENOMEM. */
MUST_USE int bcrypt_matches(struct str password, struct str hash);

#endif

/* What the keys of a Secret say about how to reach a server. README.md has the table.
 *
 * Everything is checked once, when the Secret is read, so that a problem names the Secret and the key and
 * not a part of a value. Immutable and reference-counted: calls in progress outlive a change of the
 * Secret. Loop thread. */
#ifndef DS_SCORE_CREDENTIALS_H
#define DS_SCORE_CREDENTIALS_H

#include "exporter/base/http.h"

#include <sys/queue.h>

struct secrets;

enum credential {
    CREDENTIAL_TOKEN, /* of the key that is named for it */
    CREDENTIAL_CA,
    CREDENTIAL_CERT,
    CREDENTIAL_KEY,
    CREDENTIAL_USER,
    CREDENTIAL_PASSWORD,
    CREDENTIAL_HEADER,
    CREDENTIALS
};

struct credentials {
    unsigned refs;
    struct buf values[CREDENTIALS]; /* terminated; n without the NUL. p is NULL without one */
    struct http_tls tls;
    const char *header;
    /* Of the cache of struct secrets */
    LIST_ENTRY(credentials) entry;
    char *name, *token_key;
    uint64_t stamp;
};

/* Reads a Secret that exists. token_key: NULL for none. -ENOENT, -EINVAL, -ENOMEM, or what read() returns,
 * with `why` set; see secrets_get(). */
MUST_USE int credentials_new(struct credentials **ret, struct secrets *s, const char *name,
                             const char *token_key, bool trusts_ca, char why[256]);
/* Wiped with the last reference. Takes NULL, returns NULL. */
struct credentials *credentials_unref(struct credentials *c);
DEFINE_CLEANUP(struct credentials, credentials_unref)

/* Sets the fields of a request, which must end before the reference is given back. NULL: none. */
void credentials_apply(const struct credentials *c, struct http_request *rq);
/* Only those of the TLS connection. */
void credentials_apply_tls(const struct credentials *c, struct http_request *rq);

#endif

/* What the keys of a Secret, which README.md lists, say about how to reach a server. It is read and checked
 * before each request, so that a change takes effect at once. Problems never show values. Loop thread. */
#pragma once

#include "exporter/base/buf.h"
#include "exporter/http/http.h"
#include "exporter/score/credential_kind.h"
#include "exporter/score/secrets.h"

enum { CREDENTIALS_WHY_BYTES = 1024 };

struct credentials {
    char *shown;                    /* " with secret \"a/b\", key \"c\"", for text_http_status() */
    struct buf values[CREDENTIALS]; /* terminated; n without the NUL. p is NULL without one */
    struct http_tls tls;
    const char *header;
    struct http_tls token_tls; /* of the token endpoint */
    struct http_oauth2 oauth2;
    struct buf oauth2_form;
};

/* Reads a Secret; *ret is NULL if `name` is NULL. token_key: NULL for none. -ENOENT, -EINVAL, or what look()
 * and read() return, with `why` set: it names the Secret, the key and the problem. */
MUST_USE int credentials_read(struct credentials **ret, struct secrets *s, const char *name,
                              const char *token_key, char why[CREDENTIALS_WHY_BYTES]);
/* Wipes the values. Takes NULL, returns NULL. */
struct credentials *credentials_free(struct credentials *c);
DEFINE_CLEANUP(struct credentials, credentials_free)

/* Sets the fields of a request, which must end before the credentials are freed. NULL: none. */
void credentials_apply(const struct credentials *c, struct http_request *rq);

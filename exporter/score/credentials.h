/* What the keys of a Secret, which README.md lists, say about how to reach a server. It is read and checked
 * before each request, so that a change takes effect at once. Problems never show values. Loop thread. */
#pragma once

#include "exporter/http/http.h"

/* Where Secrets are read: files as a Kubernetes volume mounts them, or watched objects (in controller/). */
struct secrets {
    const char *namespace; /* of the Secrets, shown before their names; NULL for files */
    /* -ENOENT if there is no such Secret, or another negative errno; *ret_why, if set, says more and is valid
     * until the loop's next turn. *ret_trusts_ca, which is true: whether its ca.crt counts, as that of this
     * server and not of an API server. NULL: there is one, which is trusted. */
    int (*look)(struct secrets *s, const char *name, bool *ret_trusts_ca, const char **ret_why);
    /* Appends the value of a Secret's key. -ENOENT if it has none; else as look(). */
    int (*read)(struct secrets *s, const char *name, const char *key, struct buf *into, const char **ret_why);
};

/* Files <dir>/<name>/<key>. The ca.crt of a folder with a file `namespace` does not count: a service
 * account's is that of its API server. */
struct secret_files {
    struct secrets secrets;
    const char *dir; /* not owned; NULL: there are no Secrets */
};

void secret_files_init(struct secret_files *f, const char *dir);

enum credential {
    CREDENTIAL_TOKEN, /* of the key that is named for it */
    CREDENTIAL_CA,
    CREDENTIAL_CERT,
    CREDENTIAL_KEY,
    CREDENTIAL_USER,
    CREDENTIAL_PASSWORD,
    CREDENTIAL_HEADER,
    CREDENTIAL_CLIENT_ID, /* OAuth 2.0 */
    CREDENTIAL_CLIENT_SECRET,
    CREDENTIAL_TOKEN_URL,
    CREDENTIAL_SCOPES,
    CREDENTIAL_AUDIENCE,
    CREDENTIALS
};

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

/* The keys that a Secret may have, as README.md lists them. */
#pragma once

#include "exporter/base/str.h"

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

struct credential_kind {
    const char *key; /* of the Secret; NULL: any, which is named for it */
    /* NULL, with *ret a part of `value`; else the problem. */
    const char *(*check)(struct str value, struct str *ret);
    size_t max; /* bytes of the value */
};

extern const struct credential_kind credential_kinds[CREDENTIALS];

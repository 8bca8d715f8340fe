/* What became of an attempt to ask a scoring API: the reasons of the conditions Healthy and ConfigSynced,
 * and a metric's label. Pure; any thread. */
#pragma once

enum probe_reason {
    PROBE_NOT_ASKED,
    PROBE_HEALTHY,
    PROBE_HTTP_STATUS, /* any other status than 2xx */
    /* Likewise. They say more of /healthz alone: there, configURL is asked instead, which has credentials. */
    PROBE_ACCESS_DENIED, /* 401 and 403 */
    PROBE_NO_SUCH_PATH,  /* 404, 405 and 501 */
    PROBE_INVALID_URL,
    PROBE_DNS,
    PROBE_UNREACHABLE,
    PROBE_FORBIDDEN, /* a private address */
    PROBE_TLS,
    PROBE_TIMEOUT,
    PROBE_TOO_LARGE,
    PROBE_BROKEN,
    PROBE_REDIRECTED,
    PROBE_OUT_OF_MEMORY,
    PROBE_TOKEN_REQUEST_FAILED,
    PROBE_TOKEN_MISSING, /* nothing was asked: the Secret of configAuth cannot be used */
    /* Of a configuration that was read */
    PROBE_SYNCED,
    PROBE_INVALID_CONFIG,
    PROBE_TOKEN_HOST_NOT_ALLOWED,
    PROBE_REASONS
};

/* "Healthy", "HTTPStatus", "TokenHostNotAllowed", ... */
const char *probe_reason_word(enum probe_reason reason);

/* One word for each reason. The three of a status share theirs. */
#include "controller/hub/probe/probe_reason.h"

#include "exporter/base/def.h"

WORD_TABLE(probe_reason_word, enum probe_reason, PROBE_REASONS,
           {[PROBE_NOT_ASKED] = "NotAsked",
            [PROBE_HEALTHY] = "Healthy",
            [PROBE_HTTP_STATUS] = "HTTPStatus",
            [PROBE_ACCESS_DENIED] = "HTTPStatus",
            [PROBE_NO_SUCH_PATH] = "HTTPStatus",
            [PROBE_INVALID_URL] = "InvalidURL",
            [PROBE_DNS] = "DNS",
            [PROBE_UNREACHABLE] = "Unreachable",
            [PROBE_FORBIDDEN] = "Forbidden",
            [PROBE_TLS] = "TLS",
            [PROBE_TIMEOUT] = "Timeout",
            [PROBE_TOO_LARGE] = "TooLarge",
            [PROBE_BROKEN] = "Broken",
            [PROBE_REDIRECTED] = "Redirected",
            [PROBE_OUT_OF_MEMORY] = "OutOfMemory",
            [PROBE_TOKEN_REQUEST_FAILED] = "TokenRequestFailed",
            [PROBE_TOKEN_MISSING] = "TokenMissing",
            [PROBE_SYNCED] = "Synced",
            [PROBE_INVALID_CONFIG] = "InvalidConfig",
            [PROBE_TOKEN_HOST_NOT_ALLOWED] = "TokenHostNotAllowed"});

/* One row for each cause: its class and its words. Pure; any thread. */
#include "exporter/http/cause.h"

#include "exporter/base/def.h"
#include "exporter/base/invariant.h"

static const struct {
    const char *word;
    enum http_error class;
} causes[] = {
    [CAUSE_NONE] = {"none", HTTP_OK},
    [CAUSE_URL] = {"url", HTTP_URL},
    [CAUSE_DNS] = {"dns", HTTP_DNS},
    [CAUSE_CONNECT] = {"connect", HTTP_CONNECT},
    [CAUSE_PROXY_DNS] = {"proxy_dns", HTTP_CONNECT},
    [CAUSE_PROXY_CONNECT] = {"proxy_connect", HTTP_CONNECT},
    [CAUSE_PROXY_TUNNEL] = {"proxy_tunnel", HTTP_CONNECT},
    [CAUSE_PRIVATE_ADDRESS] = {"private_address", HTTP_FORBIDDEN},
    [CAUSE_TLS_CA] = {"tls_ca", HTTP_TLS},
    [CAUSE_TLS_CERTIFICATE] = {"tls_certificate", HTTP_TLS},
    [CAUSE_TLS_HANDSHAKE] = {"tls_handshake", HTTP_TLS},
    [CAUSE_TLS_SERVER_CERTIFICATE] = {"tls_server_certificate", HTTP_TLS},
    [CAUSE_TLS_CLIENT_REFUSED] = {"tls_client_refused", HTTP_TLS},
    [CAUSE_DEADLINE] = {"deadline", HTTP_TIMEOUT},
    [CAUSE_IDLE] = {"idle", HTTP_TIMEOUT},
    [CAUSE_PROXY_DEADLINE] = {"proxy_deadline", HTTP_TIMEOUT},
    [CAUSE_BODY_LIMIT] = {"body_limit", HTTP_TOO_LARGE},
    [CAUSE_HEADERS_LIMIT] = {"headers_limit", HTTP_TOO_LARGE},
    [CAUSE_BUDGET] = {"budget", HTTP_MEMORY},
    [CAUSE_ALLOCATION] = {"allocation", HTTP_MEMORY},
    [CAUSE_NOT_HTTP] = {"not_http", HTTP_BROKEN},
    [CAUSE_ENCODING] = {"encoding", HTTP_BROKEN},
    [CAUSE_ENCODED_BODY] = {"encoded_body", HTTP_BROKEN},
    [CAUSE_TRANSFER] = {"transfer", HTTP_BROKEN},
    [CAUSE_LOCATION_SEVERAL] = {"location_several", HTTP_BROKEN},
    [CAUSE_LOCATION_INVALID] = {"location_invalid", HTTP_BROKEN},
    [CAUSE_REDIRECTS] = {"redirects", HTTP_BROKEN},
    [CAUSE_REDIRECT_URL] = {"redirect_url", HTTP_BROKEN},
    [CAUSE_ELSEWHERE] = {"elsewhere", HTTP_REDIRECT},
    [CAUSE_TOKEN] = {"token", HTTP_AUTH},
    [CAUSE_TOKEN_DEADLINE] = {"token_deadline", HTTP_AUTH},
};
_Static_assert(ARRAY_SIZE(causes) == CAUSES, "a cause has no row");

WORD_TABLE(http_error_word, enum http_error, HTTP_ERRORS,
           {[HTTP_OK] = "ok",
            [HTTP_URL] = "url",
            [HTTP_DNS] = "dns",
            [HTTP_CONNECT] = "connect",
            [HTTP_FORBIDDEN] = "forbidden",
            [HTTP_TLS] = "tls",
            [HTTP_TIMEOUT] = "timeout",
            [HTTP_TOO_LARGE] = "too_large",
            [HTTP_BROKEN] = "broken",
            [HTTP_REDIRECT] = "redirect",
            [HTTP_MEMORY] = "memory",
            [HTTP_AUTH] = "auth"});

enum http_error http_cause_class(enum http_cause cause)
{
    invariant(cause < CAUSES && causes[cause].word);
    return causes[cause].class;
}

const char *http_cause_word(enum http_cause cause)
{
    invariant(cause < CAUSES && causes[cause].word);
    return causes[cause].word;
}

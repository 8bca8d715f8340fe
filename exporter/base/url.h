/* Parsed URLs, and addresses. How URLs are checked and shown is in http.h. */
#ifndef DS_BASE_URL_H
#define DS_BASE_URL_H

#include <curl/curl.h>
#include <stdbool.h>
#include <sys/socket.h>

/* Has the password and the values of parameters that may be secret hidden in all text (secret.h). */
void url_secrets_used(const char *url);

/* "scheme://host:port" (RFC 6454) in lower case and with the port, from malloc; NULL without a host. */
char *url_origin_of(CURLU *u);
/* The origin of an http or https URL; an empty string for anything else, among it a URL with user
 * information, which makes one host look like another. */
char *url_origin(const char *url) __attribute__((malloc, returns_nonnull));

/* Whether the address is globally reachable (RFC 6890). */
bool address_is_public(const struct sockaddr *a);

static inline void cleanup_curl_url(CURLU **u)
{
    curl_url_cleanup(*u);
}

#endif

/* Results of comparisons that need not be repeated, by digest. Not locked. */
#ifndef DS_WEB_AUTH_CACHE_H
#define DS_WEB_AUTH_CACHE_H

#include "exporter/base/clock.h"
#include "exporter/base/digest.h"

#include <stdbool.h>

enum { AUTH_CACHE_GOOD = 256, AUTH_CACHE_BAD = 64, AUTH_CACHE_BAD_MS = 10 * 1000 };

struct auth_entry {
    char digest[DIGEST_TEXT_BYTES]; /* empty: free */
    mono_ms at;                     /* last use of a good one, time of a bad one */
};

/* Good results stay until AUTH_CACHE_GOOD newer ones have been used; bad ones AUTH_CACHE_BAD_MS or until as
 * many as AUTH_CACHE_BAD have come. Bad ones never displace good ones. */
struct auth_cache {
    struct auth_entry good[AUTH_CACHE_GOOD], bad[AUTH_CACHE_BAD];
};

/* False if the result is not known. */
bool auth_cache_get(struct auth_cache *c, const char *digest, mono_ms now, bool *ret_good);
void auth_cache_put(struct auth_cache *c, const char *digest, mono_ms now, bool good);

#endif

/* Where a redirect leads: within the origin that was asked, with its user, or nowhere. */
#include "exporter/base/def.h"
#include "exporter/http/http.h"
#include "exporter/http/redirect.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const asked[] = {"http://u:p@h.test/a/b?c", "https://127.0.0.1:8443/",
                                        "http://[::1]/"};

    for (size_t i = 0; i < ARRAY_SIZE(asked); i++) {
        CLEANUP(cleanup_curl_url_cleanup) CURLU *from = curl_url(), *to = NULL;
        CLEANUP(cleanup_free) char *here = NULL, *there = NULL;
        char why[REDIRECT_WHY_BYTES] = "";
        char *user = NULL;

        assert(curl_url_set(from, CURLUPART_URL, asked[i], 0) == CURLUE_OK);
        if (redirect_judge(&to, (struct str){(const char *)data, size}, from, why) != REDIRECT_FOLLOW) {
            assert(!to && *why);
            continue;
        }
        here = url_origin_of(from);
        there = url_origin_of(to);
        assert(here && there && strcmp(here, there) == 0);
        assert((curl_url_get(to, CURLUPART_USER, &user, 0) == CURLUE_OK) == (i == 0));
        assert(!user || strcmp(user, "u") == 0);
        curl_free(user);
    }
    return 0;
}

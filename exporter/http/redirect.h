/* Where a redirect leads (RFC 9110, sections 10.2.2 and 15.4). libcurl follows none: the client resolves each
 * Location here, and libcurl gets the result as a parsed URL, so that nobody reads the text a second time.
 *
 *     http://h/a + "b?c"            FOLLOW    http://h/b?c
 *     http://h/a + "https://h/"     ELSEWHERE another scheme, host or port
 *     http://h/a + "\x0bhttp://x/"  INVALID   some parsers trim what others refuse
 *
 * Pure; any thread. What it does not understand is INVALID: it never guesses. */
#pragma once

#include "exporter/base/buf.h"
#include "exporter/base/str.h"

#include <curl/curl.h>

enum redirect_verdict {
    REDIRECT_FOLLOW,
    REDIRECT_ELSEWHERE, /* another origin, for which neither series nor credentials are meant */
    REDIRECT_INVALID,   /* the Location cannot be understood */
};

/* Whether an answer of this status asks for another request of the same method. After a 303, anything but a
 * GET would become a GET without its body, so it is an answer like all other statuses. */
bool redirect_is_followed(long status, bool is_get);

/* Judges the value of a Location as it came, without the end of its line. `from` is the URL that was asked.
 * FOLLOW: *ret_url is the URL to ask, owned by the caller, with the user and password of `from` and none of
 * the Location. All others: appends to `why` a text for a person, without any part of the Location but its
 * origin. */
enum redirect_verdict redirect_judge(CURLU **ret_url, struct str location, CURLU *from, struct buf *why);

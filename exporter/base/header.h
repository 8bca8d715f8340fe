/* Headers of HTTP requests that users configure (RFC 9110, sections 5.1 and 5.5). */
#pragma once

#include "exporter/base/str.h"

enum { HEADER_VALUE_MAX = 4096 };

/* A token of at most 256 bytes. */
bool header_is_name(struct str s);
/* One line of 1 to HEADER_VALUE_MAX bytes, without control characters other than tabs. */
bool header_is_value(struct str s);
/* Whether the protocol, libcurl, or settings for credentials set it. In any case. */
bool header_is_reserved(struct str name);

/* resourceVersions, which order what happened to an object, or in a list, while the store's era lasts.
 * Pure. */
#pragma once

#include <stdbool.h>

/* Whether it is a decimal number: only these can be compared (KEP-5504). */
bool kube_version_is_number(const char *version);
/* Whether version a is newer than b, by number (KEP-5504); others are newer if they differ. */
bool kube_version_newer(const char *a, const char *b);

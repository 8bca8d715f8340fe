/* Compares what API servers say is opaque but, since KEP-5504, is a number. Owns nothing; any thread. */
#include "controller/kube/version.h"

#include <string.h>

bool kube_version_is_number(const char *version)
{
    return *version && version[strspn(version, "0123456789")] == '\0';
}

bool kube_version_newer(const char *a, const char *b)
{
    if (!kube_version_is_number(a) || !kube_version_is_number(b))
        return strcmp(a, b) != 0;
    return strverscmp(a + strspn(a, "0"), b + strspn(b, "0")) > 0;
}

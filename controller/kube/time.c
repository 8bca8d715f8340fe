/* Prints and reads times. Owns nothing; any thread. */
#include "controller/kube/time.h"

#include <string.h>
#include <time.h>

void kube_time_format(unix_ms t, char out[KUBE_TIME_BYTES])
{
    unix_ms_format(t, out);
    out[strcspn(out, ".")] = '\0';
    (void)memcpy(out + strlen(out), "Z", sizeof("Z"));
}

void kube_micro_time_format(unix_ms t, char out[KUBE_TIME_BYTES])
{
    unix_ms_format(t, out);
    (void)memcpy(out + strlen(out) - 1, "000Z", sizeof("000Z"));
}

unix_ms kube_time_parse(const char *text)
{
    struct tm tm = {0};
    const char *end = text ? strptime(text, "%Y-%m-%dT%H:%M:%S", &tm) : NULL;

    return (unix_ms){end ? (int64_t)timegm(&tm) * 1000 : 0};
}

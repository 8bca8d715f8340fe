/* Prints and reads times. Owns nothing; any thread. */
#include "controller/kube/time.h"

#include <ctype.h>
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

/* Two digits; -1 for anything else. */
static int time_read_two(const char *text)
{
    if (!isdigit((unsigned char)text[0]) || !isdigit((unsigned char)text[1]))
        return -1;
    return (text[0] - '0') * 10 + text[1] - '0';
}

/* The offset of a zone in seconds: "Z" or "+09:00" (RFC 3339, section 5.6). */
static bool time_read_zone(const char *text, int64_t *ret_s)
{
    int hours, minutes;

    *ret_s = 0;
    if (strcmp(text, "Z") == 0 || strcmp(text, "z") == 0)
        return true;
    if (strlen(text) != strlen("+09:00") || (text[0] != '+' && text[0] != '-') || text[3] != ':')
        return false;
    hours = time_read_two(text + 1);
    minutes = time_read_two(text + 4);
    if (hours < 0 || hours > 23 || minutes < 0 || minutes > 59)
        return false;
    *ret_s = (*text == '-' ? -1 : 1) * (int64_t)(hours * 3600 + minutes * 60);
    return true;
}

/* Moves behind ".042", if the text begins with that. False for a dot without digits. */
static bool time_skip_fraction(const char **text)
{
    size_t digits;

    if (**text != '.')
        return true;
    digits = strspn(*text + 1, "0123456789");
    *text += 1 + digits;
    return digits > 0;
}

/* API servers keep a time as it was written, and check only that it is RFC 3339: also in the zone of a
 * writer's machine. */
unix_ms kube_time_parse(const char *text)
{
    struct tm tm = {0};
    const char *end = text ? strptime(text, "%Y-%m-%d", &tm) : NULL;
    int64_t zone_s;

    if (!end || (*end != 'T' && *end != 't'))
        return (unix_ms){0};
    end = strptime(end + 1, "%H:%M:%S", &tm);
    if (!end || !time_skip_fraction(&end) || !time_read_zone(end, &zone_s))
        return (unix_ms){0};
    return (unix_ms){((int64_t)timegm(&tm) - zone_s) * 1000};
}

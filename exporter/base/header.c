/* Pure, any thread. */
#include "exporter/base/header.h"

bool header_is_name(struct str s)
{
    return s.n > 0 && s.n <= 256 && str_has_only(s, "!#$%&'*+-.^_`|~");
}

bool header_is_value(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (((unsigned char)s.p[i] < 0x20 && s.p[i] != '\t') || s.p[i] == 0x7f)
            return false;
    return s.n > 0 && s.n <= HEADER_VALUE_MAX;
}

bool header_is_reserved(struct str name)
{
    static const char *const reserved[] = {"Content-Type",
                                           "Content-Encoding",
                                           "Content-Length",
                                           "User-Agent",
                                           "Host",
                                           "Authorization",
                                           "Transfer-Encoding",
                                           "Connection",
                                           "Accept-Encoding",
                                           "Expect",
                                           "X-Prometheus-Remote-Write-Version",
                                           "X-VictoriaMetrics-Remote-Write-Version"};

    for (size_t i = 0; i < ARRAY_SIZE(reserved); i++)
        if (str_eq_nocase(name, str_of(reserved[i])))
            return true;
    return false;
}

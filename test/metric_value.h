/* A series of the program's own metrics, as /metrics shows it. */
#pragma once

#include "exporter/base/buf.h"
#include "exporter/metric/metrics.h"

#include <stdlib.h>
#include <string.h>

/* series: with its labels, in their order. 0 without it. */
static inline double metric_value(const struct metrics *m, const char *series)
{
    BUF_AUTO(text, 1 << 20);
    size_t n = strlen(series);

    metrics_render(m, &text);
    buf_putc(&text, '\0');
    if (buf_failed(&text) < 0)
        abort();
    for (const char *at = text.p; (at = strstr(at, series)); at += n)
        if ((at == text.p || at[-1] == '\n') && at[n] == ' ')
            return strtod(at + n, NULL);
    return 0;
}

#include "exporter/web/rate_limit.h"

bool rate_limit_take(struct rate_limit *l, mono_ms now)
{
    mono_ms from = mono_before(l->full_at, now) ? now : l->full_at;

    if (!l->interval_ms)
        return true;
    if (mono_diff(now, from) + l->interval_ms > l->burst * l->interval_ms)
        return false;
    l->full_at = mono_add(from, l->interval_ms);
    return true;
}

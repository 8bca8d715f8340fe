/* How long an AddOnPlacementScore is valid: never longer than the scorer's series live, and at most half of
 * the validity less, which saves writes. */
#ifndef DS_PLACEMENT_VALIDITY_H
#define DS_PLACEMENT_VALIDITY_H

#include <stdbool.h>
#include <stdint.h>

/* validUntil for scores that end at end_ms (Unix time) and live for life_ms. In whole seconds, as Kubernetes
 * writes times, unless that would take more than half of the validity. */
static inline int64_t validity_until(int64_t end_ms, int64_t life_ms)
{
    return life_ms < 2000 ? end_ms : end_ms - end_ms % 1000;
}

/* Whether validUntil must be written: `written` is on the hub, `wanted` is what it could be. */
static inline bool validity_is_due(int64_t written_ms, int64_t wanted_ms, int64_t life_ms, int64_t now_ms)
{
    return written_ms > wanted_ms || (written_ms < wanted_ms && written_ms - now_ms < life_ms / 2);
}

#endif

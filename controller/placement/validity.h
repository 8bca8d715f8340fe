/* validUntil of an AddOnPlacementScore: what it should be, and whether it must be written. Pure; any
 * thread. */
#pragma once

#include "exporter/base/clock.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* validUntil for scores that end at end_ms (Unix time) and live for life_ms: never longer than the scorer's
 * series live. In whole seconds, as Kubernetes writes times, unless that took more than half of the life. */
int64_t validity_until(int64_t end_ms, int64_t life_ms);

/* Whether validUntil must be written: `written` is on the hub, `wanted` is what it could be. Up to half of
 * the life may be missing, which saves writes. */
bool validity_is_due(int64_t written_ms, int64_t wanted_ms, int64_t life_ms, int64_t now_ms);

/* Whether `found` on the hub is what was `written`, in whole seconds: a program that writes an object back
 * may drop the fraction. A time that is later by up to half of the life is taken for another replica's,
 * whose rounds end at other moments: if both wrote theirs again, they would never end. The next renewal
 * replaces it. */
bool validity_matches(int64_t written_ms, int64_t found_ms, int64_t life_ms);

/* Whether the scores of an object on the hub are not valid any more. */
bool object_is_expired(const json_t *object, unix_ms now);

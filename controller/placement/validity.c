/* Owns nothing. Called by slot.c as it derives an object's state, and by placement.c for objects of others.
 * On the loop. */
#include "controller/placement/validity.h"

#include "controller/kube/json.h"
#include "controller/kube/time.h"

int64_t validity_until(int64_t end_ms, int64_t life_ms)
{
    return life_ms < 2000 ? end_ms : end_ms - end_ms % 1000;
}

bool validity_matches(int64_t written_ms, int64_t found_ms, int64_t life_ms)
{
    int64_t seconds = found_ms / 1000 - written_ms / 1000;

    return seconds >= 0 && seconds <= life_ms / 2000;
}

bool validity_is_due(int64_t written_ms, int64_t wanted_ms, int64_t life_ms, int64_t now_ms)
{
    return written_ms > wanted_ms || (written_ms < wanted_ms && written_ms - now_ms < life_ms / 2);
}

bool object_is_expired(const json_t *object, unix_ms now)
{
    return kube_time_parse(kube_str(object, "status", "validUntil", NULL)).ms <= now.ms;
}

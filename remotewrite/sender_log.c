/* The log lines of a sender, limited: a receiver that fails every other second costs one line a minute. */
#include "remotewrite/sender_internal.h"

#include "exporter/base/clock.h"
#include "exporter/base/log.h"
#include "exporter/base/loop.h"

enum { LOG_MS = 60 * 1000, FLAPPING_MS = 600 * 1000 };

static bool within(mono_ms now, mono_ms since, int64_t ms)
{
    return mono_before(now, mono_add(since, ms));
}

void sender_log_failure(struct sender *s, const char *text)
{
    mono_ms now = loop_now(s->o.loop);

    s->failing = true;
    s->failed_at = now;
    if (s->failing_logged_at.ms && within(now, s->failing_logged_at, LOG_MS))
        return;
    s->failing_logged = true;
    s->failing_logged_at = now;
    log_warn("sending samples failed, retrying", L_STR("remote_name", s->o.config->name),
             L_STR("url", s->o.config->url_shown), L_INT("failures", s->stats.failures), L_STR("err", text));
}

/* The first recovery is logged at once, others within ten minutes only after a minute without a failure. */
void sender_log_success(struct sender *s)
{
    mono_ms now = loop_now(s->o.loop);

    s->failing = false;
    if (!s->failing_logged || (s->recovered_logged && within(now, s->recovered_logged_at, FLAPPING_MS) &&
                               within(now, s->failed_at, LOG_MS)))
        return;
    s->failing_logged = false;
    s->recovered_logged = true;
    s->recovered_logged_at = now;
    log_info("sending samples works again", L_STR("remote_name", s->o.config->name),
             L_INT("failures", s->stats.failures));
}

void sender_reject(struct sender *s, uint32_t samples, const char *why)
{
    mono_ms now = loop_now(s->o.loop);

    s->rejected += samples;
    s->stats.failed += samples;
    s->dropped_unlogged += samples;
    if (s->dropped_unlogged == 0 || (s->dropped_logged && within(now, s->dropped_logged_at, LOG_MS)))
        return;
    log_error("samples rejected by the endpoint, dropped", L_STR("remote_name", s->o.config->name),
              L_INT("samples", s->dropped_unlogged), L_INT("timestamp_ms", s->record->last_ms),
              L_STR("err", why));
    s->dropped_logged = true;
    s->dropped_logged_at = now;
    s->dropped_unlogged = 0;
}

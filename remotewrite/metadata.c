#include "remotewrite/metadata.h"

#include "exporter/base/backoff.h"
#include "exporter/base/clock.h"
#include "exporter/base/log.h"
#include "remotewrite/body.h"
#include "remotewrite/verdict.h"

enum { RETRY_AFTER_MAX_MS = 3600 * 1000 };

static void metadata_log(const struct metadata *m, const char *what, const struct transport_answer *a)
{
    log_warn(what, L_STR("remote_name", m->config->name), L_INT("failures", m->failures),
             L_STR("err", a->text));
}

/* The specification asks for no more than for samples: 5xx, 429 and no response are retried. */
static void metadata_on_answer(void *arg, const struct transport_answer *a)
{
    const struct backoff backoff = {1000, 60 * 1000, RETRY_AFTER_MAX_MS};
    struct metadata *m = arg;
    enum rw_verdict v = verdict_of(a->error, a->status);
    int64_t wait_ms = m->config->metadata_interval_ms;

    m->in_flight = false;
    buf_done(&m->body);
    if (v == VERDICT_SENT) {
        m->stats.sent++;
        m->failures = 0;
    } else if (v == VERDICT_RETRY) {
        m->stats.retried++;
        if (m->failures++ == 0)
            metadata_log(m, "sending metadata failed, retrying", a);
        wait_ms = backoff_ms(&backoff, m->failures, a->retry_after_ms);
    } else {
        m->stats.failed++;
        if (m->failures++ == 0)
            metadata_log(m, "metadata rejected by the endpoint", a);
    }
    m->next_at = mono_add(loop_now(m->loop), wait_ms);
}

void metadata_tick(struct metadata *m, enum rw_form form)
{
    mono_ms now = loop_now(m->loop);
    char why[256] = "";

    if (!m->config->metadata_send || form == RW_FORM_V2 || m->in_flight || mono_before(now, m->next_at))
        return;
    m->next_at = mono_add(now, m->config->metadata_interval_ms);
    buf_init(&m->body, BODY_MAX);
    if (body_metadata(form, m->families, &m->body) < 0 || m->body.n == 0 ||
        m->transport->start(m->transport, form, buf_str(&m->body), metadata_on_answer, m, why) < 0) {
        buf_done(&m->body);
        return;
    }
    m->in_flight = true;
}

void metadata_done(struct metadata *m)
{
    if (m->in_flight)
        m->transport->cancel(m->transport);
    m->in_flight = false;
    buf_done(&m->body);
}

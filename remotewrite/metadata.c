#include "remotewrite/metadata.h"

#include "exporter/base/backoff.h"
#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/log.h"
#include "remote_v1.pb-c.h"
#include "remotewrite/body.h"
#include "remotewrite/config.h"

enum { RETRY_AFTER_MAX_MS = 3600 * 1000 };

void families_done(struct families *f)
{
    struct family *one;
    size_t at = 0;

    while ((one = map_next(&f->by_name, &at)))
        free(one);
    map_done(&f->by_name);
}

const struct family *families_find(const struct families *f, struct str name)
{
    char key[FAMILY_NAME_MAX + 1];

    if (name.n == 0 || name.n > FAMILY_NAME_MAX)
        return NULL;
    memcpy(key, name.p, name.n);
    key[name.n] = '\0';
    return map_get(&f->by_name, key);
}

static size_t stem_bytes(struct str name, const char *suffix)
{
    size_t n = strlen(suffix);
    bool ends = name.n > n && memcmp(name.p + name.n - n, suffix, n) == 0;

    return ends ? name.n - n : name.n;
}

void families_note(struct families *f, struct str name, const char *suffix, enum family_type type,
                   const char *help)
{
    const struct family *was = families_find(f, name);
    struct family *one;

    if (name.n == 0 || name.n > FAMILY_NAME_MAX || (was && was->type == type && was->help == help))
        return;
    if (was)
        free(map_take(&f->by_name, was->name));
    if (f->by_name.n >= FAMILIES_MAX)
        return;
    one = xcalloc(1, sizeof(*one) + name.n + 1);
    memcpy(one->name, name.p, name.n);
    one->type = type;
    one->help = help;
    one->stem_n = stem_bytes(name, suffix);
    map_set(&f->by_name, one->name, one);
}

/* Of a histogram's names, the one that ends with _count stands for the family. */
static bool family_is_listed(const struct family *f)
{
    return f->name[f->stem_n] == '\0' || strcmp(f->name + f->stem_n, "_count") == 0;
}

static int put_family(const struct family *f, struct buf *message)
{
    Rw__V1__MetricMetadata m = RW__V1__METRIC_METADATA__INIT, *place = &m;
    Rw__V1__WriteRequest rq = RW__V1__WRITE_REQUEST__INIT;
    char stem[FAMILY_NAME_MAX + 1], *room;
    int r;

    *(char *)mempcpy(stem, f->name, f->stem_n) = '\0';
    m.type = (Rw__V1__MetricMetadata__Type)f->type;
    m.metric_family_name = stem;
    m.help = (char *)(uintptr_t)f->help;
    rq.metadata = &place;
    rq.n_metadata = 1;
    r = buf_room(message, rw__v1__write_request__get_packed_size(&rq), &room);
    if (r == 0)
        message->n += rw__v1__write_request__pack(&rq, (uint8_t *)room);
    return r;
}

int metadata_body(enum rw_form form, const struct families *families, struct buf *into)
{
    BUF_AUTO(message, BODY_MAX);
    const struct family *f;
    size_t at = 0;
    int r = 0;

    while (r == 0 && (f = map_next(&families->by_name, &at)))
        if (family_is_listed(f))
            r = put_family(f, &message);
    return r < 0 || message.n == 0 ? r : body_put(form, buf_str(&message), NULL, into);
}

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
    enum rw_verdict v = transport_verdict(a);
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
    if (metadata_body(form, m->families, &m->body) < 0 || m->body.n == 0 ||
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

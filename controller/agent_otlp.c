#include "controller/agent_otlp.h"

#include "exporter/agent/config.h"
#include "exporter/base/clock.h"
#include "exporter/base/http.h"
#include "exporter/base/log.h"
#include "exporter/base/loop.h"
#include "exporter/otlp/series.h"
#include "exporter/otlp/translate.h"

#include <errno.h>

enum { TURN_MS = 1000, WARN_EVERY_MS = 60 * 1000 };

struct agent_otlp {
    struct agent_otlp_flags flags;
    struct loop *loop;
    struct store *store;
    struct agent *agent; /* while it receives */
    struct otlp *receiver;
    struct timer timer;
    int64_t shown_ms;          /* the time of the last request that the metrics show */
    mono_ms warn_at;           /* not before */
    uint64_t refused, evicted; /* at the last warning */
};

bool agent_otlp_parse_promoted(void *field, const char *value, const struct flag *f)
{
    struct otlp_promotion p = {0};

    (void)f;
    otlp_promote_k8s(&p);
    *(const char **)field = value;
    return otlp_promote(&p, str_of(value));
}

bool agent_otlp_parse_url(void *field, const char *value, const struct flag *f)
{
    (void)f;
    *(const char **)field = value;
    return http_is_url(str_of(value));
}

/* What a limit has cost since the last warning. */
static void otlp_warn(struct agent_otlp *x)
{
    struct store_stats s;

    if (mono_before(loop_now(x->loop), x->warn_at))
        return;
    store_stats(x->store, &s);
    if (s.series_refused == x->refused && s.samples_evicted == x->evicted)
        return;
    if (s.series_refused > x->refused)
        log_warn(
            "new OTLP series refused",
            L_STR("limit", s.series_limit_ms >= s.bytes_limit_ms ? "limits.otlpSeries" : "limits.otlpMemory"),
            L_INT("attempts", s.series_refused - x->refused), L_INT("series", s.series),
            L_INT("bytes", s.bytes));
    if (s.samples_evicted > x->evicted)
        log_warn("OTLP samples evicted before their time; queries that reach back to them fail",
                 L_STR("limit", "limits.otlpMemory"), L_INT("samples", s.samples_evicted - x->evicted),
                 L_INT("bytes", s.bytes));
    x->refused = s.series_refused;
    x->evicted = s.samples_evicted;
    x->warn_at = mono_add(loop_now(x->loop), WARN_EVERY_MS);
}

static void otlp_on_timer(struct timer *t)
{
    struct agent_otlp *x = CONTAINER_OF(t, struct agent_otlp, timer);
    struct otlp_status status;

    store_prune(x->store);
    otlp_warn(x);
    if (agent_otlp_status(x, &status) && status.last_ms != x->shown_ms) {
        x->shown_ms = status.last_ms;
        agent_touch(x->agent);
    }
    loop_timer_set(x->loop, t, mono_add(loop_now(x->loop), TURN_MS));
}

int agent_otlp_new(struct agent_otlp **ret, struct loop *loop, const struct agent_otlp_flags *f)
{
    struct agent_otlp *x;

    *ret = NULL;
    if (!f->listen)
        return 0;
    x = xcalloc(1, sizeof(*x));
    x->flags = *f;
    x->loop = loop;
    x->timer.fn = otlp_on_timer;
    x->store = store_new(&clock_system);
    loop_timer_set(loop, &x->timer, mono_add(loop_now(loop), TURN_MS));
    *ret = x;
    return 0;
}

struct agent_otlp *agent_otlp_free(struct agent_otlp *x)
{
    if (!x)
        return NULL;
    agent_otlp_stop(x, 0);
    loop_timer_clear(x->loop, &x->timer);
    x->store = store_free(x->store);
    free(x);
    return NULL;
}

struct store *agent_otlp_store(struct agent_otlp *x)
{
    return x ? x->store : NULL;
}

int agent_otlp_start(struct agent_otlp *x, struct agent *agent, const char *web_config_file, char **ret_why)
{
    const struct agent_state *a = agent_state(agent);
    struct otlp_options o;
    int r;

    if (!x)
        return 0;
    o = (struct otlp_options){.loop = x->loop,
                              .metrics = a->metrics,
                              .page = a->page,
                              .store = x->store,
                              .listen = x->flags.listen,
                              .config_file = web_config_file};
    if (x->flags.k8s_labels)
        otlp_promote_k8s(&o.promotion);
    (void)otlp_promote(&o.promotion, str_of(x->flags.promoted)); /* fits, as the flag was checked */
    r = otlp_start(&x->receiver, &o, ret_why);
    if (r < 0)
        return r;
    x->agent = agent;
    log_info("receiving OTLP metrics", L_STR("address", x->flags.listen));
    return 0;
}

void agent_otlp_stop(struct agent_otlp *x, int grace_ms)
{
    if (x)
        x->receiver = otlp_stop(x->receiver, grace_ms);
}

void agent_otlp_apply(struct agent_otlp *x, const struct config *c)
{
    if (x)
        store_set_limits(x->store, c->limits.otlp_bytes, (uint64_t)c->limits.otlp_series);
}

void agent_otlp_render(struct agent_otlp *x)
{
    if (x && x->receiver)
        otlp_render(x->receiver);
}

bool agent_otlp_status(struct agent_otlp *x, struct otlp_status *ret)
{
    if (!x || !x->receiver)
        return false;
    otlp_status(x->receiver, ret);
    return true;
}

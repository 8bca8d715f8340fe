/* When to ask what.
 *
 * A probe asks for health and configuration at once, or for the configuration alone. It ends with the last
 * answer; only then is the next one scheduled. Callbacks come last in every path, since they may change,
 * stop or free the probe. */
#include "controller/hub/probe/probe.h"

#include "controller/hub/probe/probe_internal.h"
#include "exporter/base/backoff.h"
#include "exporter/base/rand.h"

#include <errno.h>
#include <stdio.h>

enum {
    RETRY_MS = 1000,
    FAR_MS = 24 * 3600 * 1000,
    MAX_HEALTH_BYTES = 64 << 10,
};

static void probe_on_timer(struct timer *t);
static void probe_on_health(struct probe_ask *a, const struct probe_result *r,
                            const struct http_answer *answer);
static void probe_on_config(struct probe_ask *a, const struct probe_result *r,
                            const struct http_answer *answer);

int probe_new(struct probe **ret, const struct probe_env *env, const struct probe_callbacks *cb)
{
    struct probe *p = calloc(1, sizeof(*p));

    if (!p)
        return -ENOMEM;
    p->env = *env;
    p->cb = *cb;
    p->timer.fn = probe_on_timer;
    p->health = (struct probe_ask){
        .env = &p->env, .max_answer = MAX_HEALTH_BYTES, .cut_answer = true, .ended = probe_on_health};
    p->config = (struct probe_ask){.env = &p->env, .ended = probe_on_config};
    *ret = p;
    return 0;
}

struct probe *probe_free(struct probe *p)
{
    if (!p)
        return NULL;
    probe_stop(p);
    if (p->in_callback) {
        p->freed = true;
        return NULL;
    }
    for (size_t i = 0; i < PROBE_PARTS; i++)
        p->status.history[i] = history_free(p->status.history[i]);
    api_config_done(&p->status.synced);
    if (p->has_spec)
        scorer_spec_done(&p->spec);
    free(p->health_url);
    free(p);
    return NULL;
}

const struct probe_status *probe_status(const struct probe *p)
{
    return &p->status;
}

static void probe_forget_config(struct probe *p)
{
    api_config_done(&p->status.synced);
    p->status.synced = (struct api_config){0};
    p->status.config = (struct probe_part){0};
}

static bool probe_wants_health(const struct probe *p)
{
    return p->spec.health_check == HEALTH_CHECK_HUB;
}

void probe_resume(struct probe *p, enum probe_health health, struct api_config *synced)
{
    p->status.health = probe_wants_health(p) ? health : HEALTH_UNKNOWN;
    p->status.probe = p->status.config = (struct probe_part){0};
    p->successes = 0;
    p->is_provisional = false;
    if (!synced)
        return;
    api_config_done(&p->status.synced);
    p->status.synced = *synced;
    *synced = (struct api_config){0};
    if (p->has_spec && p->spec.mode == SYNC_NONE)
        probe_forget_config(p);
}

/* ---- The schedule ---- */

/* Cannot fail, as the timer is set or has just fired. */
static void probe_move_timer(struct probe *p, int64_t in_ms)
{
    int r = loop_timer_set(p->env.loop, &p->timer, mono_add(loop_now(p->env.loop), in_ms));

    (void)r;
}

static void probe_in(struct probe *p, int64_t ms)
{
    probe_move_timer(p, ms);
    p->status.next_ms = loop_wall(p->env.loop).ms + ms;
}

/* An API with a verdict is asked at a steady pace, so that its thresholds are also durations; one that
 * recovers need not wait. */
static int64_t health_pause(const struct probe *p)
{
    const struct probe_status *s = &p->status;
    int64_t interval = p->env.settings->interval_ms;

    if (!probe_wants_health(p))
        return interval;
    if ((s->health == HEALTH_UNKNOWN || p->is_provisional) && !s->probe.ok)
        return backoff_doubled_ms(s->probe.failures, RETRY_MS, interval);
    if (s->health == HEALTH_INACTIVE && s->probe.ok && RETRY_MS < interval)
        return RETRY_MS;
    return interval;
}

/* Plus or minus a tenth. */
static int64_t probe_jitter(int64_t ms, uint64_t permille)
{
    return ms - ms / 10 + (int64_t)((uint64_t)(ms / 5) * permille / 1000);
}

/* A configuration that failed may be retried before health is due. */
static void probe_schedule(struct probe *p)
{
    const struct probe_part *config = &p->status.config;
    mono_ms now = loop_now(p->env.loop);
    uint64_t permille = rand_below(1001); /* the same for both, so that they coincide where they can */
    int64_t ms, other;

    if (p->health_due)
        p->health_at = mono_add(now, probe_jitter(health_pause(p), permille));
    p->health_due = false;
    ms = p->health_at.ms - now.ms;
    if (p->unasked || (config->asked && !config->ok)) {
        unsigned nth = p->unasked ? p->unasked : config->failures;

        other = probe_jitter(backoff_doubled_ms(nth, RETRY_MS, p->env.settings->interval_ms), permille);
        ms = other < ms ? other : ms;
    }
    probe_in(p, ms > 0 ? ms : 0);
}

/* ---- Requests ---- */

static void probe_ask_health(struct probe *p)
{
    struct probe_result error;

    if (!p->health_url)
        probe_result_fail(&error, "InvalidURL", p->health_url_error);
    else if (probe_ask_start(&p->health, &error))
        return;
    probe_health_ended(p, &error);
}

static void probe_ask_config(struct probe *p)
{
    struct probe_result error;

    if (!p->spec.config_url)
        probe_result_fail(&error, "InvalidURL", "spec.configURL: required when spec.configSyncMode is Full");
    else if (!p->health_url)
        probe_result_fail(&error, "InvalidURL", p->health_url_error);
    else if (probe_ask_start(&p->config, &error))
        return;
    probe_config_ended(p, &error, NULL);
}

/* The parts as they are now, whatever callbacks do meanwhile. */
static void probe_call_back(struct probe *p)
{
    const struct probe_part parts[PROBE_PARTS] = {
        [PROBE_HEALTH] = p->status.probe, [PROBE_CONFIG] = p->status.config};
    const struct probe_callbacks cb = p->cb;
    bool ended[PROBE_PARTS];

    memcpy(ended, p->ended, sizeof(ended));
    memset(p->ended, 0, sizeof(p->ended));
    p->in_callback = true;
    for (unsigned i = 0; i < PROBE_PARTS && !p->freed; i++)
        if (ended[i] && cb.ended)
            cb.ended(cb.arg, (enum probe_what)i, &parts[i]);
    p->in_callback = false;
    if (p->freed)
        (void)probe_free(p);
}

/* Called last, whenever a request has ended. The probe may be gone afterwards. */
static void probe_settle(struct probe *p)
{
    if (p->no_healthz && !probe_ask_in_flight(&p->config))
        probe_health_from_config(p);
    if (!probe_ask_in_flight(&p->health) && !probe_ask_in_flight(&p->config))
        probe_schedule(p);
    probe_call_back(p);
}

/* There is no /healthz, or it needs credentials that are meant for configURL. */
static bool lacks_healthz(const struct http_answer *a)
{
    static const long statuses[] = {401, 403, 404, 405, 501};

    for (size_t i = 0; a->error == HTTP_OK && i < ARRAY_SIZE(statuses); i++)
        if (a->status == statuses[i])
            return true;
    return false;
}

static void probe_on_health(struct probe_ask *a, const struct probe_result *r,
                            const struct http_answer *answer)
{
    struct probe *p = CONTAINER_OF(a, struct probe, health);

    if (answer && lacks_healthz(answer)) {
        p->no_healthz = answer->status;
        if (p->spec.mode == SYNC_NONE && p->spec.config_url)
            probe_ask_config(p);
    } else if (!r->unasked) {
        probe_health_ended(p, r);
    }
    probe_settle(p);
}

static void probe_on_config(struct probe_ask *a, const struct probe_result *r,
                            const struct http_answer *answer)
{
    struct probe *p = CONTAINER_OF(a, struct probe, config);

    probe_config_ended(p, r, answer);
    probe_settle(p);
}

static void probe_on_timer(struct timer *t)
{
    struct probe *p = CONTAINER_OF(t, struct probe, timer);

    probe_move_timer(p, FAR_MS);
    p->status.next_ms = 0;
    if (!p->has_spec || (!probe_wants_health(p) && p->spec.mode == SYNC_NONE))
        return;
    p->has_config_answer = false;
    p->config_result = (struct probe_result){0};
    p->health_due = p->health_at.ms <= loop_now(p->env.loop).ms;
    if (p->spec.mode == SYNC_FULL)
        probe_ask_config(p);
    if (p->health_due && probe_wants_health(p))
        probe_ask_health(p);
    probe_settle(p);
}

static void probe_cancel(struct probe *p)
{
    probe_ask_cancel(&p->health);
    probe_ask_cancel(&p->config);
    p->no_healthz = 0;
}

int probe_start(struct probe *p)
{
    int r;

    if (p->running)
        return 0;
    r = loop_timer_set(p->env.loop, &p->timer, loop_now(p->env.loop));
    if (r < 0)
        return r;
    p->running = true;
    p->health_at = loop_now(p->env.loop);
    p->status.next_ms = loop_wall(p->env.loop).ms;
    return 0;
}

void probe_stop(struct probe *p)
{
    probe_cancel(p);
    loop_timer_clear(p->env.loop, &p->timer);
    p->running = false;
    p->status.next_ms = 0;
}

/* ---- A new spec ---- */

/* The API is another one. Clusters keep the scorer of a healthy API until the new one has a verdict:
 * removed now, it would be restored a moment later. */
static void probe_forget_health(struct probe *p)
{
    if (p->status.health == HEALTH_INACTIVE)
        p->status.health = HEALTH_UNKNOWN;
    p->status.probe = p->status.config = (struct probe_part){0};
    p->successes = 0;
    p->is_provisional = true;
}

/* Likewise for a scorer that was distributed whatever its health. */
static void probe_change_health_check(struct probe *p, const struct scorer_spec *spec)
{
    bool is_hub = spec->health_check == HEALTH_CHECK_HUB;

    if (probe_wants_health(p) == is_hub)
        return;
    p->status.health = is_hub ? HEALTH_ACTIVE : HEALTH_UNKNOWN;
    p->status.probe = (struct probe_part){0};
    p->successes = 0;
    p->is_provisional = is_hub;
}

static void probe_adopt(struct probe *p, const struct scorer_spec *spec, char *health_url)
{
    probe_change_health_check(p, spec);
    free(p->health_url);
    p->health_url = health_url;
    if (p->has_spec)
        scorer_spec_done(&p->spec);
    p->spec = scorer_spec_copy(spec);
    p->has_spec = true;
    p->health.url = health_url;
    p->config.url = p->spec.config_url;
    p->config.token = p->spec.config_token;
    p->health.tls_only = health_url && p->spec.config_url && strncmp(health_url, "https:", 6) == 0;
    p->health.token = p->health.tls_only ? p->spec.config_token : (struct token_ref){0};
    p->config.max_answer = spec->mode == SYNC_FULL ? API_CONFIG_MAX_BYTES : MAX_HEALTH_BYTES;
    p->config.cut_answer = spec->mode == SYNC_NONE;
    if (spec->mode == SYNC_NONE)
        probe_forget_config(p);
}

int probe_set(struct probe *p, const struct scorer_spec *spec)
{
    char *url = NULL;
    const char *url_error = NULL;
    bool first = !p->has_spec, other_api, same;
    int r = probe_health_url(spec, &url, &url_error);

    if (r < 0)
        return r;
    other_api = !first && (strcmp(cstr(p->spec.config_url), cstr(spec->config_url)) != 0 ||
                           strcmp(cstr(p->health_url), cstr(url)) != 0);
    /* After a failure any change may be the remedy. */
    same = !first && !other_api && p->status.config.failures == 0 && probe_same_spec(&p->spec, spec);
    p->health_url_error = url_error;
    probe_adopt(p, spec, url);
    if (other_api)
        probe_forget_health(p);
    if (same)
        return 0;
    probe_cancel(p);
    p->health_at = loop_now(p->env.loop);
    if (p->running)
        probe_in(p, 0);
    return 0;
}

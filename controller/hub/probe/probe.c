/* When to ask, and what the outcomes come to. How a part is asked is in probe_ask.c.
 *
 * A probe asks both parts at once, or the configuration alone, and ends when what it asked has ended; only then is the next one set.
 * Callbacks come last in every path, since they may change, stop or free the probe. */
#include "controller/hub/probe/probe_internal.h"

#include "controller/hub/rules/effective.h"
#include "exporter/base/backoff.h"
#include "exporter/base/clock.h"
#include "exporter/base/rand.h"

#include <errno.h>
#include <stdio.h>

enum { RETRY_MS = 1000, FAR_MS = 24 * 3600 * 1000 };

static void on_timer(struct timer *t);

int probe_new(struct probe **ret, const struct probe_env *env, const struct probe_callbacks *cb)
{
    struct probe *p = calloc(1, sizeof(*p));

    if (!p)
        return -ENOMEM;
    p->env = *env;
    p->cb = *cb;
    p->timer.fn = on_timer;
    *ret = p;
    return 0;
}

struct probe *probe_free(struct probe *p)
{
    if (!p)
        return NULL;
    probe_stop(p);
    if (p->telling) {
        p->dead = true;
        return NULL;
    }
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

static void forget_config(struct probe *p)
{
    api_config_done(&p->status.synced);
    p->status.synced = (struct api_config){0};
    p->status.config = (struct probe_part){0};
}

void probe_resume(struct probe *p, enum probe_health health, struct api_config *synced)
{
    p->status.health = health;
    p->status.probe = p->status.config = (struct probe_part){0};
    p->successes = 0;
    p->unjudged = false;
    if (!synced)
        return;
    api_config_done(&p->status.synced);
    p->status.synced = *synced;
    *synced = (struct api_config){0};
    if (p->has_spec && p->spec.mode == SYNC_NONE)
        forget_config(p);
}

/* ---- The schedule ---- */

/* The timer is set, or has just run: that it is set anew cannot fail. */
static void move_timer(struct probe *p, int64_t in_ms)
{
    int r = loop_timer_set(p->env.loop, &p->timer, mono_add(loop_now(p->env.loop), in_ms));

    (void)r;
}

static void probe_in(struct probe *p, int64_t ms)
{
    move_timer(p, ms);
    p->status.next_ms = loop_wall(p->env.loop).ms + ms;
}

/* Until health is asked next. An API that has a verdict is asked at an even pace, so that the threshold is a time as well; one that comes
 * back need not wait for that. */
static int64_t health_pause(const struct probe *p)
{
    const struct probe_status *s = &p->status;
    int64_t interval = p->env.settings->interval_ms;

    if ((s->health == HEALTH_UNKNOWN || p->unjudged) && !s->probe.ok)
        return backoff_doubled_ms(s->probe.failures, RETRY_MS, interval);
    if (s->health == HEALTH_INACTIVE && s->probe.ok && RETRY_MS < interval)
        return RETRY_MS;
    return interval;
}

/* Give or take a tenth. */
static int64_t jitter(int64_t ms, uint64_t permille)
{
    return ms - ms / 10 + (int64_t)((uint64_t)(ms / 5) * permille / 1000);
}

/* A configuration that failed may be asked for before health is. */
static void schedule(struct probe *p)
{
    const struct probe_part *config = &p->status.config;
    mono_ms now = loop_now(p->env.loop);
    uint64_t permille = rand_below(1001); /* one for both, so that they meet where they can */
    int64_t ms, other;

    if (p->health_due)
        p->health_at = mono_add(now, jitter(health_pause(p), permille));
    p->health_due = false;
    ms = p->health_at.ms - now.ms;
    if (config->asked && !config->ok) {
        other =
            jitter(backoff_doubled_ms(config->failures, RETRY_MS, p->env.settings->interval_ms), permille);
        ms = other < ms ? other : ms;
    }
    probe_in(p, ms > 0 ? ms : 0);
}

static void on_timer(struct timer *t)
{
    struct probe *p = CONTAINER_OF(t, struct probe, timer);

    move_timer(p, FAR_MS);
    p->status.next_ms = 0;
    if (!p->has_spec)
        return;
    p->answered = false;
    p->answer = (struct probe_result){0};
    p->health_due = p->health_at.ms <= loop_now(p->env.loop).ms;
    if (p->spec.mode == SYNC_FULL)
        probe_ask_config(p);
    if (p->health_due)
        probe_ask_health(p);
    probe_settle(p);
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

/* ---- What attempts come to ---- */

static void end_part(struct probe *p, enum probe_what what, const struct probe_result *r)
{
    struct probe_part *part = what == PROBE_HEALTH ? &p->status.probe : &p->status.config;

    part->asked = true;
    part->ok = r->ok;
    part->failures = r->ok ? 0 : part->failures + 1;
    (void)snprintf(part->reason, sizeof(part->reason), "%s", r->reason);
    memcpy(part->message, r->message, sizeof(part->message));
    part->seconds = r->seconds;
    part->at_ms = loop_wall(p->env.loop).ms;
    p->ended[what] = true;
}

void probe_config_ended(struct probe *p, const struct probe_result *r)
{
    end_part(p, PROBE_CONFIG, r);
}

void probe_health_ended(struct probe *p, const struct probe_result *r)
{
    const struct probe_settings *s = p->env.settings;
    enum probe_health *health = &p->status.health;

    end_part(p, PROBE_HEALTH, r);
    p->successes = r->ok ? p->successes + 1 : 0;
    if (p->status.probe.failures >= s->unhealthy_after)
        *health = HEALTH_INACTIVE;
    else if (p->successes >= s->healthy_after || (r->ok && *health == HEALTH_UNKNOWN))
        *health = HEALTH_ACTIVE;
    if (r->ok || *health == HEALTH_INACTIVE)
        p->unjudged = false;
}

/* What is told is as it was, whatever callbacks do meanwhile. */
static void tell(struct probe *p)
{
    const struct probe_part parts[PROBE_PARTS] = {
        [PROBE_HEALTH] = p->status.probe, [PROBE_CONFIG] = p->status.config};
    const struct probe_callbacks cb = p->cb;
    bool ended[PROBE_PARTS];

    memcpy(ended, p->ended, sizeof(ended));
    memset(p->ended, 0, sizeof(p->ended));
    p->telling = true;
    for (unsigned i = 0; i < PROBE_PARTS && !p->dead; i++)
        if (ended[i] && cb.ended)
            cb.ended(cb.arg, (enum probe_what)i, &parts[i]);
    p->telling = false;
    if (p->dead)
        (void)probe_free(p);
}

void probe_settle(struct probe *p)
{
    if (p->no_healthz && !probe_asks_config(p))
        probe_health_by_config(p);
    if (!p->health_call && !probe_asks_config(p))
        schedule(p);
    tell(p);
}

/* ---- What to ask ---- */

static bool same_str(const char *a, const char *b)
{
    return strcmp(cstr(a), cstr(b)) == 0;
}

static bool same_auth(const struct auth *a, const struct auth *b)
{
    return same_str(a->token.name, b->token.name) && same_str(a->token.key, b->token.key) &&
           (a->allowed_hosts == b->allowed_hosts || json_equal(a->allowed_hosts, b->allowed_hosts));
}

/* All that effective_refuses() may read. */
static bool same_rules(const struct api_config *a, const struct api_config *b)
{
    if (a->n_sources != b->n_sources || !same_str(a->scoring.host, b->scoring.host) ||
        !same_auth(&a->scoring.auth, &b->scoring.auth))
        return false;
    for (size_t i = 0; i < a->n_sources; i++)
        if (a->sources[i].kind != b->sources[i].kind || !same_str(a->sources[i].host, b->sources[i].host) ||
            !same_auth(&a->sources[i].auth, &b->sources[i].auth))
            return false;
    return true;
}

static bool same_spec(const struct scorer_spec *a, const struct scorer_spec *b)
{
    return a->mode == b->mode && same_str(a->config_token.name, b->config_token.name) &&
           same_str(a->config_token.key, b->config_token.key) && same_rules(&a->own, &b->own);
}

/* Of the URL whose host is the API's own. */
static int make_health_url(const struct scorer_spec *spec, char **ret, const char **why)
{
    const char *base = spec->config_url ? spec->config_url : spec->own.scoring.host;
    CLEANUP(cleanup_free) char *origin = NULL;
    int r = base ? url_origin(base, &origin) : 0;

    if (r < 0)
        return r;
    *why = !base              ? "there is neither spec.configURL nor spec.scoring.host"
           : spec->config_url ? "spec.configURL: expected an http or https URL, without a user"
                              : "spec.scoring.host: expected an http or https URL, without a user";
    if (!origin || !*origin)
        return 0;
    return asprintf(ret, "%s/healthz", origin) < 0 ? -ENOMEM : 0;
}

/* Another API. What clusters have of a healthy one stays with them until this one has been judged: taken away, it would be given back a
 * moment later. */
static void forget_health(struct probe *p)
{
    if (p->status.health == HEALTH_INACTIVE)
        p->status.health = HEALTH_UNKNOWN;
    p->status.probe = p->status.config = (struct probe_part){0};
    p->successes = 0;
    p->unjudged = true;
}

static void adopt(struct probe *p, const struct scorer_spec *spec, char *health_url)
{
    free(p->health_url);
    p->health_url = health_url;
    if (p->has_spec)
        scorer_spec_done(&p->spec);
    p->spec = scorer_spec_copy(spec);
    p->has_spec = true;
    if (spec->mode == SYNC_NONE)
        forget_config(p);
}

int probe_set(struct probe *p, const struct scorer_spec *spec)
{
    char *url = NULL;
    const char *no_url;
    bool first = !p->has_spec, other_api, same;
    int r = make_health_url(spec, &url, &no_url);

    if (r < 0)
        return r;
    other_api = !first && (!same_str(p->spec.config_url, spec->config_url) || !same_str(p->health_url, url));
    /* What was wrong with the configuration may have been the spec. */
    same = !first && !other_api && p->status.config.failures == 0 && same_spec(&p->spec, spec);
    p->no_url = no_url;
    adopt(p, spec, url);
    if (other_api)
        forget_health(p);
    if (same)
        return 0;
    probe_cancel(p);
    p->health_at = loop_now(p->env.loop);
    if (p->running)
        probe_in(p, 0);
    return 0;
}

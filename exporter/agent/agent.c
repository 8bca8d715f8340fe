/* Owns the active configuration, the scorers, the page and the program's metrics. */
#include "exporter/agent/agent_internal.h"

#include "exporter/agent/config.h"
#include "exporter/base/clock.h"
#include "exporter/base/http.h"
#include "exporter/base/log.h"
#include "exporter/base/loop.h"
#include "exporter/metric/metrics.h"
#include "exporter/metric/series.h"
#include "exporter/metric/version.h"
#include "exporter/score/secrets.h"

#include <errno.h>
#include <time.h>

enum { OWN_METRICS_MS = 250 }; /* the program's own metrics are rendered at most this often */

static size_t total_series(const struct agent *a)
{
    size_t n = 0;

    for (size_t i = 0; i < a->n_scorers; i++)
        if (a->scorers[i] && scorer_batch(a->scorers[i]))
            n += series_count(scorer_batch(a->scorers[i])->set);
    return n;
}

static size_t series_left(void *arg, const struct scorer *s)
{
    const struct agent *a = arg;
    const struct limits *l = &a->config->limits;
    const struct batch *own = scorer_batch(s);
    size_t others = total_series(a) - (own ? series_count(own->set) : 0);

    return size_min((size_t)l->series_per_scorer, (size_t)l->series - size_min((size_t)l->series, others));
}

void agent_render_own(struct agent *a)
{
    loop_timer_clear(a->loop, &a->own_timer);
    if (a->hooks.render)
        a->hooks.render(a->hooks.arg);
    metric_set(a->metrics, METRIC_SCORERS, LV_NONE, (double)a->n_scorers);
    metric_set(a->metrics, METRIC_TOTAL_SERIES, LV_NONE, (double)total_series(a));
    if (page_set_own(a->page, a->metrics) < 0)
        log_error("own metrics not rendered: out of memory");
    a->own_at = loop_now(a->loop);
    a->own_rendered = true;
}

static void on_own_timer(struct timer *t)
{
    agent_render_own(CONTAINER_OF(t, struct agent, own_timer));
}

void agent_touch(struct agent *a)
{
    mono_ms next = mono_add(a->own_at, OWN_METRICS_MS);

    if (!a->own_rendered || !mono_before(loop_now(a->loop), next))
        agent_render_own(a);
    else if (a->own_timer.place == 0 && loop_timer_set(a->loop, &a->own_timer, next) < 0)
        agent_render_own(a);
}

static void agent_publish(void *arg, struct scorer *s, struct batch *b)
{
    struct agent *a = arg;
    struct timespec t0, t1;

    (void)clock_gettime(CLOCK_MONOTONIC, &t0);
    for (size_t i = 0; i < a->n_sinks; i++)
        a->sinks[i]->ops->publish(a->sinks[i], b);
    (void)clock_gettime(CLOCK_MONOTONIC, &t1);
    metric_add(a->metrics, METRIC_SEND_SECONDS, LV(scorer_summary(s)->score_name),
               (double)(t1.tv_sec - t0.tv_sec) + (double)(t1.tv_nsec - t0.tv_nsec) / 1e9);
}

void agent_withdraw(void *arg, struct scorer *s)
{
    struct agent *a = arg;

    for (size_t i = 0; i < a->n_sinks; i++)
        a->sinks[i]->ops->withdraw(a->sinks[i], scorer_summary(s)->score_name, loop_wall(a->loop));
}

static void agent_round_ended(void *arg, struct scorer *s)
{
    struct agent *a = arg;

    if (a->hooks.round)
        a->hooks.round(a->hooks.arg, s);
    agent_touch(a);
    if (!a->options->once)
        return;
    for (size_t i = 0; i < a->n_scorers; i++)
        if (scorer_status(a->scorers[i])->rounds == 0)
            return;
    agent_render_own(a); /* the loop ends before the timer */
    loop_stop(a->loop);
}

int agent_new(struct agent **ret, struct loop *loop, const struct agent_options *o)
{
    CLEANUP(cleanup_agent_free) struct agent *a = calloc(1, sizeof(*a));
    int r;

    if (!a)
        return -ENOMEM;
    a->options = o;
    a->loop = loop;
    a->started_ms = loop_wall(loop).ms;
    a->own_timer.fn = on_own_timer;
    secret_files_init(&a->secrets, NULL);
    r = metrics_new(&a->metrics, METRIC_OWNER_LOOP);
    if (r == 0)
        r = http_new(&a->http, loop, ds_user_agent);
    if (r == 0)
        r = page_new(&a->page);
    if (r == 0)
        r = agent_add_sink(a, page_sink(a->page));
    if (r < 0)
        return r;
    metric_set(a->metrics, METRIC_BUILD_INFO, LV(ds_revision, ds_version), 1);
    a->source_env = (struct source_env){.loop = loop, .http = a->http, .secrets = &a->secrets.secrets};
    a->scorer_env = (struct scorer_env){
        .source = &a->source_env,
        .metrics = a->metrics,
        .series_left = series_left,
        .publish = agent_publish,
        .withdraw = agent_withdraw,
        .ended = agent_round_ended,
        .arg = a,
        .once = o->once,
    };
    *ret = TAKE_PTR(a);
    return 0;
}

static void free_scorers(struct scorer **list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        (void)scorer_free(list[i]);
    free(list);
}

struct agent *agent_free(struct agent *a)
{
    if (!a)
        return NULL;
    loop_timer_clear(a->loop, &a->own_timer);
    free_scorers(a->scorers, a->n_scorers);
    (void)page_free(a->page);
    (void)http_free(a->http);
    (void)metrics_free(a->metrics);
    (void)config_free(a->config);
    free(a->reload.problems);
    free(a->what);
    free(a);
    return NULL;
}

int agent_add_sink(struct agent *a, struct sink *s)
{
    if (a->n_sinks == AGENT_MAX_SINKS)
        return -ENOSPC;
    a->sinks[a->n_sinks++] = s;
    return 0;
}

const struct config *agent_config(const struct agent *a)
{
    return a->config;
}

void agent_set_hooks(struct agent *a, const struct agent_hooks *hooks)
{
    a->hooks = hooks ? *hooks : (struct agent_hooks){0};
    a->source_env.secrets = a->hooks.secrets ? a->hooks.secrets : &a->secrets.secrets;
}

void agent_wake(struct agent *a, const struct scorer *s)
{
    for (size_t i = 0; i < a->n_scorers; i++)
        if (a->scorers[i] == s)
            scorer_wake(a->scorers[i]);
}

const struct endpoint_status *agent_endpoints(const struct agent *a, size_t *ret_n)
{
    *ret_n = 0;
    return a->hooks.endpoints ? a->hooks.endpoints(a->hooks.arg, ret_n) : NULL;
}

struct page *agent_page(struct agent *a)
{
    return a->page;
}

struct metrics *agent_metrics(struct agent *a)
{
    return a->metrics;
}

struct loop *agent_loop(struct agent *a)
{
    return a->loop;
}

struct http *agent_http(struct agent *a)
{
    return a->http;
}

size_t agent_scorers(const struct agent *a)
{
    return a->n_scorers;
}

const struct scorer *agent_scorer(const struct agent *a, size_t i)
{
    return a->scorers[i];
}

const struct reload_status *agent_reload_status(const struct agent *a)
{
    return &a->reload;
}

const char *agent_config_file(const struct agent *a)
{
    return a->what ? a->what : cstr(a->options->config_file);
}

int64_t agent_started_ms(const struct agent *a)
{
    return a->started_ms;
}

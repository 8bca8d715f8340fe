/* Owns the active configuration, the scorers, the page and the program's metrics. */
#include "exporter/agent/agent_internal.h"

#include "exporter/agent/config.h"
#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/http.h"
#include "exporter/base/log.h"
#include "exporter/base/loop.h"
#include "exporter/base/worker.h"
#include "exporter/metric/metrics.h"
#include "exporter/metric/series.h"
#include "exporter/metric/version.h"
#include "exporter/score/secrets.h"

#include <errno.h>
#include <time.h>

/* New scores are shown on /metrics with the program's own metrics, which are rendered at once if that is
 * cheap: the pause between two renderings grows with their size, about 5 kB for each scorer, so that they
 * take some 5 % of a core. */
enum { OWN_BYTES_PER_MS = 8192, OWN_PAUSE_MAX_MS = 1000 };

static size_t total_series(const struct agent *a)
{
    size_t n = 0;

    for (size_t i = 0; i < a->state.n_scorers; i++)
        if (a->state.scorers[i] && scorer_batch(a->state.scorers[i]))
            n += series_count(scorer_batch(a->state.scorers[i])->set);
    return n;
}

static size_t series_left(void *arg, const struct scorer *s)
{
    const struct agent *a = arg;
    const struct limits *l = &a->state.config->limits;
    const struct batch *own = scorer_batch(s);
    size_t others = total_series(a) - (own ? series_count(own->set) : 0);

    return size_min((size_t)l->series_per_scorer, (size_t)l->series - size_min((size_t)l->series, others));
}

void agent_render_own(struct agent *a)
{
    uint64_t held, limit;

    loop_timer_clear(a->state.loop, &a->own_timer);
    if (a->state.hooks.render)
        a->state.hooks.render(a->state.hooks.arg);
    http_budget(a->state.http, &held, &limit);
    metric_set(a->state.metrics, METRIC_BODY_MEMORY, LV_NONE, (double)held);
    metric_set(a->state.metrics, METRIC_BODY_MEMORY_LIMIT, LV_NONE, (double)limit);
    if (a->state.config)
        metric_set(a->state.metrics, METRIC_LEADER, LV(a->state.config->cluster_name), a->state.leading);
    metric_set(a->state.metrics, METRIC_SCORERS, LV_NONE,
               a->state.config ? (double)a->state.config->summaries.n : 0);
    metric_set(a->state.metrics, METRIC_TOTAL_SERIES, LV_NONE, (double)total_series(a));
    if (page_set_own(a->state.page, a->state.metrics) < 0)
        log_error("own metrics not rendered: out of memory");
    a->own_at = loop_now(a->state.loop);
    a->own_rendered = true;
}

static void on_own_timer(struct timer *t)
{
    agent_render_own(CONTAINER_OF(t, struct agent, own_timer));
}

void agent_set_access(struct agent *a, const struct access *access)
{
    a->state.access = access;
}

void agent_touch(struct agent *a)
{
    size_t pause_ms = size_min(page_own_bytes(a->state.page) / OWN_BYTES_PER_MS, OWN_PAUSE_MAX_MS);
    mono_ms next = mono_add(a->own_at, (int64_t)pause_ms);

    if (!a->own_rendered || !mono_before(loop_now(a->state.loop), next))
        agent_render_own(a);
    else if (a->own_timer.place == 0 && loop_timer_set(a->state.loop, &a->own_timer, next) < 0)
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
    metric_add(a->state.metrics, METRIC_SEND_SECONDS, LV(scorer_summary(s)->score_name),
               (double)(t1.tv_sec - t0.tv_sec) + (double)(t1.tv_nsec - t0.tv_nsec) / 1e9);
}

void agent_withdraw(void *arg, struct scorer *s)
{
    struct agent *a = arg;

    for (size_t i = 0; i < a->n_sinks; i++)
        a->sinks[i]->ops->withdraw(a->sinks[i], scorer_summary(s)->score_name, loop_wall(a->state.loop));
}

static void agent_round_ended(void *arg, struct scorer *s)
{
    struct agent *a = arg;

    if (a->state.hooks.round)
        a->state.hooks.round(a->state.hooks.arg, s);
    agent_touch(a);
    if (!a->options->once)
        return;
    for (size_t i = 0; i < a->state.n_scorers; i++)
        if (scorer_status(a->state.scorers[i])->rounds == 0)
            return;
    agent_render_own(a); /* the loop ends before the timer */
    loop_stop(a->state.loop);
}

static void on_turn(void *arg, double seconds)
{
    metric_observe(((struct agent *)arg)->state.metrics, METRIC_LOOP_STALL, LV_NONE, seconds);
}

int agent_new(struct agent **ret, struct loop *loop, const struct agent_options *o)
{
    CLEANUP(cleanup_agent_free) struct agent *a = calloc(1, sizeof(*a));
    int r;

    if (!a)
        return -ENOMEM;
    a->options = o;
    a->state.loop = loop;
    a->state.leading = true;
    a->state.started_ms = loop_wall(loop).ms;
    a->state.config_origin = cstr(o->config_file);
    a->own_timer.fn = on_own_timer;
    secret_files_init(&a->secrets, NULL);
    r = metrics_new(&a->state.metrics, METRIC_OWNER_LOOP)
            ?: http_new(&a->state.http, loop, ds_user_agent)
            ?: worker_new(&a->worker, loop)
            ?: page_new(&a->state.page)
            ?: agent_add_sink(a, page_sink(a->state.page));
    if (r < 0)
        return r;
    metric_set(a->state.metrics, METRIC_BUILD_INFO, LV(ds_revision, ds_version), 1);
    a->source_env = (struct source_env){
        .loop = loop, .http = a->state.http, .secrets = &a->secrets.secrets, .worker = a->worker};
    loop_on_turn(loop, on_turn, a);
    a->scorer_env = (struct scorer_env){
        .source = &a->source_env,
        .metrics = a->state.metrics,
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
    loop_timer_clear(a->state.loop, &a->own_timer);
    free_scorers(a->state.scorers, a->state.n_scorers);
    loop_on_turn(a->state.loop, NULL, NULL);
    (void)worker_free(a->worker);
    (void)page_free(a->state.page);
    (void)http_free(a->state.http);
    (void)metrics_free(a->state.metrics);
    secrets_forget(&a->secrets.secrets);
    (void)config_free(a->state.config);
    free(a->state.reload.problems);
    free(a->text_name);
    buf_done(&a->piped);
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

bool agent_leads(const struct agent *a)
{
    const struct agent_hooks *h = &a->state.hooks;
    struct agent_election e;

    return a->state.leading && (!h->election || !h->election(h->arg, &e) || e.leading);
}

const struct agent_state *agent_state(const struct agent *a)
{
    return &a->state;
}

void agent_set_hooks(struct agent *a, const struct agent_hooks *hooks)
{
    a->state.hooks = hooks ? *hooks : (struct agent_hooks){0};
    a->source_env.secrets = a->state.hooks.secrets ? a->state.hooks.secrets : &a->secrets.secrets;
    a->source_env.tsdb = a->state.hooks.tsdb;
}

#include "controller/agent_otlp.h"

#include "exporter/agent/config.h"
#include "exporter/base/clock.h"
#include "exporter/base/log.h"
#include "exporter/base/loop.h"
#include "exporter/base/worker.h"
#include "exporter/metric/metrics.h"
#include "exporter/otlp/labels.h"
#include "exporter/tsdb/snapshot.h"
#include "exporter/tsdb/tsdb_metrics.h"

#include <errno.h>

enum { TURN_MS = 1000, WARN_EVERY_MS = 60 * 1000, SAVE_EVERY_MS = 5 * 60 * 1000 };

struct agent_otlp {
    struct agent_otlp_flags flags;
    struct loop *loop;
    struct tsdb *tsdb;
    struct agent *agent; /* while it receives */
    struct otlp *receiver;
    struct timer timer;
    int64_t shown_ms;          /* the time of the last request that the metrics show */
    mono_ms warn_at;           /* not before */
    uint64_t refused, evicted; /* at the last warning */
    struct worker *worker;     /* saves */
    struct job save;
    char *dir, *saving_dir; /* where to; NULL: nowhere. Of the configuration; of the save that is running */
    mono_ms save_at;
    bool saving;
    int saved; /* its result */
};

bool agent_otlp_parse_k8s(void *field, const char *value, const struct flag *f)
{
    bool on, known = flag_switch(&on, value, f);

    *(bool *)field = !on;
    return known;
}

bool agent_otlp_parse_promoted(void *field, const char *value, const struct flag *f)
{
    struct otlp_promotion p = {0};

    (void)f;
    otlp_promote_k8s(&p);
    *(const char **)field = value;
    return otlp_promote(&p, str_of(value));
}

/* What a limit has cost since the last warning. */
static void otlp_warn(struct agent_otlp *x)
{
    struct tsdb_stats s;

    if (mono_before(loop_now(x->loop), x->warn_at))
        return;
    tsdb_stats(x->tsdb, &s);
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

/* Worker thread. */
static void save_run(struct job *j)
{
    struct agent_otlp *x = CONTAINER_OF(j, struct agent_otlp, save);

    x->saved = snapshot_save(x->tsdb, x->saving_dir);
}

static void save_tell(struct agent_otlp *x, int r)
{
    if (r < 0)
        log_warn("cannot save OTLP series", L_STR("path", x->saving_dir), L_ERR(r));
    metric_add(agent_state(x->agent)->metrics, METRIC_OTLP_SAVES, LV(r < 0 ? "failure" : "success"), 1);
}

static void save_done(struct job *j)
{
    struct agent_otlp *x = CONTAINER_OF(j, struct agent_otlp, save);

    x->saving = false;
    save_tell(x, x->saved);
    x->saving_dir = (free(x->saving_dir), NULL);
}

static void otlp_save(struct agent_otlp *x)
{
    if (!x->dir || !x->receiver || x->saving || mono_before(loop_now(x->loop), x->save_at))
        return;
    x->save_at = mono_add(loop_now(x->loop), SAVE_EVERY_MS);
    x->saving_dir = strdup(x->dir);
    if (!x->saving_dir)
        return;
    x->saving = true;
    x->saved = -ECANCELED; /* if the program stops before it has begun */
    worker_start(x->worker, &x->save);
}

static void otlp_on_timer(struct timer *t)
{
    struct agent_otlp *x = CONTAINER_OF(t, struct agent_otlp, timer);
    struct otlp_status status;

    tsdb_prune(x->tsdb);
    otlp_warn(x);
    otlp_save(x);
    if (agent_otlp_status(x, &status) && status.last_ms != x->shown_ms) {
        x->shown_ms = status.last_ms;
        agent_touch(x->agent);
    }
    if (loop_timer_set(x->loop, t, mono_add(loop_now(x->loop), TURN_MS)) < 0)
        log_error("series received by OTLP are not pruned any more: out of memory");
}

int agent_otlp_new(struct agent_otlp **ret, struct loop *loop, const struct agent_otlp_flags *f)
{
    const struct tsdb_options options = {.clock = &clock_system,
                                         .max_bytes = limits_default.otlp_bytes,
                                         .max_series = (uint32_t)limits_default.otlp_series};
    CLEANUP(cleanup_agent_otlp_free) struct agent_otlp *x = NULL;
    int r;

    *ret = NULL;
    if (!f->listen)
        return 0;
    x = calloc(1, sizeof(*x));
    if (!x)
        return -ENOMEM;
    x->flags = *f;
    x->loop = loop;
    x->timer.fn = otlp_on_timer;
    x->save = (struct job){.run = save_run, .done = save_done};
    r = tsdb_new(&x->tsdb, &options) ?: worker_new(&x->worker, loop);
    r = r ?: loop_timer_set(loop, &x->timer, mono_add(loop_now(loop), TURN_MS));
    if (r < 0)
        return r;
    *ret = TAKE_PTR(x);
    return 0;
}

struct agent_otlp *agent_otlp_free(struct agent_otlp *x)
{
    if (!x)
        return NULL;
    agent_otlp_stop(x, 0);
    loop_timer_clear(x->loop, &x->timer);
    x->worker = worker_free(x->worker);
    x->tsdb = tsdb_free(x->tsdb);
    free(x->dir);
    free(x->saving_dir);
    free(x);
    return NULL;
}

struct tsdb *agent_otlp_tsdb(struct agent_otlp *x)
{
    return x ? x->tsdb : NULL;
}

/* What an earlier process has saved. */
static void otlp_load(struct agent_otlp *x)
{
    struct snapshot_loaded loaded = {0};
    int r = x->dir ? snapshot_load(x->tsdb, x->dir, &loaded) : 0;

    if (r < 0)
        log_warn("cannot load all saved OTLP series", L_STR("path", x->dir),
                 L_STR("err", r == -EBADMSG ? "the file is damaged or of another version" : strerror(-r)),
                 L_INT("series", loaded.series), L_INT("samples", loaded.samples));
    else if (loaded.series > 0)
        log_info("loaded saved OTLP series", L_STR("path", x->dir), L_INT("series", loaded.series),
                 L_INT("samples", loaded.samples));
    x->save_at = mono_add(loop_now(x->loop), SAVE_EVERY_MS);
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
                              .tsdb = x->tsdb,
                              .listen = x->flags.listen,
                              .config_file = web_config_file};
    if (!x->flags.without_k8s)
        otlp_promote_k8s(&o.promotion);
    (void)otlp_promote(&o.promotion, str_of(x->flags.promoted)); /* fits, as the flag was checked */
    otlp_load(x);
    r = otlp_start(&x->receiver, &o, ret_why);
    if (r < 0)
        return r;
    x->agent = agent;
    agent_touch(agent); /* the metrics of what was loaded */
    log_info("receiving OTLP metrics", L_STR("address", x->flags.listen));
    return 0;
}

void agent_otlp_stop(struct agent_otlp *x, int grace_ms)
{
    if (!x || !x->receiver)
        return;
    x->receiver = otlp_stop(x->receiver, grace_ms);
    x->worker = worker_free(x->worker); /* waits for a save */
    x->saving_dir = x->dir ? strdup(x->dir) : NULL;
    if (x->saving_dir)
        save_tell(x, snapshot_save(x->tsdb, x->saving_dir));
}

void agent_otlp_apply(struct agent_otlp *x, const struct config *c)
{
    if (!x)
        return;
    tsdb_set_limits(x->tsdb, c->limits.otlp_bytes, (uint32_t)c->limits.otlp_series);
    free(x->dir);
    x->dir = c->storage_path ? strdup(c->storage_path) : NULL;
}

void agent_otlp_render(struct agent_otlp *x)
{
    if (!x || !x->receiver)
        return;
    otlp_render(x->receiver);
    tsdb_set_metrics(x->tsdb, agent_state(x->agent)->metrics);
}

bool agent_otlp_status(struct agent_otlp *x, struct otlp_status *ret)
{
    if (!x || !x->receiver)
        return false;
    otlp_status(x->receiver, ret);
    return true;
}

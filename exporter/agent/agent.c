/* Owns the active configuration, the scorers, the page and the program's metrics. */
#include "exporter/agent/agent.h"

#include "exporter/agent/page_sink.h"
#include "exporter/base/alloc.h"
#include "exporter/base/arena.h"
#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/doc.h"
#include "exporter/base/invariant.h"
#include "exporter/metric/metrics.h"
#include "exporter/otlp/series.h"
#include "exporter/score/secret_files.h"
#include "exporter/score/source.h"
#include "exporter/score/summary.h"

#include <errno.h>
#include <time.h>

enum { AGENT_MAX_SINKS = 3 /* page, remote write, AddOnPlacementScore */ };

struct agent {
    const struct agent_options *options;
    struct agent_state state;
    struct secret_files secrets;
    struct worker *worker; /* reads large responses */
    struct source_env source_env;
    struct scorer_env scorer_env;
    struct page_sink page_sink;
    struct sink *sinks[AGENT_MAX_SINKS];
    size_t n_sinks;
    struct timer own_timer;
    mono_ms own_at;   /* last rendered */
    bool has_text;    /* the summaries are not those of the file */
    struct buf piped; /* the text of a file that is a pipe, which can be read only once */
    /* The newest ConfigMap, if it is not in force: its lists wait for a valid file, or are invalid. */
    struct config *waiting;   /* NULL: none does */
    const char *waiting_of;   /* "namespace/name"; NULL: from nowhere */
    char *configmap_problems; /* NULL: its lists are valid */
};

struct agent_totals agent_totals(const struct agent_state *a)
{
    struct agent_totals t = {0};

    for (size_t i = 0; i < a->n_scorers; i++) {
        if (!a->scorers[i]) /* the next list has taken it */
            continue;
        t.by_state[scorer_state(a->scorers[i])]++;
        t.series += scorer_series(a->scorers[i]);
    }
    return t;
}

bool agent_has_rounds_left(const struct agent_state *a)
{
    for (size_t i = 0; i < a->n_scorers; i++)
        if (a->scorers[i]->status.rounds == 0 && scorer_state(a->scorers[i]) != SCORER_SUSPENDED)
            return true;
    return false;
}

static size_t series_left(void *arg, const struct scorer *s)
{
    const struct agent *a = arg;
    const struct limits *l = &a->state.config->limits;
    size_t others = agent_totals(&a->state).series - scorer_series(s);

    return size_min((size_t)l->series_per_scorer, (size_t)l->series - size_min((size_t)l->series, others));
}

/* Renders the program's own metrics into the page now. */
static void agent_render_own(struct agent *a)
{
    uint64_t used, limit;
    int r;

    loop_timer_clear(a->state.loop, &a->own_timer);
    if (a->state.hooks.render)
        a->state.hooks.render(a->state.hooks.arg);
    http_budget(a->state.http, &used, &limit);
    metric_set(a->state.metrics, METRIC_BODY_MEMORY, LV_NONE, (double)used);
    metric_set(a->state.metrics, METRIC_BODY_MEMORY_LIMIT, LV_NONE, (double)limit);
    if (a->state.config)
        metric_set(a->state.metrics, METRIC_LEADER, LV(a->state.config->cluster_name), a->state.leading);
    metric_set(a->state.metrics, METRIC_SCORERS, LV_NONE,
               a->state.config ? (double)a->state.config->summaries.n : 0);
    metric_set(a->state.metrics, METRIC_TOTAL_SERIES, LV_NONE, (double)agent_totals(&a->state).series);
    r = page_set_own(a->state.page, a->state.metrics);
    if (r < 0)
        log_error("own metrics not rendered, the last ones stay", L_ERR(r));
    a->own_at = loop_now(a->state.loop);
}

/* Removes the scorer's scores from every sink. */
static void agent_withdraw(struct agent *a, const char *score_name)
{
    for (size_t i = 0; i < a->n_sinks; i++)
        if (a->sinks[i]->ops->withdrawn)
            a->sinks[i]->ops->withdrawn(a->sinks[i], score_name, loop_wall(a->state.loop));
}

/* ---- Configuration ----
 *
 * Read and checked, and applied as a whole or not at all. */

enum { PROBLEMS_MAX_BYTES = 1 << 20 };

static void apply_flags(struct config *c, const struct agent_options *o)
{
    c->cluster_name = o->cluster_name ?: c->cluster_name;
    c->secrets_dir = o->secrets_dir ?: c->secrets_dir;
    c->storage_path = o->storage_path ?: c->storage_path;
    if (o->n_listen) {
        c->n_listen = o->n_listen;
        memcpy(c->listen, o->listen, sizeof(c->listen));
    }
    if (o->log_level)
        c->log_level = *o->log_level;
    if (o->log_format)
        c->log_format = *o->log_format;
}

static const char *what_changed(const struct summary *was, const struct summary *want)
{
    if (want->suspended_since)
        return "scorer suspended, as the hub finds its scoring API unhealthy";
    if (was->suspended_since)
        return "scorer resumed";
    return "scorer changed";
}

static struct scorer *start_or_keep(struct agent *a, const struct summary *want)
{
    struct scorer *running = NULL;

    for (size_t i = 0; !running && i < a->state.n_scorers; i++)
        if (a->state.scorers[i] && strcmp(a->state.scorers[i]->summary.score_name, want->score_name) == 0)
            running = TAKE_PTR(a->state.scorers[i]);
    if (!running)
        return scorer_new(&a->scorer_env, want);
    if (!summary_same(&running->summary, want)) {
        log_info(what_changed(&running->summary, want), L_STR("score_name", want->score_name));
        scorer_change(running, want);
    }
    return running;
}

/* Stops the scorers that no start_or_keep() has claimed, and withdraws their scores. */
static void stop_unclaimed(struct agent *a)
{
    for (size_t i = 0; i < a->state.n_scorers; i++) {
        struct scorer *s = a->state.scorers[i];

        if (s && a->state.leading)
            log_info("scorer removed", L_STR("score_name", s->summary.score_name));
        if (s && s->batch)
            agent_withdraw(a, s->summary.score_name);
        a->state.scorers[i] = scorer_free(s);
    }
}

/* Starts the configuration's scorers if the agent leads; stops all others. */
static void apply_summaries(struct agent *a)
{
    static const struct summaries none;
    const struct config *c = a->state.config;
    struct scorer **list = xcalloc(c->summaries.n + 1, sizeof(struct scorer *));
    size_t n = 0;

    if (a->state.hooks.config)
        a->state.hooks.config(a->state.hooks.arg, c);
    for (; a->state.leading && n < c->summaries.n; n++)
        list[n] = start_or_keep(a, &c->summaries.list[n]);
    stop_unclaimed(a);
    free(a->state.scorers);
    a->state.scorers = list;
    a->state.n_scorers = n;
    for (size_t i = 0; i < a->n_sinks; i++)
        if (a->sinks[i]->ops->applied)
            a->sinks[i]->ops->applied(a->sinks[i], a->state.leading ? &c->summaries : &none,
                                      c->limits.stale_intervals);
}

void agent_set_leading(struct agent *a, bool leading)
{
    if (a->state.leading == leading)
        return;
    a->state.leading = leading;
    if (a->state.config)
        apply_summaries(a);
    agent_render_own(a);
}

/* What takes a restart stays as it runs, whatever the file says: so the status tells of what is in use, and
 * nothing that starts later uses the new value. */
static void keep_until_restart(struct config *now, const struct config *was)
{
    bool same = was->n_listen == now->n_listen;

    for (size_t i = 0; same && i < was->n_listen; i++)
        same = strcmp(was->listen[i], now->listen[i]) == 0;
    if (!same)
        log_warn("listenAddresses changed: restart to apply");
    if (strcmp(cstr(was->storage_path), cstr(now->storage_path)) != 0)
        log_warn("storagePath changed: restart to apply");
    now->n_listen = was->n_listen;
    for (size_t i = 0; i < was->n_listen; i++)
        now->listen[i] = arena_text(&now->arena, str_of(was->listen[i]));
    now->storage_path = was->storage_path ? arena_text(&now->arena, str_of(was->storage_path)) : NULL;
}

static void apply_config(struct agent *a, struct config *c)
{
    struct config *was = a->state.config;

    /* Every series carries the cluster's name, so none of them continues. */
    if (was && strcmp(was->cluster_name, c->cluster_name) != 0) {
        stop_unclaimed(a);
        metrics_forget(a->state.metrics, "ds_cluster", was->cluster_name);
    }
    if (was)
        keep_until_restart(c, was);
    a->state.config = c;
    a->secrets.dir = c->secrets_dir;
    a->source_env.max_answer = c->limits.response_bytes;
    http_set_budget(a->state.http, c->limits.memory_bytes);
    a->source_env.cluster_name = c->cluster_name;
    if (a->source_env.store)
        store_set_age(a->source_env.store, summaries_otlp_age(&c->summaries));
    a->scorer_env.limits = &c->limits;
    log_setup(c->log_level, c->log_format);
    apply_summaries(a);
    (void)config_free(was);
}

/* The file, or the defaults without one, and the flags over it. The text that a pipe gave stays its
 * configuration. */
static int load_options(struct agent *a, struct config **ret, struct problems *p)
{
    const struct agent_options *o = a->options;
    BUF_AUTO(text, CONFIG_MAX_BYTES);
    bool is_pipe = false, reads = o->config_file && !a->piped.n;
    int r = reads ? config_read(o->config_file, &text, &is_pipe, p) : 0;

    if (r == 0)
        r = config_parse(ret, !o->config_file ? STR("[]") : buf_str(reads ? &text : &a->piped), o->section,
                         p);
    if (r == 0 && is_pipe)
        a->piped = buf_take(&text);
    if (r == 0)
        apply_flags(*ret, o);
    if (r == 0 && !*cstr((*ret)->cluster_name)) {
        problems_add_field(p, &(struct doc_problem){.kind = PROBLEM_ERROR, .missing = true},
                           STR("clusterName"), STR("missing; set it or pass --cluster-name"));
        r = -EINVAL;
    }
    return r;
}

static void swap_summaries(struct config *a, struct config *b)
{
    struct summaries was = a->summaries;

    a->summaries = b->summaries;
    b->summaries = was;
}

/* Applies *c if r is 0, and reports the outcome to the caller, the log, the status page and the metrics. That
 * of a file does not end what is wrong with the ConfigMap. */
static int finish_reload(struct agent *a, int r, struct config **c, struct problems *p, struct buf *ret_why)
{
    struct reload_status *reload = &a->state.reload;
    BUF_AUTO(text, PROBLEMS_MAX_BYTES);

    problems_sort(p);
    problems_log(p);
    if (r == 0)
        apply_config(a, TAKE_PTR(*c));
    problems_print(p, &text);
    if (buf_failed(&text) < 0) { /* the log has them */
        log_debug("too many problems for the status page");
        buf_clear(&text);
    }
    if (ret_why)
        buf_put_str(ret_why, buf_str(&text));
    buf_puts(&text, cstr(a->configmap_problems));
    if (buf_failed(&text) < 0)
        buf_clear(&text);
    free(reload->problems);
    *reload = (struct reload_status){.ok = r == 0 && !a->configmap_problems,
                                     .at_ms = loop_wall(a->state.loop).ms,
                                     .problems = text.n ? str_dup(buf_str(&text)) : NULL};
    metric_add(a->state.metrics, METRIC_CONFIG_RELOADS, LV(r == 0 ? "success" : "failure"), 1);
    metric_set(a->state.metrics, METRIC_CONFIG_OK, LV_NONE, reload->ok);
    if (r == 0)
        metric_set(a->state.metrics, METRIC_CONFIG_TIME, LV_NONE, (double)reload->at_ms / 1000);
    agent_render_own(a); /* now: metrics of removed scorers go with their scores */
    if (r == 0)
        log_info("configuration applied", problems_origin(p), L_INT("scorers", a->state.config->summaries.n));
    else
        log_error(a->state.config ? "configuration rejected, the last valid one stays active"
                                  : "configuration rejected",
                  problems_origin(p), L_INT("errors", p->errors));
    if (r == 0 && a->configmap_problems)
        log_warn("the ConfigMap stays rejected, its last valid lists stay active");
    return r;
}

static void agent_forget_newest(struct agent *a)
{
    a->waiting = config_free(a->waiting);
    free(TAKE_PTR(a->configmap_problems));
}

/* Gives the file's configuration the summaries of the ConfigMap: the newest, if they have waited for it. */
static void agent_take_summaries(struct agent *a, struct config *c)
{
    if (a->waiting) {
        swap_summaries(c, a->waiting);
        a->state.configmap = a->waiting_of;
        a->has_text = true;
        a->waiting = config_free(a->waiting);
    } else if (a->has_text) {
        swap_summaries(c, a->state.config); /* which is about to go */
    }
}

int agent_reload(struct agent *a, struct buf *ret_why)
{
    CLEANUP(cleanup_config_free) struct config *c = NULL;
    CLEANUP(problems_done) struct problems p = {0};
    int r;

    problems_init(&p, a->options->config_file ? a->options->config_file : "flags");
    if (a->piped.n)
        log_warn("configuration not read again: the file is a pipe", L_STR("file", a->options->config_file));
    r = load_options(a, &c, &p);
    if (r == 0)
        agent_take_summaries(a, c);
    return finish_reload(a, r, &c, &p, ret_why);
}

/* p: without problems yet. configmap: where the lists are from; NULL: from nowhere. */
static int agent_apply_lists(struct agent *a, struct problems *p, const char *configmap, struct str summaries,
                             struct str suspended)
{
    CLEANUP(cleanup_config_free) struct config *listed = NULL, *listed_suspended = NULL, *c = NULL;
    CLEANUP(problems_done) struct problems base_problems = {0};
    int r;

    agent_forget_newest(a);
    problems_init(&base_problems, a->options->config_file ? a->options->config_file : "flags");
    if (str_eq(str_trim(summaries), STR("null"))) /* as Go writes an empty list */
        summaries = STR("[]");
    r = config_parse(&listed, summaries, a->options->section, p)
            ?: config_parse(&listed_suspended, suspended.n ? suspended : STR("[]"), a->options->section, p);
    if (r < 0) {
        r = finish_reload(a, r, &c, p, NULL);
        a->configmap_problems = xstrdup(cstr(a->state.reload.problems));
        return r;
    }
    summaries_append(&listed->summaries, &listed_suspended->summaries);
    a->waiting = TAKE_PTR(listed);
    a->waiting_of = configmap;
    /* What the file and the flags say besides the summaries. */
    r = load_options(a, &c, &base_problems);
    problems_log(&base_problems);
    if (r < 0)
        problems_add(p, PROBLEM_ERROR, 0, 0, "%s is invalid, see the log", base_problems.file);
    else
        agent_take_summaries(a, c);
    return finish_reload(a, r, &c, p, NULL);
}

int agent_apply_configmap(struct agent *a, const char *name, struct str summaries, struct str suspended)
{
    CLEANUP(problems_done) struct problems p = {0};

    problems_init_configmap(&p, name);
    return agent_apply_lists(a, &p, name, summaries, suspended);
}

int agent_apply_no_summaries(struct agent *a)
{
    CLEANUP(problems_done) struct problems p = {0};

    if (!*a->state.config_file)
        a->state.config_file = "flags";
    problems_init(&p, a->state.config_file);
    return agent_apply_lists(a, &p, NULL, STR("[]"), STR(""));
}

/* New scores are shown on /metrics with the program's own metrics, which are rendered at once if that is
 * cheap: the pause between two renderings grows with their size, about 5 kB for each scorer, so that they
 * take some 5 % of a core. */
enum { OWN_BYTES_PER_MS = 8192, OWN_PAUSE_MAX_MS = 1000 };

static void on_own_timer(struct timer *t)
{
    agent_render_own(CONTAINER_OF(t, struct agent, own_timer));
}

void agent_set_access(struct agent *a, struct access *access)
{
    a->state.access = access;
}

void agent_touch(struct agent *a)
{
    size_t pause_ms = size_min(page_own_bytes(a->state.page) / OWN_BYTES_PER_MS, OWN_PAUSE_MAX_MS);
    mono_ms next = mono_add(a->own_at, (int64_t)pause_ms);

    if (!mono_before(loop_now(a->state.loop), next))
        agent_render_own(a);
    else if (a->own_timer.place == 0)
        loop_timer_set(a->state.loop, &a->own_timer, next);
}

static void agent_scores_expired(void *arg, struct scorer *s)
{
    struct agent *a = arg;

    agent_withdraw(a, s->summary.score_name);
    agent_touch(a);
}

static void agent_round_ended(void *arg, struct scorer *s, const struct round_outcome *o)
{
    struct agent *a = arg;
    double began = clock_seconds();

    for (size_t i = 0; i < a->n_sinks; i++)
        if (a->sinks[i]->ops->round_ended)
            a->sinks[i]->ops->round_ended(a->sinks[i], s->summary.score_name, o);
    if (o->batch)
        metric_add(a->state.metrics, METRIC_SEND_SECONDS, LV(s->summary.score_name), clock_seconds() - began);
    agent_touch(a);
    if (!a->options->once || agent_has_rounds_left(&a->state))
        return;
    agent_render_own(a); /* the loop ends before the timer */
    loop_stop(a->state.loop);
}

static void on_turn(void *arg, double seconds)
{
    metric_observe(((struct agent *)arg)->state.metrics, METRIC_LOOP_STALL, LV_NONE, seconds);
}

DEFINE_CLEANUP(struct agent, agent_free)

int agent_new(struct agent **ret, struct loop *loop, const struct agent_options *o)
{
    CLEANUP(cleanup_agent_free) struct agent *a = xcalloc(1, sizeof(*a));
    int r;

    a->options = o;
    a->state.loop = loop;
    a->state.leading = true;
    a->state.started_ms = loop_wall(loop).ms;
    a->state.config_file = cstr(o->config_file);
    a->own_timer.fn = on_own_timer;
    secret_files_init(&a->secrets, NULL);
    a->state.metrics = metrics_new(METRIC_OWNER_LOOP);
    a->state.http = http_new(loop, ds_user_agent);
    a->state.page = page_new(true);
    r = worker_new(&a->worker, loop);
    if (r < 0)
        return r;
    page_sink_init(&a->page_sink, a->state.page);
    agent_add_sink(a, &a->page_sink.sink);
    metric_set(a->state.metrics, METRIC_BUILD_INFO, LV(ds_revision, ds_version), 1);
    a->source_env = (struct source_env){
        .loop = loop, .http = a->state.http, .secrets = &a->secrets.secrets, .worker = a->worker};
    loop_on_turn(loop, on_turn, a);
    a->scorer_env = (struct scorer_env){
        .source = &a->source_env,
        .metrics = a->state.metrics,
        .series_left = series_left,
        .ended = agent_round_ended,
        .expired = agent_scores_expired,
        .arg = a,
        .once = o->once,
    };
    *ret = TAKE_PTR(a);
    return 0;
}

struct agent *agent_free(struct agent *a)
{
    if (!a)
        return NULL;
    loop_timer_clear(a->state.loop, &a->own_timer);
    for (size_t i = 0; i < a->state.n_scorers; i++)
        (void)scorer_free(a->state.scorers[i]);
    free(a->state.scorers);
    loop_on_turn(a->state.loop, NULL, NULL);
    (void)worker_free(a->worker);
    (void)page_free(a->state.page);
    (void)http_free(a->state.http);
    (void)metrics_free(a->state.metrics);
    (void)config_free(a->state.config);
    free(a->state.reload.problems);
    agent_forget_newest(a);
    buf_done(&a->piped);
    free(a);
    return NULL;
}

void agent_add_sink(struct agent *a, struct sink *s)
{
    invariant(a->n_sinks < AGENT_MAX_SINKS);
    a->sinks[a->n_sinks++] = s;
}

struct batch *agent_next_batch(const struct agent *a, size_t *at)
{
    while (a->state.leading && *at < a->state.n_scorers) {
        const struct scorer *s = a->state.scorers[(*at)++];

        if (s && s->batch)
            return s->batch;
    }
    return NULL;
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
    a->source_env.store = a->state.hooks.store;
    a->source_env.otlp_url = a->state.hooks.otlp_url;
}

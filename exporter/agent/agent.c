/* Owns the configuration in force, the scorers, the page and the program's metrics. */
#include "exporter/agent/agent.h"

#include "exporter/metric/version.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

enum {
    MAX_SINKS = 8,
    OWN_METRICS_MS = 250, /* the program's own metrics are rendered at most this often */
    PROBLEMS_MAX_BYTES = 1 << 20,
};

struct agent {
    const struct agent_options *options;
    struct loop *loop;
    struct http *http;
    struct page *page;
    struct metrics *metrics;
    struct secret_files secrets;
    struct source_env source_env;
    struct scorer_env scorer_env;
    struct config *config;
    struct scorer **scorers; /* in the order of the configuration */
    size_t n_scorers;
    struct sink *sinks[MAX_SINKS];
    size_t n_sinks;
    struct timer own_timer;
    mono_ms own_at; /* last rendered */
    bool own_rendered;
    struct reload_status reload;
    int64_t started_ms;
    char *what; /* where the summaries come from, if not from the file */
    void (*applied_fn)(void *arg);
    void *applied_arg;
    void (*round_fn)(void *arg, const struct scorer *s);
    void *round_arg;
    void (*config_fn)(void *arg, const struct config *c);
    void *config_arg;
    void (*render_fn)(void *arg);
    void *render_arg;
    const struct endpoint_status *(*endpoints_fn)(void *arg, size_t *ret_n);
    void *endpoints_arg;
};

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

static void render_own(struct timer *t)
{
    struct agent *a = CONTAINER_OF(t, struct agent, own_timer);

    if (a->render_fn)
        a->render_fn(a->render_arg);
    metric_set(a->metrics, METRIC_SCORERS, LV_NONE, (double)a->n_scorers);
    metric_set(a->metrics, METRIC_TOTAL_SERIES, LV_NONE, (double)total_series(a));
    if (page_set_own(a->page, a->metrics) < 0)
        log_error("own metrics not renewed: out of memory");
    a->own_at = loop_now(a->loop);
    a->own_rendered = true;
}

/* The own metrics have changed: soon they show, at once when they were not rendered lately. */
static void own_changed(struct agent *a)
{
    mono_ms next = mono_add(a->own_at, OWN_METRICS_MS);

    if (!a->own_rendered || !mono_before(loop_now(a->loop), next))
        render_own(&a->own_timer);
    else if (a->own_timer.place == 0 && loop_timer_set(a->loop, &a->own_timer, next) < 0)
        render_own(&a->own_timer);
}

static void publish(void *arg, struct scorer *s, struct batch *b)
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

static void withdraw(void *arg, struct scorer *s)
{
    struct agent *a = arg;

    for (size_t i = 0; i < a->n_sinks; i++)
        a->sinks[i]->ops->withdraw(a->sinks[i], scorer_summary(s)->score_name, loop_wall(a->loop));
}

static void round_ended(void *arg, struct scorer *s)
{
    struct agent *a = arg;

    if (a->round_fn)
        a->round_fn(a->round_arg, s);
    own_changed(a);
    if (!a->options->once)
        return;
    for (size_t i = 0; i < a->n_scorers; i++)
        if (scorer_status(a->scorers[i])->rounds == 0)
            return;
    render_own(&a->own_timer); /* nobody waits for the timer */
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
    a->own_timer.fn = render_own;
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
        .publish = publish,
        .withdraw = withdraw,
        .ended = round_ended,
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
    if (a->n_sinks == MAX_SINKS)
        return -ENOSPC;
    a->sinks[a->n_sinks++] = s;
    return 0;
}

static int override_string(char **field, const char *flag)
{
    char *copy;

    if (!flag)
        return 0;
    copy = strdup(flag);
    if (!copy)
        return -ENOMEM;
    free(*field);
    *field = copy;
    return 0;
}

/* Flags win over the file. */
static int apply_flags(struct config *c, const struct agent_options *o)
{
    int r = override_string(&c->cluster_name, o->cluster_name);

    if (r == 0)
        r = override_string(&c->secrets_dir, o->secrets_dir);
    if (r == 0)
        r = override_string(&c->storage_path, o->storage_path);
    if (o->n_listen) {
        for (size_t i = 0; i < CONFIG_MAX_LISTEN; i++) {
            free(c->listen[i]);
            c->listen[i] = NULL;
        }
        c->n_listen = 0;
        for (size_t i = 0; r == 0 && i < o->n_listen; i++)
            r = override_string(&c->listen[c->n_listen++], o->listen[i]);
    }
    if (o->log_level)
        c->log_level = *o->log_level;
    if (o->log_format)
        c->log_format = *o->log_format;
    return r;
}

/* Takes the running scorer of this score name out of the old list; NULL when there is none. */
static struct scorer *take_running(struct agent *a, const char *score_name)
{
    for (size_t i = 0; i < a->n_scorers; i++)
        if (a->scorers[i] && strcmp(scorer_summary(a->scorers[i])->score_name, score_name) == 0)
            return TAKE_PTR(a->scorers[i]);
    return NULL;
}

static int start_or_keep(struct agent *a, const struct summary *want, struct scorer **ret)
{
    struct scorer *running = take_running(a, want->score_name);
    int r = 0;

    if (!running)
        return scorer_new(ret, &a->scorer_env, want);
    *ret = running;
    if (!summary_same(scorer_summary(running), want)) {
        log_info("scorer changed", L_STR("score_name", want->score_name));
        r = scorer_change(running, want);
    }
    return r;
}

/* Stops what the new configuration has not asked for; its scores go at once. */
static void stop_rest(struct agent *a)
{
    for (size_t i = 0; i < a->n_scorers; i++) {
        if (!a->scorers[i])
            continue;
        log_info("scorer removed", L_STR("score_name", scorer_summary(a->scorers[i])->score_name));
        if (scorer_batch(a->scorers[i]))
            withdraw(a, a->scorers[i]);
        a->scorers[i] = scorer_free(a->scorers[i]);
    }
}

/* Fills list, which becomes the agent's. A scorer that cannot be started for lack of memory is left out, and said so; the
 * others run. */
static void apply_summaries(struct agent *a, const struct summaries *want, struct scorer **list)
{
    size_t n = 0;

    for (size_t i = 0; i < want->n; i++) {
        int r = start_or_keep(a, &want->list[i], &list[n]);
        if (r < 0)
            log_error("scorer not started", L_STR("score_name", want->list[i].score_name), L_ERR(r));
        if (list[n])
            n++;
    }
    stop_rest(a);
    free(a->scorers);
    a->scorers = list;
    a->n_scorers = n;
}

static void warn_of_what_needs_a_restart(const struct config *was, const struct config *now)
{
    bool same = was->n_listen == now->n_listen;

    for (size_t i = 0; same && i < was->n_listen; i++)
        same = strcmp(was->listen[i], now->listen[i]) == 0;
    if (!same)
        log_warn("listenAddresses have changed: they take effect at the next start");
    if (strcmp(cstr(was->storage_path), cstr(now->storage_path)) != 0)
        log_warn("storagePath has changed: it takes effect at the next start");
}

/* Takes the configuration over. What can fail as a whole comes first: on -ENOMEM nothing has changed. */
static int apply(struct agent *a, struct config **config)
{
    struct scorer **list = calloc((*config)->summaries.n + 1, sizeof(struct scorer *));
    struct config *was = a->config, *c;

    if (!list)
        return -ENOMEM;
    c = TAKE_PTR(*config);

    /* Every series carries the cluster's name: with another one, all of them are others. */
    if (was && strcmp(cstr(was->cluster_name), cstr(c->cluster_name)) != 0)
        stop_rest(a);
    if (was)
        warn_of_what_needs_a_restart(was, c);
    a->config = c;
    a->secrets.dir = c->secrets_dir;
    a->source_env.max_answer = c->limits.response_bytes;
    a->scorer_env.cluster_name = c->cluster_name;
    a->scorer_env.limits = &c->limits;
    log_setup(c->log_level, c->log_format);
    if (a->config_fn)
        a->config_fn(a->config_arg, c);
    apply_summaries(a, &c->summaries, list);
    if (a->applied_fn)
        a->applied_fn(a->applied_arg);
    (void)config_free(was);
    return 0;
}

/* For the status page, the metrics and whoever asked. */
static void note_reload(struct agent *a, bool ok, const struct problems *p, struct buf *why)
{
    BUF_AUTO(text, PROBLEMS_MAX_BYTES);
    int r = problems_print(p, &text);

    if (r == 0 && why)
        r = buf_put_str(why, buf_str(&text));
    if (r < 0) /* they are in the log all the same */
        log_debug("problems not kept for the status page", L_ERR(r));
    free(a->reload.problems);
    a->reload = (struct reload_status){
        .ok = ok, .at_ms = loop_wall(a->loop).ms, .problems = text.n ? str_dup(buf_str(&text)) : NULL};
    metric_add(a->metrics, METRIC_CONFIG_RELOADS, LV(ok ? "success" : "failure"), 1);
    metric_set(a->metrics, METRIC_CONFIG_OK, LV_NONE, ok);
    if (ok)
        metric_set(a->metrics, METRIC_CONFIG_TIME, LV_NONE, (double)a->reload.at_ms / 1000);
    loop_timer_clear(a->loop, &a->own_timer);
    render_own(&a->own_timer); /* at once: metrics of removed scorers go with their scores */
}

static void log_problems(const struct problems *p)
{
    for (size_t i = 0; i < p->n; i++)
        LOG_AT(p->list[i].kind == PROBLEM_ERROR ? LOG_LEVEL_ERROR : LOG_LEVEL_WARN, "configuration",
               L_STR("file", p->file), L_INT("line", p->list[i].line), L_INT("column", p->list[i].column),
               L_STR("problem", p->list[i].text));
}

/* All but the summaries when those come from elsewhere. */
static int load_file(const struct agent *a, struct config **ret, struct problems *p)
{
    const struct agent_options *o = a->options;
    int r = o->config_file ? config_load(ret, o->config_file, o->sections, o->n_sections, p)
                           : config_parse(ret, STR("[]"), o->sections, o->n_sections, p);

    if (r == 0)
        r = apply_flags(*ret, o);
    if (r == 0 && (!(*ret)->cluster_name || !*(*ret)->cluster_name)) {
        problems_add(p, PROBLEM_ERROR, 0, 0,
                     "clusterName: expected the cluster's name, here or by --cluster-name");
        r = -EINVAL;
    }
    return r;
}

static int copy_summaries(struct summaries *ret, const struct summaries *from)
{
    CLEANUP(summaries_done) struct summaries s = {.list = calloc(from->n + 1, sizeof(*s.list))};

    if (!s.list)
        return -ENOMEM;
    for (; s.n < from->n; s.n++)
        if (summary_copy(&s.list[s.n], &from->list[s.n]) < 0)
            return -ENOMEM;
    *ret = s;
    s = (struct summaries){0};
    return 0;
}

/* Applies *c when r is 0, and tells how it went. */
static int conclude(struct agent *a, int r, struct config **c, struct problems *p, struct buf *ret_why)
{
    problems_sort(p);
    log_problems(p);
    if (r == 0)
        r = apply(a, c);
    note_reload(a, r == 0, p, ret_why);
    if (r == 0)
        log_info("configuration applied", L_STR("file", p->file), L_INT("scorers", a->n_scorers));
    else
        log_error(a->config ? "configuration refused, the one before stays in force"
                            : "configuration refused",
                  L_STR("file", p->file), L_ERR(r));
    return r;
}

int agent_reload(struct agent *a, struct buf *ret_why)
{
    CLEANUP(cleanup_config_free) struct config *c = NULL;
    CLEANUP(problems_done) struct problems p = {0};
    int r = problems_init(&p, a->options->config_file ? a->options->config_file : "flags");

    if (r < 0)
        return r;
    r = load_file(a, &c, &p);
    if (r == 0 && a->what) {
        summaries_done(&c->summaries);
        r = copy_summaries(&c->summaries, &a->config->summaries);
    }
    return conclude(a, r, &c, &p, ret_why);
}

/* The file was good at the start: if it is not any more, that must be mended before other things can change. */
static int load_around(struct agent *a, struct config **ret, struct config *text, struct problems *p)
{
    CLEANUP(problems_done) struct problems of_file = {0};
    int r = problems_init(&of_file, a->options->config_file ? a->options->config_file : "flags");

    if (r < 0)
        return r;
    r = load_file(a, ret, &of_file);
    log_problems(&of_file);
    if (r == -EINVAL)
        problems_add(p, PROBLEM_ERROR, 0, 0, "%s is broken, see the log", of_file.file);
    if (r < 0)
        return r;
    summaries_done(&(*ret)->summaries);
    (*ret)->summaries = text->summaries;
    text->summaries = (struct summaries){0};
    return 0;
}

int agent_apply_text(struct agent *a, const char *what, struct str text, struct buf *ret_why)
{
    CLEANUP(cleanup_config_free) struct config *of_text = NULL, *c = NULL;
    CLEANUP(problems_done) struct problems p = {0};
    CLEANUP(cleanup_free) char *copy = strdup(what);
    int r = copy ? problems_init(&p, what) : -ENOMEM;

    if (r < 0)
        return r;
    if (str_eq(str_trim(text), STR("null"))) /* as Go writes an empty list */
        text = STR("[]");
    r = config_parse(&of_text, text, a->options->sections, a->options->n_sections, &p);
    if (r == 0)
        r = load_around(a, &c, of_text, &p);
    r = conclude(a, r, &c, &p, ret_why);
    if (r == 0) {
        free(a->what);
        a->what = TAKE_PTR(copy);
    }
    return r;
}

const struct config *agent_config(const struct agent *a)
{
    return a->config;
}

void agent_on_config(struct agent *a, void (*fn)(void *arg, const struct config *c), void *arg)
{
    a->config_fn = fn;
    a->config_arg = arg;
}

void agent_on_applied(struct agent *a, void (*fn)(void *arg), void *arg)
{
    a->applied_fn = fn;
    a->applied_arg = arg;
}

void agent_on_round(struct agent *a, void (*fn)(void *arg, const struct scorer *s), void *arg)
{
    a->round_fn = fn;
    a->round_arg = arg;
}

void agent_set_secrets(struct agent *a, struct secrets *s)
{
    a->source_env.secrets = s ? s : &a->secrets.secrets;
}

void agent_wake(struct agent *a, const struct scorer *s)
{
    for (size_t i = 0; i < a->n_scorers; i++)
        if (a->scorers[i] == s)
            scorer_wake(a->scorers[i]);
}

void agent_on_render(struct agent *a, void (*fn)(void *arg), void *arg)
{
    a->render_fn = fn;
    a->render_arg = arg;
}

void agent_touch(struct agent *a)
{
    own_changed(a);
}

void agent_set_endpoints(struct agent *a, const struct endpoint_status *(*get)(void *arg, size_t *ret_n),
                         void *arg)
{
    a->endpoints_fn = get;
    a->endpoints_arg = arg;
}

const struct endpoint_status *agent_endpoints(const struct agent *a, size_t *ret_n)
{
    *ret_n = 0;
    return a->endpoints_fn ? a->endpoints_fn(a->endpoints_arg, ret_n) : NULL;
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

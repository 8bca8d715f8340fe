/* `dynamic-scoring agent`: the exporter. */
#include "controller/agent_kube.h"
#include "controller/commands.h"
#include "exporter/agent/status.h"
#include "exporter/agent/web.h"
#include "remotewrite/sink.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>

enum output { OUTPUT_TABLE, OUTPUT_JSON, OUTPUT_PROM };
enum { STOP_GRACE_MS = 5000, FLUSH_MS = 10000, OUTPUT_MAX_BYTES = 1 << 30 };

/* What the flags said. */
struct flagged {
    struct agent_options options;
    struct agent_kube_options kube;
    bool on_kubernetes;
    enum log_level log_level;
    enum log_format log_format;
    enum output output;
};

static const char *take_config(void *arg, const char *v)
{
    ((struct flagged *)arg)->options.config_file = v;
    return *v ? NULL : "a path";
}

static const char *take_cluster(void *arg, const char *v)
{
    ((struct flagged *)arg)->options.cluster_name = v;
    return *v ? NULL : "a name";
}

static const char *take_listen(void *arg, const char *v)
{
    struct agent_options *o = &((struct flagged *)arg)->options;

    if (o->n_listen == CONFIG_MAX_LISTEN)
        return "at most 16 addresses";
    o->listen[o->n_listen++] = v;
    return strrchr(v, ':') ? NULL : "host:port or :port";
}

static const char *take_secrets(void *arg, const char *v)
{
    ((struct flagged *)arg)->options.secrets_dir = v;
    return *v ? NULL : "a folder";
}

static const char *take_storage(void *arg, const char *v)
{
    ((struct flagged *)arg)->options.storage_path = v;
    return *v ? NULL : "a folder";
}

static const char *take_level(void *arg, const char *v)
{
    struct flagged *f = arg;

    f->options.log_level = &f->log_level;
    return log_level_parse(str_of(v), &f->log_level) ? NULL : "debug, info, warn or error";
}

static const char *take_format(void *arg, const char *v)
{
    struct flagged *f = arg;

    f->options.log_format = &f->log_format;
    return log_format_parse(str_of(v), &f->log_format) ? NULL : "logfmt or json";
}

static const char *take_once(void *arg, const char *v)
{
    ((struct flagged *)arg)->options.once = flag_on(v);
    return NULL;
}

static const char *take_output(void *arg, const char *v)
{
    static const char *const words[] = {
        [OUTPUT_TABLE] = "table", [OUTPUT_JSON] = "json", [OUTPUT_PROM] = "prom"};

    for (size_t i = 0; i < ARRAY_SIZE(words); i++)
        if (strcmp(v, words[i]) == 0) {
            ((struct flagged *)arg)->output = (enum output)i;
            return NULL;
        }
    return "table, json or prom";
}

static const char *take_hub(void *arg, const char *v)
{
    ((struct flagged *)arg)->kube.hub_kubeconfig = v;
    return *v ? NULL : "a path";
}

static const char *take_managed(void *arg, const char *v)
{
    ((struct flagged *)arg)->kube.managed_kubeconfig = v;
    return *v ? NULL : "a path";
}

static const char *take_namespace(void *arg, const char *v)
{
    ((struct flagged *)arg)->kube.addon_namespace = v;
    return *v ? NULL : "a name";
}

static const char *take_addon(void *arg, const char *v)
{
    ((struct flagged *)arg)->kube.addon_name = v;
    return *v ? NULL : "a name";
}

static const char *take_configmap(void *arg, const char *v)
{
    const char *slash = strchr(v, '/');

    ((struct flagged *)arg)->kube.configmap = v;
    return *v && slash != v && !(slash && (slash[1] == '\0' || strchr(slash + 1, '/'))) ? NULL
                                                                                        : "[NAMESPACE/]NAME";
}

static const struct flag flags[] = {
    {"config.file", "FILE", "Configuration: YAML or JSON, an object or a bare list of summaries.",
     take_config},
    {"cluster-name", "NAME",
     "Name of the cluster: the ds_cluster label, the namespace on the hub. Wins over the file.",
     take_cluster},
    {"hub-kubeconfig", "FILE",
     "Write AddOnPlacementScores to this hub. The environment's HUB_KUBECONFIG counts too, as do "
     "CLUSTER_NAME and "
     "INSTALL_NAMESPACE.",
     take_hub},
    {"managed-kubeconfig", "FILE", "The agent's own cluster. By default that of its pod.", take_managed},
    {"addon-namespace", "NAMESPACE",
     "Where the agent runs: its ConfigMaps and Secrets. By default that of the credentials.", take_namespace},
    {"addon-name", "NAME", "Name of the add-on. Agents of another name leave each other's scores alone.",
     take_addon},
    {"config.configmap", "[NAMESPACE/]NAME",
     "ConfigMap with the summaries. Default dynamic-scoring-config. They take the place of the file's.",
     take_configmap},
    {"web.listen-address", "ADDRESS", "Where to serve; may be repeated. Default :8080. Wins over the file.",
     take_listen},
    {"secrets.dir", "DIR", "Where named Secrets are: files DIR/NAME/KEY, read anew for each round.",
     take_secrets},
    {"storage.path", "DIR", "Where the agent may keep files over a restart.", take_storage},
    {"log.level", "LEVEL", "debug, info, warn or error. Default info.", take_level},
    {"log.format", "FORMAT", "logfmt or json. Default logfmt.", take_format},
    {"once", NULL, "Run each scorer once, print what came of it, exit with 1 if any failed.", take_once},
    {"output", "FORMAT", "With --once: table, json or prom. Default table.", take_output},
    {NULL, NULL, NULL, NULL},
};

/* Signals arrive as events of the loop. */
struct signals {
    struct watch watch;
    struct agent *agent;
};

static void got_signal(struct watch *w)
{
    struct signals *s = CONTAINER_OF(w, struct signals, watch);
    struct signalfd_siginfo info;

    while (read(w->fd, &info, sizeof(info)) == sizeof(info)) {
        if (info.ssi_signo == SIGHUP) {
            if (agent_reload(s->agent, NULL) < 0)
                log_debug("reload by SIGHUP failed");
        } else {
            log_info("stopping", L_STR("signal", strsignal((int)info.ssi_signo)));
            loop_stop(agent_loop(s->agent));
        }
    }
}

/* Blocked before any thread starts, so that all of them leave the signals to the loop. */
static int watch_signals(struct signals *s, struct agent *a)
{
    sigset_t set;

    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGHUP);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGTERM);
    if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
        return -errno;
    *s = (struct signals){.watch = {.fn = got_signal}, .agent = a};
    s->watch.fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    if (s->watch.fd < 0)
        return -errno;
    loop_watch_add(agent_loop(a), &s->watch);
    return 0;
}

static void unwatch_signals(struct signals *s)
{
    loop_watch_remove(agent_loop(s->agent), &s->watch);
    (void)close(s->watch.fd);
}

static unsigned terminal_width(void)
{
    struct winsize w;

    return isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 ? w.ws_col : 0;
}

static int print_once(struct agent *a, enum output output)
{
    BUF_AUTO(text, OUTPUT_MAX_BYTES);
    int r = output == OUTPUT_JSON   ? status_json(a, &text)
            : output == OUTPUT_PROM ? page_print(agent_page(a), &text)
                                    : status_table(a, terminal_width(), &text);

    if (r < 0) {
        (void)fprintf(stderr, "cannot print: %s\n", strerror(-r));
        return 1;
    }
    if (fwrite(text.p, 1, text.n, stdout) != text.n || fflush(stdout) != 0) {
        (void)fprintf(stderr, "cannot print: %s\n", strerror(errno));
        return 1;
    }
    for (size_t i = 0; i < agent_scorers(a); i++)
        if (scorer_status(agent_scorer(a, i))->rounds == 0 ||
            scorer_status(agent_scorer(a, i))->error != ROUND_OK)
            return 1;
    return 0;
}

static int run_once(struct agent *a, enum output output)
{
    if (agent_scorers(a) && loop_run(agent_loop(a)) < 0)
        return 1;
    return print_once(a, output);
}

static int serve(struct agent *a)
{
    CLEANUP(cleanup_free) char *why = NULL;
    struct web *web;
    int r = web_start(&web, a, &why);

    if (r < 0) {
        log_error("cannot serve", L_STR("err", why ? why : strerror(-r)));
        return 1;
    }
    for (size_t i = 0; i < agent_config(a)->n_listen; i++)
        log_info("serving", L_STR("address", agent_config(a)->listen[i]));
    r = loop_run(agent_loop(a));
    (void)web_stop(web, STOP_GRACE_MS);
    if (r < 0)
        log_error("the event loop failed", L_ERR(r));
    else
        log_info("stopped");
    return r < 0;
}

/* The agent with what it works for; either may be NULL. */
struct running {
    struct rw_sink *remote_write;
    struct agent_kube *kube;
};

static void hook_config(void *arg, const struct config *c)
{
    const struct running *running = arg;

    if (running->remote_write)
        rw_sink_apply(running->remote_write, c->sections[0], c->storage_path);
}

static void hook_applied(void *arg)
{
    const struct running *running = arg;

    if (running->kube)
        agent_kube_applied(running->kube);
}

static void hook_round(void *arg, const struct scorer *s)
{
    const struct running *running = arg;

    if (running->kube)
        agent_kube_round(running->kube, s);
}

static void hook_render(void *arg)
{
    const struct running *running = arg;

    if (running->remote_write)
        rw_sink_refresh(running->remote_write);
}

static const struct endpoint_status *hook_endpoints(void *arg, size_t *ret_n)
{
    const struct running *running = arg;

    return running->remote_write ? rw_sink_endpoints(running->remote_write, ret_n) : NULL;
}

static void set_hooks(struct agent *a, struct running *running)
{
    const struct agent_hooks hooks = {
        .config = hook_config,
        .applied = hook_applied,
        .round = hook_round,
        .render = hook_render,
        .endpoints = hook_endpoints,
        .arg = running,
        .secrets = running->kube ? agent_kube_secrets(running->kube) : NULL,
    };

    agent_set_hooks(a, &hooks);
}

static void stop(struct agent *a, struct running *running)
{
    if (a)
        agent_set_hooks(a, NULL);
    running->kube = agent_kube_free(running->kube);
    running->remote_write = rw_sink_stop(running->remote_write, FLUSH_MS);
}

static int run_agent(struct flagged *f)
{
    CLEANUP(cleanup_loop_free) struct loop *loop = NULL;
    CLEANUP(cleanup_agent_free) struct agent *a = NULL;
    struct running running = {0};
    struct signals signals;
    int status = 1, r = loop_new(&loop, &clock_system);

    f->options.sections = &rw_config_section;
    f->options.n_sections = 1;
    if (r == 0)
        r = agent_new(&a, loop, &f->options);
    if (r == 0)
        r = watch_signals(&signals, a);
    /* With --once nothing is sent: the series of a single round would end at once with stale markers. */
    if (r == 0 && !f->options.once)
        r = rw_sink_new(&running.remote_write, a);
    if (r == 0 && f->on_kubernetes)
        r = agent_kube_new(&running.kube, a, &f->kube, !f->options.secrets_dir);
    if (r < 0) {
        log_error("cannot start", L_ERR(r));
        stop(a, &running);
        return 1;
    }
    set_hooks(a, &running);
    if ((running.kube ? agent_kube_start(running.kube) : agent_reload(a, NULL)) == 0)
        status = f->options.once ? run_once(a, f->output) : serve(a);
    stop(a, &running);
    unwatch_signals(&signals);
    return status;
}

/* NULL, or what is missing. A single round is looked at where it is run: it needs no Kubernetes. */
static const char *complete(struct flagged *f)
{
    f->kube.cluster_name = f->options.cluster_name;
    f->on_kubernetes = !f->options.once && agent_kube_options_complete(&f->kube);
    if (f->on_kubernetes)
        f->options.cluster_name = f->kube.cluster_name;
    if (!f->options.config_file && !(f->on_kubernetes && agent_kube_has_cluster(&f->kube)))
        return "expected --config.file=FILE";
    if (f->on_kubernetes && f->kube.hub_kubeconfig && !f->kube.cluster_name)
        return "expected --cluster-name=NAME beside --hub-kubeconfig";
    return NULL;
}

static int run(int argc, char **argv)
{
    CLEANUP(cleanup_free) const char **rest = calloc((size_t)argc, sizeof(*rest));
    struct flagged f = {.log_level = LOG_LEVEL_INFO};
    int n = rest ? flags_parse(&command_agent, argc, argv, &f, rest) : -1;
    const char *wrong;

    if (n == -2)
        return 0;
    if (n < 0)
        return EXIT_USAGE;
    wrong = n > 0 ? "unexpected argument: " : complete(&f);
    if (wrong) {
        (void)fprintf(stderr, "dynamic-scoring agent: %s%s\nTry 'dynamic-scoring agent --help'.\n", wrong,
                      n > 0 ? rest[0] : "");
        return EXIT_USAGE;
    }
    /* With --once, what people read goes to stdout, and stderr is for what went wrong. */
    log_setup(f.options.log_level ? f.log_level : LOG_LEVEL_INFO, f.log_format);
    return run_agent(&f);
}

const struct command command_agent = {
    .name = "agent",
    .arguments = "--config.file=FILE [flags]",
    .help = "Ask sources for series, scoring APIs for scores, and serve the scores on /metrics.",
    .flags = flags,
    .run = run,
};

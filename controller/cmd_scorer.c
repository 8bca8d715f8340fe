/* `dynamic-scoring scorer MODEL`: a scoring API of our own. */
#include "controller/commands.h"
#include "controller/flags.h"
#include "controller/server_flags.h"
#include "controller/signals.h"
#include "exporter/base/clock.h"
#include "exporter/base/def.h"
#include "exporter/base/log.h"
#include "exporter/base/loop.h"
#include "exporter/base/problems.h"
#include "exporter/models/instance.h"
#include "exporter/models/model.h"
#include "exporter/models/server.h"
#include "exporter/ui/site.h"

#include <errno.h>
#include <stdio.h>

enum { STOP_GRACE_MS = 5000, MAX_LISTEN = 16, HELP_BYTES = 1024 };

struct scorer_flags {
    struct instance *instance;
    const char *listen[MAX_LISTEN];
    size_t n_listen;
    const char *config_file, *token_file;
    struct server_flags server;
};

/* ---- Flags ---- */

static bool scorer_parse_listen(void *field, const char *v, const struct flag *f)
{
    struct scorer_flags *o = field;

    (void)f;
    if (o->n_listen == MAX_LISTEN || !strrchr(v, ':'))
        return false;
    o->listen[o->n_listen++] = v;
    return true;
}

/* A setting of the model; the flag has the setting's name. */
static bool scorer_parse_setting(void *field, const char *v, const struct flag *f)
{
    struct instance *i = ((struct scorer_flags *)field)->instance;

    for (size_t k = 0; k < i->n_settings; k++)
        if (strcmp(i->settings[k].name, f->name) == 0) {
            i->settings[k].flag = v;
            return instance_accepts(&i->settings[k], v);
        }
    return false;
}

#define FIELD(name) .field = offsetof(struct scorer_flags, name)

static const struct flag scorer_flags[] = {
    {"web.listen-address", "ADDRESS", "Address to listen on; may be repeated. Default :8000.",
     scorer_parse_listen, .expected = "host:port or :port, at most 16 times"},
    {"config.file", "FILE",
     "Settings of the model in YAML or JSON; environment variables and flags override it. Default none.",
     flag_text, FIELD(config_file), .expected = "a path"},
    {"token-file", "FILE",
     "File with the bearer token that callers must send, such as a mounted Secret; read for each call. "
     "Default $TOKEN_FILE; or the token itself in $SCORING_TOKEN. Without either every call is answered.",
     flag_text, FIELD(token_file), .expected = "a path"},
    {.name = NULL},
};

#undef FIELD

/* The flags of the role and the model, ended by one without a name. Both lists are to be freed. */
static struct flag *scorer_make_flags(const struct instance *i, char **ret_helps)
{
    size_t n = ARRAY_SIZE(scorer_flags) - 1;
    struct flag *flags = xcalloc(n + i->n_settings + 1, sizeof(*flags));
    char *helps = xcalloc(i->n_settings + 1, HELP_BYTES);

    memcpy(flags, scorer_flags, n * sizeof(*flags));
    for (size_t k = 0; k < i->n_settings; k++) {
        const struct instance_setting *s = &i->settings[k];
        const char *more = s->setting->variable, *otherwise = s->setting->otherwise;
        char *help = helps + k * HELP_BYTES;

        (void)snprintf(help, HELP_BYTES, "%s.%s%s%s Also $%s%s%s.", s->setting->help,
                       otherwise ? " Default " : "", cstr(otherwise), otherwise ? "." : "", s->variable,
                       more ? " or $" : "", cstr(more));
        flags[n + k] = (struct flag){.name = s->name,
                                     .value = s->setting->value,
                                     .help = help,
                                     .parse = scorer_parse_setting,
                                     .expected = s->expected};
    }
    *ret_helps = helps;
    return flags;
}

static void scorer_print_models(FILE *to)
{
    (void)fprintf(to, "\nmodels:\n");
    for (const struct model *const *m = models; *m; m++)
        (void)fprintf(to, "  %-14s%s\n", (*m)->name, (*m)->help);
    (void)fprintf(to, "\nUse 'dynamic-scoring scorer MODEL --help' for the settings of a model.\n");
}

/* ---- Running ---- */

static void scorer_on_stop(void *arg, void (*done)(void *arg), void *done_arg)
{
    model_server_drain(*(struct model_server **)arg, done, done_arg);
}

static void scorer_on_reload(void *arg)
{
    (void)site_reload(model_server_site(*(struct model_server **)arg), NULL);
}

static int scorer_serve(struct loop *loop, const struct scorer_flags *f, struct model_server **server)
{
    CLEANUP(cleanup_free) char *why = NULL;
    const struct model_server_options o = {.loop = loop,
                                           .instance = f->instance,
                                           .listen = f->listen,
                                           .n_listen = f->n_listen,
                                           .config_file = f->server.web_config_file,
                                           .token_file = f->token_file,
                                           .token = f->token_file ? NULL : getenv("SCORING_TOKEN")};
    int r = model_server_start(server, &o, &why);

    if (r < 0) {
        log_error("cannot serve", L_STR("err", why ? why : strerror(-r)));
        return 1;
    }
    for (size_t i = 0; i < f->n_listen; i++)
        log_info("serving", L_STR("model", f->instance->model->name), L_STR("address", f->listen[i]),
                 L_INT("port", site_port(model_server_site(*server), i)));
    r = loop_run(loop);
    *server = model_server_stop(*server, STOP_GRACE_MS);
    if (r < 0)
        log_error("the event loop failed", L_ERR(r));
    else
        log_info("stopped");
    return r < 0;
}

/* Says what is wrong with the settings. */
static int scorer_configure(const struct scorer_flags *f)
{
    struct problems file = {0}, others = {0};
    int r;

    problems_init(&file, cstr(f->config_file));
    problems_init(&others, "environment");
    r = instance_configure(f->instance, f->config_file, &file, &others);
    problems_log(&file);
    problems_log(&others);
    problems_done(&file);
    problems_done(&others);
    return r;
}

static int scorer_run(struct scorer_flags *f)
{
    CLEANUP(cleanup_loop_free) struct loop *loop = NULL;
    struct model_server *server = NULL;
    const struct signals_handlers handlers = {
        .stop = scorer_on_stop, .reload = scorer_on_reload, .arg = &server};
    struct signals signals;
    int status, r = scorer_configure(f);

    if (r == 0)
        r = loop_new(&loop, &clock_system);
    if (r == 0)
        r = signals_start(&signals, loop, &handlers);
    if (r < 0) {
        log_error("cannot start", L_STR("err", r == -EINVAL ? "invalid settings" : strerror(-r)));
        return 1;
    }
    status = scorer_serve(loop, f, &server);
    signals_stop(&signals);
    return status;
}

/* Reads the flags of the model and runs it. */
static int scorer_run_model(const struct model *m, int argc, char **argv)
{
    static const char *const by_default = ":8000";
    CLEANUP(cleanup_instance_free) struct instance *i = NULL;
    CLEANUP(cleanup_free) struct flag *flags = NULL;
    CLEANUP(cleanup_free) char *helps = NULL;
    struct scorer_flags f = {.server = server_flags_default};
    struct command command = command_scorer;
    char name[64];
    int status;

    i = instance_new(m);
    flags = scorer_make_flags(i, &helps);
    (void)snprintf(name, sizeof(name), "scorer %s", m->name);
    command.name = name;
    command.arguments = "[flags]";
    command.help = m->help;
    command.flags = flags;
    command.shared = server_flags_anywhere;
    f.instance = i;
    status = flags_parse_all(&command, argc, argv, &f);
    if (status >= 0)
        return status;
    if (f.n_listen == 0)
        f.listen[f.n_listen++] = by_default;
    if (!f.token_file && *cstr(getenv("TOKEN_FILE")))
        f.token_file = getenv("TOKEN_FILE");
    if (f.token_file && *cstr(getenv("SCORING_TOKEN")))
        return flags_error(&command, "--token-file and $SCORING_TOKEN exclude each other", "");
    log_setup(f.server.log_level, f.server.log_format);
    return scorer_run(&f);
}

static int scorer_run_command(int argc, char **argv)
{
    const struct model *m = argc > 1 ? model_find(argv[1]) : NULL;
    struct scorer_flags ignored = {.server = server_flags_default};
    struct command command = command_scorer;
    int status;

    if (m)
        return scorer_run_model(m, argc - 1, argv + 1);
    if (argc > 1 && *argv[1] != '-') {
        (void)fprintf(stderr, "dynamic-scoring scorer: unknown model '%s'\n", argv[1]);
    } else if (argc > 1) {
        command.shared = server_flags_anywhere;
        status = flags_parse_all(&command, argc, argv, &ignored);
        if (status == 0)
            scorer_print_models(stdout);
        if (status >= 0)
            return status;
    }
    if (argc < 2 || *argv[1] == '-')
        (void)fprintf(stderr, "dynamic-scoring scorer: missing argument: MODEL\n");
    scorer_print_models(stderr);
    return EXIT_USAGE;
}

const struct command command_scorer = {
    .name = "scorer",
    .arguments = "MODEL [flags]",
    .help = "Serve a scoring API with one of the built-in models.",
    .flags = scorer_flags,
    .shared_at = offsetof(struct scorer_flags, server),
    .run = scorer_run_command,
};

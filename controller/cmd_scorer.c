/* `dynamic-scoring scorer MODEL`: a scoring API of our own. */
#include "controller/flags.h"
#include "controller/role.h"
#include "controller/terminal.h"
#include "exporter/base/alloc.h"
#include "exporter/base/arena.h"
#include "exporter/base/buf.h"
#include "exporter/base/doc.h"
#include "exporter/base/log.h"
#include "exporter/models/instance.h"
#include "exporter/models/model.h"
#include "exporter/models/server.h"
#include "exporter/ui/site.h"

#include <errno.h>
#include <stdio.h>

struct scorer_flags {
    struct instance *instance;
    struct flag_list listen;
    const char *config_file, *token_file;
    struct server_flags server;
};

#define FIELD(name) .field = offsetof(struct scorer_flags, name)

static const struct flag scorer_flags[] = {
    {"web.listen-address", FLAG_LISTEN, FIELD(listen),
     "Address to listen on; may be repeated. Default :8000."},
    {"config.file", FLAG_PATH, FIELD(config_file),
     "Settings of the model in YAML or JSON; environment variables and flags override it. Default none."},
    {"token-file", FLAG_PATH, FIELD(token_file),
     "File with the bearer token that callers must send, such as a mounted Secret; read for each call. "
     "Default $TOKEN_FILE; or the token itself in $SCORING_TOKEN. Without either every call is answered."},
    {.name = NULL},
};

/* A setting of the model; the flag has the setting's name. */
static bool scorer_parse_setting(void *field, const char *v, const struct flag *f)
{
    const struct instance *i = *(struct instance **)field;

    for (size_t k = 0; k < i->n_settings; k++)
        if (strcmp(i->settings[k].name, f->name) == 0) {
            i->settings[k].flag = v;
            return instance_accepts(&i->settings[k], v);
        }
    return false;
}

/* "What it is. Default x. Also $A or $B.", in the instance's arena. */
static const char *scorer_help(struct instance *i, const struct instance_setting *s)
{
    const char *more = s->setting->variable, *otherwise = s->setting->otherwise;
    BUF_AUTO(help, SIZE_MAX / 2);

    buf_printf(&help, "%s.", s->setting->help);
    if (otherwise)
        buf_printf(&help, " Default %s.", otherwise);
    buf_printf(&help, " Also $%s", s->variable);
    if (more)
        buf_printf(&help, " or $%s", more);
    buf_puts(&help, ".");
    if (buf_failed(&help) < 0)
        memory_exhausted(help.n);
    return arena_text(&i->arena, buf_str(&help));
}

/* The flags of the role and the model, ended by one without a name, in the instance's arena. */
static const struct flag *scorer_make_flags(struct instance *i)
{
    size_t n = ARRAY_SIZE(scorer_flags) - 1;
    struct flag *flags = arena_alloc(&i->arena, (n + i->n_settings + 1) * sizeof(*flags));

    memcpy(flags, scorer_flags, n * sizeof(*flags));
    for (size_t k = 0; k < i->n_settings; k++) {
        const struct instance_setting *s = &i->settings[k];

        flags[n + k] = (struct flag){.name = s->name,
                                     .type = FLAG_OTHER,
                                     FIELD(instance),
                                     .help = scorer_help(i, s),
                                     .value = s->setting->value,
                                     .expected = s->expected,
                                     .parse = scorer_parse_setting};
    }
    flags[n + i->n_settings] = (struct flag){.name = NULL};
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

struct scorer_role {
    struct role role;
    struct model_server *server;
};

static void scorer_on_end(struct role *r)
{
    (void)model_server_stop(CONTAINER_OF(r, struct scorer_role, role)->server, STOP_GRACE_MS);
    r->site = NULL;
}

static int scorer_serve(struct scorer_role *s, const struct scorer_flags *f)
{
    const struct model_server_options o = {.loop = s->role.loop,
                                           .instance = f->instance,
                                           .listen = f->listen.items,
                                           .n_listen = f->listen.n,
                                           .config_file = f->server.web_config_file,
                                           .token_file = f->token_file,
                                           .token = f->token_file ? NULL : getenv("SCORING_TOKEN")};
    char *why = NULL;
    int r = model_server_start(&s->server, &o, &why);

    if (r == 0)
        s->role.site = model_server_site(s->server);
    for (size_t i = 0; r == 0 && i < f->listen.n; i++)
        log_info("serving", L_STR("model", f->instance->model->name), L_STR("address", f->listen.items[i]),
                 L_INT("port", site_port(s->role.site, i)));
    return role_run(&s->role, r, why);
}

/* Says what is wrong with the settings. */
static int scorer_configure(const struct scorer_flags *f)
{
    CLEANUP(problems_done) struct problems file = {0}, others = {0};
    int r;

    problems_init(&file, cstr(f->config_file));
    problems_init(&others, "environment");
    r = instance_configure(f->instance, f->config_file, &file, &others);
    problems_log(&file);
    problems_log(&others);
    return r == 0 ? 0 : role_failed("cannot start", r, r == -EINVAL ? xstrdup("invalid settings") : NULL);
}

/* Reads the flags of the model and runs it. */
static int scorer_run_model(const struct model *m, char **argv)
{
    CLEANUP(cleanup_instance_free) struct instance *i = instance_new(m);
    CLEANUP(cleanup_free) char *name = xasprintf("scorer %s", m->name);
    struct scorer_flags f = {.server = server_flags_default};
    struct scorer_role s = {.role = {.on_end = scorer_on_end}};
    struct command command = command_scorer;
    int status;

    command.name = name;
    command.arguments = "[flags]";
    command.help = m->help;
    command.flags = scorer_make_flags(i);
    f.instance = i;
    if (!flags_parse(&command, argv, &f, &status))
        return status;
    if (f.listen.n == 0)
        f.listen.items[f.listen.n++] = ":8000";
    if (!f.token_file && *cstr(getenv("TOKEN_FILE")))
        f.token_file = getenv("TOKEN_FILE");
    if (f.token_file && *cstr(getenv("SCORING_TOKEN")))
        return flags_error(&command, "--token-file and $SCORING_TOKEN exclude each other", "");
    status = role_open(&s.role, &f.server) == 0 && scorer_configure(&f) == 0 ? scorer_serve(&s, &f) : 1;
    role_close(&s.role);
    return status;
}

static int scorer_main(char **argv)
{
    const struct model *m = argv[1] ? model_find(argv[1]) : NULL;
    struct scorer_flags ignored = {.server = server_flags_default};
    int status;

    if (m)
        return scorer_run_model(m, argv + 1);
    if (argv[1] && *argv[1] == '-' && !flags_parse(&command_scorer, argv, &ignored, &status)) {
        if (status == 0)
            scorer_print_models(stdout);
        return status;
    }
    if (argv[1] && *argv[1] != '-')
        terminal_printf(stderr, "dynamic-scoring scorer: unknown model '%s'\n", argv[1]);
    else
        terminal_printf(stderr, "dynamic-scoring scorer: missing argument: MODEL\n");
    scorer_print_models(stderr);
    return EXIT_USAGE;
}

const struct command command_scorer = {
    .name = "scorer",
    .arguments = "MODEL [flags]",
    .help = "Serve a scoring API with one of the built-in models.",
    .flags = scorer_flags,
    .shared = server_flags + SERVER_FLAGS_OF_CLUSTER,
    .shared_at = offsetof(struct scorer_flags, server),
    .run = scorer_main,
};

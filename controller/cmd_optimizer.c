/* `dynamic-scoring optimizer`: chooses clusters for workloads. */
#include "controller/assist/operations/web.h"
#include "controller/assist/state/assist.h"
#include "controller/commands.h"
#include "controller/flags.h"
#include "controller/kube/guard.h"
#include "controller/kube_program.h"
#include "controller/server_flags.h"
#include "controller/signals.h"
#include "exporter/base/log.h"
#include "exporter/ui/site.h"
#include "exporter/web/access.h"

#include <stdio.h>
#include <string.h>

enum {
    STOP_GRACE_MS = 5000,
    MAX_LISTEN = 16,
    MAX_NAMESPACES = 256,
    MIN_DEADLINE_MS = 100,
    MAX_DEADLINE_MS = 600 * 1000,
};

struct optimizer_flags {
    const char *kubeconfig;
    const char *listen[MAX_LISTEN];
    size_t n_listen;
    const char *health_address;
    const char *namespaces[MAX_NAMESPACES];
    size_t n_namespaces;
    int64_t deadline_ms;
    bool allow_writes;
    const char *token_file;
    struct server_flags server;
};

/* ---- Flags ---- */

static bool optimizer_parse_listen(void *field, const char *v, const struct flag *f)
{
    struct optimizer_flags *o = field;

    (void)f;
    if (o->n_listen == MAX_LISTEN || !strrchr(v, ':'))
        return false;
    o->listen[o->n_listen++] = v;
    return true;
}

static bool optimizer_parse_namespace(void *field, const char *v, const struct flag *f)
{
    struct optimizer_flags *o = field;

    if (o->n_namespaces == MAX_NAMESPACES)
        return false;
    return flag_namespace(&o->namespaces[o->n_namespaces++], v, f);
}

#define FIELD(name) .field = offsetof(struct optimizer_flags, name)

static const struct flag optimizer_flags[] = {
    {"kubeconfig", "FILE", "Kubeconfig of the hub. Default: the pod's service account.", flag_text,
     FIELD(kubeconfig), .expected = "a path"},
    {"web.listen-address", "ADDRESS", "Address to listen on; may be repeated. Default 127.0.0.1:8338.",
     optimizer_parse_listen, .expected = "host:port or :port, at most 16 times"},
    {"health-probe-bind-address", "ADDRESS",
     "Address that /healthz and /readyz are served on as well, without authentication; 0 for none. Default "
     "0.",
     flag_address, FIELD(health_address), .expected = FLAG_ADDRESS_EXPECTED},
    {"write-namespace", "NAMESPACE",
     "Namespace in which Placements and PlacementBindings may be made, replaced and deleted; may be "
     "repeated. "
     "Default none: requests are planned, and nothing is applied.",
     optimizer_parse_namespace, .expected = "a namespace, at most 256 times"},
    {"deadline", "DURATION",
     "Longest time that solving takes unless a request sets its own, from 100ms to 10m. Default 10s.",
     flag_duration, FIELD(deadline_ms), .expected = "a duration from 100ms to 10m", .min = MIN_DEADLINE_MS,
     .max = MAX_DEADLINE_MS},
    {"mcp.allow-writes", NULL,
     "Let assistants (/mcp) apply and reset plans, too, rather than only plan and read. Default false.",
     flag_switch, FIELD(allow_writes)},
    {"token-file", "FILE",
     "File with the bearer token that all requests but /healthz and /readyz must send, such as a mounted "
     "Secret; read for each request. Default none.",
     flag_text, FIELD(token_file), .expected = "a path"},
    {.name = NULL},
};

#undef FIELD

/* ---- Authentication ---- */

static const struct kube_path_right optimizer_rights_of_readers[] = {
    {"/metrics", "get", "/metrics"}, {"/optimize", "post", "/optimize"}, {"/plan", "post", "/optimize"},
    {"/apply", "post", "/optimize"}, {"/reset", "post", "/optimize"},    {NULL, "get", "/status"},
};

/* The same where assistants may write. */
static const struct kube_path_right optimizer_rights_of_writers[] = {
    {"/metrics", "get", "/metrics"}, {"/optimize", "post", "/optimize"}, {"/plan", "post", "/optimize"},
    {"/apply", "post", "/optimize"}, {"/reset", "post", "/optimize"},    {"/mcp", "post", "/optimize"},
    {NULL, "get", "/status"},
};

static bool optimizer_is_open(const struct httpd_request *rq)
{
    return strcmp(rq->path, "/healthz") == 0 || strcmp(rq->path, "/readyz") == 0;
}

/* ---- Running ---- */

struct optimizer {
    struct kube_program base;
    struct assist *assist;
    struct assist_web *web; /* while it serves */
    struct bearer bearer;
};

static void optimizer_on_reload(void *arg)
{
    (void)site_reload(assist_web_site(((const struct optimizer *)arg)->web), NULL);
}

static int optimizer_start_web(struct optimizer *p, const struct optimizer_flags *f,
                               struct kube_guard **guard)
{
    CLEANUP(cleanup_free) char *why = NULL;
    struct site_options o = {.loop = p->base.loop,
                             .metrics = p->base.metrics,
                             .listen = f->listen,
                             .n_listen = f->n_listen,
                             .probe_address = f->health_address,
                             .config_file = f->server.web_config_file};
    int r = server_flags_guard(guard, &f->server, p->base.kube,
                               f->allow_writes ? optimizer_rights_of_writers : optimizer_rights_of_readers);

    bearer_init(&p->bearer, f->token_file, NULL, optimizer_is_open);
    o.guard = *guard ? kube_guard_httpd(*guard) : bearer_guard(&p->bearer);
    if (r == 0)
        r = assist_web_start(&p->web, p->assist, &o, f->allow_writes, &why);
    if (r < 0) {
        log_error("cannot serve", L_STR("err", why ? why : strerror(-r)));
        return r;
    }
    for (size_t i = 0; i < f->n_listen; i++)
        log_info("serving", L_STR("address", f->listen[i]),
                 L_INT("port", site_port(assist_web_site(p->web), i)));
    return 0;
}

static int optimizer_serve(struct optimizer *p, const struct optimizer_flags *f)
{
    CLEANUP(cleanup_kube_guard_free) struct kube_guard *guard = NULL;
    int r = optimizer_start_web(p, f, &guard);

    if (r < 0)
        return 1;
    r = kube_program_run(&p->base);
    p->assist = assist_free(p->assist); /* ends the calls under way, whose answers the server then sends */
    p->web = assist_web_stop(p->web, STOP_GRACE_MS);
    return kube_program_status(r);
}

static int optimizer_open(struct optimizer *p, const struct optimizer_flags *f)
{
    const struct assist_options o = {.loop = p->base.loop,
                                     .kube = p->base.kube,
                                     .metrics = p->base.metrics,
                                     .write_namespaces = f->namespaces,
                                     .n_write_namespaces = f->n_namespaces,
                                     .deadline_ms = f->deadline_ms};
    int r = assist_new(&p->assist, &o);

    if (r < 0)
        log_error("cannot start", L_ERR(r));
    return r;
}

static int optimizer_run(const struct optimizer_flags *f)
{
    struct optimizer p = {0};
    const struct signals_handlers handlers = {.reload = optimizer_on_reload, .arg = &p};
    int status = 1, r = kube_program_start(&p.base, "hub", f->kubeconfig, &handlers);

    if (r == 0 && optimizer_open(&p, f) == 0)
        status = optimizer_serve(&p, f);
    p.assist = assist_free(p.assist);
    kube_program_done(&p.base);
    return status;
}

static int optimizer_main(int argc, char **argv)
{
    struct optimizer_flags f = {.deadline_ms = 10000, .health_address = "0", .server = server_flags_default};
    int status = flags_parse_all(&command_optimizer, argc, argv, &f);

    if (status >= 0)
        return status;
    if (f.token_file && f.server.kubernetes_auth)
        return flags_error(&command_optimizer, "--token-file and --web.kubernetes-auth exclude each other",
                           "");
    if (f.n_listen == 0)
        f.listen[f.n_listen++] = "127.0.0.1:8338";
    log_setup(f.server.log_level, f.server.log_format);
    return optimizer_run(&f);
}

const struct command command_optimizer = {
    .name = "optimizer",
    .arguments = "[flags]",
    .help = "Choose clusters for workloads by their scores, for people, programs and assistants. Runs on the "
            "hub.",
    .flags = optimizer_flags,
    .shared = server_flags,
    .shared_at = offsetof(struct optimizer_flags, server),
    .run = optimizer_main,
};

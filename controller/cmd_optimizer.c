/* `dynamic-scoring optimizer`: chooses clusters for workloads. */
#include "controller/assist/assist.h"
#include "controller/flags.h"
#include "controller/role.h"
#include "exporter/base/log.h"
#include "exporter/ui/site.h"
#include "exporter/web/bearer.h"

struct optimizer_flags {
    const char *kubeconfig, *health_address, *token_file;
    struct flag_list listen, namespaces;
    int64_t deadline_ms;
    bool allow_writes;
    struct server_flags server;
};

#define FIELD(name) .field = offsetof(struct optimizer_flags, name)

static const struct flag optimizer_flags[] = {
    {"kubeconfig", FLAG_PATH, FIELD(kubeconfig),
     "Kubeconfig of the hub. Default: the pod's service account."},
    {"web.listen-address", FLAG_LISTEN, FIELD(listen),
     "Address to listen on; may be repeated. Default 127.0.0.1:8338."},
    {"health-probe-bind-address", FLAG_ADDRESS, FIELD(health_address),
     "Address that /healthz and /readyz are served on as well, without authentication; 0 for none. Default "
     "0."},
    {"write-namespace", FLAG_NAMESPACES, FIELD(namespaces),
     "Namespace in which Placements and PlacementBindings may be made, replaced and deleted; may be "
     "repeated. Default none: requests are planned, and nothing is applied."},
    {"deadline", FLAG_DURATION, FIELD(deadline_ms),
     "Longest time that solving takes unless a request sets its own, from 100ms to 10m. Default 10s.",
     .min = 100, .max = 600 * 1000},
    {"mcp.allow-writes", FLAG_SWITCH, FIELD(allow_writes),
     "Let assistants (/mcp) apply and reset plans, too, rather than only plan and read. Default false."},
    {"token-file", FLAG_PATH, FIELD(token_file),
     "File with the bearer token that all requests but /healthz and /readyz must send, such as a mounted "
     "Secret; read for each request. Default none."},
    {.name = NULL},
};

static const struct kube_path_right rights_of_writers[] = {
    {"/mcp", "post", "/optimize"}, /* where assistants may write */
    {"/metrics", "get", "/metrics"}, {"/optimize", "post", "/optimize"}, {"/plan", "post", "/optimize"},
    {"/apply", "post", "/optimize"}, {"/reset", "post", "/optimize"},    {NULL, "get", "/status"},
};

static bool optimizer_is_open(const struct httpd_request *rq)
{
    return strcmp(rq->path, "/healthz") == 0 || strcmp(rq->path, "/readyz") == 0;
}

struct optimizer {
    struct role role;
    struct assist *assist;
    struct bearer bearer;
};

static void optimizer_on_end(struct role *r)
{
    struct optimizer *p = CONTAINER_OF(r, struct optimizer, role);

    assist_end(p->assist); /* the calls under way end, whose answers the server then sends */
    r->site = site_stop(r->site, STOP_GRACE_MS);
    p->assist = assist_free(p->assist); /* last: the server's threads read its routes */
}

static int optimizer_run(struct optimizer *p, const struct optimizer_flags *f)
{
    const struct assist_options a = {.loop = p->role.loop,
                                     .kube = p->role.kube,
                                     .metrics = p->role.metrics,
                                     .write_namespaces = f->namespaces.items,
                                     .n_write_namespaces = f->namespaces.n,
                                     .deadline_ms = f->deadline_ms};
    struct site_options o = role_site(&p->role, f->listen.items, f->listen.n, f->health_address);
    char *why = NULL;
    int r = assist_new(&p->assist, &a);

    if (r < 0)
        return role_failed("cannot start", r, NULL);
    if (!o.access.guard)
        o.access.guard = bearer_init(&p->bearer, f->token_file, NULL, optimizer_is_open);
    r = assist_serve(&p->role.site, p->assist, &o, f->allow_writes, &why);
    for (size_t i = 0; r == 0 && i < f->listen.n; i++)
        log_info("serving", L_STR("address", f->listen.items[i]), L_INT("port", site_port(p->role.site, i)));
    return role_run(&p->role, r, why);
}

static int optimizer_main(char **argv)
{
    struct optimizer_flags f = {.deadline_ms = 10000, .server = server_flags_default};
    struct optimizer p = {.role.on_end = optimizer_on_end};
    int status;

    if (!flags_parse(&command_optimizer, argv, &f, &status))
        return status;
    if (f.token_file && f.server.kubernetes_auth)
        return flags_error(&command_optimizer, "--token-file and --web.kubernetes-auth exclude each other",
                           "");
    if (f.listen.n == 0)
        f.listen.items[f.listen.n++] = "127.0.0.1:8338";
    status = 1;
    if (role_open_kube(&p.role, "hub", f.kubeconfig, &f.server, rights_of_writers + !f.allow_writes) == 0)
        status = optimizer_run(&p, &f);
    p.assist = assist_free(p.assist);
    role_close(&p.role);
    return status;
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

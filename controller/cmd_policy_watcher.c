/* `dynamic-scoring policy-watcher`: says in a ClusterClaim whether a cluster complies with its Policies. */
#include "controller/commands.h"
#include "controller/flags.h"
#include "controller/kube/guard.h"
#include "controller/kube_program.h"
#include "controller/policy/watcher.h"
#include "controller/server_flags.h"
#include "controller/signals.h"
#include "exporter/base/buf.h"
#include "exporter/base/def.h"
#include "exporter/base/log.h"
#include "exporter/base/str.h"
#include "exporter/ui/site.h"

#include <stdio.h>
#include <string.h>

enum {
    STOP_GRACE_MS = 5000,
    DEFAULT_STABLE_MS = 120 * 1000,
    MAX_STABLE_S = 24 * 3600,
    MAX_CLAIM_NAME = 253,
    WHY_MAX_BYTES = 16 << 10,
};

struct watcher_flags {
    struct policy_watcher_options watcher;
    const char *kubeconfig;
    const char *address, *health_address;
    struct server_flags server;
};

/* ---- Flags ---- */

/* An RFC 1123 subdomain, as the API server wants of an object's name. */
static bool watcher_parse_claim(void *field, const char *v, const struct flag *f)
{
    size_t n = strspn(v, "abcdefghijklmnopqrstuvwxyz0123456789-.");

    (void)f;
    *(const char **)field = v;
    return n > 0 && n <= MAX_CLAIM_NAME && !v[n] && !strchr("-.", v[0]) && !strchr("-.", v[n - 1]);
}

#define FIELD(name)     .field = offsetof(struct watcher_flags, name)
#define CLAIM_EXPECTED  "a name: at most 253 of a-z, 0-9, - and ., not starting or ending with - or ."
#define DEFAULT_CLAIM   "policy-watcher-claim"
#define STABLE_VARIABLE "STABLE_DURATION_SEC"
#define STABLE_EXPECTED "a number of seconds from 0 to 86400"
#define POLL_VARIABLE   "POLL_INTERVAL_SEC"
#define NOT_SET         (-1)

static const struct flag watcher_flags[] = {
    {"kubeconfig", "FILE", "Kubeconfig of the cluster. Default: the pod's service account.", flag_text,
     FIELD(kubeconfig), .expected = "a path"},
    {"namespace", "NAMESPACE",
     "Namespace of the Policies: the name of the cluster on the hub. Default: $WATCH_NAMESPACE, then "
     "default.",
     flag_namespace, FIELD(watcher.namespace), .expected = FLAG_NAMESPACE_EXPECTED},
    {"claim", "NAME", "ClusterClaim to write. Default: $TARGET_CLAIM_NAME, then policy-watcher-claim.",
     watcher_parse_claim, FIELD(watcher.claim), .expected = CLAIM_EXPECTED},
    {"stable-duration", "DURATION",
     "How long all Policies must be compliant without a break before the claim is, from 0s to 24h. Default: "
     "$STABLE_DURATION_SEC, then 2m.",
     flag_duration, FIELD(watcher.stable_ms), .expected = "a duration from 0s to 24h",
     .max = MAX_STABLE_S * 1000},
    {"web.listen-address", "ADDRESS",
     "Address that /metrics, /healthz and /readyz are served on; 0 disables them. Default :8080.",
     flag_address, FIELD(address), .expected = FLAG_ADDRESS_EXPECTED},
    {"health-probe-bind-address", "ADDRESS",
     "Address that /healthz and /readyz are served on, besides the other; 0 disables it. Default 0.",
     flag_address, FIELD(health_address), .expected = FLAG_ADDRESS_EXPECTED},
    {.name = NULL},
};

#undef FIELD

/* The environment of the reference implementation's manifests, where no flag says otherwise. Returns the exit
 * status, or -1 to go on. */
static int watcher_read_environment(struct watcher_flags *f)
{
    const char *namespace = getenv("WATCH_NAMESPACE"), *claim = getenv("TARGET_CLAIM_NAME");
    const char *stable = getenv(STABLE_VARIABLE);
    uint64_t seconds = 0;

    if (!f->watcher.namespace && !flag_namespace(&f->watcher.namespace, namespace ?: "default", NULL))
        return flags_error(&command_policy_watcher, "WATCH_NAMESPACE must be " FLAG_NAMESPACE_EXPECTED ": ",
                           namespace);
    if (!f->watcher.claim && !watcher_parse_claim(&f->watcher.claim, claim ?: DEFAULT_CLAIM, NULL))
        return flags_error(&command_policy_watcher, "TARGET_CLAIM_NAME must be " CLAIM_EXPECTED ": ", claim);
    if (f->watcher.stable_ms != NOT_SET)
        return -1;
    if (stable && (!str_to_u64(str_of(stable), &seconds) || seconds > MAX_STABLE_S))
        return flags_error(&command_policy_watcher, STABLE_VARIABLE " must be " STABLE_EXPECTED ": ", stable);
    f->watcher.stable_ms = stable ? (int64_t)seconds * 1000 : DEFAULT_STABLE_MS;
    return -1;
}

/* ---- Serving ---- */

static bool watcher_is_ready(void *arg, struct buf *ret_why)
{
    bool ready = false;

    return policy_watcher_ready(arg, &ready, ret_why) == 0 && ready;
}

struct watcher_program {
    struct kube_program base;
    struct policy_watcher *watcher;
    struct site *site; /* while it serves */
};

static void watcher_on_reload(void *arg)
{
    (void)site_reload(((const struct watcher_program *)arg)->site, NULL);
}

static int watcher_serve(struct watcher_program *p, const struct watcher_flags *f)
{
    CLEANUP(cleanup_kube_guard_free) struct kube_guard *guard = NULL;
    CLEANUP(cleanup_free) char *why = NULL;
    struct site_options o = {.loop = p->base.loop,
                             .metrics = f->watcher.metrics,
                             .listen = &f->address,
                             .n_listen = strcmp(f->address, "0") != 0,
                             .probe_address = f->health_address,
                             .config_file = f->server.web_config_file,
                             .is_ready = watcher_is_ready,
                             .arg = p->watcher};
    int r = server_flags_guard(&guard, &f->server, f->watcher.kube, kube_rights_default);

    o.guard = kube_guard_httpd(guard);
    if (r == 0)
        r = site_start(&p->site, &o, &why);
    if (r < 0) {
        log_error("cannot serve", L_STR("err", why ? why : strerror(-r)));
        return 1;
    }
    log_info("watching Policies", L_STR("namespace", f->watcher.namespace), L_STR("claim", f->watcher.claim),
             L_INT("stable_seconds", f->watcher.stable_ms / 1000), L_STR("address", f->address));
    r = kube_program_run(&p->base);
    p->site = site_stop(p->site, STOP_GRACE_MS);
    return kube_program_status(r);
}

static int watcher_run(struct watcher_flags *f)
{
    struct watcher_program p = {0};
    const struct signals_handlers handlers = {.reload = watcher_on_reload, .arg = &p};
    int status = 1, r = kube_program_start(&p.base, "cluster", f->kubeconfig, &handlers);

    f->watcher.kube = p.base.kube;
    f->watcher.metrics = p.base.metrics;
    if (r == 0 && (r = policy_watcher_new(&p.watcher, &f->watcher)) < 0)
        log_error("cannot start", L_ERR(r));
    if (r == 0)
        status = watcher_serve(&p, f);
    p.watcher = policy_watcher_free(p.watcher);
    kube_program_done(&p.base);
    return status;
}

static int watcher_main(int argc, char **argv)
{
    struct watcher_flags f = {
        .watcher = {.stable_ms = NOT_SET},
        .address = ":8080",
        .health_address = "0",
        .server = server_flags_default,
    };
    int status = flags_parse_all(&command_policy_watcher, argc, argv, &f);

    if (status < 0)
        status = watcher_read_environment(&f);
    if (status >= 0)
        return status;
    log_setup(f.server.log_level, f.server.log_format);
    if (getenv(POLL_VARIABLE))
        log_info("$POLL_INTERVAL_SEC has no effect: Policies are watched, not polled");
    return watcher_run(&f);
}

const struct command command_policy_watcher = {
    .name = "policy-watcher",
    .arguments = "[flags]",
    .help = "Write a ClusterClaim that says whether the cluster complies with its Policies. Runs on managed "
            "clusters.",
    .flags = watcher_flags,
    .shared = server_flags,
    .shared_at = offsetof(struct watcher_flags, server),
    .run = watcher_main,
};

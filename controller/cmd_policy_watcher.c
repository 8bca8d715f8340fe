/* `dynamic-scoring policy-watcher`: says in a ClusterClaim whether a cluster complies with its Policies. */
#include "controller/flags.h"
#include "controller/policy/watcher.h"
#include "controller/role.h"
#include "exporter/base/log.h"
#include "exporter/ui/site.h"

enum {
    DEFAULT_STABLE_MS = 120 * 1000,
    MAX_STABLE_S = 24 * 3600,
    MAX_CLAIM_NAME = 253,
    NOT_SET = -1,
};

struct watcher_flags {
    struct policy_watcher_options watcher;
    const char *kubeconfig, *address, *health_address;
    struct server_flags server;
};

/* An RFC 1123 subdomain, as the API server wants of an object's name. */
static bool watcher_is_claim(const char *v)
{
    size_t n = strspn(v, "abcdefghijklmnopqrstuvwxyz0123456789-.");

    return n > 0 && n <= MAX_CLAIM_NAME && !v[n] && !strchr("-.", v[0]) && !strchr("-.", v[n - 1]);
}

#define CLAIM_EXPECTED "a name: at most 253 of a-z, 0-9, - and ., not starting or ending with - or ."
#define FIELD(name)    .field = offsetof(struct watcher_flags, name)

static const struct flag watcher_flags[] = {
    {"kubeconfig", FLAG_PATH, FIELD(kubeconfig),
     "Kubeconfig of the cluster. Default: the pod's service account."},
    {"namespace", FLAG_NAMESPACE, FIELD(watcher.namespace),
     "Namespace of the Policies: the name of the cluster on the hub. Default: $WATCH_NAMESPACE, then "
     "default."},
    {"claim", FLAG_TEXT, FIELD(watcher.claim),
     "ClusterClaim to write. Default: $TARGET_CLAIM_NAME, then policy-watcher-claim.", "NAME", CLAIM_EXPECTED,
     .is_valid = watcher_is_claim},
    {"stable-duration", FLAG_DURATION, FIELD(watcher.stable_ms),
     "How long all Policies must be compliant without a break before the claim is, from 0s to 24h. Default: "
     "$STABLE_DURATION_SEC, then 2m.",
     .max = MAX_STABLE_S * 1000},
    {"web.listen-address", FLAG_ADDRESS, FIELD(address),
     "Address that /metrics, /healthz and /readyz are served on; 0 disables them. Default :8080."},
    {"health-probe-bind-address", FLAG_ADDRESS, FIELD(health_address),
     "Address that /healthz and /readyz are served on, besides the other; 0 disables it. Default 0."},
    {.name = NULL},
};

/* The environment of the reference implementation's manifests, where no flag says otherwise. False, and the
 * exit status, if it is invalid. */
static bool watcher_read_environment(struct watcher_flags *f, int *ret_status)
{
    const struct command *c = &command_policy_watcher;
    const char *namespace = getenv("WATCH_NAMESPACE"), *claim = getenv("TARGET_CLAIM_NAME");
    const char *stable = getenv("STABLE_DURATION_SEC");
    uint64_t seconds = DEFAULT_STABLE_MS / 1000;

    if (!f->watcher.namespace)
        f->watcher.namespace = namespace ?: "default";
    if (!f->watcher.claim)
        f->watcher.claim = claim ?: "policy-watcher-claim";
    if (!flag_is_namespace(f->watcher.namespace))
        *ret_status = flags_error(c, "WATCH_NAMESPACE must be " FLAG_NAMESPACE_EXPECTED ": ", namespace);
    else if (!watcher_is_claim(f->watcher.claim))
        *ret_status = flags_error(c, "TARGET_CLAIM_NAME must be " CLAIM_EXPECTED ": ", claim);
    else if (f->watcher.stable_ms == NOT_SET && stable &&
             (!str_to_u64(str_of(stable), &seconds) || seconds > MAX_STABLE_S))
        *ret_status =
            flags_error(c, "STABLE_DURATION_SEC must be a number of seconds from 0 to 86400: ", stable);
    else
        *ret_status = 0;
    if (f->watcher.stable_ms == NOT_SET)
        f->watcher.stable_ms = (int64_t)seconds * 1000;
    return *ret_status == 0;
}

static int watcher_main(char **argv)
{
    struct role role = {0};
    struct watcher_flags f = {
        .watcher.stable_ms = NOT_SET, .address = ":8080", .server = server_flags_default};
    struct policy_watcher *watcher = NULL;
    struct site_options o;
    char *why = NULL;
    int status, r;

    if (!flags_parse(&command_policy_watcher, argv, &f, &status) || !watcher_read_environment(&f, &status))
        return status;
    status = 1;
    if (role_open_kube(&role, "cluster", f.kubeconfig, &f.server, NULL) == 0) {
        if (getenv("POLL_INTERVAL_SEC"))
            log_info("$POLL_INTERVAL_SEC has no effect: Policies are watched, not polled");
        f.watcher.kube = role.kube;
        f.watcher.metrics = role.metrics;
        o = role_site(&role, &f.address, f.address != NULL, f.health_address);
        o.is_ready = policy_watcher_ready;
        o.access.arg = watcher = policy_watcher_new(&f.watcher);
        r = site_start(&role.site, &o, &why);
        if (r == 0)
            log_info("watching Policies", L_STR("namespace", f.watcher.namespace),
                     L_STR("claim", f.watcher.claim), L_INT("stable_seconds", f.watcher.stable_ms / 1000),
                     L_STR("address", f.address));
        status = role_run(&role, r, why);
        (void)policy_watcher_free(watcher);
    }
    role_close(&role);
    return status;
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

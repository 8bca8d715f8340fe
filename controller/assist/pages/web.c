#include "controller/assist/pages/web.h"

#include "controller/assist/api/api.h"
#include "controller/assist/operations/operations.h"
#include "controller/assist/pages/status.h"
#include "controller/assist/state/assist.h"
#include "controller/assist/state/world.h"
#include "exporter/base/buf.h"
#include "exporter/base/log.h"
#include "exporter/ui/api.h"
#include "exporter/ui/site.h"

#include <errno.h>
#include <string.h>

static const char web_instructions[] =
    "Places workloads on the clusters of an Open Cluster Management hub by AddOnPlacementScores. To "
    "optimize: get_addonplacementscores_addonplacementscores_get lists scores with descriptions, of which "
    "one is the preference (performance, power consumption, ...); workloads_list lists what can be placed; "
    "policies_list lists the settings of each cluster. Then call plan with all of them, show the plan, and "
    "if it is wanted call apply with its planHash.";

enum { STATUS_MAX_BYTES = 256 << 20, WHY_MAX_BYTES = 1 << 20 };

struct assist_web {
    struct loop *loop;
    struct metrics *metrics;
    struct assist *assist;
    struct api *api;
    struct site *site;
};

static void assist_web_healthz(void *arg, const struct httpd_request *rq, struct httpd_reply *reply)
{
    (void)arg;
    (void)rq;
    httpd_reply_text(reply, 200, STR("ok"));
}

static void assist_web_readyz(void *arg, const struct httpd_request *rq, struct httpd_reply *reply)
{
    const struct world *world = assist_world(((const struct assist_web *)arg)->assist);
    BUF_AUTO(why, WHY_MAX_BYTES);
    int r = 0;

    (void)rq;
    if (world_synced(world)) {
        httpd_reply_text(reply, 200, STR("ok"));
        return;
    }
    for (enum world_kind k = 0; r == 0 && k < WORLD_KINDS; k++)
        if (world_trouble(world, k))
            r = buf_printf(&why, "%s: %s\n", world_resource(k)->plural, world_trouble(world, k));
    httpd_reply_text(reply, 503, r == 0 && why.n ? buf_str(&why) : STR("not ready\n"));
}

static void assist_web_status(void *arg, const struct httpd_request *rq, struct httpd_reply *reply)
{
    const struct assist_web *w = arg;
    const struct assist_status s = {.options = assist_options(w->assist),
                                    .world = assist_world(w->assist),
                                    .plan = assist_last_plan(w->assist),
                                    .access = site_access(w->site),
                                    .now = loop_wall(w->loop)};
    BUF_AUTO(body, STATUS_MAX_BYTES);

    (void)rq;
    api_reply(reply, assist_json_status(&s, &body), "", &body);
}

static void assist_web_plan(void *arg, const struct httpd_request *rq, struct httpd_reply *reply)
{
    const struct assist_web *w = arg;
    const struct assist_last_plan *plan = assist_last_plan(w->assist);

    (void)rq;
    if (plan)
        api_answer(w->api, reply, assist_json_plan(plan));
    else
        httpd_reply_text(reply, 404, STR("nothing has been planned yet\n"));
}

static void assist_web_set_metrics(void *arg)
{
    const struct assist_web *w = arg;

    world_set_metrics(assist_world(w->assist), w->metrics);
}

static int assist_web_serve(struct assist_web *w, const struct assist_web_options *o, char **ret_why)
{
    static const char *const pages[] = {"/", NULL};
    const struct httpd_route probes[] = {
        {.method = "GET", .path = "/healthz", .fn = assist_web_healthz},
        {.method = "GET", .path = "/readyz", .fn = assist_web_readyz, .arg = w},
    };
    const struct httpd_route own[] = {
        {.method = "GET", .path = "/api/v1/status", .fn = assist_web_status, .arg = w},
        {.method = "GET", .path = "/api/v1/plan", .fn = assist_web_plan, .arg = w},
    };
    size_t n = ARRAY_SIZE(own) + n_assist_operations + API_OWN_ROUTES;
    CLEANUP(cleanup_free) struct httpd_route *routes = calloc(n, sizeof(*routes));
    struct site_options site = {.loop = o->loop,
                                .metrics = o->metrics,
                                .listen = o->listen,
                                .n_listen = o->n_listen,
                                .probe_address = o->health_address,
                                .config_file = o->config_file,
                                .guard = o->guard,
                                .probes = probes,
                                .n_probes = ARRAY_SIZE(probes),
                                .probes_everywhere = true,
                                .routes = routes,
                                .pages = pages,
                                .before_metrics = assist_web_set_metrics,
                                .arg = w};

    if (!routes)
        return -ENOMEM;
    memcpy(routes, own, sizeof(own));
    site.n_routes = ARRAY_SIZE(own) + api_routes(w->api, routes + ARRAY_SIZE(own));
    return site_start(&w->site, &site, ret_why);
}

int assist_web_start(struct assist_web **ret, const struct assist_web_options *o, char **ret_why)
{
    const struct api_options api = {
        .loop = o->loop,
        .metrics = o->metrics,
        .operations = {assist_operations, n_assist_operations, o->assist},
        .instructions = web_instructions,
        .allow_writes = o->allow_writes,
        .needs_token = o->guard != NULL,
    };
    struct assist_web *w = calloc(1, sizeof(*w));
    int r = w ? api_new(&w->api, &api) : -ENOMEM;

    if (r == 0) {
        w->assist = o->assist;
        w->loop = o->loop;
        w->metrics = o->metrics;
        r = assist_web_serve(w, o, ret_why);
    }
    if (r < 0) {
        (void)assist_web_stop(w, 0);
        return r;
    }
    if (site_is_open(w->site))
        log_warn("everyone who reaches this address can plan and apply: set --token-file, "
                 "--web.kubernetes-auth or --web.config.file");
    *ret = w;
    return 0;
}

unsigned assist_web_port(const struct assist_web *w, size_t i)
{
    return site_port(w->site, i);
}

void assist_web_reload(struct assist_web *w)
{
    if (site_reload(w->site, NULL) < 0)
        log_debug("reload on SIGHUP failed");
}

struct assist_web *assist_web_stop(struct assist_web *w, int grace_ms)
{
    if (!w)
        return NULL;
    w->api = api_free(w->api);
    w->site = site_stop(w->site, grace_ms);
    free(w);
    return NULL;
}

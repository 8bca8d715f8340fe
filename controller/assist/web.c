#include "controller/assist/assist.h"

#include "controller/assist/api.h"
#include "controller/assist/snapshot.h"
#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/httpd.h"
#include "exporter/base/log.h"
#include "exporter/base/loop.h"
#include "exporter/metric/metrics.h"
#include "exporter/ui/out.h"
#include "exporter/ui/site.h"

#include <stdlib.h>
#include <string.h>

static const struct operation web_operations[] = {
    {"get_addonplacementscores_addonplacementscores_get", scores_get},
    {"policies_list", policies_list},
    {"workloads_list", workloads_list},
    {"scorers_list", scorers_list},
    {"scorer_explain", scorer_explain},
    {"plan", assist_plan},
    {"apply", assist_apply},
    {"optimize_optimize_post", assist_optimize},
    {"reset_reset_post", assist_reset},
};

enum { STATUS_MAX_BYTES = 256 << 20 };

struct assist_web {
    struct loop *loop;
    struct metrics *metrics;
    struct assist *assist;
    struct api *api;
    struct site *site;
};

/* ---- What the page shows ---- */

/* GET /api/v1/status is asked for every few seconds, GET /api/v1/plan when its member `plan` changes. The
 * plan's "answer" is that of POST /plan. */

static void member_troubles(struct out *o, const struct reader *r)
{
    member_object(o, "troubles");
    for (size_t i = 0; i < KINDS; i++)
        member_text(o, kind_info[i].resource->plural, reader_trouble(r, (enum kind)i));
    out_puts(o, "}");
}

static void member_options(struct out *o, const struct assist_options *options)
{
    member_list(o, "writeNamespaces");
    for (size_t i = 0; i < options->n_write_namespaces; i++) {
        member_item(o);
        value_text(o, str_of(options->write_namespaces[i]));
    }
    out_puts(o, "]");
    member_number(o, "deadlineSeconds", (double)options->deadline_ms / 1000);
}

static int web_status_json(const struct assist_web *w, struct buf *into)
{
    const struct assist_last_plan *plan = assist_last_plan(w->assist);
    struct out o = out_begin(into);

    out_puts(&o, "{");
    member_text(&o, "role", "optimizer");
    member_time(&o, "now", loop_wall(w->loop).ms);
    member_time(&o, "startedAt", metrics_process_start_ms());
    member_object(&o, "build");
    member_text(&o, "version", ds_version);
    member_text(&o, "revision", ds_revision);
    out_puts(&o, "}");
    member_options(&o, assist_options(w->assist));
    member_bool(&o, "synced", reader_is_synced(assist_reader(w->assist)));
    member_troubles(&o, assist_reader(w->assist));
    if (member_object_if(&o, "plan", plan != NULL)) {
        member_text(&o, "hash", json_string_value(json_object_get(plan->answer, "planHash")));
        member_time(&o, "at", plan->at.ms);
        member_time(&o, "appliedAt", plan->applied_at.ms);
        out_puts(&o, "}");
    }
    member_web_config(&o, site_access(w->site));
    out_puts(&o, "}");
    return out_end(&o);
}

static json_t *web_time(unix_ms at)
{
    char when[32];

    unix_ms_format(at, when);
    return at.ms ? json_string(when) : json_null();
}

static json_t *web_plan_json(const struct assist_last_plan *p)
{
    return json_pack("{s:o, s:o, s:f, s:O, s:O}", "at", web_time(p->at), "appliedAt", web_time(p->applied_at),
                     "seconds", p->seconds, "request", p->request, "answer", p->answer);
}

/* ---- The server ---- */

static bool assist_web_is_ready(void *arg, struct buf *ret_why)
{
    const struct reader *reader = assist_reader(((const struct assist_web *)arg)->assist);

    if (reader_is_synced(reader))
        return true;
    for (enum kind k = 0; k < KINDS; k++)
        if (reader_trouble(reader, k) &&
            buf_printf(ret_why, "%s: %s\n", kind_info[k].resource->plural, reader_trouble(reader, k)) < 0)
            break;
    return false;
}

static void assist_web_status(void *arg, const struct httpd_request *rq, struct httpd_reply *reply)
{
    BUF_AUTO(body, STATUS_MAX_BYTES);

    (void)rq;
    api_reply(reply, web_status_json(arg, &body), "", &body);
}

static void assist_web_plan(void *arg, const struct httpd_request *rq, struct httpd_reply *reply)
{
    const struct assist_web *w = arg;
    const struct assist_last_plan *plan = assist_last_plan(w->assist);

    (void)rq;
    if (plan)
        api_answer(w->api, reply, web_plan_json(plan));
    else
        httpd_reply_text(reply, 404, STR("nothing has been planned yet\n"));
}

static void assist_web_set_metrics(void *arg)
{
    const struct assist_web *w = arg;

    reader_set_metrics(assist_reader(w->assist), w->metrics);
}

static int assist_web_serve(struct assist_web *w, struct site_options *o, char **ret_why)
{
    static const char *const pages[] = {"/", NULL};
    const struct httpd_route own[] = {
        {.method = "GET", .path = "/api/v1/status", .fn = assist_web_status, .arg = w},
        {.method = "GET", .path = "/api/v1/plan", .fn = assist_web_plan, .arg = w},
    };
    size_t n = ARRAY_SIZE(own) + ARRAY_SIZE(web_operations) + API_OWN_ROUTES;
    CLEANUP(cleanup_free) struct httpd_route *routes = xcalloc(n, sizeof(*routes));

    memcpy(routes, own, sizeof(own));
    o->routes = routes;
    o->n_routes = ARRAY_SIZE(own) + api_routes(w->api, routes + ARRAY_SIZE(own));
    o->pages = pages;
    o->before_metrics = assist_web_set_metrics;
    o->is_ready = assist_web_is_ready;
    o->arg = w;
    return site_start(&w->site, o, ret_why);
}

int assist_web_start(struct assist_web **ret, struct assist *a, struct site_options *o, bool allow_writes,
                     char **ret_why)
{
    const struct api_options api = {
        .loop = o->loop,
        .metrics = o->metrics,
        .schemas = assist_schemas,
        .operations = web_operations,
        .n_operations = ARRAY_SIZE(web_operations),
        .arg = a,
        .allow_writes = allow_writes,
        .needs_token = o->guard != NULL,
    };
    struct assist_web *w = xcalloc(1, sizeof(*w));
    int r = api_new(&w->api, &api);

    w->assist = a;
    w->loop = o->loop;
    w->metrics = o->metrics;
    if (r == 0)
        r = assist_web_serve(w, o, ret_why);
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

struct site *assist_web_site(const struct assist_web *w)
{
    return w ? w->site : NULL;
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

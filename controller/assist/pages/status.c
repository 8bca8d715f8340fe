#include "controller/assist/pages/status.h"

#include "controller/assist/state/world.h"
#include "exporter/metric/metrics.h"
#include "exporter/metric/version.h"
#include "exporter/ui/members.h"
#include "exporter/ui/out.h"
#include "exporter/ui/web_config.h"

#include <errno.h>
#include <stdlib.h>

static void member_troubles(struct out *o, const struct world *w)
{
    member_object(o, "troubles");
    for (size_t i = 0; i < WORLD_KINDS; i++) {
        enum world_kind kind = (enum world_kind)i;

        member_text(o, world_resource(kind)->plural, world_trouble(w, kind));
    }
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
    member_text(o, "solver", options->cbc);
}

int assist_json_status(const struct assist_status *s, struct buf *into)
{
    struct out o = out_begin(into);

    out_puts(&o, "{");
    member_text(&o, "role", "optimizer");
    member_time(&o, "now", s->now.ms);
    member_time(&o, "startedAt", metrics_process_start_ms());
    member_object(&o, "build");
    member_text(&o, "version", ds_version);
    member_text(&o, "revision", ds_revision);
    out_puts(&o, "}");
    member_options(&o, s->options);
    member_bool(&o, "synced", world_synced(s->world));
    member_troubles(&o, s->world);
    if (member_object_if(&o, "plan", s->plan != NULL)) {
        member_text(&o, "hash", json_string_value(json_object_get(s->plan->answer, "planHash")));
        member_time(&o, "at", s->plan->at.ms);
        member_time(&o, "appliedAt", s->plan->applied_at.ms);
        out_puts(&o, "}");
    }
    member_web_config(&o, s->access);
    out_puts(&o, "}");
    return out_end(&o);
}

static json_t *time_or_null(unix_ms at)
{
    char when[32];

    unix_ms_format(at, when);
    return at.ms ? json_string(when) : json_null();
}

json_t *assist_json_plan(const struct assist_last_plan *p)
{
    return json_pack("{s:o, s:o, s:f, s:O, s:O}", "at", time_or_null(p->at), "appliedAt",
                     time_or_null(p->applied_at), "seconds", p->seconds, "request", p->request, "answer",
                     p->answer);
}

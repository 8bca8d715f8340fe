/* What every answer of the hub's API begins with. */
#include "controller/hub/pages/json_members.h"
#include "controller/hub/state/hub.h"
#include "controller/hub/state/state.h"
#include "controller/kube/lease.h"
#include "exporter/base/loop.h"
#include "exporter/metric/version.h"
#include "exporter/ui/members.h"
#include "exporter/ui/out.h"

static void begin_troubles(struct out *o, const struct hub *h)
{
    member_object(o, "troubles");
    for (size_t i = 0; i < HUB_KINDS; i++)
        member_text(o, hub_kinds[i].plural, hub_watch_trouble(h, i));
    member_text(o, "Lease", h->lease ? kube_lease_trouble(h->lease) : NULL);
    out_puts(o, "}");
}

void json_begin(struct out *o, const struct hub *h)
{
    member_text(o, "role", "controller");
    member_time(o, "now", loop_wall(h->o.loop).ms);
    member_text(o, "version", ds_version);
    member_text(o, "revision", ds_revision);
    member_text(o, "namespace", h->o.namespace);
    member_text(o, "agentNamespace", h->o.agent_namespace);
    member_text(o, "identity", h->o.identity);
    member_bool(o, "leading", h->leading);
    member_words(o, "holder", h->lease ? kube_lease_holder(h->lease) : cstr(h->o.identity));
    member_bool(o, "synced", hub_synced(h));
    member_time(o, "startedAt", h->started_ms);
    begin_troubles(o, h);
}

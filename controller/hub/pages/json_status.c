/* The overview: the controller, its configuration, totals, and the first scorers and clusters. */
#include "controller/hub/pages/json.h"
#include "controller/hub/pages/json_members.h"
#include "controller/hub/pages/view.h"
#include "controller/hub/probe/probe.h"
#include "controller/hub/rules/masks.h"
#include "controller/hub/rules/work_text.h"
#include "controller/hub/state/hub_masks.h"
#include "controller/hub/state/state.h"
#include "controller/kube/json.h"
#include "exporter/base/map.h"
#include "exporter/ui/members.h"
#include "exporter/ui/out.h"
#include "exporter/ui/web_config.h"

enum { MASKS_LISTED = 50 };

static void status_masks(struct out *o, const struct hub *h)
{
    const struct masks *m = &h->config.masks;
    char warning[MASK_WARNING_BYTES];

    member_count(o, "masks", m->n);
    member_list(o, "firstMasks");
    for (size_t i = 0; i < size_min(m->n, MASKS_LISTED); i++) {
        member_item(o);
        out_puts(o, "{");
        member_text(o, "clusterName", m->list[i].cluster);
        member_text(o, "scoreName", m->list[i].score);
        if (hub_masks_counted(h)) {
            hub_mask_warning(warning, h, i, false);
            member_count(o, "clusters", h->mask_counts[i].clusters);
            member_count(o, "scores", h->mask_counts[i].scores);
            member_words(o, "warning", warning);
        }
        out_puts(o, "}");
    }
    out_puts(o, "]");
}

static void status_config(struct out *o, struct hub *h)
{
    const struct hub_config *other;
    size_t at = 0;

    member_object(o, "config");
    member_text(o, "name", HUB_CONFIG);
    member_bool(o, "present", h->config.object);
    member_bool(o, "wanted", hub_is_distributing(h));
    status_masks(o, h);
    member_words(o, "error", h->config.masks_error);
    member_words(o, "statusError", h->config.write_error);
    member_list(o, "ignored");
    while ((other = map_next(&h->other_configs, &at))) {
        member_item(o);
        value_text(o, str_of(kube_name(other->object)));
    }
    out_puts(o, "]}");
}

static void status_totals(struct out *o, const struct hub *h)
{
    const struct hub_totals *t = &h->totals;
    size_t by_health[HEALTH_STATES] = {0};

    for (size_t i = 0; i < h->n_scorers; i++)
        by_health[hub_scorer_health(h->by_age[i])]++;
    member_object(o, "totals");
    member_count(o, "scorers", h->n_scorers);
    member_count(o, "healthy", by_health[HEALTH_ACTIVE]);
    member_count(o, "degraded", by_health[HEALTH_DEGRADED]);
    member_count(o, "unhealthy", by_health[HEALTH_INACTIVE]);
    member_count(o, "clusters", t->managed);
    member_count(o, "upToDate", t->up_to_date);
    member_count(o, "behind", t->behind);
    member_count(o, "failing", t->failing);
    member_number(o, "lagSeconds", t->lag_s);
    member_count(o, "works", t->works);
    member_count(o, "leaving", t->leaving);
    member_count(o, "reporting", t->reporting);
    member_count(o, "scoringAll", t->scoring_all);
    member_count(o, "withFailures", t->with_failures);
    member_count(o, "largestSummariesBytes", t->largest);
    member_count(o, "maxSummariesBytes", WORK_MAX_BYTES);
    member_count(o, "leftOut", t->left_out);
    out_puts(o, "}");
}

int hub_json_status(struct hub *h, const struct list_query *q, struct buf *into)
{
    CLEANUP(view_scorers_done) struct view_scorers scorers = {0};
    CLEANUP(list_done) struct list clusters = {.query = q};
    struct out o = out_begin(into);

    view_refresh_counts(h);
    o.error = view_scorers_make(&scorers, h, q);
    if (o.error == 0)
        o.error = view_clusters(&clusters, h, false);
    if (o.error)
        return o.error;
    out_puts(&o, "{");
    json_begin(&o, h);
    status_config(&o, h);
    member_web_config(&o, h->access);
    status_totals(&o, h);
    json_scorer_list(&o, &scorers);
    json_cluster_list(&o, &clusters);
    member_object(&o, "metadata");
    list_metadata(&o, "scorers", &scorers.list);
    list_metadata(&o, "clusters", &clusters);
    out_puts(&o, "}}\n");
    return out_end(&o);
}

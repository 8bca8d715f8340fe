/* Owns nothing, changes nothing. Called by written/statuses.c for each status that is due, and by the
 * pages. */
#include "controller/hub/follows/config_status.h"

#include "controller/hub/follows/adjusted.h"
#include "controller/hub/follows/common_conditions.h"
#include "controller/hub/follows/counts.h"
#include "controller/hub/follows/masks.h"
#include "controller/hub/follows/reason.h"
#include "controller/hub/follows/sentences.h"
#include "controller/hub/follows/status_value.h"
#include "controller/hub/follows/target.h"
#include "controller/hub/observed/config.h"
#include "controller/hub/observed/object.h"
#include "controller/hub/observed/scorer.h"
#include "controller/kube/json.h"
#include "controller/kube/time.h"
#include "exporter/base/buf.h"
#include "exporter/base/text.h"
#include "exporter/score/feature.h"

enum config_condition { CONFIG_VALID, CONFIG_DISTRIBUTED, CONFIG_READY, CONFIG_CONTESTED, CONFIG_CONDITIONS };

/* ---- Valid ---- */

enum { CONFIG_NAMED_IDLE = 3, IDLE_WARNING_BYTES = 800 };

static size_t config_idle_masks(const struct fleet *f)
{
    size_t n = 0;

    for (size_t i = 0; masks_are_counted(f) && i < f->plan->masks.n; i++)
        n += mask_is_idle(f->plan, i);
    return n;
}

static size_t config_idle_adjustments(const struct fleet *f)
{
    size_t n = 0;

    for (size_t i = 0; adjustments_are_counted(f) && i < f->plan->adjustments.n; i++)
        n += adjustment_is_idle(f, i);
    return n;
}

/* The first of the masks, or of the adjustments, that are idle, with a warning each. */
struct idle_named {
    struct buf texts[CONFIG_NAMED_IDLE];
    struct str warnings[CONFIG_NAMED_IDLE]; /* the same, once idle_named_end() has been called */
    size_t n;
};

/* For the next warning. */
static struct buf *idle_named_begin(struct idle_named *named)
{
    struct buf *text = &named->texts[named->n];

    buf_init(text, IDLE_WARNING_BYTES);
    return text;
}

static void idle_named_end(struct idle_named *named)
{
    named->warnings[named->n] = buf_str(&named->texts[named->n]);
    named->n++;
}

static void idle_named_done(struct idle_named *named)
{
    while (named->n)
        buf_done(&named->texts[--named->n]);
}

static void config_set_idle_masks(const struct fleet *f, size_t idle, struct condition *valid)
{
    CLEANUP(idle_named_done) struct idle_named named = {0};
    struct masks_facts facts = {.n = f->plan->masks.n, .idle = idle, .warnings = named.warnings};
    BUF_AUTO(sentence, SENTENCE_BYTES);

    for (size_t i = 0; i < facts.n && named.n < CONFIG_NAMED_IDLE; i++) {
        if (!mask_is_idle(f->plan, i))
            continue;
        mask_warning(idle_named_begin(&named), f->plan, i);
        idle_named_end(&named);
    }
    facts.n_warnings = named.n;
    sentence_masks(&sentence, &facts);
    condition_say(valid, TRUTH_TRUE, REASON_MASKS_MATCH_NOTHING, &sentence);
}

/* What of the object changes nothing. */
struct idle {
    size_t masks, adjustments;
};

/* `"slow": no cluster matches clusterName "x"`, for the first of the idle ones. */
static void config_add_idle_adjustments(const struct fleet *f, const struct idle *idle,
                                        struct condition *valid)
{
    const struct fleet_adjustments *all = &f->plan->adjustments;
    CLEANUP(idle_named_done) struct idle_named named = {0};
    struct masks_facts facts = {.n = all->n, .idle = idle->adjustments, .warnings = named.warnings};
    BUF_AUTO(sentence, SENTENCE_BYTES);

    for (size_t i = 0; i < all->n && named.n < CONFIG_NAMED_IDLE; i++) {
        struct buf *text;

        if (!adjustment_is_idle(f, i))
            continue;
        text = idle_named_begin(&named);
        buf_printf(text, "\"%s\": ", all->list[i].what.name);
        adjustment_warning(text, f, i);
        idle_named_end(&named);
    }
    facts.n_warnings = named.n;
    buf_puts(&sentence, "; ");
    sentence_adjustments(&sentence, &facts);
    condition_add(valid, idle->masks ? REASON_MASKS_MATCH_NOTHING : REASON_ADJUSTMENTS_MATCH_NOTHING,
                  &sentence);
}

const char *config_error(const struct hub_config *c)
{
    return c->errors[CONFIG_MASKS] ?: cstr(c->errors[CONFIG_ADJUSTMENTS]);
}

enum hub_reason config_invalid_reason(const struct hub_config *c)
{
    return c->errors[CONFIG_MASKS] ? REASON_INVALID_MASKS : REASON_INVALID_ADJUSTMENTS;
}

bool config_is_known(const struct hub_config *c)
{
    return c->masks.owner && c->adjustments.owner;
}

static const char *config_invalid_part(const struct hub_config *c)
{
    return c->errors[CONFIG_MASKS] ? "masks" : "adjustments";
}

static void config_set_invalid(const struct hub_config *c, struct condition *valid)
{
    BUF_AUTO(text, SENTENCE_BYTES);

    buf_puts(&text, config_error(c));
    if (config_is_known(c))
        buf_printf(&text, "; the last valid %s stay active", config_invalid_part(c));
    else
        buf_printf(&text, "; clusters keep their scorers until the %s are valid", config_invalid_part(c));
    condition_say(valid, TRUTH_FALSE, config_invalid_reason(c), &text);
}

static void config_set_valid(const struct fleet *f, const struct idle *idle, struct condition *valid)
{
    const struct hub_config *c = &f->seen->configs.used;
    BUF_AUTO(text, SENTENCE_BYTES);

    if (*config_error(c)) {
        config_set_invalid(c, valid);
        return;
    }
    if (idle->masks) {
        config_set_idle_masks(f, idle->masks, valid);
    } else {
        text_count(&text, c->masks.n, "mask");
        if (c->adjustments.n) {
            buf_puts(&text, ", ");
            text_count(&text, c->adjustments.n, "adjustment");
        }
        condition_say(valid, TRUTH_TRUE, REASON_VALID, &text);
    }
    if (idle->adjustments)
        config_add_idle_adjustments(f, idle, valid);
}

/* ---- Distributed ---- */

static void config_set_deleting(const struct fleet *f, struct condition *c)
{
    const struct hub_totals *t = &f->counts->totals;
    const struct hub_cluster *failed =
        t->named.n && cluster_write_error(t->named.list[0]) ? t->named.list[0] : NULL;
    const struct hub_cluster *first = t->works.first;
    const struct deleting_facts facts = {.n = t->works.total,
                                         .first = first ? first->name : NULL,
                                         .failing = failed ? failed->name : NULL,
                                         .error = failed ? cluster_write_error(failed) : NULL};
    BUF_AUTO(text, SENTENCE_BYTES);

    sentence_deleting(&text, &facts);
    condition_say(c, TRUTH_FALSE, REASON_DELETING, &text);
}

enum { CONFIG_NAMED_SCORERS = 5 };

static void config_set_no_room(const struct fleet *f, struct condition *c)
{
    const struct scorers *scorers = &f->seen->scorers;
    const char *names[CONFIG_NAMED_SCORERS];
    struct named_facts facts = {.list = names, .total = f->counts->totals.left_out};
    BUF_AUTO(text, SENTENCE_BYTES);

    for (size_t i = 0; i < scorers->n && facts.n < CONFIG_NAMED_SCORERS; i++)
        if (counts_of(f->counts, scorers->by_age[i])->no_room)
            names[facts.n++] = scorers->by_age[i]->name;
    sentence_no_room_for(&text, &facts);
    condition_say(c, TRUTH_FALSE, REASON_NO_ROOM, &text);
}

static const char *config_cluster_error(const struct hub_cluster *c)
{
    return cluster_write_error(c) ?: c->unapplied ?: cluster_unconfirmed_reason(c);
}

/* Write errors go before apply errors. */
static void config_set_error(const struct hub_totals *t, struct condition *c)
{
    const struct hub_cluster *first = NULL;

    for (size_t i = 0; i < t->named.n && !first; i++)
        if (!t->failing || cluster_write_error(t->named.list[i]))
            first = t->named.list[i];
    condition_clusters(c, first && first->write.contested ? REASON_WRITE_CONFLICT : REASON_CLUSTERS_FAILING,
                       t->failing ? "ManifestWork not written on" : "ManifestWork not applied on",
                       t->failing ? t->failing : t->unapplied, t->managed, first,
                       first ? config_cluster_error(first) : "");
}

static void config_set_distributed(const struct fleet *f, struct condition *c)
{
    const struct hub_totals *t = &f->counts->totals;

    if (!configs_distribute(&f->seen->configs))
        config_set_deleting(f, c);
    else if (!config_is_known(&f->seen->configs.used))
        condition_format(c, TRUTH_FALSE, config_invalid_reason(&f->seen->configs.used),
                         "clusters keep their scorers until the %s are valid",
                         config_invalid_part(&f->seen->configs.used));
    else if (condition_unreadable(f, c) || condition_no_clusters(f, c))
        return;
    else if (t->failing || t->unapplied)
        config_set_error(t, c);
    else if (t->left_out)
        config_set_no_room(f, c);
    else if (t->behind)
        condition_format(c, TRUTH_FALSE, REASON_PROGRESSING, "up to date on %zu of %zu clusters",
                         t->up_to_date, t->managed);
    else if (t->applied < t->managed)
        condition_unconfirmed(c, t->managed - t->applied, t->managed, t->named.list[0]);
    else
        condition_distributed(c, t->managed);
}

/* ---- Ready ---- */

enum { CONFIG_DISTRIBUTED_BYTES = 400 }; /* in the message of Ready */

/* Ready when it works on some cluster; Distributed names the others. */
static void config_set_ready(const struct fleet *f, const struct idle *idle,
                             struct condition list[CONFIG_CONDITIONS])
{
    const struct configs *configs = &f->seen->configs;
    const struct hub_totals *t = &f->counts->totals;
    BUF_AUTO(text, SENTENCE_BYTES);

    if (list[CONFIG_VALID].status != TRUTH_TRUE) {
        condition_copy(&list[CONFIG_READY], &list[CONFIG_VALID]);
        return;
    }
    if (!configs_distribute(configs) || !config_is_known(&configs->used) || t->up_to_date <= t->unapplied) {
        condition_copy(&list[CONFIG_READY], &list[CONFIG_DISTRIBUTED]);
        return;
    }
    if (idle->masks || idle->adjustments)
        buf_printf(&text, "%.*s; %s", CONFIG_DISTRIBUTED_BYTES, list[CONFIG_DISTRIBUTED].message,
                   list[CONFIG_VALID].message);
    else
        buf_puts(&text, list[CONFIG_DISTRIBUTED].message);
    condition_say(&list[CONFIG_READY], TRUTH_TRUE, REASON_READY, &text);
}

/* ---- The status ---- */

enum { CONFIG_LISTED_MASKS = 20 };

static json_t *config_mask_value(const struct plan *plan, size_t i)
{
    json_t *value = json_object();
    BUF_AUTO(warning, IDLE_WARNING_BYTES);

    status_set_line(value, "clusterName", plan->masks.list[i].cluster);
    status_set_line(value, "scoreName", plan->masks.list[i].score);
    status_set_count(value, "clusters", plan->of_masks[i].clusters);
    status_set_count(value, "scores", plan->of_masks[i].scores);
    if (!mask_is_idle(plan, i))
        return value;
    mask_warning(&warning, plan, i);
    buf_putc(&warning, '\0');
    status_set_line(value, "warning", warning.p);
    return value;
}

/* The first masks, those that match nothing before the others. NULL without any. */
static json_t *config_masks_value(const struct fleet *f)
{
    const struct plan *plan = f->plan;
    json_t *list;

    if (!masks_are_counted(f) || !plan->masks.n)
        return NULL;
    list = json_array();
    for (size_t i = 0; i < plan->masks.n && json_array_size(list) < CONFIG_LISTED_MASKS; i++)
        if (mask_is_idle(plan, i))
            json_array_append_new(list, config_mask_value(plan, i));
    for (size_t i = 0; i < plan->masks.n && json_array_size(list) < CONFIG_LISTED_MASKS; i++)
        if (!mask_is_idle(plan, i))
            json_array_append_new(list, config_mask_value(plan, i));
    return list;
}

static json_t *config_adjustment_value(const struct fleet *f, size_t i)
{
    const struct hub_config *c = &f->seen->configs.used;
    json_t *value = json_object();
    BUF_AUTO(warning, IDLE_WARNING_BYTES);
    char since[KUBE_TIME_BYTES];

    json_object_set_new(value, "name", json_string(f->plan->adjustments.list[i].what.name));
    status_set_count(value, "clusters", f->plan->of_adjustments[i].clusters);
    status_set_count(value, "scores", adjustment_scores(f->plan, i));
    if (!adjustment_is_idle(f, i)) {
        if (counts_without_items(f->counts, f->plan, i))
            status_set_count(value, "withoutItems", counts_without_items(f->counts, f->plan, i));
        kube_time_format(adjustment_since(f, c, i), since);
        json_object_set_new(value, "since", json_string(since));
        return value;
    }
    adjustment_warning(&warning, f, i);
    buf_putc(&warning, '\0');
    status_set_line(value, "warning", warning.p);
    return value;
}

/* Those that change nothing before the others. NULL without any. Until they are counted, what was told stays:
 * it would begin anew. */
static json_t *config_adjustments_value(const struct fleet *f)
{
    json_t *list, *active;

    if (!adjustments_are_counted(f))
        return json_incref(adjustments_told(&f->seen->configs.used));
    if (!f->plan->adjustments.n)
        return NULL;
    list = json_array();
    active = json_array();
    for (size_t i = 0; i < f->plan->adjustments.n; i++)
        json_array_append_new(adjustment_is_idle(f, i) ? list : active, config_adjustment_value(f, i));
    json_array_extend(list, active);
    json_decref(active);
    return list;
}

static json_t *config_clusters_value(const struct hub_totals *t)
{
    json_t *value = json_object();

    status_set_count(value, "managed", t->managed);
    status_set_count(value, "upToDate", t->up_to_date);
    status_set_count(value, "applied", t->applied);
    status_set_count(value, "behind", t->behind);
    status_set_count(value, "failing", t->failing);
    status_set_count(value, "reporting", t->reporting);
    return value;
}

static json_t *config_scorers_value(const struct fleet *f)
{
    json_t *value = json_object();
    size_t distributed = 0;

    for (size_t i = 0; f->plan && i < f->plan->n; i++)
        distributed += !f->plan->entries[i].suspended;
    status_set_count(value, "total", f->seen->scorers.n);
    status_set_count(value, "distributed", distributed);
    status_set_count(value, "leftOut", f->seen->scorers.n - distributed);
    status_set_count(value, "noRoom", f->counts->totals.left_out);
    return value;
}

/* NULL when none fails. */
static json_t *config_failing_value(const struct hub_totals *t)
{
    json_t *list = t->named.n ? json_array() : NULL;

    for (size_t i = 0; i < t->named.n; i++) {
        json_t *value = json_object();

        json_object_set_new(value, "name", json_string(t->named.list[i]->name));
        status_set_line(value, "error", config_cluster_error(t->named.list[i]));
        json_array_append_new(list, value);
    }
    return list;
}

static json_t *config_value(const struct fleet *f, json_t *conditions)
{
    const struct hub_totals *t = &f->counts->totals;
    json_t *value = json_object();

    json_object_set_new(value, "observedGeneration",
                        json_integer(object_generation(f->seen->configs.used.object)));
    json_object_set_new(value, "clusters", config_clusters_value(t));
    json_object_set_new(value, "scorers", config_scorers_value(f));
    status_set_count(value, "summariesBytes", t->largest);
    status_set_optional(value, "masks", config_masks_value(f));
    status_set_optional(value, "adjustments", config_adjustments_value(f));
    status_set_optional(value, "failingClusters", config_failing_value(t));
    json_object_set_new(value, "conditions", conditions);
    return value;
}

static json_t *config_unused_value(const struct fleet *f, const struct hub_config *c,
                                   const struct contest *contest)
{
    struct condition list[] = {{.type = "Ready"}, {.type = HUB_CONTESTED}};
    size_t n = condition_set_contested(&list[1], contest) ? 2 : 1;
    json_t *value = json_object();

    condition_format(&list[0], TRUTH_FALSE, REASON_NOT_USED,
                     "not used: the controller uses only the DynamicScoringConfig named %s", HUB_CONFIG);
    json_object_set_new(value, "observedGeneration", json_integer(object_generation(c->object)));
    json_object_set_new(value, "conditions",
                        conditions_value(list, n, c->object, c->last_status.sent, f->wall));
    return value;
}

json_t *status_of_config(const struct fleet *f, const struct hub_config *c, const struct contest *contest)
{
    static const char *const ours[] = {"clusters",    "scorers",         "masks",
                                       "adjustments", "failingClusters", NULL};
    struct condition list[CONFIG_CONDITIONS] = {[CONFIG_VALID] = {.type = "Valid"},
                                                [CONFIG_DISTRIBUTED] = {.type = "Distributed"},
                                                [CONFIG_READY] = {.type = "Ready"},
                                                [CONFIG_CONTESTED] = {.type = HUB_CONTESTED}};
    const struct counted_clusters *without_addon = &f->counts->totals.without_addon;
    struct idle idle = {0};
    size_t n = CONFIG_CONTESTED;

    if (c != &f->seen->configs.used)
        return config_unused_value(f, c, contest);
    if (!*config_error(c))
        idle = (struct idle){config_idle_masks(f), config_idle_adjustments(f)};
    config_set_valid(f, &idle, &list[CONFIG_VALID]);
    config_set_distributed(f, &list[CONFIG_DISTRIBUTED]);
    if (configs_distribute(&f->seen->configs) && f->counts->totals.managed && without_addon->first)
        condition_add_without_addon(f, &list[CONFIG_DISTRIBUTED], without_addon->total,
                                    without_addon->first->name);
    condition_add_unreadable_addons(f, &list[CONFIG_DISTRIBUTED]);
    condition_add_outdated(&list[CONFIG_DISTRIBUTED], FEATURE_ADJUSTMENTS, &f->counts->totals.unadjusted,
                           f->counts->totals.adjusted);
    config_set_ready(f, &idle, list);
    if (condition_set_contested(&list[CONFIG_CONTESTED], contest))
        n = CONFIG_CONDITIONS;
    return status_patch(config_value(f, conditions_value(list, n, c->object, c->last_status.sent, f->wall)),
                        c->object, ours);
}

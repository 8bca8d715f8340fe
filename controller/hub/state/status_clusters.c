/* Of a DynamicScorer's status what is about clusters: who has it, and what their agents say. */
#include "controller/hub/state/hub_pair.h"
#include "controller/hub/state/status_conditions.h"

/* Why the scorer is to be in no cluster's summaries, whatever the clusters are; NULL when it is to. */
static const char *not_selected(const struct hub_scorer *s)
{
    if (!effective_usable(&s->effective))
        return "left out: there is nothing valid to give to clusters";
    if (s->older)
        return "left out: an older DynamicScorer has the same score name or AddOnPlacementScore";
    if (hub_scorer_is_eligible(s))
        return NULL;
    return scorer_probe(s)->health == HEALTH_INACTIVE
               ? "left out: the scoring API is not healthy"
               : "left out: it is not known yet whether the scoring API is healthy";
}

/* Why the work agent could not apply the cluster's ManifestWork; empty when it could, or has not said. */
static const char *unapplied(const struct hub_cluster *c)
{
    return c->work.applied ? "" : c->work.why;
}

static const char *unwritten(const struct hub_cluster *c)
{
    return c->write_error;
}

/* Of the clusters that are to have the scorer, those with a trouble; *first in the order of their names. */
static size_t count_trouble(const struct hub_scorer *s, const char *(*trouble)(const struct hub_cluster *),
                            const struct hub_cluster **first)
{
    const struct hub_cluster *c;
    size_t n = 0, at = 0;

    while ((c = map_next(&s->hub->clusters, &at))) {
        if (!c->group || !plan_group_has(c->group, s->entry) || !*trouble(c))
            continue;
        n++;
        if (!*first || strcmp(c->name, (*first)->name) < 0)
            *first = c;
    }
    return n;
}

static bool set_troubled(const struct hub_scorer *s, struct status_condition *c)
{
    static const struct {
        const char *(*trouble)(const struct hub_cluster *);
        const char *what;
    } troubles[] = {{unwritten, " cannot be written"}, {unapplied, " cannot apply it"}};

    for (size_t i = 0; i < ARRAY_SIZE(troubles) && s->tally.applied < s->tally.selected; i++) {
        const struct hub_cluster *first = NULL;
        size_t n = count_trouble(s, troubles[i].trouble, &first);

        if (n) {
            condition_failing(c, "", n, s->tally.selected, troubles[i].what, first->name,
                              troubles[i].trouble(first));
            return true;
        }
    }
    return false;
}

static void set_reached(const struct hub_scorer *s, struct status_condition *c)
{
    const struct tally *t = &s->tally;

    if (set_troubled(s, c))
        return;
    if (t->no_room)
        condition_set(c, TRUTH_FALSE, "NoRoom",
                      "no room for it in the summaries of %zu cluster%s: a ManifestWork holds %d KiB",
                      t->no_room, plural(t->no_room), WORK_MAX_BYTES / 1024);
    else if (!t->selected)
        condition_set(c, TRUTH_FALSE, "Masked", "masked on all clusters");
    else if (t->up_to_date < t->selected)
        condition_set(c, TRUTH_FALSE, "Progressing", "%zu of %zu clusters have it", t->up_to_date,
                      t->selected);
    else
        condition_distributed(c, t->selected);
}

void scorer_set_distributed(const struct hub_scorer *s, struct status_condition *c)
{
    const struct hub *h = s->hub;
    const char *why = not_selected(s);

    if (!h->config.object)
        condition_set(c, TRUTH_FALSE, "NoConfig", "there is no DynamicScoringConfig named %s in namespace %s",
                      HUB_CONFIG, h->o.namespace);
    else if (!hub_is_distributing(h))
        condition_set(c, TRUTH_FALSE, "ConfigDeleting", "DynamicScoringConfig %s is being deleted",
                      HUB_CONFIG);
    else if (!h->config.has_masks)
        condition_set(c, TRUTH_FALSE, "InvalidMasks", "DynamicScoringConfig %s: %s", HUB_CONFIG,
                      h->config.masks_error);
    else if (why)
        condition_set(c, TRUTH_FALSE, "NotSelected", "%s", why);
    else if (!h->totals.managed)
        condition_set(c, TRUTH_FALSE, "NoClusters", "no ManagedCluster has been accepted");
    else if (s->entry == SIZE_MAX)
        condition_set(c, TRUTH_FALSE, "Progressing", "the summaries are being made");
    else
        set_reached(s, c);
}

/* Whether it fails, and its agent says so. */
static bool is_by_agent(enum pair_state s)
{
    return pair_info[s].class == PAIR_CLASS_FAILING && s != PAIR_NOT_WRITTEN && s != PAIR_NOT_APPLIED;
}

/* Sets the condition by the first cluster named whose agent says so; without one by the number alone. */
static void set_failing(const struct hub_scorer *s, struct status_condition *c, size_t n)
{
    const struct tally *t = &s->tally;
    char why[PAIR_REASON_BYTES] = "";
    size_t i = 0;

    while (i < t->n_named && !is_by_agent(t->named[i].pair))
        i++;
    if (i < t->n_named)
        hub_pair_reason(why, t->named[i].pair, t->named[i].cluster, t->named[i].cell);
    condition_failing(c, "fails on ", n, t->selected, "", i < t->n_named ? t->named[i].cluster->name : NULL,
                      why);
}

static void set_silent(const struct hub_scorer *s, struct status_condition *c)
{
    const struct tally *t = &s->tally;
    char why[PAIR_REASON_BYTES];
    size_t i = 0;

    while (i < t->n_named && pair_info[t->named[i].pair].class != PAIR_CLASS_SILENT)
        i++;
    if (i == t->n_named) {
        condition_set(c, TRUTH_UNKNOWN, "NoReports", "no agent has reported it");
        return;
    }
    hub_pair_reason(why, t->named[i].pair, t->named[i].cluster, t->named[i].cell);
    condition_set(c, TRUTH_UNKNOWN, "Silent", "nothing is heard of it from %zu of %zu clusters: %s: %s",
                  t->silent, t->selected, t->named[i].cluster->name, why);
}

void scorer_set_scoring(const struct hub_scorer *s, struct status_condition *c)
{
    const struct tally *t = &s->tally;
    size_t failing = t->failing - t->unwritten - t->unapplied; /* Distributed tells of the others */

    if (failing)
        set_failing(s, c, failing);
    else if (t->scoring)
        condition_set(c, TRUTH_TRUE, "Scoring", "scores on %zu of %zu clusters", t->scoring, t->selected);
    else if (t->waiting)
        condition_set(c, TRUTH_UNKNOWN, "Waiting", "no agent has scored yet");
    else
        set_silent(s, c);
}

static json_t *clusters_value(const struct tally *t)
{
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "selected", (json_int_t)t->selected,
                     "upToDate", (json_int_t)t->up_to_date, "applied", (json_int_t)t->applied, "scoring",
                     (json_int_t)t->scoring, "failing", (json_int_t)t->failing, "waiting",
                     (json_int_t)t->waiting, "silent", (json_int_t)t->silent, "noRoom",
                     (json_int_t)t->no_room);
}

static json_t *failing_value(const struct tally *t)
{
    json_auto_t *list = json_array();

    for (size_t i = 0; i < t->n_named; i++) {
        const struct hub_cluster *c = t->named[i].cluster;
        char why[PAIR_REASON_BYTES];
        json_t *value;

        hub_pair_reason(why, t->named[i].pair, c, t->named[i].cell);
        value = json_pack("{s:s, s:s, s:o}", "name", c->name, "state", pair_info[t->named[i].pair].word,
                          "error", status_line(why));
        if (json_array_append_new(list, value) < 0)
            return NULL;
    }
    return TAKE_PTR(list);
}

int scorer_put_clusters(const struct hub_scorer *s, json_t *status)
{
    int r = status_put(status, "clusters", clusters_value(&s->tally), s->object);

    if (r == 0)
        r = s->tally.n_named ? status_put(status, "failingClusters", failing_value(&s->tally), s->object)
                             : status_drop(status, "failingClusters", s->object);
    return r;
}

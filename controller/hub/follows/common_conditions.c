/* Conditions that the statuses of both kinds have. Called by scorer_status.c and config_status.c. Owns
 * nothing, changes nothing but the condition that it is given; loop thread. */
#include "controller/hub/follows/common_conditions.h"

#include "controller/hub/follows/counts.h"
#include "controller/hub/follows/reason.h"
#include "controller/hub/follows/sentences.h"
#include "controller/hub/observed/observed.h"
#include "exporter/base/buf.h"

void condition_add(struct condition *c, enum hub_reason reason, const struct buf *end)
{
    const struct condition was = *c;
    BUF_AUTO(text, CONDITION_MESSAGE_BYTES + SENTENCE_BYTES);

    buf_puts(&text, was.message);
    buf_put_str(&text, buf_str(end));
    condition_say_as(c, was.status, was.status == TRUTH_TRUE ? hub_reason_word(reason) : was.reason, &text);
}

void condition_add_without_addon(const struct fleet *f, struct condition *c, size_t n, const char *first)
{
    const struct without_addon_facts facts = {.n = n, .addon = f->o->addon_name, .first = first};
    BUF_AUTO(text, SENTENCE_BYTES);

    if (!n)
        return;
    sentence_put_without_addon(&text, &facts);
    condition_add(c, REASON_ADD_ON_MISSING, &text);
}

void condition_add_outdated(struct condition *c, enum feature feature, const struct named_clusters *clusters,
                            size_t of)
{
    static const enum hub_reason reasons[FEATURES] = {
        [FEATURE_SCORE_ITEMS] = REASON_ITEMS_IGNORED,
        [FEATURE_REVERSED_RANGE] = REASON_AGENTS_OUTDATED,
        [FEATURE_SCORE_TOLERANCE] = REASON_TOLERANCE_IGNORED,
        [FEATURE_SCORING_CLUSTER] = REASON_CLUSTER_IGNORED,
        [FEATURE_ADJUSTMENTS] = REASON_ADJUSTMENTS_IGNORED,
    };
    const char *names[HUB_NAMED_CLUSTERS];
    struct named_facts named = {.list = names, .total = clusters->total};
    const struct outdated_facts facts = {.feature = feature, .clusters = &named, .of = of};
    BUF_AUTO(text, SENTENCE_BYTES);

    if (!clusters->total)
        return;
    for (; named.n < clusters->n; named.n++)
        names[named.n] = clusters->list[named.n]->name;
    sentence_put_outdated(&text, &facts);
    condition_add(c, reasons[feature], &text);
}

void condition_distributed(struct condition *c, size_t n)
{
    BUF_AUTO(text, SENTENCE_BYTES);

    sentence_distributed(&text, n);
    condition_say(c, TRUTH_TRUE, REASON_DISTRIBUTED, &text);
}

void condition_clusters(struct condition *c, enum hub_reason reason, const char *what, size_t n, size_t of,
                        const struct hub_cluster *first, const char *why)
{
    const struct clusters_facts facts = {
        .what = what, .n = n, .of = of, .first = first ? first->name : NULL, .why = why};
    BUF_AUTO(text, SENTENCE_BYTES);

    sentence_clusters(&text, &facts);
    condition_say(c, TRUTH_FALSE, reason, &text);
}

const char *cluster_unconfirmed_reason(const struct hub_cluster *c)
{
    return c->unavailable ? "the cluster is not available" : "the work agent has not applied it yet";
}

void condition_unconfirmed(struct condition *c, size_t n, size_t of, const struct hub_cluster *first)
{
    condition_clusters(c, REASON_PROGRESSING, "ManifestWork not yet applied on", n, of, first,
                       first ? cluster_unconfirmed_reason(first) : "");
}

bool condition_unreadable(const struct fleet *f, struct condition *c)
{
    static const enum hub_kind needed[] = {HUB_CLUSTERS, HUB_WORKS, HUB_SCORERS, HUB_CONFIGS};

    for (size_t i = 0; i < ARRAY_SIZE(needed); i++) {
        const char *error = observed_refusal(f->seen, needed[i], f->now);

        if (!error)
            continue;
        condition_format(c, TRUTH_FALSE, REASON_OBJECTS_UNREADABLE,
                         "%s cannot be read: %s; the last known ones stay active", hub_kind_word(needed[i]),
                         error);
        return true;
    }
    return false;
}

void condition_add_unreadable_addons(const struct fleet *f, struct condition *c)
{
    const char *error = observed_refusal(f->seen, HUB_ADDONS, f->now);
    BUF_AUTO(text, SENTENCE_BYTES);

    if (!error)
        return;
    buf_printf(&text, "; %s cannot be read: %s", hub_kind_word(HUB_ADDONS), error);
    condition_add(c, REASON_OBJECTS_UNREADABLE, &text);
}

bool condition_no_clusters(const struct fleet *f, struct condition *c)
{
    const struct hub_totals *t = &f->counts->totals;

    if (t->managed)
        return false;
    if (t->without_addon.total)
        condition_format(c, TRUTH_FALSE, REASON_ADD_ON_MISSING,
                         "no accepted ManagedCluster has the add-on %s", f->o->addon_name);
    else
        condition_set(c, TRUTH_FALSE, REASON_NO_CLUSTERS, "no ManagedCluster is accepted");
    return true;
}

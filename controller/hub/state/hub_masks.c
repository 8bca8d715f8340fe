#include "controller/hub/state/state.h"

#include "controller/hub/rules/masks.h"
#include "controller/hub/rules/plan.h"
#include "exporter/base/glob.h"
#include "exporter/base/map.h"

#include <errno.h>
#include <stdio.h>

static const char *score_of(const struct hub *h, size_t i)
{
    return cstr(h->by_age[i]->effective.score_name);
}

static size_t scores_matching(const struct hub *h, const char *pattern)
{
    size_t n = 0;

    for (size_t i = 0; i < h->n_scorers; i++)
        n += *score_of(h, i) && glob_match(pattern, score_of(h, i));
    return n;
}

/* Fleets have many masks with few different scores: each is matched once. */
static void masks_count_scores(struct hub *h)
{
    CLEANUP(map_done) struct map known = {0};

    for (size_t i = 0; i < h->plan_masks.n; i++) {
        const struct hub_mask_counts *first = map_get(&known, h->plan_masks.list[i].score);

        if (!first) {
            h->mask_counts[i].scores = scores_matching(h, h->plan_masks.list[i].score);
            map_set(&known, h->plan_masks.list[i].score, &h->mask_counts[i]);
        } else {
            h->mask_counts[i].scores = first->scores;
        }
    }
}

void hub_masks_count(struct hub *h)
{
    size_t n = h->plan_masks.n;
    CLEANUP(cleanup_free) size_t *clusters = xcalloc(n + 1, sizeof(*clusters));

    free(h->mask_counts);
    h->mask_counts = xcalloc(n + 1, sizeof(*h->mask_counts));
    masks_count_scores(h);
    plan_mask_clusters(h->plan, clusters);
    for (size_t i = 0; i < n; i++)
        h->mask_counts[i].clusters = clusters[i];
}

bool hub_masks_counted(const struct hub *h)
{
    return h->plan && h->mask_counts && h->plan_masks.owner == h->config.masks.owner;
}

bool hub_mask_matches(const struct hub *h, size_t i)
{
    return h->mask_counts[i].clusters && h->mask_counts[i].scores;
}

size_t hub_masks_unmatched(const struct hub *h)
{
    size_t n = 0;

    for (size_t i = 0; i < h->plan_masks.n; i++)
        n += !hub_mask_matches(h, i);
    return n;
}

static const char *cluster_near(const struct hub *h, const char *text)
{
    const struct hub_cluster *c;
    const char *found = NULL;
    unsigned best = MASK_FAR;
    size_t at = 0;

    while ((c = map_next(&h->clusters, &at)))
        if (c->managed && mask_name_is_nearer(text, c->name, &best))
            found = c->name;
    return found;
}

/* Also by the name of the DynamicScorer, which is easily taken for that of its score. */
static const char *score_near(const struct hub *h, const char *text)
{
    const char *found = NULL;
    unsigned best = MASK_FAR;

    for (size_t i = 0; i < h->n_scorers; i++)
        if (*score_of(h, i) && (mask_name_is_nearer(text, score_of(h, i), &best) ||
                                mask_name_is_nearer(text, h->by_age[i]->name, &best)))
            found = score_of(h, i);
    return found;
}

static int mask_put_part(char *into, size_t size, const char *what, const char *field, const char *text,
                         const char *near)
{
    bool other = strpbrk(text, "[]{}()|");
    int n = snprintf(into, size, "no %s matches %s \"%.80s\"", what, field, text);

    if (other)
        n += snprintf(into + n, size - (size_t)n, ": only * and ? are wildcards");
    else if (near)
        n += snprintf(into + n, size - (size_t)n, ": did you mean \"%.253s\"?", near);
    return n;
}

void hub_mask_warning(char ret[MASK_WARNING_BYTES], const struct hub *h, size_t i, bool near)
{
    const struct mask *m = &h->plan_masks.list[i];
    const struct hub_mask_counts *counts = &h->mask_counts[i];
    int n = 0;

    ret[0] = '\0';
    if (!counts->clusters)
        n = mask_put_part(ret, MASK_WARNING_BYTES / 2, "cluster", "clusterName", m->cluster,
                          near ? cluster_near(h, m->cluster) : NULL);
    if (!counts->scores)
        (void)mask_put_part(ret + n + (n ? snprintf(ret + n, 3, ", ") : 0), MASK_WARNING_BYTES / 2 - 2,
                            "score", "scoreName", m->score, near ? score_near(h, m->score) : NULL);
}

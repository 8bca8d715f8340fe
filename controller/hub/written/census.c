/* Owns the newest counts (follows/counts.c makes them). The conductor says what has changed; it,
 * statuses.c and the metrics ask, all on the loop. */
#include "controller/hub/written/census.h"

#include "controller/hub/observed/cluster.h"
#include "controller/hub/observed/scorer.h"
#include "controller/kube/server_clock.h"
#include "exporter/base/clock.h"
#include "exporter/base/loop.h"

/* A thousand pairs of a scorer and a cluster take a tenth of a millisecond to count. */
enum { PAIRS_PER_MS = 1000 };

void census_begin(struct census *c)
{
    struct fleet empty = census_view(c);

    c->counts = counts_new(&empty);
}

void census_done(struct census *c)
{
    c->counts = counts_free(c->counts);
}

void census_note_change(struct census *c)
{
    c->state = CENSUS_WRONG;
}

void census_note_cluster(struct census *c)
{
    if (c->state == CENSUS_CURRENT)
        c->state = CENSUS_OLD;
}

bool census_is_current(const struct census *c)
{
    return c->state == CENSUS_CURRENT;
}

struct fleet census_view(const struct census *c)
{
    return (struct fleet){.o = c->o,
                          .seen = c->seen,
                          .plan = c->desired->plan,
                          .counts = c->counts,
                          .now = loop_now(c->o->loop),
                          .wall = kube_wall(c->o->kube),
                          .clock_offset_ms = kube_clock_offset_ms(c->o->kube)};
}

/* When a first cluster has it. */
static void census_note_distribution(struct census *c)
{
    const struct scorers *scorers = &c->seen->scorers;
    unix_ms now = kube_wall(c->o->kube);

    for (size_t i = 0; i < scorers->n; i++) {
        struct hub_scorer *s = scorers->by_age[i];

        scorer_note_distribution(s, counts_of(c->counts, s)->up_to_date > 0, now);
    }
}

struct fleet census_recount(struct census *c)
{
    struct fleet f = census_view(c);
    struct counts *counts = counts_new(&f);

    (void)counts_free(c->counts);
    c->counts = counts;
    c->state = CENSUS_CURRENT;
    c->counted_at = f.now;
    clusters_free_removed(&c->seen->clusters); /* the last counts have named them */
    if (c->is_planned)
        census_note_distribution(c);
    return census_view(c);
}

struct fleet census_count(struct census *c)
{
    return census_is_current(c) ? census_view(c) : census_recount(c);
}

/* In a large roll-out counts change all the time, and every status is computed again. */
struct fleet census_count_lazily(struct census *c)
{
    size_t pairs = c->counts->totals.managed * c->seen->scorers.n;
    int64_t age_ms = mono_diff(c->counted_at, loop_now(c->o->loop));

    if (c->state == CENSUS_OLD && age_ms < (int64_t)(pairs / PAIRS_PER_MS))
        return census_view(c);
    return census_count(c);
}

void census_forget(struct census *c, const struct hub_scorer *s)
{
    counts_forget(c->counts, s);
}

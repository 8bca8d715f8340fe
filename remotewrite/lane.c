/* Owns the lanes, their index, and whose turn it is. Endpoint's thread. A lane with a record is never
 * freed. */
#include "remotewrite/lane.h"

#include "exporter/base/alloc.h"
#include "exporter/base/invariant.h"
#include "remotewrite/timestamp.h"

void lanes_init(struct lanes *all)
{
    *all = (struct lanes){0};
    TAILQ_INIT(&all->turns);
}

void lanes_done(struct lanes *all)
{
    struct lane *l;

    while ((l = TAILQ_FIRST(&all->turns)))
        lanes_remove(all, l);
    invariant(all->n == 0);
    map_done(&all->by_name);
}

struct lane *lanes_find(const struct lanes *all, struct str name)
{
    return map_get_str(&all->by_name, name);
}

struct lane *lanes_make(struct lanes *all, struct str name)
{
    struct lane *l = lanes_find(all, name);

    if (l)
        return l;
    l = xcalloc(1, sizeof(*l) + name.n + 1);
    TAILQ_INIT(&l->records);
    l->last_ms = l->before_ms = l->stored_ms = INT64_MIN;
    l->name = (struct str){memcpy(l->text, name.p, name.n), name.n};
    map_set_str(&all->by_name, l->name, l);
    TAILQ_INSERT_TAIL(&all->turns, l, turn);
    all->n++;
    return l;
}

void lanes_remove(struct lanes *all, struct lane *l)
{
    const struct lane *taken = map_take_str(&all->by_name, l->name);

    invariant(taken == l && all->n > 0);
    invariant(TAILQ_EMPTY(&l->records));
    if (all->served == l)
        all->served = TAILQ_PREV(l, lane_turns, turn);
    TAILQ_REMOVE(&all->turns, l, turn);
    all->n--;
    free(l);
}

struct lane *lanes_after(const struct lanes *all, struct lane *l)
{
    struct lane *next = l ? TAILQ_NEXT(l, turn) : NULL;

    return next ? next : TAILQ_FIRST(&all->turns);
}

/* ---- Timestamps ---- */

int64_t lane_go_on(struct lane *l, int64_t last, int64_t next)
{
    if (next > last && !is_behind(next, last))
        l->before_ms = last;
    return last_ms_after(last, next);
}

/* A receiver may have refused the timestamps of a clock that was ahead, so that those before it count. */
int64_t lane_next_ms(const struct lane *l, int64_t at_ms)
{
    if (is_behind(l->last_ms, at_ms))
        return l->last_ms + 1;
    if (is_behind(l->before_ms, at_ms))
        return l->before_ms + 1;
    return at_ms;
}

/* The budget for the bodies of all answers. Owns the client's shares.
 *
 * A share is what one owner of calls has reserved, such as a round with all its sources; each call has
 * reserved a part of it, for its own body. A call asks before its body grows. If there is no room, its
 * transfer is paused until others give some back. A share that has reserved no more than its part of the
 * budget does not wait for one with more: the largest fails, as it does when all holders wait for each other.
 * Loop thread. */
#include "exporter/base/cgroup.h"
#include "exporter/http/http_internal.h"

#include <errno.h>

enum {
    SHARE_FREE_BYTES = 64 << 10,   /* of each share, not counted: most bodies never wait */
    LEAST_BUDGET_BYTES = 64 << 20, /* of a budget that follows from the memory's limit */
};

void http_set_budget(struct http *h, uint64_t bytes)
{
    h->budget_max = bytes ? bytes : size_max(memory_limit("") / 2, LEAST_BUDGET_BYTES);
}

void http_budget(const struct http *h, uint64_t *ret_used, uint64_t *ret_max)
{
    *ret_used = h->budget_used;
    *ret_max = h->budget_max;
}

static uint64_t beyond_free(uint64_t bytes)
{
    return bytes > SHARE_FREE_BYTES ? bytes - SHARE_FREE_BYTES : 0;
}

static bool share_reserve(struct http_share *s, size_t bytes)
{
    struct http *h = s->http;
    uint64_t more = beyond_free(s->reserved + bytes) - beyond_free(s->reserved);

    if (more > h->budget_max || h->budget_used > h->budget_max - more)
        return false;
    h->budget_used += more;
    s->reserved += bytes;
    s->waiting_for = 0;
    return true;
}

/* Whether it has come to a stop: one that was woken asks first. */
static bool share_is_stuck(const struct http_share *s)
{
    return s->waiting_for && !s->call->soon.place && !s->call->wait.is_waiting;
}

/* The share to end so that others go on; NULL to wait. `asking` does not fit. */
static struct http_share *budget_victim(const struct http *h, const struct http_share *asking)
{
    struct http_share *largest = NULL, *s;
    uint64_t holders = 0, part;
    bool all_wait = true;

    TAILQ_FOREACH (s, &h->shares, entry) {
        bool holds = beyond_free(s->reserved) > 0;

        if (s->evicted)
            return NULL; /* there will be room */
        holders += holds || s == asking;
        all_wait &= !holds || share_is_stuck(s);
        if (holds && s->call && (!largest || s->reserved >= largest->reserved))
            largest = s;
    }
    part = h->budget_max / (holders ? holders : 1);
    if (largest && beyond_free(largest->reserved) > part &&
        beyond_free(asking->reserved + asking->waiting_for) <= part)
        return largest;
    return all_wait ? largest : NULL;
}

void http_share_enter(struct http_share *s, struct http *h)
{
    if (s->http)
        return;
    *s = (struct http_share){.http = h};
    TAILQ_INSERT_TAIL(&h->shares, s, entry);
}

int http_share_reserve(struct http_share *s, struct http *h, size_t bytes)
{
    http_share_enter(s, h);
    return share_reserve(s, bytes) ? 0 : -EDQUOT;
}

void http_share_done(struct http_share *s)
{
    struct http *h = s->http;
    const struct http_share *other;
    uint64_t freed = beyond_free(s->reserved);

    if (!h)
        return;
    TAILQ_REMOVE(&h->shares, s, entry);
    h->budget_used -= freed;
    *s = (struct http_share){0};
    TAILQ_FOREACH (other, &h->shares, entry) /* there may be room: those that wait ask again */
        if (freed && other->waiting_for)
            http_call_soon(other->call);
}

/* Whether a body of `need` bytes asks for nothing: it has them, or exceeds its own limit and fails anyway. */
static bool call_asks_for_nothing(const struct http_call *c, size_t need)
{
    return need <= c->reserved || (need > c->answer.body.max && !c->rq.cut_answer);
}

/* Asks for a body of `need` bytes. -EAGAIN: the transfer must pause, and is resumed or ended. -EDQUOT: it
 * never fits. */
int http_share_reserve_body(struct http_call *c, size_t need)
{
    size_t want = size_min(size_max(need, c->reserved + c->reserved / 2), c->answer.body.max);
    struct http_share *s = c->share, *victim;

    if (call_asks_for_nothing(c, need))
        return 0;
    want -= c->reserved;
    if (beyond_free(s->reserved + want) > c->http->budget_max)
        return -EDQUOT;
    if (share_reserve(s, want)) {
        c->reserved += want;
        return 0;
    }
    s->waiting_for = want;
    victim = budget_victim(c->http, s);
    if (victim) {
        victim->evicted = true;
        http_call_soon(victim->call);
    }
    return -EAGAIN;
}

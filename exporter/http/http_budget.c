/* The budget for the bodies of all answers. Owns the client's shares.
 *
 * A share asks before its body grows. If there is no room, its transfer is paused until others give some
 * back. A share that holds no more than its part of the budget does not wait for one that holds more: the
 * largest fails, as it does when all holders wait for each other. Loop thread. */
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

static uint64_t counted(uint64_t bytes)
{
    return bytes > SHARE_FREE_BYTES ? bytes - SHARE_FREE_BYTES : 0;
}

static bool share_grant(struct http_share *s, size_t bytes)
{
    struct http *h = s->http;
    uint64_t more = counted(s->granted + bytes) - counted(s->granted);

    if (more > h->budget_max || h->budget_used > h->budget_max - more)
        return false;
    h->budget_used += more;
    s->granted += bytes;
    s->wanted = 0;
    return true;
}

/* The share to end so that others go on; NULL to wait. `asking` does not fit. */
static struct http_share *budget_victim(const struct http *h, const struct http_share *asking)
{
    struct http_share *largest = NULL, *s;
    uint64_t holders = 0, part;
    bool all_wait = true;

    TAILQ_FOREACH (s, &h->shares, entry) {
        bool holds = counted(s->granted) > 0;

        if (s->evicted)
            return NULL; /* there will be room */
        holders += holds || s == asking;
        /* One that was woken asks first. */
        all_wait &= !holds || (s->wanted && !s->call->soon.place && !s->call->wait.is_waiting);
        if (holds && s->call && (!largest || s->granted >= largest->granted))
            largest = s;
    }
    part = h->budget_max / (holders ? holders : 1);
    if (largest && counted(largest->granted) > part && counted(asking->granted + asking->wanted) <= part)
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

int http_share_hold(struct http_share *s, struct http *h, size_t bytes)
{
    http_share_enter(s, h);
    return share_grant(s, bytes) ? 0 : -EDQUOT;
}

void http_share_done(struct http_share *s)
{
    struct http *h = s->http;
    const struct http_share *other;
    uint64_t freed = counted(s->granted);

    if (!h)
        return;
    TAILQ_REMOVE(&h->shares, s, entry);
    h->budget_used -= freed;
    *s = (struct http_share){0};
    TAILQ_FOREACH (other, &h->shares, entry) /* there may be room: those that wait ask again */
        if (freed && other->wanted)
            http_call_soon(other->call);
}

/* Asks for a body of `need` bytes. -EAGAIN: the transfer must pause, and is resumed or ended. -EDQUOT: it
 * never fits. */
int http_share_charge(struct http_call *c, size_t need)
{
    size_t want = size_min(size_max(need, c->charged + c->charged / 2), c->answer.body.max);
    struct http_share *s = c->share, *victim;

    if (need <= c->charged || (need > c->answer.body.max && !c->rq.cut_answer)) /* the latter fails anyway */
        return 0;
    want -= c->charged;
    if (counted(s->granted + want) > c->http->budget_max)
        return -EDQUOT;
    if (share_grant(s, want)) {
        c->charged += want;
        return 0;
    }
    s->wanted = want;
    victim = budget_victim(c->http, s);
    if (victim) {
        victim->evicted = true;
        http_call_soon(victim->call);
    }
    return -EAGAIN;
}

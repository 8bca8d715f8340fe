/* One budget for the bodies of all answers of a client.
 *
 * A share asks before its body grows. If there is no room, its transfer is paused until others give some
 * back. A share that holds no more than its part of the budget does not wait for one that holds more: the
 * largest of those fails. If all holders wait for each other, the youngest fails, so that the others end. */
#include "exporter/base/http_internal.h"

#include "exporter/base/memory.h"

#include <errno.h>

enum {
    FREE_BYTES = 64 << 10,  /* of each share, not counted: most bodies never wait */
    LEAST_BYTES = 64 << 20, /* of a budget that follows from the memory's limit */
};

void http_set_budget(struct http *h, uint64_t bytes)
{
    h->budget_max = bytes ? bytes : size_max(memory_limit("") / 2, LEAST_BYTES);
}

void http_budget(const struct http *h, uint64_t *ret_used, uint64_t *ret_max)
{
    *ret_used = h->budget_used;
    *ret_max = h->budget_max;
}

static uint64_t counted(uint64_t bytes)
{
    return bytes > FREE_BYTES ? bytes - FREE_BYTES : 0;
}

static bool share_grant(struct http_share *s, size_t bytes)
{
    struct http *h = s->http;
    uint64_t more = counted(s->held + bytes) - counted(s->held);

    if (more > h->budget_max || h->budget_used > h->budget_max - more)
        return false;
    h->budget_used += more;
    s->held += bytes;
    s->want = 0;
    return true;
}

static void share_evict(struct http_share *s)
{
    if (!s)
        return;
    s->evicted = true;
    http_call_soon(s->call);
}

/* The share to end so that others go on; NULL to wait. `asking` does not fit; NULL when some was freed. */
static struct http_share *budget_victim(const struct http *h, const struct http_share *asking)
{
    struct http_share *largest = NULL, *youngest = NULL, *s;
    uint64_t holders = 0, part;
    bool all_wait = true;

    TAILQ_FOREACH (s, &h->shares, entry) {
        bool holds = counted(s->held) > 0;

        if (s->evicted)
            return NULL; /* there will be room */
        holders += holds || s == asking;
        all_wait &= !holds || s->want;
        if (holds && s->want)
            youngest = s;
        if (s != asking && s->call && (!largest || s->held >= largest->held))
            largest = s;
    }
    part = h->budget_max / (holders ? holders : 1);
    if (asking && largest && counted(largest->held) > part && counted(asking->held + asking->want) <= part)
        return largest;
    return all_wait ? youngest : NULL;
}

static void budget_wake(struct http *h)
{
    bool is_granted = false;
    struct http_share *s;

    TAILQ_FOREACH (s, &h->shares, entry) {
        size_t want = s->want;

        if (!want || s->evicted || !share_grant(s, want))
            continue;
        s->call->charged += want;
        http_call_soon(s->call);
        is_granted = true;
    }
    if (!is_granted)
        share_evict(budget_victim(h, NULL));
}

static void share_enter(struct http_share *s, struct http *h)
{
    if (s->http)
        return;
    *s = (struct http_share){.http = h};
    TAILQ_INSERT_TAIL(&h->shares, s, entry);
}

int http_share_hold(struct http_share *s, struct http *h, size_t bytes)
{
    share_enter(s, h);
    return share_grant(s, bytes) ? 0 : -EDQUOT;
}

void http_share_join(struct http_share *s, struct http_call *c)
{
    share_enter(s, c->http);
    s->call = c;
    c->share = s;
}

void http_share_leave(struct http_call *c)
{
    struct http_share *s = c->share;

    s->call = NULL;
    s->want = 0;
    s->evicted = false;
    if (s == &c->own_share)
        http_share_done(s);
}

void http_share_done(struct http_share *s)
{
    struct http *h = s->http;

    if (!h)
        return;
    TAILQ_REMOVE(&h->shares, s, entry);
    h->budget_used -= counted(s->held);
    *s = (struct http_share){0};
    budget_wake(h);
}

int http_charge(struct http_call *c, size_t need)
{
    size_t want = size_min(size_max(need, c->charged + c->charged / 2), c->answer.body.max);
    struct http_share *s = c->share;

    if (need <= c->charged || (need > c->answer.body.max && !c->rq.cut_answer)) /* the latter fails anyway */
        return 0;
    if (s->want || s->evicted)
        return -EAGAIN;
    want -= c->charged;
    if (counted(s->held + want) > c->http->budget_max)
        return -EDQUOT;
    if (share_grant(s, want)) {
        c->charged += want;
        return 0;
    }
    s->want = want;
    share_evict(budget_victim(c->http, s));
    return -EAGAIN;
}

void http_fail_budget(struct http_call *c, const char *what)
{
    http_fail(c, HTTP_MEMORY, "over limits.memory (%llu MiB): %s, with %zu bytes of responses in memory",
              (unsigned long long)(c->http->budget_max >> 20), what, c->share->held);
}

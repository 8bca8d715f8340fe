/* Owns the timers' heap, the list of watched descriptors, the queue of posted work and the multi handle. Only the queue
 * is shared with other threads, behind `lock`. */
#include "exporter/base/loop.h"

#include <errno.h>
#include <pthread.h>

enum { MAX_WATCHES = 8 };

struct loop {
    const struct clock *clock;
    CURLM *multi;
    void (*transfer_done)(void *arg, CURL *easy, CURLcode code);
    void *transfer_arg;
    mono_ms now;
    bool stop;
    struct timer **heap; /* 1-based: heap[1] is due first */
    size_t n_timers, cap;
    struct watch *watches;
    pthread_mutex_t lock;
    struct post *posts, **posts_end;
};

int loop_new(struct loop **ret, const struct clock *clock)
{
    CLEANUP(cleanup_loop_free) struct loop *l = calloc(1, sizeof(*l));

    if (!l)
        return -ENOMEM;
    l->clock = clock;
    l->now = clock->mono(clock);
    (void)pthread_mutex_init(&l->lock, NULL);
    l->posts_end = &l->posts;
    l->multi = curl_multi_init();
    if (!l->multi)
        return -ENOMEM;
    *ret = TAKE_PTR(l);
    return 0;
}

struct loop *loop_free(struct loop *l)
{
    if (!l)
        return NULL;
    if (l->multi)
        (void)curl_multi_cleanup(l->multi);
    (void)pthread_mutex_destroy(&l->lock);
    free(l->heap);
    free(l);
    return NULL;
}

mono_ms loop_now(const struct loop *l)
{
    return l->now;
}

unix_ms loop_wall(const struct loop *l)
{
    return l->clock->wall(l->clock);
}

CURLM *loop_multi(struct loop *l, void (*done)(void *arg, CURL *easy, CURLcode code), void *arg)
{
    l->transfer_done = done;
    l->transfer_arg = arg;
    return l->multi;
}

static void heap_put(struct loop *l, struct timer *t, size_t i)
{
    l->heap[i] = t;
    t->place = i;
}

static void heap_up(struct loop *l, struct timer *t, size_t i)
{
    for (; i > 1 && mono_before(t->at, l->heap[i / 2]->at); i /= 2)
        heap_put(l, l->heap[i / 2], i);
    heap_put(l, t, i);
}

static void heap_down(struct loop *l, struct timer *t, size_t i)
{
    for (size_t child; (child = i * 2) <= l->n_timers; i = child) {
        if (child < l->n_timers && mono_before(l->heap[child + 1]->at, l->heap[child]->at))
            child++;
        if (!mono_before(l->heap[child]->at, t->at))
            break;
        heap_put(l, l->heap[child], i);
    }
    heap_put(l, t, i);
}

int loop_timer_set(struct loop *l, struct timer *t, mono_ms at)
{
    if (t->place == 0 && l->n_timers + 1 >= l->cap) {
        size_t cap = size_max(16, l->cap * 2);
        struct timer **heap = realloc(l->heap, cap * sizeof(*heap));
        if (!heap)
            return -ENOMEM;
        l->heap = heap;
        l->cap = cap;
    }
    t->at = at;
    if (t->place == 0)
        heap_up(l, t, ++l->n_timers);
    else if (t->place > 1 && mono_before(at, l->heap[t->place / 2]->at))
        heap_up(l, t, t->place);
    else
        heap_down(l, t, t->place);
    return 0;
}

void loop_timer_clear(struct loop *l, struct timer *t)
{
    size_t i = t->place;
    struct timer *last;

    if (i == 0)
        return;
    t->place = 0;
    last = l->heap[l->n_timers--];
    if (last == t)
        return;
    if (i > 1 && mono_before(last->at, l->heap[i / 2]->at))
        heap_up(l, last, i);
    else
        heap_down(l, last, i);
}

void loop_watch_add(struct loop *l, struct watch *w)
{
    w->next = l->watches;
    l->watches = w;
}

void loop_watch_remove(struct loop *l, struct watch *w)
{
    for (struct watch **at = &l->watches; *at; at = &(*at)->next)
        if (*at == w) {
            *at = w->next;
            return;
        }
}

void loop_post(struct loop *l, struct post *p)
{
    p->next = NULL;
    (void)pthread_mutex_lock(&l->lock);
    *l->posts_end = p;
    l->posts_end = &p->next;
    (void)pthread_mutex_unlock(&l->lock);
    (void)curl_multi_wakeup(l->multi);
}

static void run_posts(struct loop *l)
{
    struct post *p, *next;

    (void)pthread_mutex_lock(&l->lock);
    p = l->posts;
    l->posts = NULL;
    l->posts_end = &l->posts;
    (void)pthread_mutex_unlock(&l->lock);
    for (; p; p = next) {
        next = p->next; /* fn may free its post */
        p->fn(p);
    }
}

/* Timers that fn() sets for now or the past run in the next turn, so a turn always ends. */
static void run_timers(struct loop *l)
{
    for (size_t n = l->n_timers; n && l->n_timers && !mono_before(l->now, l->heap[1]->at); n--) {
        struct timer *t = l->heap[1];
        loop_timer_clear(l, t);
        t->fn(t);
    }
}

/* All that have finished, before the next poll: a transfer left unread would wait for another event. */
static void run_transfers(struct loop *l)
{
    CURLMsg *m;
    int left;

    while ((m = curl_multi_info_read(l->multi, &left)))
        if (m->msg == CURLMSG_DONE)
            l->transfer_done(l->transfer_arg, m->easy_handle, m->data.result);
}

static int wait_ms(const struct loop *l, int max_wait_ms)
{
    int64_t until;

    if (l->n_timers == 0)
        return max_wait_ms;
    until = mono_diff(l->clock->mono(l->clock), l->heap[1]->at);
    if (until <= 0)
        return 0;
    return until < max_wait_ms ? (int)until : max_wait_ms;
}

int loop_turn(struct loop *l, int max_wait_ms)
{
    struct curl_waitfd fds[MAX_WATCHES];
    struct watch *watches[MAX_WATCHES];
    unsigned n = 0;
    int running;

    for (struct watch *w = l->watches; w && n < MAX_WATCHES; w = w->next) {
        watches[n] = w;
        fds[n++] = (struct curl_waitfd){.fd = w->fd, .events = CURL_WAIT_POLLIN};
    }
    if (curl_multi_poll(l->multi, fds, n, wait_ms(l, max_wait_ms), NULL) != CURLM_OK)
        return -EIO;
    l->now = l->clock->mono(l->clock);
    for (unsigned i = 0; i < n; i++)
        if (fds[i].revents)
            watches[i]->fn(watches[i]);
    run_posts(l);
    run_timers(l);
    (void)curl_multi_perform(l->multi, &running);
    run_transfers(l);
    return 0;
}

int loop_run(struct loop *l)
{
    l->stop = false;
    while (!l->stop) {
        int r = loop_turn(l, 60000);
        if (r < 0)
            return r;
    }
    return 0;
}

void loop_stop(struct loop *l)
{
    l->stop = true;
}

/* Owns the heap of timers, the queue of posts and the poller. Other threads share only the queue, behind
 * `lock`, and wake the poller. */
#include "exporter/base/loop.h"

#include "exporter/base/alloc.h"
#include "exporter/base/invariant.h"
#include "exporter/base/lock.h"
#include "exporter/base/poller.h"

#include <errno.h>
#include <stdatomic.h>
#include <time.h>

/* The clock counts the time that the machine sleeps, the wait does not: timers that are due on waking up,
 * such as those that remove old scores, run after at most this long. */
enum { MAX_WAIT_MS = 1000 };

struct loop {
    const struct clock *clock;
    struct poller *poller;
    void (*transfer_done)(CURL *easy, CURLcode code);
    void (*turned)(void *arg, double seconds);
    void *turned_arg;
    double began; /* this turn; monotonic */
    mono_ms now;
    mono_ms last_read; /* of the clock */
    int64_t lost_ms;   /* by which the clock has gone back in all */
    bool stop;
    uint64_t turns;
    _Atomic pthread_t thread;      /* that makes a turn now; 0: none */
    size_t bytes, most_bytes;      /* of peers, in this turn and in any */
    TAILQ_HEAD(, share_wait) line; /* the first to line up first */
    struct timer **heap;           /* 1-based: heap[1] is due first */
    size_t n_timers, cap;
    uint64_t settings;   /* calls of loop_timer_set() */
    struct watch *watch; /* NULL: none */
    struct lock lock;
    STAILQ_HEAD(posts, post) posts;
};

/* A virtual machine that is restored or migrated may see its clock go back. Timers then wait for what was
 * left of their time, not for the clock to catch up. */
static mono_ms read_clock(struct loop *l)
{
    mono_ms t = l->clock->mono(l->clock);

    if (mono_before(t, l->last_read))
        l->lost_ms += mono_diff(t, l->last_read);
    l->last_read = t;
    return mono_add(t, l->lost_ms);
}

DEFINE_CLEANUP(struct loop, loop_free)

int loop_new(struct loop **ret, const struct clock *clock)
{
    CLEANUP(cleanup_loop_free) struct loop *l = xcalloc(1, sizeof(*l));
    int r;

    l->clock = clock;
    l->now = l->last_read = clock->mono(clock);
    lock_init(&l->lock);
    STAILQ_INIT(&l->posts);
    TAILQ_INIT(&l->line);
    r = poller_new(&l->poller);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(l);
    return 0;
}

struct loop *loop_free(struct loop *l)
{
    if (!l)
        return NULL;
    l->poller = poller_free(l->poller);
    lock_done(&l->lock);
    free(l->heap);
    free(l);
    return NULL;
}

bool loop_is_own(const struct loop *l)
{
    pthread_t thread = atomic_load_explicit(&l->thread, memory_order_relaxed);

    return thread == 0 || thread == pthread_self();
}

mono_ms loop_now(const struct loop *l)
{
    return l->now;
}

unix_ms loop_wall(const struct loop *l)
{
    return l->clock->wall(l->clock);
}

int64_t loop_clock_ms(const struct loop *l)
{
    return l->clock->wall(l->clock).ms - l->clock->mono(l->clock).ms;
}

CURLM *loop_multi(struct loop *l, void (*done)(CURL *easy, CURLcode code))
{
    l->transfer_done = done;
    return poller_multi(l->poller);
}

/* Timers of the same time run in the order in which they were set. */
static bool timer_before(const struct timer *a, const struct timer *b)
{
    return a->at.ms < b->at.ms || (a->at.ms == b->at.ms && a->order < b->order);
}

static void heap_put(struct loop *l, struct timer *t, size_t i)
{
    l->heap[i] = t;
    t->place = i;
}

/* Moves t from the free index i to its place. */
static void heap_move(struct loop *l, struct timer *t, size_t i)
{
    for (; i > 1 && timer_before(t, l->heap[i / 2]); i /= 2)
        heap_put(l, l->heap[i / 2], i);
    for (size_t child; (child = i * 2) <= l->n_timers; i = child) {
        if (child < l->n_timers && timer_before(l->heap[child + 1], l->heap[child]))
            child++;
        if (!timer_before(l->heap[child], t))
            break;
        heap_put(l, l->heap[child], i);
    }
    heap_put(l, t, i);
}

void loop_timer_set(struct loop *l, struct timer *t, mono_ms at)
{
    invariant(loop_is_own(l));
    if (t->place == 0 && l->n_timers + 1 >= l->cap) {
        l->cap = size_max(16, l->cap * 2);
        l->heap = xreallocarray(l->heap, l->cap, sizeof(struct timer *));
    }
    /* A time in the past counts as now, so that the timer runs after those already due. */
    t->at = mono_before(at, l->now) ? l->now : at;
    t->order = l->settings++;
    heap_move(l, t, t->place ? t->place : ++l->n_timers);
}

void loop_timer_clear(struct loop *l, struct timer *t)
{
    size_t i = t->place;
    struct timer *last;

    if (i == 0)
        return;
    invariant(loop_is_own(l));
    invariant(i <= l->n_timers && l->heap[i] == t);
    t->place = 0;
    last = l->heap[l->n_timers--];
    if (last != t)
        heap_move(l, last, i);
}

int loop_watch(struct loop *l, struct watch *w)
{
    int r;

    invariant(loop_is_own(l));
    r = poller_watch(l->poller, w->fd);
    if (r == 0)
        l->watch = w;
    return r;
}

void loop_unwatch(struct loop *l)
{
    invariant(loop_is_own(l));
    poller_unwatch(l->poller);
    l->watch = NULL;
}

void loop_post(struct loop *l, struct post *p)
{
    lock_take(&l->lock);
    STAILQ_INSERT_TAIL(&l->posts, p, entry);
    lock_release(&l->lock);
    poller_wake(l->poller);
}

void loop_unpost(struct loop *l, struct post *p)
{
    struct post *at;

    lock_take(&l->lock);
    STAILQ_FOREACH(at, &l->posts, entry)
    if (at == p) {
        STAILQ_REMOVE(&l->posts, p, post, entry);
        break;
    }
    lock_release(&l->lock);
}

void loop_on_turn(struct loop *l, void (*fn)(void *arg, double seconds), void *arg)
{
    l->turned = fn;
    l->turned_arg = arg;
}

double loop_turn_seconds(const struct loop *l)
{
    return clock_seconds() - l->began;
}

size_t loop_bytes_left(const struct loop *l)
{
    return l->bytes < LOOP_TURN_BYTES ? LOOP_TURN_BYTES - l->bytes : 0;
}

void loop_spend(struct loop *l, size_t bytes)
{
    invariant(loop_is_own(l));
    l->bytes += bytes;
    l->most_bytes = size_max(l->most_bytes, l->bytes);
}

void loop_share_wait(struct loop *l, struct share_wait *w)
{
    invariant(loop_is_own(l));
    if (w->is_waiting)
        return;
    TAILQ_INSERT_TAIL(&l->line, w, entry);
    w->is_waiting = true;
    w->since = l->turns;
}

void loop_share_leave(struct loop *l, struct share_wait *w)
{
    if (!w->is_waiting)
        return;
    invariant(loop_is_own(l));
    TAILQ_REMOVE(&l->line, w, entry);
    w->is_waiting = false;
}

size_t loop_most_bytes(const struct loop *l)
{
    return l->most_bytes;
}

uint64_t loop_turns(const struct loop *l)
{
    return l->turns;
}

static void run_posts(struct loop *l)
{
    struct posts posts = STAILQ_HEAD_INITIALIZER(posts);
    struct post *p;

    lock_take(&l->lock);
    STAILQ_CONCAT(&posts, &l->posts);
    lock_release(&l->lock);
    while ((p = STAILQ_FIRST(&posts))) {
        STAILQ_REMOVE_HEAD(&posts, entry);
        p->fn(p);
    }
}

/* A timer that a callback sets for now or the past runs in the next turn, so that each turn ends. */
static void run_timers(struct loop *l)
{
    const struct timer end = {.at = l->now, .order = l->settings};

    while (l->n_timers && timer_before(l->heap[1], &end)) {
        struct timer *t = l->heap[1];
        loop_timer_clear(l, t);
        t->fn(t);
    }
}

/* Who lines up again waits for another turn, behind all others. */
static void run_line(struct loop *l)
{
    struct share_wait *w;

    while ((w = TAILQ_FIRST(&l->line)) && w->since < l->turns && loop_bytes_left(l) >= LOOP_PIECE_BYTES) {
        loop_share_leave(l, w);
        w->fn(w);
    }
}

/* Reads all messages: one left unread would wait for the next event. */
static void run_transfers(struct loop *l)
{
    CURLMsg *m;
    int left;

    while ((m = curl_multi_info_read(poller_multi(l->poller), &left)))
        if (m->msg == CURLMSG_DONE)
            l->transfer_done(m->easy_handle, m->data.result);
}

static int wait_ms(struct loop *l, int max_wait_ms)
{
    int64_t until = !TAILQ_EMPTY(&l->line) ? 0
                    : l->n_timers          ? mono_diff(read_clock(l), l->heap[1]->at)
                                           : max_wait_ms;

    return until <= 0 ? 0 : until < max_wait_ms ? (int)until : max_wait_ms;
}

/* Waits for events, and runs all that is due. */
static int run_turn(struct loop *l, int max_wait_ms)
{
    bool readable;
    int r = poller_wait(l->poller, wait_ms(l, max_wait_ms), &readable);

    if (r < 0)
        return r;
    l->now = read_clock(l);
    l->began = clock_seconds();
    l->turns++;
    l->bytes = 0;
    if (readable)
        l->watch->fn(l->watch);
    run_posts(l);
    run_timers(l);
    run_line(l);
    r = poller_run_transfers(l->poller);
    run_transfers(l);
    if (l->turned)
        l->turned(l->turned_arg, loop_turn_seconds(l));
    return r;
}

int loop_turn(struct loop *l, int max_wait_ms)
{
    int r;

    invariant(loop_is_own(l));
    atomic_store_explicit(&l->thread, pthread_self(), memory_order_relaxed);
    r = run_turn(l, max_wait_ms);
    atomic_store_explicit(&l->thread, 0, memory_order_relaxed);
    return r;
}

int loop_run(struct loop *l)
{
    int r = 0;

    l->stop = false;
    while (!l->stop && r == 0)
        r = loop_turn(l, MAX_WAIT_MS);
    return r;
}

void loop_stop(struct loop *l)
{
    invariant(loop_is_own(l));
    l->stop = true;
}

/* ---- The worker: owns its thread and the two queues, which `lock` protects ---- */

struct worker {
    struct loop *loop;
    pthread_t thread;
    struct lock lock;
    pthread_cond_t changed;
    STAILQ_HEAD(jobs, job) waiting, finished;
    struct job *running; /* the innermost; the worker's thread alone uses it */
    bool stop;
    struct post post; /* posted while `finished` is not empty */
};

static struct job *jobs_take(struct jobs *list)
{
    struct job *j = STAILQ_FIRST(list);

    if (j)
        STAILQ_REMOVE_HEAD(list, entry);
    return j;
}

/* The worker whose job this thread runs. */
static __thread struct worker *own_worker;

/* The first that reads at most `bytes`. */
static struct job *jobs_take_small(struct jobs *list, size_t bytes)
{
    struct job *j;

    STAILQ_FOREACH(j, list, entry)
    if (j->bytes && j->bytes <= bytes)
        break;
    if (j)
        STAILQ_REMOVE(list, j, job, entry);
    return j;
}

/* The lock is held, except while the job runs. */
static void worker_run(struct worker *w, struct job *j)
{
    struct job *outer = w->running;

    invariant(lock_is_held(&w->lock));
    w->running = j;
    own_worker = w;
    lock_release(&w->lock);
    j->run(j);
    lock_take(&w->lock);
    invariant(w->running == j);
    w->running = outer;
    own_worker = outer ? w : NULL;
    if (STAILQ_EMPTY(&w->finished))
        loop_post(w->loop, &w->post);
    STAILQ_INSERT_TAIL(&w->finished, j, entry);
}

void worker_slice(void)
{
    struct worker *w = own_worker;
    struct job *j;

    if (!w)
        return;
    invariant(w->running != NULL);
    lock_take(&w->lock);
    while (!w->stop && (j = jobs_take_small(&w->waiting, w->running->bytes / 2)))
        worker_run(w, j);
    lock_release(&w->lock);
}

static void *worker_main(void *arg)
{
    struct worker *w = arg;

    (void)pthread_setname_np(pthread_self(), "worker");
    lock_take(&w->lock);
    while (!w->stop) {
        struct job *j = jobs_take(&w->waiting);

        if (j)
            worker_run(w, j);
        else
            lock_wait(&w->lock, &w->changed);
    }
    lock_release(&w->lock);
    return NULL;
}

static void worker_on_post(struct post *p)
{
    struct worker *w = CONTAINER_OF(p, struct worker, post);
    struct jobs finished = STAILQ_HEAD_INITIALIZER(finished);
    struct job *j;

    lock_take(&w->lock);
    STAILQ_CONCAT(&finished, &w->finished);
    lock_release(&w->lock);
    while ((j = jobs_take(&finished)))
        j->done(j);
}

void thread_block_signals(sigset_t *ret_before)
{
    static const int faults[] = {SIGBUS, SIGFPE, SIGILL, SIGSEGV};
    sigset_t signals;

    (void)sigfillset(&signals);
    for (size_t i = 0; i < ARRAY_SIZE(faults); i++)
        (void)sigdelset(&signals, faults[i]);
    (void)pthread_sigmask(SIG_SETMASK, &signals, ret_before);
}

int thread_start(pthread_t *ret, void *(*run)(void *arg), void *arg)
{
    sigset_t before;
    int r;

    thread_block_signals(&before);
    r = pthread_create(ret, NULL, run, arg);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return -r;
}

int worker_new(struct worker **ret, struct loop *loop)
{
    struct worker *w = xcalloc(1, sizeof(*w));

    w->loop = loop;
    w->post.fn = worker_on_post;
    STAILQ_INIT(&w->waiting);
    STAILQ_INIT(&w->finished);
    lock_init(&w->lock);
    (void)pthread_cond_init(&w->changed, NULL);
    if (thread_start(&w->thread, worker_main, w) < 0) {
        (void)pthread_cond_destroy(&w->changed);
        lock_done(&w->lock);
        free(w);
        return -EAGAIN;
    }
    *ret = w;
    return 0;
}

struct worker *worker_free(struct worker *w)
{
    struct job *j;

    if (!w)
        return NULL;
    lock_take(&w->lock);
    w->stop = true;
    (void)pthread_cond_signal(&w->changed);
    lock_release(&w->lock);
    (void)pthread_join(w->thread, NULL);
    loop_unpost(w->loop, &w->post);
    while ((j = jobs_take(&w->finished)) || (j = jobs_take(&w->waiting)))
        j->done(j);
    (void)pthread_cond_destroy(&w->changed);
    lock_done(&w->lock);
    free(w);
    return NULL;
}

void worker_start(struct worker *w, struct job *j)
{
    lock_take(&w->lock);
    STAILQ_INSERT_TAIL(&w->waiting, j, entry);
    (void)pthread_cond_signal(&w->changed);
    lock_release(&w->lock);
}

bool worker_takes(const struct worker *w, size_t bytes)
{
    return w && (bytes > WORKER_MIN_BYTES || bytes > loop_bytes_left(w->loop));
}

void worker_do(struct worker *w, struct job *j, size_t bytes)
{
    if (worker_takes(w, bytes)) {
        j->bytes = bytes;
        worker_start(w, j);
        return;
    }
    if (w)
        loop_spend(w->loop, bytes);
    j->run(j);
    j->done(j);
}

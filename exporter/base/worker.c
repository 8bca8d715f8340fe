/* Owns the thread and the two queues, which `lock` protects. */
#include "exporter/base/worker.h"

#include <errno.h>
#include <signal.h>

struct worker {
    struct loop *loop;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    STAILQ_HEAD(jobs, job) waiting, finished;
    bool stop, posted;
    struct post post;
};

static struct job *jobs_take(struct jobs *list)
{
    struct job *j = STAILQ_FIRST(list);

    if (j)
        STAILQ_REMOVE_HEAD(list, entry);
    return j;
}

static void *worker_main(void *arg)
{
    struct worker *w = arg;

    (void)pthread_mutex_lock(&w->lock);
    while (!w->stop) {
        struct job *j = jobs_take(&w->waiting);

        if (!j) {
            (void)pthread_cond_wait(&w->changed, &w->lock);
            continue;
        }
        (void)pthread_mutex_unlock(&w->lock);
        j->run(j);
        (void)pthread_mutex_lock(&w->lock);
        STAILQ_INSERT_TAIL(&w->finished, j, entry);
        if (!w->posted && !w->stop)
            loop_post(w->loop, &w->post);
        w->posted = true;
    }
    (void)pthread_mutex_unlock(&w->lock);
    return NULL;
}

static void worker_on_post(struct post *p)
{
    struct worker *w = CONTAINER_OF(p, struct worker, post);
    struct jobs finished = STAILQ_HEAD_INITIALIZER(finished);
    struct job *j;

    (void)pthread_mutex_lock(&w->lock);
    w->posted = false;
    STAILQ_CONCAT(&finished, &w->finished);
    (void)pthread_mutex_unlock(&w->lock);
    while ((j = jobs_take(&finished)))
        j->done(j);
}

int thread_start(pthread_t *ret, void *(*run)(void *arg), void *arg)
{
    sigset_t all, before;
    int r;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
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
    (void)pthread_mutex_init(&w->lock, NULL);
    (void)pthread_cond_init(&w->changed, NULL);
    if (thread_start(&w->thread, worker_main, w) < 0) {
        (void)pthread_cond_destroy(&w->changed);
        (void)pthread_mutex_destroy(&w->lock);
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
    (void)pthread_mutex_lock(&w->lock);
    w->stop = true;
    (void)pthread_cond_signal(&w->changed);
    (void)pthread_mutex_unlock(&w->lock);
    (void)pthread_join(w->thread, NULL);
    loop_unpost(w->loop, &w->post);
    while ((j = jobs_take(&w->finished)) || (j = jobs_take(&w->waiting)))
        j->done(j);
    (void)pthread_cond_destroy(&w->changed);
    (void)pthread_mutex_destroy(&w->lock);
    free(w);
    return NULL;
}

void worker_start(struct worker *w, struct job *j)
{
    (void)pthread_mutex_lock(&w->lock);
    STAILQ_INSERT_TAIL(&w->waiting, j, entry);
    (void)pthread_cond_signal(&w->changed);
    (void)pthread_mutex_unlock(&w->lock);
}

void worker_do(struct worker *w, struct job *j, size_t bytes)
{
    if (w && bytes > WORKER_MIN_BYTES) {
        worker_start(w, j);
        return;
    }
    j->run(j);
    j->done(j);
}

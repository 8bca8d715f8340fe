/* Owns the multi handle, and the epoll instance with the sockets that libcurl names in on_socket(). The
 * loop's thread alone; others only write to `wake`. */
#include "exporter/base/poller.h"

#include "exporter/base/alloc.h"
#include "exporter/base/clock.h"
#include "exporter/base/invariant.h"

#include <errno.h>
#include <math.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

enum { MAX_READY = 256 /* sockets that a turn serves; the kernel gives others to the next one */ };

struct poller {
    CURLM *multi;
    int epoll;
    int wake;    /* an eventfd */
    int watched; /* -1: none */
    double due;  /* when libcurl has timeouts to handle, by clock_seconds(); INFINITY: never */
    struct epoll_event ready[MAX_READY]; /* of sockets of transfers, found by the last wait */
    size_t n_ready;
};

/* Adds a descriptor, or changes the events for which it is waited. */
static int poller_expect(const struct poller *p, int fd, uint32_t events)
{
    struct epoll_event e = {.events = events, .data.fd = fd};

    if (epoll_ctl(p->epoll, EPOLL_CTL_ADD, fd, &e) == 0)
        return 0;
    if (errno == EEXIST && epoll_ctl(p->epoll, EPOLL_CTL_MOD, fd, &e) == 0)
        return 0;
    return -errno;
}

/* ---- What libcurl asks for ---- */

/* From inside of libcurl. If it fails, libcurl gives up all transfers, and poller_run_transfers() fails. */
static int on_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *unused)
{
    const struct poller *p = arg;
    uint32_t events = 0;

    (void)easy;
    (void)unused;
    if (what == CURL_POLL_REMOVE) {
        /* Fails if it is closed, which has removed it: libcurl 7.88 closes the socket of a connection that is
         * still being made before it says so. Its number may be another thread's by then, whose descriptor
         * is not in this epoll instance, so that this fails as well. */
        (void)epoll_ctl(p->epoll, EPOLL_CTL_DEL, fd, NULL);
        return 0;
    }
    if (what & CURL_POLL_IN)
        events |= EPOLLIN;
    if (what & CURL_POLL_OUT)
        events |= EPOLLOUT;
    return poller_expect(p, fd, events) < 0 ? -1 : 0;
}

/* From inside of libcurl. It has one timer, which this sets. */
static int on_timeout(CURLM *multi, long ms, void *arg)
{
    struct poller *p = arg;

    (void)multi;
    p->due = ms < 0 ? INFINITY : clock_seconds() + (double)ms / 1e3;
    return 0;
}

static bool poller_drives_multi(struct poller *p)
{
    return curl_multi_setopt(p->multi, CURLMOPT_SOCKETFUNCTION, on_socket) == CURLM_OK &&
           curl_multi_setopt(p->multi, CURLMOPT_SOCKETDATA, p) == CURLM_OK &&
           curl_multi_setopt(p->multi, CURLMOPT_TIMERFUNCTION, on_timeout) == CURLM_OK &&
           curl_multi_setopt(p->multi, CURLMOPT_TIMERDATA, p) == CURLM_OK;
}

/* ---- Life ---- */

DEFINE_CLEANUP(struct poller, poller_free)

int poller_new(struct poller **ret)
{
    CLEANUP(cleanup_poller_free) struct poller *p = xcalloc(1, sizeof(*p));
    int r;

    p->wake = p->watched = -1;
    p->due = INFINITY;
    p->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (p->epoll < 0)
        return -errno;
    p->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (p->wake < 0)
        return -errno;
    r = poller_expect(p, p->wake, EPOLLIN);
    if (r < 0)
        return r;
    p->multi = curl_multi_init();
    if (!p->multi || !poller_drives_multi(p))
        return -ENOMEM;
    *ret = TAKE_PTR(p);
    return 0;
}

struct poller *poller_free(struct poller *p)
{
    if (!p)
        return NULL;
    (void)curl_multi_cleanup(p->multi); /* calls on_socket() */
    cleanup_close(&p->wake);
    cleanup_close(&p->epoll);
    free(p);
    return NULL;
}

CURLM *poller_multi(struct poller *p)
{
    return p->multi;
}

int poller_watch(struct poller *p, int fd)
{
    int r;

    invariant(p->watched < 0);
    r = poller_expect(p, fd, EPOLLIN);
    if (r < 0)
        return r;
    p->watched = fd;
    return 0;
}

void poller_unwatch(struct poller *p)
{
    if (p->watched < 0)
        return;
    (void)epoll_ctl(p->epoll, EPOLL_CTL_DEL, p->watched, NULL);
    p->watched = -1;
}

/* ---- A turn ---- */

void poller_wake(struct poller *p)
{
    const uint64_t one = 1;
    ssize_t n = write(p->wake, &one, sizeof(one));

    invariant(n == sizeof(one) || errno == EAGAIN); /* so often that it is full: the loop is woken */
}

static void poller_take_wakes(struct poller *p)
{
    uint64_t times;
    ssize_t n = read(p->wake, &times, sizeof(times));

    invariant(n == sizeof(times) || errno == EAGAIN);
}

/* Until libcurl has something to do, rounded up, but at most `ms`. */
static int poller_wait_ms(const struct poller *p, int ms)
{
    double left_ms = (p->due - clock_seconds()) * 1e3;

    if (left_ms <= 0)
        return 0;
    return left_ms < ms ? (int)ceil(left_ms) : ms;
}

int poller_wait(struct poller *p, int ms, bool *ret_readable)
{
    struct epoll_event found[MAX_READY];
    int n = epoll_wait(p->epoll, found, MAX_READY, poller_wait_ms(p, ms));

    p->n_ready = 0;
    *ret_readable = false;
    if (n < 0)
        return errno == EINTR ? 0 : -errno;
    for (int i = 0; i < n; i++) {
        int fd = found[i].data.fd;

        if (fd == p->wake)
            poller_take_wakes(p);
        else if (fd == p->watched)
            *ret_readable = true;
        else
            p->ready[p->n_ready++] = found[i];
    }
    return 0;
}

/* Of an error alone libcurl is not told, so that it looks itself, and says what the error is. */
static int poller_curl_events(uint32_t events)
{
    int of_curl = 0;

    if (events & EPOLLIN)
        of_curl |= CURL_CSELECT_IN;
    if (events & EPOLLOUT)
        of_curl |= CURL_CSELECT_OUT;
    return of_curl;
}

static bool poller_act(struct poller *p, curl_socket_t fd, int events)
{
    int running;

    return curl_multi_socket_action(p->multi, fd, events, &running) == CURLM_OK;
}

/* A socket of the last wait may have been closed since, and its number may be that of another, which is not
 * ready: libcurl then reads or writes nothing. */
int poller_run_transfers(struct poller *p)
{
    for (size_t i = 0; i < p->n_ready; i++)
        if (!poller_act(p, p->ready[i].data.fd, poller_curl_events(p->ready[i].events)))
            return -EIO;
    if (clock_seconds() < p->due)
        return 0;
    p->due = INFINITY; /* until on_timeout() */
    return poller_act(p, CURL_SOCKET_TIMEOUT, 0) ? 0 : -EIO;
}

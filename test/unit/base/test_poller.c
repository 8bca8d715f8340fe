/* What a loop waits for when the kernel cannot take more of it, and sockets that come and go. What else the
 * poller promises is seen in test_loop.c and test/unit/http. */
#include "exporter/base/poller.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <cmocka.h>

static int failing; /* the errno with which no descriptor can be added; 0: they can */

/* Takes the place of the C library's. */
int epoll_ctl(int epoll, int what, int fd, struct epoll_event *e)
{
    int (*real)(int, int, int, struct epoll_event *);

    if (failing && what == EPOLL_CTL_ADD) {
        errno = failing;
        return -1;
    }
    *(void **)&real = dlsym(RTLD_NEXT, "epoll_ctl");
    return real(epoll, what, fd, e);
}

static int setup(void **state)
{
    failing = 0;
    return poller_new((struct poller **)state);
}

static int teardown(void **state)
{
    *state = poller_free(*state);
    return 0;
}

static void make_pipe(int fds[2])
{
    assert_int_equal(pipe(fds), 0);
    assert_int_equal(write(fds[1], "x", 1), 1);
}

static void close_pipe(const int fds[2])
{
    (void)close(fds[0]);
    (void)close(fds[1]);
}

static bool is_readable(struct poller *p)
{
    bool readable;

    assert_int_equal(poller_wait(p, 0, &readable), 0);
    return readable;
}

static void is_not_made_if_it_cannot_be_woken(void **state)
{
    struct poller *p = NULL;

    (void)state;
    failing = ENOSPC;
    assert_int_equal(poller_new(&p), -ENOSPC);
    assert_null(p);
    failing = 0;
}

static void says_that_it_cannot_watch(void **state)
{
    struct poller *p = *state;
    int fds[2];

    make_pipe(fds);
    failing = ENOSPC;
    assert_int_equal(poller_watch(p, fds[0]), -ENOSPC);
    poller_unwatch(p);
    failing = 0;
    assert_false(is_readable(p));
    assert_int_equal(poller_watch(p, fds[0]), 0);
    assert_true(is_readable(p));
    poller_unwatch(p);
    assert_false(is_readable(p));
    close_pipe(fds);
}

/* The kernel gives the number of a closed descriptor to the next one. */
static void watches_a_descriptor_with_the_number_of_an_earlier_one(void **state)
{
    struct poller *p = *state;
    int first[2], second[2];

    make_pipe(first);
    assert_int_equal(poller_watch(p, first[0]), 0);
    assert_true(is_readable(p));
    poller_unwatch(p);
    close_pipe(first);
    make_pipe(second);
    assert_int_equal(second[0], first[0]);
    assert_false(is_readable(p));
    assert_int_equal(poller_watch(p, second[0]), 0);
    assert_true(is_readable(p));
    poller_unwatch(p);
    close_pipe(second);
}

/* A transfer to a server that accepts connections and says nothing. */
static CURL *transfer_new(int *ret_listener)
{
    struct sockaddr_in where = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof(where);
    CURL *easy = curl_easy_init();
    char url[64];

    *ret_listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(*ret_listener, (struct sockaddr *)&where, n), 0);
    assert_int_equal(listen(*ret_listener, 1), 0);
    assert_int_equal(getsockname(*ret_listener, (struct sockaddr *)&where, &n), 0);
    (void)snprintf(url, sizeof(url), "http://127.0.0.1:%u/", ntohs(where.sin_port));
    assert_int_equal(curl_easy_setopt(easy, CURLOPT_URL, url), CURLE_OK);
    assert_int_equal(curl_easy_setopt(easy, CURLOPT_PROXY, ""), CURLE_OK);
    return easy;
}

/* Without the socket nobody would ever come back to the transfer. */
static void fails_if_a_socket_cannot_be_added(void **state)
{
    struct poller *p = *state;
    int listener;
    CURL *easy = transfer_new(&listener);

    assert_int_equal(curl_multi_add_handle(poller_multi(p), easy), CURLM_OK);
    failing = ENOSPC;
    for (int r = 0; r == 0;) {
        assert_false(is_readable(p));
        r = poller_run_transfers(p);
        assert_true(r == 0 || r == -EIO);
    }
    failing = 0;
    (void)curl_multi_remove_handle(poller_multi(p), easy);
    curl_easy_cleanup(easy);
    (void)close(listener);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(is_not_made_if_it_cannot_be_woken),
        TEST(says_that_it_cannot_watch),
        TEST(watches_a_descriptor_with_the_number_of_an_earlier_one),
        TEST(fails_if_a_socket_cannot_be_added),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

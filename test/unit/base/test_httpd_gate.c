/* Accepting connections when descriptors are used up. */
#include "test/unit/base/httpd_world.h"

#include <sys/resource.h>

enum { CLIENTS = 60, SPARE = 20 };

static double cpu_seconds(void)
{
    struct rusage u;

    (void)getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

/* The clients' sockets come first, so that only the server runs out. */
static void survives_the_end_of_descriptors(void **state)
{
    struct env *e = *state;
    int fds[CLIENTS], probe = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)httpd_port(e->server, 0))};
    struct rlimit was, few;
    int64_t end;
    double cpu;
    char in[100];
    BUF_AUTO(b, 1 << 20);

    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (size_t i = 0; i < CLIENTS; i++)
        fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)getrlimit(RLIMIT_NOFILE, &was);
    few = (struct rlimit){.rlim_cur = (rlim_t)fds[CLIENTS - 1] + SPARE, .rlim_max = was.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    for (size_t i = 0; i < CLIENTS; i++)
        assert_int_equal(connect(fds[i], (struct sockaddr *)&a, sizeof(a)), 0);
    cpu = cpu_seconds();
    for (end = now() + 1000; now() < end;)
        assert_int_equal(loop_turn(e->loop, 50), 0);
    assert_true(cpu_seconds() - cpu < 0.5); /* a thread that spins takes a second */

    /* All that wait give way in turn: who asks is answered. */
    assert_int_equal(connect(probe, (struct sockaddr *)&a, sizeof(a)), 0);
    say(probe, REQUEST("GET /direct"), strlen(REQUEST("GET /direct")));
    assert_true(hear(e, probe, in, sizeof(in)) > 0);
    assert_memory_equal(in, "HTTP/1.1 200 ", 13);

    for (size_t i = 0; i < CLIENTS; i++)
        (void)close(fds[i]);
    (void)close(probe);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
    ask(e, REQUEST("GET /direct"), &b);
    assert_string_equal(body_of(&b), "hello");
}

static void serves_all_addresses(void **state)
{
    static const char *const addresses[] = {"127.0.0.1:0", "127.0.0.2:0", "localhost:0"};
    struct env *e = *state;
    struct httpd_options o = options_for(e);
    BUF_AUTO(b, 1 << 20);

    o.listen = addresses;
    o.n_listen = ARRAY_SIZE(addresses);
    open_server(e, &o);
    ask(e, REQUEST("GET /direct"), &b);
    assert_string_equal(body_of(&b), "hello");
    for (size_t i = 0; i < ARRAY_SIZE(addresses); i++)
        assert_true(httpd_port(e->server, i) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(survives_the_end_of_descriptors),
        CASE(serves_all_addresses),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Listen addresses. */
#include "test/unit/base/httpd_world.h"

static void refuse(struct env *e, const char *address, int error, const char *why_part)
{
    struct httpd_options o = options_for(e);
    struct httpd *h = NULL;
    char *why = NULL;

    o.listen = &address;
    assert_int_equal(httpd_new(&h, e->loop, &o, &why), error);
    assert_null(h);
    assert_non_null(why);
    if (!strstr(why, why_part))
        assert_string_equal(why, why_part);
    if (!strstr(why, address))
        assert_string_equal(why, address);
    free(why);
}

static void refuses_bad_addresses(void **state)
{
    static const char *const addresses[][2] = {
        {"", "expected host:port"},
        {"8080", "expected host:port"},
        {"localhost", "expected host:port"},
        {":", "missing port"},
        {"127.0.0.1:", "missing port"},
        {":65536", "number from 0 to 65535"},
        {":-1", "number from 0 to 65535"},
        {":http", "number from 0"},
        {":80a", "number from 0"},
        {":99999999999", "number from 0"},
        {"::1:80", "brackets"},
        {"[::1]", "[IPv6 address]:port"},
        {"[::1:80", "[IPv6 address]:port"},
        {"[]:80", "[IPv6 address]:port"},
        {"[::1]x:80", "[IPv6 address]:port"},
        {"300.1.1.1:80", "could not resolve host"},
        {"http://h:80", "brackets"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(addresses); i++) {
        refuse(*state, addresses[i][0], -EINVAL, addresses[i][1]);
        assert_int_equal(httpd_is_address(addresses[i][0]),
                         strcmp(addresses[i][1], "could not resolve host") == 0);
    }
}

static void explains_a_port_in_use(void **state)
{
    struct env *e = *state;
    char address[64], both[64];
    const char *two[] = {"127.0.0.1:0", both};
    struct httpd_options o = options_for(e);
    struct httpd *h = NULL;
    char *why = NULL;

    (void)snprintf(address, sizeof(address), "127.0.0.1:%u", httpd_port(e->server, 0));
    refuse(e, address, -EADDRINUSE, "address already in use");
    (void)snprintf(both, sizeof(both), ":%u", httpd_port(e->server, 0));
    refuse(e, both, -EADDRINUSE, "address already in use");
    refuse(e, "192.0.2.1:80", -EADDRNOTAVAIL, "cannot assign requested address");

    /* The first address is let go of again. */
    o.listen = two;
    o.n_listen = 2;
    assert_int_equal(httpd_new(&h, e->loop, &o, &why), -EADDRINUSE);
    assert_non_null(strstr(why, both));
    free(why);
}

static bool has_ipv6(void)
{
    struct sockaddr_in6 a = {.sin6_family = AF_INET6, .sin6_addr = in6addr_loopback};
    int fd = socket(AF_INET6, SOCK_STREAM, 0);
    bool has = fd >= 0 && bind(fd, (struct sockaddr *)&a, sizeof(a)) == 0;

    if (fd >= 0)
        (void)close(fd);
    return has;
}

static void listens_on_several_addresses(void **state)
{
    struct env *e = *state;
    const char *addresses[] = {":0", "localhost:0", "127.0.0.1:0", "[::1]:0"};
    struct httpd_options o = options_for(e);
    BUF_AUTO(b, 1 << 20);

    o.listen = addresses;
    o.n_listen = has_ipv6() ? 4 : 3;
    open_server(e, &o);
    for (size_t i = 0; i < 3; i++) {
        int fd = dial(httpd_port(e->server, i), 0);
        say(fd, REQUEST("GET /loop"), strlen(REQUEST("GET /loop")));
        b.n = 0;
        hear_all(e, fd, &b);
        assert_string_equal(body_of(&b), "hello");
        (void)close(fd);
    }
    assert_true(o.n_listen == 3 || httpd_port(e->server, 3) != 0);
    assert_int_equal(httpd_port(e->server, 4), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(refuses_bad_addresses),
        CASE(explains_a_port_in_use),
        CASE(listens_on_several_addresses),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

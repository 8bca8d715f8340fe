/* public_only: private addresses are refused, whichever way leads there.
 *
 * 8.8.8.8 stands for a public address: connections there go to 127.0.0.1, and their peer looks so. */
#include "exporter/http/cause.h"
#include "exporter/http/http.h"
#include "test/unit/http/http_world.h"

static bool is_to_public[1024]; /* by descriptor */
static bool public_is_away;     /* connections to 8.8.8.8 are refused */

static bool is_fake_public(const struct sockaddr *a)
{
    struct sockaddr_in in4;

    memcpy(&in4, a, sizeof(in4));
    return a->sa_family == AF_INET && in4.sin_addr.s_addr == htonl(0x08080808);
}

/* These take the place of the C library's, for libcurl too. */
int connect(int fd, const struct sockaddr *a, socklen_t n)
{
    int (*real)(int, const struct sockaddr *, socklen_t);
    struct sockaddr_in in4;

    *(void **)&real = dlsym(RTLD_NEXT, "connect");
    is_to_public[fd] = is_fake_public(a);
    if (!is_to_public[fd])
        return real(fd, a, n);
    if (public_is_away) {
        errno = ECONNREFUSED;
        return -1;
    }
    memcpy(&in4, a, sizeof(in4));
    in4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return real(fd, (const struct sockaddr *)&in4, sizeof(in4));
}

int getpeername(int fd, struct sockaddr *a, socklen_t *n)
{
    int (*real)(int, struct sockaddr *, socklen_t *), r;
    struct sockaddr_in in4;

    *(void **)&real = dlsym(RTLD_NEXT, "getpeername");
    r = real(fd, a, n);
    if (r == 0 && is_to_public[fd]) {
        memcpy(&in4, a, sizeof(in4));
        in4.sin_addr.s_addr = htonl(0x08080808);
        memcpy(a, &in4, sizeof(in4));
    }
    return r;
}

static int setup(void **state)
{
    *state = world_new(fake_new(), fake_new());
    return 0;
}

static void tells_public_addresses(void **state)
{
    static const struct {
        const char *text;
        bool is_public;
    } cases[] = {
        {"0.0.0.0", false},
        {"0.1.2.3", false},
        {"1.0.0.0", true},
        {"9.255.255.255", true},
        {"10.0.0.0", false},
        {"10.255.255.255", false},
        {"11.0.0.0", true},
        {"100.63.255.255", true},
        {"100.64.0.0", false},
        {"100.127.255.255", false},
        {"100.128.0.0", true},
        {"126.255.255.255", true},
        {"127.0.0.1", false},
        {"127.255.255.255", false},
        {"128.0.0.0", true},
        {"169.253.255.255", true},
        {"169.254.169.254", false},
        {"169.255.0.0", true},
        {"172.15.255.255", true},
        {"172.16.0.0", false},
        {"172.31.255.255", false},
        {"172.32.0.0", true},
        {"192.0.0.8", false},
        {"192.0.1.0", true},
        {"192.0.2.1", false},
        {"192.88.99.1", false},
        {"192.167.255.255", true},
        {"192.168.0.0", false},
        {"192.168.255.255", false},
        {"192.169.0.0", true},
        {"198.17.255.255", true},
        {"198.18.0.0", false},
        {"198.19.255.255", false},
        {"198.20.0.0", true},
        {"198.51.100.7", false},
        {"203.0.113.7", false},
        {"223.255.255.255", true},
        {"224.0.0.1", false},
        {"239.255.255.255", false},
        {"240.0.0.1", false},
        {"255.255.255.255", false},
        {"8.8.8.8", true},
        {"::", false},
        {"::1", false},
        {"::2", false},
        {"::7f00:1", false}, /* an IPv4-compatible one */
        {"::ffff:127.0.0.1", false},
        {"::ffff:10.1.2.3", false},
        {"::ffff:8.8.8.8", true},
        {"::ffff:0:8.8.8.8", false}, /* translated: not for the Internet */
        {"64:ff9b::10.0.0.1", false},
        {"64:ff9b::169.254.169.254", false},
        {"64:ff9b::8.8.8.8", true},
        {"64:ff9b:1::8.8.8.8", false},
        {"100::1", false},
        {"2001::1", false}, /* Teredo */
        {"2001:1ff::1", false},
        {"2001:200::1", true},
        {"2001:db8::1", false},
        {"2001:4860:4860::8888", true},
        {"2002:7f00:1::", false},
        {"2002:c0a8:101::1", false},
        {"2002:808:808::1", true},
        {"2606:4700:4700::1111", true},
        {"3fff::1", false},
        {"3fff:1000::1", true},
        {"4000::1", false},
        {"fc00::1", false},
        {"fd12:3456::1", false},
        {"fe80::1", false},
        {"fec0::1", false},
        {"ff02::1", false},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        int family = strchr(cases[i].text, ':') ? AF_INET6 : AF_INET;
        struct in6_addr address;

        assert_int_equal(inet_pton(family, cases[i].text, &address), 1);
        if (address_is_public(family, &address) != cases[i].is_public)
            fail_msg("%s", cases[i].text);
    }
    assert_false(address_is_public(AF_UNIX, "/"));
}

static struct http_request public_rq(const char *url)
{
    struct http_request rq = rq_of(url);

    rq.public_only = true;
    return rq;
}

static void public_url(struct env *e, const char *path, char out[128])
{
    (void)snprintf(out, 128, "http://8.8.8.8:%u%s", fake_port(e->server), path);
}

static void expect_refused(struct env *e, const char *url, const char *address)
{
    struct http_request rq = public_rq(url);
    char want[128];
    struct got g;

    (void)snprintf(want, sizeof(want), "connections to private addresses are not allowed: %s", address);
    call(e, &rq, &g);
    assert_failed(&g, CAUSE_PRIVATE_ADDRESS);
    assert_string_equal(g.a.reason, want);
}

static void refuses_private_addresses(void **state)
{
    struct env *e = *state;
    char url[128];

    expect_refused(e, fake_url(e->server, "/"), "127.0.0.1");
    expect_refused(e, "http://[::1]:1/", "::1");
    expect_refused(e, "http://[::ffff:10.0.0.1]/", "::ffff:10.0.0.1");
    expect_refused(e, "https://10.0.0.1/", "10.0.0.1");
    expect_refused(e, "http://169.254.169.254/latest/meta-data", "169.254.169.254");
    expect_refused(e, "http://0x7f.1:1/", "127.0.0.1");
    (void)snprintf(url, sizeof(url), "http://2130706433:%u/", fake_port(e->server));
    expect_refused(e, url, "127.0.0.1");
    assert_int_equal(fake_connections(e->server), 0);
}

/* The address that the name resolves to counts. */
static void refuses_a_name_that_resolves_to_them(void **state)
{
    struct env *e = *state;
    char url[128];
    struct http_request rq;
    struct got g;

    (void)snprintf(url, sizeof(url), "http://localhost:%u/", fake_port(e->server));
    rq = public_rq(url);
    call(e, &rq, &g);
    assert_failed(&g, CAUSE_PRIVATE_ADDRESS);
    assert_int_equal(fake_connections(e->server), 0);
}

static void connects_to_public_addresses(void **state)
{
    struct env *e = *state;
    char url[128];
    struct http_request rq;
    struct got g;

    public_url(e, "/x", url);
    rq = public_rq(url);
    for (unsigned i = 0; i < 2; i++) {
        call(e, &rq, &g);
        assert_ok(&g, 200);
        assert_body(&g, "{}");
    }
    /* Each on a connection of its own, which no one uses afterwards. */
    assert_int_equal(fake_connections(e->server), 2);
    rq.public_only = false;
    call(e, &rq, &g);
    assert_ok(&g, 200);
    assert_body(&g, "{}");
    assert_int_equal(fake_connections(e->server), 3);
    rq.public_only = true;
    call(e, &rq, &g);
    assert_body(&g, "{}");
    assert_int_equal(fake_connections(e->server), 4);
}

static void follows_no_redirect_to_a_private_address(void **state)
{
    struct env *e = *state;
    char url[128];
    struct http_request rq;
    struct got g;

    public_url(e, "/x", url);
    rq = public_rq(url);
    fake_push(e->server, (struct fake_answer){.status = 302, .location = fake_url(e->other, "/inside")});
    call(e, &rq, &g);
    assert_failed(&g, CAUSE_ELSEWHERE);
    assert_int_equal(fake_requests(e->server), 1);
    assert_int_equal(fake_connections(e->other), 0);
}

/* The name leads to 8.8.8.8 and to 127.0.0.1, and another call has left a connection to the latter, which the
 * request after a redirect must not use. */
static void shares_no_connection_after_a_redirect(void **state)
{
    struct env *e = *state;
    char url[128];
    struct http_request rq;
    struct got g;

    (void)snprintf(url, sizeof(url), "http://both.test:%u/x", fake_port(e->server));
    rq = rq_of(url);
    public_is_away = true; /* so that this one connects to 127.0.0.1 */
    call(e, &rq, &g);
    public_is_away = false;
    assert_ok(&g, 200);
    assert_body(&g, "{}");
    fake_push(e->server, (struct fake_answer){.status = 302, .location = "/inside"});
    rq.public_only = true;
    call(e, &rq, &g);
    assert_ok(&g, 200);
    assert_body(&g, "{}");
    assert_int_equal(fake_connections(e->server), 3); /* new ones, to 8.8.8.8 */
}

static void uses_no_proxy(void **state)
{
    struct env *e = *state;
    char url[128];
    struct http_request rq;
    struct got g;

    assert_int_equal(setenv("http_proxy", fake_url(e->other, ""), 1), 0);
    assert_int_equal(setenv("ALL_PROXY", fake_url(e->other, ""), 1), 0);
    expect_refused(e, "http://10.0.0.1/", "10.0.0.1");
    public_url(e, "/x", url);
    rq = public_rq(url);
    rq.proxy = fake_url(e->other, "");
    call(e, &rq, &g);
    assert_ok(&g, 200);
    assert_body(&g, "{}");
    assert_int_equal(fake_requests(e->server), 1);
    assert_int_equal(fake_connections(e->other), 0);
}

/* A refusal says nothing about failures of other kinds. */
static void reports_other_failures(void **state)
{
    struct env *e = *state;
    char url[128];
    struct http_request rq;
    struct got g;

    public_url(e, "/x", url);
    rq = public_rq(url);
    fake_push(e->server, (struct fake_answer){.mode = FAKE_CLOSE});
    call(e, &rq, &g);
    assert_failed(&g, CAUSE_TRANSFER);
    rq.url = "http://nowhere.test/";
    call(e, &rq, &g);
    assert_failed(&g, CAUSE_DNS);
    rq.url = "http://8.8.8.8:1/";
    call(e, &rq, &g);
    assert_failed(&g, CAUSE_CONNECT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(tells_public_addresses),
        CASE(refuses_private_addresses),
        CASE(refuses_a_name_that_resolves_to_them),
        CASE(connects_to_public_addresses),
        CASE(follows_no_redirect_to_a_private_address),
        CASE(shares_no_connection_after_a_redirect),
        CASE(uses_no_proxy),
        CASE(reports_other_failures),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

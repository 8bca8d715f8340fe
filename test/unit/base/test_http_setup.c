/* Proxies and TLS, both as the environment says. */
#include "exporter/base/buf.h"
#include "test/unit/base/http_world.h"

#include <signal.h>
#include <sys/wait.h>

static int setup(void **state)
{
    *state = world_new(fake_new(), fake_new());
    return 0;
}

static void reopen(struct env *e)
{
    close_client(e);
    open_client(e);
}

static unsigned closed_port(void)
{
    struct fake_server *s = fake_new();
    unsigned port = fake_port(s);

    (void)fake_free(s);
    return port;
}

static void reads_the_proxy_in_upper_case(void **state)
{
    struct env *e = *state;
    struct http_request rq = rq_of("http://far.test/x");
    struct got g;

    setenv("HTTP_PROXY", fake_url(e->server, ""), 1);
    reopen(e);
    call(e, &rq, &g);
    assert_ok(&g, 200);
    assert_string_equal(fake_request(e->server, 0)->target, "http://far.test/x");
    buf_done(&g.body);

    setenv("NO_PROXY", "near.test,.far.test", 1);
    rq.url = "http://far.test/y";
    call(e, &rq, &g);
    assert_failed(&g, HTTP_DNS);
    unsetenv("NO_PROXY");
    unsetenv("http_proxy");

    setenv("REQUEST_METHOD", "GET", 1);
    reopen(e);
    call(e, &rq, &g);
    assert_failed(&g, HTTP_DNS);
    unsetenv("REQUEST_METHOD");
    unsetenv("HTTP_PROXY");
    assert_null(getenv("http_proxy"));
}

static void explains_proxy_errors(void **state)
{
    struct env *e = *state;
    struct http_request rq = rq_of("https://far.test/x");
    char proxy[128];
    struct got g;

    setenv("https_proxy", fake_url(e->server, ""), 1);
    fake_push(e->server, (struct fake_answer){.status = 403});
    call(e, &rq, &g);
    assert_failed(&g, HTTP_CONNECT);
    assert_non_null(strstr(g.a.reason, "403"));

    setenv("https_proxy", "http://user:secret@gone.test:3128", 1);
    call(e, &rq, &g);
    assert_failed(&g, HTTP_CONNECT);
    assert_non_null(strstr(g.a.reason, "gone.test"));

    (void)snprintf(proxy, sizeof(proxy), "http://user:secret@127.0.0.1:%u", closed_port());
    setenv("https_proxy", proxy, 1);
    call(e, &rq, &g);
    assert_failed(&g, HTTP_CONNECT);
    assert_non_null(strstr(g.a.reason, "127.0.0.1"));
    unsetenv("https_proxy");
}

static void explains_tls_to_a_plain_server(void **state)
{
    struct env *e = *state;
    char url[64];
    struct http_request rq;
    struct got g;

    (void)snprintf(url, sizeof(url), "https://127.0.0.1:%u/", fake_port(e->server));
    rq = rq_of(url);
    call(e, &rq, &g);
    assert_failed(&g, HTTP_TLS);
}

struct tls_server {
    char dir[32];
    pid_t pid;
    unsigned port;
};

/* openssl's own little server, with a certificate for "localhost" signed by itself. */
static bool tls_server_start(struct tls_server *s)
{
    char command[512];
    int out[2];
    FILE *f;

    strcpy(s->dir, "/tmp/test_http.XXXXXX");
    assert_non_null(mkdtemp(s->dir));
    (void)snprintf(
        command, sizeof(command),
        "cd %s && openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout key -out cert "
        "-days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost >log 2>&1 && "
        "ln -s cert $(openssl x509 -in cert -noout -hash).0",
        s->dir);
    if (system(command) != 0)
        return false;
    assert_int_equal(pipe(out), 0);
    s->pid = fork();
    if (s->pid == 0) {
        if (chdir(s->dir) == 0 && dup2(out[1], 1) == 1 && freopen("/dev/null", "w", stderr))
            execlp("openssl", "openssl", "s_server", "-accept", "127.0.0.1:0", "-key", "key", "-cert", "cert",
                   "-www", (char *)NULL);
        _exit(127);
    }
    (void)close(out[1]);
    f = fdopen(out[0], "r");
    while (fgets(command, sizeof(command), f))
        if (sscanf(command, "ACCEPT 127.0.0.1:%u", &s->port) == 1)
            break;
    (void)fclose(f);
    return s->port != 0;
}

static void tls_server_stop(struct tls_server *s)
{
    char command[64];

    if (s->pid > 0) {
        (void)kill(s->pid, SIGKILL);
        (void)waitpid(s->pid, NULL, 0);
    }
    (void)snprintf(command, sizeof(command), "rm -r %s", s->dir);
    assert_int_equal(system(command), 0);
}

static void verifies_certificates(void **state)
{
    struct env *e = *state;
    struct tls_server s = {0};
    struct http_request rq;
    char url[64], cert[64];
    struct got g;

    if (!tls_server_start(&s)) {
        tls_server_stop(&s);
        skip();
    }
    (void)snprintf(url, sizeof(url), "https://localhost:%u/", s.port);
    (void)snprintf(cert, sizeof(cert), "%s/cert", s.dir);
    rq = rq_of(url);
    call(e, &rq, &g);
    assert_failed(&g, HTTP_TLS);
    assert_non_null(strstr(g.a.reason, "certificate"));

    setenv("SSL_CERT_FILE", cert, 1);
    reopen(e);
    call(e, &rq, &g);
    assert_ok(&g, 200);
    buf_done(&g.body);
    (void)snprintf(url, sizeof(url), "https://127.0.0.1:%u/", s.port);
    call(e, &rq, &g);
    assert_failed(&g, HTTP_TLS); /* the certificate is for another name */

    setenv("SSL_CERT_FILE", "/nowhere/cert", 1);
    reopen(e);
    call(e, &rq, &g);
    assert_failed(&g, HTTP_TLS);
    setenv("SSL_CERT_DIR", s.dir, 1);
    (void)snprintf(url, sizeof(url), "https://localhost:%u/", s.port);
    reopen(e);
    call(e, &rq, &g);
    assert_ok(&g, 200); /* a missing file leaves the directory */
    buf_done(&g.body);
    unsetenv("SSL_CERT_FILE");
    unsetenv("SSL_CERT_DIR");
    tls_server_stop(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(reads_the_proxy_in_upper_case),
        CASE(explains_proxy_errors),
        CASE(explains_tls_to_a_plain_server),
        CASE(verifies_certificates),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

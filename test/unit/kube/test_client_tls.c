/* Whom the client trusts and as whom it comes, over real TLS, while files are swapped under it.
 *
 * pki/ holds keys made for this test alone, valid for a hundred years: ca.pem signed server.pem (for the
 * name api.test only), agent-1.pem and agent-2.pem; other-ca.pem signed nothing. */
#include "controller/kube/client.h"
#include "controller/kube/json.h"
#include "controller/kube/verdict.h"
#include "exporter/base/buf.h"
#include "exporter/base/file.h"
#include "test/fakes/fake_kube.h"

#include <dlfcn.h>
#include <errno.h>
#include <microhttpd.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>

#include <cmocka.h>

struct world {
    struct fake_kube *f;
    struct MHD_Daemon *server;
    unsigned port;
    struct kube *kube;
    unsigned times;
    struct kube_answer a;
    char seen[64]; /* who the server saw, and as what it was addressed */
};

static const char *pki(struct world *w, const char *name)
{
    BUF_AUTO(text, 1 << 16);

    assert_int_equal(file_read(fake_kube_text(w->f, "test/unit/kube/pki/%s", name), &text), 0);
    return fake_kube_text(w->f, "%.*s", STR_ARG(buf_str(&text)));
}

/* The common name in the client's certificate, as the server's TLS library (GnuTLS) holds it. */
static const char *client_of(struct MHD_Connection *c)
{
    struct datum {
        unsigned char *p;
        unsigned n;
    };
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(c, MHD_CONNECTION_INFO_GNUTLS_SESSION);
    const struct datum *(*get_peers)(void *session, unsigned *n);
    const struct datum *peer;
    unsigned n = 0;

    *(void **)&get_peers = dlsym(RTLD_DEFAULT, "gnutls_certificate_get_peers");
    if (!info || !get_peers || !(peer = get_peers(info->tls_session, &n)) || n == 0)
        return "nobody";
    return memmem(peer->p, peer->n, "agent-1", 7)   ? "agent-1"
           : memmem(peer->p, peer->n, "agent-2", 7) ? "agent-2"
                                                    : "?";
}

static enum MHD_Result on_request(void *arg, struct MHD_Connection *c, const char *url, const char *method,
                                  const char *version, const char *data, size_t *size, void **state)
{
    const char *host = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Host");
    char body[256];
    struct MHD_Response *r;
    enum MHD_Result result;

    (void)arg;
    (void)url;
    (void)method;
    (void)version;
    (void)data;
    (void)size;
    (void)state;
    (void)snprintf(body, sizeof(body), "{\"client\":\"%s\",\"host\":\"%s\"}", client_of(c), cstr(host));
    r = MHD_create_response_from_buffer(strlen(body), body, MHD_RESPMEM_MUST_COPY);
    result = MHD_queue_response(c, 200, r);
    MHD_destroy_response(r);
    return result;
}

static int setup(void **state)
{
    struct world *w = calloc(1, sizeof(*w));

    w->f = fake_kube_new();
    w->server =
        MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_TLS, 0, NULL, NULL, on_request, NULL,
                         MHD_OPTION_HTTPS_MEM_KEY, pki(w, "server-key.pem"), MHD_OPTION_HTTPS_MEM_CERT,
                         pki(w, "server.pem"), MHD_OPTION_HTTPS_MEM_TRUST, pki(w, "ca.pem"), MHD_OPTION_END);
    assert_non_null(w->server);
    w->port = MHD_get_daemon_info(w->server, MHD_DAEMON_INFO_BIND_PORT)->port;
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;

    w->kube = kube_free(w->kube);
    MHD_stop_daemon(w->server);
    (void)fake_kube_free(w->f);
    free(w);
    return 0;
}

static void connect_with(struct world *w, const char *cluster, const char *user)
{
    const struct kube_options o = {.label = "hub",
                                   .config.kubeconfig = fake_kube_text(w->f, "%s/tls", w->f->dir)};

    fake_kube_file(
        w->f, "tls",
        fake_kube_text(w->f,
                       "current-context: c\ncontexts: [{name: c, context: {cluster: k, user: u}}]\n"
                       "clusters: [{name: k, cluster: {server: 'https://127.0.0.1:%u', %s}}]\n"
                       "users: [{name: u, user: {%s}}]\n",
                       w->port, cluster, user));
    w->kube = kube_free(w->kube);
    assert_int_equal(kube_new(&w->kube, w->f->loop, w->f->http, &o), 0);
    if (kube_trouble(w->kube))
        assert_string_equal(kube_trouble(w->kube), "");
}

static void on_done(void *arg, struct kube_answer *a)
{
    struct world *w = arg;

    w->times++;
    w->a = *a;
    (void)snprintf(w->seen, sizeof(w->seen), "%s at %s", cstr(kube_str(a->object, "client", NULL)),
                   cstr(kube_str(a->object, "host", NULL)));
}

static void call(struct world *w)
{
    const struct kube_request rq = {
        .method = KUBE_GET, .resource = &kube_configmaps, .namespace = "ns", .name = "a"};
    struct kube_call *c;

    assert_int_equal(kube_start(&c, w->kube, &rq, on_done, w), 0);
    fake_kube_turn(w->f, &w->times, w->times + 1);
}

static void assert_seen(struct world *w, const char *client)
{
    call(w);
    assert_string_equal(w->a.why, "");
    assert_string_equal(w->seen, fake_kube_text(w->f, "%s at 127.0.0.1:%u", client, w->port));
}

static void assert_not_trusted(struct world *w)
{
    call(w);
    assert_int_equal(w->a.verdict, KUBE_RETRY);
    assert_int_equal(w->a.http_status, 0);
    assert_non_null(strstr(w->a.why, "SSL"));
}

static void trusts_only_the_clusters_authority(void **state)
{
    struct world *w = *state;

    fake_kube_file(w->f, "ca.crt", pki(w, "ca.pem"));
    connect_with(w, "certificate-authority: ca.crt, tls-server-name: api.test", "");
    assert_seen(w, "nobody");
    /* The name counts. */
    connect_with(w, "certificate-authority: ca.crt", "");
    assert_not_trusted(w);
    connect_with(w, "certificate-authority: ca.crt, tls-server-name: other.test", "");
    assert_not_trusted(w);
    /* Only the kubeconfig's authority counts, and without one the system's. */
    fake_kube_file(w->f, "ca.crt", pki(w, "other-ca.pem"));
    connect_with(w, "certificate-authority: ca.crt, tls-server-name: api.test", "");
    assert_not_trusted(w);
    connect_with(w, "tls-server-name: api.test", "");
    assert_not_trusted(w);
    connect_with(w, "insecure-skip-tls-verify: true", "");
    assert_seen(w, "nobody");
}

/* A connection that fails for its certificates has them read again, and the call succeeds unseen. */
static void reads_the_authority_again_after_a_failed_handshake(void **state)
{
    struct world *w = *state;

    fake_kube_file(w->f, "ca.crt", pki(w, "other-ca.pem"));
    connect_with(w, "certificate-authority: ca.crt, tls-server-name: api.test", "");
    fake_kube_file(w->f, "ca.crt", pki(w, "ca.pem"));
    assert_seen(w, "nobody");
}

static void make_version(struct world *w, const char *version, const char *agent)
{
    const char *path = fake_kube_text(w->f, "/tmp/%s.%s", strrchr(w->f->dir, '/') + 1, version);

    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(symlink(path, fake_kube_text(w->f, "%s/%s", w->f->dir, version)), 0);
    fake_kube_file(w->f, fake_kube_text(w->f, "%s/tls.crt", version),
                   pki(w, fake_kube_text(w->f, "%s.pem", agent)));
    fake_kube_file(w->f, fake_kube_text(w->f, "%s/tls.key", version),
                   pki(w, fake_kube_text(w->f, "%s-key.pem", agent)));
}

static void remove_version(struct world *w, const char *version)
{
    const char *path = fake_kube_text(w->f, "/tmp/%s.%s", strrchr(w->f->dir, '/') + 1, version);

    (void)unlink(fake_kube_text(w->f, "%s/tls.crt", path));
    (void)unlink(fake_kube_text(w->f, "%s/tls.key", path));
    assert_int_equal(rmdir(path), 0);
}

/* As the kubelet renews a Secret's volume: one symlink is renamed over another. */
static void uses_a_client_certificate_swapped_by_symlink(void **state)
{
    struct world *w = *state;
    const char *data = fake_kube_text(w->f, "%s/..data", w->f->dir),
               *next = fake_kube_text(w->f, "%s/..next", w->f->dir);

    fake_kube_file(w->f, "ca.crt", pki(w, "ca.pem"));
    make_version(w, "v1", "agent-1");
    make_version(w, "v2", "agent-2");
    assert_int_equal(symlink("v1", data), 0);
    connect_with(w, "certificate-authority: ca.crt, tls-server-name: api.test",
                 "client-certificate: ..data/tls.crt, client-key: ..data/tls.key");
    assert_seen(w, "agent-1");
    assert_int_equal(symlink("v2", next), 0);
    assert_int_equal(rename(next, data), 0);
    fake_kube_advance(w->f, 59000);
    assert_seen(w, "agent-1");
    fake_kube_advance(w->f, 1000);
    /* Not over the connection that is kept: it belongs to the old certificate. */
    assert_seen(w, "agent-2");
    remove_version(w, "v1");
    remove_version(w, "v2");
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(trusts_only_the_clusters_authority),
        CASE(reads_the_authority_again_after_a_failed_handshake),
        CASE(uses_a_client_certificate_swapped_by_symlink),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Kubeconfigs and pods' credentials: each form, each refusal, and nothing secret in any message. */

#include "controller/kube/config.h"
#include "exporter/base/buf.h"
#include "exporter/base/def.h"
#include "exporter/base/str.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>

#include <cmocka.h>

#define CA  "-----BEGIN CERTIFICATE-----\nY2E=\n-----END CERTIFICATE-----\n"
#define KEY "-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n"
/* base64 of the two */
#define CA64  "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tClkyRT0KLS0tLS1FTkQgQ0VSVElGSUNBVEUtLS0tLQo="
#define KEY64 "LS0tLS1CRUdJTiBQUklWQVRFIEtFWS0tLS0tCmMyVmpjbVYwCi0tLS0tRU5EIFBSSVZBVEUgS0VZLS0tLS0K"

/* A kubeconfig with these members of its cluster and its user. */
#define CONFIG(cluster, user)                                                                            \
    "{\"current-context\": \"c\", \"contexts\": [{\"name\": \"c\", \"context\": {\"cluster\": \"k\", "   \
    "\"user\": \"u\", \"namespace\": \"ns\"}}], \"clusters\": [{\"name\": \"k\", \"cluster\": {" cluster \
    "}}], \"users\": [{\"name\": \"u\", \"user\": {" user "}}]}"
#define SERVER "\"server\": \"https://hub:6443\""

static char dir[64];

static void put(const char *name, const char *text)
{
    char path[256];
    FILE *f;

    (void)snprintf(path, sizeof(path), "%s/%s", dir, name);
    f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static int setup(void **state)
{
    (void)state;
    (void)strcpy(dir, "/tmp/kube_config.XXXXXX");
    return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
    char command[128];

    (void)state;
    (void)snprintf(command, sizeof(command), "rm -rf %s", dir);
    return system(command);
}

static struct kube_config *parse(const char *text)
{
    char why[512];
    struct kube_config *c = kube_config_parse(str_of(text), dir, why);

    assert_string_equal(why, "");
    assert_non_null(c);
    return c;
}

static void assert_bytes(struct buf b, const char *want)
{
    if (!want) {
        assert_null(b.p);
        return;
    }
    assert_non_null(b.p);
    assert_int_equal(b.n, strlen(want));
    assert_memory_equal(b.p, want, b.n);
}

static void reads_inline_data(void **state)
{
    struct kube_config *c = parse(CONFIG(
        SERVER ", \"certificate-authority-data\": \"" CA64 "\", \"certificate-authority\": \"/absent\"",
        "\"client-certificate-data\": \"" CA64 "\", \"client-key-data\": \"" KEY64 "\""));

    (void)state;
    assert_string_equal(c->server, "https://hub:6443");
    assert_string_equal(c->namespace, "ns");
    assert_bytes(c->ca, CA);
    assert_bytes(c->cert, CA);
    assert_bytes(c->key, KEY);
    assert_bytes(c->token, NULL);
    assert_null(c->proxy);
    assert_null(c->tls_server_name);
    assert_false(c->insecure);
    (void)kube_config_unref(c);
}

/* As OCM's registration agent writes it: YAML, key files beside it. */
static void reads_the_kubeconfig_of_ocms_registration_agent(void **state)
{
    static const char yaml[] = "apiVersion: v1\n"
                               "clusters:\n"
                               "- cluster:\n"
                               "    certificate-authority-data: " CA64 "\n"
                               "    server: https://hub:6443/\n"
                               "  name: default-cluster\n"
                               "contexts:\n"
                               "- context:\n"
                               "    cluster: default-cluster\n"
                               "    namespace: configuration\n"
                               "    user: default-auth\n"
                               "  name: default-context\n"
                               "current-context: default-context\n"
                               "kind: Config\n"
                               "preferences: {}\n"
                               "users:\n"
                               "- name: default-auth\n"
                               "  user:\n"
                               "    client-certificate: tls.crt\n"
                               "    client-key: tls.key\n";
    struct kube_config *c = NULL;
    char path[128], why[512];

    (void)state;
    put("kubeconfig", yaml);
    put("tls.crt", CA);
    put("tls.key", KEY);
    (void)snprintf(path, sizeof(path), "%s/kubeconfig", dir);
    c = kube_config_read(path, NULL, why);
    assert_non_null(c);
    assert_string_equal(c->server, "https://hub:6443");
    assert_string_equal(c->namespace, "configuration");
    assert_bytes(c->cert, CA);
    assert_bytes(c->key, KEY);
    (void)kube_config_unref(c);
}

static void prefers_a_readable_token_file(void **state)
{
    static const struct {
        const char *user, *token; /* NULL: refused */
    } cases[] = {
        {"\"token\": \"abc\"", "abc"},
        {"\"token\": \" abc\\n\"", "abc"},
        {"\"tokenFile\": \"token\"", "from-file"},
        {"\"token\": \"abc\", \"tokenFile\": \"token\"", "from-file"},
        {"\"token\": \"abc\", \"tokenFile\": \"absent\"", "abc"},
        {"\"tokenFile\": \"absent\"", NULL},
        {"\"token\": \"a b\"", NULL},
        {"\"token\": \" \"", NULL},
        {"\"token\": \"a\\u0000\"", NULL},
        {"\"token\": \"\\u00e4\"", NULL},
        {"\"token\": 12345", NULL},
    };

    (void)state;
    put("token", "from-file\n");
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char text[2000], why[512];
        struct kube_config *c;
        (void)snprintf(text, sizeof(text), CONFIG(SERVER, "%s"), cases[i].user);
        c = kube_config_parse(str_of(text), dir, why);
        assert_int_equal(c != NULL, cases[i].token != NULL);
        if (cases[i].token) {
            assert_string_equal(why, "");
            assert_bytes(c->token, cases[i].token);
        } else {
            assert_true(why[0]);
            assert_null(strstr(why, "12345"));
        }
        (void)kube_config_unref(c);
    }
}

static void reads_the_options_of_a_cluster(void **state)
{
    struct kube_config *c =
        parse(CONFIG("\"server\": \"http://[::1]:8080/k8s/clusters/a//\", \"tls-server-name\": \"api.test\", "
                     "\"proxy-url\": \"SOCKS5://p:1\", \"insecure-skip-tls-verify\": true",
                     ""));

    (void)state;
    assert_string_equal(c->server, "http://[::1]:8080/k8s/clusters/a");
    assert_string_equal(c->tls_server_name, "api.test");
    assert_string_equal(c->proxy, "socks5h://p:1");
    assert_true(c->insecure);
    (void)kube_config_unref(c);
    c = parse(CONFIG(SERVER ", \"proxy-url\": \"http://p:1\", \"insecure-skip-tls-verify\": false", ""));
    assert_string_equal(c->proxy, "http://p:1");
    assert_false(c->insecure);
    (void)kube_config_unref(c);
}

static const struct {
    const char *text, *says;
} refused[] = {
    {"", "expected a map"},
    {"[]", "expected a map"},
    {"{", "line 2"},
    {"a: b: c", "line 1"},
    {"a: 1\na: 2", "line 2"},
    {"{}", "current-context: missing"},
    {"current-context: x", "contexts: no entry `x`"},
    {"current-context: x\ncontexts: 7", "contexts: no entry `x`"},
    {"current-context: x\ncontexts: [7, {name: x}]", "contexts: entry `x` has no `context`"},
    {"current-context: x\ncontexts: [{name: x, context: 7}]", "contexts: line 2: expected a map"},
    {"current-context: x\ncontexts: [{name: 8}]", "name: line 2: expected a string"},
    {"current-context: x\ncontexts: [{name: x, context: {user: u}}]", "contexts: `x` names no cluster"},
    {"current-context: x\ncontexts: [{name: x, context: {cluster: k}}]", "clusters: no entry `k`"},
    {CONFIG("", ""), "server: missing"},
    {CONFIG("\"server\": \"hub:6443\"", ""), "server: expected a URL"},
    {CONFIG("\"server\": \"ftp://hub\"", ""), "server: expected a URL"},
    {CONFIG("\"server\": \"https://\"", ""), "server: expected a URL"},
    {CONFIG("\"server\": \"https://u:secret@hub\"", ""), "server: the URL must not have"},
    {CONFIG("\"server\": \"https://hub?secret\"", ""), "server: the URL must not have"},
    {CONFIG("\"server\": \"https://hub#secret\"", ""), "server: the URL must not have"},
    {CONFIG(SERVER ", \"certificate-authority-data\": \"secret!\"", ""),
     "certificate-authority-data: expected"},
    {CONFIG(SERVER ", \"certificate-authority-data\": \"c2VjcmV0\"", ""),
     "certificate-authority-data: expected PEM"},
    {CONFIG(SERVER ", \"certificate-authority\": \"absent\"", ""), "certificate-authority: cannot read file"},
    {CONFIG(SERVER ", \"certificate-authority\": \".\"", ""), "Is a directory"},
    {CONFIG(SERVER ", \"proxy-url\": \"ftp://secret@p\"", ""), "proxy-url: expected"},
    {CONFIG(SERVER ", \"insecure-skip-tls-verify\": \"yes\"", ""), "insecure-skip-tls-verify: expected true"},
    {CONFIG(SERVER ", \"insecure-skip-tls-verify\": true, \"certificate-authority-data\": \"" CA64 "\"", ""),
     "not allowed together with a certificate-authority"},
    {CONFIG(SERVER, "\"client-certificate-data\": \"" CA64 "\""), "client-key: missing"},
    {CONFIG(SERVER, "\"client-key-data\": \"" KEY64 "\""), "client-certificate: missing"},
    {CONFIG(SERVER, "\"username\": \"u\", \"password\": \"secret\""),
     "username: basic authentication is not supported"},
    {CONFIG(SERVER, "\"exec\": {\"command\": \"secret\"}"), "exec: exec plugins are not supported"},
    {CONFIG(SERVER, "\"auth-provider\": {\"name\": \"gcp\"}"),
     "auth-provider: auth providers are not supported"},
    {CONFIG(SERVER, "\"token\": \"t\", \"as\": \"root\""), "as: impersonation"},
    {CONFIG(SERVER, "\"as-groups\": [\"root\"]"), "as-groups: impersonation"},
};

static void rejects_invalid_kubeconfigs_without_quoting_secrets(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
        char why[512] = "";
        assert_null(kube_config_parse(str_of(refused[i].text), dir, why));
        if (!strstr(why, refused[i].says))
            fail_msg("`%s` does not say `%s`", why, refused[i].says);
        assert_null(strstr(why, "secret"));
    }
}

static void reads_no_files_without_a_directory(void **state)
{
    char why[512];

    (void)state;
    assert_null(kube_config_parse(STR(CONFIG(SERVER, "\"tokenFile\": \"/etc/hostname\"")), NULL, why));
    assert_string_equal(why, "tokenFile: files are not allowed here");
}

static void reads_a_pods_service_account(void **state)
{
    struct kube_config *c = NULL;
    char why[512];

    (void)state;
    (void)unsetenv("KUBERNETES_SERVICE_HOST");
    assert_null(kube_config_read(NULL, dir, why));
    assert_non_null(strstr(why, "KUBERNETES_SERVICE_HOST is not set"));
    (void)setenv("KUBERNETES_SERVICE_HOST", "fd00::1", 1);
    (void)setenv("KUBERNETES_SERVICE_PORT", "443", 1);
    assert_null(kube_config_read(NULL, dir, why));
    put("token", "t1\n");
    assert_null(kube_config_read(NULL, dir, why));
    assert_non_null(strstr(why, "ca.crt"));
    put("ca.crt", "not PEM");
    assert_null(kube_config_read(NULL, dir, why));
    put("ca.crt", CA);
    c = kube_config_read(NULL, dir, why);
    assert_non_null(c);
    assert_string_equal(c->server, "https://[fd00::1]:443");
    assert_null(c->namespace);
    c = kube_config_unref(c);
    put("namespace", "agents\n");
    c = kube_config_read(NULL, dir, why);
    assert_non_null(c);
    assert_string_equal(c->namespace, "agents");
    assert_bytes(c->token, "t1");
    assert_bytes(c->ca, CA);
    (void)kube_config_unref(c);
    (void)unsetenv("KUBERNETES_SERVICE_HOST");
}

/* As the kubelet updates a Secret's volume: kubeconfig → ..data/kubeconfig, ..data → a folder of its own. */
static void reads_a_volume_swapped_by_symlink(void **state)
{
    struct kube_config *first = NULL, *same = NULL, *second = NULL;
    char path[128], why[512], at[160], next[160];

    (void)state;
    for (int i = 1; i <= 2; i++) {
        (void)snprintf(at, sizeof(at), "%s/..v%d", dir, i);
        assert_int_equal(mkdir(at, 0700), 0);
    }
    put("..v1/token", "one");
    put("..v2/token", "two");
    put("..v1/kubeconfig", CONFIG(SERVER, "\"tokenFile\": \"token\""));
    put("..v2/kubeconfig", CONFIG(SERVER, "\"tokenFile\": \"token\""));
    (void)snprintf(at, sizeof(at), "%s/..data", dir);
    assert_int_equal(symlink("..v1", at), 0);
    (void)snprintf(path, sizeof(path), "%s/kubeconfig", dir);
    assert_int_equal(symlink("..data/kubeconfig", path), 0);
    (void)snprintf(next, sizeof(next), "%s/token", dir);
    assert_int_equal(symlink("..data/token", next), 0);
    first = kube_config_read(path, NULL, why);
    same = kube_config_read(path, NULL, why);
    (void)snprintf(next, sizeof(next), "%s/..tmp", dir);
    assert_int_equal(symlink("..v2", next), 0);
    assert_int_equal(rename(next, at), 0);
    second = kube_config_read(path, NULL, why);
    assert_true(first && same && second);
    assert_bytes(first->token, "one");
    assert_bytes(second->token, "two");
    assert_true(first->fingerprint == same->fingerprint);
    assert_true(first->fingerprint != second->fingerprint);
    (void)kube_config_unref(first);
    (void)kube_config_unref(same);
    (void)kube_config_unref(second);
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(reads_inline_data),
        CASE(reads_the_kubeconfig_of_ocms_registration_agent),
        CASE(prefers_a_readable_token_file),
        CASE(reads_the_options_of_a_cluster),
        CASE(rejects_invalid_kubeconfigs_without_quoting_secrets),
        CASE(reads_no_files_without_a_directory),
        CASE(reads_a_pods_service_account),
        CASE(reads_a_volume_swapped_by_symlink),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

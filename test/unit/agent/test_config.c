#include "exporter/agent/config.h"
#include "exporter/base/buf.h"
#include "exporter/base/doc.h"
#include "exporter/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

/* A section as remote write will have one: a list of strings, of which only the count is kept. */
static int sections_open;

static int section_parse(const struct node *node, struct problems *p, void **ret)
{
    size_t *kept;

    if (node->kind != NODE_LIST) {
        node_expected(node, p, "a list of places");
        return 0;
    }
    kept = malloc(sizeof(*kept));
    if (!kept)
        return -ENOMEM;
    *kept = node->n;
    *ret = kept;
    sections_open++;
    return 0;
}

static void section_done(void *p)
{
    sections_open--;
    free(p);
}

static const struct config_section section = {"remoteWrite", section_parse, section_done};

/* Reads text; *said is what was wrong, printed. */
static int read_config(struct config **ret, struct str text, struct buf *said)
{
    struct problems p;
    int r;

    problems_init(&p, "agent.yaml");
    r = config_parse(ret, text, &section, &p);
    problems_print(&p, said);
    assert_int_equal(buf_failed(said), 0);
    problems_done(&p);
    return r;
}

static struct config *read_good(const char *text)
{
    BUF_AUTO(said, 1 << 16);
    struct config *c = NULL;

    if (read_config(&c, str_of(text), &said) != 0 || said.n)
        fail_msg("%s\n%.*s", text, STR_ARG(buf_str(&said)));
    return c;
}

static void check_bad(const char *text, const char *want)
{
    BUF_AUTO(said, 1 << 16);
    struct config *c = NULL;

    assert_int_equal(read_config(&c, str_of(text), &said), -EINVAL);
    assert_null(c);
    if (!str_eq(buf_str(&said), str_of(want)))
        fail_msg("%s\ngot:\n%.*s\nexpected:\n%s", text, STR_ARG(buf_str(&said)), want);
}

static void assert_defaults(const struct config *c)
{
    assert_null(c->cluster_name);
    assert_int_equal(c->n_listen, 1);
    assert_string_equal(c->listen[0], ":8080");
    assert_null(c->listen[1]);
    assert_null(c->secrets_dir);
    assert_null(c->storage_path);
    assert_int_equal(c->log_level, LOG_LEVEL_INFO);
    assert_int_equal(c->log_format, LOG_FORMAT_LOGFMT);
    assert_int_equal(c->limits.response_bytes, 256 << 20);
    assert_int_equal(c->limits.series_per_scorer, 100000);
    assert_int_equal(c->limits.series, 1000000);
    assert_int_equal(c->limits.otlp_bytes, 0);
    assert_int_equal(c->limits.otlp_series, 200000);
    assert_int_equal(c->limits.label_value_bytes, 256);
    assert_int_equal(c->limits.round_ms, 300000);
    assert_int_equal(c->limits.stale_intervals, 3);
    assert_int_equal(c->summaries.n, 0);
    assert_null(c->section);
    assert_true(c->loaded_at_ms > 1600000000000);
}

static void fills_in_defaults(void **state)
{
    static const char *const texts[] = {
        "summaries: []",
        "{}",
        "[]",
        "---\n[]\n",
        "clusterName: ''\nsecretsDir: ''\nstoragePath: ''\nlimits: {}\n",
        "clusterName:\nlistenAddresses:\nsecretsDir:\nstoragePath:\nlogLevel:\nlogFormat:\nlimits:"
        "\nsummaries:\nremoteWrite:\n",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        CLEANUP(cleanup_config_free) struct config *c = read_good(texts[i]);

        assert_defaults(c);
    }
}

static const char whole[] = "clusterName: prod-1\n"
                            "listenAddresses: ['127.0.0.1:9100', '[::1]:0', localhost:65535]\n"
                            "secretsDir: /var/run/secrets\n"
                            "storagePath: /var/lib/ds\n"
                            "logLevel: debug\n"
                            "logFormat: json\n"
                            "limits:\n"
                            "  responseBytes: 4GiB\n"
                            "  seriesPerScorer: 10000000\n"
                            "  series: 100000000\n"
                            "  otlpMemory: 1GiB\n"
                            "  otlpSeries: 7\n"
                            "  labelValueBytes: 65536\n"
                            "  roundTime: 1h\n"
                            "  staleAfterIntervals: 1000\n"
                            "summaries:\n"
                            "- scoreName: cpu\n"
                            "  sourceEndpoint: http://prom:9090\n"
                            "  sourceQuery: up\n"
                            "  scoringEndpoint: http://scorer\n"
                            "remoteWrite: [a, b]\n";

static void reads_every_key(void **state)
{
    struct config *c = read_good(whole);

    (void)state;
    assert_string_equal(c->cluster_name, "prod-1");
    assert_int_equal(c->n_listen, 3);
    assert_string_equal(c->listen[0], "127.0.0.1:9100");
    assert_string_equal(c->listen[1], "[::1]:0");
    assert_string_equal(c->listen[2], "localhost:65535");
    assert_string_equal(c->secrets_dir, "/var/run/secrets");
    assert_string_equal(c->storage_path, "/var/lib/ds");
    assert_int_equal(c->log_level, LOG_LEVEL_DEBUG);
    assert_int_equal(c->log_format, LOG_FORMAT_JSON);
    assert_true(c->limits.response_bytes == 4ull << 30);
    assert_int_equal(c->limits.otlp_bytes, 1 << 30);
    assert_int_equal(c->limits.otlp_series, 7);
    assert_int_equal(c->limits.series_per_scorer, 10000000);
    assert_int_equal(c->limits.series, 100000000);
    assert_int_equal(c->limits.label_value_bytes, 65536);
    assert_int_equal(c->limits.round_ms, 3600000);
    assert_int_equal(c->limits.stale_intervals, 1000);
    assert_int_equal(c->summaries.n, 1);
    assert_int_equal(c->summaries.list[0].line, 17);
    assert_int_equal(*(size_t *)c->section, 2);
    assert_int_equal(sections_open, 1);
    config_free(c);
    assert_int_equal(sections_open, 0);
    config_free(NULL);
}

static void accepts_one_address_as_a_string(void **state)
{
    CLEANUP(cleanup_config_free) struct config *c = read_good("listenAddresses: ':9090'");

    (void)state;
    assert_int_equal(c->n_listen, 1);
    assert_string_equal(c->listen[0], ":9090");
}

static void rejects_invalid_addresses(void **state)
{
    static const char *const bad[] = {
        "8080",  "':'", "host",       "':65536'", "'::1:80'", "'[::1:80'", "':80a'",
        "':-1'", "''",  "\":80\\0\"", "{}",       "[[':1']]", "'::80'",    "':99999999999999999999'"};
    static const char want[] =
        "expected an address to listen on, like \":8080\", \"127.0.0.1:8080\" or \"[::1]:8080\"";

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        BUF_AUTO(text, 256);
        BUF_AUTO(said, 4096);
        struct config *c = NULL;

        buf_printf(&text, "listenAddresses: %s%c", bad[i], 0);
        assert_int_equal(buf_failed(&text), 0);
        if (read_config(&c, str_of(text.p), &said) != -EINVAL ||
            !memmem(said.p, said.n, want, sizeof(want) - 1))
            fail_msg("%s: %.*s", bad[i], STR_ARG(buf_str(&said)));
    }
    check_bad("listenAddresses: []",
              "agent.yaml:1:18: error: listenAddresses: expected 1 to 16 addresses, got 0\n");
    check_bad("listenAddresses: "
              "[':0',':0',':0',':0',':0',':0',':0',':0',':0',':0',':0',':0',':0',':0',':0',':0',':0']",
              "agent.yaml:1:18: error: listenAddresses: expected 1 to 16 addresses, got 17\n");
}

static void rejects_limits_out_of_bounds(void **state)
{
    static const char *const cases[][2] = {
        {"responseBytes: 1023",
         "responseBytes: expected a size from 1KiB to 4GiB (a number of bytes, or like 64MiB), got 1023"},
        {"responseBytes: 5GiB",
         "responseBytes: expected a size from 1KiB to 4GiB (a number of bytes, or like 64MiB), got the "
         "string \"5GiB\""},
        {"seriesPerScorer: 0", "seriesPerScorer: expected a whole number from 1 to 10000000, got 0"},
        {"seriesPerScorer: 10000001",
         "seriesPerScorer: expected a whole number from 1 to 10000000, got 10000001"},
        {"series: 0", "series: expected a whole number from 1 to 100000000, got 0"},
        {"series: 1e6", "series: expected a whole number from 1 to 100000000, got 1e6"},
        {"labelValueBytes: 15", "labelValueBytes: expected a whole number from 16 to 65536, got 15"},
        {"labelValueBytes: 65537", "labelValueBytes: expected a whole number from 16 to 65536, got 65537"},
        {"roundTime: 999ms",
         "roundTime: expected a duration from 1s to 1h (a number of seconds, or like 30s, 5m, 1h30m), got "
         "the string \"999ms\""},
        {"roundTime: 3601", "roundTime: expected a duration from 1s to 1h (a number of seconds, or like 30s, "
                            "5m, 1h30m), got 3601"},
        {"staleAfterIntervals: 0", "staleAfterIntervals: expected a whole number from 1 to 1000, got 0"},
        {"staleAfterIntervals: 1001",
         "staleAfterIntervals: expected a whole number from 1 to 1000, got 1001"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        BUF_AUTO(text, 256);
        BUF_AUTO(want, 1024);
        const char *value = strchr(cases[i][0], ' ') + 1;

        buf_printf(&text, "limits:\n  %s%c", cases[i][0], 0);
        assert_int_equal(buf_failed(&text), 0);
        buf_printf(&want, "agent.yaml:2:%zu: error: limits.%s\n%c", 3 + (size_t)(value - cases[i][0]),
                   cases[i][1], 0);
        assert_int_equal(buf_failed(&want), 0);
        check_bad(text.p, want.p);
    }
    check_bad("limits: [1]", "agent.yaml:1:9: error: limits: expected an object, got a list\n");
}

static const char full_of_errors[] = "clusterNam: prod-1\n"
                                     "clusterName: 5\n"
                                     "clusterName: x\n"
                                     "listenAddresses: [8080, ':9090']\n"
                                     "logLevel: loud\n"
                                     "logFormat: xml\n"
                                     "limits:\n"
                                     "  series: many\n"
                                     "  staleAfterInterval: 3\n"
                                     "remoteWrite: {}\n"
                                     "summaries:\n"
                                     "  - scoreName: cpu\n"
                                     "    sourceEndpoint: prometheus:9090\n"
                                     "    sourceQuery: up\n"
                                     "    sourceRange: 864000\n"
                                     "    sourceStep: 1\n"
                                     "    scoringEndpoint: http://me:secret@scorer:99999/scoring?token=1\n"
                                     "    scoringInterval: '30'\n"
                                     "  - name: nameless\n"
                                     "    sourceType: none\n"
                                     "    scoringEndpoint: &x scorer\n"
                                     "    scoringInterval: -5\n"
                                     "    location: *x\n"
                                     "  - scoreName: cpu\n"
                                     "    sourceType: none\n"
                                     "    scoringEndpoint: http://scorer\n"
                                     "    scoringIntervall: 30\n";

static void reports_every_problem_at_once(void **state)
{
    (void)state;
    check_bad(
        full_of_errors,
        "agent.yaml:1:1: error: clusterNam: unknown key, did you mean clusterName?\n"
        "agent.yaml:2:14: error: clusterName: expected a string (put it in quotes), got 5\n"
        "agent.yaml:3:1: error: clusterName: duplicate key, first defined at line 2\n"
        "agent.yaml:4:19: error: listenAddresses[0]: expected an address to listen on, like \":8080\", "
        "\"127.0.0.1:8080\" "
        "or \"[::1]:8080\", got 8080\n"
        "agent.yaml:5:11: error: logLevel: expected debug, info, warn or error, got the string \"loud\"\n"
        "agent.yaml:6:12: error: logFormat: expected logfmt or json, got the string \"xml\"\n"
        "agent.yaml:8:11: error: limits.series: expected a whole number from 1 to 100000000, got the string "
        "\"many\"\n"
        "agent.yaml:9:3: error: limits.staleAfterInterval: unknown key, did you mean staleAfterIntervals?\n"
        "agent.yaml:10:14: error: remoteWrite: expected a list of places, got an object\n"
        "agent.yaml:13:21: error: summaries[0].sourceEndpoint: expected an absolute http or https URL with a "
        "host, got "
        "the string \"prometheus:9090\"\n"
        "agent.yaml:16:17: warning: summaries[0].sourceStep: 864000 s at a step of 1 s is 864001 points "
        "per series; queries of more than 11,000 fail\n"
        "agent.yaml:17:22: error: summaries[0].scoringEndpoint: expected an absolute http or https URL with "
        "a host, got "
        "the string \"http://***@scorer:99999/scoring\"…\n"
        "agent.yaml:18:22: error: summaries[0].scoringInterval: expected a whole number of seconds from 1 to "
        "604800, got "
        "the string \"30\"\n"
        "agent.yaml:19:5: error: summaries[1].scoreName: missing, expected a name of 1 to 1024 bytes that is "
        "not blank\n"
        "agent.yaml:21:22: error: summaries[1].scoringEndpoint: expected an absolute http or https URL with "
        "a host, got "
        "the string \"scorer\"\n"
        "agent.yaml:22:22: error: summaries[1].scoringInterval: expected a whole number of seconds from 1 to "
        "604800, got "
        "-5\n"
        "agent.yaml:23:15: error: aliases are not supported; repeat the value\n"
        "agent.yaml:24:16: warning: summaries[2].scoreName: already used by the summary at line 12; the one "
        "at line 24 is ignored\n"
        "agent.yaml:27:5: error: summaries[2].scoringIntervall: unknown key, did you mean "
        "scoringInterval?\n");
}

static void rejects_what_is_not_a_configuration(void **state)
{
    static const char *const cases[][2] = {
        {"", "nothing"},     {" \n\n", "nothing"},     {"# empty\n", "nothing"}, {"---\n", "nothing"},
        {"null", "nothing"}, {"p4ssw0rd", "a string"}, {"12", "a single value"}, {"\xef\xbb\xbf", "nothing"}};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        BUF_AUTO(said, 4096);
        BUF_AUTO(want, 4096);
        struct config *c = NULL;

        buf_printf(&want,
                   "error: expected an object with clusterName, summaries and so on, or a list of "
                   "summaries, got %s\n",
                   cases[i][1]);
        assert_int_equal(buf_failed(&want), 0);
        assert_int_equal(read_config(&c, str_of(cases[i][0]), &said), -EINVAL);
        if (!memmem(said.p, said.n, want.p, want.n))
            fail_msg("%s: %.*s", cases[i][0], STR_ARG(buf_str(&said)));
    }
    check_bad("summaries: {}",
              "agent.yaml:1:12: error: summaries: expected a list of summaries, got an object\n");
}

static void warns_about_an_unknown_key_of_the_hub(void **state)
{
    static const char bare[] =
        "[{\"scoreName\":\"a\",\"sourceType\":\"None\",\"scoringEndpoint\":\"http://s\",\"newer\":{}}]";
    static const char object[] = "{\"summaries\":[{\"scoreName\":\"a\",\"sourceType\":\"None\","
                                 "\"scoringEndpoint\":\"http://s\",\"newer\":{}}]}";
    BUF_AUTO(said, 4096);
    BUF_AUTO(said_of_object, 4096);
    struct config *c = NULL;

    (void)state;
    assert_int_equal(read_config(&c, str_of(bare), &said), 0);
    assert_true(str_starts(buf_str(&said),
                           STR("agent.yaml:1:68: warning: [0].newer: unknown key, expected one of ")));
    assert_int_equal(c->summaries.n, 1);
    c = config_free(c);
    assert_int_equal(read_config(&c, str_of(object), &said_of_object), -EINVAL);
    assert_true(
        str_starts(buf_str(&said_of_object), STR("agent.yaml:1:81: error: summaries[0].newer: unknown key")));
}

static int load_config(struct config **ret, const char *path, struct problems *p)
{
    BUF_AUTO(text, CONFIG_MAX_BYTES);
    bool is_pipe;

    return config_read(path, &text, &is_pipe, p) ?: config_parse(ret, buf_str(&text), &section, p);
}

static void reports_why_a_file_cannot_be_read(void **state)
{
    char path[] = "/tmp/test_config_XXXXXX";
    CLEANUP(cleanup_close) int fd = mkstemp(path);
    struct config *c = NULL;
    struct problems p;

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(write(fd, whole, sizeof(whole) - 1), sizeof(whole) - 1);
    problems_init(&p, path);
    assert_int_equal(load_config(&c, path, &p), 0);
    assert_int_equal(c->summaries.n, 1);
    c = config_free(c);

    assert_int_equal(ftruncate(fd, (16 << 20) + 1), 0);
    assert_int_equal(load_config(&c, path, &p), -EINVAL);
    assert_string_equal(p.list[0].text, "cannot be read: larger than 16 MiB");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(load_config(&c, path, &p), -EINVAL);
    assert_string_equal(p.list[1].text, "cannot be read: No such file or directory");
    assert_int_equal(load_config(&c, "/tmp", &p), -EINVAL);
    assert_string_equal(p.list[2].text, "cannot be read: Is a directory");
    assert_int_equal(p.list[2].line, 0);
    assert_null(c);
    problems_done(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fills_in_defaults),
        cmocka_unit_test(reads_every_key),
        cmocka_unit_test(accepts_one_address_as_a_string),
        cmocka_unit_test(rejects_invalid_addresses),
        cmocka_unit_test(rejects_limits_out_of_bounds),
        cmocka_unit_test(reports_every_problem_at_once),
        cmocka_unit_test(rejects_what_is_not_a_configuration),
        cmocka_unit_test(warns_about_an_unknown_key_of_the_hub),
        cmocka_unit_test(reports_why_a_file_cannot_be_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

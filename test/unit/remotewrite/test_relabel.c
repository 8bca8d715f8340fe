/* Relabelling as Prometheus documents and tests it. */
#include "exporter/base/buf.h"
#include "test/unit/remotewrite/rw.h"

#include <errno.h>

#define RULES ", write_relabel_configs: "

/* Labels before, rules, labels after; NULL: the series is dropped. */
static const struct {
    const char *given, *rules, *want;
} cases[] = {
    /* The cases of Prometheus' own relabelling tests. */
    {"m;a=foo;b=bar;c=baz",
     "[{source_labels: [a], regex: 'f(.*)', target_label: d, replacement: 'ch${1}-ch${1}'}]",
     "__name__=m;a=foo;b=bar;c=baz;d=choo-choo;"},
    {"m;a=foo;b=bar;c=baz",
     "[{source_labels: [a, b], regex: 'f(.*);(.*)r', target_label: a, replacement: 'b${1}${2}m'},"
     " {source_labels: [c, a], regex: '(b).*b(.*)ba(.*)', target_label: d, replacement: '$1$2$2$3'}]",
     "__name__=m;a=boobam;b=bar;c=baz;d=boooom;"},
    {"m;a=foo",
     "[{source_labels: [a], regex: '.*o.*', action: drop},"
     " {source_labels: [a], regex: 'f(.*)', target_label: d, replacement: 'ch$1-ch$1'}]",
     NULL},
    {"m;a=foo;b=bar", "[{source_labels: [a], regex: '.*o.*', action: drop}]", NULL},
    {"m;a=abc", "[{source_labels: [a], regex: '.*(b).*', target_label: d, replacement: '$1'}]",
     "__name__=m;a=abc;d=b;"},
    {"m;a=foo", "[{source_labels: [a], regex: 'no-match', action: drop}]", "__name__=m;a=foo;"},
    {"m;a=foo", "[{source_labels: [a], regex: 'f|o', action: drop}]", "__name__=m;a=foo;"},
    {"m;a=foo", "[{source_labels: [a], regex: 'no-match', action: keep}]", NULL},
    {"m;a=foo", "[{source_labels: [a], regex: 'f.*', action: keep}]", "__name__=m;a=foo;"},
    {"m;a=boo", "[{source_labels: [a], regex: 'f(.*)', target_label: b, replacement: 'bar'}]",
     "__name__=m;a=boo;"},
    /* An empty label is no label: before the first rule, */
    {"m;a=", "[{regex: a, replacement: b, action: labelmap}], external_labels: {a: x, b: y}",
     "__name__=m;a=x;b=x;"},
    {"m;a=", "[{regex: a, replacement: b, action: labelmap}], external_labels: {b: y}", "__name__=m;b=y;"},
    {"m;a=", "[{regex: a, replacement: b, action: labelmap}], external_labels: {a: '', b: y}",
     "__name__=m;b=y;"},
    {"m;b=1;a=", "[{source_labels: [a], regex: '', target_label: c, replacement: d}]", "__name__=m;b=1;c=d;"},
    /* and after each: it is neither mapped nor in the way. */
    {"m;a=1;b=2;c=3", "[{target_label: a, replacement: ''}, {regex: a, replacement: b, action: labelmap}]",
     "__name__=m;b=2;c=3;"},
    {"m;a=1;b=2;c=3",
     "[{source_labels: [none], target_label: b, action: lowercase}, {regex: '[abc]', replacement: d, action: "
     "labelmap}]",
     "__name__=m;a=1;c=3;d=3;"},
    /* An empty replacement deletes the label. */
    {"m;a=foo;f=baz", "[{source_labels: [a], regex: '(f).*', target_label: '$1', replacement: '$2'}]",
     "__name__=m;a=foo;"},
    {"m;a=foo;b1=bar;b2=baz", "[{regex: '(b.*)', replacement: 'bar_${1}', action: labelmap}]",
     "__name__=m;a=foo;b1=bar;b2=baz;bar_b1=bar;bar_b2=baz;"},
    {"m;a=foo;__meta_my_bar=aaa;__meta_my_baz=bbb;__meta_other=ccc",
     "[{regex: '__meta_(my.*)', replacement: '${1}', action: labelmap}]",
     "__meta_my_bar=aaa;__meta_my_baz=bbb;__meta_other=ccc;__name__=m;a=foo;my_bar=aaa;my_baz=bbb;"},
    {"m;a=some-name-value",
     "[{source_labels: [a], regex: 'some-([^-]+)-([^,]+)', replacement: '${2}', target_label: '${1}'}]",
     "__name__=m;a=some-name-value;name=value;"},
    /* A target that expands to nothing. */
    {"m;a=some-name-value",
     "[{source_labels: [a], regex: 'some-([^-]+)-([^,]+)', replacement: '${1}', target_label: '${3}'}]",
     "__name__=m;a=some-name-value;"},
    {"m;tags=path:/secret,job:some-job,label:foo=bar",
     "[{source_labels: [tags], regex: '(?:.+,|^)path:(/[^,]+).*', replacement: '${1}', target_label: path},"
     " {source_labels: [tags], regex: '(?:.+,|^)job:([^,]+).*', replacement: '${1}', target_label: job},"
     " {source_labels: [tags], regex: '(?:.+,|^)label:([^=]+)=([^,]+).*', replacement: '${2}', target_label: "
     "'${1}'}]",
     "__name__=m;foo=bar;job=some-job;path=/secret;tags=path:/secret,job:some-job,label:foo=bar;"},
    {"m;port_name=foo;annotation_metrics_port=9091",
     "[{regex: '^port_name$', action: labeldrop},"
     " {source_labels: [annotation_metrics_port], regex: '(.+)', target_label: port_name, replacement: "
     "metrics},"
     " {source_labels: [port_name], regex: '^metrics$', action: keep}]",
     "__name__=m;annotation_metrics_port=9091;port_name=metrics;"},
    {"m;a=foo;b1=bar;b2=baz", "[{regex: '(b.*)', action: labeldrop}]", "__name__=m;a=foo;"},
    {"m;a=foo;b1=bar", "[{regex: '(a|__name__)', action: labelkeep}]", "__name__=m;a=foo;"},
    {"m;a=foo;b=bar;c=baz", "[{source_labels: [c], target_label: d, action: hashmod, modulus: 1000}]",
     "__name__=m;a=foo;b=bar;c=baz;d=976;"},
    {"m;a=foo\nbar", "[{source_labels: [a], target_label: b, action: hashmod, modulus: 1000}]",
     "__name__=m;a=foo\nbar;b=734;"},
    {"m;foo=bAr123Foo",
     "[{source_labels: [foo], action: uppercase, target_label: foo_uppercase},"
     " {source_labels: [foo], action: Lowercase, target_label: foo_lowercase}]",
     "__name__=m;foo=bAr123Foo;foo_lowercase=bar123foo;foo_uppercase=BAR123FOO;"},
    {"m;tmp=1234;port1=1234;port2=5678",
     "[{source_labels: [tmp], action: keepequal, target_label: port1},"
     " {source_labels: [tmp], action: dropequal, target_label: port2}]",
     "__name__=m;port1=1234;port2=5678;tmp=1234;"},
    {"m;tmp=1234;port1=1234", "[{source_labels: [tmp], action: dropequal, target_label: port1}]", NULL},
    {"m;tmp=1234;port2=5678", "[{source_labels: [tmp], action: keepequal, target_label: port2}]", NULL},
    /* Letters of any script; what is empty is removed. */
    {"m;a=\xc3\x84\xd0\xaf\nZ;b=x",
     "[{source_labels: [a], action: lowercase, target_label: c}, {source_labels: [c], action: uppercase, "
     "target_label: d}, {source_labels: [none], action: uppercase, target_label: b}]",
     "__name__=m;a=\xc3\x84\xd0\xaf\nZ;c=\xc3\xa4\xd1\x8f\nz;d=\xc3\x84\xd0\xaf\nZ;"},
    {"m;a=x", "[{source_labels: [b], action: keepequal, target_label: none}]", "__name__=m;a=x;"},
    /* Rules of the documentation and its example configurations. */
    {"m;address=10.0.0.1:8080;port=9102",
     "[{source_labels: [address, port], regex: '([^:]+)(?::\\d+)?;(\\d+)', replacement: '$1:$2', "
     "target_label: address}]",
     "__name__=m;address=10.0.0.1:9102;port=9102;"},
    {"m;ns=default;service=kubernetes;port=https",
     "[{source_labels: [ns, service, port], regex: default;kubernetes;https, action: keep}]",
     "__name__=m;ns=default;port=https;service=kubernetes;"},
    {"m;node_label_zone=a", "[{regex: 'node_label_(.+)', action: labelmap}]",
     "__name__=m;node_label_zone=a;zone=a;"},
    {"m;url=https://example.org:443/x",
     "[{source_labels: [url], regex: '(?i)https?://(?P<host>[^:/]+)(?::(\\d+))?/.*', target_label: host,"
     " replacement: '${host}_$2'}]",
     "__name__=m;host=example.org_443;url=https://example.org:443/x;"},
    {"m;pod=web-7d4b9-x2x",
     "[{source_labels: [pod], regex: '(.+?)-[0-9a-f]{5}-\\w{3}', target_label: deployment}]",
     "__name__=m;deployment=web;pod=web-7d4b9-x2x;"},
    {"prometheus_tsdb_head",
     "[{source_labels: [__name__], regex: '(prometheus|go)_(?:tsdb|gc).+', action: drop}]", NULL},
    /* The template: longest name, escaped dollar, malformed and unknown groups. */
    {"m;a=xy",
     "[{source_labels: [a], regex: '(x)(y)', target_label: b, replacement: "
     "'$1z|${1}z|$$1|$|${|${1|$01|$3|$no|$2'}]",
     "__name__=m;a=xy;b=|xz|$1|$|${|${1||||y;"},
    /* Characters, not bytes; `.` matches a line feed; `$` only the end. */
    {"m;a=\xc3\xa4\n", "[{source_labels: [a], regex: '..', target_label: b, replacement: 'two'}]",
     "__name__=m;a=\xc3\xa4\n;b=two;"},
    {"m;a=x\n", "[{source_labels: [a], regex: 'x$', action: drop}]", "__name__=m;a=x\n;"},
    /* Alternatives are tried in order until the whole value matches. */
    {"m;a=ab", "[{source_labels: [a], regex: 'a|ab', target_label: b, replacement: yes}]",
     "__name__=m;a=ab;b=yes;"},
};

static void relabels_as_prometheus_does(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        BUF_AUTO(config, 4096);
        BUF_AUTO(packed, 1 << 16);
        BUF_AUTO(text, 1 << 16);
        int r;

        buf_printf(&config, RULES "%s", cases[i].rules);
        buf_putc(&config, '\0');
        assert_int_equal(buf_failed(&config), 0);
        r = rw_pack(cases[i].given, config.p, &packed);
        if (r != (cases[i].want != NULL))
            fail_msg("%s %s: %d", cases[i].given, cases[i].rules, r);
        if (!cases[i].want)
            continue;
        rw_print_labels(buf_str(&packed), &text);
        if (strcmp(text.p, cases[i].want) != 0)
            fail_msg("%s %s: %s", cases[i].given, cases[i].rules, text.p);
    }
}

#define A40 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

static void drops_a_series_that_exceeds_the_match_limit(void **state)
{
    static const char *const actions[] = {"keep", "drop", "replace, target_label: b"};
    char config[256];
    BUF_AUTO(packed, 1 << 16);

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(actions); i++) {
        (void)snprintf(config, sizeof(config),
                       RULES "[{source_labels: [a], regex: '((a+)+)+[bc]', action: %s}]", actions[i]);
        assert_int_equal(rw_pack("m;a=" A40, config, &packed), -ELOOP);
        assert_int_equal(rw_pack("m;a=" A40 "b", config, &packed), i != 1);
    }
    assert_int_equal(rw_pack("m;" A40 "=x", RULES "[{regex: '((a+)+)+[bc]', action: labeldrop}]", &packed),
                     -ELOOP);
}

static void refuses_labels_beyond_its_room(void **state)
{
    BUF_AUTO(packed, 1 << 16);
    char config[1024] = RULES "[{target_label: a, replacement: '0123456789abcdef'}",
         *p = config + strlen(config);

    (void)state;
    for (int i = 0; i < 20; i++)
        p = stpcpy(p, ",{source_labels: [a, a], target_label: a}");
    (void)strcpy(p, "]");
    assert_int_equal(rw_pack("m", config, &packed), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(relabels_as_prometheus_does),
        cmocka_unit_test(drops_a_series_that_exceeds_the_match_limit),
        cmocka_unit_test(refuses_labels_beyond_its_room),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

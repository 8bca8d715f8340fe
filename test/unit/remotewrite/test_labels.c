#include "exporter/base/buf.h"
#include "exporter/metric/batch.h"
#include "remotewrite/labels.h"
#include "remotewrite/relabel.h"
#include "test/unit/remotewrite/rw.h"

#include <errno.h>

/* Labels, the endpoint's configuration apart from its URL, and the labels sent; "!": invalid. */
static const struct {
    const char *given, *config, *labels;
} cases[] = {
    {"up", "", "__name__=up;"},
    {"m;b=2;a=1", "", "__name__=m;a=1;b=2;"},
    {"m;a=;b=2", "", "__name__=m;b=2;"},
    {"m;a=x\"y\\z\nq", "", "__name__=m;a=x\"y\\z\nq;"},
    {"m;A=1;_=2;a=3", "", "A=1;_=2;__name__=m;a=3;"},
    {"m;a=1;a=2", "", "!"},
    {";a=1", "", "!"},
    {"m;=1", "", "!"},
    /* a series' own labels win */
    {"m;a=1", ", external_labels: {a: \"9\", b: \"8\"}", "__name__=m;a=1;b=8;"},
    {"m;a=1", ", write_relabel_configs: [{action: labeldrop, regex: __name__}]", "!"},
    {"m;a=1", ", write_relabel_configs: [{source_labels: [a], target_label: b}]", "__name__=m;a=1;b=1;"},
};

static void packs_sorted_labels_after_the_rules(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        BUF_AUTO(bytes, 1 << 20);
        BUF_AUTO(text, 1 << 20);
        int r = rw_pack(cases[i].given, cases[i].config, &bytes);

        if (*cases[i].labels == '!') {
            assert_int_equal(r, -EINVAL);
            continue;
        }
        assert_int_equal(r, 1);
        rw_print_labels(buf_str(&bytes), &text);
        assert_string_equal(text.p, cases[i].labels);
    }
}

/* As in Prometheus, an empty label is no label: an external one takes its place. */
static void fills_empty_labels_from_external_ones(void **state)
{
    struct batch *b = rw_batch("score", 1, 1);
    struct rw_endpoint_config *c =
        rw_endpoint("[{url: 'http://h/', external_labels: {ds_app: fallback, ds_node: never}}]");
    struct label_bytes *l;
    BUF_AUTO(text, 1 << 20);

    (void)state;
    l = label_bytes_new(b->set, 0, series_count(b->set), c, NULL);
    assert_int_equal(l->n, 1);
    rw_print_labels(label_bytes_at(l, 0), &text);
    assert_non_null(strstr(text.p, ";ds_app=fallback;"));
    assert_non_null(strstr(text.p, ";ds_node=n00000;"));
    (void)label_bytes_free(l);
    (void)rw_endpoint_config_unref(c);
    (void)batch_unref(b);
}

static void refuses_too_many_labels(void **state)
{
    BUF_AUTO(name, 1 << 20);
    BUF_AUTO(bytes, 1 << 20);

    (void)state;
    buf_puts(&name, "m");
    for (int i = 0; i < LABELS_MAX; i++)
        buf_printf(&name, ";l%d=v", i);
    buf_putc(&name, '\0');
    assert_int_equal(buf_failed(&name), 0);
    assert_int_equal(rw_pack(name.p, "", &bytes), -EINVAL);
}

static void keeps_the_first_of_series_that_rules_merge(void **state)
{
    struct batch *b = rw_batch("score", 10, 1);
    struct rw_endpoint_config *c = rw_endpoint(
        "[{url: 'http://h/', write_relabel_configs: [{source_labels: [ds_node], regex: 'n0000([0-4])', "
        "target_label: ds_node, replacement: 'same'}]}]");
    struct label_bytes *l;

    (void)state;
    l = label_bytes_new(b->set, 0, series_count(b->set), c, NULL);
    assert_int_equal(l->n, 6);
    assert_int_equal(l->merged, 4);
    assert_int_equal(l->invalid, 0);
    assert_int_equal(label_bytes_left_out(l), 4);
    assert_int_equal(l->series[0], 0);
    assert_int_equal(l->series[1], 5);
    assert_int_equal(l->at[l->n], l->bytes.n);
    (void)label_bytes_free(l);
    (void)rw_endpoint_config_unref(c);
    (void)batch_unref(b);
}

static void keeps_the_series_that_another_set_lacks(void **state)
{
    struct batch *a = rw_batch("score", 10, 1), *b = rw_batch("score", 7, 1),
                 *other = rw_batch("other", 3, 1);
    struct rw_endpoint_config *c = rw_endpoint("[{url: 'http://h/'}]");
    struct label_bytes *la, *lb, *lo;

    (void)state;
    la = label_bytes_new(a->set, 0, series_count(a->set), c, NULL);
    lb = label_bytes_new(b->set, 0, series_count(b->set), c, NULL);
    lo = label_bytes_new(other->set, 0, series_count(other->set), c, NULL);
    label_bytes_distil(lo, la);
    assert_int_equal(lo->n, 3);
    label_bytes_distil(la, lb);
    assert_int_equal(la->n, 3);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(la->series[i], 7 + i);
    label_bytes_distil(lb, NULL);
    assert_int_equal(lb->n, 7);
    label_bytes_distil(lb, lb);
    assert_int_equal(lb->n, 0);
    (void)label_bytes_free(la);
    (void)label_bytes_free(lb);
    (void)label_bytes_free(lo);
    (void)rw_endpoint_config_unref(c);
    (void)batch_unref(a);
    (void)batch_unref(b);
    (void)batch_unref(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packs_sorted_labels_after_the_rules),
        cmocka_unit_test(fills_empty_labels_from_external_ones),
        cmocka_unit_test(refuses_too_many_labels),
        cmocka_unit_test(keeps_the_first_of_series_that_rules_merge),
        cmocka_unit_test(keeps_the_series_that_another_set_lacks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

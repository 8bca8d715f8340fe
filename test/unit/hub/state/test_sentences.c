/* Conditions' sentences: facts and words. */
#include "controller/hub/rules/rules.h"
#include "controller/hub/state/sentences.h"
#include "exporter/base/buf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static void expect(struct buf *b, const char *words)
{
    assert_int_equal(buf_failed(b), 0);
    buf_putc(b, '\0');
    assert_int_equal(buf_failed(b), 0);
    assert_string_equal(b->p, words);
}

static void says_what_a_deletion_waits_for(void **state)
{
    static const struct {
        struct deleting_facts facts;
        const char *words;
    } cases[] = {
        {{.n = 0}, "waiting for 0 ManifestWorks to be deleted"},
        {{.n = 1, .first = "c1"}, "waiting for 1 ManifestWork to be deleted: c1"},
        {{.n = 3, .first = "c1"}, "waiting for 3 ManifestWorks to be deleted: c1 and 2 more"},
        {{.n = 3, .first = "c1", .failing = "c2", .error = "forbidden"},
         "waiting for 3 ManifestWorks to be deleted: c1 and 2 more; failed on c2: forbidden"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        BUF_AUTO(b, 1024);

        sentence_deleting(&b, &cases[i].facts);
        expect(&b, cases[i].words);
    }
}

static void names_one_of_the_clusters(void **state)
{
    static const struct {
        struct clusters_facts facts;
        const char *words;
    } cases[] = {
        {{.what = "not distributed to", .n = 2, .of = 300}, "not distributed to 2 of 300 clusters"},
        {{.what = "not distributed to", .n = 1, .of = 1, .first = "c1"},
         "not distributed to 1 of 1 cluster: c1"},
        {{.what = "not applied on", .n = 2, .of = 3, .first = "c1", .why = "no such namespace"},
         "not applied on 2 of 3 clusters: c1: no such namespace"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        BUF_AUTO(b, 1024);

        sentence_clusters(&b, &cases[i].facts);
        expect(&b, cases[i].words);
    }
}

static void says_where_the_add_on_is_missing(void **state)
{
    BUF_AUTO(one, 1024);
    BUF_AUTO(three, 1024);

    (void)state;
    sentence_put_without_addon(&one, &(struct without_addon_facts){1, "ds", "c1"});
    expect(&one, "; not on 1 cluster without the add-on ds: c1");
    sentence_put_without_addon(&three, &(struct without_addon_facts){3, "ds", "c1"});
    expect(&three, "; not on 3 clusters without the add-on ds: c1 and 2 more");
}

static void says_which_summary_is_in_force(void **state)
{
    static const struct {
        struct summary_facts facts;
        const char *words;
    } cases[] = {
        {{.reason = EFFECTIVE_OK, .warning = ""}, "the summary is valid"},
        {{.reason = EFFECTIVE_OK, .warning = "", .is_kept = true},
         "the summary is valid; the last one stays active until the new /config has been read"},
        {{.reason = EFFECTIVE_OK, .warning = "unknown ${x}", .is_harmless = true},
         "the summary is valid, with a warning: unknown ${x}"},
        {{.reason = EFFECTIVE_OK, .warning = "no token"},
         "the summary is valid, but its rounds will fail: no token"},
        {{.reason = EFFECTIVE_INCOMPLETE, .error = "no query", .warning = ""}, "no query"},
        {{.reason = EFFECTIVE_INCOMPLETE, .error = "no query", .warning = "", .is_kept = true},
         "no query; the last valid summary stays active"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        BUF_AUTO(b, 1024);

        sentence_summary(&b, &cases[i].facts);
        expect(&b, cases[i].words);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(says_what_a_deletion_waits_for),
        cmocka_unit_test(names_one_of_the_clusters),
        cmocka_unit_test(says_where_the_add_on_is_missing),
        cmocka_unit_test(says_which_summary_is_in_force),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

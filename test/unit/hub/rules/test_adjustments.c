/* spec.adjustments: what is read, which clusters an entry is for, and what the clusters get. */
#include "controller/hub/rules/adjustments.h"
#include "controller/hub/rules/plan.h"
#include "controller/hub/rules/work.h"
#include "controller/kube/json.h"
#include "controller/kube/list_error.h"
#include "exporter/base/buf.h"
#include "exporter/base/def.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* A DynamicScoringConfig with these entries, in single quotes. */
static json_t *config_of(const char *entries)
{
    CLEANUP(cleanup_free) char *text = NULL;
    json_t *o = NULL;

    assert_int_not_equal(asprintf(&text, "{\"spec\":{\"adjustments\":[%s]}}", entries), -1);
    for (char *p = text; *p; p++)
        *p = *p == '\'' ? '"' : *p;
    o = json_loads(text, 0, NULL);
    assert_non_null(o);
    return o;
}

static struct fleet_adjustments read_all(const char *entries)
{
    json_auto_t *o = config_of(entries);
    struct fleet_adjustments a = {0};
    BUF_AUTO(why, LIST_ERROR_BYTES);

    assert_int_equal(fleet_adjustments_read(&a, o, &why), 0);
    return a;
}

static void refuses_what_could_be_for_the_wrong_clusters(void **state)
{
    static const struct {
        const char *entries, *why;
    } cases[] = {
        {"{'name':'a','scoreName':'x','add':1}",
         "spec.adjustments[0]: expected exactly one of clusterName and clusterSelector"},
        {"{'name':'a','scoreName':'x','add':1,'clusterName':'c','clusterSelector':{'labelSelector':{}}}",
         "spec.adjustments[0]: expected exactly one of clusterName and clusterSelector"},
        {"{'name':'a','scoreName':'x','add':1,'clusterName':''}",
         "spec.adjustments[0].clusterName: expected a name or a pattern with * and ?"},
        {"{'name':'a','scoreName':'x','add':1,'clusterSelector':{}}",
         "spec.adjustments[0].clusterSelector: expected labelSelector, claimSelector or both"},
        {"{'name':'a','scoreName':'x','add':1,'clusterSelector':{'labelSelector':{'matchExpressions':[{'key':"
         "'k',"
         "'operator':'in','values':['v']}]}}}",
         "spec.adjustments[0].clusterSelector.labelSelector: expected a selector of labels"},
        {"{'name':'a','scoreName':'x','add':1,'clusterSelector':{'labelSelector':{'matchExpressions':[{'key':"
         "'k',"
         "'operator':'Exists','values':['v']}]}}}",
         "spec.adjustments[0].clusterSelector.labelSelector: expected a selector of labels"},
        {"{'name':'a','scoreName':'x','add':1,'clusterSelector':{'claimSelector':{'matchLabels':{'a':'b'}}}}",
         "spec.adjustments[0].clusterSelector.claimSelector: expected matchExpressions over claims"},
        {"{'name':'a','scoreName':'x','add':1,'clusterName':'c'},{'name':'a','scoreName':'y','set':1,'"
         "clusterName':'c'}",
         "spec.adjustments[1].name: already the name of an earlier entry"},
        {"{'name':'a','scoreName':'x','clusterName':'c'}",
         "spec.adjustments[0]: expected exactly one of add and set"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        json_auto_t *o = config_of(cases[i].entries);
        struct fleet_adjustments a = {0};
        BUF_AUTO(why, LIST_ERROR_BYTES);

        assert_int_equal(fleet_adjustments_read(&a, o, &why), -EINVAL);
        buf_putc(&why, '\0');
        assert_string_equal(why.p, cases[i].why);
        assert_null(a.list);
    }
}

#define SELECTS(parts)    "{'name':'a','scoreName':'*','add':1,'clusterSelector':{" parts "}}"
#define EXPRESSION(parts) "{'matchExpressions':[{" parts "}]}"

static void selects_by_name_labels_and_claims(void **state)
{
    static const char cluster[] =
        "{\"metadata\":{\"labels\":{\"region\":\"eu\",\"env\":\"prod\"}},"
        "\"status\":{\"clusterClaims\":[{\"name\":\"zone\",\"value\":\"fra\"},{\"name\":7},{}]}}";
    static const struct {
        const char *entry;
        bool selects;
    } cases[] = {
        {"{'name':'a','scoreName':'*','add':1,'clusterName':'eu-?'}", true},
        {"{'name':'a','scoreName':'*','add':1,'clusterName':'us-*'}", false},
        {SELECTS("'labelSelector':{'matchLabels':{'region':'eu','env':'prod'}}"), true},
        {SELECTS("'labelSelector':{'matchLabels':{'region':'eu','env':'lab'}}"), false},
        {SELECTS("'labelSelector':" EXPRESSION("'key':'region','operator':'In','values':['us','eu']")), true},
        {SELECTS("'labelSelector':" EXPRESSION("'key':'region','operator':'NotIn','values':['eu']")), false},
        {SELECTS("'labelSelector':" EXPRESSION("'key':'none','operator':'NotIn','values':['eu']")), true},
        {SELECTS("'labelSelector':" EXPRESSION("'key':'none','operator':'In','values':['']")), false},
        {SELECTS("'labelSelector':" EXPRESSION("'key':'none','operator':'Exists'")), false},
        {SELECTS("'labelSelector':" EXPRESSION("'key':'none','operator':'DoesNotExist'")), true},
        {SELECTS("'claimSelector':" EXPRESSION("'key':'zone','operator':'In','values':['fra']")), true},
        {SELECTS("'claimSelector':" EXPRESSION("'key':'region','operator':'Exists'")), false},
        {SELECTS("'labelSelector':{'matchLabels':{'region':'eu'}},'claimSelector':" EXPRESSION(
             "'key':'zone','operator':'DoesNotExist'")),
         false},
    };
    json_auto_t *object = json_loads(cluster, 0, NULL);
    CLEANUP(cleanup_free) char *text = cluster_attributes(object);
    json_auto_t *attributes = json_loads(text, 0, NULL);

    (void)state;
    assert_string_equal(text,
                        "{\"claims\":{\"zone\":\"fra\"},\"labels\":{\"env\":\"prod\",\"region\":\"eu\"}}");
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(fleet_adjustments_done) struct fleet_adjustments a = read_all(cases[i].entry);

        assert_int_equal(fleet_adjustment_selects(&a.list[0], "eu-1", attributes), cases[i].selects);
    }
}

static const struct plan_group *group_of(struct plan *p, const char *name)
{
    return plan_group_of(p, &(struct plan_cluster){.name = name});
}

static void assert_list(const struct plan *p, const struct plan_group *g, const char *want)
{
    BUF_AUTO(text, 4096);

    plan_adjustments_text(p, g, &text);
    buf_putc(&text, '\0');
    assert_int_equal(buf_failed(&text), 0);
    assert_string_equal(text.p, want);
}

/* Only what changes one of the cluster's scores; masked pairs do not match. */
static void gives_each_cluster_what_changes_its_scores(void **state)
{
    const struct plan_entry entries[] = {{.score_name = "cpu", .text = STR("{1}"), .has_object = true},
                                         {.score_name = "memory", .text = STR("{2}"), .has_object = true}};
    const struct masks masks = {.list = (struct mask[]){{"masked", "cpu"}}, .n = 1};
    CLEANUP(fleet_adjustments_done)
    struct fleet_adjustments a =
        read_all("{'name':'slow','scoreName':'cpu','add':-30,'clusterName':'*','reason':'why',"
                 "'until':'2026-12-01T06:00:00Z'},"
                 "{'name':'none','scoreName':'x','set':1,'clusterName':'*'},"
                 "{'name':'out','scoreName':'*','set':-100,'clusterName':'west'}");
    CLEANUP(cleanup_plan_free) struct plan *p = plan_new(entries, ARRAY_SIZE(entries), &masks, &a, 1 << 20);
    const struct plan_group *east = group_of(p, "east"), *masked = group_of(p, "masked"),
                            *west = group_of(p, "west");

    (void)state;
    assert_list(p, east,
                "[{\"name\":\"slow\",\"scoreName\":\"cpu\",\"add\":-30,\"until\":\"2026-12-01T06:00:00Z\","
                "\"reason\":\"why\"}]");
    assert_list(p, masked, "");
    assert_list(p, west,
                "[{\"name\":\"slow\",\"scoreName\":\"cpu\",\"add\":-30,\"until\":\"2026-12-01T06:00:00Z\","
                "\"reason\":\"why\"},{\"name\":\"out\",\"scoreName\":\"*\",\"set\":-100}]");
    assert_true(group_of(p, "east-2") == east);
    assert_true(east->hash != west->hash && east->hash != masked->hash);
    assert_int_equal(p->of_adjustments[0].clusters, 3);
    assert_int_equal(p->of_adjustments[0].matched[0], 1);
    assert_int_equal(p->of_adjustments[1].clusters, 0);
    assert_int_equal(p->of_adjustments[2].clusters, 1);
    assert_int_equal(p->of_adjustments[2].matched[0], 3);
}

/* A score without an object, and one that old agents do not get: there is nothing to adjust. */
static void counts_no_score_that_it_does_not_change(void **state)
{
    const struct plan_entry entries[] = {
        {.score_name = "cpu", .text = STR("{1}")},
        {.score_name = "memory", .text = STR("{2}"), .has_object = true, .needs = 1}};
    CLEANUP(fleet_adjustments_done)
    struct fleet_adjustments a = read_all("{'name':'all','scoreName':'*','set':1,'clusterName':'*'}");
    CLEANUP(cleanup_plan_free) struct plan *p = plan_new(entries, ARRAY_SIZE(entries), NULL, &a, 1 << 20);

    (void)state;
    assert_list(p, plan_group_of(p, &(struct plan_cluster){.name = "old", .lacks = 1}), "");
    assert_int_equal(p->of_adjustments[0].clusters, 0);
    assert_int_equal(p->of_adjustments[0].selected, 1);
    assert_list(p, group_of(p, "new"), "[{\"name\":\"all\",\"scoreName\":\"*\",\"set\":1}]");
    assert_int_equal(p->of_adjustments[0].matched[0], 2);
}

/* A ManifestWork with and without the list is read back as what was written. */
static void is_a_key_of_its_own_in_the_work(void **state)
{
    static const struct str lists[] = {STR(""), STR("[{\"name\":\"a\"}]"), STR("[{\"name\":\"b\"}]")};
    json_auto_t *frame = work_frame("agents");
    uint64_t hashes[ARRAY_SIZE(lists)];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
        const struct work_lists all = {.summaries = STR("[]"), .adjustments = lists[i]};
        BUF_AUTO(text, 64 << 10);
        json_auto_t *object = NULL;
        struct work_found found;
        char why[WORK_WHY_BYTES];

        buf_put_str(&text, WORK_NEW);
        assert_int_equal(work_text(&text, "agents", &all), 0);
        object = json_loadb(text.p, text.n, 0, NULL);
        work_look(&found, object, frame, why);
        assert_true(found.exists && found.ours && found.frame);
        hashes[i] = found.hash;
        assert_true(found.hash == plan_hash_lists(plan_hash(STR("[]")), STR(""), lists[i]));
    }
    assert_true(hashes[0] != hashes[1] && hashes[1] != hashes[2] && hashes[0] != hashes[2]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses_what_could_be_for_the_wrong_clusters),
        cmocka_unit_test(selects_by_name_labels_and_claims),
        cmocka_unit_test(gives_each_cluster_what_changes_its_scores),
        cmocka_unit_test(counts_no_score_that_it_does_not_change),
        cmocka_unit_test(is_a_key_of_its_own_in_the_work),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

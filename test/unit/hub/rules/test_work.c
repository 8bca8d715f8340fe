/* ManifestWorks: what is written, and what is read from one that others changed, too. */
#include "controller/hub/rules/plan.h"
#include "controller/hub/rules/work.h"
#include "controller/kube/json.h"
#include "exporter/base/buf.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static const char summaries[] = "[{\"name\":\"a\",\"sourceQuery\":\"up{job=\\\"x\\\"} > 1\"}]";

static char look_why[WORK_WHY_BYTES];

static json_t *parse(struct str text)
{
    json_t *o = NULL;

    assert_int_equal(kube_json_parse(&o, text, NULL), 0);
    return o;
}

static void put_work(struct buf *into, struct str head, const char *agent_namespace, struct str list)
{
    buf_put_str(into, head);
    assert_int_equal(buf_failed(into), 0);
    assert_int_equal(work_text(into, agent_namespace, &(struct work_lists){.summaries = list}), 0);
}

static void look_at(struct work_found *ret, const json_t *o, const char *agent_namespace)
{
    json_auto_t *frame = work_frame(agent_namespace);

    work_look(ret, o, frame, look_why);
}

/* A ManifestWork as the API server returns it some time after its creation. */
static json_t *sample(void)
{
    BUF_AUTO(text, 1 << 16);
    json_t *o, *metadata;

    put_work(&text, WORK_NEW, "dynamic-scoring", str_of(summaries));
    o = parse(buf_str(&text));
    metadata = kube_get(o, "metadata", NULL);
    assert_int_equal(json_object_update_new(metadata, json_pack("{s:i, s:[s], s:s}", "generation", 2,
                                                                "finalizers", "work-agent", "uid", "u")),
                     0);
    assert_int_equal(json_object_set_new(kube_get(o, "metadata", "labels", NULL), "others", json_string("x")),
                     0);
    assert_int_equal(
        json_object_update_new(kube_get(o, "spec", NULL),
                               json_pack("{s:{s:s}}", "deleteOption", "propagationPolicy", "Orphan")),
        0);
    return o;
}

static struct work_found look(const json_t *o)
{
    struct work_found f;

    memset(&f, 0x55, sizeof(f));
    look_at(&f, o, "dynamic-scoring");
    return f;
}

static void asks_for_watched_feedback_where_there_is_such_a_field(void **state)
{
    json_auto_t *o = sample();
    json_t *config = json_array_get(kube_list(o, "spec", "manifestConfigs", NULL), 0);

    (void)state;
    assert_true(look(o).frame);
    assert_int_equal(json_object_set_new(config, "feedbackScrapeType", json_string("Poll")), 0);
    assert_false(look(o).frame);
    assert_int_equal(json_object_del(config, "feedbackScrapeType"), 0);
    assert_true(look(o).frame);
}

static void writes_the_whole_object(void **state)
{
    static const char want[] =
        "{\"apiVersion\":\"work.open-cluster-management.io/v1\",\"kind\":\"ManifestWork\",\"metadata\":{"
        "\"name\":\"dynamic-scoring-config-manifestwork\",\"labels\":{"
        "\"dynamic-scoring.open-cluster-management.io/managed-by\":\"controller\","
        "\"app.kubernetes.io/managed-by\":\"dynamic-scoring\"}},\"spec\":{\"workload\":{\"manifests\":["
        "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"dynamic-scoring-config\","
        "\"namespace\":\"agents\",\"labels\":{\"app.kubernetes.io/managed-by\":\"dynamic-scoring\"}},"
        "\"data\":{\"summaries\":\"[{\\\"a\\\":\\\"\\\\n\\\"}]\"}},"
        "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"dynamic-scoring-status\","
        "\"namespace\":\"agents\"}}]},\"manifestConfigs\":[{\"resourceIdentifier\":{\"group\":\"\","
        "\"resource\":\"configmaps\",\"name\":\"dynamic-scoring-status\",\"namespace\":\"agents\"},"
        "\"updateStrategy\":{\"type\":\"ReadOnly\"},\"feedbackScrapeType\":\"Watch\",\"feedbackRules\":[{"
        "\"type\":\"JSONPaths\",\"jsonPaths\":"
        "["
        "{\"name\":\"status\",\"path\":\".data.status\"}]}]}]}}";
    BUF_AUTO(text, 1 << 16);

    (void)state;
    put_work(&text, WORK_NEW, "agents", STR("[{\"a\":\"\\n\"}]"));
    buf_putc(&text, '\0');
    assert_int_equal(buf_failed(&text), 0);
    assert_string_equal(text.p, want);
}

/* No nulls, which would remove members of others. */
static void patches_only_its_own_fields(void **state)
{
    BUF_AUTO(object_text, 1 << 16);
    BUF_AUTO(patch_text, 1 << 16);
    json_auto_t *object = NULL, *patch = NULL;

    (void)state;
    put_work(&object_text, WORK_NEW, "agents", str_of(summaries));
    put_work(&patch_text, WORK_PATCH, "agents", str_of(summaries));
    object = parse(buf_str(&object_text));
    patch = parse(buf_str(&patch_text));
    assert_int_equal(json_object_size(patch), 2);
    assert_true(json_equal(kube_get(patch, "spec", NULL), kube_get(object, "spec", NULL)));
    assert_true(json_equal(kube_get(patch, "metadata", "labels", NULL),
                           kube_get(object, "metadata", "labels", NULL)));
    assert_int_equal(json_object_size(kube_get(patch, "metadata", NULL)), 1);
    assert_int_equal(json_object_size(kube_get(patch, "spec", NULL)), 2);
}

static void escapes_names(void **state)
{
    BUF_AUTO(text, 1 << 16);
    json_auto_t *o = NULL;
    struct work_found f;

    (void)state;
    put_work(&text, WORK_NEW, "a\\\"b", (struct str){0});
    o = parse(buf_str(&text));
    look_at(&f, o, "a\\\"b");
    assert_true(f.frame && f.hash == plan_hash(STR("")));
}

/* The frame is all but the summaries. */
static void fits_the_frame_into_its_limit(void **state)
{
    BUF_AUTO(text, 1 << 16);
    BUF_AUTO(small, 100);

    (void)state;
    put_work(&text, WORK_NEW, "dynamic-scoring", STR(""));
    assert_true(text.n < WORK_FRAME_BYTES / 2);
    assert_int_equal(work_text(&small, "dynamic-scoring", &(struct work_lists){0}), -EFBIG);
}

static void reads_its_own_object(void **state)
{
    json_auto_t *o = sample();
    struct work_found f = look(o);

    (void)state;
    assert_true(f.exists && f.ours && f.frame && !f.deleting && !f.applied);
    assert_true(f.hash == plan_hash(str_of(summaries)));
    assert_string_equal(look_why, "");
    f = look(NULL);
    assert_false(f.exists || f.ours || f.frame || f.deleting || f.applied || f.hash || look_why[0]);
}

/* Each patch is merged into the sample; its labels replace all labels. */
static void compares_all_but_others_fields(void **state)
{
    static const struct {
        const char *patch;
        bool frame, ours, has_hash, deleting;
    } cases[] = {
        {"{\"metadata\":{\"annotations\":{\"a\":\"b\"}}}", true, true, true, false},
        {"{\"spec\":{\"executor\":{\"subject\":{}}}}", true, true, true, false},
        {"{\"metadata\":{\"deletionTimestamp\":\"2026-01-01T00:00:00Z\"}}", true, true, true, true},
        {"{\"metadata\":{\"deletionTimestamp\":null}}", true, true, true, false},
        {"{\"metadata\":{\"labels\":{}}}", false, false, true, false},
        {"{\"metadata\":{\"labels\":{\"dynamic-scoring.open-cluster-management.io/"
         "managed-by\":\"controller\"}}}",
         false, true, true, false},
        {"{\"metadata\":{\"labels\":{\"dynamic-scoring.open-cluster-management.io/managed-by\":\"you\"}}}",
         false, false, true, false},
        {"{\"spec\":{\"manifestConfigs\":[]}}", false, true, true, false},
        {"{\"spec\":{\"manifestConfigs\":null}}", false, true, true, false},
        {"{\"spec\":{\"manifestConfigs\":[{},{}]}}", false, true, true, false},
        {"{\"spec\":{\"workload\":{\"manifests\":[]}}}", false, true, false, false},
        {"{\"spec\":{\"workload\":{\"manifests\":[{\"data\":{\"summaries\":\"[]\"}}]}}}", false, true, true,
         false},
        {"{\"spec\":{\"workload\":{\"manifests\":[{\"data\":{\"summaries\":1}}]}}}", false, true, false,
         false},
        {"{\"spec\":null}", false, true, false, false},
        {"{\"spec\":[]}", false, true, false, false},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        json_auto_t *o = sample(), *patch = parse(str_of(cases[i].patch));
        json_t *labels = kube_get(patch, "metadata", "labels", NULL);
        struct work_found f;

        assert_int_equal(json_object_update_recursive(o, patch), 0);
        if (labels)
            assert_int_equal(json_object_set(kube_get(o, "metadata", NULL), "labels", labels), 0);
        f = look(o);
        if (f.frame != cases[i].frame || f.ours != cases[i].ours || !f.hash == cases[i].has_hash ||
            f.deleting != cases[i].deleting)
            fail_msg("%s: frame %d, ours %d", cases[i].patch, f.frame, f.ours);
    }
}

static void compares_the_manifests(void **state)
{
    json_auto_t *o = sample();
    json_t *list = kube_list(o, "spec", "workload", "manifests", NULL), *first = json_array_get(list, 0);
    json_t *data = kube_get(first, "data", NULL), *metadata = kube_get(first, "metadata", NULL);
    struct work_found f;

    (void)state;
    assert_int_equal(json_object_set_new(data, "summaries", json_string("[]")), 0);
    f = look(o);
    assert_true(f.frame && f.hash == plan_hash(STR("[]")));
    assert_int_equal(json_object_set_new(metadata, "creationTimestamp", json_null()), 0);
    assert_true(look(o).frame);
    assert_int_equal(json_object_set_new(data, "more", json_string("x")), 0);
    assert_false(look(o).frame);
    assert_int_equal(json_object_del(data, "more"), 0);
    assert_true(look(o).frame);
    look_at(&f, o, "elsewhere");
    assert_false(f.frame);
    assert_int_equal(json_array_append_new(list, json_object()), 0);
    assert_false(look(o).frame);
    assert_int_equal(json_array_remove(list, 2), 0);
    assert_true(look(o).frame);
    assert_int_equal(json_object_set_new(kube_get(metadata, "labels", NULL), "app.kubernetes.io/managed-by",
                                         json_string("you")),
                     0);
    assert_false(look(o).frame);
}

#define APPLIED(status, generation, message)                                                             \
    "{\"type\":\"Applied\",\"status\":\"" status "\",\"observedGeneration\":" #generation ",\"reason\":" \
    "\"R\",\"message\":\"" message "\"}"
#define CONDITIONS(list) "{\"conditions\":[" list "],\"resourceStatus\":{\"manifests\":["
#define CONFIGMAP(list)                                                                                    \
    "{\"resourceMeta\":{\"kind\":\"ConfigMap\",\"name\":\"dynamic-scoring-config\"},\"conditions\":[" list \
    "]}"
#define ONE(status, message) "{\"type\":\"Applied\",\"status\":\"" status "\",\"message\":\"" message "\"}"

/* The sample has generation 2. */
static void reads_conditions_of_the_current_generation(void **state)
{
    static const struct {
        const char *status;
        bool applied;
        const char *why;
    } cases[] = {
        {"{}", false, ""},
        {"[]", false, ""},
        {CONDITIONS(APPLIED("True", 2, "done")) "]}}", true, ""},
        {CONDITIONS(APPLIED("True", 3, "done")) "]}}", false, ""}, /* of before a restore */
        {CONDITIONS(APPLIED("True", 1, "done")) "]}}", false, ""},
        {CONDITIONS("{\"type\":\"Applied\",\"status\":\"True\"}") "]}}", false, ""},
        {CONDITIONS(
             "1,{\"type\":3},{\"type\":\"Available\",\"status\":\"True\",\"observedGeneration\":2}") "]}}",
         false, ""},
        {CONDITIONS("{\"type\":\"Available\",\"status\":\"False\",\"observedGeneration\":2}") "]}}", false,
         ""},
        {CONDITIONS(APPLIED("False", 2, "not\\nall")) "]}}", false, "not all"},
        {CONDITIONS(APPLIED("False", 1, "before")) "]}}", false, ""},
        {CONDITIONS(APPLIED("False", 2, "")) "]}}", false, "R"},
        {CONDITIONS(APPLIED("False", 2, "all")) CONFIGMAP(ONE("False", "this")) "]}}", false, "this"},
        {CONDITIONS(APPLIED("False", 2, "all")) CONFIGMAP(ONE("True", "this")) "]}}", false, "all"},
        {CONDITIONS(APPLIED("True", 2, "all")) CONFIGMAP(ONE("False", "this")) "]}}", true, ""},
        {CONDITIONS("") "1," CONFIGMAP(APPLIED("False", 1, "before")) "]}}", false, ""},
        {CONDITIONS("") "{}," CONFIGMAP(APPLIED("False", 2, "now")) "]}}", false, "now"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        json_auto_t *o = sample();
        struct work_found f;

        assert_int_equal(json_object_set_new(o, "status", parse(str_of(cases[i].status))), 0);
        f = look(o);
        if (f.applied != cases[i].applied || strcmp(look_why, cases[i].why) != 0)
            fail_msg("%s: %s", cases[i].status, look_why);
    }
}

#define FEEDBACK(meta, values)                                                                    \
    "{\"status\":{\"resourceStatus\":{\"manifests\":[7,{\"resourceMeta\":{\"name\":\"other\"}},{" \
    "\"resourceMeta\":{" meta "},\"statusFeedback\":{\"values\":" values "}}]}}}"
#define VALUE(name, type, value) "{\"name\":\"" name "\",\"fieldValue\":{\"type\":\"" type "\"," value "}}"
#define STATUS_MAP               "\"kind\":\"ConfigMap\",\"name\":\"dynamic-scoring-status\""

static void finds_the_report_in_the_feedback(void **state)
{
    static const struct {
        const char *object, *text; /* NULL: none */
    } cases[] = {
        {FEEDBACK(STATUS_MAP, "[" VALUE("status", "String", "\"string\":\"{}\"") "]"), "{}"},
        {FEEDBACK(STATUS_MAP, "[" VALUE("a", "String", "\"string\":\"x\"") "," VALUE("status", "String",
                                                                                     "\"string\":\"\"") "]"),
         ""},
        {FEEDBACK("\"resource\":\"configmaps\",\"name\":\"dynamic-scoring-status\"",
                  "[" VALUE("status", "String", "\"string\":\"{}\"") "]"),
         "{}"},
        {FEEDBACK("\"kind\":\"Secret\",\"name\":\"dynamic-scoring-status\"",
                  "[" VALUE("status", "String", "\"string\":\"{}\"") "]"),
         NULL},
        {FEEDBACK("\"kind\":\"ConfigMap\",\"name\":\"else\"",
                  "[" VALUE("status", "String", "\"string\":\"{}\"") "]"),
         NULL},
        {FEEDBACK(STATUS_MAP, "[" VALUE("status", "Integer", "\"integer\":1") "]"), NULL},
        {FEEDBACK(STATUS_MAP, "[" VALUE("status", "JsonRaw", "\"string\":\"{}\"") "]"), NULL},
        {FEEDBACK(STATUS_MAP, "[" VALUE("status", "String", "\"string\":1") "]"), NULL},
        {FEEDBACK(STATUS_MAP, "[1,{}]"), NULL},
        {FEEDBACK(STATUS_MAP, "{}"), NULL},
        {"{}", NULL},
        {"[]", NULL},
    };

    (void)state;
    assert_null(work_feedback(NULL).p);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        json_auto_t *o = parse(str_of(cases[i].object));
        struct str text = work_feedback(o);

        if (!text.p != !cases[i].text || !str_eq(text, str_of(cases[i].text)))
            fail_msg("%s", cases[i].object);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(asks_for_watched_feedback_where_there_is_such_a_field),
        cmocka_unit_test(writes_the_whole_object),
        cmocka_unit_test(patches_only_its_own_fields),
        cmocka_unit_test(escapes_names),
        cmocka_unit_test(fits_the_frame_into_its_limit),
        cmocka_unit_test(reads_its_own_object),
        cmocka_unit_test(compares_all_but_others_fields),
        cmocka_unit_test(compares_the_manifests),
        cmocka_unit_test(reads_conditions_of_the_current_generation),
        cmocka_unit_test(finds_the_report_in_the_feedback),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

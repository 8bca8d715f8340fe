/* ManifestWorks: any document can be looked at, a patch makes of it what we want, and any summaries come
 * back as they were sent. */
#include "controller/hub/rules/plan.h"
#include "controller/hub/rules/work.h"
#include "controller/kube/json.h"
#include "exporter/base/buf.h"
#include "exporter/base/utf8.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char agent[] = "dynamic-scoring";

static void look(struct work_found *ret, const json_t *object, const char *agent_namespace,
                 char why[WORK_WHY_BYTES])
{
    json_auto_t *frame = work_frame(agent_namespace);

    work_look(ret, object, frame, why);
}

static void check_found(const json_t *object, const struct work_found *f, const char *error)
{
    struct str why = str_of(error), report = work_feedback(object);

    assert(utf8_valid_prefix(why) == why.n);
    for (size_t i = 0; i < why.n; i++)
        assert((unsigned char)why.p[i] >= ' ');
    assert(!(f->applied && why.n));
    assert(!f->frame || (f->exists && f->ours && f->hash));
    assert(report.p || report.n == 0);
}

/* RFC 7386. */
static json_t *merge(json_t *target, json_t *patch)
{
    const char *name;
    json_t *value;

    if (!json_is_object(patch))
        return json_deep_copy(patch);
    target = json_is_object(target) ? json_copy(target) : json_object();
    json_object_foreach(patch, name, value)
    {
        if (json_is_null(value))
            (void)json_object_del(target, name);
        else
            assert(json_object_set_new(target, name, merge(json_object_get(target, name), value)) == 0);
    }
    return target;
}

static void check_is_ours(const json_t *object, struct str summaries)
{
    char why[WORK_WHY_BYTES];
    struct work_found f;

    look(&f, object, agent, why);
    check_found(object, &f, why);
    assert(f.exists && f.ours && f.frame && f.hash == plan_hash(summaries));
    look(&f, object, "elsewhere", why);
    assert(!f.frame);
}

static void check_patched(json_t *object, struct str summaries)
{
    BUF_AUTO(text, 1u << 30);
    json_auto_t *patch = NULL, *patched = NULL;
    bool deleting;
    char why[WORK_WHY_BYTES];
    struct work_found f;

    buf_put_str(&text, WORK_PATCH);
    assert(work_text(&text, agent, &(struct work_lists){.summaries = summaries}) == 0 &&
           kube_json_parse(&patch, buf_str(&text), NULL) == 0);
    patched = merge(object, patch);
    check_is_ours(patched, summaries);
    look(&f, object, agent, why);
    deleting = f.deleting;
    look(&f, patched, agent, why);
    assert(f.deleting == deleting);
}

/* A good document that was cut is a good one, and tells the same. */
static void check_cut(struct str bytes, const json_t *whole)
{
    json_auto_t *less = NULL;
    char why[WORK_WHY_BYTES];
    struct work_found f, g;

    assert(kube_json_parse_cut(&less, bytes, &work_cut, NULL) == 0);
    look(&f, whole, agent, why);
    look(&g, less, agent, why);
    assert(f.exists == g.exists && f.ours == g.ours && f.frame == g.frame && f.hash == g.hash);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str bytes = {(const char *)data, size};
    json_auto_t *object = NULL, *made = NULL;
    BUF_AUTO(text, 1u << 30);
    char why[WORK_WHY_BYTES];
    struct work_found f;
    int r = kube_json_parse(&object, bytes, NULL);

    assert(r == 0 || !object);
    look(&f, object, agent, why);
    check_found(object, &f, why);
    if (r == 0)
        check_cut(bytes, object);
    if (utf8_valid_prefix(bytes) < size || !size)
        return 0;
    if (r == 0) {
        check_patched(object, bytes);
        return 0;
    }
    /* As the summaries of a new one: a patch, which takes as long, has shown it for what is a document. */
    buf_put_str(&text, WORK_NEW);
    assert(work_text(&text, agent, &(struct work_lists){.summaries = bytes}) == 0);
    assert(kube_json_parse(&made, buf_str(&text), NULL) == 0);
    check_is_ours(made, bytes);
    check_cut(buf_str(&text), made);
    return 0;
}

#include "controller/assist/rules/fingerprint.h"

#include "controller/assist/rules/model.h"
#include "controller/assist/rules/request.h"
#include "controller/kube/json.h"
#include "exporter/base/buf.h"
#include "exporter/base/secret.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

enum { KEY_BYTES = 600 };

static void entry_set(json_t *all, const char *kind, const char *name, json_t *entry)
{
    char key[KEY_BYTES];

    (void)snprintf(key, sizeof(key), "%s/%s", kind, name);
    (void)json_object_set_new(all, key, entry);
}

/* The labels of an object that a plan reads. */
static json_t *labels_of(const json_t *object, const char *const *wanted, const char *const *prefixes)
{
    json_t *labels = kube_map(object, "metadata", "labels", NULL), *out = json_object(), *v;
    const char *key;

    json_object_foreach(labels, key, v)
    {
        bool is_wanted = false;

        for (size_t i = 0; wanted[i]; i++)
            is_wanted = is_wanted || strcmp(key, wanted[i]) == 0;
        for (size_t i = 0; prefixes && prefixes[i]; i++)
            is_wanted = is_wanted || str_starts(str_of(key), str_of(prefixes[i]));
        if (is_wanted)
            (void)json_object_set(out, key, v);
    }
    return out;
}

static void fingerprint_clusters(json_t *all, const struct model *m)
{
    const struct plan_request *rq = m->in->request;
    const char *wanted[REQUEST_MAX_SPREADS + 3] = {"cluster-name", "name"};

    for (size_t i = 0; i < rq->n_spreads; i++)
        wanted[i + 2] = rq->spreads[i].label;
    for (size_t c = 0; c < rq->n_clusters; c++)
        entry_set(all, "ManagedCluster", rq->clusters[c].name,
                  json_pack("{s:o}", "labels", labels_of(m->in->clusters[c], wanted, NULL)));
}

static void fingerprint_policies(json_t *all, const struct model *m)
{
    static const char *const none[] = {NULL}, *const prefixes[] = {"resource-supply-", NULL};

    for (size_t i = 0; i < m->problem.n_settings; i++)
        entry_set(
            all, "Policy", m->settings[i].policy,
            json_pack("{s:o}", "labels", labels_of(m->in->policies[m->settings[i].input], none, prefixes)));
}

static void fingerprint_workloads(json_t *all, const struct model *m)
{
    static const char *const wanted[] = {"app", NULL}, *const prefixes[] = {"resource-request-", NULL};

    for (size_t i = 0; i < m->problem.n_workloads; i++) {
        const struct model_workload *w = &m->workloads[i];
        const json_t *placement = m->in->placements[w->request];
        const char *mark = kube_label(placement, GENERATED_LABEL);

        entry_set(all, "ManifestWorkReplicaSet", w->name,
                  json_pack("{s:o, s:s}", "labels", labels_of(m->in->workloads[w->request], wanted, prefixes),
                            "placementRef", w->placement));
        entry_set(all, "Placement", w->placement,
                  json_pack("{s:s, s:s}", "owner",
                            !placement                          ? "none"
                            : mark && strcmp(mark, "true") == 0 ? "generated"
                                                                : "other",
                            "plan", cstr(kube_annotation(placement, PLAN_ANNOTATION))));
    }
}

static void fingerprint_scores(json_t *all, const struct model *m)
{
    const struct plan_request *rq = m->in->request;

    for (size_t i = 0; i < rq->n_clusters * rq->n_scores; i++) {
        const struct input_score *s = &m->in->scores[i];
        char name[520], hash[20];

        (void)snprintf(name, sizeof(name), "%s/%s", rq->clusters[i / rq->n_scores].name,
                       rq->scores[i % rq->n_scores].name);
        (void)snprintf(hash, sizeof(hash), "%016" PRIx64, m->score_hashes[i]);
        entry_set(all, "AddOnPlacementScore", name,
                  json_pack("{s:s, s:s}", "values", hash, "validity",
                            !s->exists      ? "missing"
                            : s->is_expired ? "expired"
                                            : "valid"));
    }
}

/* Where workloads run. */
static void fingerprint_running(json_t *all, const struct model *m)
{
    const struct problem *p = &m->problem;

    for (size_t i = 0, end; i < p->n_running; i = end) {
        json_t *list = json_array();

        for (end = i; end < p->n_running && p->running[end].workload == p->running[i].workload; end++)
            (void)json_array_append_new(list, json_string(m->sites[p->running[end].site].cluster_name));
        entry_set(all, "PlacementDecision", m->workloads[p->running[i].workload].placement,
                  json_pack("{s:o}", "clusters", list));
    }
}

/* Other runs' objects, which this plan would replace. */
static void fingerprint_generated(json_t *all, const struct model *m)
{
    for (size_t i = 0; i < m->in->n_generated; i++) {
        const json_t *o = m->in->generated[i];

        entry_set(all, "generated", kube_name(o),
                  json_pack("{s:s}", "plan", cstr(kube_annotation(o, PLAN_ANNOTATION))));
    }
}

json_t *fingerprint_make(const struct model *m)
{
    json_t *all = json_object();

    fingerprint_clusters(all, m);
    fingerprint_policies(all, m);
    fingerprint_workloads(all, m);
    fingerprint_scores(all, m);
    fingerprint_running(all, m);
    fingerprint_generated(all, m);
    return all;
}

/* Members of either object that differ, as "labels, placementRef". */
static void differing_members(const json_t *before, const json_t *now, struct buf *into)
{
    const char *key;
    json_t *v;

    json_object_foreach((json_t *)(uintptr_t)before, key, v)
    {
        if (!json_equal(v, json_object_get(now, key)))
            (void)!buf_printf(into, "%s%s", into->n ? ", " : "", key);
    }
    json_object_foreach((json_t *)(uintptr_t)now, key, v)
    {
        if (!json_object_get(before, key))
            (void)!buf_printf(into, "%s%s", into->n ? ", " : "", key);
    }
}

static void changes_add(json_t *list, const char *key, const json_t *before, const json_t *now)
{
    const char *slash = strchr(key, '/');
    BUF_AUTO(what, 4096);

    if (before && now)
        differing_members(before, now, &what);
    else
        (void)!buf_puts(&what, now ? "is new" : "is gone");
    (void)json_array_append_new(list, json_pack("{s:s%, s:s, s:s%}", "kind", key, (size_t)(slash - key),
                                                "name", slash + 1, "what", what.p, what.n));
}

static bool entry_is_of_plan(const json_t *all, const char *kind, const char *name, const char *plan)
{
    char key[KEY_BYTES];

    (void)snprintf(key, sizeof(key), "%s/%s", kind, name);
    return strcmp(cstr(kube_str(json_object_get(all, key), "plan", NULL)), plan) == 0;
}

/* Whether applying the plan causes this difference: its objects, what has been deleted for them, and where
 * workloads run by its Placements. */
static bool change_is_of_plan(const json_t *now, const char *key, const char *plan)
{
    const char *name = strchr(key, '/') + 1;

    if (str_starts(str_of(key), STR("generated/")))
        return !json_object_get(now, key) || entry_is_of_plan(now, "generated", name, plan);
    if (str_starts(str_of(key), STR("Placement/")) || str_starts(str_of(key), STR("PlacementDecision/")))
        return entry_is_of_plan(now, "Placement", name, plan);
    return false;
}

json_t *fingerprint_changes(const json_t *before, const json_t *now, const char *plan)
{
    json_t *list = json_array(), *v;
    const char *key;

    json_object_foreach((json_t *)(uintptr_t)before, key, v)
    {
        const json_t *other = json_object_get(now, key);

        if (!json_equal(v, other) && !change_is_of_plan(now, key, plan))
            changes_add(list, key, v, other);
    }
    json_object_foreach((json_t *)(uintptr_t)now, key, v)
    {
        if (!json_object_get(before, key) && !change_is_of_plan(now, key, plan))
            changes_add(list, key, NULL, v);
    }
    return list;
}

int fingerprint_hash(char ret[PLAN_HASH_BYTES], const json_t *request, const json_t *fingerprint,
                     const json_t *placements)
{
    const json_t *const parts[] = {request, fingerprint, placements};
    char *texts[ARRAY_SIZE(parts)] = {NULL};
    char digest[DIGEST_TEXT_BYTES];
    struct str slices[ARRAY_SIZE(parts)];
    int r = 0;

    for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
        texts[i] = json_dumps(parts[i], JSON_COMPACT | JSON_SORT_KEYS);
        slices[i] = str_of(texts[i]);
        r = texts[i] ? r : -ENOMEM;
    }
    r = r ?: digest_parts(digest, slices, ARRAY_SIZE(slices));
    if (r == 0) {
        memcpy(ret, digest, PLAN_HASH_BYTES - 1);
        ret[PLAN_HASH_BYTES - 1] = '\0';
    }
    for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
        free(texts[i]);
    return r;
}

#include "controller/assist/state/apply_internal.h"

#include "controller/assist/rules/inputs.h"
#include "controller/kube/json.h"

#include <errno.h>
#include <stdio.h>

const struct kube_resource *const apply_resources[2] = {&kube_placements, &kube_placementbindings};

/* In the order of writing. Those that a binding or a workload refers to come first and go last. */
enum phase { NEW_PLACEMENTS, NEW_BINDINGS, WORKLOADS, OLD_BINDINGS, OLD_PLACEMENTS };

static const struct kube_resource *resource_of(const json_t *object)
{
    const char *kind = kube_str(object, "kind", NULL);

    return kind && strcmp(kind, kube_placementbindings.kind) == 0 ? &kube_placementbindings
                                                                  : &kube_placements;
}

static void step_key(const struct kube_resource *resource, const char *name, char out[320])
{
    (void)snprintf(out, 320, "%s/%s", resource->kind, name);
}

/* Sets the members of `to`, and removes those that only `from` has. */
static json_t *spec_patch(const json_t *from, const json_t *to)
{
    json_t *spec = json_deep_copy(json_object_get(to, "spec"));
    const char *key;
    json_t *v;

    json_object_foreach(json_object_get(from, "spec"), key, v) if (spec && !json_object_get(spec, key))(void)
        json_object_set_new(spec, key, json_null());
    return spec;
}

/* A merge patch (RFC 7386) to the spec, label and annotations of a plan: those of others stay, and so does
 * what the placement controller writes meanwhile. The uid must be that of the object as it was listed. */
static json_t *patch_body(const json_t *before, const json_t *from, const json_t *to)
{
    return json_pack("{s:{s:s, s:{s:s}, s:{s:s}}, s:o}", "metadata", "uid", kube_uid(before), "labels",
                     GENERATED_LABEL, "true", "annotations", PLAN_ANNOTATION,
                     cstr(kube_annotation(to, PLAN_ANNOTATION)), "spec", spec_patch(from, to));
}

/* As it may be created again. */
static json_t *recreated_body(const json_t *before)
{
    static const char *const owned_by_server[] = {"resourceVersion", "uid", "creationTimestamp", "generation",
                                                  "managedFields"};
    json_t *body = json_deep_copy(before), *metadata = kube_map(body, "metadata", NULL);

    for (size_t i = 0; i < ARRAY_SIZE(owned_by_server) && metadata; i++)
        (void)json_object_del(metadata, owned_by_server[i]);
    (void)json_object_del(body, "status");
    return body;
}

/* Only the very object that is known. */
static json_t *delete_options(const json_t *metadata, bool dry_run)
{
    json_t *o = json_pack("{s:s, s:s, s:{s:s*}}", "apiVersion", "v1", "kind", "DeleteOptions",
                          "preconditions", "uid", kube_str(metadata, "uid", NULL));

    if (o && dry_run && json_object_set_new(o, "dryRun", json_pack("[s]", "All")) < 0) {
        json_decref(o);
        return NULL;
    }
    return o;
}

int step_request(const struct step *s, const struct apply *ap, struct kube_request *rq, json_t **ret_body)
{
    static const enum kube_method inverse[] = {
        [KUBE_CREATE] = KUBE_DELETE, [KUBE_MERGE_PATCH] = KUBE_MERGE_PATCH, [KUBE_DELETE] = KUBE_CREATE};
    bool undo = ap->mode == APPLY_UNDOING, check = ap->mode == APPLY_CHECKING;
    enum kube_method method = undo ? inverse[s->method] : s->method;
    json_t *body;

    if (method == KUBE_DELETE)
        body = delete_options(undo ? s->written : kube_map(s->before, "metadata", NULL), check);
    else if (!undo)
        body = json_incref(s->body);
    else
        body = method == KUBE_CREATE ? recreated_body(s->before) : patch_body(s->before, s->body, s->before);
    if (!body)
        return -ENOMEM;
    *rq = (struct kube_request){
        .method = method,
        .resource = s->resource,
        .namespace = ap->namespace,
        .name = method == KUBE_CREATE ? NULL : s->name,
        .body = body,
        .query = method == KUBE_DELETE ? NULL
                 : check ? "fieldManager=dynamic-scoring-optimizer&fieldValidation=Strict&dryRun=All"
                         : "fieldManager=dynamic-scoring-optimizer&fieldValidation=Strict",
    };
    *ret_body = body;
    return 0;
}

/* Takes the body. */
static int steps_add(struct apply *ap, const struct step *s)
{
    if (s->method != KUBE_DELETE && !s->body)
        return -ENOMEM;
    ap->steps[ap->n] = *s;
    ap->steps[ap->n++].before = json_incref(s->before);
    return 0;
}

static int steps_add_wanted(struct apply *ap, json_t *object, bool *had_binding, json_t *wanted)
{
    struct step s = {.resource = resource_of(object), .name = kube_name(object), .method = KUBE_CREATE};
    char key[320];

    step_key(s.resource, s.name, key);
    *had_binding = *had_binding || s.resource == &kube_placementbindings;
    s.phase = s.resource == &kube_placementbindings ? NEW_BINDINGS
              : *had_binding                        ? WORKLOADS
                                                    : NEW_PLACEMENTS;
    /* Bindings have names of their own in each run. */
    s.before = s.resource == &kube_placements ? json_object_get(ap->owned, key) : NULL;
    if (s.before)
        s.method = KUBE_MERGE_PATCH;
    s.body = s.before ? patch_body(s.before, s.before, object) : json_incref(object);
    if (json_object_set(wanted, key, json_true()) < 0) {
        json_decref(s.body);
        return -ENOMEM;
    }
    return steps_add(ap, &s);
}

static int steps_add_old(struct apply *ap, const json_t *wanted, const struct kube_resource *resource,
                         unsigned phase)
{
    const char *key;
    json_t *object;
    int r = 0;

    json_object_foreach(ap->owned, key, object) if (r == 0 && resource_of(object) == resource &&
                                                    !json_object_get(wanted, key)) r =
        steps_add(ap, &(struct step){.resource = resource,
                                     .name = kube_name(object),
                                     .method = KUBE_DELETE,
                                     .before = object,
                                     .phase = phase});
    return r;
}

int apply_plan_steps(struct apply *ap)
{
    json_auto_t *wanted = json_object();
    bool had_binding = false;
    json_t *object;
    size_t i;
    int r = 0;

    ap->steps = calloc(json_array_size(ap->o.objects) + json_object_size(ap->owned) + 1, sizeof(*ap->steps));
    if (!ap->steps || !wanted)
        return -ENOMEM;
    json_array_foreach(ap->o.objects, i, object) r = r ?: steps_add_wanted(ap, object, &had_binding, wanted);
    r = r ?: steps_add_old(ap, wanted, &kube_placementbindings, OLD_BINDINGS);
    return r ?: steps_add_old(ap, wanted, &kube_placements, OLD_PLACEMENTS);
}

void apply_free_steps(struct apply *ap)
{
    for (size_t i = 0; i < ap->n; i++) {
        json_decref(ap->steps[i].body);
        json_decref(ap->steps[i].before);
        json_decref(ap->steps[i].written);
    }
    free(ap->steps);
    ap->steps = NULL;
    ap->n = 0;
}

int list_add_step(json_t *list, const struct step *s)
{
    char key[320];

    step_key(s->resource, s->name, key);
    return json_array_append_new(list, json_string(key)) < 0 ? -ENOMEM : 0;
}

json_t *apply_summary(const struct apply *ap)
{
    static const char *const words[] = {
        [KUBE_CREATE] = "created", [KUBE_MERGE_PATCH] = "updated", [KUBE_DELETE] = "deleted"};
    json_auto_t *all = ap->o.objects ? json_pack("{s:[], s:[], s:[]}", "created", "updated", "deleted")
                                     : json_pack("{s:[], s:O}", "deleted", "failed", ap->failed);

    for (size_t i = 0; i < ap->n && all; i++)
        if (ap->steps[i].state == STEP_DONE &&
            list_add_step(json_object_get(all, words[ap->steps[i].method]), &ap->steps[i]) < 0)
            return NULL;
    return TAKE_PTR(all);
}

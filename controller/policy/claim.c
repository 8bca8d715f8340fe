#include "controller/policy/claim.h"

#include "controller/kube/json.h"
#include "exporter/base/def.h"
#include "exporter/base/hash.h"

#include <string.h>
#include <strings.h>

enum { SECOND_MS = 1000 };

WORD_TABLE(policy_state_word, enum policy_state, POLICY_STATES,
           {[POLICY_COMPLIANT] = "compliant",
            [POLICY_NONCOMPLIANT] = "noncompliant",
            [POLICY_PENDING] = "pending",
            [POLICY_UNKNOWN] = "unknown",
            [POLICY_DISABLED] = "disabled"});
WORD_TABLE(claim_value_word, enum claim_value, CLAIM_VALUES,
           {[CLAIM_EMPTY] = "empty", [CLAIM_NONCOMPLIANT] = "noncompliant", [CLAIM_COMPLIANT] = "compliant"});

static unix_ms time_later(unix_ms a, unix_ms b)
{
    return a.ms > b.ms ? a : b;
}

static enum policy_state policy_read_state(const json_t *object)
{
    const char *word = cstr(kube_str(object, "status", "compliant", NULL));
    bool disabled = false;

    if (kube_bool(object, &disabled, "spec", "disabled", NULL) && disabled)
        return POLICY_DISABLED;
    if (strcmp(word, "Compliant") == 0)
        return POLICY_COMPLIANT;
    if (strcmp(word, "NonCompliant") == 0)
        return POLICY_NONCOMPLIANT;
    return strcmp(word, "Pending") == 0 ? POLICY_PENDING : POLICY_UNKNOWN;
}

/* As Open Cluster Management reads them to set the template's state. */
static bool history_is_compliant(const json_t *entry)
{
    static const char combined[] = "(combined from similar events):";
    const char *message = cstr(kube_str(entry, "message", NULL));

    if (strncmp(message, combined, strlen(combined)) == 0)
        message += strlen(combined);
    message += strspn(message, " ");
    return strncasecmp(message, "compliant", strlen("compliant")) == 0;
}

/* The history of a template begins with the newest entry and has ten at most. */
static void policy_read_history(struct policy *p, const json_t *history)
{
    unix_ms since = {0};
    json_t *entry;
    size_t i;

    json_array_foreach(history, i, entry)
    {
        unix_ms at = kube_time_parse(kube_str(entry, "lastTimestamp", NULL));

        if (!history_is_compliant(entry)) {
            p->broken_at = time_later(p->broken_at, at);
            break;
        }
        since = at;
    }
    p->since = since.ms && p->since.ms ? time_later(p->since, since) : (unix_ms){0};
}

/* When anybody last changed more than the status: a list of who wrote which fields, and when. */
static unix_ms policy_edited_at(const json_t *object)
{
    unix_ms last = kube_time_parse(kube_str(object, "metadata", "creationTimestamp", NULL));
    json_t *entry;
    size_t i;

    json_array_foreach(kube_list(object, "metadata", "managedFields", NULL), i, entry)
    {
        if (!kube_str(entry, "subresource", NULL))
            last = time_later(last, kube_time_parse(kube_str(entry, "time", NULL)));
    }
    return last;
}

void policy_read(struct policy *ret, const json_t *object)
{
    json_t *details = kube_list(object, "status", "details", NULL), *one;
    int64_t generation = 0;
    size_t i;

    (void)kube_int(object, &generation, "metadata", "generation", NULL);
    *ret = (struct policy){.state = policy_read_state(object),
                           .identity =
                               hash_chain_u64(hash_bytes(str_of(kube_uid(object))), (uint64_t)generation),
                           .edited_at = policy_edited_at(object)};
    ret->since = ret->edited_at;
    json_array_foreach(details, i, one)
    {
        policy_read_history(ret, kube_list(one, "history", NULL));
    }
    /* Times are rounded down. */
    ret->since.ms = json_array_size(details) && ret->since.ms ? ret->since.ms + SECOND_MS : 0;
}

bool policy_stayed_compliant(const struct policy *was, const struct policy *is)
{
    return was->state == POLICY_COMPLIANT && is->state == POLICY_COMPLIANT && was->identity == is->identity &&
           is->broken_at.ms <= was->broken_at.ms;
}

void policy_tally_add(struct policy_tally *t, const struct policy *p)
{
    t->n[p->state]++;
    if (p->state != POLICY_COMPLIANT)
        return;
    t->since = time_later(t->since, p->since);
    t->lacks_a_time |= p->since.ms == 0;
    t->broken_at = time_later(t->broken_at, time_later(p->broken_at, p->edited_at));
}

size_t policy_tally_enabled(const struct policy_tally *t)
{
    return t->n[POLICY_COMPLIANT] + t->n[POLICY_NONCOMPLIANT] + t->n[POLICY_PENDING] + t->n[POLICY_UNKNOWN];
}

bool policy_tally_is_compliant(const struct policy_tally *t)
{
    return t->n[POLICY_COMPLIANT] > 0 && t->n[POLICY_COMPLIANT] == policy_tally_enabled(t);
}

int64_t policy_tally_stable_ms(const struct policy_tally *t, unix_ms now)
{
    return t->lacks_a_time || t->since.ms == 0 || now.ms < t->since.ms ? 0 : now.ms - t->since.ms;
}

unix_ms claim_written_at(const json_t *claim, const char *manager)
{
    json_t *entry;
    size_t i;

    json_array_foreach(kube_list(claim, "metadata", "managedFields", NULL), i, entry)
    {
        if (kube_map(entry, "fieldsV1", "f:spec", "f:value", NULL) &&
            strcmp(cstr(kube_str(entry, "manager", NULL)), manager) == 0)
            return kube_time_parse(kube_str(entry, "time", NULL));
    }
    return (unix_ms){0};
}

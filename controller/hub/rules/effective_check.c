/* Whether agents accept a summary; if not, which fields of the DynamicScorer or of /config are wrong. */
#include "controller/hub/rules/effective_internal.h"

#include "exporter/base/problems.h"
#include "exporter/base/text.h"
#include "exporter/score/summary.h"
#include "exporter/ui/members.h"

#include <errno.h>
#include <stddef.h>

/* Where a DynamicScorer or /config sets a summary's member. */
static const struct field {
    const char *member, *path;
    bool is_of_source; /* path and offset are relative to a source */
    bool is_number, only_in_spec;
    size_t offset; /* in struct api_config or source_spec, of what /config says; unless only_in_spec */
} fields[] = {
    {"scoreName", "scoring.params.name", .offset = offsetof(struct api_config, scoring.score_name)},
    {"scoringEndpoint", "scoring.host", .offset = offsetof(struct api_config, scoring.host)},
    {"scoringInterval", "scoring.params.interval", .is_number = true,
     .offset = offsetof(struct api_config, scoring.interval_s)},
    {"scoringEndpointAuthName", "scoring.auth.tokenSecretRef.name", .only_in_spec = true},
    {"scoringEndpointAuthKey", "scoring.auth.tokenSecretRef.key", .only_in_spec = true},
    {"sourceType", "type", .is_of_source = true, .only_in_spec = true},
    {"sourceEndpoint", "host", .is_of_source = true, .offset = offsetof(struct source_spec, host)},
    {"sourceQuery", "params.query", .is_of_source = true, .offset = offsetof(struct source_spec, query)},
    {"sourceRange", "params.range", .is_of_source = true, .is_number = true,
     .offset = offsetof(struct source_spec, range_s)},
    {"sourceStep", "params.step", .is_of_source = true, .is_number = true,
     .offset = offsetof(struct source_spec, step_s)},
    {"sourceEndpointAuthName", "auth.tokenSecretRef.name", .is_of_source = true, .only_in_spec = true},
    {"sourceEndpointAuthKey", "auth.tokenSecretRef.key", .is_of_source = true, .only_in_spec = true},
};

static const struct field *find_field(struct str member)
{
    for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
        if (str_eq(member, str_of(fields[i].member)))
            return &fields[i];
    return NULL;
}

/* Whether /config sets the field (of its i-th source). */
static bool is_from_api(const struct field *f, const struct merged *m, size_t i)
{
    const char *at;

    if (!m->api || f->only_in_spec || (f->is_of_source && i >= m->api->n_sources))
        return false;
    at = (f->is_of_source ? (const char *)&m->api->sources[i] : (const char *)m->api) + f->offset;
    return f->is_number ? *(const int64_t *)(const void *)at != 0
                        : *(const char *const *)(const void *)at != NULL;
}

static size_t count_sources(const struct merged *m, bool from_api)
{
    return from_api ? m->api->n_sources : m->spec->own.n_sources;
}

static int check_put_field(struct buf *into, const struct field *f, const struct merged *m, size_t i)
{
    bool api = is_from_api(f, m, i);
    int r = buf_puts(into, api ? "" : "spec.");

    if (f->is_of_source && count_sources(m, api) > 1)
        r = r ?: buf_printf(into, "sources[%zu].", i);
    else if (f->is_of_source)
        r = r ?: buf_puts(into, "source.");
    return r ?: buf_printf(into, "%s%s", f->path, api ? " in /config" : "");
}

/* Of "sources[1].sourceStep" the first part; empty for the summary as a whole. */
static struct str check_member(const struct problem *x)
{
    struct str key = {x->path.p, 0};

    while (key.n < x->path.n && !strchr(".[", key.p[key.n]))
        key.n++;
    return key;
}

/* Names the field as the DynamicScorer or /config spells it. */
static int check_put(struct buf *into, const struct problem *x, const struct merged *m, size_t source)
{
    struct str key = check_member(x);
    const struct field *f = find_field(key);
    int r = into->n ? buf_puts(into, "; ") : 0;

    if (key.n == 0)
        return r ?: buf_puts(into, x->text);
    if (f)
        r = r ?: check_put_field(into, f, m, m->n_sources ? m->index[source] : 0);
    else
        r = r ?: buf_puts(into, "spec.") ?: buf_put_str(into, key);
    return r ?: buf_puts(into, x->text + key.n);
}

/* Whether the value is the DynamicScorer's. A value missing from both is a fault of either. */
static bool is_spec_value(const struct problem *x, const struct merged *m, size_t source)
{
    const struct field *f = find_field(check_member(x));

    return f && !x->missing && !is_from_api(f, m, m->n_sources ? m->index[source] : 0);
}

/* Appends all problems of the kind. */
static int check_list(char out[SPEC_WHY_BYTES], const struct problems *p, enum problem_kind kind,
                      const struct merged *m, size_t source)
{
    BUF_AUTO(list, 64 * 1024);
    int r = buf_puts(&list, out);

    for (size_t i = 0; i < p->n && r == 0; i++)
        if (p->list[i].kind == kind)
            r = check_put(&list, &p->list[i], m, source);
    if (r == -ENOMEM)
        return r;
    text_line(out, SPEC_WHY_BYTES, buf_str(&list));
    return 0;
}

int effective_check(struct effective *e, struct str text, const struct merged *m, size_t source, bool all)
{
    CLEANUP(problems_done) struct problems p = {0};
    CLEANUP(summary_done) struct summary s = {0};
    int r = summary_parse(&s, text, &p);

    if (r < 0)
        return r;
    if (p.errors) {
        e->reason = EFFECTIVE_INCOMPLETE;
        e->only_spec_is_wrong = true;
        for (size_t i = 0; i < p.n; i++)
            if (p.list[i].kind == PROBLEM_ERROR)
                e->only_spec_is_wrong &= is_spec_value(&p.list[i], m, source);
        return check_list(e->error, &p, PROBLEM_ERROR, m, source);
    }
    e->interval_ms = s.interval_ms;
    /* Several sources have been checked one by one. */
    return all && m->n_sources > 1 ? 0 : check_list(e->warning, &p, PROBLEM_WARNING, m, source);
}

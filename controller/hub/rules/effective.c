#include "controller/hub/rules/effective.h"

#include "controller/hub/rules/effective_internal.h"
#include "exporter/base/text.h"
#include "exporter/score/summary.h"

#include <errno.h>
#include <stdio.h>

/* How a DynamicScorer spells a summary's members. `at`: the field of struct api_config that, when set, the value is from. */
static const struct field {
    const char *key, *path;
    bool of_source, number, only_spec;
    size_t at;
} fields[] = {
    {"scoreName", "scoring.params.name", .at = offsetof(struct api_config, scoring.score_name)},
    {"scoringEndpoint", "scoring.host", .at = offsetof(struct api_config, scoring.host)},
    {"scoringInterval", "scoring.params.interval", .number = true,
     .at = offsetof(struct api_config, scoring.interval_s)},
    {"scoringEndpointAuthName", "scoring.auth.tokenSecretRef.name", .only_spec = true},
    {"scoringEndpointAuthKey", "scoring.auth.tokenSecretRef.key", .only_spec = true},
    {"sourceType", "type", .of_source = true, .only_spec = true},
    {"sourceEndpoint", "host", .of_source = true, .at = offsetof(struct source_spec, host)},
    {"sourceQuery", "params.query", .of_source = true, .at = offsetof(struct source_spec, query)},
    {"sourceRange", "params.range", .of_source = true, .number = true,
     .at = offsetof(struct source_spec, range_s)},
    {"sourceStep", "params.step", .of_source = true, .number = true,
     .at = offsetof(struct source_spec, step_s)},
    {"sourceEndpointAuthName", "auth.tokenSecretRef.name", .of_source = true, .only_spec = true},
    {"sourceEndpointAuthKey", "auth.tokenSecretRef.key", .of_source = true, .only_spec = true},
};

static const struct field *find_field(struct str key)
{
    for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
        if (str_eq(key, str_of(fields[i].key)))
            return &fields[i];
    return NULL;
}

/* Whether /config says the field of its i-th source (or of its scoring). */
static bool is_from_api(const struct field *f, const struct merged *m, size_t i)
{
    const char *at;

    if (!m->api || f->only_spec || (f->of_source && i >= m->api->n_sources))
        return false;
    at = (f->of_source ? (const char *)&m->api->sources[i] : (const char *)m->api) + f->at;
    return f->number ? *(const int64_t *)(const void *)at != 0
                     : *(const char *const *)(const void *)at != NULL;
}

/* How many sources the document that names them has. */
static size_t count_sources(const struct merged *m, bool from_api)
{
    return from_api ? m->api->n_sources : m->spec->own.n_sources;
}

static int put_field(struct buf *into, const struct field *f, const struct merged *m, size_t i)
{
    bool api = is_from_api(f, m, i);
    int r = buf_puts(into, api ? "" : "spec.");

    if (f->of_source && count_sources(m, api) > 1)
        r = r ?: buf_printf(into, "sources[%zu].", i);
    else if (f->of_source)
        r = r ?: buf_puts(into, "source.");
    return r ?: buf_printf(into, "%s%s", f->path, api ? " in /config" : "");
}

/* The summary's member that the problem is in; empty for the summary as a whole. */
static struct str problem_member(const struct problem *x)
{
    struct str key = {x->path.p, 0};

    while (key.n < x->path.n && !strchr(".[", key.p[key.n]))
        key.n++;
    return key;
}

/* With the field as the DynamicScorer or /config spells it. */
static int put_problem(struct buf *into, const struct problem *x, const struct merged *m, size_t source)
{
    struct str key = problem_member(x);
    const struct field *f = find_field(key);
    int r = into->n ? buf_puts(into, "; ") : 0;

    if (key.n == 0)
        return r ?: buf_puts(into, x->text);
    if (f)
        r = r ?: put_field(into, f, m, m->n_sources ? m->index[source] : 0);
    else
        r = r ?: buf_puts(into, "spec.") ?: buf_put_str(into, key);
    return r ?: buf_puts(into, x->text + key.n);
}

/* Whether the DynamicScorer says what is wrong; what neither it nor /config says is wrong with both. */
static bool is_of_spec(const struct problem *x, const struct merged *m, size_t source)
{
    const struct field *f = find_field(problem_member(x));

    return f && !x->missing && !is_from_api(f, m, m->n_sources ? m->index[source] : 0);
}

/* Appends the problems of that kind. */
static int say(char out[SPEC_WHY_BYTES], const struct problems *p, enum problem_kind kind,
               const struct merged *m, size_t source)
{
    BUF_AUTO(said, 64 * 1024);
    int r = buf_puts(&said, out);

    for (size_t i = 0; i < p->n && r == 0; i++)
        if (p->list[i].kind == kind)
            r = put_problem(&said, &p->list[i], m, source);
    if (r == -ENOMEM)
        return r;
    text_line(out, SPEC_WHY_BYTES, buf_str(&said));
    return 0;
}

static int check_text(struct effective *e, struct str text, const struct merged *m, size_t source, bool all)
{
    CLEANUP(problems_done) struct problems p = {0};
    CLEANUP(summary_done) struct summary s = {0};
    int r = summary_parse(&s, text, &p);

    if (r < 0)
        return r;
    if (p.errors) {
        e->reason = EFFECTIVE_INCOMPLETE;
        e->of_spec = true;
        for (size_t i = 0; i < p.n; i++)
            if (p.list[i].kind == PROBLEM_ERROR)
                e->of_spec &= is_of_spec(&p.list[i], m, source);
        return say(e->why, &p, PROBLEM_ERROR, m, source);
    }
    e->interval_ms = s.interval_ms;
    /* Of several sources each has told its own. */
    return all && m->n_sources > 1 ? 0 : say(e->warning, &p, PROBLEM_WARNING, m, source);
}

/* Makes the summary with one source's members, or with all that there are, and checks it. */
static int make_text(struct effective *e, struct buf *into, const struct merged *m, size_t source, bool all)
{
    json_auto_t *o = NULL;
    int r = merged_summary(&o, m, source, all);

    r = r ?: kube_json_print(o, into);
    r = r ?: check_text(e, buf_str(into), m, source, all);
    if (r != -EFBIG)
        return r;
    e->reason = EFFECTIVE_INCOMPLETE;
    (void)snprintf(e->why, sizeof(e->why), "spec: the summary would be longer than 256 KiB");
    return 0;
}

static int make_all(struct effective *e, const struct merged *m)
{
    BUF_AUTO(text, SUMMARY_MAX_BYTES);
    int r = 0;

    /* Each of several on its own, so that a problem is told with its place. */
    for (size_t i = 0; m->n_sources > 1 && i < m->n_sources && r == 0 && e->reason == EFFECTIVE_OK; i++) {
        r = make_text(e, &text, m, i, false);
        buf_truncate(&text, 0);
    }
    if (r == 0 && e->reason == EFFECTIVE_OK)
        r = make_text(e, &text, m, 0, true);
    if (r < 0 || e->reason != EFFECTIVE_OK)
        return r;
    buf_shrink(&text);
    e->text = buf_take(&text);
    return 0;
}

/* Before the first /config nothing is wrong yet with what the DynamicScorer leaves to it. */
static void wait_for_config(struct effective *e)
{
    char why[SPEC_WHY_BYTES];
    BUF_AUTO(text, 2 * SPEC_WHY_BYTES);

    memcpy(why, e->why, sizeof(why));
    e->reason = EFFECTIVE_WAITING;
    if (buf_printf(&text, "no configuration has been read from spec.configURL yet, and %s", why) == 0)
        text_line(e->why, sizeof(e->why), buf_str(&text));
}

static int make(struct effective *e, const struct merged *m)
{
    bool unread = m->spec->mode == SYNC_FULL && !m->api;
    int r = 0;

    if (m->api && effective_refuses(m->spec, m->api, e->why)) {
        e->reason = EFFECTIVE_TOKEN_HOST;
        return 0;
    }
    if (unread && !m->sources_said) {
        e->reason = EFFECTIVE_INCOMPLETE;
        (void)snprintf(e->why, sizeof(e->why), "spec.source: missing");
    } else {
        r = make_all(e, m);
    }
    if (r == 0 && unread && e->reason == EFFECTIVE_INCOMPLETE)
        wait_for_config(e);
    return r;
}

int effective_make(struct effective *ret, const char *name, const struct scorer_spec *spec,
                   const struct api_config *synced)
{
    CLEANUP(effective_done) struct effective e = {.reason = EFFECTIVE_OK};
    CLEANUP(merged_done) struct merged m = {0};
    int r = merged_init(&m, name, spec, synced);

    if (r < 0)
        return r;
    e.mode = spec->mode;
    e.source = m.api ? CONFIG_FROM_API : CONFIG_FROM_SPEC;
    if (m.score_name && !(e.score_name = strdup(m.score_name)))
        return -ENOMEM;
    r = make(&e, &m);
    if (r < 0)
        return r;
    *ret = e;
    e = (struct effective){0};
    return 0;
}

bool effective_keep(struct effective *now, struct effective *last, const struct scorer_spec *newest)
{
    struct effective kept = *last;

    if (now->reason != EFFECTIVE_INCOMPLETE || !effective_usable(last) || now->mode != last->mode ||
        (now->score_name && strcmp(now->score_name, cstr(last->score_name)) != 0) ||
        !effective_tokens_stay(newest, buf_str(&last->text)))
        return false;
    kept.reason = now->reason;
    memcpy(kept.why, now->why, sizeof(kept.why));
    kept.kept = true;
    effective_done(now);
    *now = kept;
    *last = (struct effective){0};
    return true;
}

int effective_resume(struct effective *ret, struct str text, enum config_source source)
{
    CLEANUP(effective_done)
    struct effective e = {.reason = EFFECTIVE_INCOMPLETE, .source = source, .kept = true};
    CLEANUP(problems_done) struct problems p = {0};
    CLEANUP(summary_done) struct summary s = {0};
    int r = text.n <= SUMMARY_MAX_BYTES ? summary_parse(&s, text, &p) : -EINVAL;

    if (r == 0 && p.errors)
        r = -EINVAL;
    if (r < 0)
        return r;
    buf_init(&e.text, SUMMARY_MAX_BYTES);
    e.mode = source == CONFIG_FROM_API ? SYNC_FULL : SYNC_NONE;
    e.interval_ms = s.interval_ms;
    e.score_name = strdup(s.score_name);
    if (!e.score_name || buf_put_str(&e.text, text) < 0)
        return -ENOMEM;
    *ret = e;
    e = (struct effective){0};
    return 0;
}

void effective_done(struct effective *e)
{
    free(e->score_name);
    buf_done(&e->text);
    *e = (struct effective){0};
}

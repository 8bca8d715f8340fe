#include "controller/hub/rules/effective.h"

#include "controller/hub/rules/effective_internal.h"
#include "exporter/base/problems.h"
#include "exporter/base/text.h"
#include "exporter/score/summary.h"

#include <errno.h>
#include <stdio.h>

/* Appends and checks the summary, with the members of one source or of all. */
static int effective_put_text(struct effective *e, struct buf *into, const struct merged *m, size_t source,
                              bool all)
{
    json_auto_t *o = NULL;
    int r = merged_summary(&o, m, source, all);

    r = r ?: kube_json_print(o, into);
    r = r ?: effective_check(e, buf_str(into), m, source, all);
    if (r != -EFBIG)
        return r;
    e->reason = EFFECTIVE_INCOMPLETE;
    (void)snprintf(e->error, sizeof(e->error), "spec: the summary exceeds 256 KiB");
    return 0;
}

static int effective_put_all(struct effective *e, const struct merged *m)
{
    BUF_AUTO(text, SUMMARY_MAX_BYTES);
    int r = 0;

    /* Several sources one by one, so that an error names its source. */
    for (size_t i = 0; m->n_sources > 1 && i < m->n_sources && r == 0 && e->reason == EFFECTIVE_OK; i++) {
        r = effective_put_text(e, &text, m, i, false);
        buf_truncate(&text, 0);
    }
    if (r == 0 && e->reason == EFFECTIVE_OK)
        r = effective_put_text(e, &text, m, 0, true);
    if (r < 0 || e->reason != EFFECTIVE_OK)
        return r;
    buf_shrink(&text);
    e->text = buf_take(&text);
    return 0;
}

/* Before the first /config, a field that the DynamicScorer leaves to it is no error. */
static void effective_wait(struct effective *e)
{
    char why[SPEC_WHY_BYTES];
    BUF_AUTO(text, 2 * SPEC_WHY_BYTES);

    memcpy(why, e->error, sizeof(why));
    e->reason = EFFECTIVE_WAITING;
    if (buf_printf(&text, "no configuration received from spec.configURL yet: %s", why) == 0)
        text_line(e->error, sizeof(e->error), buf_str(&text));
}

static int effective_decide(struct effective *e, const struct merged *m)
{
    bool is_waiting = m->spec->mode == SYNC_FULL && !m->api;
    int r = 0;

    if (m->api && effective_refuses(m->spec, m->api, e->error)) {
        e->reason = EFFECTIVE_TOKEN_HOST;
        return 0;
    }
    if (is_waiting && !m->has_sources) {
        e->reason = EFFECTIVE_INCOMPLETE;
        (void)snprintf(e->error, sizeof(e->error), "spec.source: missing");
    } else {
        r = effective_put_all(e, m);
    }
    if (r == 0 && is_waiting && e->reason == EFFECTIVE_INCOMPLETE)
        effective_wait(e);
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
    r = effective_decide(&e, &m);
    if (r < 0)
        return r;
    *ret = e;
    e = (struct effective){0};
    return 0;
}

bool effective_keep(struct effective *now, struct effective *last, const struct scorer_spec *newest)
{
    struct effective keep = *last;

    if (now->reason != EFFECTIVE_INCOMPLETE || !effective_usable(last) || now->mode != last->mode ||
        (now->score_name && strcmp(now->score_name, cstr(last->score_name)) != 0) ||
        !effective_tokens_stay(newest, buf_str(&last->text)))
        return false;
    keep.reason = now->reason;
    memcpy(keep.error, now->error, sizeof(keep.error));
    keep.kept = true;
    effective_done(now);
    *now = keep;
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

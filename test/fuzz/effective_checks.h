/* What holds for every scorer's summary; for the fuzz targets of what it is made from. */
#pragma once

#include "controller/hub/rules/effective.h"
#include "controller/hub/rules/pair.h"
#include "controller/hub/rules/plan.h"
#include "controller/hub/rules/report.h"
#include "controller/hub/rules/spec.h"
#include "controller/hub/rules/work.h"
#include "controller/kube/json.h"
#include "exporter/base/buf.h"
#include "exporter/base/doc.h"
#include "exporter/base/text.h"
#include "exporter/base/utf8.h"
#include "exporter/http/http.h"
#include "exporter/score/summary.h"

#include <assert.h>
#include <errno.h>

static inline void check_sentence(const char *why)
{
    assert(*why && strlen(why) < SPEC_WHY_BYTES && utf8_valid_prefix(str_of(why)) == strlen(why));
    for (; *why; why++)
        assert((unsigned char)*why >= 0x20 && *why != 0x7f);
}

/* Agents accept it, and what they would warn about is a warning here too. */
static inline void check_summary(const struct effective *e)
{
    struct summary s;
    struct problems p;

    summary_parse(&s, buf_str(&e->text), &p);
    assert(p.errors == 0);
    assert((p.n > 0) == (*e->warning != '\0'));
    assert(s.interval_ms == e->interval_ms);
    assert(strcmp(s.score_name, e->score_name) == 0);
    summary_done(&s);
    problems_done(&p);
}

/* The URL is empty or one of the places. */
static inline void check_place(const char *url, const char *const *allowed)
{
    char *origin = url_origin(url), *other;
    bool found = *url == '\0';

    for (; *allowed && !found; allowed++) {
        other = url_origin(*allowed);
        found = strcmp(origin, other) == 0;
        free(other);
    }
    assert(found);
    free(origin);
}

/* For a scorer with tokens of its own: no endpoint of its summary is in a place that is not named here. */
static inline void check_tokens(const struct effective *e, const char *const *source,
                                const char *const *scoring)
{
    const json_t *each;
    json_t *o = NULL;
    size_t i;

    assert(kube_json_parse(&o, buf_str(&e->text), NULL) == 0);
    check_place(kube_str(o, "sourceEndpoint", NULL), source);
    check_place(kube_str(o, "scoringEndpoint", NULL), scoring);
    json_array_foreach(kube_list(o, "sources", NULL), i, each)
        check_place(kube_str(each, "sourceEndpoint", NULL), source);
    json_decref(o);
}

static inline void check_effective(const struct scorer_spec *spec, const struct api_config *synced,
                                   struct effective *ret)
{
    struct effective e, again;

    effective_make(&e, "meta", spec, synced);
    effective_make(&again, "meta", spec, synced);
    assert(e.reason == again.reason && str_eq(buf_str(&e.text), buf_str(&again.text)));
    assert((e.text.n > 0) == (e.reason == EFFECTIVE_OK));
    if (e.reason == EFFECTIVE_OK)
        check_summary(&e);
    else
        check_sentence(e.error);
    effective_done(&again);
    *ret = e;
}

/* What the outcomes of requests mean: the verdict on health, and whether a configuration is accepted. */
#include "controller/hub/probe/probe_internal.h"

#include "controller/hub/rules/effective.h"
#include "exporter/base/buf.h"
#include "exporter/base/text.h"

#include <errno.h>
#include <stdio.h>

static void outcome_keep(struct probe *p, enum probe_what what, const struct probe_result *r)
{
    struct probe_part *part = what == PROBE_HEALTH ? &p->status.probe : &p->status.config;

    part->asked = true;
    part->ok = r->ok;
    part->failures = r->ok ? 0 : part->failures + 1;
    (void)snprintf(part->reason, sizeof(part->reason), "%s", r->reason);
    memcpy(part->message, r->message, sizeof(part->message));
    part->seconds = r->seconds;
    history_add(&p->status.history[what], 1, loop_wall(p->env.loop), &part->seconds);
    part->at_ms = loop_wall(p->env.loop).ms;
    p->ended[what] = true;
}

void probe_health_ended(struct probe *p, const struct probe_result *r)
{
    const struct probe_settings *s = p->env.settings;
    enum probe_health *health = &p->status.health;

    outcome_keep(p, PROBE_HEALTH, r);
    p->successes = r->ok ? p->successes + 1 : 0;
    if (p->status.probe.failures >= s->unhealthy_after)
        *health = HEALTH_INACTIVE;
    else if (p->successes >= s->healthy_after || (r->ok && *health == HEALTH_UNKNOWN))
        *health = HEALTH_ACTIVE;
    if (r->ok || *health == HEALTH_INACTIVE)
        p->is_provisional = false;
}

void probe_health_from_config(struct probe *p)
{
    struct probe_result r = {.ok = true, .reason = "Healthy"};
    bool is_private = p->no_healthz == 401 || p->no_healthz == 403;
    char status[64], text[128];

    if (p->has_config_answer || (is_private && p->config_result.reason)) {
        r = p->config_result;
    } else {
        text_http_status(status, sizeof(status), p->no_healthz, STR(""));
        (void)snprintf(text, sizeof(text), "%s: %s, but the server responds", status,
                       is_private ? "access denied" : "no such path");
        probe_result_describe(&r, p->health_url, text);
    }
    p->no_healthz = 0;
    if (!r.unasked)
        probe_health_ended(p, &r);
}

/* Parses the body; the result is NULL, or the reason why it is rejected. */
static const char *outcome_read_config(const struct probe *p, struct str body, struct api_config *ret,
                                       char why[SPEC_WHY_BYTES])
{
    CLEANUP(effective_done) struct effective made = {0};
    int r = api_config_parse(ret, body, why);

    if (r == -EINVAL)
        return "InvalidConfig";
    r = r ?: effective_make(&made, p->env.name, &p->spec, ret);
    if (r < 0) {
        (void)snprintf(why, SPEC_WHY_BYTES, "out of memory");
        return "OutOfMemory";
    }
    memcpy(why, made.error, sizeof(made.error));
    return made.reason == EFFECTIVE_OK || made.only_spec_is_wrong ? NULL
           : made.reason == EFFECTIVE_TOKEN_HOST                  ? "TokenHostNotAllowed"
                                                                  : "InvalidConfig";
}

/* Accepts the configuration, or keeps the last good one: a summary that agents would reject must not
 * replace an active one. */
static void outcome_accept_config(struct probe *p, struct str body, struct probe_result *r)
{
    CLEANUP(api_config_done) struct api_config new = {0};
    char why[SPEC_WHY_BYTES];
    const char *rejected = outcome_read_config(p, body, &new, why);

    r->ok = !rejected;
    r->reason = rejected ?: "Synced";
    if (rejected) {
        probe_result_describe(r, p->spec.config_url, why);
        return;
    }
    /* An equal one stays at its address, by which callers see that nothing changed. */
    if (p->status.synced.owner && json_equal(p->status.synced.owner, new.owner))
        return;
    api_config_done(&p->status.synced);
    p->status.synced = new;
    new = (struct api_config){0};
}

void probe_config_ended(struct probe *p, const struct probe_result *r, const struct http_answer *answer)
{
    struct probe_result config = *r;

    p->config_result = *r;
    p->has_config_answer = answer;
    p->unasked = r->unasked ? p->unasked + 1 : 0;
    if (r->unasked)
        return;
    if (p->spec.mode != SYNC_FULL)
        return;
    if (config.ok)
        outcome_accept_config(p, buf_str(&answer->body), &config);
    outcome_keep(p, PROBE_CONFIG, &config);
}

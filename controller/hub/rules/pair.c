/* The state of one scorer on one cluster, and its reason in words. Pure. */
#include "controller/hub/rules/rules.h"

#include <stdio.h>

enum {
    GRACE_MS = 30 * 1000, /* for clocks that differ, and for the way of the report that would say more */
    /* Of agents whose reports do not say when scores expire, and may be five minutes apart. */
    INTERVALS = 3,
    OLD_GRACE_MS = 15 * 60 * 1000
};

const struct pair_info pair_info[PAIR_STATES] = {
    [PAIR_NOT_WRITTEN] = {"notWritten", "not written", PAIR_CLASS_FAILING, "error", true},
    [PAIR_NOT_APPLIED] = {"notApplied", "not applied", PAIR_CLASS_FAILING, "error", true},
    [PAIR_REFUSED] = {"refused", "configuration rejected", PAIR_CLASS_FAILING, "error", true},
    [PAIR_FAILING] = {"failing", "failing", PAIR_CLASS_FAILING, "error", true},
    [PAIR_STALE] = {"stale", "stale", PAIR_CLASS_FAILING, "error", true},
    [PAIR_NOT_PLACED] = {"notPlaced", "no placement score", PAIR_CLASS_FAILING, "error", true},
    [PAIR_UNAVAILABLE] = {"silent", "unavailable", PAIR_CLASS_SILENT, "warning", true},
    [PAIR_ELSEWHERE] = {"silent", "other namespace", PAIR_CLASS_SILENT, "warning", true},
    [PAIR_EXPIRED] = {"silent", "expired", PAIR_CLASS_SILENT, "warning", true},
    [PAIR_SUSPENDED] = {"suspended", "suspended", PAIR_CLASS_SUSPENDED, "warning", true},
    [PAIR_REPORT_FULL] = {"silent", "report full", PAIR_CLASS_SILENT, "warning", true},
    [PAIR_NO_REPORT] = {"silent", "no report", PAIR_CLASS_SILENT, "pending", true},
    [PAIR_BEHIND] = {"behind", "behind", PAIR_CLASS_WAITING, "warning", false},
    [PAIR_WAITING] = {"waiting", "waiting", PAIR_CLASS_WAITING, "pending", true},
    [PAIR_NO_ROOM] = {"noRoom", "no room", PAIR_CLASS_UNSELECTED, "error", false},
    [PAIR_MASKED] = {"masked", "masked", PAIR_CLASS_UNSELECTED, "none", false},
    [PAIR_NOT_SENT] = {"notSent", "not sent", PAIR_CLASS_UNSELECTED, "none", false},
    [PAIR_OLD_CONFIG] = {"refused", "old configuration", PAIR_CLASS_SCORING, "warning", true},
    [PAIR_EMPTY] = {"empty", "nothing to score", PAIR_CLASS_EMPTY, "warning", true},
    [PAIR_NO_ITEMS] = {"empty", "no items", PAIR_CLASS_EMPTY, "warning", true},
    [PAIR_OK] = {"ok", "scoring", PAIR_CLASS_SCORING, "ok", false},
};

int64_t pair_expires_ms(const struct report_cell *c)
{
    return c->life ? ((int64_t)c->succeeded + c->life) * 1000 + GRACE_MS : INT64_MAX;
}

/* An agent that has just received the interval, or still works by an older one, is not held to it. */
static bool is_expired(const struct pair_facts *f)
{
    if (f->cell->life)
        return f->now.ms > pair_expires_ms(f->cell);
    return f->in_sync && !f->report->config_rejected && f->sent_ms_ago >= OLD_GRACE_MS &&
           f->cell->succeeded &&
           f->now.ms - (int64_t)f->cell->succeeded * 1000 > INTERVALS * f->interval_ms + OLD_GRACE_MS;
}

/* Of a cell whose last round succeeded. */
static enum pair_state success_state(const struct pair_facts *f)
{
    if (is_expired(f))
        return PAIR_EXPIRED;
    if (f->cell->state == SCORER_EMPTY)
        return PAIR_EMPTY;
    if (f->cell->no_items)
        return PAIR_NO_ITEMS;
    return f->report->config_rejected ? PAIR_OLD_CONFIG : PAIR_OK;
}

static enum pair_state cell_state(const struct pair_facts *f)
{
    /* What never scored has nothing that could be stale. */
    if (f->cell->state == SCORER_FAILING || (f->cell->state == SCORER_STALE && !f->cell->succeeded))
        return PAIR_FAILING;
    if (report_cell_fails(f->cell))
        return f->cell->state == SCORER_STALE ? PAIR_STALE : PAIR_NOT_PLACED;
    if (f->cell->state == SCORER_OK || f->cell->state == SCORER_EMPTY)
        return success_state(f);
    return f->report->config_rejected ? PAIR_REFUSED : PAIR_WAITING;
}

/* By what the agent reports. */
static enum pair_state reported_state(const struct pair_facts *f)
{
    if (!f->report->exists)
        return PAIR_NO_REPORT;
    if (f->cell)
        return cell_state(f);
    if (f->report->config_rejected)
        return PAIR_REFUSED;
    return f->report->not_shown ? PAIR_REPORT_FULL : PAIR_WAITING;
}

/* Whether an agent that looks for its ConfigMap in another namespace explains the state. */
static bool is_elsewhere(const struct pair_facts *f, enum pair_state s)
{
    return f->addon_namespace && (s == PAIR_NO_REPORT || s == PAIR_WAITING || s == PAIR_EXPIRED);
}

enum pair_state pair_state(const struct pair_facts *f)
{
    enum pair_state reported;

    if (f->unavailable_because || f->addon_unavailable_because)
        return PAIR_UNAVAILABLE;
    if (*cstr(f->write_error))
        return PAIR_NOT_WRITTEN;
    if (f->in_sync && *cstr(f->apply_error))
        return PAIR_NOT_APPLIED;
    if (f->suspended)
        return PAIR_SUSPENDED;
    reported = reported_state(f);
    return is_elsewhere(f, reported) ? PAIR_ELSEWHERE : reported;
}

bool pair_is_pending(enum pair_state s)
{
    return s == PAIR_NO_REPORT || pair_info[s].class == PAIR_CLASS_WAITING;
}

enum pair_state pair_state_shown(enum pair_state s, bool behind)
{
    bool may_change = pair_is_pending(s) || pair_info[s].class == PAIR_CLASS_EMPTY || s == PAIR_OK;

    return behind && may_change ? PAIR_BEHIND : s;
}

static const char *pending_reason(enum pair_state s, const struct pair_facts *f)
{
    if (!f->in_sync)
        return "its ManifestWork is not up to date yet";
    if (s == PAIR_WAITING && f->cell)
        return "no round has finished yet";
    if (!f->applied)
        return "the work agent has not applied the ManifestWork yet";
    return s == PAIR_WAITING ? "the agent has not reported the scorer yet"
                             : "the ManifestWork is applied, but no agent has reported";
}

/* The agent's words; those of the version before have none, nor those without AddOnPlacementScores. */
static const char *empty_reason(enum pair_state s, const struct pair_facts *f)
{
    const char *reported = report_error(f->report, f->cell);

    if (*reported)
        return reported;
    return s == PAIR_NO_ITEMS ? "no result of the scoring API leads to an item"
                              : "the source returned no series, or the scoring API no results";
}

static void put_expired_reason(char ret[PAIR_REASON_BYTES], const struct pair_facts *f)
{
    int32_t offset_s = f->report->clock_offset_s;
    char at[32], clock[80] = "";

    unix_ms_format((unix_ms){(int64_t)f->cell->succeeded * 1000}, at);
    (void)strcpy(at + 19, "Z");
    if (offset_s)
        (void)snprintf(clock, sizeof(clock), "; the agent's clock is %u s %s that of the hub's API server",
                       (unsigned)(offset_s < 0 ? -offset_s : offset_s), offset_s > 0 ? "behind" : "ahead of");
    (void)snprintf(ret, PAIR_REASON_BYTES, "its scores have expired: the last success was at %s%s", at,
                   clock);
}

void pair_reason(char ret[PAIR_REASON_BYTES], enum pair_state s, const struct pair_facts *f)
{
    const char *prefix = "", *text = "";

    if (s == PAIR_NOT_WRITTEN) {
        prefix = "ManifestWork not written: ";
        text = cstr(f->write_error);
    } else if (s == PAIR_NOT_APPLIED) {
        prefix = "ManifestWork not applied: ";
        text = cstr(f->apply_error);
    } else if (s == PAIR_FAILING || s == PAIR_STALE || s == PAIR_NOT_PLACED) {
        prefix = s == PAIR_NOT_PLACED ? "AddOnPlacementScore not written: " : "";
        text = report_error(f->report, f->cell);
        if (!*text)
            text = s == PAIR_NOT_PLACED ? "the agent does not say why" : pair_info[s].word;
    } else if (s == PAIR_REFUSED || s == PAIR_OLD_CONFIG) {
        prefix = s == PAIR_REFUSED ? "the agent rejected its configuration: "
                                   : "the agent rejected its configuration, an older one stays active: ";
        text = cstr(f->report->problem);
    } else if (s == PAIR_UNAVAILABLE) {
        prefix = f->unavailable_because ? "the cluster is not available: " : "the add-on is not available: ";
        text = cstr(f->unavailable_because ?: f->addon_unavailable_because);
    } else if (s == PAIR_ELSEWHERE) {
        (void)snprintf(ret, PAIR_REASON_BYTES,
                       "the add-on is installed in namespace %s, but its ConfigMap is in %s: set "
                       "agentInstallNamespace: %s in its AddOnDeploymentConfig",
                       f->addon_namespace, f->agent_namespace, f->agent_namespace);
        return;
    } else if (s == PAIR_EXPIRED) {
        put_expired_reason(ret, f);
        return;
    } else if (s == PAIR_REPORT_FULL) {
        text = "the agent's report has no room for all of its scorers";
    } else if (s == PAIR_SUSPENDED) {
        text = "not called, as the hub finds the scoring API unhealthy";
    } else if (s == PAIR_EMPTY || s == PAIR_NO_ITEMS) {
        text = empty_reason(s, f);
    } else if (s == PAIR_NO_REPORT || s == PAIR_WAITING) {
        text = pending_reason(s, f);
    }
    (void)snprintf(ret, PAIR_REASON_BYTES, "%s%s", prefix, text);
}

/* The state of one scorer on one cluster, and its reason in words. Called by follows/pairs.c for counts,
 * statuses and pages. Pure: owns nothing; any thread. */
#include "controller/hub/rules/pair.h"

#include "controller/hub/rules/report.h"
#include "exporter/base/buf.h"
#include "exporter/score/scorer_state.h"

#include "controller/kube/time.h"

enum {
    GRACE_MS = 30 * 1000, /* for clocks that differ, and for the way of the report that would say more */
    /* Of agents whose reports do not say when scores expire, and may be five minutes apart. */
    INTERVALS = 3,
    OLD_GRACE_MS = 15 * 60 * 1000,
    ROLL_OUT_MS = 2 * 60 * 1000, /* in which a roll-out of the agent ends its pod and starts another */
    REASON_MAX_BYTES = 8192,     /* more than the longest; its beginning is enough */
};

const struct pair_info pair_info[PAIR_STATES] = {
    [PAIR_NOT_WRITTEN] = {"notWritten", "not written", PAIR_CLASS_FAILING, "error", true},
    [PAIR_NOT_APPLIED] = {"notApplied", "not applied", PAIR_CLASS_FAILING, "error", true},
    [PAIR_REFUSED] = {"refused", "configuration rejected", PAIR_CLASS_FAILING, "error", true},
    [PAIR_FAILING] = {"failing", "failing", PAIR_CLASS_FAILING, "error", true},
    [PAIR_STALE] = {"stale", "stale", PAIR_CLASS_FAILING, "error", true},
    [PAIR_NOT_PLACED] = {"notPlaced", "no placement score", PAIR_CLASS_FAILING, "error", true},
    [PAIR_UNAVAILABLE] = {"silent", "unavailable", PAIR_CLASS_SILENT, "warning", true},
    [PAIR_UNREADABLE] = {"silent", "unreadable", PAIR_CLASS_SILENT, "warning", true},
    [PAIR_ELSEWHERE] = {"silent", "other namespace", PAIR_CLASS_SILENT, "warning", true},
    [PAIR_EXPIRED] = {"silent", "expired", PAIR_CLASS_SILENT, "warning", true},
    [PAIR_SUSPENDED] = {"suspended", "suspended", PAIR_CLASS_SUSPENDED, "warning", true},
    [PAIR_REPORT_FULL] = {"silent", "report full", PAIR_CLASS_SILENT, "warning", true},
    [PAIR_NO_REPORT] = {"silent", "no report", PAIR_CLASS_SILENT, "pending", true},
    [PAIR_BEHIND] = {"behind", "behind", PAIR_CLASS_WAITING, "warning", false},
    [PAIR_WAITING] = {"waiting", "waiting", PAIR_CLASS_WAITING, "pending", true},
    [PAIR_NO_ROOM] = {"noRoom", "no room", PAIR_CLASS_UNSELECTED, "error", false},
    [PAIR_OUTDATED] = {"outdated", "agent too old", PAIR_CLASS_UNSELECTED, "error", false},
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

/* Of a cell whose last round succeeded, perhaps that of an agent before a restart. */
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

/* The agent has started anew, and its scores of before are still good. */
static bool waits_with_scores(const struct pair_facts *f)
{
    return f->cell->state == SCORER_WAITING && f->cell->life && !is_expired(f);
}

static enum pair_state cell_state(const struct pair_facts *f)
{
    /* What never scored has nothing that could be stale. */
    if (f->cell->state == SCORER_FAILING || (f->cell->state == SCORER_STALE && !f->cell->succeeded))
        return PAIR_FAILING;
    if (report_cell_fails(f->cell))
        return f->cell->state == SCORER_STALE ? PAIR_STALE : PAIR_NOT_PLACED;
    if (f->cell->state == SCORER_OK || f->cell->state == SCORER_EMPTY || waits_with_scores(f))
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

/* There is no news of it. What explains that: reports cannot be read, or the agent looks for its ConfigMap
 * in another namespace. */
static enum pair_state state_without_news(const struct pair_facts *f, enum pair_state reported)
{
    if (f->unreadable_because)
        return PAIR_UNREADABLE;
    return f->addon_namespace ? PAIR_ELSEWHERE : reported;
}

int64_t pair_addon_counts_ms(const struct pair_facts *f)
{
    return f->addon_unavailable_since.ms + ROLL_OUT_MS;
}

/* Whether the last report says until when there are scores, and that is not over. */
static bool has_valid_scores(const struct pair_facts *f)
{
    return f->report->exists && f->cell && f->cell->life &&
           pair_info[cell_state(f)].class == PAIR_CLASS_SCORING;
}

static bool is_unavailable(const struct pair_facts *f)
{
    if (f->unavailable_because)
        return true;
    return f->addon_unavailable_because && (f->now.ms >= pair_addon_counts_ms(f) || !has_valid_scores(f));
}

enum pair_state pair_state(const struct pair_facts *f)
{
    enum pair_state reported;

    if (is_unavailable(f))
        return PAIR_UNAVAILABLE;
    if (*cstr(f->write_error))
        return PAIR_NOT_WRITTEN;
    if (f->in_sync && *cstr(f->apply_error))
        return PAIR_NOT_APPLIED;
    if (f->suspended)
        return PAIR_SUSPENDED;
    reported = reported_state(f);
    if (reported == PAIR_NO_REPORT || reported == PAIR_WAITING || reported == PAIR_EXPIRED)
        return state_without_news(f, reported);
    return reported;
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

static void pair_put_expired_reason(struct buf *b, const struct pair_facts *f)
{
    int32_t offset_s = f->report->clock_offset_s;
    char at[KUBE_TIME_BYTES];

    kube_time_format((unix_ms){(int64_t)f->cell->succeeded * 1000}, at);
    buf_printf(b, "its scores have expired: the last success was at %s", at);
    if (offset_s > 0)
        buf_printf(b, "; the agent's clock is %d s behind that of the hub's API server", offset_s);
    else if (offset_s < 0)
        buf_printf(b, "; the agent's clock is %d s ahead of that of the hub's API server", -offset_s);
}

static void pair_put_elsewhere_reason(struct buf *b, const struct pair_facts *f)
{
    buf_printf(b, "the add-on is installed in namespace %s, but its ConfigMap is in %s", f->addon_namespace,
               f->agent_namespace);
    buf_printf(b, ": set agentInstallNamespace: %s in its AddOnDeploymentConfig", f->agent_namespace);
}

static void pair_put_unavailable_reason(struct buf *b, const struct pair_facts *f)
{
    if (f->unavailable_because)
        buf_printf(b, "the cluster is not available: %s", f->unavailable_because);
    else
        buf_printf(b, "the add-on is not available: %s", cstr(f->addon_unavailable_because));
}

/* The agent's words, or those for an agent that has none. */
static void pair_put_error(struct buf *b, const struct pair_facts *f, const char *otherwise)
{
    const char *error = report_error(f->report, f->cell);

    buf_puts(b, *error ? error : otherwise);
}

static void pair_put_reason(struct buf *b, enum pair_state s, const struct pair_facts *f)
{
    switch (s) {
    case PAIR_NOT_WRITTEN:
        buf_printf(b, "ManifestWork not written: %s", cstr(f->write_error));
        break;
    case PAIR_NOT_APPLIED:
        buf_printf(b, "ManifestWork not applied: %s", cstr(f->apply_error));
        break;
    case PAIR_REFUSED:
        buf_printf(b, "the agent rejected its configuration: %s", cstr(f->report->problem));
        break;
    case PAIR_OLD_CONFIG:
        buf_puts(b, "the agent rejected its configuration, an older one stays active: ");
        buf_puts(b, cstr(f->report->problem));
        break;
    case PAIR_FAILING:
    case PAIR_STALE:
        pair_put_error(b, f, pair_info[s].word);
        break;
    case PAIR_NOT_PLACED:
        buf_puts(b, "AddOnPlacementScore not written: ");
        pair_put_error(b, f, "the agent does not say why");
        break;
    case PAIR_UNAVAILABLE:
        pair_put_unavailable_reason(b, f);
        break;
    case PAIR_UNREADABLE:
        buf_printf(b, "ManifestWorks cannot be read: %s", cstr(f->unreadable_because));
        break;
    case PAIR_ELSEWHERE:
        pair_put_elsewhere_reason(b, f);
        break;
    case PAIR_EXPIRED:
        pair_put_expired_reason(b, f);
        break;
    /* The agents of the version before have no words for these, nor those without AddOnPlacementScores. */
    case PAIR_EMPTY:
        pair_put_error(b, f, "the source returned no series, or the scoring API no results");
        break;
    case PAIR_NO_ITEMS:
        pair_put_error(b, f, "no result of the scoring API leads to an item");
        break;
    case PAIR_SUSPENDED:
        buf_puts(b, "not called, as the hub finds the scoring API unhealthy");
        break;
    case PAIR_REPORT_FULL:
        buf_puts(b, "the agent's report has no room for all of its scorers");
        break;
    case PAIR_NO_REPORT:
    case PAIR_WAITING:
        buf_puts(b, pending_reason(s, f));
        break;
    case PAIR_BEHIND:
    case PAIR_NO_ROOM:
    case PAIR_OUTDATED:
    case PAIR_MASKED:
    case PAIR_NOT_SENT:
    case PAIR_OK:
    case PAIR_STATES:
        break;
    }
}

void pair_reason(char ret[PAIR_REASON_BYTES], enum pair_state s, const struct pair_facts *f)
{
    BUF_AUTO(reason, REASON_MAX_BYTES);
    size_t n;

    pair_put_reason(&reason, s, f);
    n = size_min(reason.n, PAIR_REASON_BYTES - 1);
    if (n)
        memcpy(ret, reason.p, n);
    ret[n] = '\0';
}

/* Asks one scoring API how it is, and in Full mode for its configuration, again and again: on the loop, with deadlines and ceilings, so
 * that one that hangs slows no other.
 *
 * Health: GET <origin>/healthz, 2xx is good. Where there is no such path (404, 405, 501), or it is not for all (401, 403), configURL's own
 * answer counts. Unhealthy after so many failures in a row, healthy after so many successes; of an API that has not been judged yet the
 * first success decides.
 * Configuration: GET configURL; an answer of 2xx that makes, with the DynamicScorer, a summary that agents take and that sends no token
 * where it may not go. Anything else leaves the last good one.
 * Sooner than after an interval (1 s, doubled up to that) is asked again: for health as long as that is unknown, for a configuration that
 * failed. An unhealthy API that answers well is asked again after 1 s until it counts as healthy. */
#ifndef DS_HUB_PROBE_H
#define DS_HUB_PROBE_H

#include "controller/hub/rules/spec.h"
#include "controller/kube/client.h"

struct probe;

enum probe_health { HEALTH_UNKNOWN, HEALTH_ACTIVE, HEALTH_INACTIVE };

struct probe_settings {
    int64_t interval_ms;                     /* between probes, with a jitter of a tenth */
    int64_t timeout_ms;                      /* of each request */
    unsigned unhealthy_after, healthy_after; /* >= 1 */
    bool public_only;                        /* addresses of private ranges are refused; see http.h */
};

struct probe_env {
    struct loop *loop;
    struct http *http;
    struct kube *hub;      /* for the Secrets of configAuth */
    const char *namespace; /* of those */
    const char *name;      /* of the DynamicScorer */
    const struct probe_settings *settings;
};

/* One of the two things asked. `reason` is a CamelCase word for a condition, `message` says what happened in the API's own words, one line. */
struct probe_part {
    bool asked;        /* an attempt has ended */
    bool ok;           /* the last one */
    unsigned failures; /* in a row */
    char reason[40], message[768];
    double seconds;
    int64_t at_ms; /* Unix time of its end */
};

struct probe_status {
    enum probe_health health;
    struct probe_part
        probe; /* health. Reasons: Healthy, HTTPStatus, Timeout, Unreachable, TLS, DNS, TooLarge, Broken, InvalidURL, Forbidden... */
    struct probe_part
        config; /* Full mode. Reasons: Synced, HTTPStatus, ..., InvalidConfig, TokenHostNotAllowed, TokenMissing */
    struct api_config synced; /* the last good one; owner is NULL without */
    int64_t next_ms;          /* Unix time of the next probe; 0 while one is under way */
};

/* Which metric-relevant thing ended; for counters. */
enum probe_what { PROBE_HEALTH, PROBE_CONFIG };
struct probe_callbacks {
    /* After each attempt of either part, on the loop. May free the probe. */
    void (*ended)(void *arg, enum probe_what what, const struct probe_part *part);
    void *arg;
};

/* env and what it points to must outlive the probe. Nothing is asked before probe_start(). -ENOMEM. */
MUST_USE int probe_new(struct probe **ret, const struct probe_env *env, const struct probe_callbacks *cb);
struct probe *probe_free(struct probe *p);
DEFINE_CLEANUP(struct probe, probe_free)

/* What is known from the scorer's status, while probes do not run: so that a restart of the controller, or a standby that takes over, neither
 * forgets a configuration nor calls a healthy API unknown. Takes over *synced (left empty). */
void probe_resume(struct probe *p, enum probe_health health, struct api_config *synced);
/* The scorer's spec, copied as far as needed (a reference to its document is kept). When what matters to the probe has changed, what is under
 * way is cancelled and a probe starts at once if probes run (after a /config that was not taken, any change matters); switching to None mode forgets the synced configuration; after
 * another configURL health and configuration stay as they are until the new API has been judged, soon. -ENOMEM. */
MUST_USE int probe_set(struct probe *p, const struct scorer_spec *spec);
/* The first probe comes at once, then one each interval. Does nothing when it runs. -ENOMEM. */
MUST_USE int probe_start(struct probe *p);
/* Cancels what is under way; what is known stays. */
void probe_stop(struct probe *p);
const struct probe_status *probe_status(const struct probe *p);

#endif

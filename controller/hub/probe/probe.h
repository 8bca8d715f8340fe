/* Probes one scoring API for its health and, in Full mode, its configuration, periodically, on the loop.
 * Every request has a deadline and a ceiling, so that an API that hangs slows no other.
 *
 * Health: GET <origin>/healthz; 2xx is a success. If the path does not exist (404, 405, 501) or needs
 * credentials (401, 403), the answer of configURL counts instead. Thresholds of consecutive failures and
 * successes decide, except for the first verdict, which takes one success.
 *
 * Where the spec's healthCheck is not Hub, it is not asked for health, which stays unknown.
 *
 * Configuration: GET configURL. A 2xx answer is accepted if, merged with the DynamicScorer, it makes a
 * summary that agents accept and sends no token to a host that is not allowed. Otherwise the last good
 * configuration stays.
 *
 * Retries come after 1 s, doubling up to the interval: for health while it is unknown, and for a
 * configuration that failed. An unhealthy API that responds again is asked every second until it is
 * healthy. */
#pragma once

#include "controller/hub/probe/probe_status.h"
#include "controller/hub/rules/effective.h"
#include "controller/hub/rules/pair.h"
#include "controller/hub/rules/plan.h"
#include "controller/hub/rules/report.h"
#include "controller/hub/rules/spec.h"
#include "controller/hub/rules/work.h"
#include "controller/kube/client.h"
#include "exporter/base/loop.h"
#include "exporter/http/http.h"

struct history;
struct probe;

struct probe_settings {
    int64_t interval_ms;                     /* between probes, with a jitter of a tenth */
    int64_t timeout_ms;                      /* of each request */
    unsigned unhealthy_after, healthy_after; /* >= 1 */
    bool public_only;                        /* refuse private addresses; see http.h */
};

struct probe_env {
    struct loop *loop;
    struct http *http;
    struct kube *hub;      /* to read the Secrets of configAuth */
    const char *namespace; /* of the Secrets */
    const char *name;      /* of the DynamicScorer */
    const struct probe_settings *settings;
    /* Called on the loop after each attempt; must not change the probe. */
    void (*ended)(void *arg, enum probe_what what, const struct probe_part *part);
    void *arg;
};

/* What env points to must outlive the probe. Nothing is sent before probe_start(). */
struct probe *probe_new(const struct probe_env *env);
struct probe *probe_free(struct probe *p);

/* Restores health and configuration from the scorer's status, so that a new leader knows both, before
 * probe_start(). Moves *synced. unread: the last attempt to read a configuration failed. */
void probe_resume(struct probe *p, enum probe_health health, struct api_config *synced, bool unread);
/* Sets the scorer's spec, and keeps a reference. Requests in flight are cancelled and, if started, a probe
 * begins at once. None mode drops the synced configuration. After a change of configURL health and
 * configuration stay until the new API has a verdict, as does health that was not probed before. */
void probe_set(struct probe *p, const struct scorer_spec *spec);
/* Probes now, and then at each interval. Does nothing if already started. */
void probe_start(struct probe *p);
/* Cancels requests in flight; the status stays. */
void probe_stop(struct probe *p);
const struct probe_status *probe_status(const struct probe *p);

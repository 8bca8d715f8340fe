/* What is known of a scoring API: its health, and its configuration. Only probe.c changes it. Loop thread. */
#pragma once

#include "controller/hub/probe/probe_reason.h"
#include "controller/hub/rules/spec.h"

struct history;

/* HEALTH_DEGRADED is no verdict of a probe: by agents' reports, the API works on some clusters only. */
enum probe_health { HEALTH_UNKNOWN, HEALTH_ACTIVE, HEALTH_INACTIVE, HEALTH_DEGRADED, HEALTH_STATES };

/* "Unknown", "Active", "Inactive" or "Degraded". */
const char *probe_health_word(enum probe_health health);

enum probe_what { PROBE_HEALTH, PROBE_CONFIG, PROBE_PARTS };

/* Health or configuration. message: one line. */
struct probe_part {
    bool asked;        /* at least one attempt has ended */
    bool ok;           /* the last attempt */
    unsigned failures; /* consecutive */
    enum probe_reason reason;
    char message[768];
    double seconds;
    int64_t at_ms; /* Unix time of the last attempt's end */
};

struct probe_status {
    enum probe_health health;
    int64_t failing_ms;       /* Unix time of the first of the consecutive failures; 0: the last was none */
    struct probe_part probe;  /* health */
    struct probe_part config; /* Full mode */
    struct api_config synced; /* the last good one; owner is NULL if there is none */
    bool is_synced_elsewhere; /* it may be the answer of another configURL than today's */
    int64_t next_ms;          /* Unix time of the next probe; 0 while one is in flight */
    struct history *history[PROBE_PARTS]; /* one column: seconds; NULL before the first attempt */
};

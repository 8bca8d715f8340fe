/* Shared by the tests of the probe: a scripted scoring API, an API server for Secrets, and a fake clock. */
#pragma once

#include "controller/hub/probe/probe.h"
#include "controller/hub/probe/probe_reason.h"
#include "controller/hub/rules/effective.h"
#include "controller/hub/rules/pair.h"
#include "controller/hub/rules/plan.h"
#include "controller/hub/rules/report.h"
#include "controller/hub/rules/spec.h"
#include "controller/hub/rules/work.h"
#include "exporter/base/loop.h"
#include "test/fakes/fake_kube.h"
#include "test/fakes/fake_server.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include <cmocka.h>

#define GOOD_CONFIG(name)                                                                                \
    "{\"name\":\"" name "\",\"source\":{\"type\":\"Prometheus\",\"host\":\"https://prom.example:9090\"," \
    "\"path\":\"/api/v1/query_range\",\"params\":{\"query\":\"up\",\"range\":3600,\"step\":60}},"        \
    "\"scoring\":{\"path\":\"/scoring\",\"params\":{\"name\":\"" name "_score\",\"interval\":60}}}"

enum { INTERVAL_MS = 30000 };

struct world {
    struct fake_kube *f;
    struct fake_server *api;
    struct probe_settings settings;
    struct probe_env env;
    struct probe *p;
    struct scorer_spec spec; /* tests change it, then call set() */
    unsigned n[2];           /* attempts that have ended */
    struct probe_part last[2];
};

static inline void on_ended(void *arg, enum probe_what what, const struct probe_part *part)
{
    struct world *w = arg;

    w->n[what]++;
    w->last[what] = *part;
    assert_true(part->asked && part->reason != PROBE_NOT_ASKED && part->message[0]);
    assert_null(strpbrk(part->message, "\r\n"));
}

static inline int setup(void **state)
{
    struct world *w = calloc(1, sizeof(*w));

    w->f = fake_kube_new();
    w->api = fake_new();
    fake_default(w->api, (struct fake_answer){.body = GOOD_CONFIG("a"), .close = true});
    w->settings = (struct probe_settings){
        .interval_ms = INTERVAL_MS, .timeout_ms = 20000, .unhealthy_after = 3, .healthy_after = 2};
    w->env = (struct probe_env){.loop = w->f->loop,
                                .http = w->f->http,
                                .hub = w->f->kube,
                                .namespace = "ocm",
                                .name = "s",
                                .settings = &w->settings,
                                .ended = on_ended,
                                .arg = w};
    w->spec = (struct scorer_spec){
        .mode = SYNC_FULL, .config_url = fake_url(w->api, "/config"), .own.owner = json_object()};
    w->p = probe_new(&w->env);
    *state = w;
    return 0;
}

static inline int teardown(void **state)
{
    struct world *w = *state;

    w->p = probe_free(w->p);
    json_decref(w->spec.own.owner);
    w->api = fake_free(w->api);
    (void)fake_kube_free(w->f);
    free(w);
    return 0;
}

static inline const struct probe_status *status(const struct world *w)
{
    return probe_status(w->p);
}

static inline void set(struct world *w)
{
    probe_set(w->p, &w->spec);
}

static inline int64_t pause_of(const struct world *w)
{
    return status(w)->next_ms - w->f->clock.wall.ms;
}

/* Moves the clock to the next probe and waits for its end. */
static inline void probe_once(struct world *w)
{
    time_t end = time(NULL) + 20;
    int64_t ms = pause_of(w);

    assert_true(status(w)->next_ms > 0);
    w->f->clock.mono.ms += ms > 0 ? ms : 0;
    w->f->clock.wall.ms += ms > 0 ? ms : 0;
    do
        assert_int_equal(loop_turn(w->f->loop, 5), 0);
    while (pause_of(w) <= 0 && time(NULL) < end);
    assert_true(pause_of(w) > 0);
}

/* The first probe. */
static inline void begin(struct world *w)
{
    set(w);
    probe_start(w->p);
    probe_once(w);
}

/* Each answer closes its connection, as curl retries on a reused one that is closed without an answer. */
static inline void push(struct world *w, const char *path, struct fake_answer a)
{
    a.close = true;
    a.only_path = path;
    fake_push(w->api, a);
}

static inline void assert_part(const struct probe_part *part, bool ok, const char *reason,
                               const char *message)
{
    assert_string_equal(probe_reason_word(part->reason), reason);
    assert_int_equal(part->ok, ok);
    if (!strstr(part->message, message))
        assert_string_equal(part->message, message);
}

static inline const char *synced_name(const struct world *w)
{
    return status(w)->synced.owner ? cstr(status(w)->synced.name) : "(nothing)";
}

/* Plus or minus a tenth. */
static inline void assert_pause(const struct world *w, int64_t ms)
{
    assert_in_range(pause_of(w), ms - ms / 10, ms + ms / 10);
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

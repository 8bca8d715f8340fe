/* Leader election: who leads when, by local time alone. */
#include "controller/kube/json.h"
#include "controller/kube/lease.h"
#include "test/fakes/fake_kube.h"
#include "test/fakes/fake_server.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

struct world {
    struct fake_kube *f;
    struct kube_lease *lease;
    unsigned changes, standbys, released, error_changes;
    bool leading;
};

static void on_change(void *arg, bool leading)
{
    struct world *w = arg;

    if (!leading && !w->leading) {
        assert_int_equal(w->changes + w->standbys++, 0); /* only at the start */
        return;
    }
    assert_true(leading != w->leading);
    w->changes++;
    w->leading = leading;
}

static void on_error_changed(void *arg)
{
    struct world *w = arg;

    w->error_changes++;
}

static void on_released(void *arg)
{
    struct world *w = arg;

    w->released++;
}

static int setup(void **state)
{
    struct world *w = calloc(1, sizeof(*w));

    w->f = fake_kube_new();
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;

    w->lease = kube_lease_free(w->lease);
    (void)fake_kube_free(w->f);
    free(w);
    return 0;
}

static void begin(struct world *w)
{
    const struct kube_lease_options o = {.namespace = "ns",
                                         .name = "l",
                                         .identity = "me",
                                         .on_change = on_change,
                                         .on_error_changed = on_error_changed,
                                         .arg = w};

    w->lease = kube_lease_new(w->f->kube, &o);
}

static const char *lease(struct world *w, const char *holder, const char *version)
{
    return fake_kube_text(
        w->f,
        "{\"apiVersion\":\"coordination.k8s.io/v1\",\"kind\":\"Lease\",\"metadata\":{\"name\":\"l\","
        "\"resourceVersion\":\"%s\",\"labels\":{\"kept\":\"yes\"}},\"spec\":{\"holderIdentity\":\"%s\","
        "\"leaseDurationSeconds\":15,\"renewTime\":\"1999-01-01T00:00:00.000000Z\",\"acquireTime\":"
        "\"1998-01-01T00:00:00.000000Z\",\"leaseTransitions\":3}}",
        version, holder);
}

static void push(struct world *w, const char *holder, const char *version)
{
    fake_push(w->f->server, (struct fake_answer){.body = lease(w, holder, version)});
}

/* So many requests in all have been answered. */
static void asked(struct world *w, size_t n)
{
    fake_kube_requests(w->f, n);
    fake_kube_idle(w->f);
    assert_int_equal(fake_requests(w->f->server), n);
}

static json_t *sent(struct world *w, size_t i)
{
    json_t *o = NULL;

    assert_int_equal(kube_json_parse(&o, str_of(fake_request(w->f->server, i)->body), NULL), 0);
    return o;
}

static void lead(struct world *w);

static void creates_the_lease(void **state)
{
    struct world *w = *state;
    json_auto_t *o = NULL;
    int64_t n = -1;

    fake_kube_status(w->f, 404, "NotFound", "leases l not found");
    push(w, "me", "1");
    begin(w);
    assert_false(kube_lease_leading(w->lease));
    asked(w, 2);
    assert_true(w->leading && kube_lease_leading(w->lease));
    assert_string_equal(kube_lease_holder(w->lease), "me");
    assert_null(kube_lease_error(w->lease));
    assert_string_equal(fake_kube_asked(w->f, 0), "GET /apis/coordination.k8s.io/v1/namespaces/ns/leases/l");
    assert_string_equal(fake_kube_asked(w->f, 1), "POST /apis/coordination.k8s.io/v1/namespaces/ns/leases");
    o = sent(w, 1);
    assert_string_equal(kube_name(o), "l");
    assert_string_equal(kube_namespace(o), "ns");
    assert_string_equal(kube_str(o, "spec", "holderIdentity", NULL), "me");
    assert_string_equal(kube_str(o, "spec", "renewTime", NULL), "2026-11-21T06:23:01.000000Z");
    assert_string_equal(kube_str(o, "spec", "acquireTime", NULL), "2026-11-21T06:23:01.000000Z");
    assert_true(kube_int(o, &n, "spec", "leaseDurationSeconds", NULL) && n == 15);
    assert_true(kube_int(o, &n, "spec", "leaseTransitions", NULL) && n == 0);
}

/* Another holds it: it is taken when it has not changed for its duration by our clock, whatever its own
 * times say. */
static void takes_over_a_lease_unchanged_for_its_duration(void **state)
{
    struct world *w = *state;
    json_auto_t *o = NULL;
    int64_t n = -1, waited = 0;
    size_t i = 1;

    begin(w);
    push(w, "other", "5");
    asked(w, i);
    assert_string_equal(kube_lease_holder(w->lease), "other");
    assert_int_equal(w->standbys, 1);
    for (; waited < 14000; waited += 2400, i++) {
        push(w, "other", waited < 4800 ? "5" : "6"); /* renewed in between */
        fake_kube_advance(w->f, 2400);
        asked(w, i + 1);
        assert_string_equal(fake_request(w->f->server, i)->method, "GET");
    }
    /* Version 6 was first seen 7.2 s ago: 14.4 s are not enough. */
    for (unsigned k = 0; k < 3; k++, i++) {
        push(w, "other", "6");
        fake_kube_advance(w->f, 2400);
        asked(w, i + 1);
    }
    assert_false(w->leading);
    push(w, "other", "6");
    push(w, "me", "7");
    fake_kube_advance(w->f, 2400);
    asked(w, i + 2);
    assert_true(w->leading);
    o = sent(w, i + 1);
    assert_string_equal(fake_request(w->f->server, i + 1)->method, "PUT");
    assert_string_equal(kube_version(o), "6");
    assert_string_equal(kube_label(o, "kept"), "yes");
    assert_true(kube_int(o, &n, "spec", "leaseTransitions", NULL) && n == 4);
    assert_string_equal(kube_str(o, "spec", "holderIdentity", NULL), "me");
}

/* Advances the clock until the Lease is asked for again, for the (n + 1)th time. Returns by how much. */
static int64_t next_look(struct world *w, size_t n)
{
    int64_t ms = 0;

    while (ms < 1200 && fake_requests(w->f->server) == n && fake_kube_calls(w->f) == 0) {
        fake_kube_advance(w->f, 50);
        ms += 50;
    }
    fake_kube_requests(w->f, n + 1);
    return ms;
}

/* A stopped leader has released it: seen within 1.2 s. A killed one has not: seen when it expires. */
/* Whoever held it may still lead, and creates it anew: nobody else does for as long as it could lead. */
static void waits_before_it_creates_a_lease_that_was_deleted(void **state)
{
    struct world *w = *state;
    size_t i = 1;

    begin(w);
    push(w, "other", "5");
    asked(w, i);
    for (int64_t waited = 0; waited < 22000; waited += 1200) {
        bool is_absent = waited >= 7000; /* what it had seen was old by then: the absence counts from there */

        if (is_absent)
            fake_kube_status(w->f, 404, "NotFound", "leases l not found");
        else
            push(w, "other", "5");
        fake_kube_advance(w->f, 1200);
        asked(w, ++i);
        assert_string_equal(fake_request(w->f->server, i - 1)->method, "GET");
        assert_string_equal(kube_lease_holder(w->lease), "other");
    }
    fake_kube_status(w->f, 404, "NotFound", "leases l not found");
    push(w, "me", "7");
    fake_kube_advance(w->f, 1200);
    asked(w, i + 2);
    assert_string_equal(fake_request(w->f->server, i + 1)->method, "POST");
    assert_true(w->leading);
}

static size_t count_posts(struct world *w)
{
    size_t n = 0;

    for (size_t i = 0; i < fake_requests(w->f->server); i++)
        n += strcmp(fake_request(w->f->server, i)->method, "POST") == 0;
    return n;
}

/* It leads, and then gets no answer for longer than a Lease lasts. */
static void lead_until_cut_off(struct world *w)
{
    lead(w);
    fake_default(w->f->server, (struct fake_answer){.status = 500});
    for (unsigned i = 0; i < 40; i++)
        fake_kube_advance(w->f, 500);
    fake_kube_settle(w->f);
    assert_false(w->leading);
}

/* Cut off, it has not seen who took over from it. */
static void waits_although_the_last_holder_it_saw_was_itself(void **state)
{
    struct world *w = *state;

    lead_until_cut_off(w);
    fake_default(w->f->server,
                 (struct fake_answer){.status = 404,
                                      .headers = "Content-Type: application/json\r\n",
                                      .body = "{\"kind\":\"Status\",\"status\":\"Failure\",\"reason\":"
                                              "\"NotFound\",\"details\":{\"name\":\"l\"},\"code\":404}"});
    for (unsigned i = 0; i < 28; i++) {
        fake_kube_advance(w->f, 500);
        fake_kube_settle(w->f);
    }
    assert_int_equal(count_posts(w), 0);
    for (unsigned i = 0; i < 20; i++) {
        fake_kube_advance(w->f, 500);
        fake_kube_settle(w->f);
    }
    assert_true(count_posts(w) > 0);
}

/* Cut off while the store was restored from a backup: it has given the same version again, to the Lease of
 * who took over. */
static void waits_for_another_holder_whose_lease_has_the_version_of_its_own(void **state)
{
    struct world *w = *state;

    lead_until_cut_off(w);
    fake_default(w->f->server, (struct fake_answer){.body = lease(w, "other", "2")});
    for (unsigned i = 0; i < 20; i++) {
        fake_kube_advance(w->f, 500);
        fake_kube_settle(w->f);
    }
    assert_string_equal(kube_lease_holder(w->lease), "other");
    assert_int_equal(w->changes, 2);
}

static void creates_its_own_lease_anew_at_once(void **state)
{
    struct world *w = *state;

    lead(w);
    fake_kube_status(w->f, 404, "NotFound", "leases l not found");
    fake_kube_advance(w->f, 2400);
    asked(w, 3);
    fake_kube_status(w->f, 404, "NotFound", "leases l not found");
    push(w, "me", "9");
    fake_kube_advance(w->f, 2400);
    asked(w, 5);
    assert_string_equal(fake_request(w->f->server, 4)->method, "POST");
    assert_true(kube_lease_leading(w->lease));
    assert_int_equal(w->changes, 1);
}

static void looks_every_second_and_at_the_expiry(void **state)
{
    struct world *w = *state;
    int64_t waited = 0;
    size_t n = 1;

    fake_default(w->f->server, (struct fake_answer){.body = lease(w, "other", "5")});
    begin(w);
    asked(w, n);
    while (waited < 15000) {
        int64_t ms = next_look(w, n);

        waited += ms;
        assert_true(ms >= 1000 || waited == 15000);
        assert_string_equal(fake_request(w->f->server, n++)->method, "GET");
        if (waited < 15000)
            asked(w, n);
    }
    assert_int_equal(waited, 15000);
    fake_kube_requests(w->f, n + 1);
    assert_string_equal(fake_request(w->f->server, n)->method, "PUT");
}

static void lead(struct world *w)
{
    push(w, "", "1");
    push(w, "me", "2");
    begin(w);
    asked(w, 2);
    assert_true(w->leading);
}

static void renews_its_lease(void **state)
{
    struct world *w = *state;
    json_auto_t *o = NULL;

    lead(w);
    for (size_t i = 0; i < 10; i++) {
        push(w, "me", fake_kube_text(w->f, "%zu", i + 3));
        fake_kube_advance(w->f, 2400);
        asked(w, i + 3);
        assert_string_equal(fake_request(w->f->server, i + 2)->method, "PUT");
        assert_true(kube_lease_leading(w->lease));
    }
    o = sent(w, 11);
    assert_string_equal(kube_version(o), "11");
    assert_string_equal(kube_str(o, "spec", "acquireTime", NULL), "1998-01-01T00:00:00.000000Z");
    assert_int_equal(w->changes, 1);
}

/* Not renewed for ten seconds: no longer leading, five seconds before anyone else may. */
static void stops_leading_before_others_may_take_over(void **state)
{
    struct world *w = *state;

    lead(w);
    fake_default(w->f->server, (struct fake_answer){.status = 500});
    for (unsigned i = 0; i < 99; i++) {
        fake_kube_advance(w->f, 100);
        assert_true(kube_lease_leading(w->lease));
        if (i == 30) { /* the first renewal has been asked for */
            fake_kube_requests(w->f, 3);
            while (!kube_lease_error(w->lease))
                fake_kube_idle(w->f);
        }
    }
    w->f->clock.mono.ms += 100;
    fake_kube_advance(w->f, 0);
    assert_false(kube_lease_leading(w->lease));
    assert_false(w->leading);
    assert_non_null(strstr(kube_lease_error(w->lease), "HTTP 500"));
    assert_int_equal(w->error_changes, 1);
    /* The server is back, and the lease is still ours. */
    fake_kube_idle(w->f);
    fake_default(w->f->server, (struct fake_answer){.body = lease(w, "me", "9")});
    for (unsigned i = 0; i < 20 && !w->leading; i++) {
        fake_kube_advance(w->f, 500);
        fake_kube_idle(w->f);
    }
    assert_true(w->leading);
    assert_int_equal(w->changes, 3);
    assert_null(kube_lease_error(w->lease));
    assert_int_equal(w->error_changes, 2);
}

/* A write whose answer comes late counts from when it was sent. */
static void counts_a_renewal_from_its_request(void **state)
{
    struct world *w = *state;

    push(w, "", "1");
    fake_push(w->f->server, (struct fake_answer){.body = lease(w, "me", "2"), .delay_ms = 300});
    begin(w);
    fake_kube_requests(w->f, 2); /* the write has come, and waits for its answer */
    fake_kube_advance(w->f, 10000);
    while (!*kube_lease_holder(w->lease))
        fake_kube_idle(w->f);
    assert_int_equal(w->changes, 0);
    assert_false(kube_lease_leading(w->lease));
}

static void stops_leading_when_another_took_over(void **state)
{
    struct world *w = *state;

    lead(w);
    fake_kube_status(w->f, 409, "Conflict", "the object has been modified");
    fake_kube_advance(w->f, 2400);
    asked(w, 3);
    assert_true(kube_lease_leading(w->lease));
    push(w, "other", "9");
    fake_kube_advance(w->f, 2400);
    asked(w, 4);
    assert_false(w->leading);
    assert_string_equal(kube_lease_holder(w->lease), "other");
    assert_int_equal(w->changes, 2);
}

/* Someone only labelled it: nothing is lost. */
static void keeps_leading_after_a_harmless_conflict(void **state)
{
    struct world *w = *state;

    lead(w);
    fake_kube_status(w->f, 409, "Conflict", "the object has been modified");
    fake_kube_advance(w->f, 2400);
    asked(w, 3);
    push(w, "me", "9");
    push(w, "me", "10");
    fake_kube_advance(w->f, 2400);
    asked(w, 5);
    assert_true(kube_lease_leading(w->lease));
    assert_int_equal(w->changes, 1);
}

static void releases_the_lease(void **state)
{
    struct world *w = *state;
    json_auto_t *o = NULL;
    int64_t n = -1;

    lead(w);
    push(w, "me", "2");
    push(w, "", "3");
    kube_lease_release(w->lease, on_released, w);
    assert_false(w->leading);
    fake_kube_turn(w->f, &w->released, 1);
    o = sent(w, 3);
    assert_string_equal(kube_str(o, "spec", "holderIdentity", NULL), "");
    assert_true(kube_int(o, &n, "spec", "leaseDurationSeconds", NULL) && n == 1);
    /* Not taken again. */
    for (unsigned i = 0; i < 20; i++)
        fake_kube_advance(w->f, 3000);
    assert_int_equal(fake_requests(w->f->server), 4);
    assert_int_equal(w->changes, 2);
}

static void ends_a_release_that_cannot_or_need_not_be_written(void **state)
{
    struct world *w = *state;

    push(w, "other", "1");
    begin(w);
    asked(w, 1);
    push(w, "other", "1");
    kube_lease_release(w->lease, on_released, w);
    fake_kube_turn(w->f, &w->released, 1);
    w->lease = kube_lease_free(w->lease);
    begin(w);
    kube_lease_release(w->lease, on_released, w);
    fake_kube_turn(w->f, &w->released, 2);
    assert_int_equal(w->changes, 0);
}

static void ends_a_release_without_an_answer_after_five_seconds(void **state)
{
    struct world *w = *state;

    lead(w);
    fake_default(w->f->server, (struct fake_answer){.mode = FAKE_HANG});
    kube_lease_release(w->lease, on_released, w);
    fake_kube_requests(w->f, 3);
    fake_kube_advance(w->f, 4900);
    assert_int_equal(w->released, 0);
    fake_kube_advance(w->f, 100);
    assert_int_equal(w->released, 1);
    assert_false(w->leading);
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(creates_the_lease),
        CASE(waits_before_it_creates_a_lease_that_was_deleted),
        CASE(waits_although_the_last_holder_it_saw_was_itself),
        CASE(waits_for_another_holder_whose_lease_has_the_version_of_its_own),
        CASE(creates_its_own_lease_anew_at_once),
        CASE(takes_over_a_lease_unchanged_for_its_duration),
        CASE(looks_every_second_and_at_the_expiry),
        CASE(renews_its_lease),
        CASE(stops_leading_before_others_may_take_over),
        CASE(counts_a_renewal_from_its_request),
        CASE(stops_leading_when_another_took_over),
        CASE(keeps_leading_after_a_harmless_conflict),
        CASE(releases_the_lease),
        CASE(ends_a_release_that_cannot_or_need_not_be_written),
        CASE(ends_a_release_without_an_answer_after_five_seconds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
